r"""Margins of finite classifiers, also of networks that are homogeneous in their parameters.

q_i(θ) = y_i f(x_i; θ) with f homogeneous of degree D: q_i(cθ) = c^D q_i(θ). Gradient flow on Σ e^{−q_i} or the
logistic loss, once every point is classified, increases the smoothed margin for ever, and its direction tends to a
critical point of the maximum-margin problem min ‖θ‖² : q_i(θ) ≥ 1.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics.shapes import Scalar

Outputs = Callable[[Float[Array, " d"]], Float[Array, " n"]]


def normalized_margin(scores: Float[Array, " n"], norm: Scalar, *, degree: float = 1.0) -> Scalar:
    """min_i q_i(θ)/‖θ‖^D; `scores` are the q_i. For a linear classifier (D = 1) the geometric margin.

    >>> float(normalized_margin(jnp.array([2.0, 3.0]), jnp.asarray(4.0)))
    0.5
    """
    return jnp.min(scores) / norm**degree


def smoothed_margin(scores: Float[Array, " n"], norm: Scalar, *, degree: float = 1.0) -> Scalar:
    """−log Σ_i e^{−q_i(θ)} / ‖θ‖^D, which never decreases along gradient flow on Σ e^{−q_i} once that sum is below
    one.

    >>> round(float(smoothed_margin(jnp.zeros(2), jnp.asarray(2.0))), 12)  # −log 2/2
    -0.34657359028
    """
    return -jax.scipy.special.logsumexp(-scores) / norm**degree


def degree_of(outputs: Outputs, theta: Float[Array, " d"], *, tolerance: float = 1e-8) -> float:
    """The degree D of homogeneity of `outputs` at θ, from Euler's identity ⟨θ, ∇q_i⟩ = D q_i for every i.

    >>> degree_of(lambda theta: theta[:1] * theta[1:], jnp.array([1.0, 2.0]))
    2.0
    """
    values, along = jax.jvp(outputs, (theta,), (theta,))
    degree = float(jnp.vdot(values, along) / jnp.vdot(values, values))
    if not float(jnp.max(jnp.abs(along - degree * values))) <= tolerance * float(jnp.max(jnp.abs(along))):
        raise ParameterError(
            "the outputs are not homogeneous in the parameters: ⟨θ, ∇q_i⟩/q_i differs between points; "
            "remove biases, residual connections and activations other than ReLU or powers"
        )
    return round(degree, 9)


class Criticality(NamedTuple):
    """How far a direction is from a critical point of the maximum-margin problem."""

    stationarity: float
    """min ‖θ − Σ λ_i ∇q_i‖/‖θ‖ over λ ≥ 0 on the points near the margin; zero at a critical point."""
    multipliers: np.ndarray
    """The λ_i that attain it."""
    alignment: float
    """Cosine of the angle between θ and Σ λ_i ∇q_i."""


def criticality(outputs: Outputs, theta: Float[Array, " d"], *, slack: float = 0.05) -> Criticality:
    """Distance of the direction of θ from a critical (KKT) point of min ‖θ‖² : q_i(θ) ≥ 1.

    Only points whose score is within the fraction `slack` of the smallest may carry a multiplier.

    >>> found = criticality(lambda w: jnp.array([[1.0, 2.0], [2.0, 0.5], [3.0, 3.0]]) @ w, jnp.array([3.0, 2.0]))
    >>> round(found.stationarity, 9)
    0.0
    """
    from scipy.optimize import nnls

    scores = np.asarray(outputs(theta))
    if not scores.min() > 0:
        raise ParameterError(f"the smallest score is {scores.min():g}; every point must be classified rightly first")
    gradients = np.asarray(jax.jacrev(outputs)(theta))
    near = scores <= (1 + slack) * scores.min()
    weights = np.asarray(theta)
    multipliers = np.zeros(len(scores))
    multipliers[near], distance = nnls(gradients[near].T, weights)
    reached = gradients.T @ multipliers
    size, reach = np.linalg.norm(weights), np.linalg.norm(reached)
    return Criticality(
        float(distance / size), multipliers, float(reached @ weights / (size * reach)) if reach > 0 else 0.0
    )


class FlatOutputs(NamedTuple):
    """A model's signed outputs as a function of one vector, and where that vector is now."""

    outputs: Outputs
    theta: Float[Array, " d"]


def flat_outputs(apply: Callable, parameters, x, y) -> FlatOutputs:
    """q(θ) = y f(x; θ) as a function of one flat vector, and that vector, for a model `apply(parameters, x)`.

    >>> outputs, theta = flat_outputs(lambda w, x: x @ w["a"], {"a": jnp.ones(2)}, jnp.eye(2), jnp.array([1.0, -1.0]))
    >>> outputs(2 * theta).tolist()
    [2.0, -2.0]
    """
    theta, unravel = ravel_pytree(parameters)
    return FlatOutputs(lambda theta: jnp.ravel(apply(unravel(theta), x)) * y, theta)
