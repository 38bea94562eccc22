"""Supports of free convolutions, from their complement.

Free matrices share one number at every z: the transform m for sums, M = zG − 1 for products. Where z lies outside the
support of the sum or product, each term has a real argument y_j in a gap of its own support, on which the shared value
is a monotone function of y_j. So every choice of one gap of each term gives z as an explicit function of the shared
value v, and this z lies outside the support exactly where z(v) moves in the direction in which v does away from a
spectrum. What is between the intervals so found are the bulks, however narrow, and the gaps know how much mass lies
above them.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy import special

from deeplimits.errors import NotConverged
from deeplimits.models.atoms import Atoms
from deeplimits.numerics import roots
from deeplimits.theory.spectra.spectral_measure import Floats, SpectralMeasure

MASS = 1e-9
"""A piece between two gaps that carries less is no bulk: a point where both ends of one gap meet."""

NARROW = 1e-7
"""Gaps shorter than this share of the largest edge are not kept."""
TOUCH, ROUNDING = 1e-11, 1e-14
"""Bulks that touch leave a condition that is zero up to rounding, more of it beside a pole."""


class Gap(NamedTuple):
    """An interval outside the support of a law, and the mass above it."""

    low: float
    high: float
    above: float


def gaps_of(law: SpectralMeasure) -> list[Gap]:
    """All intervals of the line outside the support, the first and last unbounded."""
    places, masses = (np.asarray(part) for part in law.atoms)
    blocks = [(place, place) for place in places[masses > 0]] + [tuple(bulk) for bulk in np.asarray(law.edges)]
    found, reached = [], -np.inf
    for low, high in sorted(blocks):
        if low > reached:
            found.append((reached, low))
        reached = max(reached, high)
    found.append((reached, np.inf))
    between = np.array([_inside(np.zeros(1), np.array([low]), np.array([high]), 1.0)[0] for low, high in found])
    above = 1 - np.asarray(law.cdf(between))
    above[0], above[-1] = 1.0, 0.0
    return [Gap(float(low), float(high), float(mass)) for (low, high), mass in zip(found, above, strict=True)]


def monotone(law: SpectralMeasure, function: Callable) -> list[Gap]:
    """The gaps of a law, cut where a function of its points turns; `function` gives the slope."""
    found, t = [], np.linspace(-30.0, 30.0, 601)
    for gap in gaps_of(law):
        low, high = (np.full(t.shape, end) for end in gap[:2])

        def slope(t, gap=gap):
            low, high = (np.full(t.shape, end) for end in gap[:2])
            with np.errstate(all="ignore"):
                return function(_inside(t, low, high, _scale(law)))

        signs = np.sign(slope(t))
        turns = np.flatnonzero(signs[1:] * signs[:-1] < 0)
        cuts = _inside(_root(slope, t[turns], t[turns + 1]), low[turns], high[turns], _scale(law)) if turns.size else []
        ends = [gap.low, *cuts, gap.high]
        found += [Gap(float(one), float(other), gap.above) for one, other in itertools.pairwise(ends)]
    return found


def _scale(law: SpectralMeasure) -> float:
    return max(np.abs(law.support).max(), 1e-300)


def _inside(t: Floats, low: Floats, high: Floats, scale: float) -> Floats:
    """A point of each gap, increasing with t over the whole line."""
    with np.errstate(over="ignore", invalid="ignore"):
        left = high - scale * np.exp(-t)
        right = low + scale * np.exp(t)
        middle = np.where(t < 0, low + (high - low) * special.expit(t), high - (high - low) * special.expit(-t))
    found = np.where(np.isinf(low), left, np.where(np.isinf(high), right, middle))
    # Rounding must not reach an end, which may be a pole.
    return np.clip(found, np.nextafter(low, np.inf), np.nextafter(high, -np.inf))


class Inverse(NamedTuple):
    """y, nan where there is none, and where there is one."""

    value: Floats
    there: NDArray


def inverse(function: Callable, target: Floats, low: Floats, high: Floats, scale: float) -> Inverse:
    """y in the gap (low, high) with f(y) = target for a monotone f, entry by entry, and where there is one."""
    reach = np.where(np.isinf(low) | np.isinf(high), 70.0, 34.0)

    def missed(t, rows):
        with np.errstate(all="ignore"):
            return function(_inside(t, low[rows], high[rows], scale)) - target[rows]

    everything = np.arange(target.size)
    first, last = missed(-reach, everything), missed(reach, everything)
    rows = np.flatnonzero(np.sign(first) * np.sign(last) < 0)
    y = np.full(target.shape, np.nan)
    if rows.size:
        y[rows] = _inside(_root(lambda t: missed(t, rows), -reach[rows], reach[rows]), low[rows], high[rows], scale)
    return Inverse(y, np.isfinite(y))


def _root(function: Callable, low: Floats, high: Floats) -> Floats:
    try:
        return roots.on_host(function, low, high)
    except NotConverged:
        # Between poles next to each other the function is all steps; its sign still tells the side.
        first = np.sign(function(low))
        for _ in range(80):
            middle = (low + high) / 2
            same = np.sign(function(middle)) == first
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        return (low + high) / 2


class Pieces(NamedTuple):
    """What lies between gaps."""

    ends: Float[np.ndarray, "pieces 2"]
    masses: Float[np.ndarray, " pieces"]


class Bulks(NamedTuple):
    """Bulks and their masses."""

    ends: Float[np.ndarray, "bulks 2"]
    masses: Float[np.ndarray, " bulks"]


class Equation(NamedTuple):
    """How a free convolution is made of its terms."""

    shared: Callable[[SpectralMeasure, Floats], tuple[Floats, Floats]]
    """The shared value of a term at real points of its gaps, and its slope."""
    place: Callable[[Floats, Sequence[Floats]], Floats]
    """z, from the shared value and the y_j."""
    outward: Callable[[Floats, Sequence[Floats], Sequence[Floats]], Floats]
    """Positive where z(v) lies outside the support, from the value, the y_j and the slopes; continuous."""
    grid: Floats
    """Shared values to look at, in increasing order."""
    above: Callable[[float, Sequence[float], Sequence[float]], float]
    """The mass above a gap, from a shared value in it, the y_j there and the masses above the gaps of the terms."""
    barriers: tuple[float, ...]
    """Shared values at which some y_j is infinite or zero and z is regular."""
    size: float
    """A shared value v leaves a relative rounding of |v|/size in the distance of y from a pole."""


def multiplied(
    place: Callable[[Floats, Sequence[Floats]], Floats],
    outward: Callable[[Floats, Sequence[Floats], Sequence[Floats]], Floats],
    above: Callable[[float, Sequence[float], Sequence[float]], float],
) -> Equation:
    """The equation of a free product, whose terms share the value of their moment transforms."""
    fine = np.geomspace(1e-7, 1e10, 204)
    inner = special.expit(np.linspace(-16.0, 16.0, 161))
    grid = np.concatenate([-1 - fine[::-1], -inner[::-1], fine])
    return Equation(lambda law, x: law.moment_transform(x), place, outward, grid, above, (-1.0, 0.0), 1.0)


def supported(
    laws: Sequence[SpectralMeasure], equation: Equation, *, sheets: Sequence[Sequence[Gap]] | None = None
) -> Pieces:
    """The pieces between the gaps, with their masses; `sheets` are the gaps of each law, where they are cut further."""
    scales = [_scale(law) for law in laws]
    sheets = sheets or [gaps_of(law) for law in laws]
    values = equation.grid
    tables = [_table(law, own, equation, values, scale) for law, own, scale in zip(laws, sheets, scales, strict=True)]
    noise = TOUCH + ROUNDING * np.abs(values) / equation.size
    starts, ends, choices = [], [], []
    for chosen in itertools.product(*(range(len(own)) for own in sheets)):
        y, slopes = ([table[part][index] for table, index in zip(tables, chosen, strict=True)] for part in (0, 1))
        with np.errstate(all="ignore"):
            condition = equation.outward(values, y, slopes)
        clearly, perhaps = condition > noise, condition > -noise
        if not clearly.any():
            continue
        change = np.flatnonzero(perhaps[1:] != perhaps[:-1])
        marks = np.concatenate([[0] if perhaps[0] else [], change + 1, [len(values)] if perhaps[-1] else []])
        for begin, stop in marks.astype(int).reshape(-1, 2):
            # At a hard edge the condition tends to zero and nothing else; where it is nothing else all along, bulks
            # touch and there is no gap.
            if not clearly[begin:stop].any():
                continue
            starts.append((begin, begin - 1))
            ends.append((stop - 1, stop))
            choices.append(chosen)
    if not choices:
        raise NotConverged("no gap of the free convolution was found")
    lows, highs = np.array(
        [[own[index][:2] for own, index in zip(sheets, chosen, strict=True)] for chosen in choices]
    ).transpose(2, 1, 0)

    def solved(v):
        """z and the condition at shared values, one for each choice of gaps."""
        y, slopes = [], []
        for index, (law, scale) in enumerate(zip(laws, scales, strict=True)):
            at, there = inverse(lambda x, law=law: equation.shared(law, x)[0], v, lows[index], highs[index], scale)
            slope = np.full(v.shape, np.nan)
            slope[there] = equation.shared(law, at[there])[1]
            y.append(at)
            slopes.append(slope)
        with np.errstate(all="ignore"):
            return equation.place(v, y), equation.outward(v, y, slopes)

    found = []
    for pairs in (np.array(starts), np.array(ends)):
        inside, beyond = values[pairs[:, 0]], values[np.clip(pairs[:, 1], 0, len(values) - 1)]
        # At a barrier two halves of a gap meet, and there is no edge.
        for barrier in equation.barriers:
            beyond = np.where((inside > barrier) == (beyond > barrier), beyond, inside)
        # Bisection: z is stationary at an edge, so half the digits of v give all of z.
        for _ in range(34):
            middle = (inside + beyond) / 2
            with np.errstate(invalid="ignore"):
                good = solved(middle)[1] > -TOUCH - ROUNDING * np.abs(middle) / equation.size
            inside, beyond = np.where(good, middle, inside), np.where(good, beyond, middle)
        found.append(solved(inside)[0])
    inner = (np.array(starts)[:, 0] + np.array(ends)[:, 0]) // 2
    above = np.array(
        [
            equation.above(
                float(values[at]),
                [float(table[0][index, at]) for table, index in zip(tables, chosen, strict=True)],
                [own[index].above for own, index in zip(sheets, chosen, strict=True)],
            )
            for at, chosen in zip(inner, choices, strict=True)
        ]
    )
    low, high = np.minimum(*found), np.maximum(*found)
    # The outermost gaps reach to infinity.
    low[above > 1 - MASS], high[above < MASS] = -np.inf, np.inf
    return _pieces(low, high, above)


def _table(law, own, equation, values, scale):
    """y and the slope of the shared value for every gap (rows) and every shared value; nan where there is none."""
    low, high = (np.repeat([gap[part] for gap in own], len(values)) for part in (0, 1))
    y, there = inverse(lambda x: equation.shared(law, x)[0], np.tile(values, len(own)), low, high, scale)
    slope = np.full(y.shape, np.nan)
    slope[there] = equation.shared(law, y[there])[1]
    return y.reshape(len(own), -1), slope.reshape(len(own), -1)


def _pieces(low: Floats, high: Floats, above: Floats) -> Pieces:
    # Where bulks touch, rounding opens gaps; to leave out one so narrow changes nothing that could be seen.
    ends = np.concatenate([low, high])
    seen = high - low > NARROW * np.max(np.abs(ends[np.isfinite(ends)]))
    low, high, above = low[seen], high[seen], above[seen]
    order = np.argsort(low)
    merged: list[Gap] = []
    for index in order:
        gap = Gap(float(low[index]), float(high[index]), float(above[index]))
        if merged and abs(merged[-1].above - gap.above) < MASS:
            merged[-1] = Gap(merged[-1].low, max(merged[-1].high, gap.high), merged[-1].above)
        else:
            merged.append(gap)
    masses = np.array([left.above - right.above for left, right in itertools.pairwise(merged)])
    sound = merged[0].low == -np.inf and merged[-1].high == np.inf and np.all(masses > 0)
    if not sound or abs(masses.sum() - 1) > MASS:
        raise NotConverged(
            f"the gaps of the free convolution do not fit together: masses {masses.tolist()} between them"
        )
    pieces = np.array([(left.high, right.low) for left, right in itertools.pairwise(merged)])
    return Pieces(pieces, masses)


def bulks_without_atoms(pieces: Floats, masses: Floats, atoms: Atoms) -> Bulks:
    """The bulks among the pieces, with their masses: what is left of a piece's mass without the atoms in it."""
    places, weights = (np.asarray(part) for part in atoms)
    bulks, shares = [], []
    for (low, high), mass in zip(pieces, masses, strict=True):
        slack = 1e-9 * max(abs(low), abs(high), high - low)
        own = mass - weights[(places >= low - slack) & (places <= high + slack)].sum()
        if own > MASS:
            bulks.append((low, high))
            shares.append(own)
    return Bulks(np.array(bulks).reshape(-1, 2), np.array(shares))
