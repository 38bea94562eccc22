"""Kernel matrices of any size: one triangle if symmetric, in tiles that stay in cache through all layers."""

import functools
import itertools
import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits.numerics.shapes import Floats
from deeplimits.theory.kernels.recursion import (
    Network,
    Points,
    carry,
    carry_to_the_end,
    few_digits,
    first_gaps,
    points,
    products,
    rough_gaps,
)


def usual_tile() -> int:
    """256 × 256 numbers, half a megabyte, stay in a processor's cache; a GPU needs many more to be busy."""
    return 256 if jax.default_backend() == "cpu" else 4096


class Kernels(NamedTuple):
    """Kernels of a network; those that were not asked for are None."""

    nngp: Floats | None = None
    ntk: Floats | None = None
    conjugate: Floats | None = None


@functools.partial(jax.jit, static_argnames=("wanted", "every_layer"))
def diagonal(network: Network, x: Float[Array, "n d"], wanted: tuple[str, ...], every_layer: bool) -> Kernels:
    """K(x, x) of each input: the pair of an input with itself has 1 − ρ = 0 exactly."""
    own = points(network, x)
    gaps = (jnp.zeros(x.shape[0]), jnp.full(x.shape[0], 2.0))
    inner = jnp.sum(own.inputs**2, axis=1) if _needs_inner(network) else None
    return _chosen(network, own, own, gaps, inner, wanted, every_layer)


@functools.partial(jax.jit, static_argnames=("wanted", "every_layer"))
def whole(
    network: Network,
    x1: Float[Array, "m d"],
    x2: Float[Array, "n d"] | None,
    wanted: tuple[str, ...],
    every_layer: bool,
) -> Kernels:
    """The full matrices in one piece: differentiable, for inputs that fit."""
    left = points(network, x1)
    right = left if x2 is None else points(network, x2)
    return _block(network, left, right, wanted, every_layer, 0 if x2 is None else None)


@functools.partial(jax.jit, static_argnames=("wanted", "tile", "overlap"))
def tiled(
    network: Network,
    x1: Float[Array, "m d"],
    x2: Float[Array, "n d"] | None,
    wanted: tuple[str, ...],
    tile: int,
    *,
    overlap: bool = False,
) -> Kernels:
    """The full matrices, tile by tile; beyond the result itself only a few tiles are in memory.

    `overlap` says that x2 begins with the rows of x1, so that there is an exact diagonal.
    """
    left = points(network, x1)
    right = left if x2 is None else points(network, x2)
    rows, columns = left.roots.shape[1], right.roots.shape[1]
    symmetric = x2 is None
    high, wide = (_equal(count, tile) for count in (rows, columns))
    places = _starts(rows, columns, high, wide, symmetric)
    starts = jnp.asarray(places)

    def pieces(index):
        row, column = starts[index, 0], starts[index, 1]
        offset = column - row if symmetric or overlap else None
        return row, column, _rows(left, row, high), _rows(right, column, wide), offset

    def write(results, block, row, column):
        # What a tile is made of is one program: without this line it would be computed in each place it is written to.
        block = jax.lax.optimization_barrier(block)

        def one(result, value):
            if result is None:
                return None
            if symmetric:
                result = jax.lax.dynamic_update_slice(result, value.T, (column, row))
            return jax.lax.dynamic_update_slice(result, value, (row, column))

        return Kernels(*(one(result, value) for result, value in zip(results, block, strict=True)))

    def first(index, state):
        results, close = state
        row, column, above, below, offset = pieces(index)
        product = products(above, below)
        close = close.at[index].set(few_digits(product, _same(above, below, offset)))
        # The layers do not become part of that reduction, as a GPU's compiler would have it: nothing is shared.
        product, offset = jax.lax.optimization_barrier((product, offset))
        gaps = rough_gaps(product, _same(above, below, offset))
        return write(results, _of_gaps(network, above, below, gaps, wanted, False), row, column), close

    def again(index, results):
        row, column, above, below, offset = pieces(close_ones[index])
        return write(results, _block(network, above, below, wanted, False, offset), row, column)

    def mirrored(index, results):
        at = diagonals[index]

        def one(result):
            value = jax.lax.dynamic_slice(result, (at, at), (high, wide))
            value = jax.lax.optimization_barrier(jnp.where(jnp.tri(high, dtype=bool), value.T, value))
            return jax.lax.dynamic_update_slice(result, value, (at, at))

        return jax.tree.map(one, results)

    empty = Kernels(**{name: _unwritten(rows, columns) for name in wanted})
    nowhere = jnp.zeros(len(places), bool)
    results, close = jax.lax.fori_loop(0, len(places), first, (empty, nowhere))
    if network.kinked:
        # Tiles with inputs that nearly coincide, of which there are few or none, are made once more.
        close_ones = jnp.nonzero(close, size=len(places), fill_value=0)[0]
        results = jax.lax.fori_loop(0, jnp.sum(close), again, results)
    if symmetric:
        # On the diagonal the upper half is copied to the lower: the matrix is symmetric to the last bit.
        diagonals = starts[np.flatnonzero(places[:, 0] == places[:, 1]), 0]
        results = jax.lax.fori_loop(0, diagonals.shape[0], mirrored, results)
    return results


