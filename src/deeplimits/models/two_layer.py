"""The two-layer model of textbooks: g(β₀ + Σ_j β_j σ(b_j + ⟨w_j, x⟩))."""

from typing import NamedTuple

import jax
from jaxtyping import Array, Float

from deeplimits.errors import UnknownName

HIDDEN = {
    "sigmoid": jax.nn.sigmoid,
    "relu": jax.nn.relu,
    "identity": lambda u: u,
    "threshold": lambda u: (u > 0).astype(float),
}
OUTPUTS = {
    # jax.nn.softmax subtracts the maximum first, so that large scores do not overflow.
    "softmax": lambda u: jax.nn.softmax(u, axis=-1),
    "identity": lambda u: u,
    "threshold": lambda u: (u > 0).astype(float),
}


class TwoLayer(NamedTuple):
    """Weights of the model for inputs in R^d, m neurons and k outputs."""

    weights: Float[Array, "m d"]
    biases: Float[Array, " m"]
    output_weights: Float[Array, "k m"]
    output_biases: Float[Array, " k"]


def two_layer_model(
    model: TwoLayer, x: Float[Array, "... d"], activation: str = "relu", output: str = "identity"
) -> Float[Array, "... k"]:
    """g(β₀ + Σ_j β_j σ(b_j + ⟨w_j, x⟩)) for inputs `x` of shape (..., d).

    >>> import jax.numpy as jnp
    >>> model = TwoLayer(jnp.ones((1, 2)), jnp.zeros(1), jnp.array([[1.0], [1.0]]), jnp.array([0.0, 1000.0]))
    >>> two_layer_model(model, jnp.array([1.0, 2.0]), "relu", "softmax").tolist()
    [0.0, 1.0]
    """
    for name, known in ((activation, HIDDEN), (output, OUTPUTS)):
        if name not in known:
            raise UnknownName(f"there is no {name!r} here; there are {', '.join(known)}")
    hidden = HIDDEN[activation](x @ model.weights.T + model.biases)
    return OUTPUTS[output](hidden @ model.output_weights.T + model.output_biases)
