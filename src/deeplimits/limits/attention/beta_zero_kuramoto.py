r"""Attention at infinite temperature: Kuramoto's model."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles.data import gaussian_arrays
from deeplimits.ensembles.transformers import particles as ensemble
from deeplimits.limit import Limit, Run, axis, integer, real, whole
from deeplimits.limits.attention._shared import plane
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Curve, Identity
from deeplimits.showcase import Showcase, log_points
from deeplimits.theory.attention import kuramoto

STATISTICAL = 1e-6
"""Tolerance of a path that is averaged over."""
FEWEST = 6.0
"""Tokens times squared order: below, the order that tokens happen to have is not that of their law."""


class BetaZeroKuramoto(Limit):
    r"""At β = 0 tokens move to their mean; all but exceptional starts end in one cluster.

    Setting     ẋ_i = P^⊥ x̄; on the circle θ̇_i = −(1/n) Σ_j sin(θ_i − θ_j), independent angles with a Poisson kernel of
                modulus r₀; E₀ = n|x̄|²/2
    Limit       n → ∞
    Result      |E e^{iθ}| = r(t) = r₀/√(r₀² + (1−r₀²)e^{−t}); the Hessian of E₀ with m of N tokens at −x* and the rest
                at x*, s = N − 2m, has for each of d − 1 directions −s/N (N−m−1 times), s/N (m−1), 0 and 1: saddles
                unless m = 0
    Validity    n r₀² of several, else chance decides the order; m < N/2; size counts the tokens n on the circle
    Finite size O(1/n) for the order; the Hessian is exact
    Computed by attention.poisson_order (order), attention.antipodal_spectrum (hessian)
    References  geshkovski2025 Sec 4; ott2008
    """

    start: Array = real(0.5, 0.2, 0.98, symbol="r_0", doc="order of the angles at the start")
    times: Array = axis((0.5, 1.0, 2.0), 0.001, 6.0, log=True, symbol="t", doc="times")
    points: int = integer(6, 2, 12, symbol="N", doc="tokens of the critical point")
    flipped: int = integer(2, 0, 5, symbol="m", doc="how many of them are opposite to the rest")
    dimension: int = integer(3, 2, 6, symbol="d", doc="dimension of the critical point")

    usual = Run(sizes=(30, 60, 120), samples=600, batch=40)
    showcase = Showcase(
        parameters={"times": log_points(0.05, 6.0, 8)},
        see="The order of the tokens rises to one: all of them end in one cluster.",
    )

    def validity(self):
        if 2 * self.flipped < self.points:
            return ()
        return (f"flipped = {self.flipped} of {self.points} tokens are not fewer than half",)

    def validity_at(self, size):
        if not known(self.start) or size * float(self.start) ** 2 >= FEWEST:
            return ()
        return (f"start = {written(self.start)} needs at least {round(FEWEST / float(self.start) ** 2) + 1} tokens",)

    def theory(self):
        return {
            "order": Curve(
                self.times, kuramoto.poisson_order(self.start, self.times), axis="time", axis_symbol="t",
                label="order of the angles", symbol="r", rate=1.0,
            )
        }  # fmt: skip

    def at_size(self, size):
        return {"tokens": whole(size, "n", self, least=2)}, self

    def draw(self, key, *, tokens: int):
        angle_key, axis_key = jax.random.split(key)
        half = jax.random.uniform(angle_key, (tokens,), minval=-jnp.pi / 2, maxval=jnp.pi / 2)
        # A Möbius map of the circle carries uniform angles to a Poisson kernel.
        angles = 2 * jnp.arctan((1 - self.start) / (1 + self.start) * jnp.tan(half))
        (direction,) = gaussian_arrays(axis_key, (self.dimension,))
        signs = jnp.where(jnp.arange(self.points) < self.flipped, -1.0, 1.0)
        return angles, signs[:, None] * direction[None, :] / jnp.linalg.norm(direction)

    def stated(self, system):
        found = kuramoto.antipodal_spectrum(self.points, self.flipped, self.dimension)
        return {
            "hessian": Identity(
                found, label="eigenvalues of the Hessian where tokens are opposite", symbol=r"\lambda(\nabla^2E_0)",
                tolerance=1e-10, reason="rounding of an eigenvalue problem",
            )
        }  # fmt: skip

    def measured(self, system):
        angles, tokens = system
        path = ensemble.attention_flow(plane(angles), self.times, 0.0, rtol=STATISTICAL)
        # Directions tangent to the sphere at ±x*, and the energy of tokens moved along them and back on the sphere.
        tangent = jnp.linalg.svd(tokens[:1])[2][1:]

        def energy(moves):
            moved = tokens + moves.reshape(self.points, -1) @ tangent
            moved = moved / jnp.linalg.norm(moved, axis=1, keepdims=True)
            return self.points * jnp.sum(jnp.mean(moved, axis=0) ** 2) / 2

        hessian = jax.hessian(energy)(jnp.zeros(self.points * (self.dimension - 1)))
        return {"order": jnp.mean(path[:, :, 0], axis=1), "hessian": jnp.linalg.eigvalsh(hessian)}
