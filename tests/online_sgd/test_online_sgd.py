"""Population losses, exit times, effective dynamics: against quadrature, recursion, enumeration and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from deeplimits.ensembles import diffusions
from deeplimits.errors import NotConverged, OutsideValidity, ParameterError, UnknownName
from deeplimits.models.activations import activation
from deeplimits.statistics import LEVEL
from deeplimits.theory.gaussian.hermite import hermite_coefficients
from deeplimits.theory.online_sgd import (
    classical,
    critical_window,
    effective,
    exit_times,
    regularity,
    spherical_ode,
)
from deeplimits.theory.online_sgd import landscapes as si

GAUSS = np.polynomial.hermite_e.hermegauss(80)


def landscape_of(name, noise=0.0):
    f = activation(name)
    return si.single_index(f, f, noise)


SHEET = {
    "relu": {0: 0.398942280401433, 1: 0.5, 2: 0.282094791773878, 3: 0.0, 4: -0.0814337519838200},
    "tanh": {1: 0.605705509602159, 3: -0.148437190787273, 5: 0.0625475237527036},
    "erf_saad": {1: 0.564189583547756, 3: -0.115164716490445},
    "abs": {0: 0.797884560802865, 2: 0.564189583547756},
    "square": {0: 1.0, 2: np.sqrt(2)},
    "hermite3": {3: 1.0},
    "bump": {0: 0.192450089729875, 2: 0.0, 4: -0.0523782800878924},
}


@pytest.mark.parametrize("name", SHEET)
def test_hermite_coefficients(name):
    expansion = hermite_coefficients(activation(name).value, 6)
    for order, value in SHEET[name].items():
        assert expansion.coefficients[order] == pytest.approx(value, abs=1e-13)
        assert abs(expansion.coefficients[order] - value) <= expansion.errors[order] + 1e-14
        assert expansion.vanishes()[order] == (value == 0)


def test_hermite_coefficients_with_a_kink_anywhere():
    shift = 0.3
    expansion = hermite_coefficients(lambda z: np.maximum(z - shift, 0), 2, tolerance=1e-6)
    exact = [
        stats.norm.pdf(shift) - shift * stats.norm.sf(shift),
        stats.norm.sf(shift),
        stats.norm.pdf(shift) / np.sqrt(2),
    ]
    np.testing.assert_allclose(expansion.coefficients, exact, atol=1e-6)
    assert np.all(np.abs(expansion.coefficients - exact) <= 3 * expansion.errors)


def test_hermite_bad_input():
    for f in (lambda z: np.exp(z**2), lambda z: np.exp(z**2 / 4), lambda z: z * np.nan):
        with pytest.raises(OutsideValidity):
            hermite_coefficients(f, 2)
    with pytest.raises(NotConverged, match="uncertain"):
        hermite_coefficients(lambda z: np.sign(np.sin(1e4 * z)), 2)
    with pytest.raises(ParameterError, match="degree"):
        hermite_coefficients(np.tanh, -1)
    with pytest.raises(UnknownName, match="no activation 'cubic'"):
        activation("cubic")


def test_information_exponents():
    table = {
        "identity": 1,
        "tanh": 1,
        "relu": 1,
        "erf_saad": 1,
        "square": 2,
        "abs": 2,
        "cos": 2,
        "hermite3": 3,
        "bump": 4,
    }
    assert {name: si.information_exponent(name).exponent for name in table} == table
    # Nearly vanishing, but not quite: decided by the tolerance that the caller sets.
    nearly = si.information_exponent(lambda z: z**2 + 1e-6 * z)
    assert nearly.exponent == 1
    assert si.information_exponent(lambda z: z**2 + 1e-6 * z, tolerance=1e-4).exponent == 2
    against = si.information_exponent(lambda z: z**2, student=lambda z: -(z**2))
    assert not against.fisher_consistent
    with pytest.raises(OutsideValidity, match="driven away"):
        si.single_index(jnp.square, lambda z: -(z**2), 0.0)
    with pytest.raises(NotConverged, match="raise degree"):
        si.information_exponent(lambda z: 1.0 + 0 * z)
    with pytest.raises(ParameterError, match="order"):
        si.tensor_pca(1.0, 0)


@pytest.mark.parametrize("name", ["tanh", "square", "erf_saad"])
def test_single_index_landscape_against_quadrature_in_two_dimensions(name):
    f = activation(name)
    z, w = GAUSS
    w = w / w.sum()
    m, noise = 0.6, 0.3
    q = np.sqrt(1 - m**2)
    zz, zeta = np.meshgrid(z, z, indexing="ij")
    weights = np.outer(w, w)
    teacher = np.asarray(f.value(m * zz + q * zeta))
    student, slope = np.asarray(f.value(zz)), np.asarray(f.derivative(zz))
    landscape = landscape_of(name, noise)
    residual = teacher - student
    assert float(landscape.loss(m)) == pytest.approx((weights * residual**2).sum() + noise**2, rel=1e-6)
    squared = 4 * (weights * (residual**2 + noise**2) * slope**2).sum()
    assert float(landscape.squared_gradient(m)) == pytest.approx(squared, rel=1e-6)
    drift = 2 * (weights * residual * slope * q * zeta).sum()
    assert float(-(1 - m**2) * landscape.slope(m)) == pytest.approx(drift, rel=1e-6)
    second = 4 * (weights * (residual**2 + noise**2) * slope**2 * (q * zeta) ** 2).sum()
    assert float(landscape.directional_variance(m)) == pytest.approx(second - drift**2, rel=1e-6)


def test_constants_at_the_equator():
    square, cubic = landscape_of("square"), landscape_of("hermite3")
    assert float(square.squared_gradient(0.0)) == pytest.approx(192)
    assert float(square.directional_variance(0.0)) == pytest.approx(192)
    assert float(si.critical_step(square)) == pytest.approx(1 / 12)
    assert float(cubic.drift_constant) == pytest.approx(6)
    assert float(cubic.squared_gradient(0.0)) == pytest.approx(384)
    assert [float(cubic.directional_variance(m)) for m in (0.0, 0.1, 0.3)] == pytest.approx(
        [456, 403.519, 330.054], rel=1e-5
    )
    balanced, tilted = si.binary_mixture(0.0, unbalanced=False), si.binary_mixture(0.5)
    assert float(balanced.loss(0.3)) == pytest.approx(-0.401701932106872, abs=1e-10)
    assert float(balanced.slope(0.3)) == pytest.approx(-0.18008925215266, abs=1e-10)
    assert float(tilted.slope(0.0)) == pytest.approx(-0.13653384364744, abs=1e-10)
    assert float(tilted.loss(0.3)) == pytest.approx(-0.515155997609689, abs=1e-10)
    assert float(balanced.directional_variance(0.0)) == pytest.approx(0.788588980795682, abs=1e-9)
    assert float(si.critical_step(balanced)) == pytest.approx(3.072350866, abs=1e-8)
    assert float(si.online_pca(1.7).directional_variance(0.4)) == pytest.approx(11.68215552)


def test_regularity():
    good = regularity.check_regularity(landscape_of("tanh"))
    assert good.moments_bounded
    assert good.descends
    # A student whose third coefficient has the wrong sign: the loss turns up on the way.
    teacher, student = "polynomial(0,-2,0,1)", "polynomial(0,4,0,-1)"
    report = regularity.check_regularity(si.single_index(teacher, student, 0.0))
    # −φ' = 2(1 − 18 m²) turns at 1/√18
    assert not report.descends
    assert report.stops_at == pytest.approx(1 / np.sqrt(18), abs=1e-9)


def test_spherical_ode():
    times = jnp.array([0.0, 1.0, 5.0])
    numeric = spherical_ode.correlation(si.online_pca(1.0), 0.2, 0.3, times)
    np.testing.assert_allclose(numeric, spherical_ode.pca_correlation(1.0, 0.2, 0.3, times), rtol=1e-7)
    assert float(spherical_ode.pca_plateau(1.0, 0.3)) == pytest.approx(0.7337993857)
    assert float(spherical_ode.pca_correlation(2.0, 0.3, 1.0, 100.0)) == pytest.approx(0.5)
    # At the critical step δ = λ the decay is algebraic, and the closed form is continuous there.
    at, near = (float(spherical_ode.pca_correlation(1.0, 0.5, d, 3.0)) for d in (1.0, 1.0 + 1e-7))
    assert at == pytest.approx(near, rel=1e-6)
    phase = spherical_ode.correlation(landscape_of("square", 0.5), 0.1, 0.03, jnp.array([20.0]))
    assert float(phase[0]) == pytest.approx(
        float(spherical_ode.phase_retrieval_correlation(0.1, 0.03, 20.0, noise=0.5)), rel=1e-7
    )
    tanh = spherical_ode.correlation(landscape_of("tanh", 0.3), 0.0, 0.5, jnp.array([8.0]))
    assert float(tanh[0]) == pytest.approx(0.9536, abs=2e-4)


@pytest.mark.slow
def test_critical_window():
    """Against the sheet's values: backward Kolmogorov equation of the link He₃/√6, c = 0.1, from u₀ = |N(0, 1)|."""
    hermite = landscape_of("hermite3")
    nodes, weights = np.polynomial.legendre.leggauss(16)
    starts = 3 * (1 + nodes)
    weights = 3 * weights * np.sqrt(2 / np.pi) * np.exp(-(starts**2) / 2)
    found = [critical_window.passage_probability(hermite, 0.1, u, 6.0, [0.01, 0.015, 0.02]) for u in starts]
    np.testing.assert_allclose(weights @ np.stack(found), [0.0379, 0.0756, 0.1105], atol=6e-5)
    # Without a signal |u| is that of an Ornstein-Uhlenbeck process: P(not passed) decays by its first eigenvalue; the
    # number of points does not matter.
    still = si.tensor_pca(1e-12, 4)
    few, many = (critical_window.passage_probability(still, 1.0, 0.3, 1.0, [0.5, 1.0], points=n) for n in (24, 64))
    np.testing.assert_allclose(few, many, atol=1e-9)
    # For this level the eigenfunction of ½·4q'' − 2uq' is He₂ = 1 − u², of eigenvalue 4.
    ratio = np.log((1 - many[0]) / (1 - many[1])) / 0.5
    assert ratio == pytest.approx(4.0, rel=1e-3)
    with pytest.raises(ParameterError, match="at least 3"):
        critical_window.passage_probability(si.tensor_pca(1.0, 2), 1.0, 0.3, 1.0, [0.5])


