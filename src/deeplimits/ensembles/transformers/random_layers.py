"""Random tokens, and random score and value matrices."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.ensembles.transformers.particles import AttentionLayer
from deeplimits.numerics import arguments
from deeplimits.numerics.arguments import Given

SCORES = ("identity", "ginibre", "wigner", "goe")
VALUES = ("identity", "gaussian", "wishart", "score")
PANELS = {
    "A": ("ginibre", "gaussian"),
    "B": ("wigner", "wishart"),
    "C": ("ginibre", "score"),
    "D": ("wigner", "score"),
}
"""The four ensembles of the phase diagram: what scores and values are made of. Only D is a gradient flow."""


def random_tokens(key: PRNGKeyArray, count: int, dimension: int) -> Float[Array, "n d"]:
    """Independent uniform points of the unit sphere of R^d.

    >>> x = random_tokens(jax.random.key(0), 5, 3)
    >>> x.shape, bool(jnp.all(jnp.abs(jnp.linalg.norm(x, axis=1) - 1) < 1e-12))
    ((5, 3), True)
    """
    x = jax.random.normal(key, (arguments.whole("count", count, 1), arguments.whole("dimension", dimension, 1)))
    return x / jnp.linalg.norm(x, axis=1, keepdims=True)


def tokens_in_their_span(key: PRNGKeyArray, count: int, dimension: Given) -> Float[Array, "n n"]:
    """Uniform tokens of R^d, d ≥ n, in coordinates of their span: the same law of all inner products, at any d.

    A Gaussian matrix is a lower triangular one times a rotation, L_ij Gaussian below the diagonal and L_ii² of law
    χ² with d − i degrees of freedom (Bartlett). Attention with B = V = I never leaves the span. `dimension` may be
    traced.

    >>> x = tokens_in_their_span(jax.random.key(0), 3, 1e8)
    >>> bool(jnp.max(jnp.abs(x @ x.T - jnp.eye(3))) < 1e-3)
    True
    """
    n = arguments.whole("count", count, 1)
    freedom = arguments.number("dimension", dimension, arguments.at_least(n)) - jnp.arange(float(n))
    below_key, length_key = jax.random.split(key)
    below = jnp.tril(jax.random.normal(below_key, (n, n)), -1)
    root = below + jnp.diag(jnp.sqrt(2 * jax.random.gamma(length_key, freedom / 2)))
    return root / jnp.linalg.norm(root, axis=1, keepdims=True)


def random_score(key: PRNGKeyArray, ensemble: str, dimension: int) -> Float[Array, "d d"]:
    """B = QᵀK with ⟨x, By⟩ of order one for unit vectors: ginibre G₁G₂/√d, wigner symmetric with unit variances, goe.

    goe has variance 2 on the diagonal, wigner 1 everywhere.

    >>> score = random_score(jax.random.key(0), "wigner", 3)
    >>> bool(jnp.all(score == score.T))
    True
    """
    arguments.choice("ensemble", ensemble, SCORES)
    d = arguments.whole("dimension", dimension, 1)
    if ensemble == "identity":
        return jnp.eye(d)
    if ensemble == "ginibre":
        one, two = jax.random.normal(key, (2, d, d))
        return one @ two / jnp.sqrt(1.0 * d)
    g = jax.random.normal(key, (d, d))
    if ensemble == "goe":
        return (g + g.T) / jnp.sqrt(2.0)
    return jnp.triu(g) + jnp.triu(g, 1).T


def random_value(
    key: PRNGKeyArray, ensemble: str, dimension: int, *, score: Float[Array, "d d"] | None = None
) -> Float[Array, "d d"]:
    """V with ‖V‖ of order one: gaussian G/√d, wishart GGᵀ/d, identity, or B/√d where it is the `score` matrix.

    >>> random_value(jax.random.key(0), "score", 4, score=jnp.eye(4))[0].tolist()
    [0.5, 0.0, 0.0, 0.0]
    """
    arguments.choice("ensemble", ensemble, VALUES)
    d = arguments.whole("dimension", dimension, 1)
    if ensemble == "identity":
        return jnp.eye(d)
    root = jnp.sqrt(1.0 * d)
    if ensemble == "score":
        return arguments.array("score", score, (d, d), why="the matrix that V is to be") / root
    g = jax.random.normal(key, (d, d)) / root
    return g @ g.T if ensemble == "wishart" else g


def random_layer(key: PRNGKeyArray, scores: str, values: str, dimension: int) -> AttentionLayer:
    """One head with independent random score and value matrices, or the same where `values` is "score".

    >>> random_layer(jax.random.key(0), "wigner", "wishart", 3).scores.shape
    (1, 3, 3)
    """
    score_key, value_key = jax.random.split(key)
    score = random_score(score_key, scores, dimension)
    return AttentionLayer(score[None], random_value(value_key, values, dimension, score=score)[None])


def panel_layer(key: PRNGKeyArray, panel: str, dimension: int) -> AttentionLayer:
    """A layer of one of the four ensembles A, B, C, D of the phase diagram (`PANELS`).

    >>> layer = panel_layer(jax.random.key(0), "C", 4)  # values are scores over √d
    >>> bool(jnp.all(layer.values == layer.scores / 2))
    True
    """
    scores, values = PANELS[arguments.choice("panel", panel, PANELS)]
    return random_layer(key, scores, values, dimension)
