r"""How many linear regions there can be: arrangements of hyperplanes, activation patterns, one layer, sawtooths."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError, TooCostly
from deeplimits.numerics.arguments import Allowed, array, number, whole
from deeplimits.theory.expressivity.paths import hidden_widths

MOST_HYPERPLANES, MOST_DIMENSIONS = 1_000_000, 1_000
MOST_SEARCHED = 3_000_000
"""Subarrangements that deletion and restriction may visit."""


class Cells(NamedTuple):
    """How many cells there are, and how many of them are bounded."""

    cells: int
    bounded: int


def cell_count(hyperplanes: int, dimension: int, *, central: bool = False) -> Cells:
    r"""The cells of hyperplanes in general position.

    Setting     n = `hyperplanes` in R^d; `central`: all through one point, otherwise in general position
    Result      Σ_{i≤d} C(n, i) cells, C(n−1, d) of them bounded; 2 Σ_{i<d} C(n−1, i) cells of central ones, none
                bounded
    Validity    general position, which random hyperplanes have almost surely; 2^n cells for n ≤ d
    References  zaslavsky1975

    >>> cell_count(10, 2), cell_count(5, 8).cells, cell_count(4, 2, central=True).cells
    (Cells(cells=56, bounded=36), 32, 8)
    """
    n, d = whole("hyperplanes", hyperplanes, 0), whole("dimension", dimension, 1)
    if n > MOST_HYPERPLANES or min(n, d) > MOST_DIMENSIONS:
        raise TooCostly(
            f"the cells of {n} hyperplanes in {d} dimensions are a number of too many digits; take at most "
            f"{MOST_HYPERPLANES} hyperplanes, and at most {MOST_DIMENSIONS} of them or of dimensions"
        )
    if central:
        return Cells(2 * sum(math.comb(n - 1, i) for i in range(min(d, n))) if n else 1, 0)
    return Cells(sum(math.comb(n, i) for i in range(min(d, n) + 1)), math.comb(n - 1, d) if n > d else 0)


def arrangement_cells(normals: ArrayLike, offsets: ArrayLike, *, tolerance: float = 1e-9) -> Cells:
    r"""The cells of any arrangement of hyperplanes, however degenerate.

    Setting     hyperplanes {x: w_j·x + b_j = 0} with w_j the rows of `normals`, b_j = `offsets`; parallel ones, equal
                ones, many through one point are allowed
    Result      (−1)^d χ(−1) cells and (−1)^r χ(1) bounded ones if r = d, χ the characteristic polynomial, by
                χ(A) = χ(A without H) − χ(A on H)
    Validity    hyperplanes that agree within `tolerance`, relative to their size, count as equal. In dimension d the
                work grows as n^d/d!
    References  zaslavsky1975

    >>> arrangement_cells([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, 0.0])  # three lines through one point
    Cells(cells=6, bounded=0)
    """
    w = np.asarray(array("normals", normals, ("n", "d"), why="one hyperplane in each row"))
    b = np.asarray(array("offsets", offsets, (len(w),), why="one for each row of normals"))
    near = float(number("tolerance", tolerance, Allowed(lambda x: (x > 0) & (x < 1e-2), "above 0 and below 0.01")))
    sizes = np.linalg.norm(w, axis=1)
    if not np.all(sizes > 0):
        row = int(np.argmin(sizes))
        raise ParameterError(f"normals[{row}] is zero; a hyperplane needs a direction")
    n, d = w.shape
    if sum(math.comb(n, i) for i in range(min(d, n))) > MOST_SEARCHED:
        raise TooCostly(f"{n} hyperplanes in {d} dimensions have too many intersections to visit; take fewer")
    spread = max(float(np.abs(b / sizes).max()), 1e-300)
    # In coordinates in which the hyperplanes are about as far away as they are long
    rows = np.concatenate([w / sizes[:, None], (b / sizes / spread)[:, None]], axis=1)
    polynomial = _characteristic(rows, d, near)
    cells = abs(int(sum(one * (-1) ** power for power, one in enumerate(polynomial))))
    rank = np.linalg.matrix_rank(w / sizes[:, None], tol=near * math.sqrt(n))
    return Cells(cells, abs(int(sum(polynomial))) if rank == d else 0)


def _characteristic(rows: np.ndarray, dimension: int, near: float) -> list[int]:
    """Coefficients of χ in ascending powers: t^d − Σ_j χ(those before j, on H_j)."""
    found = [0] * dimension + [1]
    kept = _different(rows, near)
    for place in range(len(kept)):
        smaller = _restricted(kept[:place], kept[place], near)
        for power, one in enumerate(_characteristic(smaller, dimension - 1, near)):
            found[power] -= one
    return found


def _different(rows: np.ndarray, near: float) -> np.ndarray:
    """Each hyperplane once; rows are unit normals with an offset."""
    kept: list[np.ndarray] = []
    for row in rows:
        same = any(min(np.abs(row - one).max(), np.abs(row + one).max()) <= near for one in kept)
        if not same:
            kept.append(row)
    return np.array(kept).reshape(-1, rows.shape[1])


def _restricted(rows: np.ndarray, wall: np.ndarray, near: float) -> np.ndarray:
    """The hyperplanes as seen inside one of them; parallel ones do not meet it."""
    normal, offset = wall[:-1], wall[-1]
    if len(normal) == 1:
        # Points of a line do not meet each other.
        return np.zeros((0, 1))
    basis = np.linalg.svd(normal[None, :])[2][1:]
    inside = rows[:, :-1] @ basis.T
    at = rows[:, -1] - offset * (rows[:, :-1] @ normal)
    sizes = np.linalg.norm(inside, axis=1)
    meets = sizes > near
    return np.concatenate([inside, at[:, None]], axis=1)[meets] / sizes[meets][:, None]


class PatternBounds(NamedTuple):
    """Bounds on the number of linear regions of a network."""

    signs: int
    """3^N: each of N neurons negative, zero or positive"""
    patterns: int
    """2^N: each neuron on or off"""
    layers: int
    """Π_l Σ_{j ≤ min(n_0, …, n_l)} C(n_l, j)"""


def activation_region_bound(inputs: int, hidden: Sequence[int]) -> PatternBounds:
    r"""Bounds on the number of linear regions of a ReLU network, from what its activation patterns can be.

    Setting     n_0 = `inputs`, hidden widths n_1 … n_L, N neurons together
    Result      regions ≤ Π_l Σ_{j ≤ min(n_0, …, n_l)} C(n_l, j) ≤ 2^N < 3^N
    Validity    every ReLU network
    References  serra2018; montufar2017

    >>> activation_region_bound(2, [3, 3])
    PatternBounds(signs=729, patterns=64, layers=49)
    """
    smallest, widths = whole("inputs", inputs, 1), hidden_widths(hidden)
    if sum(widths) > MOST_HYPERPLANES // 10 or max((min(n, smallest) for n in widths), default=0) > MOST_DIMENSIONS:
        raise TooCostly("the bounds are numbers of too many digits; take fewer neurons or inputs")
    product = 1
    for n in widths:
        smallest = min(smallest, n)
        product *= sum(math.comb(n, j) for j in range(smallest + 1))
    total = sum(widths)
    return PatternBounds(3**total, 2**total, product)


class Pieces(NamedTuple):
    """A piecewise linear function of one number: where it bends, and its slopes from left to right."""

    breakpoints: Float[Array, " kinks"]
    slopes: Float[Array, " pieces"]


def one_hidden_layer_pieces(weights: ArrayLike, biases: ArrayLike, outer: ArrayLike) -> Pieces:
    r"""The pieces of Σ_j v_j max(w_j x + b_j, 0), a ReLU network with one input and one hidden layer.

    Setting     w = `weights`, b = `biases`, v = `outer`
    Result      it bends at −b_j/w_j by v_j|w_j|: at most n + 1 pieces, fewer where places coincide and bends cancel
    Validity    neurons with w_j = 0 do not bend it
    References  hanin2019

    >>> found = one_hidden_layer_pieces([1.0, -1.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, -1.0])
    >>> found.breakpoints.tolist(), found.slopes.tolist()  # two bends at 0 cancel
    ([1.0], [-1.0, 0.0])
    """
    w = np.asarray(array("weights", weights, ("n",)))
    b, v = (np.asarray(array(name, one, w.shape)) for name, one in (("biases", biases), ("outer", outer)))
    bends = np.abs(w) > 0
    with np.errstate(over="ignore"):
        places, jumps = -b[bends] / w[bends], v[bends] * np.abs(w[bends])
    reached = np.isfinite(places)
    places, jumps = places[reached], jumps[reached]
    values, which = np.unique(places, return_inverse=True)
    total = np.bincount(which, jumps, len(values)) if len(values) else np.zeros(0)
    size = np.bincount(which, np.abs(jumps), len(values)) if len(values) else np.zeros(0)
    kinks = np.abs(total) > 1e-14 * size
    # From the far left, where the neurons with w < 0 are on
    start = float(np.sum((v * w)[w < 0]))
    slopes = start + np.concatenate([[0.0], np.cumsum(total[kinks])])
    return Pieces(jnp.asarray(values[kinks]), jnp.asarray(slopes))


class Sawtooth(NamedTuple):
    """A sawtooth as a ReLU network, and how many pieces it has."""

    weights: tuple[np.ndarray, ...]
    """Matrices of the layers, one row for each neuron; the last one gives the output"""
    biases: tuple[np.ndarray, ...]
    pieces_inside: int
    """on [0, 1]"""
    pieces: int
    """on the line"""
    neurons: int
    layers: int
    """hidden layers"""


def sawtooth(depth: int, *, compact: bool = True) -> Sawtooth:
    r"""The tent map applied `depth` times: depth makes exponentially many pieces out of few neurons.

    Setting     g(x) = 2 max(x, 0) − 4 max(x − ½, 0), and f = max(g, 0), the tent map on [0, 1] and zero outside; L =
                `depth`
    Result      f∘…∘f has 2^{L−1} teeth: 2^L pieces on [0, 1] and 2^L + 2 on the line; 3L neurons in 2L hidden layers.
                The compact form g∘…∘g has 2L neurons in L layers, and the same pieces (3 on the line for L = 1)
    Validity    networks of one hidden layer need as many neurons as there are bends
    References  telgarsky2016

    >>> found = sawtooth(4)
    >>> found.pieces_inside, found.pieces, found.neurons, found.layers
    (16, 18, 8, 4)
    >>> sawtooth(4, compact=False)[2:]
    (16, 18, 12, 8)
    """
    count = whole("depth", depth, 1)
    if count > 500:
        raise TooCostly(
            f"depth = {count} gives 2^{count} pieces, which double precision cannot tell apart; take at most 500"
        )
    inner, outer = np.array([[1.0], [1.0]]), np.array([[2.0, -4.0]])
    shift, zero = np.array([0.0, -0.5]), np.zeros(1)
    weights: list[np.ndarray] = [inner]
    biases: list[np.ndarray] = [shift]
    for _ in range(count - 1):
        if compact:
            weights.append(inner @ outer)
            biases.append(shift)
        else:
            weights += [outer, inner]
            biases += [zero, shift]
    weights.append(outer)
    biases.append(zero)
    if not compact:
        weights.append(np.ones((1, 1)))
        biases.append(zero)
    inside = 2**count
    outside = 3 if compact and count == 1 else inside + 2
    neurons, layers = (2 * count, count) if compact else (3 * count, 2 * count)
    return Sawtooth(tuple(weights), tuple(biases), inside, outside, neurons, layers)
