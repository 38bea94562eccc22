r"""The number of outliers is the number of clusters that a network discerns."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.predictions import Curve
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import xor_blocks

TIME, SMALL = 120, 1e-3


class RankDeficientSpectra(Limit):
    r"""A network that misses clusters has a Hessian of lower rank: as many outliers as clusters discerned, 1 to 4.

    Setting     XOR without noise, X in {±μ} (y = 1) or {±ν} (y = 0), network v·g(WX) of width K, logistic loss,
                ridge α, SGD with step δ from v_i ~ N(0, 1), W small; block vv of the Hessian, ridge excluded
    Limit       δ → 0, t → ∞
    Result      the block has a nonzero eigenvalues, a the number of types that the K neurons found:
                P(a) = C(4, a)·#{surjections of K neurons onto a types}/4^K
    Validity    0 < α < 1/8; |W_i| < |v_i| at the start; an eigenvalue counts when that of the Gram matrix of the
                vectors g(Wθ) exceeds an eighth of log((1−4α)/(4α)), its value at rest; size counts the steps
                1/δ per unit of time
    Finite size exact by symmetry for small steps; see `xor-success-probability`
    Computed by landscape.xor_outlier_counts
    References  benarous2024; benarous2022
    """

    width: int = integer(4, 1, 16, symbol="K", doc="number of neurons K")
    ridge: Array = real(0.02, 0.002, 0.06, log=True, symbol=r"\alpha", doc="ridge parameter α")

    usual = Run(sizes=(6, 12), samples=12_000, batch=500)
    showcase = Showcase(
        see="How often a network finds one, two, three or all four clusters: as many outliers has its Hessian."
    )

    def theory(self):
        counts = xor_blocks.xor_outlier_counts(self.width)
        return {
            "outliers": Curve(
                jnp.arange(1.0, 5.0),
                counts[1:],
                label="outliers of the Hessian",
                symbol="P(a)",
                axis="number of outliers",
                axis_symbol="a",
                event=True,
            )
        }

    def at_size(self, size):
        n = whole(size, "1/δ", self, least=2)
        return {"per_unit": n}, self

    def simulate(self, key, *, per_unit: int):
        samples, start = reduced_chains.noiseless_xor_samples(key, self.width, TIME * per_unit, SMALL)

        def step(sample, state):
            return reduced_chains.noiseless_xor_step(sample, state, self.ridge, 1 / per_unit)

        end = reduced_chains.run(step, samples, start, [TIME * per_unit])
        mu, nu = end.along_mu[-1], end.along_nu[-1]
        # The block is Σ_θ σ'(s_θ)/4 g(Wθ)g(Wθ)': its rank is that of the four vectors' Gram matrix.
        vectors = jnp.maximum(jnp.stack([mu, -mu, nu, -nu]), 0.0)
        eigenvalues = jnp.linalg.eigvalsh(vectors @ vectors.T)
        mass = jnp.log((1 - 4 * self.ridge) / (4 * self.ridge))
        rank = jnp.sum(eigenvalues > mass / 8)
        return {"outliers": jnp.where(jnp.arange(1, 5) == rank, 1.0, 0.0)}
