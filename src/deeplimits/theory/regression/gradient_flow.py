"""Least squares trained by gradient flow and gradient descent: weights on given data, risk in high dimension.

Conventions: L(w) = (1/2n)‖y − Xw‖² + (γ/2)‖w‖² with samples as rows of X; the flow is dw/dt = −∇L, so that a learning
rate α only multiplies the time; descent takes k steps of size η.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.numerics import roots
from deeplimits.numerics.arguments import COUNT, NOT_NEGATIVE, POSITIVE, UNTIL_THE_END, argument, array, known
from deeplimits.numerics.checks import valid
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.regression.edge_quadrature import marchenko_pastur_rule, resolved
from deeplimits.theory.regression.filters import Filter, descent_filter, flow_filter
from deeplimits.theory.regression.ridgeless import ridgeless_risk
from deeplimits.theory.regression.risks import Risk


def ridge_flow(
    x: ArrayLike, y: ArrayLike, ridge: ArrayLike, times: ArrayLike, *, start: ArrayLike | None = None
) -> Floats:
    """Weights of ridge regression after training by gradient flow, exact on any data.

    Setting     rows of X are n samples of p features, L(w) = (1/2n)‖y − Xw‖² + (γ/2)‖w‖², dw/dt = −∇L, w(0) = w₀
    Result      A = X'X/n + γ: w(t) = e^{−tA}w₀ + (1 − e^{−tA})A^{−1} X'y/n, where (1 − e^{−ta})/a is t at a = 0:
                no inverse of A is needed, and without ridge the part of w₀ outside the rows of X stays
    Validity    γ ≥ 0, 0 ≤ t ≤ ∞ (the end: what lies outside the rows of X stays); any n and p
    References  ali2019; liao2018

    `times` of shape (...) gives weights of shape (..., p); the start is zero unless given. `ridge_descent` takes steps.

    >>> round(float(ridge_flow([[1.0], [2.0]], [1.0, 1.0], ridge=0.5, times=0.3, start=[1.0])[0]), 10)
    0.7032848299
    """
    gamma = argument("ridge_flow: ridge", ridge, NOT_NEGATIVE)
    t = argument("ridge_flow: times", times, UNTIL_THE_END)[..., None]
    data = _decompose("ridge_flow", x, y, start)
    return _trained(data, gamma, lambda u: flow_filter(t, u))


def ridge_descent(
    x: ArrayLike, y: ArrayLike, ridge: ArrayLike, step: ArrayLike, steps: ArrayLike, *, start: ArrayLike | None = None
) -> Floats:
    """Weights of ridge regression after k = `steps` steps of gradient descent of size η, exact on any data.

    As `ridge_flow` with (1 − ηa)^k in place of e^{−ta}; steps of 2/λ_max(A) or more diverge and are refused.

    >>> round(float(ridge_descent([[1.0], [2.0]], [1.0, 1.0], 0.5, step=0.1, steps=3, start=[1.0])[0]), 12)
    0.6715
    """
    eta = argument("ridge_descent: step", step, POSITIVE)
    k = argument("ridge_descent: steps", steps, COUNT)[..., None]
    gamma = argument("ridge_descent: ridge", ridge, NOT_NEGATIVE)
    data = _decompose("ridge_descent", x, y, start)
    top = jnp.max(data.eigenvalues) + gamma
    eta = valid(
        eta,
        eta * top < 2,
        "ridge_descent: the step diverges; it must be below 2/λ_max",
        lambda: f" = {2 / float(jnp.max(top)):g}, and is {float(jnp.max(eta)):g}",
    )
    return _trained(data, gamma, lambda u: descent_filter(eta, k, u))


class _Decomposed(NamedTuple):
    directions: Array
    """The right singular vectors of X as rows."""
    eigenvalues: Array
    """s²/n."""
    pull: Array
    """X'y/n along them."""
    start: Array


def _decompose(what, x, y, start) -> _Decomposed:
    x = array(f"{what}: x", x, ("samples", "features"))
    y = array(f"{what}: y", y, x.shape[:1], why="one label for each row of x")
    w = jnp.zeros(x.shape[1]) if start is None else array(f"{what}: start", start, x.shape[1:], why="columns of x")
    u, s, v = jnp.linalg.svd(x, full_matrices=False)
    # Singular values that are rounding belong to no row of X; at the end of training one would divide by them.
    s = jnp.where(s > max(x.shape) * jnp.finfo(s.dtype).eps * s[0], s, 0.0)
    return _Decomposed(v, s**2 / x.shape[0], s * (u.T @ y) / x.shape[0], w)


def _trained(data: _Decomposed, ridge, filtered) -> Floats:
    inside = filtered(data.eigenvalues + ridge)
    # Outside the rows of X nothing is learnt and only the ridge acts.
    outside = filtered(ridge[None])
    along = data.directions @ data.start
    rest = data.start - data.directions.T @ along
    still, rest = same_rank(outside.kept, rest)
    kept, learnt, along, pull = same_rank(*inside, along, data.pull)
    return still * rest + (kept * along + learnt * pull) @ data.directions


