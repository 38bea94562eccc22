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
PANELS = 72
# Halved so often a panel at a jump holds less than any rounding; a function that asks for more panels is rough.
HALVINGS, MOST_PANELS = 46, 6000


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


def hermite_coefficients(f: Callable, degree: int, *, tolerance: float = 1e-11) -> HermiteExpansion:
    """The Hermite coefficients of f up to `degree`, each with an error estimate.

    `f` maps an array of points to an array of values. The integral is cut into panels with 24 Gauss-Legendre nodes,
    with ends at 0 and at ±1/2, ±1, …; a panel is halved until its two halves agree with it, so kinks, jumps and roots
    (max(z − 0.3, 0), sign, √|z|) are found wherever they are. Even and odd functions are recognized by their values,
    and the coefficients of the other parity are then exactly zero.

    >>> import numpy as np
    >>> expansion = hermite_coefficients(lambda z: np.maximum(z, 0), 4)
    >>> [abs(round(float(u), 10)) for u in expansion.coefficients]
    [0.3989422804, 0.5, 0.2820947918, 0.0, 0.081433752]

    Raises `OutsideValidity` where f has no finite second moment, `NotConverged` where the quadrature does not settle.
    """
    if isinstance(degree, bool) or not isinstance(degree, int | np.integer) or not 0 <= degree <= 200:
        raise ParameterError(f"degree = {degree!r} is not allowed; it must be a whole number between 0 and 200")
    squared_norm, coefficients, errors, parity = _moments(f, degree, tolerance)
    scale = np.sqrt(max(squared_norm, np.finfo(float).tiny))
    # Rounding of a sum of many terms adds to the difference of the refinements.
    errors = errors + 1e-15 * scale * np.sqrt(1.0 + np.arange(degree + 1))
    if np.max(errors) > tolerance * scale:
        raise NotConverged(
            f"the Hermite coefficients of f are uncertain by {np.max(errors):.2g}, more than {tolerance * scale:.2g}, "
            "where its panels are not halved further; f is too rough, so smooth it or raise the tolerance"
        )
    if parity is not None:
        other = np.arange(degree + 1) % 2 != parity
        coefficients, errors = np.where(other, 0.0, coefficients), np.where(other, 0.0, errors)
    return HermiteExpansion(coefficients, errors, squared_norm)


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


class _Panels(NamedTuple):
    """Panels on the half line, with f on both sides of 0 and each panel's part of the integrals."""

    low: Floats
    high: Floats
    right: Floats
    """f(z) at the nodes, one row per panel."""
    left: Floats
    """f(−z)."""
    parts: Floats
    """∫ f h_k dγ over the panel and its mirror image, k = 0 … degree, and at last ∫ f² dγ; one row per panel."""

    def take(self, which) -> "_Panels":
        return _Panels(*(part[which] for part in self))


def _panels(f: Callable, low: Floats, high: Floats, degree: int) -> _Panels:
    nodes, weights = panels.gauss(NODES)
    half = (high - low)[:, None] / 2
    z = low[:, None] + half * (1 + nodes)
    w = half * weights * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    # Powers of two, and at least 64 rows: a link written in JAX is compiled for few shapes.
    rows = max(64, 2 ** int(np.ceil(np.log2(len(z)))))
    padded = np.concatenate([z, np.broadcast_to(z[-1:], (rows - len(z), NODES))])
    points = np.concatenate([padded, -padded]).ravel()
    # A link written in JAX is evaluated now, also while a prediction that uses it is being traced.
    with np.errstate(all="ignore"), jax.ensure_compile_time_eval():
        values = np.broadcast_to(np.asarray(f(points), dtype=float), points.shape).reshape(2, rows, NODES)
    right, left = values[:, : len(z)]
    if np.any(np.isnan(right)) or np.any(np.isnan(left)):
        raise OutsideValidity("f is not a number somewhere on the real line; a Hermite expansion needs a function")
    # h_k(−z) = (−1)^k h_k(z)
    signs = (-1.0) ** np.arange(degree + 1)
    h = orthonormal_polynomials(z, max(degree, 1))[: degree + 1]
    with np.errstate(all="ignore"):
        sums = np.einsum("kij,ij->ik", h, right * w) + signs * np.einsum("kij,ij->ik", h, left * w)
        squares = np.sum((right**2 + left**2) * w, axis=1)
    return _Panels(low, high, right, left, np.column_stack([sums, squares]))


def _moments(f: Callable, degree: int, tolerance: float) -> tuple[float, Floats, Floats, int | None]:
    """∫ f² dγ, the coefficients, the sum of the panels' differences from their halves, and the parity of f."""
    ends = np.linspace(0.0, RANGES[1], PANELS + 1)
    coarse = _panels(f, ends[:-1], ends[1:], degree)
    total = float(np.sum(coarse.parts[:, -1]))
    tail = float(np.sum(coarse.parts[coarse.low >= RANGES[0], -1]))
    if not np.isfinite(total) or tail > 1e-10 * total:
        raise OutsideValidity(
            "f has no finite second moment under the Gaussian law (or none that a double can hold): its square grows "
            "faster than exp(z²/2) decays; take a link of slower growth"
        )
    done, errors, count = [], np.zeros(degree + 2), PANELS
    for level in range(HALVINGS):
        middle = (coarse.low + coarse.high) / 2
        fine = _panels(f, np.concatenate([coarse.low, middle]), np.concatenate([middle, coarse.high]), degree)
        pairs = fine.parts.reshape(2, len(middle), degree + 2)
        differences = np.abs(coarse.parts - pairs.sum(axis=0))
        # A panel may err by a hundredth of what all may: few of them are not smooth.
        allowed = tolerance / 100 * np.sqrt(total) * np.ones(degree + 2)
        allowed[-1] = 1e-11 * total
        count += len(middle)
        rough = np.any(differences > allowed, axis=1)
        if level == HALVINGS - 1 or count > MOST_PANELS:
            rough[:] = False
        errors += differences[~rough].sum(axis=0)
        done.append(fine.take(np.tile(~rough, 2)))
        coarse = fine.take(np.tile(rough, 2))
        if not len(coarse.low):
            break
    sums = np.sum(np.concatenate([part.parts for part in done]), axis=0)
    right, left = (np.concatenate([getattr(part, side) for part in done]) for side in ("right", "left"))
    closeness = 1e-14 * np.maximum(np.abs(right), np.sqrt(sums[-1]))
    parity = None
    if np.all(np.abs(right - left) <= closeness):
        parity = 0
    elif np.all(np.abs(right + left) <= closeness):
        parity = 1
    return float(sums[-1]), sums[:-1], errors[:-1], parity
