"""Cover's count by enumeration, the equator by quadrature, curvature by calculus."""

import math
from itertools import product

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.measure.separability import is_separable
from deeplimits.models.activations import Activation, activation, names
from deeplimits.theory.bias.cover_count import cover_probability
from deeplimits.theory.kernels import linearization
from deeplimits.theory.online_sgd import equator


@pytest.mark.parametrize(("n", "d"), [(1, 1), (4, 2), (5, 3), (10, 3), (16, 10), (40, 7), (3, 9), (1000, 490)])
def test_cover_count(n, d):
    exact = sum(math.comb(n - 1, k) for k in range(d)) / 2 ** (n - 1)
    assert float(cover_probability(n, d)) == pytest.approx(min(exact, 1.0), rel=1e-10)


@pytest.mark.parametrize(("n", "d"), [(4, 2), (6, 3), (5, 1)])
def test_cover_count_by_enumeration(n, d):
    """All labellings of one set of points in general position; the number separable depends on n and d alone."""
    points = jnp.asarray(np.random.default_rng(0).standard_normal((n, d)))
    separable = [
        float(is_separable(points * jnp.asarray(labels)[:, None])) for labels in product([-1.0, 1.0], repeat=n)
    ]
    assert np.mean(separable) == pytest.approx(float(cover_probability(n, d)))


def test_separability_of_a_larger_set():
    rng = np.random.default_rng(1)
    points, teacher = rng.standard_normal((600, 200)), rng.standard_normal(200)
    labels = np.sign(points @ teacher)
    assert float(is_separable(jnp.asarray(points * labels[:, None]))) == 1
    labels[:300] = rng.choice([-1.0, 1.0], 300)
    assert float(is_separable(jnp.asarray(points * labels[:, None]))) == 0


@pytest.mark.parametrize("dimension", [2, 3, 4, 17, 1000])
def test_equator_law(dimension):
    n = dimension
    with mpmath.workdps(30):
        edge = mpmath.sqrt(n)
        # In the angle, m = sin φ, the density is cos^{n−2} φ: smooth for every n.
        total = mpmath.quad(lambda a: mpmath.cos(a) ** (n - 2), [-mpmath.pi / 2, 0, mpmath.pi / 2])

        def mean(f):
            inside = mpmath.quad(
                lambda a: f(edge * mpmath.sin(a)) * mpmath.cos(a) ** (n - 2), [-mpmath.pi / 2, 0, mpmath.pi / 2]
            )
            return float(inside / total)

        fourth = mean(lambda u: u**4)
        start = mpmath.asin(1 / edge)
        tail = float(2 * mpmath.quad(lambda a: mpmath.cos(a) ** (n - 2), [start, mpmath.pi / 2]) / total)
        height = float(mpmath.cos(0.3) ** (n - 3) / total)
    assert equator.fourth_moment(n) == pytest.approx(fourth, rel=1e-10)
    assert float(equator.exceedance(1.0, n)) == pytest.approx(tail, rel=1e-10)
    assert float(equator.density(float(mpmath.sin(0.3)), n)) == pytest.approx(height, rel=1e-10)


def test_equator_reference_values():
    assert float(equator.exceedance(2.0, 100)) == pytest.approx(0.04493472521, rel=1e-9)
    assert float(equator.exceedance(0.1 * 1000**0.5, 1000)) == pytest.approx(0.001535713842, rel=1e-9)
    assert float(equator.exceedance(3.0, 4)) == 0
    for bad in (equator.fourth_moment, lambda n: equator.density(0.1, n), lambda n: equator.exceedance(1.0, n)):
        with pytest.raises(ParameterError, match="dimension = 1"):
            bad(1)


def test_the_equator_approaches_the_gaussian_like_one_over_n():
    u = np.linspace(0.05, 3, 60)
    gaussian = 2 * (1 - equator.gaussian_law(u)[1])
    gaps = [n * float(np.max(np.abs(equator.exceedance(u, n) - gaussian))) for n in (100, 1000, 10000)]
    np.testing.assert_allclose(gaps, gaps[-1], rtol=0.03)
    assert np.all(np.asarray(equator.exceedance(u, 50)) <= np.asarray(equator.tail_bound(u)))


@pytest.mark.parametrize(
    ("name", "value"),
    [("quadratic", 1.0), ("tanh", 4 / math.sqrt(27)), ("sigmoid", 1 / math.sqrt(108)),
     ("erf", math.sqrt(8 / math.pi / math.e)), ("gelu", 2 / math.sqrt(2 * math.pi)), ("softplus", 0.25), ("sin", 1.0)],
)  # fmt: skip
def test_curvature(name, value):
    assert linearization.curvature_bound(activation(name)) == pytest.approx(value, rel=4e-15)


def test_curvature_must_be_bounded():
    cubic = Activation("cubic", lambda u: u**3, lambda u: 3 * u**2, lambda u: 6 * u)
    with pytest.raises(OutsideValidity, match="cubic is unbounded"):
        linearization.curvature_bound(cubic)


def test_sharp_example():
    # σ = u²/2, four neurons, every row moved by x/2: both sides are 1/4.
    assert float(linearization.smooth_remainder_bound(activation("quadratic"), 4, 1.0)) == pytest.approx(0.25)


@pytest.mark.parametrize("name", names(lambda a: a.smooth and a.name != "exp"))
def test_derivatives_are_derivatives(name):
    import jax

    sigma = activation(name)
    u = jnp.linspace(-6.0, 6.0, 41)
    np.testing.assert_allclose(jax.vmap(jax.grad(sigma.value))(u), sigma.derivative(u), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(
        jax.vmap(jax.grad(sigma.derivative))(u), sigma.second_derivative(u), rtol=1e-13, atol=1e-14
    )
    assert np.isfinite(np.asarray(sigma.derivative(jnp.array([-1e4, 1e4])))).all()
