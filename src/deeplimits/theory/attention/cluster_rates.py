"""How fast tokens that are close to each other collapse, and where that is proven to happen."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.numerics import arguments
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.attention.equiangular import KINDS, LARGEST_EXPONENT

CIRCLE_LOW, CIRCLE_HIGH = 1.0, 1.0
"""Constants of β ≲ 1/n and β ≳ n² on the circle; the theorems state that there are some."""


def cluster_rate(beta: ArrayLike, *, kind: str = "softmax") -> Floats:
    """The rate r of |x_i − x*| ~ e^{−rt} near a single cluster, B = V = I: 1 for SA at every β, e^β for USA.

    At consensus the attention is uniform and the linearization is δ̇_i = mean(δ) − δ_i, times e^β in USA. Hence
    1 − ⟨x_i, x_j⟩ ~ e^{−2rt}.

    >>> float(cluster_rate(3.0)), round(float(2 * cluster_rate(1.0, kind="unnormalized")), 5)
    (1.0, 5.43656)
    """
    arguments.choice("kind", kind, KINDS)
    allowed = arguments.NOT_NEGATIVE if kind == "softmax" else arguments.between(0.0, LARGEST_EXPONENT)
    b = arguments.argument("beta", beta, allowed, "the rate is stated for β ≥ 0, and e^β must be a number")
    return jnp.ones_like(b) if kind == "softmax" else jnp.exp(b)


class Regime(NamedTuple):
    """Where convergence to a single cluster is proven, at each (d, β)."""

    proven: Array
    """For almost every start."""
    exponential: Array
    """With a stated exponential rate as well, from almost every start: d ≥ n, when tokens lie in an open hemisphere."""


def proven_regime(dimension: ArrayLike, beta: ArrayLike, tokens: ArrayLike) -> Regime:
    """The map of proven regimes over (d, β) at n tokens, B = V = I.

    d ≥ 3: one cluster from almost every start, at any β ≥ 0. d = 2: β ≤ c/n, and β ≥ Cn² (here c = C = 1). d ≥ n:
    almost every start lies in an open hemisphere, and the convergence is exponential. White regions are open in the
    paper, not false. Reference: Geshkovski et al. (2025), Figure 1 and Theorems 4.1 to 6.3.

    >>> found = proven_regime([2, 2, 2, 3, 40], [0.01, 5.0, 2000.0, 5.0, 5.0], 32)
    >>> found.proven.tolist(), found.exponential.tolist()
    ([True, False, True, True, True], [False, False, False, False, True])
    """
    d = arguments.argument("dimension", dimension, arguments.at_least(2), "tokens move on a sphere of dimension d − 1")
    b = arguments.argument("beta", beta, arguments.NOT_NEGATIVE)
    n = arguments.argument("tokens", tokens, arguments.at_least(2))
    d, b, n = same_rank(d, b, n)
    circle = (b <= CIRCLE_LOW / n) | (b >= CIRCLE_HIGH * n**2)
    hemisphere = (d >= n) & (b >= 0)
    return Regime((d >= 3) | circle | hemisphere, hemisphere)
