"""Tails of sums, eigenvalues of sums, growth of sequences: against simulations, recursions and known values."""

import numpy as np
import pytest

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.theory import gaussian, inequalities


def test_inequalities():
    rng = np.random.default_rng(0)
    means = rng.uniform(size=(20000, 30)).mean(axis=1)
    for eps in (0.05, 0.1, 0.2):
        assert np.mean(np.abs(means - 0.5) > eps) <= float(inequalities.hoeffding(eps, 30))
    walks = rng.choice([-1.0, 1.0], size=(20000, 25)).sum(axis=1)
    assert np.mean(np.abs(walks) > 11) <= float(inequalities.azuma(11.0, np.ones(25)))
    a, b = rng.standard_normal((2, 5, 4))
    left, right = inequalities.weyl(a, b)
    assert float(left) <= float(right)
    left, right = inequalities.hoffman_wielandt(a.T @ a, b.T @ b)
    assert float(left) <= float(right)
    assert float(inequalities.gronwall(1.0, 0.5, 2.0)) == pytest.approx(np.e)
    for call in (
        lambda: inequalities.hoeffding(-0.1, 10),
        lambda: inequalities.hoeffding(0.1, 10, 1.0, 0.0),
        lambda: inequalities.gronwall(-1.0, 1.0, 1.0),
        lambda: inequalities.weyl(np.eye(2), np.eye(3)),
    ):
        with pytest.raises(ParameterError):
            call()
    with pytest.raises(OutsideValidity, match="does not move"):
        inequalities.azuma(1.0, [0.0])


def test_matrix_bernstein():
    bound = inequalities.matrix_bernstein(0.05, 0.02, 10)
    np.testing.assert_allclose([bound.tail(1.0), bound.deviation(0.01)], [0.0029445562916309, 0.92397558971346])
    np.testing.assert_allclose(bound.tail(bound.deviation(0.01)), 0.01, rtol=1e-12)
    # Five points, 2000 features bounded by one: what happens stays below the bound, by a factor of a few.
    rng = np.random.default_rng(0)
    angles = np.arange(5.0)
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    deviations = []
    exact = gaussian.dual("step", 1.0, 1.0, np.clip(x @ x.T, -1, 1))
    for _ in range(200):
        features = (x @ rng.standard_normal((2, 2000)) > 0).astype(float)
        deviations.append(np.linalg.norm(features @ features.T / 2000 - np.asarray(exact), 2))
    stated = float(inequalities.gram_bernstein(np.linalg.norm(exact, 2), 5, 2000).deviation(0.05))
    assert 1.5 < stated / np.quantile(deviations, 0.95) < 12
    with pytest.raises(ParameterError, match="variance"):
        inequalities.matrix_bernstein(-1.0, 0.1, 3)


@pytest.mark.parametrize(("order", "start", "gain", "steps", "value"), [
    (3, 0.05, 0.01, 1800, 0.4943422738), (4, 0.1, 0.02, 2249, 0.3145228168), (5, 0.2, 0.05, 749, 0.4266414737),
    (2, 0.1, 0.01, 50, 0.1 * 1.01**50), (1, 0.1, 0.01, 50, 0.6),
])  # fmt: skip
def test_growth_bounds(order, start, gain, steps, value):
    m = start
    for _ in range(steps):
        m += gain * m ** (order - 1)
    assert m == pytest.approx(value, rel=1e-9)
    lower, upper = inequalities.growth_bounds(order, start, gain, steps, gain * m ** (order - 2) if order > 2 else 0.0)
    assert float(lower) <= m * (1 + 1e-12)
    assert float(upper) >= m * (1 - 1e-12)
    if order <= 2:
        assert float(lower) == pytest.approx(m)


def test_growth_bounds_bad_input():
    with pytest.raises(OutsideValidity, match="blow-up"):
        inequalities.growth_bounds(3, 0.05, 0.01, 2000, 0.0)
    for bad in ((3, -1.0, 0.1, 1, 0.0), (3, 0.1, 0.0, 1, 0.0), (0, 0.1, 0.1, 1, 0.0), (3, 0.1, 0.1, -1, 0.0)):
        with pytest.raises(ParameterError):
            inequalities.growth_bounds(*bad)


def test_sub_gaussian_norms():
    from deeplimits.theory.inequalities import sub_gaussian_norm

    # E exp(x²/K²) = 1/√(1 − 2/K²) = 2 for the standard Gaussian law: K² = 8/3
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    found = float(sub_gaussian_norm(nodes, weights / weights.sum()))
    assert found == pytest.approx(np.sqrt(8 / 3), rel=1e-9)
    # A rare value: p exp(b) + 1 − p = 2
    assert float(sub_gaussian_norm([0.0, 3.0], [0.99, 0.01])) == pytest.approx(3 / np.sqrt(np.log(101)), rel=1e-12)
    for scale in (1e-150, 1e150):
        assert float(sub_gaussian_norm([-scale, scale])) == pytest.approx(scale / np.sqrt(np.log(2)), rel=1e-12)
    with pytest.raises(OutsideValidity, match="all zero"):
        sub_gaussian_norm([0.0, 0.0])


def test_bounds_do_not_depend_on_the_unit():
    """Zero times an overflow was no number, and squares of small units vanished."""
    assert float(inequalities.gronwall(0.0, 1e12, 1e12)) == 0
    assert float(inequalities.gronwall(1e-12, 1.0, 720.0)) == pytest.approx(np.exp(720 + np.log(1e-12)), rel=1e-12)
    for unit in (1e-200, 1.0, 1e200):
        assert float(inequalities.azuma(2 * unit, [unit, unit])) == pytest.approx(2 * np.exp(-1), rel=1e-14)
        assert float(inequalities.hoeffding(0.1 * unit, 100, 0.0, unit)) == pytest.approx(2 * np.exp(-2), rel=1e-14)
