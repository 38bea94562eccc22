r"""Numbers as an unevaluated sum of two doubles, for the few places where sixteen digits are not enough.

Halves of a number are cut bit by bit, 26 and 27 of them, so that every product with a leading half is exact: a compiler
that fuses it with a sum changes nothing. That of two trailing halves is rounded beyond the 106th bit. Derivatives are
those of the plain operations, and pass through the high part.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from deeplimits.numerics.shapes import Floats


class Doubled(NamedTuple):
    """`high` + `low`, the low part at most half a unit in the last place of the high one; about 32 digits."""

    high: Floats
    low: Floats

    def __getitem__(self, places) -> "Doubled":
        return Doubled(self.high[places], self.low[places])


def doubled(values: Floats) -> Doubled:
    """A double, exactly."""
    return Doubled(values, jnp.zeros_like(values))


def high_half(x: Floats) -> Floats:
    """The leading half of the digits; what is left is exact too."""
    kind, dropped = (jnp.uint64, 27) if x.dtype == jnp.float64 else (jnp.uint32, 12)
    bits = jax.lax.bitcast_convert_type(x, kind)
    mask = jnp.asarray(~((1 << dropped) - 1) & (2 ** (8 * x.dtype.itemsize) - 1), kind)
    return jax.lax.bitcast_convert_type(bits & mask, x.dtype)


def _two_sum(x, y):
    total = x + y
    moved = total - x
    return total, (x - (total - moved)) + (y - moved)


def _fast_two_sum(large, small):
    total = large + small
    return total, small - (total - large)


def _exact_product(x, y):
    x_high, y_high = high_half(x), high_half(y)
    x_low, y_low = x - x_high, y - y_high
    middle, lost = _two_sum(x_high * y_low, x_low * y_high)
    product, rest = _two_sum(x_high * y_high, middle)
    return _fast_two_sum(product, rest + (lost + x_low * y_low))


def _sum(x: Doubled, y: Doubled) -> Doubled:
    high, low = _two_sum(x.high, y.high)
    extra, lost = _two_sum(x.low, y.low)
    high, low = _fast_two_sum(high, low + extra)
    return Doubled(*_fast_two_sum(high, low + lost))


def _product(x: Doubled, y: Doubled) -> Doubled:
    high, low = _exact_product(x.high, y.high)
    return Doubled(*_fast_two_sum(high, low + (x.high * y.low + x.low * y.high)))


@jax.custom_jvp
def add(x: Doubled, y: Doubled) -> Doubled:
    """x + y

    >>> found = add(doubled(jnp.array(1.0)), doubled(jnp.array(1e-25)))
    >>> float(found.high), float(found.low)
    (1.0, 1e-25)
    """
    return _sum(x, y)


@add.defjvp
def _(primals, tangents):
    found = add(*primals)
    return found, _tangent(found, tangents[0].high + tangents[1].high)


def subtract(x: Doubled, y: Doubled) -> Doubled:
    """x − y"""
    return add(x, Doubled(-y.high, -y.low))


@jax.custom_jvp
def multiply(x: Doubled, y: Doubled) -> Doubled:
    """xy

    >>> third = divide(doubled(jnp.array(1.0)), doubled(jnp.array(3.0)))
    >>> left = subtract(multiply(third, doubled(jnp.array(3.0))), doubled(jnp.array(1.0)))
    >>> abs(float(left.high)) < 1e-31
    True
    """
    return _product(x, y)


@multiply.defjvp
def _(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    found = multiply(x, y)
    return found, _tangent(found, x.high * dy.high + y.high * dx.high)


@jax.custom_jvp
def divide(x: Doubled, y: Doubled) -> Doubled:
    """x/y"""
    first = x.high / y.high
    rest = subtract(x, _product(doubled(first), y))
    second = rest.high / y.high
    rest = subtract(rest, _product(doubled(second), y))
    high, low = _fast_two_sum(first, second)
    return Doubled(*_fast_two_sum(high, low + rest.high / y.high))


@divide.defjvp
def _(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    found = divide(x, y)
    return found, _tangent(found, (dx.high - found.high * dy.high) / y.high)


@jax.custom_jvp
def square_root(x: Doubled) -> Doubled:
    """√x for x > 0"""
    root = jnp.sqrt(x.high)
    rest = subtract(x, _product(doubled(root), doubled(root)))
    return Doubled(*_fast_two_sum(root, rest.high / (2 * root)))


@square_root.defjvp
def _(primals, tangents):
    found = square_root(*primals)
    return found, _tangent(found, tangents[0].high / (2 * found.high))


def where(condition, x: Doubled, y: float) -> Doubled:
    """x where the condition holds, and the double y elsewhere."""
    return Doubled(jnp.where(condition, x.high, y), jnp.where(condition, x.low, 0.0))


def stack(parts: list[Doubled], axis: int = 0) -> Doubled:
    return Doubled(jnp.stack([part.high for part in parts], axis), jnp.stack([part.low for part in parts], axis))


def _tangent(found: Doubled, move) -> Doubled:
    return Doubled(jnp.broadcast_to(move, found.high.shape), jnp.zeros_like(found.low))
