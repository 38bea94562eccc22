"""Stationary SGD against enumeration of all batches; noisy descent, slow directions, quadratic models, margins."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize, stats

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics.checks import aloud
from deeplimits.theory import bias
from deeplimits.theory.bias import noisy_descent, proportional_margin, quadratic_model, sgd_noise, slow_directions

X, Y = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 4.0]]), np.array([0.0, 1.0, 1.0, 3.0])


def batches(sampling, m, size):
    """Every batch as weights on the samples, with its probability."""
    if sampling == "bernoulli":
        p = size / m
        for taken in itertools.product((0, 1), repeat=m):
            yield np.array(taken) / size, p ** sum(taken) * (1 - p) ** (m - sum(taken))
        return
    chosen = (
        itertools.product(range(m), repeat=size)
        if sampling == "with replacement"
        else itertools.combinations(range(m), size)
    )
    every = [np.bincount(batch, minlength=m) / size for batch in chosen]
    for weights in every:
        yield weights, 1 / len(every)


def test_reference_values():
    found = sgd_noise.sgd_stationary(X, Y, 0.05, 2, "bernoulli")
    s = found.covariance
    wanted = [0.0028745821288589, 0.00027619279806891, 0.00013597563099279, 0.00040428088044099]
    np.testing.assert_allclose([found.position_side, s[0, 0], s[0, 1], s[1, 1]], wanted, rtol=1e-11)
    assert float(found.noise_side) == pytest.approx(float(found.position_side), rel=1e-13)
    found = sgd_noise.sgd_stationary(X, Y, 0.05, 2, "without replacement")
    s = found.covariance
    wanted = [0.0037309016722457, 0.00036692297723674, 0.00017281547008962, 0.0005255475332753]
    np.testing.assert_allclose([found.position_side, s[0, 0], s[0, 1], s[1, 1]], wanted, rtol=1e-11)


@pytest.mark.parametrize("sampling", sgd_noise.SAMPLINGS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_against_the_enumeration_of_all_batches(sampling, size):
    eta = 0.05
    found = sgd_noise.sgd_stationary(X, Y, eta, size, sampling)
    s, theta = np.asarray(found.covariance), np.asarray(found.minimizer)
    after, tilde = np.zeros((2, 2)), np.zeros((2, 2))
    eye = np.eye(2)
    for weights, probability in batches(sampling, 4, size):
        hessian, force = (X.T * weights) @ X, X.T @ (weights * (X @ theta - Y))
        step = eye - eta * hessian
        after += probability * (step @ s @ step.T + eta**2 * np.outer(force, force))
        tilde += probability * (hessian @ s @ hessian + np.outer(force, force))
    np.testing.assert_allclose(after, s, rtol=1e-11, atol=1e-15)
    a = X.T @ X / 4
    assert float(found.noise_side) == pytest.approx(eta / 2 * np.trace(tilde), rel=1e-11)
    assert float(found.gradient_side) == pytest.approx(np.trace(a @ a @ s), rel=1e-11)
    assert float(found.curvature_side) == pytest.approx(eta / 2 * np.trace(a @ tilde), rel=1e-11)
    assert float(found.radius) < 1
    # one step of the mean loss from any start, by the same enumeration
    start = np.array([1.0, -0.5])

    def loss(theta):
        return np.mean((X @ theta - Y) ** 2) / 2

    exact = sum(
        probability * loss(start - eta * X.T @ (weights * (X @ start - Y)))
        for weights, probability in batches(sampling, 4, size)
    )
    path = sgd_noise.sgd_loss_path(X, Y, start, eta, size, sampling, 1)
    np.testing.assert_allclose(path, [loss(start) - loss(theta), exact - loss(theta)], rtol=1e-11)


def test_stability_limits():
    top = np.linalg.eigvalsh(X.T @ X / 4)[-1]
    assert float(sgd_noise.largest_sgd_step(X, 4, "without replacement")) == pytest.approx(2 / top, rel=1e-10)
    for sampling in sgd_noise.SAMPLINGS:
        largest = float(sgd_noise.largest_sgd_step(X, 2, sampling))
        assert largest < 2 / top
        below = jnp.asarray(largest * (1 - 1e-11))  # at the bound itself rounding decides
        radius = sgd_noise.sgd_stationary(jnp.asarray(X), jnp.asarray(Y), below, 2, sampling).radius
        assert float(radius) == pytest.approx(1, rel=1e-10)
        with pytest.raises(OutsideValidity, match="finite for 0 < step"):
            sgd_noise.sgd_stationary(X, Y, 1.001 * largest, 2, sampling)
    with pytest.raises(ParameterError, match="batch = 5"):
        sgd_noise.sgd_stationary(X, Y, 0.01, 5, "bernoulli")
    with pytest.raises(ParameterError, match="sampling = 'epochs'"):
        sgd_noise.sgd_stationary(X, Y, 0.01, 2, "epochs")
    with pytest.raises(OutsideValidity, match="rank 1"):
        sgd_noise.sgd_stationary(np.ones((4, 2)), Y, 0.01, 2, "bernoulli")
    with pytest.raises(ParameterError, match="one label for each row of x"):
        sgd_noise.sgd_stationary(X, Y[:2], 0.01, 2, "bernoulli")


def test_compiled_it_is_the_same_and_raises_too():
    compiled = jax.jit(lambda x, y, step: sgd_noise.sgd_stationary(x, y, step, 2, "bernoulli"))
    for ours, theirs in zip(compiled(X, Y, 0.05), sgd_noise.sgd_stationary(X, Y, 0.05, 2, "bernoulli"), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    with pytest.raises(OutsideValidity, match="grow without bound"), aloud("test"):
        jax.block_until_ready(compiled(X, Y, 5.0))


def test_noisy_descent():
    assert float(noisy_descent.stationary_variance(0.1, 2.0, 1.0)) == pytest.approx(0.027777777777778, rel=1e-12)
    assert float(noisy_descent.langevin_variance(0.1, 2.0, 0.5)) == pytest.approx(0.27777777777778, rel=1e-12)
    assert float(noisy_descent.variance_path(1.0, 1 / jnp.arange(1.0, 101.0), 1.0, start=5.0)[-1]) == pytest.approx(
        0.01
    )
    for gain in (0.3, 0.5, 0.8, 2.0):
        law = noisy_descent.robbins_monro(gain, 1.0, 1.0)
        times = np.array([10**5, 2 * 10**5])
        v = np.asarray(noisy_descent.variance_path(1.0, gain / jnp.arange(1.0, times[-1] + 1.0), 1.0))[times]
        v = v / (np.log(times) if law.logarithm else 1.0)
        slope = -np.log2(v[1] / v[0])
        # what is left of a faster power, T^(1 − 2·gain) of the start for gain 0.3, or of the logarithm: below 1 % here
        assert slope == pytest.approx(law.power, abs=0.01)
        if law.constant is not None and not law.logarithm:
            assert v[1] * times[1] == pytest.approx(law.constant, rel=1e-3)
    assert noisy_descent.schedule_converges(1.0) == (True, True)
    assert noisy_descent.schedule_converges(1.2) == (False, False)
    # the mean of T stationary iterates, by the covariance matrix of an autoregression
    lags = np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    exact = float(noisy_descent.stationary_variance(0.3, 1.0, 2.0)) * np.mean(0.7**lags)
    assert float(noisy_descent.averaged_variance(0.3, 1.0, 2.0, 30)) == pytest.approx(exact, rel=1e-12)
    with pytest.raises(OutsideValidity, match="the iteration diverges"):
        noisy_descent.stationary_variance(1.0, 2.0, 1.0)
    with pytest.raises(ParameterError, match="curvature"):
        noisy_descent.langevin_variance(0.1, -2.0, 1.0)
    with pytest.raises(ParameterError, match="gain"):
        noisy_descent.robbins_monro(0.0, 1.0, 1.0)


def test_contraction_factors():
    assert float(noisy_descent.contraction_factor([1.0, 10.0], 0.1)) == pytest.approx(0.9)
    best = noisy_descent.best_step([0.0, 1.0, 10.0])
    np.testing.assert_allclose(best[:3], [2 / 11, 9 / 11, 0.2], rtol=1e-13)
    # heavy ball: the companion matrix at its best step and momentum
    momentum = float(best.momentum_factor) ** 2
    step = 4 / (1 + np.sqrt(10)) ** 2
    radii = [
        np.abs(np.linalg.eigvals([[1 + momentum - step * value, -momentum], [1, 0]])).max() for value in (1, 4.0, 10)
    ]
    np.testing.assert_allclose(radii, float(best.momentum_factor), rtol=1e-6)


def test_slow_directions():
    assert float(slow_directions.fast_variance(0.3, 0.02, 1.5)) == pytest.approx(0.0030927835051546, rel=1e-12)
    leading = slow_directions.entropic_drift(lambda phi: 1 + phi**2 / 2, [1.0], 0.3, 0.02, [20_000], leading=True)
    assert float(leading[0, 0]) == pytest.approx(0.3011942119122, rel=1e-9)
    valley = slow_directions.valley_drift([1.0], 1.0, 0.3 * 0.02**2 * 20_000)
    assert float(valley) == pytest.approx(float(leading[0, 0]), rel=1e-9)
    corrected = slow_directions.entropic_drift(lambda phi: 1 + phi**2 / 2, [1.0], 0.3, 0.02, [20_000])
    assert float(corrected[0, 0]) == pytest.approx(0.2924, abs=2e-4)
    assert float(slow_directions.slow_half_mass(1, 2)) == 0.8
    for sites, exact in ((20, 10 / 13), (50, 48 / 61), (102, 50 / 63)):
        assert slow_directions.lattice_slow_mass(sites, 1, 2) == pytest.approx(exact, rel=1e-12)
    angle = np.linspace(0, 2 * np.pi, 4000, endpoint=False)
    amplitude = jnp.asarray(1.5 + np.sin(angle))
    density = np.asarray(slow_directions.diffusion_density(amplitude))
    assert density.mean() * 2 * np.pi == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(np.ptp(density * np.asarray(amplitude) ** 2), 0, atol=1e-14)
    # Even speeds keep to the even sites, which are a ring of half the size.
    assert slow_directions.lattice_slow_mass(40, 2, 4) == pytest.approx(10 / 13, rel=1e-12)
    for arguments, word in (((21, 1, 2), "even"), ((20, 0, 2), "slow = 0"), ((20, 1, 12), "fast = 12")):
        with pytest.raises(ParameterError, match=word):
            slow_directions.lattice_slow_mass(*arguments)
    with pytest.raises(ParameterError, match="convention"):
        slow_directions.diffusion_density(amplitude, convention="backward")
    with pytest.raises(ParameterError, match="amplitude"):
        slow_directions.diffusion_density(amplitude - 1.0)
    with pytest.raises(OutsideValidity, match="1/curvature"):
        slow_directions.fast_variance(0.3, 1.0, 1.5)


PHI = np.array([[1.0, 0], [1, 1], [0, 2]])
PSI = np.array([[[1, 0, 1], [0, 2, 0], [1, 0, 0]], [[0, 1, 0], [1, 0, 1], [0, 1, -1]]], float)
LABELS, THETA = np.array([1.0, 2.0]), np.array([0.5, -0.5, 1.0])


def test_quadratic_model():
    found = quadratic_model.quadratic_perturbation(PHI, PSI, LABELS, THETA)
    wanted = [-0.30952380952381, -1.1904761904762, 0.84523809523809]
    np.testing.assert_allclose(found.correction, wanted, rtol=1e-12)
    late = quadratic_model.first_order_path(PHI, PSI, LABELS, THETA, [300.0])[0]
    np.testing.assert_allclose(late, wanted, rtol=1e-10)
    change = quadratic_model.feature_change(PHI, PSI[0], LABELS, THETA, jnp.inf)
    np.testing.assert_allclose(change, [0.5, 1, 0.5], rtol=1e-12)
    early = quadratic_model.feature_change(PHI, PSI[0], LABELS, THETA, 0.3)
    linear = quadratic_model.linear_path(PHI, LABELS, THETA, [0.3])[0]
    np.testing.assert_allclose(early, PSI[0] @ (np.asarray(linear) - THETA), rtol=1e-11)


def test_quadratic_model_that_does_not_interpolate():
    rng = np.random.default_rng(0)
    phi, y = rng.standard_normal((3, 6)), rng.standard_normal(6)
    psi = rng.standard_normal((6, 3, 3))
    psi = psi + psi.transpose(0, 2, 1)
    found = quadratic_model.quadratic_perturbation(phi, psi, y, THETA)
    late = quadratic_model.first_order_path(phi, psi, y, THETA, [200.0])[0]
    np.testing.assert_allclose(found.correction, late, rtol=1e-8)
    contradicting = ([[1.0, 1.0], [0.0, 0.0]], np.ones((2, 2, 2)), [0.0, 1.0], [0.0, 0.0])
    compiled = jax.jit(quadratic_model.quadratic_perturbation)
    for find in (quadratic_model.quadratic_perturbation, compiled):
        with pytest.raises(OutsideValidity, match="grows linearly in time"), aloud("test"):
            jax.block_until_ready(find(*map(jnp.asarray, contradicting)))
    np.testing.assert_allclose(compiled(PHI, PSI, LABELS, THETA).correction, [-13 / 42, -25 / 21, 71 / 84], rtol=1e-12)
    with pytest.raises(ParameterError, match="symmetric"):
        quadratic_model.quadratic_perturbation(PHI, PSI + np.triu(np.ones((3, 3)), 1), LABELS, THETA)
    with pytest.raises(ParameterError, match="one matrix for each sample"):
        quadratic_model.quadratic_perturbation(PHI, PSI[:1], LABELS, THETA)


def test_proportional_margin():
    random = proportional_margin.proportional_max_margin(1.0, labels="random")
    kappa = float(random.margin)
    square = integrate.quad(lambda z: (kappa - z) ** 2 * stats.norm.pdf(z), -20, kappa, epsabs=1e-13)[0]
    assert square == pytest.approx(1, abs=1e-10)
    assert float(random.support) == pytest.approx(stats.norm.cdf(kappa), rel=1e-12)
    sign = proportional_margin.proportional_max_margin(0.5, labels="sign")
    assert float(sign.error) == pytest.approx(np.arccos(float(sign.overlap)) / np.pi, rel=1e-10)
    assert float(sign.residual) < 1e-12

    # κ* is the largest of the margins over all angles: another way, by a scan
    u = np.linspace(0, 9, 20_001)
    weights = 2 * stats.norm.pdf(u)

    def level(m):
        def excess(t):
            a = t - m * u
            return integrate.simpson(weights * ((a**2 + 1) * stats.norm.cdf(a) + a * stats.norm.pdf(a)), x=u) - 0.5

        return optimize.brentq(excess, -5.0, 10.0, xtol=1e-13) / np.sqrt(1 + m**2)

    m = float(sign.overlap) / np.sqrt(1 - float(sign.overlap) ** 2)
    assert level(m) == pytest.approx(float(sign.margin), rel=1e-9)
    assert level(m) > max(level(0.98 * m), level(1.02 * m))
    assert proportional_margin.separability_threshold("logistic", strength=1e-6) == pytest.approx(0.5, abs=1e-6)
    weak = proportional_margin.proportional_max_margin(1.0, labels="logistic", strength=1e-4)
    assert float(weak.margin) == pytest.approx(kappa, abs=1e-6)
    strong = proportional_margin.proportional_max_margin(0.5, labels="logistic", strength=500.0)
    assert float(strong.margin) == pytest.approx(float(sign.margin), abs=1e-3)
    slope = jax.grad(lambda psi: proportional_margin.proportional_max_margin(psi, labels="sign").margin)(0.5)
    high, low = (
        float(proportional_margin.proportional_max_margin(psi, labels="sign").margin) for psi in (0.501, 0.499)
    )
    assert float(slope) == pytest.approx((high - low) / 0.002, rel=1e-5)
    with pytest.raises(OutsideValidity, match=r"not above 0\.5"):
        proportional_margin.proportional_max_margin(0.5, labels="random")
    with pytest.raises(ParameterError, match="labels = 'noisy'"):
        proportional_margin.proportional_max_margin(0.5, labels="noisy")


@pytest.mark.parametrize("sampling", ["bernoulli", "without replacement", "with replacement"])
def test_relations_for_losses_of_ones_own(sampling):
    """Positions with the exact stationary covariance: both relations hold exactly in linear regression."""
    x, y = np.array([[1.0, 0], [1, 1], [1, 2], [1, 4]]), np.array([0.0, 1, 1, 3])
    stationary = bias.sgd_stationary(x, y, 0.05, 2, sampling)
    root = np.linalg.cholesky(np.asarray(stationary.covariance)).T * np.sqrt(2)
    positions = np.asarray(stationary.minimizer) + np.concatenate([root, -root])
    found = bias.fluctuation_dissipation(lambda t: (x @ t - y) ** 2 / 2, positions, 0.05, 2, sampling)
    position, noise, gradient, curvature = (float(side.mean()) for side in found)
    assert position == pytest.approx(noise, rel=1e-12)
    assert gradient == pytest.approx(curvature, rel=1e-12)
    assert position == pytest.approx(float(stationary.position_side), rel=1e-12)
    if sampling == "bernoulli":
        assert position == pytest.approx(0.0028745821288589, rel=1e-12)


def test_batches_of_losses_that_are_not_quadratic():
    """C̃ and its product with the Hessian by enumeration of all batches without replacement."""
    data = np.array([0.3, -1.1, 0.8, 2.0])

    def losses(t):
        return jnp.tanh(t[0] * data + t[1]) ** 2 + 0.1 * t[0] ** 4

    at = jnp.array([0.7, -0.2])
    gradients, hessian = np.asarray(jax.jacrev(losses)(at)), np.asarray(jax.hessian(lambda t: losses(t).mean())(at))
    batches = [gradients[list(pair)].mean(axis=0) for pair in itertools.combinations(range(4), 2)]
    second = np.mean([np.outer(g, g) for g in batches], axis=0)
    found = bias.fluctuation_dissipation(losses, [at], 0.3, 2, "without replacement", centre=[0.1, 0.0])
    mean = gradients.mean(axis=0)
    expected = [
        (np.asarray(at) - [0.1, 0.0]) @ mean,
        0.15 * np.trace(second),
        mean @ mean,
        0.15 * np.trace(hessian @ second),
    ]
    np.testing.assert_allclose([float(side[0]) for side in found], expected, rtol=1e-12)
