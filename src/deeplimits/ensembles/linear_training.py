"""Linear models trained on finite data, followed in time.

The loss is (1/2n)‖y − Xw‖² + (γ/2)‖w‖²; its Hessian is A = X'X/n + γ.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from deeplimits.ensembles import trainers
from deeplimits.numerics.shapes import Scalar


def ridge_flow(
    x: Float[Array, "n p"],
    y: Float[Array, " n"],
    ridge: Scalar,
    start: Float[Array, " p"],
    times: Float[Array, " times"],
) -> Float[Array, "times p"]:
    """Weights of gradient flow at the given times, from the eigenvectors of the smaller Gram matrix.

    With p > n the weights are split into e^{−γt}·start and a part in the span of the points, whose coefficients follow
    a flow in R^n of their own.

    >>> one, zero = jnp.ones((1, 1)), jnp.zeros(())
    >>> round(float(ridge_flow(one, jnp.ones(1), zero, jnp.zeros(1), jnp.log(jnp.array([2.0])))[0, 0]), 12)
    0.5
    """
    n, p = x.shape
    t = times[:, None]
    if p <= n:
        values, vectors = jnp.linalg.eigh(x.T @ x / n)
        rates = jnp.maximum(values, 0.0) + ridge
        decay = jnp.exp(-t * rates[None, :])
        return (
            decay * (start @ vectors)[None, :] + _approached(t, rates) * ((y @ x / n) @ vectors)[None, :]
        ) @ vectors.T
    values, vectors = jnp.linalg.eigh(x @ x.T / n)
    values = jnp.maximum(values, 0.0)
    # w = e^{−γt}w₀ + X'a with da/dt = −(XX'/n + γ)a + (y − e^{−γt}Xw₀)/n and a(0) = 0, mode by mode.
    driven = _approached(t, values + ridge) * (y @ vectors)[None, :]
    released = jnp.exp(-t * ridge) * _approached(t, values) * ((x @ start) @ vectors)[None, :]
    return jnp.exp(-t * ridge) * start[None, :] + ((driven - released) @ vectors.T / n) @ x


def _approached(t: Float[Array, "times 1"], rates: Float[Array, " modes"]) -> Float[Array, "times modes"]:
    """∫₀ᵗ e^{−rate·s} ds for every time and rate."""
    rate = rates[None, :]
    moving = t * rate > 1e-9
    return jnp.where(moving, -jnp.expm1(-t * rate) / jnp.where(rate > 0, rate, 1.0), t)


def ridge_descent(
    x: Float[Array, "n p"],
    y: Float[Array, " n"],
    ridge: Scalar,
    start: Float[Array, " p"],
    step: Scalar,
    marks: ArrayLike,
) -> Float[Array, "marks p"]:
    """The weights after `marks` steps of gradient descent.

    >>> one, zero = jnp.ones((1, 1)), jnp.zeros(())
    >>> ridge_descent(one, jnp.ones(1), zero, jnp.zeros(1), jnp.asarray(0.5), [1, 2]).tolist()
    [[0.5], [0.75]]
    """

    def loss(w):
        return (jnp.mean((y - x @ w) ** 2) + ridge * jnp.sum(w**2)) / 2

    return trainers.gradient_descent(loss, start, step, marks)


class RiskParts(NamedTuple):
    """Squared bias and variance of a trained model, given its inputs, at every time."""

    bias: Float[Array, " times"]
    variance: Float[Array, " times"]


def flow_risk(
    x: Float[Array, "n p"], beta: Float[Array, " p"], noise_variance: Scalar, times: Float[Array, " times"]
) -> RiskParts:
    """Squared bias and variance, given X, of least squares by gradient flow from zero, for isotropic test points."""
    n, p = x.shape
    t = times[:, None]
    # The covariance of ŵ is σ²/n·A(∫₀ᵗ e^{−sA} ds)² with A = X'X/n; the smaller Gram matrix has its eigenvalues.
    values, vectors = jnp.linalg.eigh(x.T @ x / n if p <= n else x @ x.T / n)
    values = jnp.maximum(values, 0.0)
    approached = _approached(t, values)
    spread = jnp.sum(values[None, :] * approached**2, axis=1) / n
    # Without noise ŵ − β = −e^{−tA}β.
    if p <= n:
        missed = jnp.exp(-t * values[None, :]) * (beta @ vectors)[None, :]
    else:
        # e^{−tA} = 1 − X'(∫₀ᵗ e^{−sB} ds)X/n with B = XX'/n
        missed = beta[None, :] - (approached * ((x @ beta) @ vectors)[None, :]) @ (x.T @ vectors).T / n
    return RiskParts(jnp.sum(missed**2, axis=1), noise_variance * spread)


def descent_risk(
    x: Float[Array, "n p"], beta: Float[Array, " p"], errors: Float[Array, "n labellings"], step: Scalar, steps: int
) -> RiskParts:
    """As `flow_risk`, after every step of gradient descent, run without noise and on several draws of the noise."""
    n, p = x.shape
    # Without noise ŵ − β descends from −β with labels zero; what each noise adds descends from zero.
    start = jnp.concatenate([-beta[:, None], jnp.zeros((p, errors.shape[1]))], axis=1)
    labels = jnp.concatenate([jnp.zeros((n, 1)), errors], axis=1)

    def loss(w):
        return jnp.sum((x @ w - labels) ** 2) / (2 * n)

    lengths = trainers.gradient_descent(
        loss, start, step, jnp.arange(1, steps + 1), observe=lambda w: jnp.sum(w**2, axis=0)
    )
    return RiskParts(lengths[:, 0], jnp.mean(lengths[:, 1:], axis=1))
