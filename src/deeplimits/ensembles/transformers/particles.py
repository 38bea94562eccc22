"""Self-attention as a flow of tokens on the unit sphere, and layer by layer with a step.

Rows of `tokens` are unit vectors. A layer has heads with score matrices B = QᵀK and value matrices V, and may have a
feed-forward part; without a layer B = V = I. `kind` is "softmax" (SA) or "unnormalized" (USA, sums divided by n).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.nn import softmax
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import arguments, flows
from deeplimits.numerics.arguments import Given, known

KINDS = ("softmax", "unnormalized")
OVERFLOW = (
    "attention without its normalization is too large for numbers; give shift, β times the largest score of a pair"
)
WHY_NOT_NEGATIVE = "repulsive=True allows β < 0, at which tokens attend to those that are unlike them"


class FeedForward(NamedTuple):
    """w σ(a x + b), added inside the projection."""

    out: Float[Array, "d m"]
    into: Float[Array, "m d"]
    bias: Float[Array, " m"]
    activation: ActivationLike = "tanh"


class AttentionLayer(NamedTuple):
    """Score matrices QᵀK and value matrices V of all heads, whose fields are added, and a feed-forward part."""

    scores: Float[Array, "heads d d"]
    values: Float[Array, "heads d d"]
    feed_forward: FeedForward | None = None


LayerLike = AttentionLayer | Callable[[Array], AttentionLayer] | None
"""A layer, or one for every time, or none for B = V = I."""


def attention_layer(
    queries: Given, keys: Given, values: Given, *, feed_forward: FeedForward | None = None
) -> AttentionLayer:
    """A layer from Q, K (k, d) and V (d, d), or of several heads with an axis in front; heads are added, not averaged.

    ⟨Qx_i, Kx_j⟩ = x_iᵀ(QᵀK)x_j.

    >>> attention_layer(jnp.eye(2), 2 * jnp.eye(2), jnp.eye(2)).scores.tolist()
    [[[2.0, 0.0], [0.0, 2.0]]]
    """
    q, k, v = (
        arguments.array(name, given, ("k", "d"), ("heads", "k", "d"))
        for name, given in (("queries", queries), ("keys", keys), ("values", values))
    )
    q, k, v = (part if part.ndim == 3 else part[None] for part in (q, k, v))
    if q.shape != k.shape or v.shape[1] != v.shape[2] or v.shape[0] != q.shape[0] or v.shape[2] != q.shape[2]:
        raise ParameterError(
            f"queries, keys and values have shapes {q.shape}, {k.shape} and {v.shape}; they must be (heads, k, d), "
            "(heads, k, d) and (heads, d, d)"
        )
    return AttentionLayer(jnp.einsum("hkd,hke->hde", q, k), v, feed_forward)


def on_the_sphere(tokens: Given, *, normalize: bool = False) -> Float[Array, "n d"]:
    """Tokens as an array of unit rows: refused where they are not, scaled to length one where `normalize`.

    >>> on_the_sphere([[0.0, 4.0]], normalize=True).tolist()
    [[0.0, 1.0]]
    """
    return arguments.unit_rows("tokens", tokens, normalize=normalize)


def attention_matrix(
    tokens: Given,
    beta: Given,
    *,
    score: Given | None = None,
    repulsive: bool = False,
    normalize: bool = False,
) -> Float[Array, "n n"]:
    """The rows A_i = softmax(β x_iᵀB x_j)_j; the largest score of a row is taken off first.

    Negative β only where `repulsive` says that it is meant.

    >>> attention_matrix(jnp.eye(2), jnp.log(3.0)).round(12).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    x, b = _checked(tokens, beta, None, "softmax", repulsive, normalize)
    form = None if score is None else arguments.array("score", score, (x.shape[1], x.shape[1]))
    return softmax(b * _scores(x, form), axis=1)


def _scores(tokens, score):
    return tokens @ tokens.T if score is None else tokens @ score @ tokens.T


def _pull(tokens, beta, layer, kind, shift):
    """Σ_h Σ_j A^h_ij V_h x_j + w σ(a x_i + b), before the projection."""

    def weights(score):
        scores = beta * _scores(tokens, score)
        return softmax(scores, axis=1) if kind == "softmax" else jnp.exp(scores - shift) / tokens.shape[0]

    if layer is None and kind == "softmax" and isinstance(beta, float):
        # β = 0, known before anything runs: all weights are 1/n.
        return jnp.broadcast_to(jnp.mean(tokens, axis=0, keepdims=True), tokens.shape)
    if layer is None:
        return weights(None) @ tokens
    total = jnp.zeros_like(tokens)
    for score, value in zip(layer.scores, layer.values, strict=True):
        total = total + weights(score) @ (tokens @ value.T)
    if layer.feed_forward is not None:
        out, into, bias, activation = layer.feed_forward
        total = total + named(activation).value(tokens @ into.T + bias[None, :]) @ out.T
    return total


