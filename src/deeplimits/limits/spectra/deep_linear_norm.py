r"""The size of a deep linear network at initialization."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.limit import Limit, Run, real, rounded, whole
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.spectra import isometry


class DeepLinearNorm(Limit):
    r"""The norm of a random deep linear network is log-normal, with depth over width as its variance.

    Setting     θ' = W^{(L+1)} … W^{(1)}, W^{(l)} Gaussian with entries of variance 1/n_{l−1}, all layers of width n
    Limit       n → ∞ with (L + 1)/n → δ
    Result      ‖θ‖² is distributed as Π χ²_n/n over L + 1 factors: E‖θ‖² = 1, log‖θ‖ has mean
                (L+1)/2 [digamma(n/2) − log(n/2)] and variance (L+1)/4 trigamma(n/2)
                log‖θ‖ → N(−δ/2, δ/2)
    Validity    δ > 0; size counts the width n
    Finite size mean and variance are exact at every width; the normal law deviates by O(1/n)
    Computed by spectra.deep_linear_log_norm, spectra.deep_linear_norm
    References  hanin2023
    """

    depth_per_width: Array = real(4.0, 0.02, 20.0, log=True, symbol=r"\delta", doc="depth over width, (L+1)/n")
    width: Array = real(100.0, 2.0, 1e6, log=True, symbol="n", doc="width of every layer")

    usual = Run(sizes=(4, 8), samples=15_000, batch=100)
    showcase = Showcase(
        ranges={"depth_per_width": (0.05, 20.0)},
        see="The mean of log‖θ‖ falls like minus half of depth over width, although the mean square stays one.",
    )

    def theory(self):
        factors = self.depth_per_width * self.width
        mean, variance = isometry.deep_linear_log_norm(self.width, factors)
        return {
            "log_norm": Value(mean, label="mean of the log norm", symbol=r"E\log\|\theta\|"),
            "log_norm_square": Value(
                variance + mean**2, label="second moment of the log norm", symbol=r"E\log^2\|\theta\|"
            ),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=2)
        factors = max(whole(n * float(self.depth_per_width), "L+1", self), 1)
        return {"width": n, "factors": factors}, rounded(self, depth_per_width=factors / n, width=float(n))

    def simulate(self, key, *, width: int, factors: int):
        start = jnp.ones(1), jnp.zeros(())

        def layer(state, layer_key):
            # θ' = W^{(L+1)} … W^{(1)}: from the output, a row vector through one weight matrix after the other.
            row, log_norm = state
            weights = jax.random.normal(layer_key, (row.shape[0], width)) / jnp.sqrt(1.0 * width)
            row = row @ weights
            length = jnp.linalg.norm(row)
            return row / length, log_norm + jnp.log(length)

        keys = jax.random.split(key, factors)
        state = layer(start, keys[0])
        if factors > 1:
            state, _ = jax.lax.scan(lambda s, k: (layer(s, k), None), state, keys[1:])
        return {"log_norm": state[1], "log_norm_square": state[1] ** 2}
