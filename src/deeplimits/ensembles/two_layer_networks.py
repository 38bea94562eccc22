"""Two-layer networks: the one of theorems, f = m^{−1/2} Σ_j a_j σ(⟨w_j, x⟩), and the one of textbooks."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Scalar


def two_layer(
    activation: ActivationLike, weights: Float[Array, "m d"], output: Float[Array, " m"], x: Float[Array, " d"]
) -> Scalar:
    """f(x; W) = m^{−1/2} Σ_j a_j σ(⟨w_j, x⟩).

    >>> round(float(two_layer("square", jnp.eye(2), jnp.ones(2), jnp.array([1.0, 2.0]))) * 2**0.5, 12)
    5.0
    """
    return output @ named(activation).value(weights @ x) / jnp.sqrt(1.0 * weights.shape[0])


class TwoLayer(NamedTuple):
    """Weights of g(β₀ + Σ_j β_j σ(b_j + ⟨w_j, x⟩)) for inputs in R^d, m neurons and k outputs."""

    weights: Float[Array, "m d"]
    biases: Float[Array, " m"]
    output_weights: Float[Array, "k m"]
    output_biases: Float[Array, " k"]


def two_layer_model(
    model: TwoLayer,
    x: Float[Array, "... d"],
    *,
    activation: ActivationLike = "relu",
    output: ActivationLike = "identity",
) -> Float[Array, "... k"]:
    """g(β₀ + Σ_j β_j σ(b_j + ⟨w_j, x⟩)) for inputs `x` of shape (..., d); `output` is g, an activation or "softmax".

    >>> model = TwoLayer(jnp.ones((1, 2)), jnp.zeros(1), jnp.array([[1.0], [1.0]]), jnp.array([0.0, 1000.0]))
    >>> two_layer_model(model, jnp.array([1.0, 2.0]), activation="relu", output="softmax").tolist()
    [0.0, 1.0]
    """
    hidden = named(activation).value(jnp.add(*same_rank(x @ model.weights.T, model.biases)))
    scores = jnp.add(*same_rank(hidden @ model.output_weights.T, model.output_biases))
    # jax.nn.softmax subtracts the maximum first, so that large scores do not overflow.
    return jax.nn.softmax(scores, axis=-1) if output == "softmax" else named(output).value(scores)
