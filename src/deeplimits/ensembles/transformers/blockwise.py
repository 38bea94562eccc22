"""One step of attention for very many tokens, tile by tile: no n × n matrix, memory of the order of n·d.

Rows of the attention matrix are normalized on the way: the running maximum m_i and sum Z_i of a row are carried from
tile to tile, and what was added before is rescaled when the maximum moves. Without a layer the matrix of e^{β⟨x_i,x_j⟩}
is symmetric and its largest entry in every row is its own, e^β: each tile below the diagonal then serves two blocks of
rows, which saves a quarter of the products and half of the exponentials.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.ensembles.transformers.particles import KINDS, AttentionLayer, check_layer, finite
from deeplimits.models.activations import activation as named
from deeplimits.numerics import arguments
from deeplimits.numerics.arguments import Given
from deeplimits.numerics.precision import full_products

CPU_BLOCK, ACCELERATOR_BLOCK = 512, 8192
"""Tiles that stay in a cache; and tiles that keep an accelerator busy."""


@full_products
def blockwise_velocity(
    tokens: Given,
    beta: Given,
    *,
    layer: AttentionLayer | None = None,
    kind: str = "softmax",
    shift: Given = 0.0,
    block: int | None = None,
    normalize: bool = False,
) -> Float[Array, "n d"]:
    """`attention_velocity` of a hundred thousand tokens, by tiles of `block` × `block` scores, in their own precision.

    Time n²d, memory n·d. Safe at every β: no exponential exceeds one.

    >>> x = jnp.array([[1.0, 0.0], [0.6, 0.8], [-0.8, 0.6]])
    >>> bool(jnp.all(jnp.isfinite(blockwise_velocity(x, 1e3, block=2))))
    True
    """
    arguments.choice("kind", kind, KINDS)
    b = arguments.number("beta", beta, arguments.NOT_NEGATIVE)
    usual = CPU_BLOCK if jax.default_backend() == "cpu" else ACCELERATOR_BLOCK
    size = arguments.whole("block", usual if block is None else block, 1)
    x = arguments.unit_rows("tokens", tokens, normalize=normalize, single=True)
    b, shifted = b.astype(x.dtype), arguments.number("shift", shift, arguments.FINITE).astype(x.dtype)
    size = min(size, x.shape[0])
    if layer is None:
        return finite(_symmetric(x, b, shifted, kind, size))
    check_layer(layer, x.shape[1])
    scores, values = (jnp.asarray(part).astype(x.dtype) for part in (layer.scores, layer.values))
    pull = _attended(x, b, shifted, scores, values, kind, size)
    if layer.feed_forward is not None:
        out, into, bias, activation = layer.feed_forward
        hidden = x @ jnp.asarray(into).T.astype(x.dtype) + jnp.asarray(bias)[None, :].astype(x.dtype)
        pull = pull + named(activation).value(hidden) @ jnp.asarray(out).T.astype(x.dtype)
    return finite(_project(x, pull))


def _blocks(x, block):
    """x cut into blocks of rows, the last one filled up with zeros, and which rows are there."""
    n = x.shape[0]
    count = -(-n // block)
    padded = jnp.pad(x, ((0, count * block - n), (0, 0)))
    there = (jnp.arange(count * block) < n).astype(x.dtype)
    return padded.reshape(count, block, -1), there.reshape(count, block)


def _project(x, pull):
    return pull - jnp.sum(pull * x, axis=1, keepdims=True) * x


@functools.partial(jax.jit, static_argnums=(3, 4))
def _symmetric(x, beta, shift, kind, block):
    n, d = x.shape
    parts, there = _blocks(x, block)
    count = parts.shape[0]
    # A column of ones beside the tokens sums the weights in the same product.
    carried = jnp.concatenate([parts, there[:, :, None]], axis=2)

    def weights(i, j):
        # e^{β(⟨x_i,x_j⟩ − 1)}, at most one
        return jnp.exp(beta * (parts[i] @ parts[j].T - 1))

    def row(i, total):
        def tile(j, total):
            e = weights(i, j)
            total = total.at[i].add(e @ carried[j])
            return total.at[j].add(e.T @ carried[i])

        total = jax.lax.fori_loop(0, i, tile, total)
        return total.at[i].add(weights(i, i) @ carried[i])

    total = jax.lax.fori_loop(0, count, row, jnp.zeros((count, block, d + 1), x.dtype))
    total = total.reshape(count * block, d + 1)[:n]
    scale = total[:, -1:] if kind == "softmax" else n * jnp.exp(shift - beta)
    return _project(x, total[:, :-1] / scale)


@functools.partial(jax.jit, static_argnums=(5, 6))
def _attended(x, beta, shift, scores, values, kind, block):
    """Σ_h Σ_j A^h_ij V_h x_j."""
    n, d = x.shape
    parts, there = _blocks(x, block)
    pull = jnp.zeros_like(x)
    for score, value in zip(scores, values, strict=True):
        carried, _ = _blocks(x @ value.T, block)
        carried = jnp.concatenate([carried, there[:, :, None]], axis=2)
        queries = parts @ score
        rows = functools.partial(_rows, keys=parts, values=carried, there=there, beta=beta)
        total, top = jax.lax.map(rows, queries)
        total, top = total.reshape(-1, d + 1)[:n], top.reshape(-1, 1)[:n]
        scale = total[:, -1:] if kind == "softmax" else n * jnp.exp(shift - top)
        pull = pull + total[:, :-1] / scale
    return pull


def _rows(query, keys, values, there, beta):
    """Σ_j e^{s_j − m} (v_j, 1) and m = max s_j for the rows of one block, tile by tile."""

    def tile(carry, now):
        total, top = carry
        key, value, here = now
        scores = jnp.where(here[None, :] > 0, beta * (query @ key.T), -jnp.inf)
        new = jnp.maximum(top, jnp.max(scores, axis=1, keepdims=True))
        total = jnp.exp(top - new) * total + jnp.exp(scores - new) @ value
        return (total, new), None

    rows = query.shape[0]
    start = jnp.zeros((rows, values.shape[2]), query.dtype), jnp.full((rows, 1), -jnp.inf, query.dtype)
    return jax.lax.scan(tile, start, (keys, values, there))[0]
