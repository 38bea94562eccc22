r"""Learning to tell two Gaussian classes apart by gradient descent on least squares: errors over time.

Setting: n points x = yμ + z in R^p, labels y = ±1, z standard Gaussian, ‖μ‖² = ρ (`strength`), p/n → γ (`gamma`). The
linear classifier sign(w'x) is trained on L(w) = (1/2n)Σ(y_i − w'x_i)² + (λ/2)‖w‖² by dw/dt = −∇L from w₀ ~ N(0, σ²I/p),
with σ² = `start` and λ = `ridge`; a learning rate α only multiplies the time.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc
from jax.typing import ArrayLike

from deeplimits.errors import NotConverged
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, UNTIL_THE_END, argument, known
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.regression.edge_quadrature import REACH, Rule, marchenko_pastur_rule, resolved, spiked_rule
from deeplimits.theory.regression.filters import mean_decay
from deeplimits.theory.regression.minimum import minimum


class Classification(NamedTuple):
    """The law of y w'x, asymptotically Gaussian on new and on training points, and the shares with the wrong sign."""

    test_mean: Floats
    """μ'w."""
    test_variance: Floats
    """‖w‖²."""
    training_mean: Floats
    training_variance: Floats
    test_error: Floats
    training_error: Floats


def classification_dynamics(
    times: ArrayLike, gamma: ArrayLike, strength: ArrayLike, *, start: ArrayLike = 0.0, ridge: ArrayLike = 0.0
) -> Classification:
    """Errors of a linear classifier of two Gaussian classes after training by gradient flow for a time t.

    Setting     x = yμ + z, z ~ N(0, I_p), ‖μ‖² = ρ, p/n → γ; flow on (1/2n)Σ(y_i − w'x_i)² + (λ/2)‖w‖² from N(0, σ²I/p)
    Result      f(u) = e^{−tu}, φ(u) = (1 − f(u))/u, λ_s = 1 + γ + ρ + γ/ρ, m the Marchenko-Pastur law
                ω = √((x−λ₋)(λ₊−x))/(2π(λ_s−x)) dx + ((ρ²−γ)₊/ρ) δ(λ_s), of mass ρ
                test: E = ∫φ(x+λ) dω, V = (1+γ/ρ)∫φ²(x+λ) dω + σ²∫f²(x+λ) dm
                training: E' = (1+γ/ρ)E, V' = (1+γ/ρ)∫xφ²(x+λ) dω + σ²∫x f²(x+λ) dm − E'²
                errors Q(E/√V) and Q(E'/√V'), Q the Gaussian tail
    Validity    γ, ρ > 0; σ², λ, t ≥ 0; t = ∞ is allowed; late times within 1e-4 of γ = 1, λ = 0 are refused
    References  liao2018

    All arguments broadcast; gradients pass through all of them, at finite times. At t = 0 from σ² = 0 the weights are
    zero and the errors those of t → 0.

    >>> found = classification_dynamics(3.0, 0.5, 1.0, start=0.1)
    >>> round(float(found.test_mean), 10), round(float(found.test_variance), 10), round(float(found.test_error), 10)
    (0.4654529612, 0.4506364469, 0.2440398973)
    """
    check_mixture("classification_dynamics", times, gamma, strength, start, ridge)
    t, gamma, rho, noise, lam = (jnp.asarray(part, float) for part in (times, gamma, strength, start, ridge))
    t = resolved("classification_dynamics", t, t, gamma, ridge=lam)
    ended = jnp.isinf(t)
    found = _at_finite_time(jnp.where(ended, 1.0, t), gamma, rho, noise, lam)
    if known(ended) and not bool(jnp.any(ended)):
        return found
    limit = classification_at_infinity(gamma, rho, start=noise, ridge=lam)
    return Classification(*(jnp.where(ended, late, early) for late, early in zip(limit, found, strict=True)))


