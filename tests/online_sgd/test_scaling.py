"""Assumptions of the theorems: moments of order 4 + ε, signs between grid points, localizability, random starts."""

import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from deeplimits.errors import OutsideValidityWarning, ParameterError
from deeplimits.measure import System, coefficients, localizability
from deeplimits.theory.online_sgd import binary_mixture, check_regularity, landscapes, online_pca, recovery, tensor_pca


@pytest.mark.slow
def test_moments_of_order_four_and_a_half():
    """PCA at the largest m of the grid: (2√(1 + λm²))^{4.5} E|z|^{4.5}; square: E|2(z'² − z²)2z|^q at m = 0."""
    q, edge = 4.5, 0.98
    absolute = 2 ** (q / 2) * math.gamma((q + 1) / 2) / math.sqrt(math.pi)
    found = check_regularity(online_pca(1.0)).higher_moment
    assert found == pytest.approx((2 * math.sqrt(1 + edge**2)) ** q * absolute, rel=1e-12)
    assert check_regularity(tensor_pca(2.0, 3)).higher_moment == pytest.approx(3 ** (q / 2))
    assert 0 < check_regularity(binary_mixture(0.5)).higher_moment < 1

    # In polar coordinates (4r³|cos 2φ cos φ|)^q, E r^s = 2^{s/2} Γ(1 + s/2)
    angles = integrate.quad(lambda t: abs(np.cos(2 * t) * np.cos(t)) ** q, 0, np.pi / 4)[0]
    angles += integrate.quad(lambda t: abs(np.cos(2 * t) * np.cos(t)) ** q, np.pi / 4, np.pi / 2)[0]
    exact = 4**q * 2 ** (1.5 * q) * math.gamma(1 + 1.5 * q) * angles * 2 / np.pi
    moment = landscapes.single_index("square", "square", 0.0).gradient_moment
    assert moment is not None
    assert float(moment(0.0, q)) == pytest.approx(exact, rel=1e-5)
    # f = e^{z²/40}: the power q of (f − g)g' grows like e^{qz²/20}, which is integrable for q = 4.5 and not for 12.
    link = landscapes.single_index(lambda z: jnp.exp(z**2 / 40), lambda z: jnp.exp(z**2 / 40), 0.0)
    assert check_regularity(link, points=10).moments_bounded
    assert not check_regularity(link, points=10, excess=8.0).moments_bounded


def bumped(centre, width, height):
    """φ' = −2m(1 − (1 + height) exp(−(m − centre)²/2·width²)): uphill around the centre for a height above 0."""
    pca = online_pca(1.0)
    return pca._replace(
        slope=lambda m: -2 * m * (1 - (1 + height) * jnp.exp(-((m - centre) ** 2) / (2 * width**2))),
        gradient_moment=None,
    )


@pytest.mark.parametrize(("centre", "width"), [(0.30115, 0.002), (0.99, 0.002), (0.7, 0.05)])
def test_losses_that_rise_between_grid_points(centre, width):
    report = check_regularity(bumped(centre, width, 1e-3))
    assert not report.descends
    # 1 − (1 + h)e^{−x²/2w²} = 0 at x = −w√(2 log(1 + h))
    assert report.stops_at == pytest.approx(centre - width * math.sqrt(2 * math.log1p(1e-3)), abs=1e-9)
    assert report.higher_moment is None
    assert check_regularity(bumped(centre, width, -1e-3)).descends


@pytest.mark.parametrize("dimension", [3, 50, 1000])
def test_starts_on_the_upper_half_sphere(dimension):
    x = np.array([-1.0, 0.0, 0.7, 1.5])
    law = recovery.half_sphere_law(x, dimension)
    beta = stats.beta(0.5, (dimension - 1) / 2)
    np.testing.assert_allclose(law.cdf, np.where(x > 0, beta.cdf(np.minimum(x**2 / dimension, 1)), 0), atol=1e-10)
    mean = integrate.quad(lambda m: 2 * m * (1 - m**2) ** ((dimension - 3) / 2), 0, 1)[0]
    mass = integrate.quad(lambda m: 2 * (1 - m**2) ** ((dimension - 3) / 2), 0, 1)[0]
    assert recovery.half_sphere_mean(dimension) == pytest.approx(math.sqrt(dimension) * mean / mass, rel=1e-9)
    assert float(law.density[2]) == pytest.approx(
        2 * (1 - 0.49 / dimension) ** ((dimension - 3) / 2) / mass / math.sqrt(dimension), rel=1e-9
    )


def spiked(scale):
    """L = |y − x|²/2, y ~ N(0, I): δ = scale(N); statistics m = x_1 and r = |x|² − m²."""

    def system(n):
        return System(
            lambda x, y: jnp.sum((y - x) ** 2) / 2,
            lambda key: jax.random.normal(key, (n,)),
            lambda x: jnp.stack([x[0], x @ x - x[0] ** 2]),
            jnp.ones(n) / math.sqrt(n),
            scale(n),
        )

    return system


@pytest.mark.parametrize(
    ("scale", "scaling"),
    [(lambda n: 1 / n, "critical"), pytest.param(lambda n: 1 / n**1.5, "sub-critical", marks=pytest.mark.slow)],
)
def test_localizability_of_a_quadratic_loss(scale, scaling):
    """By hand: ‖∇²r‖ = 2, |∇Φ| = |x| = 1, E|∇H|⁸ ~ N⁴, E⟨∇H, ∇r⟩⁴ = 48, Var(∇H'∇²r∇H) = 8(N − 1), g = δ(N − 1)."""
    found = localizability(jax.random.key(0), spiked(scale), (30, 90, 270), draws=200)
    power = -math.log(scale(4.0)) / math.log(4.0)
    by_name = {one.name: one.exponent.value for one in found.conditions}
    stated = {
        "curvature of statistics": 0, "population gradient": 0, "eighth moment of the noise": 4,
        "fourth moment along statistics": 0, "second moment through curvature": 1,
    }  # fmt: skip
    for name, exponent in stated.items():
        assert by_name[name] == pytest.approx(exponent / power, abs=0.35)
    assert found.localizable
    assert (found.scaling, found.kind) == (scaling, "ballistic")
    assert found.corrector_exponent.value == pytest.approx(1 - power, abs=0.1)


def test_steps_that_are_too_large_are_warned_of_and_conditions_can_fail():
    with pytest.warns(OutsideValidityWarning, match="δN grows"):
        found = localizability(jax.random.key(0), spiked(lambda n: 1 / math.sqrt(n)), (20, 80), draws=100)
    # E|∇H|⁸ ~ N⁴ = δ^{−8}
    assert not found.localizable

    def one_zooms(n):
        return spiked(lambda n: 1 / n)(n)._replace(statistics=lambda x: jnp.stack([math.sqrt(n) * x[0]]))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert localizability(jax.random.key(0), one_zooms, (20, 80), draws=200).kind == "diffusive"


def test_statistics_are_a_vector():
    with pytest.raises(ParameterError, match="vector"):
        coefficients(
            jax.random.key(0), lambda x, y: jnp.sum((x - y) ** 2), lambda key: jax.random.normal(key, (3,)),
            lambda x: x @ x, jnp.ones(3), 0.1, 10,
        )  # fmt: skip
