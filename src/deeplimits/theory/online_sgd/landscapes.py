r"""Losses that see a unit vector x only through its correlation m = ⟨x, θ⟩ with a signal θ.

A `Landscape` holds the population loss φ(m) and what the noise of one gradient adds: s(m) = lim E|∇L|²/N, with ∇ the
spherical gradient, and σ² = E⟨∇H, θ⟩² at the equator, H = L − EL. Online SGD on the sphere is determined by these.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.errors import NotConverged, OutsideValidity, ParameterError
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import arguments, panels
from deeplimits.numerics.arguments import FINITE, NOT_NEGATIVE, POSITIVE, argument, known, of_kind
from deeplimits.numerics.checks import valid
from deeplimits.numerics.ranks import same_rank
from deeplimits.theory.gaussian import quadrature
from deeplimits.theory.gaussian.hermite import hermite_coefficients
from deeplimits.theory.gaussian.pairs import pair

TRIED = 0.3
"""The correlation at which the slope is compared with its Hermite series: 0.3²⁰ is below its tolerance."""
SMALL = 0.05
"""Up to this correlation the slope is its Hermite series, of which 20 terms leave 1e-26, relative to its first term."""
_ANGLES, _ANGULAR = panels.gauss(32, 0.0, 1.0)
_RADII, _RADIAL = panels.gauss(48, 0.0, 11.0)
_RADIAL = _RADIAL * _RADII * np.exp(-(_RADII**2) / 2) / (2 * np.pi)


class Landscape(NamedTuple):
    """What spherical online SGD knows of a model: functions of the correlation m, and constants at the equator."""

    loss: Callable
    """φ(m)."""
    slope: Callable
    """φ'(m)."""
    squared_gradient: Callable
    """s(m) = lim E|∇L|²/N."""
    directional_variance: Callable
    """E⟨∇H, θ⟩², the variance of the gradient's component along the signal."""
    exponent: int
    """Information exponent k."""
    drift_constant: Array
    """a_k in −φ'(m) ≈ a_k m^{k−1}."""
    gradient_moment: Callable | None = None
    """lim E(|∇L|²/N)^{q/2} as a function of m and q, infinite where there is none; None where it is not known."""
    curvature: Callable | None = None
    """φ''(m); None where it is not known."""


class InformationExponent(NamedTuple):
    """The first Hermite coefficient that teacher and student share."""

    exponent: int
    drift_constant: float
    """a_k = −φ^{(k)}(0)/(k−1)! = 2 k u_k(f) u_k(g)."""
    fisher_consistent: bool
    """Whether a_k > 0, so that the flow leaves the equator towards the signal."""
    products: np.ndarray
    """u_l(f) u_l(g)."""
    errors: np.ndarray


class _Compiled(NamedTuple):
    value: Callable
    slope: Callable


@functools.cache
def _compiled(activation: Activation) -> _Compiled:
    """σ and σ', each as one program: Hermite expansions evaluate them on the host."""
    return _Compiled(jax.jit(activation.value), jax.jit(activation.derivative))


def information_exponent(
    teacher: ActivationLike, *, student: ActivationLike | None = None, degree: int = 20, tolerance: float = 1e-9
) -> InformationExponent:
    """Information exponent of a single-index teacher f and student g, each a name, an `Activation` or a function.

    Setting     y = f(⟨a, θ⟩) + ε, a ~ N(0, I_N), L = (y − g(⟨a, x⟩))², |x| = |θ| = 1; g = f unless given
    Result      k = min{l ≥ 1 : u_l(f) u_l(g) ≠ 0}, and −φ'(m) ≈ a_k m^{k−1} with a_k = 2k u_k(f) u_k(g)
    Validity    f, g square integrable under the Gaussian law; a coefficient counts as zero when it is below `tolerance`
                times the norm of its function or below ten times its quadrature error; raises when all up to
                `degree` are
    References  benarous2021

    >>> found = information_exponent("hermite4")
    >>> found.exponent, found.fisher_consistent
    (4, True)
    >>> information_exponent(lambda z: z**2, student="hermite2").exponent
    2
    """
    f, g = named(teacher), named(teacher if student is None else student)
    of_f = hermite_coefficients(_compiled(f).value, degree)
    of_g = of_f if g is f else hermite_coefficients(_compiled(g).value, degree)
    products = of_f.coefficients * of_g.coefficients
    errors = np.abs(of_f.errors * of_g.coefficients) + np.abs(of_g.errors * of_f.coefficients)
    present = ~(of_f.vanishes(tolerance) | of_g.vanishes(tolerance))
    present[0] = False
    if not present.any():
        raise NotConverged(
            f"degree = {degree}: no Hermite coefficient of order 1 to {degree} is shared by teacher and student above "
            f"the tolerance {tolerance:g}; the information exponent is larger than that or undefined, so raise degree"
        )
    k = int(np.argmax(present))
    constant = float(2 * k * products[k])
    return InformationExponent(k, constant, constant > 0, products, errors)


