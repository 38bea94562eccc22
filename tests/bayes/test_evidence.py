"""Deep linear networks and Bayes: the sheet's values, mpmath, quadrature over the prior and simulated weights."""

import math

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, stats

from deeplimits import limits
from deeplimits.ensembles import deep_linear
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.theory import bayes, spectra
from deeplimits.theory.bayes import log_products

DATA = bayes.interpolation(2, 4, 1.0, 0.0)


def test_reference_values_of_the_sheet():
    found = [
        bayes.log_evidence(DATA, 1.0, [3, 5]),
        bayes.log_evidence(bayes.interpolation(3, 6, 1.0, 0.0), 2.0, [4]),
        bayes.posterior_norm_moment(DATA, 1.0, [3, 5]),
        bayes.posterior_norm_moment(bayes.interpolation(200, 400, 2.0, 0.0), 1.0, [400] * 4),
        bayes.deep_posterior(2.0, 0.5, 1.0).shrinkage,
        bayes.deep_posterior(2.0, 0.5, 4.0).perpendicular,
        bayes.concentrated_posterior(2.0, 0.5, 1.0, [0.5] * 4).perpendicular,
        bayes.best_prior_scale(bayes.interpolation(3, 6, 1.0, 0.0), [4]).weight_variance,
    ]
    wanted = [
        -2.9919872684456, -2.9860219664703, 0.84504485806365, 1.3019387739929, 0.55585177725235, 1.5575526535905,
        1.2992913146735, 1.6329931618555,
    ]  # fmt: skip
    np.testing.assert_allclose([float(one) for one in found], wanted, rtol=2e-12)


def meijer_by_mpmath(data, variance, hidden):
    """log Z by mpmath's Meijer G, from the formula of the sheet."""
    p, n0, nu, log_det = (float(one) for one in data)
    with mp.workdps(40):
        n = [mp.mpf(int(n0)), *map(mp.mpf, hidden)]
        zeta = mp.mpf(nu) * mp.fprod(one / (2 * mp.mpf(variance)) for one in n)
        g = mp.meijerg([[], []], [[mp.mpf(p) / 2, *(one / 2 for one in n[1:])], []], zeta)
        norm = mp.fprod(mp.gamma(one / 2) for one in n[1:])
        return float(mp.log(g / norm) - mp.mpf(p) / 2 * mp.log(mp.pi * nu) - mp.mpf(log_det) / 2)


@pytest.mark.parametrize(
    ("points", "inputs", "nu", "variance", "hidden"),
    [
        (1, 1, 0.7, 1.0, [1]),
        (1, 3, 1e-8, 1.0, [1, 2]),
        (5, 9, 3.0, 0.5, [3, 4]),
        (10, 20, 2.0, 1.3, [15, 15, 7]),
        (30, 60, 2.0, 1.0, [50, 41]),
    ],
)
def test_evidence_against_mpmath(points, inputs, nu, variance, hidden):
    data = bayes.interpolation(points, inputs, nu, 0.3)
    found, wanted = float(bayes.log_evidence(data, variance, hidden)), meijer_by_mpmath(data, variance, hidden)
    assert abs(found - wanted) <= 1e-10 * abs(wanted)


def test_evidence_in_the_thousands_against_mellin_barnes_in_thirty_digits():
    """The contour that mpmath takes is a straight line, and its sum over Γ-functions is done in thirty digits."""
    p, n0, nu, variance, hidden = 1500, 3000, 1.3, 0.9, [2000] * 20
    found = float(bayes.log_evidence(bayes.interpolation(p, n0, nu, 0.0), variance, hidden))
    with mp.workdps(30):
        n = mp.mpf(2000)
        log_zeta = mp.log(nu) + mp.log(n0 / (2 * mp.mpf(variance))) + 20 * mp.log(n / (2 * mp.mpf(variance)))

        def exponent(z):
            return mp.loggamma(mp.mpf(p) / 2 + z) + 20 * (mp.loggamma(n / 2 + z) - mp.loggamma(n / 2)) - z * log_zeta

        def slope(c):
            return mp.digamma(mp.mpf(p) / 2 + c) + 20 * mp.digamma(n / 2 + c) - log_zeta

        c = mp.findroot(slope, (-300, 300), solver="anderson", tol=1e-20)
        width = 1 / mp.sqrt(mp.psi(1, mp.mpf(p) / 2 + c) + 20 * mp.psi(1, n / 2 + c))
        top = exponent(c)
        step = width / 4
        total = sum(mp.re(mp.exp(exponent(c + 1j * step * k) - top)) * (1 if k else 0.5) for k in range(60))
        wanted = float(top + mp.log(total * step / mp.pi) - mp.mpf(p) / 2 * mp.log(mp.pi * nu))
    assert abs(found - wanted) <= 1e-12 * abs(wanted)


