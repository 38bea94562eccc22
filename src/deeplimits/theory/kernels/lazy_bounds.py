r"""Lazy training: when a nonlinear model trained by gradient flow follows its linearization, with constants.

L = Lipschitz constant of the Jacobian (operator norms), σ_min and σ_max the extreme singular values of the Jacobian J₀
(n, p) at the start, r₀ = ‖y − f(θ₀)‖.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, argument, array, at_least
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian.moments import mean_curvature, mean_slope, slope_moment
from deeplimits.theory.kernels.linearization import curvature, curvature_bound

PEAK = 0.75 * 4 ** (-1 / 3)
"""The largest value of e^{−x/2} − e^{−2x}, at x = (4/3) log 2."""


class LazyBounds(NamedTuple):
    """Bounds along gradient flow on (1/2n)‖y − f(θ)‖², for all times."""

    rate: float
    """λ₀ = σ_min²/2n: R(θ_t) ≤ R(θ₀)e^{−λ₀t}."""
    displacement: float
    """‖θ_t − θ₀‖ ≤ 2r₀/σ_min."""
    linear_displacement: float
    """‖θ̄_t − θ₀‖ ≤ r₀/σ_min for the linearized flow."""
    distance: float
    """‖θ_t − θ̄_t‖ ≤ min(3r₀/σ_min, 2Lr₀²/σ_min³ + 30Lσ_max²r₀²/σ_min⁵)."""
    laziness: float
    """Lr₀/(σ_min²/4), below one: the condition of the theorem."""
    quadratic_distance: float
    """The second of the two bounds in `distance`, which falls with L."""
    output_distance: float
    """‖f(θ_t) − f̄(θ̄_t)‖ on the training points is at most this, at any time."""

    def output_distance_at(self, times: ArrayLike) -> Floats:
        """‖f(θ_t) − f̄(θ̄_t)‖ ≤ (20σ_max L r₀²/3σ_min³)(e^{−λ₀t/2} − e^{−2λ₀t}) on the training points."""
        passed = self.rate * argument("times", times, NOT_NEGATIVE)
        return self.output_distance / PEAK * jnp.exp(-passed / 2) * -jnp.expm1(-1.5 * passed)


def lazy_training_bounds(
    lipschitz: float, least: float, largest: float, residual: float, *, samples: int = 1
) -> LazyBounds:
    r"""Bounds on training a model whose Jacobian changes slowly, with their constants.

    Setting     gradient flow on R = (1/2n)‖y − f(θ)‖²; L = Lip(Df), singular values σ_min ≤ σ_max of J₀ (full rank n),
                r₀ = ‖y − f(θ₀)‖; θ̄ the flow of the linearized model
    Result      if L r₀ < σ_min²/4, for all t: R(θ_t) ≤ R(θ₀)e^{−λ₀t}, λ₀ = σ_min²/2n; ‖θ_t − θ₀‖ ≤ 2r₀/σ_min;
                ‖θ̄_t − θ₀‖ ≤ r₀/σ_min; ‖θ_t − θ̄_t‖ ≤ min(3r₀/σ_min, 2Lr₀²/σ_min³ + 30Lσ_max²r₀²/σ_min⁵), and on the
                training points ‖f(θ_t) − f̄(θ̄_t)‖ ≤ (20σ_max L r₀²/3σ_min³)(e^{−λ₀t/2} − e^{−2λ₀t})
    Validity    the condition; where it fails there are no bounds and an error says by how much
    References  bartlett2021 Thm 5.1; chizat2019

    For a two-layer network `two_layer_lipschitz` bounds L.

    >>> bounds = lazy_training_bounds(1.0, 5**0.5, 5**0.5, 0.5)
    >>> round(bounds.rate, 12), round(bounds.displacement, 12), round(bounds.distance, 12)
    (2.5, 0.4472135955, 0.67082039325)
    """
    _positive(lipschitz=lipschitz, least=least, largest=largest)
    if not residual >= 0 or not least <= largest * (1 + 1e-12) or samples < 1:
        raise ParameterError(
            f"residual = {residual}, least = {least}, largest = {largest}, samples = {samples} is not allowed; "
            "residual must be at least 0, least at most largest, samples at least 1"
        )
    laziness = 4 * lipschitz * residual / least**2
    if not laziness < 1:
        raise OutsideValidity(
            f"the condition of lazy training is not met: L r₀/(σ_min²/4) = {laziness:.4g} is not below 1; make the "
            "model wider, or its start closer to the targets"
        )
    sharp = 2 * lipschitz * residual**2 / least**3 + 30 * lipschitz * largest**2 * residual**2 / least**5
    # With ‖K_t − K_0‖ ≤ 5σ_max L r₀/σ_min, K_t ≥ σ_min²/4 and nλ₀ = σ_min²/2.
    apart = 20 * largest * lipschitz * residual**2 / (3 * least**3)
    return LazyBounds(
        least**2 / (2 * samples),
        2 * residual / least,
        residual / least,
        min(3 * residual / least, sharp),
        laziness,
        sharp,
        PEAK * apart,
    )


def two_layer_lipschitz(activation: ActivationLike, x: ArrayLike, width: int, *, scale: float = 1.0) -> float:
    """A bound on Lip(Df) for f = (α/√m) Σ ±σ(⟨w_j, x_i⟩): (α/√m) sup|σ''| ‖X‖ max_i ‖x_i‖; refused for ReLU."""
    rows = np.asarray(array("x", x, ("n", "d"), why="one input in each row"))
    argument("width", width, at_least(1))
    argument("scale", scale, POSITIVE)
    return (
        scale
        / np.sqrt(width)
        * curvature_bound(activation)
        * np.linalg.norm(rows, 2)
        * np.linalg.norm(rows, axis=1).max()
    )


class ScaledBounds(NamedTuple):
    """Bounds for training αf on ½‖αf(w) − y‖²."""

    threshold: float
    """The α above which the theorem applies: 4L√(2R₀)/σ_min² (sharp), or L√(1152 σ_max² R₀)/σ_min³."""
    rate: float
    """R ≤ R₀ e^{−rate·t}, rate = α²σ_min²/2."""
    displacement: float
    linear_displacement: float
    distance: float
    """‖w_t − u_t‖ at all times; falls like 1/α² from a start at which the model vanishes."""


def lazy_scaling(
    alpha: float, lipschitz: float, least: float, largest: float, risk: float, *, sharp: bool = True
) -> ScaledBounds:
    r"""The theorem that a large output scale makes training lazy.

    Setting     R(αf(w)) = ½‖αf(w) − y‖² (no 1/n), flow ẇ = −αJᵀ(αf − y), tangent flow u; R₀ the risk at the start for
                this α; L = Lip(J), σ_min, σ_max of J₀
    Result      if α > 4L√(2R₀)/σ_min²: R(αf(w_t)), R(αf̃(u_t)) ≤ R₀e^{−tα²σ_min²/2}, ‖w_t − w₀‖ ≤ 2√(2R₀)/(ασ_min),
                ‖u_t − w₀‖ ≤ √(2R₀)/(ασ_min), and with r₀² = 2R₀
                ‖w_t − u_t‖ ≤ min(3r₀/(ασ_min), (2Lr₀²/σ_min³ + 30Lσ_max²r₀²/σ_min⁵)/α²); displacements fall like
                1/α and the distance like 1/α² if f(w₀) = 0, as it is from an antisymmetric start. With sharp=False, as
                published: α ≥ L√(1152σ_max²R₀)/σ_min³ and 3√(8σ_max²R₀)/(ασ_min²) for both
    Validity    R₀ depends on α unless f(w₀) = 0, and then the admissible α may be a bounded interval or empty
                (`lazy_range` finds it, `tangent_interpolant` where u ends); below the threshold an error is raised
    References  chizat2019; telgarsky2021

    >>> lazy_scaling(24.0, 1.0, 1.0, 1.0, 0.5, sharp=False).displacement
    0.25
    >>> lazy_scaling(24.0, 1.0, 1.0, 1.0, 0.5).threshold
    4.0
    """
    _positive(alpha=alpha, lipschitz=lipschitz, least=least, largest=largest)
    argument("risk", risk, NOT_NEGATIVE)
    if not least <= largest * (1 + 1e-12):
        raise ParameterError(
            f"least = {least:g} is above largest = {largest:g}; they are singular values of one matrix"
        )
    if sharp:
        threshold = 4 * lipschitz * np.sqrt(2 * risk) / least**2
        moves = 2 * np.sqrt(2 * risk) / (alpha * least), np.sqrt(2 * risk) / (alpha * least)
    else:
        threshold = lipschitz * np.sqrt(1152 * largest**2 * risk) / least**3
        moves = (3 * np.sqrt(8 * largest**2 * risk) / (alpha * least**2),) * 2
    if alpha < threshold or (sharp and alpha == threshold):
        raise OutsideValidity(
            f"alpha = {alpha:g} is below the threshold {threshold:.6g} of lazy training; raise alpha (with a start at "
            "which the model vanishes) or widen the model"
        )
    # The bound of `lazy_training_bounds` for αJ and αL; it needs the sharp condition, which the other implies.
    size = np.sqrt(2 * risk)
    apart = (2 * lipschitz * size**2 / least**3 + 30 * lipschitz * largest**2 * size**2 / least**5) / alpha**2
    distance = min(3 * size / (alpha * least), apart)
    return ScaledBounds(float(threshold), alpha**2 * least**2 / 2, float(moves[0]), float(moves[1]), float(distance))


class TwoLayerSpectrum(NamedTuple):
    """Limits of the extreme squared singular values of a wide two-layer network's Jacobian, over α²d."""

    least: Floats
    largest: Floats