def _at_finite_time(t, gamma, rho, noise, lam) -> Classification:
    omega, law = spiked_rule(gamma, rho), marchenko_pastur_rule(gamma)
    aligned = _training_rule(omega, gamma, rho)
    (learnt, _), (seen, at) = (_learnt(rule, t, lam) for rule in (omega, aligned))
    mean = omega.integrate(learnt)
    second = (1 + gamma / rho) * omega.integrate(learnt**2)
    training_mean = (1 + gamma / rho) * mean
    # V' as the variance of xφ under the spectral measure of the labels: it cannot become negative.
    spread = aligned.integrate((at * seen - training_mean[..., None]) ** 2)
    points, late, penalty = same_rank(law.points, t[..., None], lam[..., None])
    kept = jnp.exp(-2 * late * (points + penalty))
    blur, training_blur = noise * law.integrate(kept), noise * law.integrate(points * kept)
    # Without initial noise the errors do not depend on the scale of w: dividing it by t leaves them finite at t = 0.
    noisy = noise > 0
    scale = jnp.where(noisy, t, 1.0)
    thinned = jnp.where(noisy | (t == 0), 1.0, jnp.where(t == 0, 1.0, t) ** -2)
    return Classification(
        test_mean=t * mean,
        test_variance=t**2 * second + blur,
        training_mean=t * training_mean,
        training_variance=t**2 * spread + training_blur,
        test_error=wrong_sign(scale * mean, scale**2 * second + thinned * blur),
        training_error=wrong_sign(scale * training_mean, scale**2 * spread + thinned * training_blur),
    )


def _learnt(rule: Rule, t, lam):
    """φ/t: what is learnt in units of the time, finite and nonzero at t = 0; and the points that it is seen at."""
    points, late, penalty = same_rank(rule.points, t[..., None], lam[..., None])
    return mean_decay(late * (points + penalty)), points


def _training_rule(omega: Rule, gamma, rho) -> Rule:
    """The spectral measure η of y/√n under the Gram matrix of the points, of mass one: xη = (1+γ/ρ)ω, an atom at 0."""
    weights = (1 + gamma / rho)[..., None] * omega.weights / omega.points
    left = jnp.maximum(1 - jnp.sum(weights, axis=-1, keepdims=True), 0.0)
    return Rule(
        jnp.concatenate([omega.points, jnp.zeros_like(left)], axis=-1), jnp.concatenate([weights, left], axis=-1)
    )


def classification_at_infinity(
    gamma: ArrayLike, strength: ArrayLike, *, start: ArrayLike = 0.0, ridge: ArrayLike = 0.0
) -> Classification:
    """Where training ends, in closed form; at γ = 1 without ridge the weights grow without bound and the error is 1/2.

    With q the inverse of m(−λ), the transform of the Marchenko-Pastur law, q² − (1+λ−γ)q − γλ = 0, q ≥ 0:
    E = ρ/(ρ+γ+q), V = (ρ+γ)q'(λ)/(ρ+γ+q)², E' = (ρ+γ)/(ρ+γ+q), V' = (ρ+γ)(q − λq')/(ρ+γ+q)²; without ridge and for
    γ > 1 the null space keeps σ²(1 − 1/γ) of the start.

    >>> found = classification_at_infinity(0.5, 1.0)
    >>> float(found.test_mean), round(float(found.test_variance), 12), round(float(found.test_error), 10)
    (0.5, 0.75, 0.2818514308)
    """
    check_mixture("classification_at_infinity", math.inf, gamma, strength, start, ridge)
    gamma, rho, noise, lam = (jnp.asarray(part, float) for part in (gamma, strength, start, ridge))
    # Δ = (1+λ−γ)² + 4γλ, the discriminant, as a product of distances to the edges
    product = (lam + (1 - jnp.sqrt(gamma)) ** 2) * (lam + (1 + jnp.sqrt(gamma)) ** 2)
    open_ = product > 0
    root = jnp.sqrt(jnp.where(open_, product, 1.0))
    # q and q − λ = λ/(q+γ−1), each by the form in which nothing cancels
    q = _root(1 + lam - gamma, root, gamma * lam)
    excess = _root(1 - lam - gamma, root, lam)
    q, excess = jnp.where(open_, q, 0.0), jnp.where(open_, excess, 0.0)
    # q' = (q+γ)/√Δ and q − λq' = q(q−λ)/√Δ
    total = rho + gamma + q
    mean, training_mean = rho / total, (rho + gamma) / total
    null = jnp.where(lam == 0, noise * jnp.maximum(1 - 1 / gamma, 0.0), 0.0)
    variance = jnp.where(open_, (rho + gamma) * (q + gamma) / (root * total**2), jnp.inf) + null
    training_variance = (rho + gamma) * q * excess / (root * total**2)
    return Classification(
        *jnp.broadcast_arrays(mean, variance, training_mean, training_variance),
        *jnp.broadcast_arrays(wrong_sign(mean, variance), wrong_sign(training_mean, training_variance)),
    )


