r"""The density of the logarithm of a product of independent Gamma variables, in the log domain: Meijer's G at any size.

For independent g_j of shape b_j, E Π (g_j/b_j)^{m_j z} = exp Σ_j m_j ρ(b_j, z) with
ρ(b, z) = log Γ(b+z)/Γ(b) − z log b, and

    density of u = Σ_j log(g_j/b_j) at y   =   (1/2πi) ∫ exp(Σ_j m_j ρ(b_j, z) − z y) dz

over a contour to the right of all −b_j. It crosses the real axis at the saddle point, where the exponent has no slope,
and bends to the left as the path of steepest descent does to second order, on a hyperbola with asymptotes at 45°: there
the integrand neither oscillates nor cancels, and the trapezoidal rule in a variable that stretches it converges
exponentially. Every term is a difference that stays small where b_j is large, so that nothing of size log Γ(b_j) is
ever subtracted.

The formulas are written once for two libraries: NumPy and SciPy where all numbers are known, which compiles nothing,
and JAX inside `jit`, `grad` and `vmap`, or where so many shapes differ that compiling pays.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float

from deeplimits.numerics.arguments import known
from deeplimits.numerics.roots import bracketed, on_host
from deeplimits.numerics.shapes import Floats

SHIFT = 8
"""Γ is evaluated by Stirling's series at an argument larger by this, and brought back."""
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400, 43867 / 244188)
"""B_{2k}/(2k(2k−1)) for k = 1, 2, …"""
NODES = 192
DOUBLINGS = 64
NEGLIGIBLE = 45.0
"""Where the integrand has fallen by e^−45 it is cut."""
ENDS = 690.0
MOST_ON_HOST = 256
"""So many different shapes take NumPy less than a tenth of a second; JAX, once compiled, a tenth of that."""
NO_SADDLE = "the size of the data is too far from what the prior allows for numbers of double precision"


class Library(NamedTuple):
    """Where the functions of arrays are taken from."""

    arrays: Any
    special: Any


HOST, TRACED = Library(np, scipy.special), Library(jnp, jax.scipy.special)


class Placed(NamedTuple):
    """Values as arrays of a library."""

    library: Library
    values: list[Any]


def placed(*values: Any) -> Placed:
    """NumPy and SciPy, with the values as its arrays, where all are known and not too many; else JAX."""
    few = all(np.size(leaf) <= MOST_ON_HOST for leaf in jax.tree.leaves(values))
    if few and known(*values):
        return Placed(HOST, [jax.tree.map(np.asarray, value) for value in values])
    return Placed(TRACED, list(values))


class _Contour(NamedTuple):
    """Where the contour crosses the real axis, to the right of the first pole; its scale and its bend."""

    distance: Array
    scale: Array
    bend: Array


def log_density(y: Floats, shapes: Float[Array, " factors"], counts: Float[Array, " factors"]) -> Floats:
    """log of the density at y of Σ_j log(g_j/b_j), of `counts` independent Gamma variables of each of the shapes b_j.

    Derivatives in y, the shapes and the counts are exact: the contour may stay where it is when they move.
    """
    lib, given = placed(y, shapes, counts)
    return jnp.asarray(density_by(lib, *given))


def density_by(lib: Library, y, shapes, counts):
    """`log_density` by functions of one of the libraries; on the host of arrays of NumPy."""
    if lib is HOST:
        with np.errstate(all="ignore"):
            y, shapes, counts, first = _occurring(np, y, shapes, counts)
            place = on_host(
                lambda x: _slope(x, y, shapes, counts, first, HOST), np.array(-ENDS), np.array(ENDS), NO_SADDLE
            )
            return _integrate(HOST, y, shapes, counts, first, np.exp(place), (y, shapes, counts, first))
    y, shapes, counts, first = _occurring(jnp, y, shapes, counts)
    held = jax.lax.stop_gradient((y, shapes, counts, first))
    # Outside the compiled part, so that a zero that is not found is said in this package's own words.
    distance = jnp.exp(bracketed(_slope, -ENDS, ENDS, *held, sentence=NO_SADDLE))
    return _integral(y, shapes, counts, first, distance, held)


def _occurring(xp, y, shapes, counts):
    """What does not occur takes the shape of something that does, and has no pole of its own; and the first pole."""
    shapes = xp.where(counts > 0, shapes, xp.max(xp.where(counts > 0, shapes, 0.0)))
    return y, shapes, counts, xp.min(shapes)


@jax.jit
def _integral(y, shapes, counts, first, distance, held):
    return _integrate(TRACED, y, shapes, counts, first, distance, held)


def _integrate(lib, y, shapes, counts, first, distance, held):
    xp = lib.arrays
    y0, shapes0, counts0, first0 = held
    contour = _contour(xp, distance, shapes0, counts0, first0)
    reach = _reach(xp, y0, shapes0, counts0, first0, contour)
    # t = s sinh u, by the trapezoidal rule in u; the other half of the contour is the complex conjugate.
    top = xp.arcsinh(reach / contour.scale)
    count = xp.arange(NODES + 1, dtype=float)
    u = top * count / NODES
    t = contour.scale * xp.sinh(u)
    weights = xp.where((count == 0) | (count == NODES), 0.5, 1.0) * top / NODES
    exponent = _exponent(xp, t, contour, y, shapes, counts, first)
    at_saddle = xp.real(exponent[0])
    # dz = (x'(t) + i) dt, and the integral is its imaginary part over π
    direction = _complex(xp, -t / xp.hypot(contour.bend, t), xp.ones_like(t))
    heights = xp.exp(xp.real(exponent) - at_saddle)
    turned = _complex(xp, xp.cos(xp.imag(exponent)), xp.sin(xp.imag(exponent))) * direction
    total = xp.sum(weights * contour.scale * xp.cosh(u) * heights * xp.imag(turned))
    return at_saddle + xp.log(total / xp.pi)