def two_layer_singular_values(activation: ActivationLike, points_per_dimension: ArrayLike) -> TwoLayerSpectrum:
    r"""σ_min²/(α²d) and σ_max²/(α²d) of the Jacobian at the start, as d → ∞ with n/d → c, m ≫ n.

    c = `points_per_dimension`.

    Setting     f = (α/√m) Σ ±σ(⟨w_j, x⟩), w_j uniform on the unit sphere, x_i ~ N(0, I_d), inner weights trained
    Result      K₀/α² ≈ μ₁²XXᵀ + (E σ'² − μ₁²)d + rank one, μ₁ = E σ'(g): E σ'² − μ₁² + μ₁²(1 ∓ √c)², with 0 in place of
                (1 − √c)² for c > 1. A mean curvature E σ'' adds a spike of strength c(E σ'')², which shows if
                (E σ'')² √c > μ₁²(1 + √c): then μ₁²(τ + 1/(1 − c/τ)), τ = c(E σ'')²/μ₁². Orders: σ_min ≍ α√d,
                σ_max ≍ α(√n + √d), L ≲ α√(d/m)(√n + √d), r₀ ≲ (1 + α)√n, so training is lazy if n max(n, d) ≪ md
                (α/(1 + α))², ‖θ − θ̄‖ ≲ ((1 + α)/α)² n(n + d)^{3/2}/(√m d²)
    Validity    σ smooth; n ≪ d² for c > 1; extreme eigenvalues converge like √(log n/d)
    References  bartlett2021; bai2010

    >>> found = two_layer_singular_values("tanh", 0.25)
    >>> round(float(found.least), 12), round(float(found.largest), 12)
    (0.189243529176, 0.923001857901)
    """
    sigma = named(activation)
    if (kink := curvature(sigma).kink) is not None:
        raise OutsideValidity(
            f"activation = {sigma.name} has a kink at {kink:g}; the theorem needs a smooth activation"
        )
    c = argument("points_per_dimension", points_per_dimension, POSITIVE)
    slope, square, bend = mean_slope(sigma), slope_moment(sigma), mean_curvature(sigma)
    floor = square - slope**2
    root = jnp.sqrt(c)
    strength = c * bend**2
    # μ₁²(τ + 1/(1 − c/τ)) without dividing by μ₁, which may vanish; for odd σ the bend is a rounding error, no outlier
    outside = (jnp.abs(bend) > 1e-12 * jnp.sqrt(square)) & (bend**2 * root > slope**2 * (1 + root))
    spike = strength + slope**2 * strength / jnp.where(outside, strength - c * slope**2, 1.0)
    bulk = jnp.where(outside, spike, slope**2 * (1 + root) ** 2)
    return TwoLayerSpectrum(floor + jnp.where(c < 1, slope**2 * (1 - root) ** 2, 0.0), floor + bulk)