def test_logarithmic_correction_of_the_search():
    """The constants from moments of one step of the chain: κ + k/N and s² as what is left of its mean and variance."""
    lam, delta, n = 3.0, 0.3, 1e6
    drift, spread = exit_times.pca_search_correction(lam, delta)
    star = float(spherical_ode.pca_plateau(lam, delta)) ** 2
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    m = 0.02
    q = np.sqrt(1 - m**2)
    y, b = np.meshgrid(np.sqrt(1 + lam) * nodes, nodes, indexing="ij")
    z, e = m * y + q * b, q * y - m * b
    rate = 2 * delta / n
    moved = m + rate * z * e * q
    # χ² concentrates: its fluctuations are one order lower.
    after = moved / np.sqrt(1 + rate**2 * z**2 * (e**2 + n - 2))
    change = time_on_ode(after, star) - time_on_ode(m, star)
    mean = np.einsum("i,j,ij", weights, weights, change)
    variance = np.einsum("i,j,ij", weights, weights, (change - mean) ** 2)
    kappa, noise = 2 * delta * (lam - delta), 4 * delta**2 * (1 + lam)
    size = np.exp(2 * time_on_ode(m, star))  # the limiting diffusion is that of e^θ
    assert n**2 * (mean - kappa / n) + noise / (2 * size) == pytest.approx(float(drift), abs=0.05)
    assert n**2 * variance - noise / size == pytest.approx(float(spread), abs=0.1)


