r"""Several heads and a feed-forward layer."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles.data import gaussian_arrays
from deeplimits.ensembles.transformers import particles as ensemble
from deeplimits.limit import activation_choice, integer, real
from deeplimits.limits.attention._shared import Layered, depth_measured, depth_statements, integrated, plane
from deeplimits.showcase import Showcase
from deeplimits.theory.attention import circle


class MultiHeadFeedforward(Layered):
    r"""A whole transformer layer, with heads and a feed-forward part, as a field on the sphere.

    Setting     n random tokens on the circle, H heads with Gaussian Q_h, K_h, V_h, and wσ(ax + b) with m hidden units:
                ẋ_i = P^⊥ [Σ_h Σ_j A^h_ij V_h x_j + wσ(a x_i + b)]
    Limit       none for the flow; steps h → 0 for layers
    Result      θ̇_i = ⟨τ_i, Σ_h Σ_j A^h_ij V_h x_j + wσ(a x_i + b)⟩ with τ = (−sin θ, cos θ); heads add, so that H
                identical ones are one at H times the time; layers follow the flow with an error of order h
    Validity    smooth σ of bounded slope; size counts the layers in a unit of time, 1/h
    Finite size exact for the flow; O(h) for layers
    Computed by attention.angular_flow
    References  geshkovski2025 Sec 2
    """

    activation: str = activation_choice("tanh", lambda a: a.smooth and a.lipschitz)
    tokens: int = integer(6, 2, 24, symbol="n", doc="number of tokens")
    heads: int = integer(2, 1, 6, symbol="H", doc="number of heads")
    hidden: int = integer(4, 1, 24, symbol="m", doc="hidden units of the feed-forward part")
    beta: Array = real(1.5, 0.0, 5.0, symbol=r"\beta", doc="inverse temperature")
    time: Array = real(0.7, 0.2, 1.0, symbol="t", doc="time")

    showcase = Showcase(see="Layers follow the flow with an error that halves as their number doubles.")

    def draw(self, key):
        h, m = self.heads, self.hidden
        angles, matrices, out, into, bias = gaussian_arrays(key, (self.tokens,), (3, h, 2, 2), (2, m), (m, 2), (m,))
        # A wide Gaussian angle is uniform; heads share one scale.
        return 10 * angles, matrices / jnp.sqrt(2.0 * h), (out / jnp.sqrt(2.0 * m), into, bias)

    def stated(self, system):
        angles, (query, key, value), feed = system
        scores = jnp.einsum("hkd,hke->hde", query, key)
        heads = [circle.AngularHead(scores[h], value[h]) for h in range(self.heads)]
        forward = circle.AngularFeedForward(feed[0], feed[1], feed[2], self.activation)
        end = plane(circle.angular_flow(angles, self.time[None], self.beta, heads=heads, feed_forward=forward)[0])
        once = plane(circle.angular_flow(angles, self.heads * self.time[None], self.beta)[0])
        return {
            "flow": integrated(end, "tokens", "x"),
            "identical_heads": integrated(once, "tokens under identical heads", "x"),
            **depth_statements(end @ end.T, 1 / self.layers),
        }

    def measured(self, system):
        angles, (query, key, value), feed = system
        layer = ensemble.attention_layer(
            query, key, value, feed_forward=ensemble.FeedForward(feed[0], feed[1], feed[2], self.activation)
        )
        copies = jnp.broadcast_to(jnp.eye(2), (self.heads, 2, 2))
        x = plane(angles)
        return {
            "flow": ensemble.attention_flow(x, self.time[None], self.beta, layer=layer)[0],
            "identical_heads": ensemble.attention_flow(
                x, self.time[None], self.beta, layer=ensemble.AttentionLayer(copies, copies)
            )[0],
            **depth_measured(x, self.beta, self.time, self.layers, layer),
        }
