r"""How often a network of given width learns XOR."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.predictions import Probability
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import xor

TIME = 120
SMALL = 1e-3


class XorSuccessProbability(Limit):
    r"""Each neuron finds one of the four clusters at random, and all four must be found.

    Setting     X in {±μ} (y = 1) or {±ν} (y = 0), network v·g(WX) of width K, logistic loss with ridge α, step δ;
                v_i ~ N(0, 1) and W small against v (here W_i·μ, W_i·ν ~ 10⁻³ N(0, 1)): λ → ∞ after N → ∞
    Limit       δ → 0, t → ∞
    Result      P(all four clusters are fitted) = 1 − 4(3/4)^K + 6(1/2)^K − 4(1/4)^K: 3/32 for K = 4, 0 for K ≤ 3;
                it approaches 1 like 4(3/4)^K
    Validity    0 < α < 1/8; |W_i| < |v_i| at the start, so that v_i keeps its sign; a cluster counts as fitted when
                its score exceeds an eighth of that at rest, S = log((1−4α)/(4α)); size counts the steps 1/δ per unit
                of time
    Finite size exact by symmetry for small steps. At rest a score has the variance 3αδS/(1−4α), from the steps at which
                its cluster is drawn: half of S, 2.7 standard deviations away for α = 0.06 and δ = 1/6, would be too
                near, but to fall from S to S/8 it must not be drawn for log 8/(2αδ) steps, more than 100. Nearly dead
                neurons grow like exp((1/8 − α)t), by a factor of 2000 or more up to the end, t = 120
    Computed by online_sgd.xor_success_probability
    References  benarous2022
    """

    width: int = integer(12, 1, 100, symbol="K", doc="number of neurons K")
    ridge: Array = real(0.02, 0.002, 0.06, log=True, symbol=r"\alpha", doc="ridge parameter α")

    usual = Run(sizes=(6, 12), samples=5000, batch=500)
    showcase = Showcase(
        over="width",
        ranges={"width": (1, 30)},
        see="With four neurons the chance to find all four clusters is 3/32; it takes about twenty to be nearly sure.",
    )

    def theory(self):
        return {
            "success": Probability(
                xor.xor_success_probability(self.width), label="all four clusters found", symbol="p_K"
            )
        }

    def at_size(self, size):
        n = whole(size, "1/δ", self, least=2)
        return {"per_unit": n}, self

    def simulate(self, key, *, per_unit: int):
        samples, start = reduced_chains.noiseless_xor_samples(key, self.width, TIME * per_unit, SMALL)
        fitted = reduced_chains.noiseless_xor_fits(samples, start, self.ridge, 1 / per_unit)
        return {"success": jnp.all(fitted).astype(float)}