def time_on_ode(m, star):
    return np.log(m) - np.log(1 - m**2 / star) / 2


def test_exit_times():
    pca = si.online_pca(1.0)
    assert float(exit_times.descent_time(landscape_of("hermite3"), 0.2)) == pytest.approx(0.77431328910)
    offset = float(exit_times.search_offset(pca, 0.4, 0.3))
    star = float(spherical_ode.pca_plateau(1.0, 0.3))
    assert offset == pytest.approx(np.log(0.4 * star) - np.log(1 - 0.16 / star**2) / 2)
    x = np.linspace(-6, 25, 4001)
    density, cdf = exit_times.search_law(offset, x)
    assert np.trapezoid(x * density, x) == pytest.approx(-0.41432810, abs=1e-5)
    np.testing.assert_allclose(np.gradient(cdf, x)[1:-1], density[1:-1], atol=1e-4)
    a, b = (float(spherical_ode.pca_correlation(1.0, 0.2, 0.3, t)) for t in (0.0, 4.0))
    assert float(exit_times.passage_time(pca, a, b, 0.3)) == pytest.approx(4.0, rel=1e-6)
    values = [exit_times.critical_ratio(1000, k) for k in (1, 2, 3)]
    assert values == pytest.approx([1, 6.907755279, 1000])
    low, high = exit_times.step_window(1000, 3, 1e5)
    assert (low, high) == pytest.approx((1000**0.5 / 1e5, 1e5**-0.5))
    with pytest.raises(OutsideValidity, match="critical step is 1"):
        exit_times.search_offset(pca, 0.4, 1.2)
    with pytest.raises(OutsideValidity, match="plateau"):
        exit_times.search_offset(pca, 0.8, 0.3)
    with pytest.raises(OutsideValidity, match="never gets"):
        exit_times.passage_time(pca, 0.3, 0.9, 0.3)
    for call in (
        lambda: exit_times.critical_ratio(1000, 0),
        lambda: exit_times.critical_ratio(1, 2),
        lambda: exit_times.search_offset(pca, 1.5, 0.3),
        lambda: exit_times.descent_time(pca, 0.7),
        lambda: exit_times.step_window(100, 2, -1.0),
        lambda: exit_times.critical_ratio(100, 2.5),
    ):
        with pytest.raises(ParameterError):
            call()