def _equal(count: int, tile: int) -> int:
    """The length of as many equal tiles as tiles of this length make: the last need not overlap by much. It is odd, so
    that a GPU's compiler gives one number to a thread and not four, for which there are not enough registers."""
    return min(count, math.ceil(count / math.ceil(count / tile)) | 1)


def _unwritten(rows: int, columns: int) -> Float[Array, "m n"]:
    """A matrix to be filled. Older versions of JAX have none without numbers in it."""
    make = getattr(jax.lax, "empty", None)
    return jnp.zeros((rows, columns)) if make is None else make((rows, columns), jnp.zeros(()).dtype)


def threaded(
    network: Network, x1: Float[Array, "m d"], x2: Float[Array, "n d"] | None, wanted: tuple[str, ...], tile: int
) -> Kernels:
    """`tiled` for the cores of a processor: each thread takes the next tile and writes it into the result."""
    left = _points(network, x1)
    right = left if x2 is None else _points(network, x2)
    rows, columns = left.roots.shape[1], right.roots.shape[1]
    symmetric = x2 is None
    # As many tiles as this size asks for, made equally large: the last ones need not overlap by much.
    high, wide = (math.ceil(count / math.ceil(count / tile)) for count in (rows, columns))
    results = {name: _aligned(rows, columns) for name in wanted}

    def one(start) -> None:
        row, column = int(start[0]), int(start[1])
        block = _tile(network, left, right, row, column, wanted, high, wide, symmetric)
        for name, result in results.items():
            value = np.asarray(getattr(block, name))
            if symmetric:
                if row == column:
                    # The upper half is copied to the lower: the matrix is symmetric to the last bit.
                    value = np.where(np.tri(high, dtype=bool), value.T, value)
                else:
                    result[column : column + wide, row : row + high] = value.T
            result[row : row + high, column : column + wide] = value

    starts = _starts(rows, columns, high, wide, symmetric)
    with ThreadPoolExecutor(_cores()) as pool:
        for _ in pool.map(one, starts):
            pass
    return Kernels(**{name: jax.device_put(result, may_alias=True) for name, result in results.items()})


_points = jax.jit(points)


@functools.partial(jax.jit, static_argnames=("wanted", "high", "wide", "symmetric"))
def _tile(network, left, right, row, column, wanted, high, wide, symmetric) -> Kernels:
    offset = column - row if symmetric else None
    return _block(network, _rows(left, row, high), _rows(right, column, wide), wanted, False, offset)