class LazyOrders(NamedTuple):
    """Orders of magnitude, constants left out, of a wide two-layer network from a random start."""

    residual: Floats
    """r₀ = ‖y − f(θ₀)‖ ≲ (1 + α)√n."""
    least: Floats
    """σ_min ≍ α√d."""
    largest: Floats
    """σ_max ≲ α(√n + √d)."""
    lipschitz: Floats
    """L ≲ α√(d/m)(√n + √d)."""
    laziness: Floats
    """n max(n, d)/(md)·((1 + α)/α)²: training is lazy where it is ≪ 1."""
    rate: Floats
    """λ ≍ α²d/n, in R ≤ R₀e^{−λt}."""
    displacement: Floats
    """‖θ_t − θ₀‖ ≲ ((1 + α)/α)√(n/d)."""
    distance: Floats
    """‖θ_t − θ̄_t‖ ≲ min(displacement, ((1 + α)/α)² n(n + d)^{3/2}/(√m d²))."""


def lazy_orders(alpha: ArrayLike, points: ArrayLike, dimension: ArrayLike, width: ArrayLike) -> LazyOrders:
    r"""How laziness scales with the output scale α, n points, dimension d and m neurons: orders, constants left out.

    Setting     f = (α/√m) Σ ±σ(⟨w_j, x⟩), w_j uniform on the unit sphere, x_i ~ N(0, I_d), inner weights trained, y of
                order one
    Result      the theorem of `lazy_training_bounds` with these orders of r₀, σ_min, σ_max and L
    Validity    σ smooth with Hermite coefficients up to k₀ that do not vanish, md ≳ n log n, n ≲ d^{k₀}; ratios at two
                sizes are exact, the numbers themselves are not: `two_layer_singular_values` has the constants
    References  bartlett2021 Thm 5.3

    >>> small, large = (lazy_orders(1.0, 50, 100, m) for m in (1000, 4000))
    >>> round(float(small.laziness / large.laziness), 12), round(float(small.distance / large.distance), 12)
    (4.0, 2.0)
    """
    a = argument("alpha", alpha, POSITIVE)
    given = {"points": points, "dimension": dimension, "width": width}
    n, d, m = (argument(name, value, at_least(1)) for name, value in given.items())
    start = (1 + a) / a
    largest, moved = a * (jnp.sqrt(n) + jnp.sqrt(d)), start * jnp.sqrt(n / d)
    return LazyOrders(
        residual=(1 + a) * jnp.sqrt(n),
        least=a * jnp.sqrt(d),
        largest=largest,
        lipschitz=jnp.sqrt(d / m) * largest,
        laziness=n * jnp.maximum(n, d) / (m * d) * start**2,
        rate=a**2 * d / n,
        displacement=moved,
        distance=jnp.minimum(moved, start**2 * n * (n + d) ** 1.5 / (jnp.sqrt(m) * d**2)),
    )


