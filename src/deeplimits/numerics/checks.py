"""Failing aloud, traced or not.

A condition on values that are known now is checked now. On values that JAX will know later (inside `jit`, `grad`,
`vmap`) the check becomes part of the program and raises when the program runs; `aloud` turns that error into one of
this package's own, with its sentence.
"""

import contextlib
import logging
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
    wrong = ~jnp.all(jax.lax.stop_gradient(jnp.asarray(condition)))
    one = eqx.error_if(jnp.ones(()), wrong, f"[{error.__name__}] {sentence}")
    return jax.tree.map(lambda leaf: _times(leaf, one), values)


def _times(leaf, one):
    """The leaf times a number that is one, or never is: so that derivatives need the check as much as values do."""
    if not eqx.is_array(leaf) or jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf
    if leaf.dtype == bool:
        return leaf & (one == 1)
    if jnp.iscomplexobj(leaf):
        # By parts: a product of complex numbers would make ∞·0 of an infinite part.
        real = one.astype(leaf.real.dtype)
        return jax.lax.complex(leaf.real * real, leaf.imag * real)
    return leaf * one.astype(leaf.dtype)


@contextlib.contextmanager
def aloud(owner: str) -> Iterator[None]:
    """Translate what compiled programs raise into this package's errors: `owner`, then the failed check's sentence."""
    try:
        with _one_sentence():
            yield
    except DeeplimitsError:
        raise
    except (eqx.EquinoxRuntimeError, jax.errors.JaxRuntimeError, ValueError) as error:
        # ValueError is what JAX raises where a program fails that was called before.
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


@contextlib.contextmanager
def _one_sentence() -> Iterator[None]:
    """Without the traceback that JAX logs for a failed check before the error, which says all of it, arrives."""
    log = logging.getLogger("jax._src.callback")
    log.addFilter(_says_more)
    try:
        yield
    finally:
        log.removeFilter(_says_more)


def _says_more(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return not any(f"[{kind.__name__}]" in str(error) for kind in (NotConverged, OutsideValidity))
