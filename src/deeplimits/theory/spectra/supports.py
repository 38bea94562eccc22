"""Supports and atoms of free convolutions."""

import itertools
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deeplimits.errors import OutsideValidity
from deeplimits.models.atoms import Atoms
from deeplimits.numerics import roots
from deeplimits.theory.spectra.cumulants import cumulants_of_moments, moments_of_cumulants
from deeplimits.theory.spectra.spectral_measure import Floats, SpectralMeasure

GRID = 600
REFINEMENTS = 60
# An imaginary part above this share of |m| + 1/width belongs to a bulk: it is reached within 1e-14 widths of an edge.
VISIBLE = 1e-7
NEAR = 1e-7


def atoms_of_combination(
    laws: Sequence[SpectralMeasure], counts: Sequence[int], combine: Callable[[Sequence[float]], float]
) -> Atoms:
    """Atoms of a sum or product of free matrices: masses w_j at a_j leave 1 − Σ n_j(1 − w_j), where positive."""
    heavy = []
    for law in laws:
        places, masses = (np.asarray(part) for part in law.atoms)
        heavy.append([(place, mass) for place, mass in zip(places, masses, strict=True) if mass > 0])
    found = {}
    # Only the heaviest atoms can combine, because their missing masses must sum to less than one.
    shortlists = [
        [pair for pair in pairs if count * (1 - pair[1]) < 1] for pairs, count in zip(heavy, counts, strict=True)
    ]
    for chosen in itertools.product(*shortlists):
        left = 1 - sum(count * (1 - mass) for (_, mass), count in zip(chosen, counts, strict=True))
        if left > 1e-14:
            place = float(combine([place for place, _ in chosen]))
            found[place] = found.get(place, 0.0) + left
    places = np.array(sorted(found))
    return Atoms(places, np.array([found[place] for place in places]))


def scan(boundary: Callable[[NDArray], NDArray], span: tuple[float, float], atoms: Floats) -> Floats:
    """The intervals on which Im m(x + i0) is positive: a grid that is dense at the ends, refined by bisection."""
    low, high = span
    width = high - low
    if width <= 0:
        return np.zeros((0, 2))

    def visible(x):
        m = boundary(x)
        # Beside an atom the rounding of its pole must not count.
        return np.imag(m) * width > VISIBLE * (1 + np.abs(m) * width)

    # Points that crowd towards both ends and towards every atom.
    t = np.linspace(-3.2, 3.2, GRID)
    share = 1 / (1 + np.exp(-np.pi * np.sinh(t)))
    marks = np.unique([low, high, *(atom for atom in atoms if low < atom < high)])
    inner = [a + (b - a) * share for a, b in itertools.pairwise(marks)]
    even = low + width * (np.arange(GRID) + 0.5) / GRID
    x = np.unique(np.concatenate([*inner, even]))
    # Right beside an atom its pole drowns the density.
    clear = np.min(np.abs(x[:, None] - marks), axis=1) > NEAR * width * np.isin(marks, atoms).any()
    x = x[(x > low) & (x < high) & clear]
    seen = visible(x)
    if not seen.any():
        return np.zeros((0, 2))
    changes = np.flatnonzero(seen[1:] != seen[:-1])
    dark, bright = (
        np.where(seen[changes], x[changes + 1], x[changes]),
        np.where(seen[changes], x[changes], x[changes + 1]),
    )
    if len(dark):
        dark, _ = roots.switch(visible, dark, bright, REFINEMENTS)
    found = [*([low] if seen[0] else []), *dark, *([high] if seen[-1] else [])]
    bulks = np.sort(np.array(found)).reshape(-1, 2)
    return bulks[bulks[:, 1] - bulks[:, 0] > NEAR * width]


def moment_of_sum(left: SpectralMeasure, right: SpectralMeasure, order: int):
    """The moment of a free sum, whose free cumulants are the sums of those of the terms."""

    def cumulants(law):
        return cumulants_of_moments([1.0, *(float(law.moment(k)) for k in range(1, order + 1))])

    total = [one + two for one, two in zip(cumulants(left), cumulants(right), strict=True)]
    return jnp.asarray(moments_of_cumulants(total)[-1])


def require_positive(law: SpectralMeasure, name: str) -> None:
    """Refuse a law with mass below zero, or none above it."""
    low, high = law.support
    if low < 0:
        raise OutsideValidity(f"{name} reaches down to {low:g}; a free product needs laws on [0, ∞)")
    if high == 0:
        raise OutsideValidity(f"{name} sits at zero, and so does every product with it")