def _aligned(rows: int, columns: int) -> np.ndarray:
    """An empty matrix whose memory JAX can take over without copying it: aligned to 64 bytes."""
    kind = np.dtype(jnp.zeros(()).dtype)
    memory = np.empty(rows * columns * kind.itemsize + 64, np.uint8)
    skip = -memory.ctypes.data % 64
    return memory[skip : skip + rows * columns * kind.itemsize].view(kind).reshape(rows, columns)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_all_devices(
    network: Network, x1: Float[Array, "m d"], x2: Float[Array, "n d"] | None, wanted: tuple[str, ...], tile: int
) -> Kernels:
    """`tiled`, with the work shared among the devices of the default backend where there are several."""
    devices = jax.devices()
    if len(devices) == 1 or x1.shape[0] < len(devices):
        run = threaded if jax.default_backend() == "cpu" else tiled
        return run(network, x1, x2, wanted, tile)
    rows, count = x1.shape[0], len(devices)
    shares = np.arange(count + 1) / count
    # Bands of rows: equal ones, or, if only the triangle right of the diagonal is computed, of equal area.
    ends = np.round(rows * (shares if x2 is not None else 1 - np.sqrt(1 - shares))).astype(int)
    bands = [(low, high) for low, high in itertools.pairwise(ends.tolist()) if high > low]
    parts = []
    for device, (low, high) in zip(devices, bands, strict=False):
        columns = x1[low:] if x2 is None else x2
        arguments = jax.device_put((network, x1[low:high], columns), device)
        parts.append(tiled(*arguments, wanted, tile, overlap=x2 is None))
    parts = [jax.device_put(part, devices[0]) for part in parts]
    if x2 is not None:
        return jax.tree.map(lambda *found: jnp.concatenate(found), *parts)

    def mirrored(*found):
        result = jnp.zeros((rows, rows))
        for (low, high), band in zip(bands, found, strict=True):
            square = jnp.triu(band[:, : high - low])
            result = result.at[low:high, low:high].set(square + jnp.triu(square, 1).T)
            result = result.at[low:high, high:].set(band[:, high - low :])
            result = result.at[high:, low:high].set(band[:, high - low :].T)
        return result

    return jax.tree.map(mirrored, *parts)


def _block(network, left, right, wanted, every_layer, offset) -> Kernels:
    """Kernels of all pairs of a left and a right input; `offset` is where the diagonal of equal inputs lies, if any."""
    gaps = first_gaps(left, right, _same(left, right, offset), exact=network.kinked)
    return _of_gaps(network, left, right, gaps, wanted, every_layer)


def _same(left, right, offset):
    if offset is None:
        return None
    return jnp.arange(left.roots.shape[1])[:, None] == jnp.arange(right.roots.shape[1])[None, :] + offset


def _of_gaps(network, left, right, gaps, wanted, every_layer) -> Kernels:
    inner = left.inputs @ right.inputs.T if _needs_inner(network) else None
    column = Points(left.directions, left.inputs, left.roots[:, :, None], left.features[:, :, None])
    row = Points(right.directions, right.inputs, right.roots[:, None, :], right.features[:, None, :])
    return _chosen(network, column, row, gaps, inner, wanted, every_layer)


def _chosen(network, left, right, gaps, inner, wanted, every_layer) -> Kernels:
    tangent = "ntk" in wanted
    if every_layer:
        features, nngp, ntk = carry(network, left, right, gaps, inner, tangent)
    else:
        features, nngp, ntk = carry_to_the_end(network, left, right, gaps, inner, tangent)
    if network.net.parametrization == "mup":
        # The output itself vanishes like 1/√width.
        nngp = nngp.at[-1].set(0.0) if every_layer else jnp.zeros_like(nngp)
    everything = {"nngp": nngp, "ntk": ntk, "conjugate": features}
    return Kernels(**{name: everything[name] for name in wanted})


def _needs_inner(network: Network) -> bool:
    return network.net.parametrization == "standard"


def _rows(given: Points, start, count: int) -> Points:
    def part(array, axis):
        return jax.lax.dynamic_slice_in_dim(array, start, count, axis)

    return Points(part(given.directions, 0), part(given.inputs, 0), part(given.roots, 1), part(given.features, 1))


def _starts(rows: int, columns: int, high: int, wide: int, symmetric: bool) -> np.ndarray:
    """First row and column of each tile; the last tile ends where the matrix ends and overlaps its neighbour."""
    down = np.minimum(np.arange(0, rows, high), rows - high)
    across = np.minimum(np.arange(0, columns, wide), columns - wide)
    return np.array([(i, j) for i in down for j in across if not symmetric or j >= i])