def online_pca(signal: ArrayLike) -> Landscape:
    """Y ~ N(0, I + λθθ'), L = −⟨x, Y⟩².

    >>> float(online_pca(1.0).squared_gradient(0.0))
    4.0
    """
    lam = argument("signal", signal, POSITIVE, "θ is the direction of the largest variance")

    def directional(m):
        # 4[(1+λm²)(q²+λq⁴) + λ²m²q⁴], q² = 1 − m²
        q2 = 1 - m**2
        return 4 * ((1 + lam * m**2) * (q2 + lam * q2**2) + lam**2 * m**2 * q2**2)

    return Landscape(
        loss=lambda m: -1 - lam * m**2,
        slope=lambda m: -2 * lam * m,
        squared_gradient=lambda m: 4 * (1 + lam * m**2),
        directional_variance=directional,
        exponent=2,
        drift_constant=2 * lam,
        # |∇L|²/N → 4z², z ~ N(0, 1 + λm²)
        gradient_moment=lambda m, q: (8 * (1 + lam * m**2)) ** (q / 2) * math.gamma((q + 1) / 2) / math.sqrt(math.pi),
        curvature=lambda m: -2 * lam * jnp.ones_like(m),
    )


def tensor_pca(signal: ArrayLike, order: int) -> Landscape:
    """Y = λθ^{⊗k} + W with independent standard Gaussian entries, L = −⟨Y, x^{⊗k}⟩ on the sphere; k ≥ 1.

    The spherical gradient's noise is Gaussian with covariance k on the tangent space.

    >>> float(tensor_pca(2.0, 3).drift_constant)
    6.0
    """
    check_order(order, least=1)
    lam = argument("signal", signal, FINITE)
    return Landscape(
        loss=lambda m: -lam * m**order,
        slope=lambda m: -order * lam * m ** (order - 1),
        squared_gradient=lambda m: order * jnp.ones_like(m),
        directional_variance=lambda m: order * (1 - m**2),
        exponent=order,
        drift_constant=order * lam,
        gradient_moment=lambda m, q: order ** (q / 2) * jnp.ones_like(m),
        curvature=lambda m: -order * (order - 1) * lam * (m ** (order - 2) if order > 1 else jnp.zeros_like(m)),
    )


def field_of_share(share: ArrayLike) -> Array:
    """The field h of a binary mixture whose first component has the share p: 2p − 1 = tanh h.

    >>> float(field_of_share(0.5)), round(float(field_of_share(0.9)), 10)
    (0.0, 1.0986122887)
    """
    p = argument("share", share, arguments.inside(0, 1), "both components have a share")
    # h = ½ log(p/(1 − p)), exactly 0 at p = ½
    return (jnp.log(p) - jnp.log1p(-p)) / 2


def binary_mixture(field: ArrayLike, *, unbalanced: bool = True) -> Landscape:
    """Y ~ p N(θ, I) + (1−p) N(−θ, I) with 2p − 1 = tanh h, L = −log cosh(⟨Y, x⟩ + h).

    `field_of_share` gives the field h of a share p. The information exponent is 1 for h ≠ 0 (p ≠ ½) and 2 for h = 0,
    as `unbalanced` says where h is not known yet. φ'' is the landscape's `curvature`.

    >>> round(float(binary_mixture(0.0, unbalanced=False).drift_constant), 10)
    0.6057055096
    >>> mixture = binary_mixture(field_of_share(0.5))
    >>> mixture.exponent, round(float(mixture.curvature(0.0)), 10)
    (2, -0.6057055096)
    """
    h = argument("field", field, FINITE)
    if known(h):
        if not unbalanced and np.any(np.asarray(h) != 0):
            raise ParameterError(f"field = {h} is not 0, so the mixture is unbalanced; leave out unbalanced=False")
        unbalanced = bool(np.all(np.asarray(h) != 0))
    nodes, weights = (jnp.asarray(part) for part in panels.normal(100))
    balance = jnp.tanh(h)

    def mean(function, m):
        # E over z ~ N(0,1) and over the label ε = ±1 with P(ε = 1) = (1 + tanh h)/2
        z, m = same_rank(nodes, jnp.asarray(m, float)[..., None])
        plus, minus = function(z + m + h, 1.0) @ weights, function(z - m + h, -1.0) @ weights
        return (1 + balance) / 2 * plus + (1 - balance) / 2 * minus

    def slope(m):
        return -mean(lambda t, label: label * jnp.tanh(t), m)

    def directional(m):
        # ⟨∇L, θ⟩ = −tanh(t) q (ε q + ζ), ζ ~ N(0,1) independent of t
        m = jnp.asarray(m, float)
        q2 = 1 - m**2
        second = mean(lambda t, _: jnp.tanh(t) ** 2, m)
        return q2 * (q2 + 1) * second - (q2 * slope(m)) ** 2

    zero = jnp.zeros(())
    return Landscape(
        loss=lambda m: -mean(lambda t, _: jnp.abs(t) + jnp.log1p(jnp.exp(-2 * jnp.abs(t))) - math.log(2), m),
        slope=slope,
        squared_gradient=lambda m: mean(lambda t, _: jnp.tanh(t) ** 2, m),
        directional_variance=directional,
        exponent=1 if unbalanced else 2,
        drift_constant=-slope(zero) if unbalanced else mean(lambda t, _: _squared_sech(t), zero),
        gradient_moment=lambda m, q: mean(lambda t, _: jnp.abs(jnp.tanh(t)) ** q, m),
        curvature=lambda m: -mean(lambda t, _: _squared_sech(t), m),
    )


