"""Failing aloud, traced or not.

A condition on values that are known now is checked now. On values that JAX will know later (inside `jit`, `grad`,
`vmap`) the check becomes part of the program and raises when the program runs; `aloud` turns that error into one of
this package's own, with its sentence.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.errors import DeeplimitsError, NotConverged, OutsideValidity
from deeplimits.numerics.arguments import known

Values = TypeVar("Values")


def converged(values: Values, condition: ArrayLike, sentence: str) -> Values:
    """`values` as they are, or `NotConverged` with this sentence where `condition` is not true everywhere.

    >>> float(converged(jnp.ones(()), True, "the iteration did not converge"))
    1.0
    """
    return _checked(values, condition, NotConverged, sentence, None)


def valid(values: Values, condition: ArrayLike, sentence: str, details: Callable[[], str] | None = None) -> Values:
    """`values` as they are, or `OutsideValidity` with this sentence where `condition` is not true everywhere.

    `details` gives the numbers to end the sentence with; it is called only where they are known.

    >>> float(valid(jnp.ones(()), True, "the velocity is not positive on the way"))
    1.0
    """
    return _checked(values, condition, OutsideValidity, sentence, details)


def _checked(values, condition, error: type[DeeplimitsError], sentence: str, details):
    if known(condition):
        if not np.all(condition):
            raise error(sentence + (details() if details is not None else ""))
        return values
    if not any(eqx.is_array(leaf) for leaf in jax.tree.leaves(values)):
        return values
    return eqx.error_if(values, ~jnp.all(jnp.asarray(condition)), f"[{error.__name__}] {sentence}")


@contextlib.contextmanager
def aloud(owner: str) -> Iterator[None]:
    """Translate what compiled programs raise into this package's errors: `owner`, then the failed check's sentence."""
    try:
        yield
    except DeeplimitsError:
        raise
    except (eqx.EquinoxRuntimeError, jax.errors.JaxRuntimeError) as error:
        text = str(error)
        for kind in (NotConverged, OutsideValidity):
            mark = f"[{kind.__name__}] "
            if mark in text:
                sentence = text.split(mark, 1)[1].split("\n", 1)[0].strip().rstrip("'\"")
                raise kind(f"{owner}: {sentence}") from None
        if "EqxRuntimeError" in text or "maximum number of" in text or isinstance(error, eqx.EquinoxRuntimeError):
            # Solvers of the JAX ecosystem raise sentences of their own.
            sentence = next((line.strip() for line in text.splitlines() if line.strip()), "a solver failed")
            raise NotConverged(f"{owner}: {sentence}") from None
        raise