def _root(b, root, product):
    """(b + √Δ)/2 = product·2/(√Δ − b), the nonnegative root."""
    positive = b >= 0
    return jnp.where(positive, (b + root) / 2, 2 * product / jnp.where(positive, 1.0, root - b))


def wrong_sign(mean: Floats, variance: Floats) -> Floats:
    """Q(E/√V), the probability that a Gaussian variable is negative; zero or one half where V or E/√V vanishes."""
    spread = variance > 0
    ratio = jnp.where(spread, mean / jnp.sqrt(jnp.where(spread, variance, 1.0)), jnp.where(mean > 0, jnp.inf, 0.0))
    return erfc(ratio / math.sqrt(2)) / 2


class Stopping(NamedTuple):
    """The best time to stop, the test error then, and the test error at the end of training."""

    time: float
    error: float
    error_at_infinity: float


def optimal_stopping(gamma: float, strength: float, *, start: float = 0.0, ridge: float = 0.0) -> Stopping:
    """The training time of smallest test error.

    Setting     as in `classification_dynamics`: two Gaussian classes, p/n → γ, flow from N(0, σ²I/p) with ridge λ
    Result      argmin over t of Q(E(t)/√V(t)). No time does better than Q(ρ/√(ρ+γ)), which σ² = 0 reaches as t → 0;
                noise in the start delays the optimum. For γ ≤ 1, and for γ > 1 with λ > (1−√γ)², the optimum is at a
                finite time; for γ > 1 with λ = 0 it is if V(∞) < (1−√γ)^{−2}; otherwise t = ∞ may be best
    Validity    γ, ρ > 0; σ², λ ≥ 0; a minimum on a grid of 600 times, refined; the curve is flat there, so the time is
                good to 1e-7 and the error to 1e-14; t = ∞ is reported too where stopping gains less than 1e-13
    References  liao2018

    >>> best = optimal_stopping(0.5, 1.0, start=0.1)
    >>> round(best.time, 5), round(best.error, 10), round(best.error_at_infinity, 10)
    (1.07413, 0.228903697, 0.2818514308)
    """
    check_mixture("optimal_stopping", 0.0, gamma, strength, start, ridge)
    gamma, strength, start, ridge = (float(part) for part in (gamma, strength, start, ridge))
    end = float(classification_at_infinity(gamma, strength, start=start, ridge=ridge).test_error)
    if start == 0:
        return Stopping(
            0.0, float(classification_dynamics(0.0, gamma, strength, start=0.0, ridge=ridge).test_error), end
        )

    def error(log_time):
        return np.asarray(
            classification_dynamics(np.exp(log_time), gamma, strength, start=start, ridge=ridge).test_error
        )

    last = math.log(0.999 * REACH / math.sqrt(gamma))
    grid = np.linspace(last - 32.0, last, 600)
    found = minimum(error, grid)
    if found.index == 0:
        raise NotConverged(
            f"optimal_stopping: the best time is below {math.exp(grid[0]):.1g}; "
            f"start = {start:g} is too small to be told from 0, so take 0"
        )
    if found.value >= end * (1 - 1e-13):
        return Stopping(math.inf, end, end)
    return Stopping(math.exp(found.at), found.value, end)


def check_mixture(what: str, times, gamma, strength, start, ridge) -> None:
    """Refuse known values that are no times, ratios or variances."""
    argument(f"{what}: times", times, UNTIL_THE_END)
    for name, value in (("gamma", gamma), ("strength", strength)):
        argument(f"{what}: {name}", value, POSITIVE)
    for name, value in (("start", start), ("ridge", ridge)):
        argument(f"{what}: {name}", value, NOT_NEGATIVE)
