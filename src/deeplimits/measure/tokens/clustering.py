"""How clustered tokens are: pairs, clusters, histograms, energies and entropies of attention."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from deeplimits.ensembles.transformers.particles import attention_matrix
from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.arguments import Given, known
from deeplimits.numerics.shapes import Scalar

CLUSTERED = 0.999
"""Tokens whose cosine is larger belong together."""
BLOCK = 1024


def clustered_share(
    tokens: Given, *, threshold: Given = CLUSTERED, antipodal: bool = False, normalize: bool = False
) -> Float[Array, "*places"]:
    """The share of ordered pairs i ≠ j with ⟨x_i, x_j⟩ > threshold; with `antipodal`, |⟨x_i, x_j⟩|.

    Tokens (..., n, d), of a path say; row by row where there are very many.

    >>> float(clustered_share(jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])))
    0.3333333333333333
    """
    x = arguments.unit_rows("tokens", tokens, normalize=normalize, many=True)
    level = arguments.number("threshold", threshold, arguments.inside(-1.0, 1.0))
    n = x.shape[-2]
    if n < 2:
        raise ParameterError(f"tokens holds {n} of them; a pair needs two")

    def others(index):
        cosines = jnp.einsum("...d,...jd->...j", jnp.take(x, index, axis=-2), x)
        close = (jnp.abs(cosines) if antipodal else cosines) > level
        # Every token is close to itself.
        return jnp.sum(close, axis=-1, where=jnp.broadcast_to(jnp.arange(n) != index, close.shape)).astype(float)

    if n <= BLOCK:
        gram = jnp.einsum("...id,...jd->...ij", x, x)
        close = (jnp.abs(gram) if antipodal else gram) > level
        found = jnp.sum(close, axis=(-2, -1), where=jnp.broadcast_to(~jnp.eye(n, dtype=bool), close.shape)).astype(
            float
        )
    else:
        found = jnp.sum(jax.lax.map(others, jnp.arange(n), batch_size=BLOCK // 8), axis=0)
    return found / (n * (n - 1.0))


def cluster_labels(tokens: Given, *, threshold: Given = CLUSTERED, normalize: bool = False) -> Int[Array, " n"]:
    """The smallest index of a token in the cluster of each.

    Clusters are the connected components of the graph that joins tokens with ⟨x_i, x_j⟩ > threshold (single linkage).

    >>> cluster_labels(jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])).tolist()
    [0, 1, 0]
    """
    x = arguments.unit_rows("tokens", tokens, normalize=normalize)
    level = arguments.number("threshold", threshold, arguments.inside(-1.0, 1.0))
    n = x.shape[0]
    close = (x @ x.T > level) | jnp.eye(n, dtype=bool)

    def spread(state):
        labels, _ = state
        least = jnp.min(jnp.where(close, labels[None, :], n), axis=1)
        # Follow labels of labels: a chain is walked in a logarithm of its length.
        least = least[least]
        return least, jnp.any(least != labels)

    return jax.lax.while_loop(lambda state: state[1], spread, (jnp.arange(n), jnp.array(True)))[0]


def cluster_count(tokens: Given, *, threshold: Given = CLUSTERED, normalize: bool = False) -> Scalar:
    """How many clusters there are: components of the graph of pairs with ⟨x_i, x_j⟩ > threshold.

    On the circle a gap of 0.05 between neighbours is threshold = cos 0.05.

    >>> float(cluster_count(jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])))
    2.0
    """
    labels = cluster_labels(tokens, threshold=threshold, normalize=normalize)
    return jnp.sum(labels == jnp.arange(labels.shape[0])).astype(float)


def cosine_histogram(tokens: Given, edges: Given, *, normalize: bool = False) -> Int[np.ndarray, " bins"]:
    """How many pairs i < j have ⟨x_i, x_j⟩ in each bin, the last one with its upper end; block by block.

    >>> cosine_histogram([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [-1.0, 0.5, 1.0]).tolist()
    [2, 1]
    """
    x = np.asarray(arguments.unit_rows("tokens", tokens, normalize=normalize))
    marks = np.asarray(arguments.array("edges", edges, ("bins",)))
    if len(marks) < 2 or np.any(np.diff(marks) <= 0):
        raise ParameterError(f"edges = {marks.tolist()} is not allowed; give at least two increasing numbers")
    counts = np.zeros(len(marks) - 1, int)
    for begin in range(0, len(x), BLOCK):
        rows = x[begin : begin + BLOCK]
        # Cosines of equal tokens may exceed one by rounding.
        cosines = np.clip(rows @ x[begin:].T, -1, 1)
        counts += np.histogram(cosines[np.triu_indices(len(rows), 1, len(x) - begin)], marks)[0]
    return counts


def log_energy(tokens: Given, beta: Given, *, score: Given | None = None, normalize: bool = False) -> Scalar:
    """log of (1/2βn²) Σ_ij e^{βx_iᵀBx_j}, β > 0, for any B; it is monotone along the flow only where V = B = Bᵀ.

    >>> round(float(log_energy(jnp.ones((3, 1)), 0.5)), 12)  # e^β/2β
    0.5
    """
    x = arguments.unit_rows("tokens", tokens, normalize=normalize)
    b = arguments.number("beta", beta, arguments.POSITIVE)
    n, d = x.shape
    moved = x if score is None else x @ arguments.array("score", score, (d, d)).T
    return logsumexp(b * (x @ moved.T)) - jnp.log(2.0 * n**2) - jnp.log(b)


def attention_entropy(
    tokens: Given, beta: Given, *, score: Given | None = None, repulsive: bool = False, normalize: bool = False
) -> Float[Array, " n"]:
    """Entropy −Σ_j A_ij log A_ij of each token's attention: log n where it is uniform, 0 where it sees one token.

    >>> attention_entropy(jnp.eye(2), 1e3).tolist()
    [0.0, 0.0]
    """
    weights = attention_matrix(tokens, beta, score=score, repulsive=repulsive, normalize=normalize)
    return jnp.sum(jax.scipy.special.entr(weights), axis=1)


def chord(tokens: Given, *, normalize: bool = False) -> Float[Array, "*places"]:
    """The largest ½|x_i − x_j|² = 1 − ⟨x_i, x_j⟩, without the cancellation that the second form has near a cluster.

    Tokens (..., n, d); one token after the other, so that there are never n² differences.

    >>> float(chord(jnp.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])))
    2.0
    """
    x = arguments.unit_rows("tokens", tokens, normalize=normalize, many=True)

    def farthest(index):
        apart = jnp.take(x, index[None], axis=-2) - x
        return jnp.max(jnp.sum(apart**2, axis=-1), axis=-1)

    return jnp.max(jax.lax.map(farthest, jnp.arange(x.shape[-2])), axis=0) / 2


def time_to_collapse(path: Float[Array, "times n d"], times: Given, *, level: Given = 1e-3) -> float:
    """The first time, between those given, at which `chord` falls below `level`; inf where it does not.

    Between two times the logarithm of the chord is taken to be straight, which it is near a cluster.

    >>> path = jnp.stack([jnp.eye(2), jnp.array([[0.6, 0.8], [0.8, 0.6]])])  # chords 1 and 0.04
    >>> round(time_to_collapse(path, [0.0, 1.0], level=0.2), 12)
    0.5
    """
    moments = np.asarray(arguments.times("times", times))
    bound = float(arguments.number("level", level, arguments.POSITIVE))
    if not known(path) or len(moments) != len(path):
        raise ParameterError(f"times has {len(moments)} entries and path {len(path)}; give one for each")
    logs = np.log(np.maximum(np.asarray(chord(path)), 1e-300))
    below = np.flatnonzero(logs < np.log(bound))
    if not len(below):
        return float("inf")
    last = int(below[0])
    if last == 0:
        return float(moments[0])
    share = (logs[last - 1] - np.log(bound)) / (logs[last - 1] - logs[last])
    return float(moments[last - 1] + share * (moments[last] - moments[last - 1]))
