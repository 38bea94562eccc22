r"""Dot-product kernels on spheres: one eigenvalue for each degree.

A kernel κ(⟨x, x'⟩) on S^{d−1} with the uniform law has the spherical harmonics as eigenfunctions. By Funk and Hecke

    λ_k = ∫ κ(cos θ) P_k(cos θ) sin^{d−2}θ dθ / ∫ sin^{d−2}θ dθ,        P_k Gegenbauer, P_k(1) = 1,

with multiplicity N(d, k). In θ the kernels of ReLU networks are smooth up to both ends, where in t = cos θ they have
square-root singularities: that is why the quadrature is in θ.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from deeplimits.errors import NotConverged, OutsideValidity
from deeplimits.models.architectures import FullyConnected
from deeplimits.numerics import panels
from deeplimits.numerics.arguments import argument, function, inside, of_kind, whole
from deeplimits.theory.kernels.infinite_width import InfiniteWidth

Floats = NDArray[np.floating]
_NODES = 32
_PANELS = (8, 16, 32, 64, 128, 256, 512)


class Degrees(NamedTuple):
    """Eigenvalues of a dot-product kernel by degree k = 0, 1, …, each `multiplicities[k]` times."""

    eigenvalues: Floats
    multiplicities: Floats
    errors: Floats
    """Bound on the quadrature error of each."""
    trace: float
    """κ(1) = Σ_k N(d, k) λ_k: what the degrees left out miss of it is the truncation error."""


def multiplicity(dimension: int, degree: int) -> float:
    """N(d, k): the number of independent harmonics of degree k on S^{d−1}.

    >>> [multiplicity(3, k) for k in range(4)], multiplicity(2, 5), multiplicity(4, 2)
    ([1.0, 3.0, 5.0, 7.0], 2.0, 9.0)
    """
    whole("dimension", dimension, 2)
    whole("degree", degree)
    if degree == 0:
        return 1.0
    if dimension == 2:
        return 2.0
    d, k = dimension, degree
    # (2k + d − 2)/(k + d − 2) · C(k + d − 2, k)
    size = float(gammaln(k + d - 1) - gammaln(k + 1) - gammaln(d - 1))
    if size > 700:
        raise OutsideValidity(f"there are e^{size:.4g} harmonics of degree {k} in {d} dimensions, beyond all numbers")
    return float(round(math.exp(size) * (2 * k + d - 2) / (k + d - 2)))


def sphere_eigenvalues(
    kernel: Callable[[Floats], Floats], dimension: int, degree: int, *, tolerance: float = 1e-12
) -> Degrees:
    r"""Mercer eigenvalues of a dot-product kernel on S^{d−1} with the uniform law, degree by degree.

    `kernel` maps an array of cosines to kernel values; `dimension` is d ≥ 2 (the circle is d = 2). Panels of
    Gauss-Legendre nodes in θ, refined towards both ends, are halved until two refinements agree.

    >>> import numpy as np
    >>> found = sphere_eigenvalues(lambda t: t / 4 + t * np.arcsin(t) / (2 * np.pi), 3, 4)
    >>> (4 * np.pi * found.eigenvalues).round(10).tolist()
    [0.7853981634, 1.0471975512, 0.3436116965, 0.0, 0.028634308]
    """
    whole("dimension", dimension, 2)
    whole("degree", degree)
    previous = _integrals(kernel, dimension, degree, _PANELS[0])
    errors, scale = np.full(degree + 1, np.inf), 1.0
    for count in _PANELS[1:]:
        current = _integrals(kernel, dimension, degree, count)
        scale = max(float(np.max(np.abs(current))), np.finfo(float).tiny)
        errors = np.abs(current - previous) + 4e-16 * scale
        if np.max(errors) <= tolerance * scale:
            # What rounding leaves of an exact zero is zero.
            eigenvalues = np.where(np.abs(current) <= 4 * errors, 0.0, current)
            counts = np.array([multiplicity(dimension, k) for k in range(degree + 1)])
            return Degrees(eigenvalues, counts, errors, float(_evaluate(kernel, np.ones(1))[0]))
        previous = current
    raise NotConverged(
        f"the eigenvalues are uncertain by {np.max(errors):.2g} after {_PANELS[-1]} panels, more than "
        f"{tolerance * scale:.2g}; the kernel is too rough inside (−1, 1), so raise the tolerance"
    )


def network_kernel(net: FullyConnected, *, kind: str = "ntk") -> Callable[[Floats], Floats]:
    """The kernel of an infinitely wide network on the sphere |x|² = d, as a function of the cosine.

    >>> import numpy as np
    >>> kernel = network_kernel(FullyConnected(1, "relu"), kind="nngp")
    >>> round(float(kernel(np.array([1.0]))[0]), 14)
    0.5
    """
    of_kind("net", net, FullyConnected)

    def values(cosines: Floats) -> Floats:
        t = np.clip(np.asarray(cosines, float), -1.0, 1.0)
        # x·x'/2 = t for these inputs in the plane, whatever the dimension of the sphere
        first = math.sqrt(2) * jnp.array([[1.0, 0.0]])
        second = math.sqrt(2) * jnp.stack([jnp.asarray(t), jnp.sqrt(jnp.asarray((1 - t) * (1 + t)))], axis=1)
        return np.asarray(getattr(InfiniteWidth(net).kernels(first, second, kind), kind))[0]

    return values


def ring_coefficients(kernel: Callable[[Floats], Floats], height: float, degree: int) -> Floats:
    r"""Fourier coefficients of a dot-product kernel on the ring {‖x‖ = 1, x_3 = c} of the sphere S².

    Setting     k(x, x') = x·x' (π − arccos x·x')/(2π), the tangent kernel of a wide two-layer ReLU network whose inner
                weights are trained; X_c = {‖x‖ = 1, x_d = c}
    Result      span{k(·, x_j)} is dense in C(X_c) for every 0 < c < 1; on the whole sphere it is not:
                k(u) = u/4 + (u/2π) asin u has only even powers besides u, so odd harmonics of degree ≥ 3 are
                unreachable
                d = 3: the kernel is circulant on X_c, with κ_j = (1/π) ∫₀^π k(c² + (1 − c²) cos φ) cos jφ dφ, all
                positive (this function, for any dot-product kernel)
    Validity    0 < c < 1; kernel interpolation is ill conditioned, κ_j ~ j^(−2); how near it comes to a function of
                your own with N points: `ring_interpolation_error`
    References  telgarsky2021; bietti2019

    >>> import numpy as np
    >>> relu = lambda u: u * (np.pi - np.arccos(u)) / (2 * np.pi)
    >>> ring_coefficients(relu, 1 / np.sqrt(3), 3).round(10).tolist()
    [0.1498775542, 0.130719179, 0.0264944449, 0.0053365042]
    """
    argument("height", height, inside(0, 1))
    return sphere_eigenvalues(lambda t: kernel(height**2 + (1 - height**2) * t), 2, degree).eigenvalues


def ring_interpolation_error(
    kernel: Callable[[Floats], Floats], height: float, target: Callable[[Floats], Floats], count: int
) -> float:
    """max |g − g_N| on the ring of `ring_coefficients`, g_N = Σ_j a_j k(·, x_j) equal to g at N equispaced points.

    `target` is g, a function of the angle on the ring. The kernel matrix is circulant, and solved by Fourier's
    transform; g_N is looked at eight times between any two points.

    >>> relu = lambda u: u * (np.pi - np.arccos(np.clip(u, -1.0, 1.0))) / (2 * np.pi)
    >>> [round(ring_interpolation_error(relu, 0.5, lambda phi: np.abs(np.sin(phi)), n), 3) for n in (8, 32, 128)]
    [0.105, 0.008, 0.001]
    """
    argument("height", height, inside(0, 1))
    whole("count", count, 1, "points on the ring")
    angles = 2 * np.pi * np.arange(8 * count) / (8 * count)
    row = _evaluate(kernel, height**2 + (1 - height**2) * np.cos(angles))
    wanted = _evaluate(target, angles, name="target")
    spectrum = np.real(np.fft.fft(row[::8]))
    if not np.min(spectrum) > 1e-14 * np.max(np.abs(spectrum)):
        raise OutsideValidity(
            f"the kernel does not tell {count} points of the ring apart: its matrix has the eigenvalue "
            f"{np.min(spectrum):.3g} (the largest is {np.max(spectrum):.3g}); take fewer points or another kernel"
        )
    coefficients = np.fft.ifft(np.fft.fft(wanted[::8]) / spectrum)
    # Convolution on the fine grid, on which the points are every eighth.
    spread = np.zeros(8 * count, complex)
    spread[::8] = coefficients
    found = np.real(np.fft.ifft(np.fft.fft(spread) * np.fft.fft(row)))
    return float(np.max(np.abs(found - wanted)))


def _integrals(kernel, dimension: int, degree: int, count: int) -> Floats:
    # Panels shrink geometrically towards both ends, where the kernel may be singular.
    theta, weights = panels.towards_both_ends(0.0, np.pi, count, _NODES)
    mass = weights * np.sin(theta) ** (dimension - 2)
    mass = mass / mass.sum()
    values = _evaluate(kernel, np.cos(theta))
    return np.array([polynomial @ (mass * values) for polynomial in _gegenbauer(theta, dimension, degree)])


def _gegenbauer(theta: Floats, dimension: int, degree: int):
    """P_0, P_1, … with P_k(1) = 1: (k + d − 2)P_{k+1} = (2k + d − 2) t P_k − k P_{k−1}."""
    t, d = np.cos(theta), dimension
    before, current = np.ones_like(t), t
    yield before
    for k in range(1, degree + 1):
        yield current
        before, current = current, ((2 * k + d - 2) * t * current - k * before) / (k + d - 2)


def _evaluate(kernel, cosines: Floats, *, name: str = "kernel") -> Floats:
    values = np.broadcast_to(np.asarray(function(name, kernel)(cosines), float), cosines.shape)
    if not np.all(np.isfinite(values)):
        raise OutsideValidity(f"the {name} is not finite everywhere; it must be bounded")
    return values