def test_classical_limit():
    x, variance = 0.7, 0.0
    for _ in range(100):
        x, variance = 0.95 * x, 0.95**2 * variance + 0.05**2
    assert float(classical.quadratic_variance(0.05, 100)) == pytest.approx(variance)
    path = jnp.array([[0.0], [2.0], [3.0]])
    assert float(classical.interpolation(path, 0.1, 0.125)[0]) == pytest.approx(2.25)
    with pytest.raises(ParameterError, match="iterate"):
        classical.interpolation(path[:1], 0.1, 0.0)


def test_large_deviations_by_propagating_the_density():
    """−δ log P(sup |X| > ε) tends to the rate; the AR(1) density with absorption gives P to all digits."""
    rates = []
    for delta in (0.02, 0.01):
        h = 1 / 800
        grid = np.arange(-0.5 + h / 2, 0.5, h)
        centres = (1 - delta) * grid
        kernel = stats.norm.pdf(grid[None], centres[:, None], delta) * h
        leaving = stats.norm.sf(0.5, centres, delta) + stats.norm.cdf(-0.5, centres, delta)
        mass, left = stats.norm.pdf(grid, scale=delta) * h, 2 * stats.norm.sf(0.5, scale=delta)
        for _ in range(round(1 / delta) - 1):
            mass, left = mass @ kernel, left + mass @ leaving
        rates.append(-delta * np.log(left))
    assert rates == pytest.approx([0.2992, 0.2965], abs=3e-4)
    assert rates[0] > rates[1] > float(classical.deviation_rate(0.5, 1.0))


def test_effective_dynamics_engine():
    ou = effective.EffectiveDynamics(lambda u: 2 * u, jnp.zeros_like, lambda u: jnp.array([[3.0]]))
    keys = jax.random.split(jax.random.key(0), 2000)
    paths = jax.vmap(lambda key: diffusions.sample_path(key, ou.velocity, ou.diffusion, [1.0], [0.0, 0.5], steps=100))(
        keys
    )[:, 1, 0]
    # Var' = −4 Var + 3
    # Euler's steps h of the linear equation have their moments in closed form: a factor 1 − 2h, and 3h added.
    factor, steps = 1 - 2 * 0.5 / 100, 100
    mean, variance = factor**steps, 3 * 0.5 / 100 * (1 - factor ** (2 * steps)) / (1 - factor**2)
    assert stats.kstest(np.asarray(paths), stats.norm(mean, np.sqrt(variance)).cdf).pvalue > LEVEL
    assert (mean, variance) == pytest.approx((np.exp(-1), 0.75 * (1 - np.exp(-2))), rel=0.02)
    _, covariance = effective.fluctuations(ou, ou.diffusion, [1.0], [0.5])
    assert float(covariance[0, 0, 0]) == pytest.approx(0.75 * (1 - np.exp(-2)), rel=1e-7)
    zoomed = effective.zoom(ou, [0.0], [0.1])
    assert float(zoomed.diffusion(jnp.zeros(1))[0, 0]) == pytest.approx(300)
    assert float(zoomed.drift(jnp.ones(1))[0]) == pytest.approx(2.0)
    with pytest.raises(OutsideValidity, match="eigenvalue at the start; it must be ≥ 0 and is -1"):
        diffusions.sample_path(jax.random.key(0), ou.velocity, lambda u: jnp.array([[-1.0]]), [1.0], [1.0])
    with pytest.raises(ParameterError, match="steps"):
        diffusions.sample_path(jax.random.key(0), ou.velocity, ou.diffusion, [1.0], [1.0], steps=0)
    with pytest.raises(ParameterError, match="times"):
        effective.solve_ode(ou, [1.0], [1.0, 0.5])
    with pytest.raises(OutsideValidity, match="growth rate"):
        effective.stationary_covariance(ou._replace(drift=lambda u: -u), ou.diffusion, [0.0])
    with pytest.raises(NotConverged, match="no rest point"):
        effective.fixed_points(ou._replace(drift=lambda u: 1 + u**2), [[0.0]])


