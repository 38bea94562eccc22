"""Least squares trained by gradient flow and gradient descent: weights on given data, risk in high dimension.

Conventions: L(w) = (1/2n)‖y − Xw‖² + (γ/2)‖w‖² with samples as rows of X; the flow is dw/dt = −∇L, so that a learning
rate α only multiplies the time; descent takes k steps of size η.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.theory.regression.edge_quadrature import check_resolved, marchenko_pastur_rule
from deeplimits.theory.regression.filters import Filter, descent_filter, flow_filter
from deeplimits.theory.regression.ridgeless import Risk, limiting_risk
from deeplimits.tracing import is_traced

Floats = Float[Array, "..."]


def ridge_flow(x: ArrayLike, y: ArrayLike, ridge: ArrayLike, time: ArrayLike, start: ArrayLike | None = None) -> Floats:
    """Weights of ridge regression after training by gradient flow, exact on any data.

    Setting     rows of X are n samples of p features, L(w) = (1/2n)‖y − Xw‖² + (γ/2)‖w‖², dw/dt = −∇L, w(0) = w₀
    Result      A = X'X/n + γ: w(t) = e^{−tA}w₀ + (1 − e^{−tA})A^{−1} X'y/n, where (1 − e^{−ta})/a is t at a = 0:
                no inverse of A is needed, and without ridge the part of w₀ outside the rows of X stays
    Validity    γ ≥ 0, 0 ≤ t < ∞; any n and p
    References  ali2019; liao2018

    `time` of shape (...) gives weights of shape (..., p); the start is zero unless given. `ridge_descent` takes steps.

    >>> round(float(ridge_flow([[1.0], [2.0]], [1.0, 1.0], ridge=0.5, time=0.3, start=[1.0])[0]), 10)
    0.7032848299
    """
    _check("ridge_flow", ridge=ridge, time=time)
    t = jnp.asarray(time, float)[..., None]
    data = _decompose("ridge_flow", x, y, start)
    return _trained(data, jnp.asarray(ridge, float), lambda u: flow_filter(t, u))


def ridge_descent(
    x: ArrayLike, y: ArrayLike, ridge: ArrayLike, step: ArrayLike, count: ArrayLike, start: ArrayLike | None = None
) -> Floats:
    """Weights of ridge regression after k = `count` steps of gradient descent of size η, exact on any data.

    As `ridge_flow` with (1 − ηa)^k in place of e^{−ta}; steps of 2/λ_max(A) or more diverge and are refused.

    >>> round(float(ridge_descent([[1.0], [2.0]], [1.0, 1.0], 0.5, step=0.1, count=3, start=[1.0])[0]), 12)
    0.6715
    """
    _check("ridge_descent", ridge=ridge, step=step, count=count)
    eta, k, gamma = jnp.asarray(step, float), jnp.asarray(count, float)[..., None], jnp.asarray(ridge, float)
    data = _decompose("ridge_descent", x, y, start)
    top = jnp.max(data.eigenvalues) + gamma
    if not is_traced(top) and not is_traced(eta) and bool(jnp.any(eta * top >= 2)):
        raise OutsideValidity(
            f"ridge_descent: step = {float(jnp.max(eta)):g} diverges; it must be below 2/λ_max = {2 / float(top):g}"
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
    x, y = jnp.asarray(x, float), jnp.asarray(y, float)
    if x.ndim != 2 or 0 in x.shape or y.shape != x.shape[:1]:
        raise ParameterError(
            f"{what}: x of shape {x.shape} and y of shape {y.shape} do not fit; x is (samples, features), y (samples,)"
        )
    w = jnp.zeros(x.shape[1]) if start is None else jnp.asarray(start, float)
    if w.shape != x.shape[1:]:
        raise ParameterError(f"{what}: start of shape {w.shape} does not fit x; it must have shape {x.shape[1:]}")
    for name, value in (("x", x), ("y", y), ("start", w)):
        if not is_traced(value) and not bool(jnp.all(jnp.isfinite(value))):
            raise ParameterError(f"{what}: {name} contains a value that is not finite; every entry must be a number")
    u, s, v = jnp.linalg.svd(x, full_matrices=False)
    return _Decomposed(v, s**2 / x.shape[0], s * (u.T @ y) / x.shape[0], w)


def _trained(data: _Decomposed, ridge, filtered) -> Floats:
    inside = filtered(data.eigenvalues + ridge)
    # Outside the rows of X nothing is learnt and only the ridge acts.
    outside = filtered(ridge[None])
    along = data.directions @ data.start
    rest = data.start - data.directions.T @ along
    return outside.kept * rest + (inside.kept * along + inside.learnt * data.pull) @ data.directions


def early_stopped_risk(time: ArrayLike, gamma: ArrayLike, signal: ArrayLike, noise_variance: ArrayLike) -> Risk:
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
    _check("early_stopped_risk", time=time, gamma=gamma, signal=signal, noise_variance=noise_variance)
    check_resolved("early_stopped_risk", time, gamma)
    t, ratio = jnp.asarray(time, float), jnp.asarray(gamma, float)
    ended = jnp.isinf(t)
    points = marchenko_pastur_rule(ratio).points
    found = _risk(flow_filter(jnp.where(ended, 0.0, t)[..., None], points), ratio, signal, noise_variance)
    if not is_traced(ended) and not bool(jnp.any(ended)):
        return found
    limit = limiting_risk(ratio, signal, noise_variance)
    return Risk(*(jnp.where(ended, late, early) for late, early in zip(limit, found, strict=True)))


def early_stopped_descent_risk(
    step: ArrayLike, count: ArrayLike, gamma: ArrayLike, signal: ArrayLike, noise_variance: ArrayLike
) -> Risk:
    """As `early_stopped_risk` for k = `count` steps of gradient descent of size η: (1 − ηs)^k in place of e^{−ts}.

    Steps of 2/(1+√γ)² or more diverge and are refused.

    >>> risk = early_stopped_descent_risk(0.25, 2, 2.0, signal=1.0, noise_variance=1.0)
    >>> round(float(risk.bias), 12), round(float(risk.variance), 12)
    (0.61328125, 0.2109375)
    """
    what = "early_stopped_descent_risk"
    _check(what, step=step, count=count, gamma=gamma, signal=signal, noise_variance=noise_variance)
    eta, k, ratio = (jnp.asarray(part, float) for part in (step, count, gamma))
    if not is_traced(eta) and not is_traced(ratio):
        largest = 2 / (1 + jnp.sqrt(ratio)) ** 2
        if bool(jnp.any(eta >= largest)):
            raise OutsideValidity(f"{what}: step = {eta} diverges; it must be below 2/(1+√gamma)² = {largest}")
    if not any(is_traced(part) for part in (step, count)):
        check_resolved(what, np.asarray(step, float) * np.asarray(count, float), gamma)
    points = marchenko_pastur_rule(ratio).points
    return _risk(descent_filter(eta[..., None], k[..., None], points), ratio, signal, noise_variance)


def _risk(filtered: Filter, gamma, signal, noise_variance) -> Risk:
    rule = marchenko_pastur_rule(gamma)
    kept, learnt = filtered
    # B = r²∫f² dm, V = σ²γ∫sφ² dm
    bias = jnp.asarray(signal, float) * rule.integrate(kept**2)
    variance = jnp.asarray(noise_variance, float) * gamma * rule.integrate(rule.points * learnt**2)
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
    _check("flow_to_ridge_ratio", x=x)
    x = jnp.asarray(x, float)
    kept, learnt = flow_filter(1.0, x)
    return FlowToRidge((kept * (1 + x)) ** 2, (learnt * (1 + x)) ** 2)


def worst_flow_to_ridge() -> tuple[float, float]:
    """The x = st at which early stopping loses most against ridge regression with λ = 1/t, and the factor there.

    The derivative of log((1−e^{−x})(1+x)/x) vanishes where e^x = 1 + x + x².

    >>> [round(part, 7) for part in worst_flow_to_ridge()]
    [1.7932821, 1.6859091]
    """
    from scipy import optimize

    at: Any = optimize.brentq(lambda x: math.exp(x) - 1 - x - x * x, 1.0, 3.0, xtol=1e-15)
    return float(at), float(flow_to_ridge_ratio(at).variance)


def _check(what: str, **values: ArrayLike) -> None:
    for name, value in values.items():
        if is_traced(value):
            continue
        known = np.asarray(value, float)
        endless = name == "time" and what == "early_stopped_risk"
        positive = name in ("gamma", "step")
        allowed = (known > 0 if positive else known >= 0) & (np.isfinite(known) | endless)
        if name == "count":
            allowed &= known == np.round(known)
        if not np.all(allowed):
            kind = "a whole number, " if name == "count" else "" if endless else "finite and "
            raise ParameterError(
                f"{what}: {name} = {value} is not allowed; it must be {kind}{'positive' if positive else 'at least 0'}"
            )
