r"""Where the kinks of a wide random ReLU network are, by Kac and Rice's formula, and the cell around the origin."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity
from deeplimits.numerics.arguments import A_NUMBER, NOT_NEGATIVE, POSITIVE, argument, array, known, number, whole
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.expressivity.paths import hidden_widths


class ExpectedBreakpoints(NamedTuple):
    """How many units of each hidden layer change on a segment, on average."""

    layers: Float[Array, " layers"]
    per_neuron: Float[Array, " layers"]


def expected_breakpoints(
    start: ArrayLike,
    direction: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    hidden: Sequence[int],
) -> ExpectedBreakpoints:
    r"""The expected number of breakpoints of a random ReLU network on a segment of a line.

    Setting     x(t) = x_0 + t u, t from `low` to `high` (±inf are allowed); W^(l)_ij ~ N(0, C_w/n_{l−1}),
                b^(l) ~ N(0, C_b); `hidden` the widths
    Result      a neuron of layer l has [arctan((D t + C)/Δ)/π] zeros, Δ² = AD − C²: A = C_b + (C_w/n_0)|x_0|²,
                C = (C_w/n_0) x_0·u, D = (C_w/n_0)|u|² at l = 1, then A ← C_b + (C_w/2)A, C ← (C_w/2)C, D ← (C_w/2)D.
                On the whole line every neuron of every layer has one
    Validity    exact in the first layer at any width; n → ∞ in the others
    References  hanin2019

    >>> found = expected_breakpoints([0.0], [1.0], -1.0, 1.0, 2.0, 0.1, [30, 30, 30])
    >>> [round(float(one), 9) for one in found.layers]
    [25.798539117, 24.150533129, 22.942899091]
    >>> round(float(expected_breakpoints([0.0], [1.0], -jnp.inf, jnp.inf, 1.0, 0.5, [1]).layers[0]), 12)
    1.0
    """
    x = array("start", start, ("d",), why="a point of the input space")
    u = array("direction", direction, x.shape, why="as long as start")
    a, b = number("low", low, A_NUMBER), number("high", high, A_NUMBER)
    c_w, c_b = (
        number("weight_variance", weight_variance, POSITIVE),
        number("bias_variance", bias_variance, NOT_NEGATIVE),
    )
    a = valid(a, a < b, "low must be below high")
    if known(u) and not np.any(np.asarray(u)):
        raise OutsideValidity("direction is zero; a line needs a direction")
    widths = jnp.asarray(hidden_widths(hidden), float)
    scale = c_w / x.size
    along, square = scale * jnp.dot(x, u), scale * jnp.dot(u, u)
    # |x|²|u|² − (x·u)² is the square of what of x is across u, without cancellation
    across = x - u * (jnp.dot(x, u) / jnp.dot(u, u))
    gram = scale**2 * jnp.dot(across, across) * jnp.dot(u, u)
    # Over (C_w/2)^{l−1}, C and D stay what they are, and A grows by C_b (2/C_w)^{l−1} from layer to layer.
    biases = c_b * jnp.cumsum((2 / c_w) ** jnp.arange(widths.size, dtype=float))
    width = jnp.sqrt(gram + square * biases)
    width = valid(
        width,
        jnp.all(width > 0),
        "without biases a line through the origin has all its breakpoints at the origin; give a bias variance, or a "
        "line that misses it",
    )
    ends = [jnp.arctan2(square * one + along, width) for one in (a, b)]
    ends = [jnp.where(jnp.isinf(one), jnp.sign(one) * jnp.pi / 2, end) for one, end in zip((a, b), ends, strict=True)]
    # The angle between the two ends, precisely also where it is small
    finite = jnp.isfinite(a) & jnp.isfinite(b)
    near, far = (jnp.where(finite, one, 0.0) for one in (a, b))
    between = jnp.arctan2(square * (far - near), width + (square * near + along) * ((square * far + along) / width))
    each = jnp.where(finite, between, ends[1] - ends[0]) / jnp.pi
    return ExpectedBreakpoints(each * widths, each)


def breakpoint_constant(weight_variance: ArrayLike, bias_variance: ArrayLike) -> Floats:
    r"""The largest density of breakpoints, per neuron and length, of a random ReLU network of one input.

    Setting     as `expected_breakpoints` with n_0 = 1
    Result      E #breakpoints on an interval ≤ C · length · neurons with C = √(C_w/C_b)/π, at the origin, in layer 1
    Validity    C_b > 0
    References  hanin2019

    >>> round(float(breakpoint_constant(1.0, 1.0)), 12)
    0.318309886184
    """
    c_w, c_b = (
        argument("weight_variance", weight_variance, POSITIVE),
        argument("bias_variance", bias_variance, POSITIVE),
    )
    return jnp.sqrt(c_w) / jnp.sqrt(c_b) / jnp.pi


def zero_cell_sides(lines: int) -> Floats:
    r"""The expected number of sides of the cell around the origin, of random lines in the plane.

    Setting     lines w_j·x + b_j = 0, w_j ~ N(0, I_2), b_j centred Gaussian of any variance, n = `lines`: the linear
                region at the origin of a ReLU network of two inputs and one hidden layer
    Result      (n(n−1)/2) ∫_0^{π/2} cos t (½ + t/π)^{n−2} dt + n/2^{n−1} → π²/2
    Validity    every n
    References  hanin2019

    >>> [round(float(zero_cell_sides(n)), 12) for n in (1, 3, 10)]
    [1.0, 2.795070341449, 4.574569382012]
    """
    n = whole("lines", lines, 1)
    if n == 1:
        return jnp.ones(())
    # s = π/2 − t: what counts is s of the order of 1/n
    top = min(np.pi / 2, 45 * np.pi / n)
    nodes, weights = np.polynomial.legendre.leggauss(120)
    s = top * (nodes + 1) / 2
    # n² sin s = n (n sin s): no large numbers meet
    inside = (n * np.sin(s)) * np.exp((n - 2) * np.log1p(-s / np.pi))
    integral = float(np.sum(weights * inside)) * (top * (n - 1)) / 4
    return jnp.asarray(integral + n * 2.0 ** (1 - min(n, 1000)))
