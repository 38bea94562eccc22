"""A value that is made once, on compilers that would make it anew in each of its uses."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

LARGE = 4096
"""Fewer numbers are not worth a branch."""


def apart(
    function: Callable[..., Array], *arguments: Array, taken: Bool[Array, ""] | None = None, large: int = LARGE
) -> Array:
    """function(*arguments), an array, computed once and elementwise.

    Of additions, multiplications and bit operations the compiler for CPUs makes no array of their own, but repeats
    them in each of their uses. Arrays of `large` numbers or more are therefore made in a branch, into which it does
    not look, and which is always taken. `taken` is true, and not known before the program runs; without it a
    comparison that is true of any first number of the first argument, NaN too. Mapped over a `taken` of its own the
    branch is none.

    >>> apart(lambda x: x + 1, jnp.ones(5000))[0].item()
    2.0
    """
    result: Any = jax.eval_shape(function, *arguments)
    if jax.default_backend() != "cpu" or result.size < large:
        return function(*arguments)
    if taken is None:
        taken = ~(jnp.abs(arguments[0].ravel()[0]) > jnp.inf)
    return jax.lax.cond(taken, function, lambda *_: jnp.zeros(result.shape, result.dtype), *arguments)
