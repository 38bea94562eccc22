"""The search over extreme arguments notices what it is for."""

import jax.numpy as jnp
import pytest

import extremes
from deeplimits.errors import ParameterError
from deeplimits.numerics.arguments import NOT_NEGATIVE, argument
from extremes import NUMBER, POSITIVE, Case


def test_a_function_that_checks_passes():
    extremes.check(lambda x: jnp.sqrt(argument("x", x, NOT_NEGATIVE)), Case((NUMBER,), low=0))


@pytest.mark.parametrize(
    "bad",
    [
        lambda x: jnp.sqrt(x),
        lambda x: 1 / argument("x", x, NOT_NEGATIVE),
        lambda x: -argument("x", x, NOT_NEGATIVE),
        lambda x: [1.0][x > 1],
    ],
    ids=["NaN", "infinite", "out of range", "traceback"],
)
def test_a_function_that_does_not_check_fails(bad):
    with pytest.raises((AssertionError, IndexError)):
        extremes.check(bad, Case((POSITIVE,), low=0))


def test_a_refusal_is_a_sentence():
    def silent(x):
        raise ParameterError("no")

    with pytest.raises(AssertionError, match="no sentence"):
        extremes.check(silent, Case((NUMBER,)))
