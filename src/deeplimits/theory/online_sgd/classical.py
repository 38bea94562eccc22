r"""The classical limit of SGD: fixed dimension, step δ → 0.

X_l = X_{l−1} − δ∇L(X_{l−1}, Y_l), t = δl. X → x̄ with dx̄/dt = −∇Φ(x̄); δ^{−1/2}(X − x̄) → ζ with
dζ = −∇²Φ(x̄) ζ dt + V(x̄)^{1/2} dB. Explicit for the quadratic loss L = a(x − Y)²/2, Var Y = s², EY = 0.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.errors import ParameterError
from deeplimits.numerics.arguments import COUNT, FINITE, NOT_NEGATIVE, POSITIVE, argument, inside
from deeplimits.numerics.checks import valid
from deeplimits.theory.online_sgd.effective import EffectiveDynamics, Fluctuations, fluctuations


def gradient_flow_with_fluctuations(
    population_gradient: Callable, gradient_covariance: Callable, start: ArrayLike, times: ArrayLike
) -> Fluctuations:
    """x̄(t), and the covariance of ζ(t), for any population gradient ∇Φ and gradient covariance V.

    >>> import jax.numpy as jnp
    >>> path, cov = gradient_flow_with_fluctuations(lambda x: x, lambda x: jnp.eye(1), [1.0], [1.0])
    >>> round(float(cov[0, 0, 0]), 8)  # (1 − e⁻²)/2
    0.43233236
    """
    flow = EffectiveDynamics(drift=population_gradient, corrector=jnp.zeros_like)
    return fluctuations(flow, gradient_covariance, start, times)


def quadratic_variance(step: ArrayLike, steps: ArrayLike) -> Array:
    """Var X_l = δ(1 − (1−δ)^{2l})/(2 − δ) for L = (x − Y)²/2, Y ~ N(0, 1): exact at every δ < 2.

    >>> round(float(quadratic_variance(0.05, 100)), 12)
    0.025640126855
    """
    delta = argument("step", step, inside(0, 2), "beyond it the iterates diverge")
    count = argument("steps", steps, COUNT)
    # 1 − |1 − δ|^{2l} without cancellation; at δ = 1 the power is 0^{2l}
    log = jnp.where(delta < 0.5, jnp.log1p(-jnp.minimum(delta, 0.5)), jnp.log(jnp.abs(1 - delta)))
    growth = -jnp.expm1(jnp.where(count > 0, 2 * count * log, 0.0))
    return delta * growth / (2 - delta)


def deviation_rate(deviation: ArrayLike, horizon: ArrayLike) -> Array:
    """I(ε) = ε²/(1 − e^{−2T}): P(sup_{t≤T}|X − x̄| > ε) = exp(−(I + o(1))/δ), for L = (x − Y)²/2, Y ~ N(0, 1).

    >>> round(float(deviation_rate(0.5, 1.0)), 8)
    0.28912941
    """
    deviation, horizon = argument("deviation", deviation, NOT_NEGATIVE), argument("horizon", horizon, POSITIVE)
    return deviation**2 / -jnp.expm1(-2 * horizon)


def interpolation(path: Array, step: ArrayLike, times: ArrayLike) -> Array:
    """X_{[t/δ]} + (t/δ − [t/δ])(X_{[t/δ]+1} − X_{[t/δ]}): the iterates joined by straight lines."""
    if path.shape[0] < 2:
        raise ParameterError(f"path has {path.shape[0]} iterate; joining iterates by lines needs two or more")
    path, last = argument("path", path, FINITE), path.shape[0] - 1
    position = argument("times", times, NOT_NEGATIVE) / argument("step", step, POSITIVE)
    position = valid(
        position, position <= last * (1 + 1e-9), "times reach beyond the last iterate; take earlier ones, or more steps"
    )
    index = jnp.clip(jnp.floor(position).astype(int), 0, last - 1)
    weight = position - jax.lax.convert_element_type(index, float)
    return path[index] + weight * (path[index + 1] - path[index])