def _project(tokens, vectors):
    return vectors - jnp.sum(vectors * tokens, axis=1, keepdims=True) * tokens


def attention_velocity(
    tokens: Given,
    beta: Given,
    *,
    layer: AttentionLayer | None = None,
    kind: str = "softmax",
    shift: Given = 0.0,
    repulsive: bool = False,
    normalize: bool = False,
) -> Float[Array, "n d"]:
    """ẋ_i = P^⊥ [Σ_h Σ_j A^h_ij V_h x_j + w σ(a x_i + b)], tangent to the sphere.

    Negative β only where `repulsive` says that it is meant. In USA, `shift` measures time in units of e^{−shift}: with
    shift = β nothing overflows at any β.

    >>> x = jnp.array([[1.0, 0.0], [0.6, 0.8], [-0.8, 0.6]])
    >>> layer = attention_layer(jnp.array([[1.0, 0.5], [0.0, 1.0]]), jnp.eye(2), jnp.array([[1.0, 0.2], [-0.3, 0.7]]))
    >>> bool(abs(attention_velocity(x, 1.7, layer=layer)[0, 1] + 0.049269026780) < 1e-11)
    True
    """
    x, b = _checked(tokens, beta, layer, kind, repulsive, normalize)
    return finite(_project(x, _pull(x, b, layer, kind, shift)))


def finite(velocity: Float[Array, "*places n d"]) -> Float[Array, "*places n d"]:
    """What has not overflowed, which only attention without its normalization can."""
    if known(velocity) and not bool(jnp.all(jnp.isfinite(velocity))):
        raise ParameterError(OVERFLOW)
    return velocity


def attention_flow(
    tokens: Given,
    times: Given,
    beta: Given,
    *,
    layer: LayerLike = None,
    kind: str = "softmax",
    shift: Given = 0.0,
    repulsive: bool = False,
    normalize: bool = False,
    stiff: bool = False,
    rtol: float = 1e-11,
) -> Float[Array, "times n d"]:
    """The tokens at increasing times, on the sphere to rounding; `layer` may be a function of time.

    What is integrated is y with x = y/|y|, ẏ = |y| v(x): lengths that drift change no direction, and are divided out.

    >>> path = attention_flow(jnp.eye(2), [0.0, 50.0], 1.0)
    >>> path.shape, bool(jnp.max(jnp.abs(path[1] - jnp.sqrt(0.5))) < 1e-9)  # both in the middle
    ((2, 2, 2), True)
    """
    first = layer(jnp.zeros(())) if callable(layer) else layer
    x, b = _checked(tokens, beta, first, kind, repulsive, normalize)

    field = _on_directions(b, layer, kind, shift)
    path = flows.solve(field, x, times, rtol=rtol, atol=1e-13, stiff=stiff).states
    return path / jnp.linalg.norm(path, axis=2, keepdims=True)


def attention_layers(
    tokens: Given,
    beta: Given,
    step: Given,
    steps: int,
    *,
    layer: LayerLike = None,
    kind: str = "softmax",
    projected: bool = True,
    shift: Given = 0.0,
    repulsive: bool = False,
    normalize: bool = False,
) -> Float[Array, "steps+1 n d"]:
    """A transformer of so many layers: x ← normalized(x + h v(x)), and the tokens before and after each.

    With `projected=False`, as real layers do, what is added is not projected first: the effective step is then
    h/(1 + h⟨x_i, v_i⟩), smaller by up to 1 + h near a cluster. A `layer` of time is taken at t = 0, h, 2h, …

    >>> path = attention_layers(jnp.eye(2), 0.0, 1.0, 1)
    >>> path.shape, [round(float(part), 12) for part in path[1, 0] ** 2]  # (1, 0) + (0, 1/2), of length one
    ((2, 2, 2), [0.8, 0.2])
    """
    first = layer(jnp.zeros(())) if callable(layer) else layer
    x, b = _checked(tokens, beta, first, kind, repulsive, normalize)
    h = arguments.number("step", step, arguments.POSITIVE)
    arguments.whole("steps", steps, 1)

    def advance(here, t):
        following = _advanced(here, t, b, h, layer, kind, projected, shift)
        return following, following

    _, path = jax.lax.scan(advance, x, h * jnp.arange(float(steps)))
    return finite(jnp.concatenate([x[None], path]))


