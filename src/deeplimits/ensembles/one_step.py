"""Two-layer networks after one step of gradient descent in the first layer, and ridge regression on their features."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.shapes import Floats, Scalar


class StepData(NamedTuple):
    """A network at its start, and the data of its step."""

    weights: Float[Array, "neurons p"]
    output: Float[Array, " neurons"]
    x: Float[Array, "n p"]
    y: Float[Array, " n"]
    target: Float[Array, " p"]
    """The teacher's direction, a unit vector."""


def network_output(
    activation: ActivationLike,
    weights: Float[Array, "neurons p"],
    output: Float[Array, " neurons"],
    x: Float[Array, "n p"],
    *,
    mean: Array | float = 0.0,
) -> Float[Array, " n"]:
    """β·(σ(Wx) − mean)/√N.

    >>> network_output("identity", jnp.eye(2), jnp.ones(2), jnp.array([[2.0, 2.0]])).round(6).tolist()
    [2.828427]
    """  # fmt: skip
    features = named(activation).value(x @ weights.T) - mean
    return features @ output / jnp.sqrt(1.0 * output.shape[0])


def step_data(
    numbers: list[Floats], teacher_activation: ActivationLike, noise: Scalar, mean: Array | float
) -> StepData:
    """W of variance 1/p, β of variance 1/N, Gaussian inputs, labels g(⟨β*, x⟩) − mean + noise, from standard numbers.

    `numbers`: arrays of shapes (N, p), (N,), (n, p), (n,), (p,); `noise` is a standard deviation.

    >>> parts = [jnp.ones((1, 1)), jnp.ones(1), jnp.ones((1, 1)), jnp.ones(1), jnp.ones(1)]
    >>> step_data(parts, "identity", jnp.full((), 0.5), 0.0).y.tolist()
    [1.5]
    """
    w, a, x, errors, direction = numbers
    target = direction / jnp.linalg.norm(direction)
    y = named(teacher_activation).value(x @ target) - mean + noise * errors
    return StepData(w / w.shape[1] ** 0.5, a / a.shape[0] ** 0.5, x, y, target)


def first_step(
    activation: ActivationLike, system: StepData, *, mean: Array | float = 0.0, silent: bool = False
) -> Float[Array, "neurons p"]:
    """Minus the gradient of Σ(y − f)²/2n in the first layer, by automatic differentiation.

    `silent` starts from a network whose output is zero, as of two copies of opposite signs.

    >>> parts = StepData(jnp.ones((1, 1)), jnp.ones(1), jnp.ones((1, 1)), jnp.full(1, 3.0), jnp.ones(1))
    >>> first_step("identity", parts).tolist()
    [[2.0]]
    """

    def loss(w):
        found = network_output(activation, w, system.output, system.x, mean=mean)
        held = jax.lax.stop_gradient(found) if silent else 0.0
        return jnp.mean((system.y - (found - held)) ** 2) / 2

    return -jax.grad(loss)(system.weights)


def ridge_features_risk(
    activation: ActivationLike,
    weights: Float[Array, "neurons p"],
    train: tuple[Float[Array, "n p"], Float[Array, " n"]],
    test: tuple[Float[Array, "m p"], Float[Array, " m"]],
    ridge: Scalar,
    *,
    mean: Array | float = 0.0,
) -> Scalar:
    """Mean squared error on test points of ridge regression on the features σ(Wx)/√N, penalty λ|a|² beside Σ(…)²/n.

    >>> one = (jnp.ones((1, 1)), jnp.ones(1))
    >>> round(float(ridge_features_risk("identity", jnp.ones((1, 1)), one, one, jnp.ones(()))), 12)
    0.25
    """
    sigma = named(activation)
    width, n = weights.shape[0], train[0].shape[0]
    phi, new = ((sigma.value(x @ weights.T) - mean) / width**0.5 for x in (train[0], test[0]))
    a = jnp.linalg.solve(phi.T @ phi / n + ridge * jnp.eye(width), phi.T @ train[1] / n)
    return jnp.mean((new @ a - test[1]) ** 2)
