r"""The symmetric plateau of K erf students that learn from K orthonormal erf teachers, and the escape from it.

Gradient flow (γ → 0), a = a* = 1. All students are equal there: each sees the mean of the teachers.
"""

import math
from typing import NamedTuple

import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.models.committees import Overlaps
from deeplimits.numerics import arguments

MOST_UNITS = 10_000


class Plateau(NamedTuple):
    """The fixed point, its risk, and the rate at which students break the symmetry."""

    state: Overlaps
    risk: float
    escape_rate: float


def symmetric_plateau(units: int) -> Plateau:
    r"""The permutation-symmetric fixed point of gradient flow, in closed form.

    Q_ij = 1/(2K−1),  M_ir = 1/√(K(2K−1)),  R = (1/(πK)) [π/6 − K arcsin(1/(2K))],
    escape rate λ = (2/π) (2K−1)^{−1/2} (2K+1)^{−3/2}

    >>> plateau = symmetric_plateau(2)
    >>> round(plateau.risk, 12), round(plateau.escape_rate, 12)
    (0.002902710078, 0.032874903683)
    """
    units = arguments.whole("units", units, 2, "to be alike")
    if units > MOST_UNITS:
        raise ParameterError(f"units = {units} is not allowed; overlaps are written out for up to {MOST_UNITS}")
    k = float(units)
    m = np.full((units, units), 1 / math.sqrt(k * (2 * k - 1)))
    q = np.full((units, units), 1 / (2 * k - 1))
    risk = (math.pi / 6 - k * math.asin(1 / (2 * k))) / (math.pi * k)
    return Plateau(Overlaps(m, q), risk, _escape_rate(units))


def _escape_rate(units: int) -> float:
    return 2 / math.pi / math.sqrt(2.0 * units - 1) / (2.0 * units + 1) ** 1.5


def plateau_length(units: int, asymmetry: float) -> float:
    """Leading order of the time spent on the plateau, ln(1/δ₀)/λ, for an initial asymmetry δ₀ of M.

    >>> plateau_length(2, 1e-3) > plateau_length(2, 1e-2)
    True
    """
    if not 0 < asymmetry < 1:
        raise ParameterError(f"asymmetry = {asymmetry} is not allowed; it must lie between 0 and 1")
    return math.log(1 / asymmetry) / _escape_rate(arguments.whole("units", units, 2, "to be alike"))