def _contour(xp, distance, shapes, counts, first) -> _Contour:
    place = (shapes - first) + distance
    # ψ' and −ψ'' to within a few tens of percent, which is all that a scale needs
    second = xp.sum(counts * (1 / place**2 + 1 / (place + 0.5)))
    third = xp.sum(counts * (2 / place**3 + 1 / (place + 0.7) ** 2))
    # The path of steepest descent: x = −t² |F'''|/6F'', here with the curvature of the hyperbola at its vertex.
    return _Contour(distance, 1 / xp.sqrt(second), 3 * second / third)


def _slope(x, y, shapes, counts, first, lib=TRACED):
    """Σ m_j (ψ(b_j + c) − log b_j) − y at c = −min b + e^x: increasing."""
    xp = lib.arrays
    place = (shapes - first) + xp.exp(x)
    return xp.sum(counts * (lib.special.digamma(place) - xp.log(shapes))) - y


def _left(xp, t, contour):
    """How far to the left of its vertex the hyperbola is at height t: √(B² + t²) − B."""
    return t * t / (xp.hypot(contour.bend, t) + contour.bend)


def _reach(xp, y, shapes, counts, first, contour):
    """The height at which the integrand is negligible, among doublings of the contour's scale."""
    t = contour.scale * 2.0 ** xp.arange(DOUBLINGS, dtype=float)
    heights = xp.concatenate([xp.zeros(1), t])
    falls = xp.real(_exponent(xp, heights, contour, y, shapes, counts, first))
    low = falls[1:] - falls[0] <= -NEGLIGIBLE
    return xp.where(xp.any(low), t[xp.argmax(low)], t[-1])


def _exponent(xp, t, contour, y, shapes, counts, first):
    """Σ_j m_j ρ(b_j, z) − z y along the contour, one entry for each height t ≥ 0."""
    offset = contour.distance - _left(xp, t, contour)
    # b_j + z without loss where a pole is near
    near = (shapes - first)[:, None] + offset[None, :]
    z = _complex(xp, offset - first, t)
    each = _log_ratio(xp, shapes[:, None], near, (offset - first)[None, :], t[None, :])
    return xp.sum(_complex(xp, counts)[:, None] * each, axis=0) - z * _complex(xp, y)


def _log_ratio(xp, b, place, real, height):
    """log Γ(b+z)/Γ(b) − z log b for z = real + i height, with b + real = `place` given by itself."""
    # All of log(1 + z/(b+k)), k = 0 … 8, as one array: the last enters Stirling's series, the others bring it back.
    steps = xp.arange(SHIFT + 1, dtype=float)[:, None, None]
    logarithms = _log_of_one_plus(xp, b[None] + steps, place[None] + steps, real[None], height[None])
    shifted = b + SHIFT
    z = _complex(xp, real, height)
    argument = _complex(xp, *xp.broadcast_arrays(place + SHIFT, height))
    # log Γ(A+z)/Γ(A) − z log A = (A+z−½) log(1+z/A) − z + series, A = b + 8
    stirling = (argument - 0.5) * logarithms[-1] - z + _series(argument) - _complex(xp, _series(shifted))
    return stirling + z * _complex(xp, xp.log1p(SHIFT / b)) - xp.sum(logarithms[:-1], axis=0)


def _log_of_one_plus(xp, b, place, real, height):
    """log(1 + z/b) with small errors both where z is small and where b + z is."""
    x, t = real / b, height / b
    small = (x * x + t * t) < 0.25
    inside = xp.where(small, x * (2 + x) + t * t, 0.0)
    outside = xp.where(small, 1.0, (place / b) ** 2 + t * t)
    modulus = xp.where(small, xp.log1p(inside), xp.log(outside)) / 2
    return _complex(xp, *xp.broadcast_arrays(modulus, xp.arctan2(*xp.broadcast_arrays(height, place))))


def _complex(xp, real, imaginary=None):
    imaginary = xp.zeros_like(real) if imaginary is None else imaginary
    return real + 1j * imaginary if xp is np else jax.lax.complex(real, imaginary)


def _series(x):
    square, total, power = 1 / (x * x), 0.0, 1 / x
    for coefficient in STIRLING:
        total, power = total + coefficient * power, power * square
    return total


def grouped(shapes: np.ndarray) -> tuple[np.ndarray, ...]:
    """The different shapes and how often each occurs, filled up to a power of two so that few programs are compiled."""
    values, counts = np.unique(np.asarray(shapes, float), return_counts=True)
    size = 1 << max(len(values) - 1, 0).bit_length()
    extra = size - len(values)
    return np.pad(values, (0, extra), constant_values=1.0), np.pad(counts.astype(float), (0, extra))
