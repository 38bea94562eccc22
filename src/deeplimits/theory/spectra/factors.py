"""Free products made: their factors sorted, their atoms and the edges of their bulks found."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.atoms import Atoms
from deeplimits.theory.spectra import gaps, supports
from deeplimits.theory.spectra.affine import Affine
from deeplimits.theory.spectra.atomic import Atomic
from deeplimits.theory.spectra.closed_laws import MarchenkoPastur
from deeplimits.theory.spectra.multiplicative_convolution import FreeProduct
from deeplimits.theory.spectra.signed_products import signed_product
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure

LARGEST = 690.0
"""A larger logarithm is that of no number."""


def free_product(factors: Sequence[SpectralMeasure], counts: Sequence[int]) -> SpectralMeasure:
    """Build the law, its edges and its atoms; see `spectra.free_product`."""
    if not factors:
        raise ParameterError("a free product needs at least one factor")
    signed = [index for index, law in enumerate(factors) if law.support[0] < 0]
    if len(signed) == 1 and counts[signed[0]] == 1 and len(factors) > 1:
        others = [index for index in range(len(factors)) if index not in signed]
        rest = free_product([factors[index] for index in others], [counts[index] for index in others])
        low, high = rest.support
        # Multiples of the identity stretch.
        return factors[signed[0]].affine(low) if low == high else signed_product(rest, factors[signed[0]])
    for index, law in enumerate(factors):
        supports.require_positive(law, f"factor {index + 1}")
    # Multiples of the identity stretch, and are no factors.
    single = _flattened(factors, counts)
    points = [law.support[0] == law.support[1] for law, _ in single.pairs]
    stretch = single.stretch + sum(
        n * math.log(law.support[0]) for (law, n), point in zip(single.pairs, points, strict=True) if point
    )
    pairs = [pair for pair, point in zip(single.pairs, points, strict=True) if not point]
    if abs(stretch) > LARGEST:
        raise OutsideValidity(
            f"the product stretches eigenvalues by e^{stretch:.4g}, beyond the range of numbers; divide the factors by "
            "their means, and multiply again in logarithms"
        )
    if not pairs:
        return Atomic(Atoms(np.array([np.exp(stretch)]), np.ones(1)))
    found = pairs[0][0] if len(pairs) == 1 and pairs[0][1] == 1 else _product(*zip(*pairs, strict=True))
    return found.affine(float(np.exp(stretch))) if stretch else found


class _Flat(NamedTuple):
    """Different factors with their multiplicities, and the logarithm of what they stretch together."""

    pairs: list[tuple[SpectralMeasure, int]]
    stretch: float


def _flattened(factors: Sequence[SpectralMeasure], counts: Sequence[int]) -> _Flat:
    """Scales taken out, products taken apart and equal factors counted: the cost is that of the different ones."""
    left, stretch = list(zip(factors, counts, strict=True)), 0.0
    pairs: list[tuple[SpectralMeasure, int]] = []
    while left:
        law, n = left.pop(0)
        if isinstance(law, Affine) and law.shift == 0:
            stretch += n * math.log(law.scale)
            left.insert(0, (law.law, n))
        elif isinstance(law, FreeProduct):
            left[:0] = [(part, n * count) for part, count in zip(law.factors, law.counts, strict=True)]
        elif isinstance(law, MarchenkoPastur) and law.variance != 1:
            stretch += n * math.log(law.variance)
            left.insert(0, (MarchenkoPastur(law.gamma, 1.0), n))
        else:
            same = next((index for index, (known, _) in enumerate(pairs) if _equal(known, law)), None)
            if same is None:
                pairs.append((law, n))
            else:
                pairs[same] = (law, pairs[same][1] + n)
    return _Flat(pairs, stretch)


def _equal(one: SpectralMeasure, other: SpectralMeasure) -> bool:
    if isinstance(one, Atomic) and isinstance(other, Atomic):
        return all(np.array_equal(a, b) for a, b in zip(one.law, other.law, strict=True))
    return one is other or (isinstance(one, MarchenkoPastur) and one == other)


def _product(factors: tuple[SpectralMeasure, ...], counts: tuple[int, ...]) -> FreeProduct:
    def combine(points):
        return float(np.prod([point**n for point, n in zip(points, counts, strict=True)]))

    places, masses = (np.asarray(part) for part in supports.atoms_of_combination(factors, counts, combine))
    zero = max(float(np.sum(np.asarray(law.atoms.weights)[np.asarray(law.atoms.values) == 0])) for law in factors)
    kept = places != 0
    places, masses = places[kept], masses[kept]
    if zero > 0:
        places, masses = np.append(0.0, places), np.append(zero, masses)
    order = sum(counts) - 1

    def place(m, y):
        size = order * (np.log(np.abs(m)) - np.log(np.abs(1 + m)))
        sign = np.sign(m * (1 + m)) ** order
        for n, part in zip(counts, y, strict=True):
            size, sign = size + n * np.log(np.abs(part)), sign * np.sign(part) ** n
        return sign * np.exp(size)

    def outward(m, y, slopes):
        # dz/dM < 0, z > 0, or all y_j < 0
        both = m * (1 + m)
        moves = order + both * sum(n / (slope * part) for n, slope, part in zip(counts, slopes, y, strict=True))
        sign = np.sign(m * (1 + m)) ** order
        for n, part in zip(counts, y, strict=True):
            sign = sign * np.sign(part) ** n
        # The arguments of z = (−M)^{N−1} y₁/Π' m_j add up without turns: to 0 or π for −1 < M < 0 only where at most
        # one copy has y_j > 0. Elsewhere every y_j is positive.
        positive = sum(n * (part > 0) for n, part in zip(counts, y, strict=True))
        allowed = np.where(both < 0, positive <= 1, positive == order + 1)
        return np.where(allowed, -sign * np.sign(both) * moves, -1.0)

    def above(m, y, masses):
        return sum(n * part for n, part in zip(counts, masses, strict=True)) - order * (m < 0)

    equation = gaps.multiplied(place, outward, above)
    found = Atoms(places, masses)
    split = gaps.supported(factors, equation)
    bulks, shares = gaps.bulks_without_atoms(np.maximum(split.ends, 0.0), split.masses, found)
    # What is found below the smallest number that a factor resolves is an edge at zero.
    bulks[bulks < 1e-28 * bulks[-1, 1]] = 0.0
    return FreeProduct(bulks, shares, found, tuple(factors), tuple(counts))