def after_layers(
    tokens: Given,
    beta: Given,
    step: Given,
    steps: Given,
    *,
    layer: LayerLike = None,
    kind: str = "softmax",
    projected: bool = True,
    shift: Given = 0.0,
    repulsive: bool = False,
    normalize: bool = False,
) -> Float[Array, "n d"]:
    """The tokens after so many layers alone, as `attention_layers` has them; `steps` may be traced.

    >>> [round(float(part), 12) for part in after_layers(jnp.eye(2), 0.0, 1.0, 1)[0] ** 2]
    [0.8, 0.2]
    """
    first = layer(jnp.zeros(())) if callable(layer) else layer
    x, b = _checked(tokens, beta, first, kind, repulsive, normalize)
    h = arguments.number("step", step, arguments.POSITIVE)
    count = arguments.number("steps", steps, arguments.COUNT)

    def advance(k, here):
        return _advanced(here, h * k, b, h, layer, kind, projected, shift)

    return finite(jax.lax.fori_loop(0, count.astype(int), advance, x))


def _advanced(here, time, beta, step, layer, kind, projected, shift):
    pull = _pull(here, beta, layer(time) if callable(layer) else layer, kind, shift)
    moved = here + step * (_project(here, pull) if projected else pull)
    return moved / jnp.linalg.norm(moved, axis=1, keepdims=True)


def attention_until(
    tokens: Given,
    beta: Given,
    happened: Callable[[Array], Array],
    *,
    layer: AttentionLayer | None = None,
    kind: str = "softmax",
    shift: Given = 0.0,
    latest: Given = jnp.inf,
    stiff: bool = False,
    rtol: float = 1e-11,
    otherwise: str = "what was waited for did not happen",
) -> flows.Reached:
    """The time at which `happened(tokens)` first holds, to rounding, and the tokens then.

    >>> found = attention_until(jnp.eye(2), 0.0, lambda x: x[0] @ x[1] > 0.5)
    >>> round(float(found.state[0] @ found.state[1]), 9)
    0.5
    """
    x, b = _checked(tokens, beta, layer, kind, False, False)

    def unit(y):
        return y / jnp.linalg.norm(y, axis=1, keepdims=True)

    field = _on_directions(b, layer, kind, shift)

    found = flows.solve_until(
        field, x, lambda t, y: happened(unit(y)), latest=latest, exactly=True, rtol=rtol, atol=1e-13, stiff=stiff,
        otherwise=otherwise,
    )  # fmt: skip
    return found._replace(state=unit(found.state))


def _on_directions(beta, layer, kind, shift):
    """ẏ = |y| v(y/|y|), whose directions move by v whatever becomes of the lengths."""

    def field(t, y):
        length = jnp.linalg.norm(y, axis=1, keepdims=True)
        here = y / length
        now = layer(t) if callable(layer) else layer
        return length * _project(here, _pull(here, beta, now, kind, shift))

    return field


def _checked(tokens, beta, layer, kind, repulsive, normalize):
    arguments.choice("kind", kind, KINDS)
    x = on_the_sphere(tokens, normalize=normalize)
    b = arguments.number("beta", beta, arguments.FINITE if repulsive else arguments.NOT_NEGATIVE, WHY_NOT_NEGATIVE)
    if layer is not None:
        check_layer(layer, x.shape[1])
    return x, 0.0 if isinstance(beta, int | float) and beta == 0 else b


def check_layer(layer: AttentionLayer, dimension: int) -> None:
    """A layer whose matrices fit tokens of this dimension, or a sentence that says which does not."""
    d = dimension
    scores = arguments.array("scores", layer.scores, ("heads", d, d), why="one square matrix a head")
    arguments.array("values", layer.values, (scores.shape[0], d, d), why="one square matrix a head")
    if layer.feed_forward is not None:
        out, into, bias, activation = layer.feed_forward
        m = arguments.array("bias", bias, ("m",), why="one number for each hidden unit").shape[0]
        arguments.array("out", out, (d, m), why="from the hidden units to a token")
        arguments.array("into", into, (m, d), why="from a token to the hidden units")
        named(activation)
