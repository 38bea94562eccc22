r"""Infinitely many tokens on the circle: a density that attention moves."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles.transformers import particles as ensemble
from deeplimits.limit import Limit, Run, axis, real, whole
from deeplimits.limits.attention._shared import plane
from deeplimits.predictions import Curve
from deeplimits.showcase import Showcase, log_points
from deeplimits.theory.attention import circle

STATISTICAL = 1e-6
"""Tolerance of a path that is averaged over."""


class SaContinuityEquation(Limit):
    r"""Self-attention of many tokens is a continuity equation for their distribution.

    Setting     n independent tokens on the circle with density (1 + a cos θ)/2π, SA with B = V = I
    Limit       n → ∞
    Result      ∂_tμ + ∂_θ(μ𝒳) = 0, 𝒳 = β⁻¹∂_θ log ∫ e^{β cos(θ−φ)} μ(dφ); moments E cos kθ by Fourier modes, in which
                a convolution multiplies mode k by I_k(β)
    Validity    times up to a few: densities sharpen like e^t (particles do not mind, modes do); size counts the tokens
    Finite size the mean moments deviate by O(1/n), those of a single system by O(n^(−1/2)); tokens at quantiles
                spectrally
    Computed by attention.circle_moments
    References  geshkovski2025 Sec 2; sander2022
    """

    beta: Array = real(2.0, 0.0, 6.0, symbol=r"\beta", doc="inverse temperature")
    tilt: Array = real(0.8, 0.3, 1.0, symbol="a", doc="how far the initial density is from uniform")
    times: Array = axis((0.5, 1.0, 1.5), 0.01, 2.0, symbol="t", doc="times")

    usual = Run(sizes=(40, 80, 160), samples=600, batch=40)
    showcase = Showcase(
        parameters={"times": log_points(0.05, 2.0, 7)},
        see="The density of the tokens concentrates as its equation says.",
    )

    def theory(self):
        moments = circle.circle_moments((self.tilt / 2)[None], self.times, self.beta)
        return {
            "moment": Curve(
                self.times, moments[:, 0], axis="time", axis_symbol="t", label="first moment of the tokens",
                symbol=r"E\cos\theta", rate=1.0,
            ),
        }  # fmt: skip

    def at_size(self, size):
        return {"tokens": whole(size, "n", self, least=2)}, self

    def simulate(self, key, *, tokens: int):
        u = jax.random.uniform(key, (2, tokens))
        angles = 2 * jnp.pi * u[0]
        # An angle that is refused is turned by π, where it is accepted as often.
        angles = jnp.where(2 * u[1] < 1 + self.tilt * jnp.cos(angles), angles, angles + jnp.pi)
        path = ensemble.attention_flow(plane(angles), self.times, self.beta, rtol=STATISTICAL)
        return {"moment": jnp.mean(path[:, :, 0], axis=1)}
