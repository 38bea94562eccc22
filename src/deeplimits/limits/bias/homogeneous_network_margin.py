r"""Margins of homogeneous networks under gradient flow."""

import math
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.ensembles import flows
from deeplimits.limit import Limit, Run, integer, real, replace, too_small, whole
from deeplimits.measure import margins
from deeplimits.predictions import Bound, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.bias import homogeneous_margin, support_vectors

LARGEST_SHARE = 0.3
"""Of the margin, that its correction may have."""


class Start(NamedTuple):
    """The points, each times its label, and the parameters from which training starts."""

    signed: Float[Array, "n d"]
    theta: Float[Array, " p"]


class HomogeneousNetworkMargin(Limit):
    r"""Gradient flow on a homogeneous network never lets the smoothed margin fall, and maximizes it if it is linear.

    Setting     linear network f(x) = ⟨v, W_{D−1}⋯W₁x⟩, homogeneous of degree D; gradient flow on Σ exp(−q_i),
                q_i = y_i f(x_i), separable data
    Limit       t → ∞
    Result      γ̃ = −log(Σ e^{−q_i})/‖θ‖^D never decreases once the loss is below one, for every homogeneous network
                min_i q_i/‖θ‖^D → γ* D^{−D/2} for the linear one, γ* = 1/‖ŵ‖ the margin of the linear predictor
    Validity    separable data; almost every start; size counts log t
    Finite size O(1/log t) for D ≤ 2, O((log t)^{−2/D}) for deeper networks, whose layers are balanced more slowly
    Computed by bias.hard_margin, bias.deep_linear_margin
    References  lyu2020 Thm 4.1; ji2019
    """

    depth: int = integer(2, 1, 4, symbol="D", doc="number of layers")
    width: int = integer(3, 1, 20, symbol="h", doc="width of the hidden layers")
    points: int = integer(4, 2, 50, symbol="n", doc="number of points")
    features: int = integer(40, 2, 400, symbol="d", doc="dimension of the inputs")
    log_time: Array = real(400.0, 20.0, 1e5, log=True, symbol=r"\log t", doc="logarithm of the time")

    usual = Run(sizes=(50, 100, 200), samples=16)
    showcase = Showcase(
        first="margin",
        see="Training comes up to the margin of the best linear predictor, as slowly as one over the logarithm of the "
        "time: below, where the sizes are such logarithms.",
    )

    def theory(self):
        return {
            "monotone": Bound(
                1.0, label="growth of the smoothed margin", symbol=r"\tilde\gamma(s')/\tilde\gamma(s)", side="lower"
            ),
        }

    def validity_at(self, size):
        if self.depth == 1:
            return ()
        # What the layers' squared norms differ by at the start stays, beside D(log t/γ*)^{2/D} that grows, and changes
        # ‖θ‖^D by D/2 of their ratio; γ* is about n^{−1/2}.
        shapes = _shapes(self.depth, self.width, min(self.points, self.features))
        start = sum(rows * columns for rows, columns in shapes) / 4
        least = (start / (2 * LARGEST_SHARE)) ** (self.depth / 2) / self.points**0.5
        return too_small(
            size,
            least,
            f"at log t = {size} a network of depth = {self.depth} and width = {self.width} on {self.points} points has "
            f"not outgrown its start; take sizes of at least {math.ceil(least)}, or a smaller network",
        )

    def at_size(self, size):
        return {}, replace(self, log_time=float(whole(size, "log t", self, least=20)))

    def draw(self, key):
        # One draw for the data and the start, which has as many entries as the layers.
        inner = min(self.points, self.features)
        counts = [rows * columns for rows, columns in _shapes(self.depth, self.width, inner)]
        entries = jax.random.normal(key, (self.points * self.features + sum(counts),))
        points, start = jnp.split(entries, [self.points * self.features])
        x = points.reshape(self.points, self.features) / jnp.sqrt(1.0 * self.features)
        # Labels are absorbed in x by symmetry. The first layer moves in the span of the data only: coordinates there.
        signed = jnp.linalg.qr(x.T)[1].T if self.features > self.points else x * jnp.where(x[:, :1] > 0, 1.0, -1.0)
        return Start(signed, start / 2)

    def stated(self, system):
        predictor, _ = support_vectors.traced_hard_margin(system.signed)
        return {
            "margin": Value(
                homogeneous_margin.deep_linear_margin(1 / jnp.linalg.norm(predictor), self.depth),
                label="normalized margin",
                symbol=r"\min_i q_i/\|\theta\|^D",
                # Differences of the layers' squared norms never change, and ‖θ‖² grows like (log t)^{2/D}.
                rate=2 / max(self.depth, 2),
            ),
        }

    def measured(self, system):
        signed, start = system
        shapes = _shapes(self.depth, self.width, signed.shape[1])
        sizes = [rows * columns for rows, columns in shapes]

        def scores(theta):
            layers = jnp.split(theta, _cuts(sizes))
            product = signed.T
            for layer, shape in zip(layers, shapes, strict=True):
                product = layer.reshape(shape) @ product
            return product[0]

        times = self.log_time * jnp.linspace(0.1, 1.0, 10)
        path = flows.classification_flow(scores, start, times, rtol=1e-9, atol=1e-10)
        norms = jnp.linalg.norm(path, axis=1)
        smoothed = jax.vmap(lambda theta, norm: margins.smoothed_margin(scores(theta), norm, degree=self.depth))(
            path, norms
        )
        return {
            "margin": margins.normalized_margin(scores(path[-1]), norms[-1], degree=self.depth),
            "monotone": jnp.min(smoothed[1:] / smoothed[:-1]),
        }


def _shapes(depth: int, width: int, inputs: int) -> list[tuple[int, int]]:
    widths = [inputs, *[width] * (depth - 1), 1]
    return [(after, before) for before, after in pairwise(widths)]


def _cuts(sizes: list[int]) -> list[int]:
    return [sum(sizes[: k + 1]) for k in range(len(sizes) - 1)]