def test_mixture_loss_by_adaptive_quadrature():
    h, m = 0.4, 0.7
    p = (1 + np.tanh(h)) / 2

    def integrand(z):
        value = p * np.log(np.cosh(z + m + h)) + (1 - p) * np.log(np.cosh(z - m + h))
        return -value * stats.norm.pdf(z)

    exact, _ = integrate.quad(integrand, -12, 12, epsabs=1e-12)
    assert float(si.binary_mixture(h).loss(m)) == pytest.approx(exact, abs=1e-10)


def test_large_deviations_of_online_pca():
    """Near the path the rate is Gaussian; far from it, it is the mean of an exponential tilt, here of one step."""
    signal, start, step, time = 1.0, 0.6, 0.3, 4.0
    m, variance, h = start, 0.0, time / 4000
    for _ in range(4000):
        q2, a = 1 - m**2, 1 + signal * m**2
        # N times a step is z(2δqe − 2δ²mz): Var z = a, Var e = 1 + λq², Cov = λmq
        noise = 4 * step**2 * q2 * (a * (1 + signal * q2) + signal**2 * m**2 * q2)
        noise += 8 * step**4 * m**2 * a**2 - 16 * step**3 * m**2 * q2 * a * signal
        growth = 2 * step * (signal * (1 - 3 * m**2) - step * (1 + 3 * signal * m**2))
        variance += h * (2 * growth * variance + noise)
        m += h * 2 * step * m * (signal * q2 - step * a)
    near = [spherical_ode.pca_deviation_rate(signal, start, step, time, m + side * 0.01) for side in (-1, 1)]
    assert np.mean(near) == pytest.approx(0.01**2 / (2 * variance), rel=0.01)
    # In a short time m and p hardly change: I = τ sup_p (p w − H), w the speed needed.
    time, level = 0.02, 0.58
    v, noise = 2 * step * start * (signal * 0.64 - step * 1.36), step**2 * 0.64 * (1 + signal)
    p = np.linspace(-(v + np.sqrt(v**2 + 4 * noise)) / (4 * noise), 0, 200_001)[1:]
    tilted = p * (level - start) / time + np.log(1 - 2 * p * v - 4 * p**2 * noise) / 2
    found = spherical_ode.pca_deviation_rate(signal, start, step, time, level)
    assert found == pytest.approx(time * tilted.max(), rel=0.02)
    # A long time is as good as the last relaxation times of it.
    longer = [spherical_ode.pca_deviation_rate(signal, start, step, tau, 0.4) for tau in (14.2, 60.0)]
    assert longer[0] == pytest.approx(longer[1], rel=0.01)


@pytest.mark.parametrize("m", [0.0, 0.3, 0.9, 0.999])
def test_single_index_of_kinked_links(m):
    """Closed forms of the arc-cosine kernels, where a series in m converges slowly."""
    relu, angle = landscape_of("relu"), np.arccos(m)
    assert float(relu.slope(m)) == pytest.approx(-(np.pi - angle) / np.pi, abs=1e-13)
    kernel = (np.sin(angle) + (np.pi - angle) * m) / (2 * np.pi)
    assert float(relu.loss(m)) == pytest.approx(1 - 2 * kernel, abs=1e-13)
    absolute = landscape_of("abs")
    assert float(absolute.slope(m)) == pytest.approx(-2 * (1 - 2 * angle / np.pi), abs=1e-13)


def test_the_search_law_says_from_which_dimension_on_it_holds():
    for level, correction in ((0.5, 5.0), (0.05, 75.0), (0.6, 3.0)):
        n = exit_times.least_dimension(level, correction)
        ends = np.sqrt(n) * level / 3.2, np.log(n) / (2 * n) * correction / 0.3
        assert ends[0] > 1 - 1e-12
        assert ends[1] < 1 + 1e-9
        assert min(abs(ends[0] - 1), abs(ends[1] - 1)) < 1e-6
