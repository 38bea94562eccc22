"""What a Stieltjes transform says of its measure, and functions of matrices by contour integrals."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex
from numpy.typing import ArrayLike, NDArray

from deeplimits.errors import NotConverged, OutsideValidity, ParameterError
from deeplimits.numerics import arguments, panels
from deeplimits.numerics.arguments import FINITE, POSITIVE, argument, array, whole
from deeplimits.numerics.shapes import Floats


def mass_between(transform: Callable, low: float, high: float, *, height: float = 1e-4, panel: int = 400) -> float:
    """μ((a, b]) = lim (1/π)∫_a^b Im S(x + iε)dx, for a and b that are no atoms; extrapolated from ε and ε/2.

    Setting     S(z) = ∫ dμ(t)/(t − z), a function of arrays of points of the upper half plane
    Result      the mass between a and b; the plain integral at ε has an error O(ε), this one O(ε²) off edges
    Validity    b − a well above ε, and `panel` intervals of ten nodes that resolve ε
    References  bai2010 App. B

    >>> from deeplimits.theory.spectra import marchenko_pastur_stieltjes
    >>> round(mass_between(lambda z: marchenko_pastur_stieltjes(z, 0.5), 0.5, 1.0), 6)
    0.257694
    """
    argument("height", height, POSITIVE)
    for name, end in (("low", low), ("high", high)):
        argument(name, end, FINITE)
    if not low < high:
        raise ParameterError(f"low = {low:g} is not below high = {high:g}; an interval is needed")
    rule = panels.even(low, high, panel, 10)
    coarse, fine = (
        float(rule.integrate(np.imag(_at(transform, rule.nodes + 1j * eps)))) / np.pi for eps in (height, height / 2)
    )
    return 2 * fine - coarse


def atom_mass(transform: Callable, place: float, *, height: float = 1e-6) -> float:
    """μ{x} = lim ε Im S(x + iε), extrapolated from ε and ε/2.

    >>> round(atom_mass(lambda z: 0.25 / (2 - z) + 0.75 / (3 - z), 2.0), 9)
    0.25
    """
    argument("height", height, POSITIVE)
    steps = np.array([height, height / 2])
    points = float(argument("place", place, FINITE)) + 1j * steps
    coarse, fine = steps * np.imag(_at(transform, points))
    return float(2 * fine - coarse)


def total_mass(transform: Callable, *, height: float = 1e6) -> float:
    """−z S(z) as z → i∞: the mass of μ. Below one, mass has escaped to infinity and convergence was vague, not weak.

    Pointwise convergence of transforms is vague convergence of the measures; it is weak exactly where the limit has
    mass one.

    >>> round(total_mass(lambda z: 0.25 / (2 - z) + 0.5 / (3 - z)), 9)
    0.75
    """
    argument("height", height, POSITIVE)
    z = 1j * np.array([height, 2 * height])
    near, far = np.real(-z * _at(transform, z))
    # The next term is of the order of 1/height²: the third moment's, since the second is imaginary.
    return float((4 * far - near) / 3)


def _at(transform: Callable, z: NDArray) -> NDArray:
    """The values of a user's transform, which must be numbers."""
    found = np.asarray(arguments.function("transform", transform)(z))
    if not np.all(np.isfinite(found)):
        raise OutsideValidity("transform is not finite in the upper half plane; S(z) = ∫ dμ(t)/(t − z) of a measure is")
    return found


def matrix_function(
    matrix: ArrayLike, function: Callable, *, centre: complex = 0.0, radius: float | None = None, nodes: int = 64
) -> Complex[Array, "n n"]:
    """f(A) = (1/2πi)∮ f(z)(z − A)^{-1}dz for an f that is analytic inside a circle around the spectrum.

    The trapezoid rule on the circle, which converges geometrically; twice as many nodes must give the same.

    >>> matrix_function([[0.0, 1.0], [0.0, 0.0]], jnp.exp).real.round(12).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    a = np.asarray(array("matrix", matrix, ("n", "n"), why="a square matrix")).astype(complex)
    arguments.function("function", function)
    eigenvalues = np.linalg.eigvals(a)
    reach = float(np.max(np.abs(eigenvalues - centre)))
    circle = 2 * reach + 1 if radius is None else float(argument("radius", radius, POSITIVE))
    if circle <= reach:
        raise ParameterError(
            f"radius = {circle:g} does not enclose the spectrum, which reaches to {reach:g}; enlarge it"
        )
    coarse, fine = (_on_circle(a, function, centre, circle, whole("nodes", nodes, 4) * factor) for factor in (1, 2))
    if not np.max(np.abs(fine - coarse)) <= 1e-10 * (1 + np.max(np.abs(fine))):
        raise NotConverged(
            f"{2 * nodes} nodes on the circle are too few; take more, or a circle further from poles of f"
        )
    # A pole between the circle and the spectrum adds its residue; the trace knows without one.
    trace = np.sum(np.asarray(function(jnp.asarray(eigenvalues))))
    if not abs(np.trace(fine) - trace) <= 1e-6 * (1 + np.sum(np.abs(fine))):
        raise OutsideValidity(
            f"function is not analytic within {circle:.4g} of {centre:g}: the trace would be {np.trace(fine).real:.6g} "
            f"and not {trace.real:.6g}; give centre and radius of a circle without its poles"
        )
    return jnp.asarray(fine)


def _on_circle(a, function, centre, radius, nodes):
    turn = np.exp(2j * np.pi * (np.arange(nodes) + 0.5) / nodes)
    z = centre + radius * turn
    resolvents = np.linalg.inv(z[:, None, None] * np.eye(len(a)) - a)
    return np.einsum("k,kij->ij", np.asarray(function(jnp.asarray(z))) * radius * turn / nodes, resolvents)


def density_from_transform(transform: Callable, x: ArrayLike, *, height: float = 1e-4) -> Floats:
    """(1/π) Im S(x + iε) extrapolated from ε and ε/2: the density inside a bulk to O(ε²), O(√ε) at an edge.

    >>> from deeplimits.theory.spectra import marchenko_pastur_stieltjes
    >>> round(float(density_from_transform(lambda z: marchenko_pastur_stieltjes(z, 0.5), 1.0)), 6)
    0.421084
    """
    argument("height", height, POSITIVE)
    points = np.asarray(argument("x", x, FINITE))
    coarse, fine = (np.imag(_at(transform, points + 1j * eps)) / np.pi for eps in (height, height / 2))
    return jnp.asarray(2 * fine - coarse)