def single_index(teacher: ActivationLike, student: ActivationLike, noise: ArrayLike) -> Landscape:
    """y = f(⟨a, θ⟩) + ε with ε of standard deviation `noise`, L = (y − g(⟨a, x⟩))², a ~ N(0, I).

    Every quantity is a mean over two Gaussians with correlation m, by a quadrature that is cut at the links' kinks: as
    accurate for links with kinks as for smooth ones, and up to m = ±1. f is the `teacher`, g the `student`: names,
    `Activation`s or functions; a function is taken to be smooth (`models.from_function` names its kinks), and refused
    where the slope found is not that of its Hermite series.

    >>> landscape = single_index("square", "square", 0.0)
    >>> landscape.exponent, round(float(landscape.squared_gradient(0.0)), 8)
    (2, 192.0)
    """
    variance = argument("noise", noise, NOT_NEGATIVE) ** 2
    (f, f_slope), (g, g_slope) = _compiled(named(teacher)), _compiled(named(student))
    kinks = tuple(sorted({*named(teacher).kinks, *named(student).kinks}))
    mean = functools.partial(_mean_of_pair, kinks)
    found = information_exponent(teacher, student=student)
    if not found.fisher_consistent:
        raise OutsideValidity(
            f"the leading shared coefficient, of order {found.exponent}, is negative "
            f"({found.products[found.exponent]:.4g}): SGD is driven away from the signal; change the student's sign"
        )

    # φ(m) = E(f(z') − g(z))² + σ²;  −φ'(m) = 2 E f'(z')g'(z);  s(m) = 4 E[((f(z') − g(z))² + σ²) g'(z)²];
    # ⟨∇L, θ⟩ = −2 (y − g(z)) g'(z)(z' − m z)
    def by_quadrature(m):
        return mean(lambda a, z, m: 2 * f_slope(a) * g_slope(z), m)

    # Its coefficients know nothing of kinks or derivatives: −φ'(m) = Σ 2k u_k(f)u_k(g) m^{k−1}
    degree = np.arange(1, len(found.products))
    series = np.where(degree < found.exponent, 0.0, 2 * degree * found.products[1:])

    def minus_slope(m):
        m = jnp.asarray(m, float)
        near = jnp.abs(m) < SMALL
        # Near the equator, where the slope is small and the quadrature's rounding is not.
        close = jnp.polyval(jnp.asarray(series[::-1]), jnp.where(near, m, 0.0))
        return jnp.where(near, close, by_quadrature(jnp.where(near, SMALL, m)))

    def directional(m):
        def square(a, z, m):
            return 4 * ((f(a) - g(z)) ** 2 + variance) * (g_slope(z) * (a - m * z)) ** 2

        return mean(square, m) - ((1 - jnp.asarray(m, float) ** 2) * minus_slope(m)) ** 2

    expected = float(np.polyval(series[::-1], TRIED))
    slope, size = minus_slope(TRIED), mean(lambda a, z, m: jnp.abs(f_slope(a) * g_slope(z)), TRIED)
    valid(
        slope,
        jnp.abs(slope - expected) <= 1e-7 * (size + abs(expected)),
        "the derivatives given are not those of f and g: a link jumps, oscillates, or has kinks that are not named; "
        "take continuous links, and name the kinks of a function by models.from_function(f, kinks=(…))",
    )
    return Landscape(
        loss=lambda m: mean(lambda a, z, m: (f(a) - g(z)) ** 2, m) + variance,
        slope=lambda m: -minus_slope(m),
        squared_gradient=lambda m: mean(lambda a, z, m: 4 * ((f(a) - g(z)) ** 2 + variance) * g_slope(z) ** 2, m),
        directional_variance=directional,
        exponent=found.exponent,
        drift_constant=jnp.asarray(found.drift_constant),
        gradient_moment=functools.partial(_moment, f, g, g_slope, jnp.sqrt(variance), kinks),
        curvature=lambda m: _inside(lambda m: -minus_slope(m), m),
    )


