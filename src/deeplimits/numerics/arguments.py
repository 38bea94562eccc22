"""Checking arguments: what is allowed is data, and one function says the sentence.

Only values that are known now are checked. Inside `jit`, `grad` and `vmap` an argument is abstract and passes: a limit
checks its parameters before it is traced, and what a program computes is checked by `numerics.checks`.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Complex, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics.shapes import Floats, Scalar

Given = Any
"""What a caller may write: numbers, arrays, lists of lists."""
MASS = 1e-9
"""Weights may miss the sum of one by this much."""
UNIT, UNIT_SINGLE = 1e-9, 1e-5
"""Lengths may miss one by this much, in double and in single precision."""


class Allowed(NamedTuple):
    """Which entries of an argument are allowed, and in words what it must be."""

    holds: Callable[[np.ndarray], Any]
    words: str


FINITE = Allowed(np.isfinite, "finite")
A_NUMBER = Allowed(lambda x: ~np.isnan(x), "a number (inf is one)")
POSITIVE = Allowed(lambda x: (x > 0) & np.isfinite(x), "positive and finite")
NOT_NEGATIVE = Allowed(lambda x: (x >= 0) & np.isfinite(x), "finite and at least 0")
UNTIL_THE_END = Allowed(lambda x: x >= 0, "at least 0 (inf for the end)")
SHARE = Allowed(lambda x: (x >= 0) & (x <= 1), "between 0 and 1")
PART = Allowed(lambda x: (x > 0) & (x <= 1), "above 0 and at most 1")
COUNT = Allowed(lambda x: (x >= 0) & (x == np.round(x)) & np.isfinite(x), "a whole number, at least 0")


def above(low: float) -> Allowed:
    return Allowed(lambda x: (x > low) & np.isfinite(x), f"finite and above {low:g}")


def at_least(low: float) -> Allowed:
    return Allowed(lambda x: (x >= low) & np.isfinite(x), f"finite and at least {low:g}")


def inside(low: float, high: float) -> Allowed:
    return Allowed(lambda x: (x > low) & (x < high), f"strictly between {low:g} and {high:g}")


def between(low: float, high: float) -> Allowed:
    return Allowed(lambda x: (x >= low) & (x <= high), f"between {low:g} and {high:g}")


def written(value: Any) -> str:
    """A number as it was given: the shortest that is read as it, where six digits would say another one.

    >>> written(0.9999999), written(jnp.asarray(3.0))
    ('0.9999999', '3')
    """
    number = float(value)
    return repr(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def known(*values: Any) -> bool:
    """Whether all values have numbers now, and are not abstract ones inside `jit`, `grad` or `vmap`."""
    leaves = jax.tree.leaves(values)
    return not any(isinstance(leaf, Tracer | jax.ShapeDtypeStruct) for leaf in leaves)


def argument(name: str, value: Given, allowed: Allowed, why: str = "") -> Floats:
    """`value` as an array of floats, or a `ParameterError` that names the first entry that is not allowed.

    >>> float(argument("ridge", 0.5, POSITIVE))
    0.5
    >>> argument("ridge", [0.5, -1.0], POSITIVE, "a pole lies at 0")
    Traceback (most recent call last):
    ...
    deeplimits.errors.ParameterError: ridge[1] = -1 is not allowed; it must be positive and finite (a pole lies at 0)
    """
    if known(value):
        _refuse(name, _numbers(name, value), allowed, why)
    return jnp.asarray(value, float)


def _numbers(name: str, value: Given) -> np.ndarray:
    try:
        if value is not None:  # NumPy would make NaN of it
            return np.asarray(value, float)
        raise TypeError
    except (ValueError, TypeError):
        raise ParameterError(f"{name} = {value!r} is not allowed; give a number, or an array of numbers") from None


def _refuse(name: str, numbers: np.ndarray, allowed: Allowed, why: str) -> None:
    wrong = ~np.asarray(allowed.holds(numbers), bool)
    if np.any(wrong):
        place = tuple(int(index) for index in np.argwhere(wrong)[0])
        entry = f"{name}[{', '.join(map(str, place))}]" if place else name
        reason = f" ({why})" if why else ""
        raise ParameterError(f"{entry} = {written(numbers[place])} is not allowed; it must be {allowed.words}{reason}")


def number(name: str, value: Given, allowed: Allowed, why: str = "") -> Scalar:
    """As `argument`, for one number.

    >>> number("noise", [0.5, 1.0], NOT_NEGATIVE)
    Traceback (most recent call last):
    ...
    deeplimits.errors.ParameterError: noise has shape (2,); give one number
    """
    found = argument(name, value, allowed, why)
    if found.ndim:
        raise ParameterError(f"{name} has shape {found.shape}; give one number")
    return found


def real(name: str, value: Any, allowed: Allowed, why: str = "") -> float:
    """As `number`, for what computes without JAX, which is not started for it.

    >>> real("tolerance", 1e-3, POSITIVE)
    0.001
    """
    numbers = _numbers(name, value)
    if numbers.ndim:
        raise ParameterError(f"{name} has shape {numbers.shape}; give one number")
    _refuse(name, numbers, allowed, why)
    return float(numbers)


def point(name: str, value: Given, why: str = "") -> Complex[Array, "..."]:
    """`value` as an array of finite complex numbers.

    >>> complex(point("z", 1j))
    1j
    """
    if known(value):
        parts = np.asarray(value, complex)
        for part in (np.real(parts), np.imag(parts)):
            _refuse(name, part, FINITE, why)
    return jnp.asarray(value, complex)


def function(name: str, value: Any) -> Callable:
    """`value`, which must be something that can be called.

    >>> function("f", "tanh")
    Traceback (most recent call last):
    ...
    deeplimits.errors.ParameterError: f = 'tanh' is not allowed; it must be a function, such as jnp.tanh
    """
    if not callable(value):
        raise ParameterError(f"{name} = {value!r} is not allowed; it must be a function, such as jnp.tanh")
    return value


def of_kind(name: str, value: Any, kind: type) -> None:
    """Refuse what is not the description that a function speaks about.

    >>> of_kind("task", "tanh", dict)
    Traceback (most recent call last):
    ...
    deeplimits.errors.ParameterError: task = 'tanh' is a str; it must be a dict
    """
    if not isinstance(value, kind):
        shown = f" = {value!r}" if isinstance(value, str | float | int | None) else ""
        raise ParameterError(f"{name}{shown} is a {type(value).__name__}; it must be a {kind.__name__}")


def array(name: str, value: Given, *shapes: tuple[int | str, ...], allowed: Allowed = FINITE, why: str = "") -> Floats:
    """`value` as an array of floats that has one of these shapes, in which a word stands for one size, not zero.

    >>> array("x", [[1.0, 2.0]], ("n", "d")).shape
    (1, 2)
    >>> array("y", [1.0, 2.0], (3,), (3, "k"), why="one row for each point")
    Traceback (most recent call last):
    ...
    deeplimits.errors.ParameterError: y has shape (2,); it must have shape (3,) or (3, k) (one row for each point)
    >>> array("y", [1.0, float("nan")], ("n",))
    Traceback (most recent call last):
    ...
    deeplimits.errors.ParameterError: y[1] = nan is not allowed; it must be finite
    """
    found = jnp.asarray(_numbers(name, value) if known(value) else value, float)
    if not any(_fits(found.shape, shape) for shape in shapes):
        words = " or ".join(f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})" for shape in shapes)
        reason = f" ({why})" if why else ""
        raise ParameterError(f"{name} has shape {found.shape}; it must have shape {words}{reason}")
    return argument(name, value, allowed, why)


def unit_rows(
    name: str, value: Given, *, normalize: bool = False, many: bool = False, single: bool = False
) -> Float[Array, "*places n d"]:
    """`value` as points of the unit sphere, one in each row; off the sphere they are refused, or scaled to it if asked.

    With `many`, axes may stand before those of points and coordinates; with `single`, single precision is kept.

    >>> unit_rows("tokens", [[0.0, 4.0]], normalize=True).tolist()
    [[0.0, 1.0]]
    >>> unit_rows("tokens", [[0.0, 4.0]])
    Traceback (most recent call last):
    ...
    deeplimits.errors.ParameterError: tokens are not on the unit sphere: a length misses one by 3; normalize=True scales them to it
    """  # noqa: E501
    coarse = getattr(value, "dtype", None) == np.float32
    rows = jnp.asarray(value if coarse or not known(value) else _numbers(name, value))
    if rows.ndim < 2 or (rows.ndim > 2 and not many) or 0 in rows.shape:
        wanted = "(..., n, d)" if many else "(n, d)"
        raise ParameterError(f"{name} has shape {rows.shape}; it must have shape {wanted} (a unit vector in each row)")
    if not (coarse and single):
        rows = rows.astype(float)
    lengths = jnp.linalg.norm(rows, axis=-1, keepdims=True)
    if known(lengths):
        there = np.asarray(lengths)
        if not np.all(np.isfinite(there)):
            _refuse(name, np.asarray(rows, float), FINITE, "")
        if normalize and not np.all(there > 0):
            raise ParameterError(f"{name} holds a row of zeros, which has no direction")
        off = float(np.max(np.abs(there - 1)))
        if not normalize and off > (UNIT_SINGLE if coarse else UNIT):
            raise ParameterError(
                f"{name} are not on the unit sphere: a length misses one by {off:.3g}; normalize=True scales them to it"
            )
    return rows / lengths if normalize else rows


def _fits(found: tuple[int, ...], wanted: tuple[int | str, ...]) -> bool:
    if len(found) != len(wanted):
        return False
    sizes: dict[str, int] = {}
    return all(
        size > 0 and sizes.setdefault(word, size) == size if isinstance(word, str) else size == word
        for size, word in zip(found, wanted, strict=True)
    )


def samples(x: Given, y: Given) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """Points `x`, one in each row, and as many labels `y`, all finite; at least one of them, with one feature.

    >>> samples([[1.0, 2.0]], [1.0, -1.0])
    Traceback (most recent call last):
    ...
    deeplimits.errors.ParameterError: y has shape (2,); it must have shape (1,) (one label for each row of x)
    """
    points = array("x", x, ("n", "d"), why="one finite point in each row, and at least one")
    return points, array("y", y, (points.shape[0],), why="one label for each row of x")


def whole(name: str, value: Any, least: int = 0, why: str = "") -> int:
    """`value` as an int: a whole number that is known now, of at least `least`.

    >>> whole("depth", 3, 1)
    3
    >>> whole("depth", 2.5, 1, "layers")
    Traceback (most recent call last):
    ...
    deeplimits.errors.ParameterError: depth = 2.5 is not allowed; it must be a whole number, at least 1 (layers)
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        reason = f" ({why})" if why else ""
        raise ParameterError(f"{name} = {value!r} is not allowed; it must be a whole number, at least {least}{reason}")
    return int(value)


