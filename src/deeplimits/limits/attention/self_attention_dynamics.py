r"""Self-attention moves tokens on the sphere: layers, flow and angles."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles.data import gaussian_arrays
from deeplimits.ensembles.transformers import particles as ensemble
from deeplimits.limit import integer, real
from deeplimits.limits.attention._shared import Layered, depth_measured, depth_statements, integrated, plane
from deeplimits.showcase import Showcase
from deeplimits.theory.attention import circle, gram_matrices


class SelfAttentionDynamics(Layered):
    r"""Layers of self-attention with layer normalization are particles on a sphere (SA).

    Setting     n random tokens on the unit sphere; SA: ẋ_i = P^⊥ Σ_j A_ij V x_j, A = softmax(β x_iᵀQᵀK x_j); in the
                plane with Gaussian Q, K, V, and in R^d with Q = K = V = λI
    Limit       none for the flow; steps h → 0 for layers x ← (x + h P^⊥ Σ A V x)/|·|
    Result      in the plane θ̇_i = Σ_j A_ij ⟨τ_i, V x_j⟩; Q = K = V = λI is B = V = I at inverse temperature βλ² and
                time λt, whose Gram matrix moves by itself; layers follow the flow with an error of order h
    Validity    λ > 0; size counts the layers in a unit of time, 1/h
    Finite size exact for the flow; O(h) for layers
    Computed by attention.angular_flow (flow, layers), attention.gram_flow (gram)
    References  geshkovski2025 Sec 2; sander2022
    """

    tokens: int = integer(6, 2, 24, symbol="n", doc="number of tokens")
    dimension: int = integer(4, 2, 24, symbol="d", doc="dimension of the tokens with Q = K = V = λI")
    beta: Array = real(1.5, 0.0, 5.0, symbol=r"\beta", doc="inverse temperature")
    scale: Array = real(1.2, 0.2, 2.0, symbol=r"\lambda", doc="Q = K = V = λI")
    time: Array = real(1.0, 0.2, 2.0, symbol="t", doc="time")

    showcase = Showcase(see="Layers of attention follow the flow with an error of the order of a step.")

    def draw(self, key):
        angles, tokens, matrices = gaussian_arrays(key, (self.tokens,), (self.tokens, self.dimension), (3, 2, 2))
        # A wide Gaussian angle is uniform.
        return 10 * angles, tokens / jnp.linalg.norm(tokens, axis=1, keepdims=True), matrices / jnp.sqrt(2.0)

    def stated(self, system):
        angles, tokens, (query, key, value) = system
        head = circle.AngularHead(query.T @ key, value)
        end = plane(circle.angular_flow(angles, self.time[None], self.beta, heads=[head])[0])
        alone = gram_matrices.gram_flow(tokens @ tokens.T, (self.scale * self.time)[None], self.beta * self.scale**2)
        return {
            "flow": integrated(end, "tokens in the plane", "x"),
            "gram": integrated(alone[0], "inner products", r"\langle x_i,x_j\rangle"),
            **depth_statements(end @ end.T, 1 / self.layers),
        }

    def measured(self, system):
        angles, tokens, (query, key, value) = system
        layer = ensemble.attention_layer(query, key, value)
        multiple = self.scale * jnp.eye(self.dimension)
        same = ensemble.attention_layer(multiple, multiple, multiple)
        x = plane(angles)
        alone = ensemble.attention_flow(tokens, self.time[None], self.beta, layer=same)[0]
        return {
            "flow": ensemble.attention_flow(x, self.time[None], self.beta, layer=layer)[0],
            "gram": alone @ alone.T,
            **depth_measured(x, self.beta, self.time, self.layers, layer),
        }
