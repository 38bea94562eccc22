r"""Tokens collapse to one cluster, and how fast."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles.data import gaussian_arrays
from deeplimits.ensembles.transformers import particles as ensemble
from deeplimits.limit import Limit, Run, axis, choice, integer, real, replace, whole
from deeplimits.measure.separability import is_separable
from deeplimits.measure.tokens import clustering as measure
from deeplimits.predictions import Bound, Value
from deeplimits.showcase import Showcase, log_points
from deeplimits.theory.attention import cluster_rates, equiangular
from deeplimits.theory.bias import cover_count


class SingleClusterConvergence(Limit):
    r"""Near a single cluster distances shrink like e^{−t} at every temperature.

    Setting     n tokens on the sphere of R^d, B = V = I, started within 1/N of one point; orthogonal tokens; uniform
                tokens
    Limit       N → ∞
    Result      SA: 1 − ⟨x_i, x_j⟩ ~ e^{−2t} for every β, USA: e^{−2e^β t}; from an open hemisphere there is always one
                cluster, and uniform tokens lie in one with probability 2^{1−n} Σ_{k<d} C(n−1, k); SA from orthogonal
                tokens: 1 − γ(t) ≤ n/((n−1) + e^{rt}), r = 2n/(e^β + n − 1), at all times
    Validity    β ≥ 0; times in units of e^{−β} for USA; size counts N
    Finite size O(1/N²) for the rate; the rest is exact
    Computed by attention.cluster_rate, attention.equiangular_bound (orthogonal), bias.cover_probability (hemisphere)
    References  geshkovski2025 Sec 4-6; criscitiello2024; wendel1962
    """

    kind: str = choice("softmax", ensemble.KINDS, doc="rows of attention that sum to one (SA), or not (USA)")
    tokens: int = integer(6, 2, 16, symbol="n", doc="number of tokens")
    dimension: int = integer(3, 2, 16, symbol="d", doc="dimension of the tokens")
    beta: Array = real(2.0, 0.0, 5.0, symbol=r"\beta", doc="inverse temperature")
    times: Array = axis((0.5, 1.0, 2.0), 0.01, 20.0, log=True, symbol="t", doc="times of orthogonal tokens under SA")
    closeness: Array = real(20, 5, 1e4, log=True, symbol="N", doc="inverse distance of the tokens at the start")

    usual = Run(sizes=(20, 40, 80), samples=100, batch=20)
    showcase = Showcase(
        parameters={"times": log_points(0.05, 10.0, 8)},
        over="closeness",
        see="The nearer the tokens start to each other, the nearer to two is the rate at which they come together, at "
        "every temperature.",
    )

    sets = 150
    """Sets of uniform tokens that are asked for a hemisphere in one measurement."""

    def theory(self):
        share = cover_count.cover_probability(self.tokens, self.dimension)
        # In USA's unit of time, e^{−β}, both rates are told by the same clock.
        unit = 1.0 if self.kind == "softmax" else jnp.exp(-self.beta)
        speed = 2 * unit * cluster_rates.cluster_rate(self.beta, kind=self.kind)
        return {
            "decay": Value(speed, label="decay of 1 − ⟨x_i, x_j⟩ near a cluster", symbol="2r", rate=2.0),
            "hemisphere": Value(share, label="share of tokens in an open hemisphere", symbol="P"),
            "orthogonal": Bound(
                equiangular.equiangular_bound(0.0, self.times, self.tokens, self.beta), x=self.times, axis="time",
                label="what orthogonal tokens lack of a cluster", symbol=r"1-\gamma",
            ),
        }  # fmt: skip

    def at_size(self, size):
        return {}, replace(self, closeness=whole(size, "N", self, least=5))

    def simulate(self, key):
        n, d = self.tokens, self.dimension
        near, far = gaussian_arrays(key, (n, d), (self.sets, n, d))
        apart = near / jnp.maximum(jnp.max(jnp.linalg.norm(near, axis=1)), 1e-9) / self.closeness
        shift = self.beta if self.kind == "unnormalized" else 0.0
        moments = jnp.array([0.25, 1.25])
        path = ensemble.attention_flow(
            jnp.eye(d)[:1] + apart, moments, self.beta, kind=self.kind, shift=shift, normalize=True
        )
        first, last = measure.chord(path)
        orthogonal = ensemble.attention_flow(jnp.eye(n), self.times, self.beta)
        return {
            "decay": jnp.log(first / last) / (moments[1] - moments[0]),
            "hemisphere": jnp.mean(is_separable(far)),
            "orthogonal": jax.vmap(measure.chord)(orthogonal),
        }
