"""One step of attention for very many tokens, tile by tile: no n × n matrix, memory of the order of n·d.

Rows of the attention matrix are normalized on the way: the running maximum m_i and sum Z_i of a row are carried from
tile to tile, and what was added before is rescaled when the maximum moves. Without a layer the matrix of e^{β⟨x_i,x_j⟩}
is symmetric and its largest entry in every row is its own, e^β: each tile off the diagonal then serves two blocks of
rows, which saves a quarter of the products and half of the exponentials.

Tiles of a CPU stay in its cache. An accelerator is kept waiting by many small programs: there they are as large as
`TILE_BYTES` allows, all of one size, a multiple of `LANES`, and the loops over them have a length that is known
beforehand. Up to 16,384 tokens in single precision are then one tile.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.ensembles.transformers.particles import KINDS, AttentionLayer, check_layer, finite
from deeplimits.models.activations import activation as named
from deeplimits.numerics import arguments
from deeplimits.numerics.arguments import Given
from deeplimits.numerics.precision import full_products

CPU_BLOCK = 512
"""Tiles that stay in a cache."""
TILE_BYTES, LANES = 2**30, 128
"""What a tile of an accelerator may take; sides that divide its work evenly."""


def tile_side(n: int, itemsize: int, accelerator: bool) -> int:
    """The side of the tiles of n × n scores.

    >>> [tile_side(n, 4, True) for n in (1000, 10_000, 100_000)]  # 1, 1 and 7 × 7 of them
    [1024, 10112, 14336]
    >>> tile_side(100_000, 4, False)
    512
    """
    if not accelerator:
        return min(CPU_BLOCK, n)
    most = max(LANES, math.isqrt(TILE_BYTES // itemsize) // LANES * LANES)
    side = -(-n // -(-n // most))
    return -(-side // LANES) * LANES


def on_accelerator() -> bool:
    """Whether arrays lie on a GPU or TPU."""
    return jax.default_backend() != "cpu"


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

    Without a `block`, tiles of 512 on a CPU and of at most 1 GiB on an accelerator. Time n²d, memory n·d and a tile or
    two. Safe at every β: no exponential exceeds one.

    >>> x = jnp.array([[1.0, 0.0], [0.6, 0.8], [-0.8, 0.6]])
    >>> bool(jnp.all(jnp.isfinite(blockwise_velocity(x, 1e3, block=2))))
    True
    """
    arguments.choice("kind", kind, KINDS)
    b = arguments.number("beta", beta, arguments.NOT_NEGATIVE)
    asked = None if block is None else arguments.whole("block", block, 1)
    x = arguments.unit_rows("tokens", tokens, normalize=normalize, single=True)
    b, shifted = b.astype(x.dtype), arguments.number("shift", shift, arguments.FINITE).astype(x.dtype)
    apart = on_accelerator()
    size = tile_side(len(x), x.dtype.itemsize, apart) if asked is None else min(asked, len(x))
    if layer is None:
        found = _symmetric(x, b, shifted, kind, size, apart)
        # A mean of tokens is finite, and looking at it would wait for it.
        return found if kind == "softmax" else finite(found)
    check_layer(layer, x.shape[1])
    scores, values = (jnp.asarray(part).astype(x.dtype) for part in (layer.scores, layer.values))
    pull = _attended(x, b, shifted, scores, values, kind, size, apart)
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


def _weighed(weights, rows, there, apart):
    """Σ_j w_ij (x_j, 1) over the rows that are there.

    One product with a column of ones beside the rows; `apart`, the sum by itself: the products of accelerators are slow
    where a side is odd.
    """
    if not apart:
        return weights @ jnp.concatenate([rows, there[:, None]], axis=1)
    sums = jnp.sum(weights * there[None, :], axis=1, keepdims=True)
    return jnp.concatenate([weights @ rows, sums], axis=1)


@functools.partial(jax.jit, static_argnums=(3, 4, 5))
def _symmetric(x, beta, shift, kind, block, apart):
    n, d = x.shape
    parts, there = _blocks(x, block)
    count = parts.shape[0]

    def weights(i, j):
        # e^{β(⟨x_i,x_j⟩ − 1)}, at most one
        return jnp.exp(beta * (parts[i] @ parts[j].T - 1))

    def own(i, total):
        return total.at[i].add(_weighed(weights(i, i), parts[i], there[i], apart))

    def pair(k, total):
        # Every pair of blocks once: at a distance of 1, 2, … around a circle.
        i = k % count
        j = (i + k // count + 1) % count
        e = weights(i, j)
        total = total.at[i].add(_weighed(e, parts[j], there[j], apart))
        return total.at[j].add(_weighed(e.T, parts[i], there[i], apart))

    total = jax.lax.fori_loop(0, count, own, jnp.zeros((count, block, d + 1), x.dtype))
    total = jax.lax.fori_loop(0, count * (count - 1) // 2, pair, total)
    total = total.reshape(count * block, d + 1)[:n]
    scale = total[:, -1:] if kind == "softmax" else n * jnp.exp(shift - beta)
    return _project(x, total[:, :-1] / scale)


@functools.partial(jax.jit, static_argnums=(5, 6, 7))
def _attended(x, beta, shift, scores, values, kind, block, apart):
    """Σ_h Σ_j A^h_ij V_h x_j."""
    n, d = x.shape
    parts, there = _blocks(x, block)
    pull = jnp.zeros_like(x)
    for score, value in zip(scores, values, strict=True):
        carried, _ = _blocks(x @ value.T, block)
        queries = parts @ score
        rows = functools.partial(_rows, keys=parts, values=carried, there=there, beta=beta, apart=apart)
        total, top = jax.lax.map(rows, queries)
        total, top = total.reshape(-1, d + 1)[:n], top.reshape(-1, 1)[:n]
        scale = total[:, -1:] if kind == "softmax" else n * jnp.exp(shift - top)
        pull = pull + total[:, :-1] / scale
    return pull


def _rows(query, keys, values, there, beta, apart):
    """Σ_j e^{s_j − m} (v_j, 1) and m = max s_j for the rows of one block, tile by tile."""

    def tile(carry, now):
        total, top = carry
        key, value, here = now
        scores = jnp.where(here[None, :] > 0, beta * (query @ key.T), -jnp.inf)
        new = jnp.maximum(top, jnp.max(scores, axis=1, keepdims=True))
        total = jnp.exp(top - new) * total + _weighed(jnp.exp(scores - new), value, here, apart)
        return (total, new), None

    rows = query.shape[0]
    start = jnp.zeros((rows, values.shape[2] + 1), query.dtype), jnp.full((rows, 1), -jnp.inf, query.dtype)
    return jax.lax.scan(tile, start, (keys, values, there))[0]