def test_what_is_known_is_computed_without_compiling(monkeypatch):
    """1.4 s of a first call went into two programs; on the host it takes milliseconds."""

    def compiled(*given, **options):
        raise AssertionError("the contour was compiled")

    monkeypatch.setattr(log_products, "_integral", compiled)
    monkeypatch.setattr(log_products, "bracketed", compiled)
    data = bayes.interpolation(5000, 10_000, 1.3, 0.0)
    assert math.isfinite(float(bayes.log_evidence(data, 1.0, [10_000] * 100)))
    assert math.isfinite(float(bayes.posterior_norm_moment(data, 1.0, [10_000] * 100)))
    with pytest.raises(AssertionError, match="compiled"):
        bayes.log_evidence(data, 1.0, np.arange(1000, 1300))


def test_the_same_numbers_and_their_slopes_inside_a_program():
    """Where something is traced the same formulas are JAX's: values, and slopes against differences on the host."""
    program = jax.jit(jax.value_and_grad(lambda v, data: bayes.log_evidence(data, v, [30, 5, 5]), argnums=(0, 1)))
    for data, variance in (
        (bayes.interpolation(2, 4, 1.0, 0.0), 1.0),
        (bayes.interpolation(1, 3, 1e-8, 0.3), 0.2),
        (bayes.interpolation(900, 1000, 1e4, -3.0), 7.0),
    ):
        value, (by_variance, by_data) = program(variance, data)
        np.testing.assert_allclose(value, bayes.log_evidence(data, variance, [30, 5, 5]), rtol=1e-13)
        step = 1e-4 * variance
        ends = [float(bayes.log_evidence(data, variance + sign * step, [30, 5, 5])) for sign in (1, -1)]
        np.testing.assert_allclose(by_variance, (ends[0] - ends[1]) / (2 * step), rtol=1e-6)
        moved = [data._replace(squared_norm=data.squared_norm * (1 + sign * 1e-4)) for sign in (1, -1)]
        ends = [float(bayes.log_evidence(one, variance, [30, 5, 5])) for one in moved]
        np.testing.assert_allclose(by_data.squared_norm * data.squared_norm, (ends[0] - ends[1]) / 2e-4, rtol=1e-6)


def test_evidence_of_no_hidden_layer_is_gaussian():
    x, y = np.random.default_rng(0).normal(size=(3, 7)), np.array([0.5, -1.0, 2.0])
    found = float(bayes.log_evidence(bayes.interpolate(x, y), 1.7, []))
    wanted = stats.multivariate_normal(np.zeros(3), 1.7 / 7 * x @ x.T).logpdf(y)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_evidence_and_posterior_are_integrals_over_the_prior():
    """One hidden layer: Z and E|θ_⊥|² as integrals over χ², by scipy's quadrature, on a data matrix."""
    x, y = np.random.default_rng(1).normal(size=(3, 6)), np.array([0.5, -1.0, 0.3])
    n, variance = 5, 1.4

    def given(scale):
        """Density of the labels given the last layer's squared length."""
        return stats.multivariate_normal(np.zeros(3), variance**2 * scale / n / 6 * x @ x.T).pdf(y)

    def mean(f):
        return integrate.quad(lambda s: f(s) * stats.chi2(n).pdf(s), 0, np.inf, epsabs=0, epsrel=1e-11, limit=400)[0]

    z = mean(given)
    data = bayes.interpolate(x, y)
    np.testing.assert_allclose(float(bayes.log_evidence(data, variance, [n])), math.log(z), rtol=1e-9)
    for order, factor in ((1, 3), (2, 3 * 5), (3, 3 * 5 * 7)):
        moment = factor * mean(lambda s, k=order: given(s) * (variance**2 * s / n / 6) ** k) / z
        np.testing.assert_allclose(
            float(bayes.posterior_norm_moment(data, variance, [n], order=order)), moment, rtol=1e-8
        )


