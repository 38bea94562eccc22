r"""A two-layer network on the XOR mixture."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.limit import Limit, Run, real, rounded, whole
from deeplimits.limits.online_sgd._shared import even_times
from deeplimits.predictions import Curve
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import xor

POINTS, BETWEEN = 4, 10
QUADRATURE = 8192
"""Quasi-random points of a cluster: wide clusters need many for three digits."""
# A start in general position: two neurons of either sign, overlapping.
OUTPUT, ALONG_MU, ALONG_NU, OVERLAPS = (1.0, -0.8), (0.5, 0.3), (-0.2, 0.6), ((0.6, 0.2), (0.2, 0.5))


class XorGmmBallistic(Limit):
    r"""The statistics of a two-layer ReLU network on an XOR mixture follow a closed ODE, overlaps of neurons included.

    Setting     y fair; X ~ N(±μ, I/λ) if y = 1, N(±ν, I/λ) if y = 0; network v·g(WX) with K neurons (here 2),
                logistic loss plus (α/2)(|v|² + |W|²), δ = c/N, t = δ·steps; m^μ = Wμ, m^ν = Wν, R_ij = W_i^⊥·W_j^⊥
    Limit       N → ∞ with c, λ, K fixed
    Result      dv_i/dt = −C_i − αv_i, dm_i/dt = −v_iA_i − αm_i (for μ and ν)
                dR_ij/dt = −v_iA^⊥_ij − v_jA^⊥_ji − 2αR_ij + (c/λ)v_iv_jB_ij, the last term the corrector
                C_i = E g(h_i)e, A_i = E(X·μ)1{h_i>0}e, A^⊥_ij = Eζ_j1{h_i>0}e, B_ij = E1{h_i>0}1{h_j>0}e²,
                e = σ(v·g(h)) − y
    Validity    λ, K fixed; from m = 0 the limit never leaves m = 0; size counts the dimension N
    Finite size mean gap O(1/N)
    Computed by online_sgd.xor_ballistic; out of the plane m = 0 by online_sgd.escape_matrix
    References  benarous2022
    """

    separation: Array = real(4.0, 0.5, 100.0, log=True, symbol=r"\lambda", doc="inverse variance λ of a cluster")
    ridge: Array = real(0.05, 0.0, 1.0, symbol=r"\alpha", doc="ridge parameter α")
    step: Array = real(2.0, 0.05, 5.0, log=True, symbol="c", doc="step constant c = δN")
    horizon: Array = real(4.0, 0.1, 10.0, log=True, symbol="t", doc="time up to which SGD is followed")

    usual = Run(sizes=(50, 100, 200), samples=800, batch=200)
    showcase = Showcase(
        first="along_mu",
        see="Neurons fall into the four directions of the means, and their overlaps follow the equations.",
    )

    def theory(self):
        # One solution for the times that are compared and for those between, which are drawn.
        fine = even_times(self.horizon, POINTS * BETWEEN)
        times = fine[BETWEEN - 1 :: BETWEEN]
        start = xor.XorState(*(jnp.asarray(part) for part in (OUTPUT, ALONG_MU, ALONG_NU, OVERLAPS)))
        path = xor.xor_ballistic(start, fine, self.separation, self.ridge, self.step, points=QUADRATURE)

        def curve(values, label, symbol):
            return Curve(
                times, values[BETWEEN - 1 :: BETWEEN], label=label, symbol=symbol, axis="time", axis_symbol="t",
                rate=1.0, dense_x=fine, dense_y=values,
            )  # fmt: skip

        return {
            "output": curve(path.output[:, 0], "output weight", "v_1"),
            "along_mu": curve(path.along_mu[:, 0], "overlap of neuron 1", r"m^\mu_1"),
            "along_nu": curve(path.along_nu[:, 1], "overlap of neuron 2", r"m^\nu_2"),
            "radius": curve(path.overlaps[:, 0, 0], "rest of neuron 1", "R_{11}"),
        }

    def at_size(self, size):
        n = whole(size, "N", self, least=8)
        every = whole(float(self.horizon) * n / float(self.step) / POINTS, "steps between records", self)
        return {"dimension": n, "every": every}, rounded(self, horizon=every * POINTS * float(self.step) / n)

    def simulate(self, key, *, dimension: int, every: int):
        def step(sample, state):
            return reduced_chains.xor_step(sample, state, dimension, self.separation, self.ridge, self.step)

        start = reduced_chains.XorStatistics(*(jnp.asarray(part) for part in (OUTPUT, ALONG_MU, ALONG_NU, OVERLAPS)))
        samples = reduced_chains.xor_samples(key, (POINTS * every,), dimension, len(OUTPUT))
        found = reduced_chains.run(step, samples, start, every * np.arange(1, POINTS + 1))
        return {
            "output": found.output[:, 0],
            "along_mu": found.along_mu[:, 0],
            "along_nu": found.along_nu[:, 1],
            "radius": found.overlaps[:, 0, 0],
        }
