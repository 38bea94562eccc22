"""Failing aloud, traced or not.

A condition on values that are known now is checked now. On values that JAX will know later (inside `jit`, `grad`,
`vmap`) the check becomes part of the program and raises when the program runs; `aloud` turns that error into one of
this package's own, with its sentence.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import ArrayLike

from deeplimits.errors import NotConverged

Values = TypeVar("Values")
_MARK = "[deeplimits] "


def is_traced(value: Any) -> bool:
    """Whether a value is an abstract one inside `jit`, `grad` or `vmap`, so that its range cannot be checked."""
    return isinstance(value, Tracer | jax.ShapeDtypeStruct)


def converged(values: Values, condition: ArrayLike, sentence: str) -> Values:
    """`values` as they are, or `NotConverged` with this sentence where `condition` is not true everywhere.

    >>> float(converged(jnp.ones(()), True, "the iteration did not converge"))
    1.0
    """
    if not is_traced(condition):
        if not np.all(condition):
            raise NotConverged(sentence)
        return values
    if not any(eqx.is_array(leaf) for leaf in jax.tree.leaves(values)):
        return values
    return eqx.error_if(values, ~jnp.all(jnp.asarray(condition)), _MARK + sentence)


@contextlib.contextmanager
def aloud(owner: str) -> Iterator[None]:
    """Translate what compiled programs raise: `NotConverged`, with `owner` and the sentence of the failed check."""
    try:
        yield
    except NotConverged:
        raise
    except (eqx.EquinoxRuntimeError, jax.errors.JaxRuntimeError) as error:
        text = str(error)
        if _MARK in text:
            sentence = text.split(_MARK, 1)[1].split("\n", 1)[0].strip().rstrip("'\"")
        elif "EqxRuntimeError" in text or "maximum number of" in text or isinstance(error, eqx.EquinoxRuntimeError):
            # Solvers of the JAX ecosystem raise sentences of their own.
            sentence = next((line.strip() for line in text.splitlines() if line.strip()), "a solver failed")
        else:
            raise
        raise NotConverged(f"{owner}: {sentence}") from None