def _inside(slope: Callable, m: ArrayLike) -> Array:
    """φ'' as the derivative of φ', for |m| < 1: at the ends that of links with kinks is infinite."""
    m = argument("m", m, arguments.inside(-1, 1), "the second derivative may be infinite at the ends")
    return jax.vmap(jax.grad(lambda one: slope(one)))(jnp.ravel(m)).reshape(m.shape)


def _moment(f: Callable, g: Callable, g_slope: Callable, noise: Array, kinks: tuple[float, ...], m, q: float) -> Array:
    """E|2(f(z') + ε − g(z))g'(z)|^q; infinite where more than a thousandth of it lies twelve deviations out."""
    # Labels without an error need no rule for it.
    errors, weights = (jnp.asarray(part) for part in panels.normal(1 if known(noise) and float(noise) == 0 else 40))

    def power(z, a):
        # One z and many a: a row for each a, a column for each error of the label.
        difference = jnp.broadcast_to(f(a) - g(z), a.shape)[:, None]
        slope = g_slope(z)
        return (2 * jnp.abs((difference + noise * errors[None, :]) * slope)) ** q @ weights

    def at(m):
        value, size, outskirts = quadrature.joint_rule(power, pair(1.0, 1.0, m), kinks)
        return jnp.where(outskirts <= quadrature.LARGEST_OUTSKIRTS * size, value, jnp.inf)

    return jax.lax.map(at, jnp.ravel(jnp.asarray(m, float))).reshape(jnp.shape(m))


def critical_step(landscape: Landscape) -> Array:
    """The step below which a constant step leaves the equator when k = 2: δ < 2 a_2/s(0).

    >>> float(critical_step(online_pca(1.5)))
    1.5
    """
    of_kind("landscape", landscape, Landscape)
    if landscape.exponent != 2:
        raise OutsideValidity(
            f"landscape has information exponent {landscape.exponent}; there is a critical step for exponent 2 alone"
        )
    return 2 * landscape.drift_constant / landscape.squared_gradient(jnp.zeros(()))


def check_order(order: int, *, least: int = 1) -> None:
    """Refuse an order that is not a whole number of at least `least`."""
    arguments.whole("order", order, least)


def _mean_of_pair(kinks: tuple[float, ...], function: Callable, m: ArrayLike) -> Array:
    """E function(z', z, m) over standard Gaussians with correlation m, for functions smooth but for z or z' at a kink.

    Without kinks but at 0 z = ρ cos φ and z' = ρ cos(φ − β), cos β = m: four sectors, of angles β and π − β, by
    Gauss-Legendre rules.
    """
    if set(kinks) - {0.0}:
        flat = jnp.ravel(jnp.asarray(m, float))
        found = jax.lax.map(
            lambda m: quadrature.joint_rule(lambda z, a: function(a, z, m), pair(1.0, 1.0, m), kinks)[0], flat
        )
        return found.reshape(jnp.shape(m))
    m = jnp.asarray(m, float)[..., None, None]
    beta = jnp.arccos(jnp.clip(m, -1.0, 1.0))
    widths = jnp.concatenate([beta, jnp.pi - beta, beta, jnp.pi - beta], axis=-2)
    starts = jnp.concatenate([0 * beta, beta, 0 * beta + jnp.pi, beta + jnp.pi], axis=-2) - jnp.pi / 2
    nodes, radii = same_rank(_ANGLES, _RADII, m)[:2]
    angles = (starts + widths * nodes).reshape(*m.shape[:-2], -1, 1)
    z = radii * jnp.cos(angles)
    other = radii * jnp.cos(angles - beta)
    found = (function(other, z, m) @ jnp.asarray(_RADIAL)).reshape(*widths.shape[:-1], -1)
    return jnp.sum(found @ jnp.asarray(_ANGULAR) * widths[..., 0], axis=-1)


def _squared_sech(t: Array) -> Array:
    # 1 − tanh² loses all digits for large |t|
    small = jnp.exp(-2 * jnp.abs(t))
    return 4 * small / (1 + small) ** 2
