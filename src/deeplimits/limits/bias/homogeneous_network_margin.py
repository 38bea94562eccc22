r"""Margins of homogeneous networks under gradient flow."""

from itertools import pairwise

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, flows
from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.measure import margins
from deeplimits.predictions import Bound, Value
from deeplimits.theory.bias import hard_margin, homogeneous


class HomogeneousMargin(Limit):
    r"""Gradient flow on a homogeneous network never lets the smoothed margin fall, and maximizes it if it is linear.

    Setting     linear network f(x) = ⟨v, W_{D−1}⋯W₁x⟩, homogeneous of degree D; gradient flow on Σ exp(−q_i),
                q_i = y_i f(x_i), separable data
    Limit       t → ∞
    Result      γ̃ = −log(Σ e^{−q_i})/‖θ‖^D never decreases once the loss is below one, for every homogeneous network
                min_i q_i/‖θ‖^D → γ* D^{−D/2} for the linear one, γ* = 1/‖ŵ‖ the margin of the linear predictor;
                measured is the ratio of the two sides
    Validity    separable data; almost every start; size counts log t
    Finite size O(1/log t)
    References  lyu2020 Thm 4.1; ji2019
    """

    depth: int = integer(2, 1, 4, symbol="D", doc="number of layers")
    width: int = integer(3, 1, 20, symbol="h", doc="width of the hidden layers")
    points: int = integer(4, 2, 50, symbol="n", doc="number of points")
    features: int = integer(40, 2, 400, symbol="d", doc="dimension of the inputs")
    log_time: Array = real(400.0, 20.0, 1e5, log=True, symbol=r"\log t", doc="logarithm of the time")

    usual = Run(sizes=(50, 100, 200), samples=16)

    def theory(self):
        return {
            "margin": Value(jnp.ones(()), label="normalized margin, over its law", rate=1.0),
            "monotone": Bound(
                jnp.ones(()),
                label="growth of the smoothed margin",
                symbol=r"\tilde\gamma(s')/\tilde\gamma(s)",
                side="lower",
            ),
        }

    def at_size(self, size):
        return {}, self.replace(log_time=float(whole(size, "log t", self, least=20)))

    def simulate(self, key):
        data_key, start_key = jax.random.split(key)
        x = data.independent_entries(data_key, self.points, self.features) / jnp.sqrt(1.0 * self.features)
        # Labels are absorbed in x by symmetry. The first layer moves in the span of the data only: coordinates there.
        signed = jnp.linalg.qr(x.T)[1].T if self.features > self.points else x * jnp.where(x[:, :1] > 0, 1.0, -1.0)
        shapes = _shapes(self.depth, self.width, signed.shape[1])
        sizes = [rows * columns for rows, columns in shapes]

        def scores(theta):
            layers = jnp.split(theta, _cuts(sizes))
            product = signed.T
            for layer, shape in zip(layers, shapes, strict=True):
                product = layer.reshape(shape) @ product
            return product[0]

        start = jax.random.normal(start_key, (sum(sizes),)) / 2
        times = self.log_time * jnp.linspace(0.1, 1.0, 10)
        path = flows.classification_flow(scores, start, times, rtol=1e-9, atol=1e-10)
        norms = jnp.linalg.norm(path, axis=1)
        smoothed = jax.vmap(lambda theta, norm: margins.smoothed_margin(scores(theta), norm, self.depth))(path, norms)
        predictor, _ = hard_margin.traced_hard_margin(signed)
        best = homogeneous.deep_linear_margin(1 / jnp.linalg.norm(predictor), self.depth)
        return {
            "margin": margins.normalized_margin(scores(path[-1]), norms[-1], self.depth) / best,
            "monotone": jnp.min(smoothed[1:] / smoothed[:-1]),
        }


def _shapes(depth: int, width: int, inputs: int) -> list[tuple[int, int]]:
    widths = [inputs, *[width] * (depth - 1), 1]
    return [(after, before) for before, after in pairwise(widths)]


def _cuts(sizes: list[int]) -> list[int]:
    return [sum(sizes[: k + 1]) for k in range(len(sizes) - 1)]
