"""Pairs of doubles against mpmath with fifty digits, compiled or not, and their derivatives against closed forms."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from deeplimits.numerics import double_double as dd

DIGITS = 2.0**-100
"""What an operation may lose, relative to its answer: a pair has 106 bits."""


def numbers(seed, count=200):
    """Pairs of all sizes and signs, with random low parts."""
    generator = np.random.default_rng(seed)
    high = generator.normal(size=count) * 10.0 ** generator.integers(-20, 20, count)
    low = high * 2.0**-54 * generator.uniform(-1, 1, count)
    return dd.Doubled(jnp.asarray(high), jnp.asarray(low))


def exact(pair):
    return [mpmath.mpf(float(high)) + mpmath.mpf(float(low)) for high, low in zip(pair.high, pair.low, strict=True)]


OPERATIONS = [
    (dd.multiply, lambda x, y: x * y),
    (dd.divide, lambda x, y: x / y),
    (lambda x, y: dd.square_root(dd.multiply(x, x)), lambda x, y: abs(x)),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("function", "wanted"), OPERATIONS, ids=["multiply", "divide", "square_root"])
def test_operations_keep_thirty_digits(function, wanted, compiled):
    x, y = numbers(0), numbers(1)
    found = (jax.jit(function) if compiled else function)(x, y)
    with mpmath.workdps(50):
        for value, a, b in zip(exact(found), exact(x), exact(y), strict=True):
            assert abs(value - wanted(a, b)) <= 2 * DIGITS * abs(wanted(a, b))
    # The low part is no more than half a unit of the high one.
    assert np.all(np.abs(found.low) <= np.spacing(np.abs(found.high)) / 2 * (1 + 1e-9))


@pytest.mark.parametrize("compiled", [False, True])
def test_sums_that_cancel(compiled):
    """The error of a sum is relative to its terms, not to what is left of them; differences of doubles are exact."""
    x, y = numbers(2), numbers(3)
    add, subtract = (jax.jit(f) if compiled else f for f in (dd.add, dd.subtract))
    with mpmath.workdps(50):
        for value, a, b in zip(exact(add(x, y)), exact(x), exact(y), strict=True):
            assert abs(value - (a + b)) <= DIGITS * (abs(a) + abs(b))
        near = dd.doubled(x.high * (1 + 1e-13))
        for value, a, b in zip(exact(subtract(near, dd.doubled(x.high))), exact(near), x.high, strict=True):
            assert value == a - mpmath.mpf(float(b))


def test_a_determinant_of_nearly_parallel_vectors():
    """ab − c² with c = √(ab)(1 − 1e-20), of which doubles see nothing."""
    with mpmath.workdps(50):
        c = mpmath.sqrt(mpmath.mpf(2) * 3) * (1 - mpmath.mpf("1e-20"))
        high = float(c)
        pair = dd.Doubled(jnp.asarray(high), jnp.asarray(float(c - high)))
        wanted = float(6 - (mpmath.mpf(high) + mpmath.mpf(float(c - high))) ** 2)
    found = dd.subtract(dd.doubled(jnp.asarray(6.0)), dd.multiply(pair, pair))
    assert float(found.high) == pytest.approx(wanted, rel=1e-10)
    assert wanted == pytest.approx(1.2e-19, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_with_a_leading_half_are_exact(dtype):
    x, y = (np.random.default_rng(seed).normal(size=100).astype(dtype) for seed in (4, 5))
    for one, two in ((x, y), (x, x)):
        first, second = np.asarray(dd.high_half(jnp.asarray(one))), np.asarray(dd.high_half(jnp.asarray(two)))
        for a, b in ((first, second), (one - first, second), (first, two - second)):
            product = a * b
            with mpmath.workdps(50):
                assert all(
                    mpmath.mpf(float(p)) == mpmath.mpf(float(u)) * mpmath.mpf(float(v))
                    for p, u, v in zip(product, a, b, strict=True)
                )


def test_derivatives_by_value():
    """Of √(xy + x/y) − y: both ways, compiled, mapped and twice, against the same in plain numbers and differences."""

    def plain(x, y):
        return jnp.sqrt(x * y + x / y) - y

    def paired(x, y):
        a, b = dd.doubled(x), dd.doubled(y)
        return dd.subtract(dd.square_root(dd.add(dd.multiply(a, b), dd.divide(a, b))), b).high

    x, y = jnp.array([0.3, 1.7, 40.0]), jnp.array([2.0, 0.6, 3.0])
    np.testing.assert_allclose(paired(x, y), plain(x, y), rtol=1e-14)
    for argument in (0, 1):
        slopes = jax.vmap(jax.grad(paired, argument))(x, y)
        np.testing.assert_allclose(slopes, jax.vmap(jax.grad(plain, argument))(x, y), rtol=1e-13)
        forwards = jax.jit(jax.vmap(jax.jacfwd(paired, argument)))(x, y)
        np.testing.assert_allclose(forwards, slopes, rtol=1e-14)
    step = 1e-5
    differences = (plain(x + step, y) - plain(x - step, y)) / (2 * step)
    np.testing.assert_allclose(jax.vmap(jax.grad(paired))(x, y), differences, rtol=1e-8)
    bends = jax.vmap(jax.grad(jax.grad(paired)))(x, y)
    np.testing.assert_allclose(bends, jax.vmap(jax.grad(jax.grad(plain)))(x, y), rtol=1e-12)


def test_choosing_and_stacking():
    pair = dd.Doubled(jnp.array([1.0, 2.0]), jnp.array([1e-20, 2e-20]))
    chosen = dd.where(jnp.array([True, False]), pair, 7.0)
    assert chosen.high.tolist() == [1.0, 7.0]
    assert chosen.low.tolist() == [1e-20, 0.0]
    stacked = dd.stack([pair, chosen], axis=1)
    assert stacked.high.tolist() == [[1.0, 1.0], [2.0, 7.0]]
    assert stacked[0].low.tolist() == [1e-20, 1e-20]