def test_evidence_against_simulated_weights():
    """The density of θ_1 at 0.5 for P = 1, by averaging over the layers behind the first."""
    key, n, hidden = jax.random.key(3), 6, [6, 5]
    rows = jax.vmap(lambda one: deep_linear.last_row(one, 6, hidden[1:], jnp.ones(())))(jax.random.split(key, 40_000))
    variance = np.sum(np.asarray(rows) ** 2, axis=1) / n
    densities = stats.norm(0, np.sqrt(variance)).pdf(0.5)
    found = math.exp(float(bayes.log_evidence(bayes.interpolation(1, n, 0.25, 0.0), 1.0, hidden)))
    assert abs(densities.mean() - found) < 4.5 * densities.std() / math.sqrt(len(densities))


def test_predictions_integrate_to_one_and_have_the_stated_moments():
    x, y = np.random.default_rng(2).normal(size=(2, 5)), np.array([1.0, -0.5])
    new = np.random.default_rng(3).normal(size=(1, 5))
    found = bayes.predict_labels(x, y, new, 1.2, [8, 9])
    mean, spread = float(found.mean[0]), float(found.variance[0]) ** 0.5
    u = np.linspace(-6, 6, 241)
    values = mean + spread * np.sinh(u)
    density = np.exp(np.asarray(bayes.log_predictive_density(x, y, new, values, 1.2, [8, 9]))[0])
    weights = density * spread * np.cosh(u) * (u[1] - u[0])
    np.testing.assert_allclose(weights.sum(), 1, rtol=1e-9)
    np.testing.assert_allclose(weights @ (values - mean) ** 2, spread**2, rtol=1e-7)
    np.testing.assert_allclose(weights @ (values - mean) ** 4, float(found.kurtosis[0]) * spread**4, rtol=1e-4)
    theta = np.linalg.pinv(x) @ y
    np.testing.assert_allclose(mean, theta @ new[0], rtol=1e-12)


def test_large_networks_approach_the_saddle_like_one_over_the_points():
    gaps = []
    for p in (100, 200, 400):
        exact = float(bayes.posterior_norm_moment(bayes.interpolation(p, 2 * p, 2.0, 0.0), 1.0, [2 * p] * 4))
        gaps.append(p * (exact - float(bayes.concentrated_posterior(2.0, 0.5, 1.0, [0.5] * 4).perpendicular)))
    assert max(gaps) / min(gaps) < 1.02
    # L = 8, n = 2P: the sheet's 1.53795 against 1.53684
    np.testing.assert_allclose(
        float(bayes.posterior_norm_moment(bayes.interpolation(800, 1600, 2.0, 0.0), 1.0, [1600] * 8)),
        1.53795,
        rtol=1e-5,
    )


def test_evidence_of_deep_networks_grows_with_effective_depth():
    """d log Z/dλ = P t²/4, and the limit of (1/P) log Z, against the exact evidence of a large network."""
    p, n0, nu, width = 4000, 8000, 2.0, 400_000
    data = bayes.interpolation(p, n0, nu, 0.0)
    depths = np.array([200.0, 210.0])
    exact = np.asarray(bayes.evidence_over_depth(data, 1.0, width, depths))
    limit = bayes.deep_posterior(nu, 0.5, p * depths / width)
    per_point = exact / p + 0.5 * math.log(2 * math.pi / n0)
    np.testing.assert_allclose(per_point, limit.log_evidence, atol=2e-3)
    t = 1 / float(limit.shrinkage[0]) - 1
    np.testing.assert_allclose((exact[1] - exact[0]) / (10 * p * p / width), t**2 / 4, rtol=0.1)


