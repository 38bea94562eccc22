r"""Gradient descent with noise on a quadratic, and how fast step sizes must shrink.

One eigendirection of curvature λ: δ_{t+1} = (1 − η_t λ)δ_t − η_t ξ_t with independent ξ_t of variance σ². Second
moments obey v_{t+1} = (1 − η_t λ)² v_t + η_t² σ² exactly, whatever the law of ξ.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.checks import valid
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats, Scalar

MANY = 1 << 20
"""Iterates up to which correlations are summed one by one."""


def variance_path(
    curvature: ArrayLike, steps: Float[Array, " t"], noise_variance: ArrayLike, *, start: ArrayLike = 0.0
) -> Float[Array, " t+1"]:
    """v_0, …, v_t for the step sizes η_1, …, η_t in `steps`.

    >>> eta = 1 / jnp.arange(1.0, 101.0)
    >>> round(float(variance_path(1.0, eta, 1.0, start=7.0)[-1]), 12)
    0.01
    """
    lam = arguments.argument("curvature", curvature, arguments.FINITE)
    noise = arguments.argument("noise_variance", noise_variance, arguments.NOT_NEGATIVE)
    steps = arguments.array("steps", steps, ("t",), allowed=arguments.NOT_NEGATIVE)
    arguments.argument("start", start, arguments.NOT_NEGATIVE, "a variance")

    def advance(v, eta):
        following = (1 - eta * lam) ** 2 * v + eta**2 * noise
        return following, following

    first = jnp.asarray(start, float)
    _, path = jax.lax.scan(advance, first, steps)
    return jnp.concatenate([first[None], path])


def stationary_variance(step: ArrayLike, curvature: ArrayLike, noise_variance: ArrayLike) -> Floats:
    """v_∞ = ησ²/(λ(2 − ηλ)) of noisy gradient descent with a constant step.

    Setting     θ ← θ − η(∇L + ξ) on L = λθ²/2, independent ξ of mean zero and variance σ²
    Result      v_t = (1−ηλ)^{2t} v_0 + v_∞(1 − (1−ηλ)^{2t}); Gaussian ξ: the stationary law is N(0, v_∞)
    Validity    0 < η < 2/λ
    References  robbins1951

    >>> round(float(stationary_variance(0.1, 2.0, 1.0)), 15)
    0.027777777777778
    """
    eta, lam = _stable(step, curvature)
    return eta * arguments.argument("noise_variance", noise_variance, arguments.NOT_NEGATIVE) / (lam * (2 - eta * lam))


def langevin_variance(step: ArrayLike, curvature: ArrayLike, temperature: ArrayLike) -> Floats:
    """τ/(λ(1 − ηλ/2)): the stationary variance of θ ← θ − ηλθ + √(2ητ) ξ, near the Gibbs law e^{−L/τ} for small steps.

    >>> round(float(langevin_variance(0.1, 2.0, 0.5)), 14)
    0.27777777777778
    """
    eta, lam = _stable(step, curvature)
    return arguments.argument("temperature", temperature, arguments.NOT_NEGATIVE) / (lam * (1 - eta * lam / 2))


def temperature(step: ArrayLike, noise_variance: ArrayLike) -> Floats:
    """τ = ηs²/2: noise of variance s² added to the gradient acts as Langevin noise of this temperature.

    >>> float(temperature(0.1, 10.0))
    0.5
    """
    eta = arguments.argument("step", step, arguments.POSITIVE)
    return eta * arguments.argument("noise_variance", noise_variance, arguments.NOT_NEGATIVE) / 2


class RobbinsMonro(NamedTuple):
    """v_t ~ constant · t^{−power}, times log t where `logarithm`."""

    power: float
    constant: float | None
    """None where the constant depends on the start."""
    logarithm: bool


def robbins_monro(gain: float, curvature: float, noise_variance: float) -> RobbinsMonro:
    """How E δ_t² decays for the step sizes η_t = c/t.

    Setting     δ_t = (1 − cλ/t)δ_{t−1} − (c/t)ξ_t, Var ξ = σ²
    Result      2cλ > 1: t v_t → c²σ²/(2cλ − 1), least at c = 1/λ: σ²/λ²; 2cλ < 1: v_t ~ t^{−2cλ}; 2cλ = 1: v_t ~
                c²σ² log t/t
    Validity    c, λ > 0
    References  robbins1951; chung1954

    >>> robbins_monro(1.0, 1.0, 1.0)
    RobbinsMonro(power=1.0, constant=1.0, logarithm=False)
    """
    if not (gain > 0 and curvature > 0 and noise_variance >= 0):
        raise ParameterError(
            f"gain = {gain:g}, curvature = {curvature:g}, noise_variance = {noise_variance:g} are not allowed; "
            "the first two must be positive and the last not negative"
        )
    if not all(math.isfinite(value) for value in (gain, curvature, noise_variance)):
        raise ParameterError(
            f"gain = {gain:g}, curvature = {curvature:g}, noise_variance = {noise_variance:g} must be finite"
        )
    twice = 2 * gain * curvature
    if math.isclose(twice, 1.0, rel_tol=1e-12):
        return RobbinsMonro(1.0, gain**2 * noise_variance, True)
    if twice < 1:
        return RobbinsMonro(twice, None, False)
    return RobbinsMonro(1.0, gain**2 * noise_variance / (twice - 1), False)


class Convergence(NamedTuple):
    """Whether step sizes c t^{−p} lead to the minimum."""

    in_mean_square: bool
    almost_surely: bool
    """By the Robbins-Monro conditions Σ η = ∞ and Σ η² < ∞."""


def schedule_converges(power: float) -> Convergence:
    """Does noisy descent with η_t = c t^{−p} converge? In mean square for 0 < p ≤ 1, almost surely for ½ < p ≤ 1.

    >>> schedule_converges(0.5)
    Convergence(in_mean_square=True, almost_surely=False)
    """
    p = float(arguments.number("power", power, arguments.FINITE))
    return Convergence(0 < p <= 1, 0.5 < p <= 1)


def averaged_variance(step: ArrayLike, curvature: ArrayLike, noise_variance: ArrayLike, steps: int) -> Scalar:
    """E of the squared mean of `steps` successive stationary iterates with a constant step, exactly.

    (v_∞/T)[(1+ρ)/(1−ρ) − 2ρ(1−ρ^T)/(T(1−ρ)²)] with ρ = 1 − ηλ; T times it tends to σ²/λ² for every step size, the
    least possible (Polyak and Ruppert).

    >>> round(float(averaged_variance(0.1, 2.0, 1.0, 3)), 15)
    0.023086419753086
    """
    v = stationary_variance(step, curvature, noise_variance)
    steps = arguments.whole("steps", steps, 1)
    x = jnp.asarray(step, float) * jnp.asarray(curvature, float)
    rho = 1 - x
    if steps <= MANY:
        # (v/T²)[T + 2 Σ_k (T − k)ρ^k], which is the same and cancels nothing
        k, base = same_rank(jnp.arange(1.0, steps), rho[..., None])
        return v / steps**2 * (steps + 2 * jnp.sum((steps - k) * base**k, axis=-1))
    # 1 − xT/3 + (xT)²/12 − … where both are small
    small = x * steps < 1e-4
    safe = jnp.where(small, 1.0, x)
    power = (1 - safe) ** steps
    closed = ((2 - safe) / safe - 2 * (1 - safe) * (1 - power) / (steps * safe**2)) / steps
    return v * jnp.where(small, 1 - x * steps / 3 + (x * steps) ** 2 / 12, closed)


def contraction_factor(eigenvalues: ArrayLike, step: ArrayLike) -> Scalar:
    """ρ(η) = max_i |1 − ηλ_i| over nonzero eigenvalues of the Hessian: the error shrinks by this factor a step.

    Setting     gradient descent θ ← θ − η∇L on a quadratic with Hessian eigenvalues λ_i ≥ 0
    Result      converges exactly for 0 < η < 2/λ_max; best at η = 2/(λ_max + λ_min), ρ = (κ−1)/(κ+1), κ = λ_max/λ_min;
                heavy ball at best (√κ−1)/(√κ+1). Null directions never move
    Validity    symmetric positive semidefinite Hessian
    References  polyak1964

    >>> round(float(contraction_factor([1.0, 10.0], 0.1)), 12)
    0.9
    """
    values, moves = _moving(eigenvalues)
    eta = arguments.argument("step", step, arguments.NOT_NEGATIVE)
    return jnp.max(jnp.where(moves, jnp.abs(1 - eta * values), 0.0))


def _moving(eigenvalues: ArrayLike) -> tuple[Float[Array, " n"], Array]:
    """The eigenvalues, and which are not zero; one at least."""
    values = arguments.array("eigenvalues", eigenvalues, ("n",))
    moves = jnp.abs(values) > 1e-12 * jnp.max(jnp.abs(values))
    sentence = "all eigenvalues are zero: nothing moves, and every step is as good as another; give a positive one"
    return valid(values, jnp.any(moves), sentence), moves


def descent_path(
    hessian: Float[Array, "d d"], start: Float[Array, " d"], step: ArrayLike, steps: int
) -> Float[Array, "steps d"]:
    """Gradient descent on ½⟨θ, Hθ⟩ with the step `step`/λ_max: θ_k = Σ_i (1 − ηλ_i)^k ⟨v_i, θ_0⟩ v_i, k = 1, …, steps.

    >>> descent_path(jnp.diag(jnp.array([1.0, 2.0])), jnp.ones(2), 1.0, 2).tolist()
    [[0.5, 0.0], [0.25, 0.0]]
    """
    steps = arguments.whole("steps", steps, 1)
    hessian = arguments.array("hessian", hessian, ("d", "d"))
    if arguments.known(hessian) and not np.allclose(hessian, hessian.T):
        raise ParameterError("hessian is not symmetric; give the matrix of second derivatives")
    start = arguments.array("start", start, (hessian.shape[0],), why="one entry for each row of hessian")
    values, vectors = jnp.linalg.eigh(hessian)
    largest = valid(values[-1], values[-1] > 0, "hessian has no positive eigenvalue to measure the step by; give one")
    shrunk = 1 - arguments.number("step", step, arguments.POSITIVE) * values / largest
    return (shrunk[None, :] ** jnp.arange(1.0, steps + 1)[:, None] * (start @ vectors)[None, :]) @ vectors.T


class BestStep(NamedTuple):
    """The fastest constant step sizes on a quadratic."""

    step: Scalar
    factor: Scalar
    largest_step: Scalar
    momentum_factor: Scalar
    """(√κ − 1)/(√κ + 1) of heavy ball with its own best step and momentum."""


def best_step(eigenvalues: ArrayLike) -> BestStep:
    """The best constant step, its contraction factor, the largest stable step and what momentum can do.

    >>> [round(float(v), 12) for v in best_step([1.0, 10.0])]
    [0.181818181818, 0.818181818182, 0.2, 0.519493853296]
    """
    values, moves = _moving(eigenvalues)
    sentence = "an eigenvalue is negative: descent diverges with every step; give a positive semidefinite Hessian"
    values = valid(values, ~moves | (values > 0), sentence)
    high = jnp.max(values)
    low = jnp.min(jnp.where(moves, values, jnp.inf))
    root_high, root_low = jnp.sqrt(high), jnp.sqrt(low)
    return BestStep(
        2 / (high + low), (high - low) / (high + low), 2 / high, (root_high - root_low) / (root_high + root_low)
    )


def proportional_best_step(gamma: ArrayLike) -> BestStep:
    """`best_step` for least squares on n samples of d = γn independent features, n → ∞: λ = (1 ± √γ)² in the limit.

    Best factor 2√γ/(1+γ) at step 1/(1+γ), largest step 2/(1+√γ)²; heavy ball min(√γ, 1/√γ).

    >>> [round(float(part), 10) for part in proportional_best_step(0.25)]
    [0.8, 0.8, 0.8888888889, 0.5]
    """
    gamma = arguments.argument("gamma", gamma, arguments.POSITIVE)
    root = jnp.sqrt(gamma)
    return BestStep(1 / (1 + gamma), 2 * root / (1 + gamma), 2 / (1 + root) ** 2, jnp.minimum(root, 1 / root))


def _stable(step: ArrayLike, curvature: ArrayLike) -> tuple[Floats, Floats]:
    """Step and curvature, of which the first must be below 2 over the second."""
    eta = arguments.argument("step", step, arguments.POSITIVE)
    lam = arguments.argument("curvature", curvature, arguments.POSITIVE)
    sentence = "step is not below 2/curvature: the iteration diverges and has no stationary law; take a smaller step"
    return valid((eta, lam), eta * lam < 2, sentence, lambda: f" (step = {step}, curvature = {curvature})")