def early_stopped_risk(times: ArrayLike, gamma: ArrayLike, signal: ArrayLike, noise_variance: ArrayLike) -> Risk:
    """Risk of least squares trained by gradient flow from zero for a time t, as n, p → ∞ with p/n → γ.

    Setting     y = ⟨x, β⟩ + ε, isotropic x in R^p, ‖β‖² = r², Var ε = σ²; flow on (1/2n)‖y − Xw‖² from w = 0
    Result      B = r²∫e^{−2ts} dm, V = σ²γ∫(1 − e^{−ts})²/s dm,
                m the Marchenko-Pastur law with its atom (1 − 1/γ)₊ at zero
    Validity    γ > 0, t ≥ 0; t = ∞ is minimum-norm least squares
    References  ali2019; advani2020

    All arguments broadcast.

    >>> risk = early_stopped_risk(1.3, 1.5, signal=1.0, noise_variance=1.0)
    >>> round(float(risk.bias), 12), round(float(risk.variance), 12)
    (0.454914406388, 0.389197824614)
    """
    what = "early_stopped_risk"
    t, ratio = argument(f"{what}: times", times, UNTIL_THE_END), argument(f"{what}: gamma", gamma, POSITIVE)
    t, signal, noise_variance = resolved(what, t, t, ratio), *_sizes(what, signal, noise_variance)
    ended = jnp.isinf(t)
    points = marchenko_pastur_rule(ratio).points
    found = _risk(flow_filter(jnp.where(ended, 0.0, t)[..., None], points), ratio, signal, noise_variance)
    if known(ended) and not bool(jnp.any(ended)):
        return found
    limit = ridgeless_risk(ratio, signal, noise_variance)
    return Risk(jnp.where(ended, limit.bias, found.bias), jnp.where(ended, limit.variance, found.variance))


def early_stopped_descent_risk(
    step: ArrayLike, steps: ArrayLike, gamma: ArrayLike, signal: ArrayLike, noise_variance: ArrayLike
) -> Risk:
    """As `early_stopped_risk` for k = `steps` steps of gradient descent of size η: (1 − ηs)^k in place of e^{−ts}.

    Steps of 2/(1+√γ)² or more diverge and are refused.

    >>> risk = early_stopped_descent_risk(0.25, 2, 2.0, signal=1.0, noise_variance=1.0)
    >>> round(float(risk.bias), 12), round(float(risk.variance), 12)
    (0.61328125, 0.2109375)
    """
    what = "early_stopped_descent_risk"
    eta, k = argument(f"{what}: step", step, POSITIVE), argument(f"{what}: steps", steps, COUNT)
    ratio = argument(f"{what}: gamma", gamma, POSITIVE)
    signal, noise_variance = _sizes(what, signal, noise_variance)
    largest = 2 / (1 + jnp.sqrt(ratio)) ** 2
    eta = valid(
        eta,
        eta < largest,
        f"{what}: the step diverges; it must be below 2/(1+√gamma)²",
        lambda: f" = {largest}, and is {eta}",
    )
    k = resolved(what, k, eta * k, ratio)
    points = marchenko_pastur_rule(ratio).points
    return _risk(descent_filter(eta[..., None], k[..., None], points), ratio, signal, noise_variance)


def _sizes(what, signal, noise_variance):
    names = ("signal", signal), ("noise_variance", noise_variance)
    return (argument(f"{what}: {name}", value, NOT_NEGATIVE) for name, value in names)


def _risk(filtered: Filter, gamma, signal, noise_variance) -> Risk:
    rule = marchenko_pastur_rule(gamma)
    kept, learnt = filtered
    # B = r²∫f² dm, V = σ²γ∫sφ² dm
    bias = jnp.asarray(signal, float) * rule.integrate(kept**2)
    # sφ times φ: at s = 0 a late φ squared would overflow.
    points, learnt = same_rank(rule.points, learnt)
    variance = jnp.asarray(noise_variance, float) * gamma * rule.integrate((points * learnt) * learnt)
    return Risk(bias, variance)


class FlowToRidge(NamedTuple):
    """Ratios of gradient flow stopped at t = 1/λ to ridge regression with penalty λ, for one eigenvalue s."""

    bias: Floats
    variance: Floats


def flow_to_ridge_ratio(x: ArrayLike) -> FlowToRidge:
    """Bias and variance of early stopping over those of ridge regression, for the eigenvalue s = xλ = x/t.

    (e^{−x}(1+x))² ≤ 1 and ((1−e^{−x})(1+x)/x)² ≤ `worst_flow_to_ridge()`. With isotropic test points bias and
    variance are sums over eigenvalues, so B_flow ≤ B_ridge and R_flow ≤ `worst_flow_to_ridge()`·R_ridge, given any X.

    >>> [round(float(part), 10) for part in flow_to_ridge_ratio(1.0)]
    [0.5413411329, 1.5983056036]
    """
    x = argument("flow_to_ridge_ratio: x", x, NOT_NEGATIVE)
    kept, learnt = flow_filter(1.0, x)
    return FlowToRidge((kept * (1 + x)) ** 2, (learnt * (1 + x)) ** 2)


class WorstCase(NamedTuple):
    """Where a ratio is largest, and how large."""

    at: float
    factor: float


def worst_flow_to_ridge() -> WorstCase:
    """The x = st at which early stopping loses most against ridge regression with λ = 1/t, and the factor there.

    The derivative of log((1−e^{−x})(1+x)/x) vanishes where e^x = 1 + x + x².

    >>> [round(part, 7) for part in worst_flow_to_ridge()]
    [1.7932821, 1.6859091]
    """
    at = roots.on_host(lambda x: np.exp(x) - 1 - x - x * x, np.asarray(1.0), np.asarray(3.0))
    return WorstCase(float(at), float(flow_to_ridge_ratio(at).variance))