def test_the_best_prior_is_a_maximum_and_depth_is_finite_at_finite_size():
    data = bayes.interpolation(10, 20, 2.0, 0.0)
    best = bayes.best_prior_scale(data, [20, 30])
    near = [float(bayes.log_evidence(data, float(best.weight_variance) * factor, [20, 30])) for factor in (0.99, 1.01)]
    assert max(near) < float(best.log_evidence)
    depths = np.arange(1, 40)
    over_depth = np.asarray(bayes.evidence_over_depth(data, 1.0, 20, depths))
    assert depths[np.argmax(over_depth)] == 12
    np.testing.assert_allclose(over_depth.max(), -8.6165088272047, rtol=1e-12)
    np.testing.assert_allclose(
        float(bayes.best_prior_scale(bayes.interpolation(3000, 6000, 2.0, 0.0), [6000] * 3).weight_variance),
        math.sqrt(2),
        rtol=1e-3,
    )
    # σ_*^{2(L+1)} = ν/α leaves no slack, whatever the architecture: |θ_⊥|² = ν(1 − α)/α
    for ratios in ([0.5] * 3, [2.0] * 3):
        at = bayes.concentrated_posterior(2.0, 0.5, 1.4142135623731, ratios)
        np.testing.assert_allclose([float(at.slack), float(at.perpendicular)], [0.0, 2.0], atol=1e-12)


def test_ratios_of_whole_numbers_may_lie_beyond_the_range_of_the_limit():
    sizes, at = limits.BayesEffectiveDepth(alpha=0.9, points_per_width=2.0).at_size(20)
    assert sizes == {"points": 20, "inputs": 22, "width": 10}
    assert abs(float(at.alpha) - 20 / 22) < 1e-15


def test_selection_on_a_data_matrix():
    x = np.random.default_rng(5).normal(size=(6, 12))
    y = x @ np.ones(12)
    found = bayes.select_architecture(x, y, [12, 40], [0, 2])
    one = bayes.best_prior_scale(bayes.interpolate(x, y), [40, 40])
    np.testing.assert_allclose(found.log_evidence[1, 1], one.log_evidence, rtol=1e-12)
    np.testing.assert_allclose(found.weight_variances[1, 1], one.weight_variance, rtol=1e-9)
    assert float(found.log_evidence.max()) == float(
        found.log_evidence[[12, 40].index(found.width), [0, 2].index(found.depth)]
    )
    at_one = bayes.select_architecture(x, y, [12, 40], [0, 2], weight_variance=1.0)
    np.testing.assert_allclose(at_one.log_evidence[0, 1], bayes.log_evidence(bayes.interpolate(x, y), 1.0, [12, 12]))


def test_the_norm_of_a_random_network():
    """The density of log|θ| by Mellin and Barnes, against sampled products of χ²; and its limits."""
    widths = [3, 4, 9]
    u = np.linspace(-4, 2, 121)
    density = np.asarray(bayes.log_norm_density(u, widths))
    step = u[1] - u[0]
    moments = spectra.deep_linear_norm([float(n) for n in widths])
    np.testing.assert_allclose(density.sum() * step, 1, atol=2e-4)
    np.testing.assert_allclose(density @ u * step, moments.mean, atol=2e-3)
    limit = bayes.log_norm_limit(50 / 100)
    at = np.linspace(-1.5, 1.0, 7)
    exact = bayes.log_norm_density(at, [10_000] * 5000)
    np.testing.assert_allclose(exact, stats.norm(limit.mean, math.sqrt(float(limit.variance))).pdf(at), rtol=2e-3)


def test_what_cannot_be_interpolated_is_said():
    x = np.random.default_rng(0).normal(size=(4, 3))
    with pytest.raises(OutsideValidity, match="4 points in 3 dimensions"):
        bayes.interpolate(x, np.ones(4))
    with pytest.raises(OutsideValidity, match="rank 1"):
        bayes.interpolate([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0]], [1.0, 2.0])
    with pytest.raises(OutsideValidity, match="must not all vanish"):
        bayes.interpolate([[1.0, 2.0, 0.0]], [0.0])
    with pytest.raises(ParameterError, match=r"hidden\[1\] = 0"):
        bayes.log_evidence(DATA, 1.0, [3, 0])
    with pytest.raises(ParameterError, match="interpolate"):
        bayes.log_evidence((1, 2), 1.0, [3])
    with pytest.raises(ParameterError, match="interpolate"):
        bayes.evidence_map(None, [1.0], 3, [1])
    with pytest.raises(OutsideValidity, match="span"):
        bayes.log_predictive_density([[1.0, 0.0]], [1.0], [[2.0, 0.0]], 0.0, 1.0, [3])