def choice(name: str, value: str, options: Iterable[str]) -> str:
    """`value`, which must be one of these words.

    >>> choice("weights", "uniform", ("gaussian", "orthogonal"))
    Traceback (most recent call last):
    ...
    deeplimits.errors.ParameterError: weights = 'uniform' is not allowed; it must be one of gaussian, orthogonal
    """
    options = tuple(options)
    if value not in options:
        raise ParameterError(f"{name} = {value!r} is not allowed; it must be one of {', '.join(options)}")
    return value


def probabilities(name: str, value: Given, count: int) -> Float[Array, " atoms"]:
    """`count` weights, none negative, that sum to one.

    >>> probabilities("weights", [0.5, 0.6], 2)
    Traceback (most recent call last):
    ...
    deeplimits.errors.ParameterError: weights is not a probability: its sum is 1.1; it must be 1
    """
    found = array(name, value, (count,), allowed=NOT_NEGATIVE, why="one weight for each value")
    if known(value):
        total = float(np.sum(np.asarray(value, float)))
        if abs(total - 1) > MASS:
            raise ParameterError(f"{name} is not a probability: its sum is {total:g}; it must be 1")
    return found


def times(name: str, value: Given) -> Float[Array, "times"]:
    """A list of increasing finite times, the first at least 0.

    >>> times("times", [0.0, 2.0]).tolist()
    [0.0, 2.0]
    """
    found = jnp.atleast_1d(argument(name, value, NOT_NEGATIVE))
    if found.ndim != 1:
        raise ParameterError(f"{name} has shape {found.shape}; give one number or a list")
    if not found.size:
        raise ParameterError(f"{name} is empty; give at least one time")
    if known(found) and np.any(np.diff(np.asarray(found)) <= 0):
        raise ParameterError(f"{name} = {np.asarray(found).tolist()} is not allowed; it must be increasing")
    return found