class DuConvergence(NamedTuple):
    """What guarantees that gradient flow on the first layer reaches zero loss."""

    radius: float
    """Δ = λ₀/4m: neurons that move less keep the kernel above λ₀/2."""
    width: float
    """n > 128 m⁴L(0)/λ₀⁴ suffices."""
    rate: float
    """L(t) ≤ e^{−rate·t}L(0), rate = ηλ₀/m."""
    movement: float | None
    """Δ* = 2√2 m√L(0)/(λ₀√n) at the given width."""


def du_convergence(
    points: int, least: float, loss: float, *, width: int | None = None, step: float = 1.0
) -> DuConvergence:
    r"""The width at which a two-layer network provably trains to zero loss.

    Setting     first layer trained by gradient flow with rate η on (1/2m)Σ(z − y)², second layer frozen, |v_i| ≤ 1,
                |σ'|, |σ''| ≤ 1, |x| = 1; λ₀ the least eigenvalue of the kernel at the start, L(0) the loss there
    Result      max_i |w_i − w_i(0)| ≤ Δ implies ‖K − K₀‖ ≤ 2mΔ; K ≥ λ₀/2 on [0, t] implies L(t) ≤ e^{−ηλ₀t/m}L(0) and
                |w_i(t) − w_i(0)| ≤ Δ* = 2√2 m√L(0)/(λ₀√n); so n > 128 m⁴L(0)/λ₀⁴ suffices
    Validity    smooth σ with bounded derivatives; very conservative in practice
    References  du2019

    >>> found = du_convergence(4, 0.3, 0.5)
    >>> found.radius, round(found.width, 6)
    (0.01875, 2022716.049383)
    """
    _positive(least=least, loss=loss, step=step)
    if points < 1 or (width is not None and width < 1):
        raise ParameterError(f"points = {points}, width = {width} is not allowed; both are whole numbers ≥ 1")
    movement = None if width is None else 2 * np.sqrt(2) * points * np.sqrt(loss) / (least * np.sqrt(width))
    return DuConvergence(least / (4 * points), 128 * points**4 * loss / least**4, step * least / points, movement)


def _positive(**values: float) -> None:
    for name, value in values.items():
        argument(name, value, POSITIVE)
