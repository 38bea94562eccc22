r"""Hermite expansions of functions of one Gaussian variable.

h_k = He_k/√k! are orthonormal under the standard Gaussian law γ; u_k(f) = ∫ f h_k dγ. If z, z' are standard
Gaussian with correlation m then E f(z) g(z') = Σ_k u_k(f) u_k(g) m^k (Mehler).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from deeplimits.errors import NotConverged, OutsideValidity, ParameterError
from deeplimits.numerics import panels

Floats = NDArray[np.floating]

# The Gaussian weight at the end of the widest range, exp(−36²/2), is still a normal number.
RANGES = (24.0, 36.0)
NODES = 24
PANELS = (64, 128, 256, 512, 1024, 2048)


class HermiteExpansion(NamedTuple):
    """Coefficients u_0 … u_degree of a function, with what is known of their accuracy."""

    coefficients: Floats
    errors: Floats
    """Bound on the quadrature error of each coefficient; 0 where parity makes it vanish exactly."""
    squared_norm: float
    """∫ f² dγ; what the coefficients leave of it is the truncation error."""

    def vanishes(self, tolerance: float = 1e-9) -> NDArray[np.bool_]:
        """Which coefficients are zero: below `tolerance` times the norm of f, or below ten times their own error."""
        scale = np.sqrt(self.squared_norm)
        return np.abs(self.coefficients) <= np.maximum(tolerance * scale, 10 * self.errors)


def hermite_coefficients(f: Callable, degree: int, tolerance: float = 1e-11) -> HermiteExpansion:
    """The Hermite coefficients of f up to `degree`, each with an error estimate.

    `f` maps an array of points to an array of values. The integral is cut into panels with 24 Gauss-Legendre
    nodes, with
    ends at 0 and at the dyadic rationals, so that kinks and jumps there (ReLU, |z|, sign) cost nothing; elsewhere
    panels are
    halved until two refinements agree. Even and odd functions are recognized by their values, and the coefficients of
    the other parity are then exactly zero.

    >>> import numpy as np
    >>> expansion = hermite_coefficients(lambda z: np.maximum(z, 0), 4)
    >>> [abs(round(float(u), 10)) for u in expansion.coefficients]
    [0.3989422804, 0.5, 0.2820947918, 0.0, 0.081433752]

    Raises `OutsideValidity` where f has no finite second moment, `NotConverged` where the quadrature does not settle.
    """
    if isinstance(degree, bool) or not isinstance(degree, int | np.integer) or not 0 <= degree <= 200:
        raise ParameterError(f"degree = {degree!r} is not allowed; it must be a whole number between 0 and 200")
    previous, errors, scale = _moments(f, degree, PANELS[0]), np.full(1, np.inf), 1.0
    for count in PANELS[1:]:
        current = _moments(f, degree, count)
        scale = np.sqrt(max(current[0], np.finfo(float).tiny))
        # Rounding of a sum of many terms adds to the difference of the two refinements.
        errors = np.abs(current[1] - previous[1]) + 1e-15 * scale * np.sqrt(1.0 + np.arange(degree + 1))
        if np.max(errors) <= tolerance * scale and abs(current[0] - previous[0]) <= 1e-9 * scale**2:
            squared_norm, coefficients, parity = current
            if parity is not None:
                other = np.arange(degree + 1) % 2 != parity
                coefficients, errors = np.where(other, 0.0, coefficients), np.where(other, 0.0, errors)
            return HermiteExpansion(coefficients, errors, squared_norm)
        previous = current
    raise NotConverged(
        f"the Hermite coefficients of f are uncertain by {np.max(errors):.2g} after {PANELS[-1]} panels, more than "
        f"{tolerance * scale:.2g}; f is too rough, so split it at its singularities or raise the tolerance"
    )


def power_series(f: Callable, g: Callable, degree: int) -> Floats:
    """Coefficients c_k = u_k(f) u_k(g) of E f(z) g(z') = Σ_k c_k m^k, for z, z' with correlation m.

    >>> power_series(lambda z: z**2, lambda z: z**2, 3).round(12).tolist()
    [1.0, 0.0, 2.0, 0.0]
    """
    return hermite_coefficients(f, degree).coefficients * hermite_coefficients(g, degree).coefficients


def orthonormal_polynomials(z: Floats, degree: int) -> Floats:
    """h_0(z) … h_degree(z), by the recursion √(k+1) h_{k+1} = z h_k − √k h_{k−1}."""
    rows = [np.ones_like(z), z]
    for k in range(1, degree):
        rows.append((z * rows[k] - np.sqrt(k) * rows[k - 1]) / np.sqrt(k + 1))
    return np.stack(rows[: degree + 1])


def _moments(f: Callable, degree: int, count: int) -> tuple[float, Floats, int | None]:
    right, w = panels.even(0.0, RANGES[1], count * 9 // 8, NODES)
    z = np.concatenate([-right[::-1], right])
    w = np.concatenate([w[::-1], w]) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    # A link written in JAX is evaluated now, also while a prediction that uses it is being traced.
    with np.errstate(all="ignore"), jax.ensure_compile_time_eval():
        values = np.asarray(f(z), dtype=float)
        values = np.broadcast_to(values, z.shape)
        mass = values**2 * w
    if np.any(np.isnan(values)):
        raise OutsideValidity("f is not a number somewhere on the real line; a Hermite expansion needs a function")
    total, tail = float(np.sum(mass)), float(np.sum(mass[np.abs(z) > RANGES[0]]))
    if not np.isfinite(total) or tail > 1e-10 * total:
        raise OutsideValidity(
            "f has no finite second moment under the Gaussian law (or none that a double can hold): its square grows "
            "faster than exp(z²/2) decays; take a link of slower growth"
        )
    reflected = values[::-1]
    closeness = 1e-14 * np.maximum(np.abs(values), np.sqrt(total))
    parity = None
    if np.all(np.abs(values - reflected) <= closeness):
        parity = 0
    elif np.all(np.abs(values + reflected) <= closeness):
        parity = 1
    return total, orthonormal_polynomials(z, max(degree, 1))[: degree + 1] @ (values * w), parity
