"""Without weights, attention moves inner products by themselves: an equation for the Gram matrix alone."""

import jax.numpy as jnp
import numpy as np
from jax.nn import softmax
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments, flows
from deeplimits.numerics.arguments import known
from deeplimits.theory.attention.equiangular import KINDS

UNIT = 1e-9
"""What an entry of a Gram matrix of unit vectors may miss."""


def gram_flow(
    start: ArrayLike,
    times: ArrayLike,
    beta: ArrayLike,
    *,
    kind: str = "softmax",
    repulsive: bool = False,
    rtol: float = 1e-11,
) -> Float[Array, "times n n"]:
    """The inner products G_ij = ⟨x_i, x_j⟩ of n tokens under SA or USA with B = V = I, in any dimension.

    Ġ_ij = Σ_k A_ik (G_kj − G_ik G_ij) + Σ_k A_jk (G_ki − G_jk G_ij), A = softmax(βG), or e^{βG}/n in USA.
    `start` is a Gram matrix with ones on its diagonal; β may be negative where `repulsive` says that it is meant.

    >>> start = 0.9 * jnp.eye(3) + 0.1
    >>> round(float(gram_flow(start, [2.0], 1.5)[0, 0, 1]), 9)
    0.894538815
    >>> from deeplimits.theory.attention import equiangular_cosine
    >>> round(float(equiangular_cosine(0.1, 2.0, 3, 1.5).cosine), 9)
    0.894538815
    """
    arguments.choice("kind", kind, KINDS)
    gram = arguments.array("start", start, ("n", "n"), why="inner products of tokens")
    _refuse_impossible(gram)
    b = arguments.number(
        "beta", beta, arguments.FINITE if repulsive else arguments.NOT_NEGATIVE, "repulsive=True allows β < 0"
    )

    def field(t, g):
        scores = b * g
        weights = softmax(scores, axis=1) if kind == "softmax" else jnp.exp(scores) / g.shape[0]
        # Σ_k A_ik G_kj − (Σ_k A_ik G_ik) G_ij
        moved = weights @ g - jnp.sum(weights * g, axis=1)[:, None] * g
        return moved + moved.T

    return flows.solve(field, gram, times, rtol=rtol, atol=1e-13).states


def _refuse_impossible(gram):
    if not known(gram):
        return
    g = np.asarray(gram)
    wrong = {
        "is not symmetric": np.max(np.abs(g - g.T)),
        "has other numbers than ones on its diagonal": np.max(np.abs(np.diagonal(g) - 1)),
        "has a negative eigenvalue": -np.linalg.eigvalsh(g)[0],
    }
    for words, much in wrong.items():
        if much > UNIT * len(g):
            raise ParameterError(f"start {words} (by {much:.3g}); it must be the inner products of unit vectors")
