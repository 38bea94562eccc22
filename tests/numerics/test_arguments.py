"""What is allowed is data: each range, each shape, and what is not known yet."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments

RANGES = [
    (arguments.FINITE, [-1.0, 0.0], [np.inf, np.nan]),
    (arguments.POSITIVE, [1e-300], [0.0, -1.0, np.inf, np.nan]),
    (arguments.NOT_NEGATIVE, [0.0, 3.0], [-1e-300, np.inf, np.nan]),
    (arguments.UNTIL_THE_END, [0.0, np.inf], [-1.0, np.nan]),
    (arguments.SHARE, [0.0, 1.0], [-0.1, 1.1, np.nan]),
    (arguments.PART, [1e-9, 1.0], [0.0, 1.1, np.nan]),
    (arguments.COUNT, [0.0, 7.0], [0.5, -1.0, np.inf, np.nan]),
    (arguments.above(-1), [0.0], [-1.0, np.inf, np.nan]),
    (arguments.at_least(1), [1.0], [0.9, np.inf, np.nan]),
    (arguments.inside(0, 1), [0.5], [0.0, 1.0, np.nan]),
    (arguments.between(0, 2), [0.0, 2.0], [-0.1, 2.1, np.nan]),
]


@pytest.mark.parametrize(("allowed", "good", "bad"), RANGES, ids=[allowed.words for allowed, *_ in RANGES])
def test_ranges(allowed, good, bad):
    assert arguments.argument("x", good, allowed).tolist() == good
    for value in bad:
        with pytest.raises(ParameterError, match=r"x\[1\] = .* is not allowed; it must be"):
            arguments.argument("x", [good[0], value], allowed)
        with pytest.raises(ParameterError, match=rf"x = {value:g} is not allowed.*\(for a reason\)"):
            arguments.number("x", value, allowed, "for a reason")


def test_what_is_not_known_yet_passes_and_is_differentiable():
    def through(x):
        return jnp.sum(arguments.array("x", x, ("n",), allowed=arguments.POSITIVE))

    assert float(jax.jit(through)(-jnp.ones(3))) == -3.0
    assert jax.grad(through)(-jnp.ones(2)).tolist() == [1.0, 1.0]
    assert arguments.known(1.0, np.ones(2), [jnp.ones(2)], None)
    assert not jax.jit(lambda x: jnp.asarray(arguments.known(x, 1.0)))(1.0)


def test_shapes():
    square = arguments.array("a", np.eye(2), ("n", "n"))
    assert square.shape == (2, 2)
    assert arguments.array("a", 1.0, (), (3,)).shape == ()
    for value, shapes, words in (
        (np.ones((2, 3)), [("n", "n")], r"\(2, 3\); it must have shape \(n, n\)"),
        (np.ones((0, 3)), [("n", "d")], r"\(0, 3\); it must have shape \(n, d\)"),
        (np.ones(2), [(), (3,)], r"\(2,\); it must have shape \(\) or \(3,\)"),
    ):
        with pytest.raises(ParameterError, match=words):
            arguments.array("a", value, *shapes)
    # Shapes are known even where values are not.
    with pytest.raises(ParameterError, match="a has shape"):
        jax.jit(lambda a: arguments.array("a", a, ("n", "n")))(jnp.ones(2))


def test_whole_numbers_choices_and_probabilities():
    assert arguments.whole("n", np.int64(3), 3) == 3
    for value in (2, True, 3.0, "3"):
        with pytest.raises(ParameterError, match="n = "):
            arguments.whole("n", value, 3)
    assert arguments.choice("a", "b", ["b", "c"]) == "b"
    with pytest.raises(ParameterError, match="it must be one of b, c"):
        arguments.choice("a", "d", ["b", "c"])
    assert arguments.probabilities("w", [0.25, 0.75], 2).tolist() == [0.25, 0.75]
    for weights, words in (([0.5, 0.6], "sum is 1.1"), ([1.5, -0.5], r"w\[1\] = -0.5"), ([1.0], "shape")):
        with pytest.raises(ParameterError, match=words):
            arguments.probabilities("w", weights, 2)
