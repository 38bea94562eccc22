"""Atoms and moments of free convolutions."""

import itertools
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np

from deeplimits.errors import OutsideValidity
from deeplimits.models.atoms import Atoms
from deeplimits.theory.spectra.cumulants import cumulants_of_moments, moments_of_cumulants
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure


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
        raise OutsideValidity(
            f"{name} reaches down to {low:g}; a free product takes one copy of one law with negative eigenvalues, and "
            "the others on [0, ∞)"
        )
    if high == 0:
        raise OutsideValidity(f"{name} sits at zero, and so does every product with it")
