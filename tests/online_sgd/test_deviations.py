"""Large deviations of SGD with small steps against Legendre transforms, other minimizers and densities that move."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import norm

from deeplimits.errors import DeeplimitsError, OutsideValidity
from deeplimits.numerics import panels
from deeplimits.theory.online_sgd import deviations


def linear(x, p):
    return p @ p / 2 - p @ x


def test_the_linear_case_has_its_closed_form():
    """I = ε²/(1 − e^{−2T}), at the last moment, from any start and in any dimension."""
    for start, horizon in (([0.0], 1.0), ([0.3, -2.0], 0.7)):
        found = deviations.tube_exit(linear, start, 0.5, horizon)
        assert found.rate == pytest.approx(float(deviations.deviation_rate(0.5, horizon)), rel=1e-9)
        assert found.times[-1] == pytest.approx(horizon)
    nodes, weights = panels.normal(40)
    gaussian = deviations.hamiltonian_of_data(lambda x, y: x - y, nodes, weights)
    assert deviations.deviation_to(gaussian, [0.0], [0.5], 1.0).rate == pytest.approx(0.28912941, abs=1e-8)


@pytest.mark.parametrize("end", [0.6, -0.5])
def test_coins_against_the_legendre_transform(end):
    """X_T = e^{−T}x_0 + Σ δe^{−(T−t)}Y for Y = ±1: I = sup_θ [θ(y − e^{−T}x_0) − ∫ log cosh(θe^{−s})ds]."""
    start, horizon = 0.2, 1.5
    coin = deviations.hamiltonian_of_data(lambda x, y: x - y, [-1.0, 1.0])

    def minus(theta):
        integral = quad(lambda s: np.log(np.cosh(theta * np.exp(-s))), 0, horizon)[0]
        return integral - theta * (end - np.exp(-horizon) * start)

    exact = -minimize_scalar(minus, bounds=(-40, 40), method="bounded", options={"xatol": 1e-10}).fun
    found = deviations.deviation_to(coin, [start], [end], horizon)
    assert found.rate == pytest.approx(exact, rel=1e-8)
    # The cost of the path that was found, from its points alone, by another formula
    assert float(deviations.path_action(coin, found.path, found.times)) == pytest.approx(exact, rel=3e-3)
    with pytest.raises(OutsideValidity, match="may not carry"):
        deviations.deviation_to(coin, [start], [1.2], horizon)


def test_a_curved_loss_with_noise_that_depends_on_the_place():
    """Against the action of polygons, Σ h (v + x³)²/2(1 + x²), minimized as it stands; midpoints err by O(1/n²)."""

    def curved(x, p):
        return jnp.sum((1 + x**2) * p**2) / 2 - p @ x**3

    start, end, horizon = 1.0, 1.4, 1.5

    def action(inner, count):
        path = np.concatenate([[start], inner, [end]])
        middle, speed = (path[1:] + path[:-1]) / 2, np.diff(path) * count / horizon
        return np.sum((speed + middle**3) ** 2 / (1 + middle**2)) * horizon / count / 2

    values = []
    for count in (30, 60):
        first = np.linspace(start, end, count + 1)[1:-1]
        values.append(minimize(action, first, args=(count,), method="BFGS", options={"gtol": 1e-9}).fun)
    exact = values[1] + (values[1] - values[0]) / 3
    assert deviations.deviation_to(curved, start, end, horizon).rate == pytest.approx(exact, rel=2e-5)


def test_two_dimensions_that_rotate():
    """I of a linear flow is min over |y| = ε of yᵀC⁻¹y/2, ε²/2 over the largest eigenvalue of ∫ e^{−As}De^{−Aᵀs}ds."""
    from scipy.linalg import expm

    a, d = np.array([[1.0, 0.5], [-0.5, 2.0]]), np.diag([1.0, 0.3])
    covariance = np.zeros((2, 2))
    for s, weight in zip(*panels.gauss(40, 0.0, 1.0), strict=True):
        covariance += weight * expm(-a * s) @ d @ expm(-a * s).T
    found = deviations.tube_exit(lambda x, p: p @ jnp.asarray(d) @ p / 2 - p @ (jnp.asarray(a) @ x), [1.0, 0.0], 0.5, 1)
    assert found.rate == pytest.approx(0.125 / np.linalg.eigvalsh(covariance)[-1], rel=1e-9)


def test_the_rate_of_a_quartic_loss_is_that_of_densities():
    """−δ log P(sup|X − x̄| > ε) of X' = X − δ(X³ − Y), its density carried on a grid, tends to I like δ log(1/δ)."""
    start, radius, horizon = 1.0, 0.6, 1.0
    stated = deviations.tube_exit(lambda x, p: p @ p / 2 - p @ x**3, start, radius, horizon).rate
    gaps = []
    for delta in (0.04, 0.02, 0.01):
        offsets = np.arange(-radius + 1 / 1000, radius, 1 / 500)  # from the gradient flow, cell by cell
        mass, middle, left = None, start, 0.0
        for _ in range(round(horizon / delta)):
            places, shares = (np.array([start]), np.ones(1)) if mass is None else (middle + offsets, mass)
            middle = middle - delta * middle**3
            centres = places - delta * places**3 - middle
            left += shares @ (norm.sf(radius, centres, delta) + norm.cdf(-radius, centres, delta))
            mass = shares @ norm.pdf(offsets, centres[:, None], delta) / 500
        gaps.append(-delta * np.log(left) / stated - 1)
    # c δ log(1/δ) + c'δ, fitted to the first and second and tested on the third
    deltas = np.array([0.04, 0.02, 0.01])
    basis = np.stack([deltas * np.log(1 / deltas), deltas], axis=1)
    fit = np.linalg.solve(basis[:2], gaps[:2])
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert gaps[2] == pytest.approx(float(basis[2] @ fit), abs=0.02)


@pytest.mark.parametrize(
    ("attempt", "why"),
    [
        (lambda: deviations.tube_exit(linear, [0.0], 0.0, 1.0), "deviation = 0"),
        (lambda: deviations.tube_exit(linear, [0.0], 0.5, np.nan), "horizon"),
        (lambda: deviations.tube_exit(linear, [], 0.5, 1.0), "start"),
        (lambda: deviations.deviation_to(linear, [0.0], [0.5, 1.0], 1.0), "shape"),
        (lambda: deviations.hamiltonian_of_data(lambda x, y: x - y, []), "data"),
        (lambda: deviations.hamiltonian_of_data(lambda x, y: x - y, [1.0, 2.0], [0.3, 0.3]), "sum"),
        (lambda: deviations.path_action(linear, [[0.0], [1.0]], [0.0]), "as many"),
        (
            lambda: deviations.lagrangian(
                deviations.hamiltonian_of_data(lambda x, y: x - y, [-1.0, 1.0]), [0.0], [2.0]
            ),
            "beyond what the samples",
        ),
    ],
)
def test_what_is_refused(attempt, why):
    with pytest.raises(DeeplimitsError, match=why):
        attempt()
