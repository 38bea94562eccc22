r"""The evidence of a deep linear network that interpolates its data."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import deep_linear
from deeplimits.limit import Limit, Run, integer, real, sized
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.bayes import evidence


class BayesLinearEvidence(Limit):
    r"""The evidence of a deep linear network, exact through Meijer's G at any depth and width.

    Setting     θ' = W^(L+1) … W^(1), W^(l)_ij ~ N(0, σ²/n_{l−1}), L hidden layers of width n; P points in R^{n_0} with
                X Xᵀ the identity and labels of squared norm ν, interpolated without noise
    Limit       none: exact
    Result      Z = (πν)^{−P/2} Γ(n/2)^{−L} G^{L+1,0}_{0,L+1}(ζ | P/2, n/2, …, n/2), ζ = ν (n_0/2σ²)(n/2σ²)^L; shown is
                Z (2π)^{P/2} relative to a linear model that has the variance ν/P
    Validity    P ≤ n_0, and 2P < n where the average over weights is to have a variance; size counts the width n
    Finite size exact
    Computed by bayes.log_evidence, bayes.log_meijer_g, bayes.best_prior_scale
    References  hanin2023
    """

    weight_variance: Array = real(1.0, 0.5, 2.0, log=True, symbol=r"\sigma^2", doc="weight variance times fan-in")
    squared_norm: Array = real(1.0, 0.2, 5.0, log=True, symbol=r"\nu", doc="squared norm of the shortest interpolant")
    points: int = integer(2, 1, 5, symbol="P", doc="number of points")
    inputs: int = integer(4, 1, 50, symbol="n_0", doc="dimension of the data")
    hidden: int = integer(2, 1, 6, symbol="L", doc="number of hidden layers")
    width: int = integer(12, 1, 10_000, log=True, symbol="n", doc="neurons of a hidden layer")

    usual = Run(sizes=(8, 16), samples=12_000, batch=200)
    showcase = Showcase(
        see="The evidence has a peak at one variance of the weights, and a network with more layers has a sharper one."
    )

    def theory(self):
        data = evidence.Interpolation(
            jnp.asarray(float(self.points)), jnp.asarray(float(self.inputs)), self.squared_norm, jnp.zeros(())
        )
        widths, counts = jnp.asarray([float(self.width)]), jnp.asarray([float(self.hidden)])
        log_z = evidence.evidence_of(data, self.weight_variance, widths, counts)
        # A Gaussian of variance ν/P has the density (2πν/P)^{−P/2} e^{−P/2} there.
        half = self.points / 2
        reference = -half * (jnp.log(2 * jnp.pi * self.squared_norm / self.points) + 1)
        return {"evidence": Value(jnp.exp(log_z - reference), label="evidence, relative", symbol=r"Z/Z_0")}

    def validity(self):
        if self.points <= self.inputs:
            return ()
        return (
            f"{self.points} points cannot be interpolated by a linear map of {self.inputs} inputs; take fewer points",
        )

    def validity_at(self, size):
        least = 2 * self.points + 3
        return () if size >= least else (f"averages over networks of width {size} have no variance; take {least}",)

    def at_size(self, size):
        return sized(self, width=size)

    def simulate(self, key, *, width: int):
        # The first layer is integrated by hand: given the others, θ_p ~ N(0, σ²|v|²/n_0) independently.
        v = deep_linear.last_row(key, width, [width] * (self.hidden - 1), self.weight_variance)
        variance = self.weight_variance / self.inputs * jnp.sum(v**2)
        half = self.points / 2
        log_density = -half * jnp.log(2 * jnp.pi * variance) - self.squared_norm / (2 * variance)
        reference = -half * (jnp.log(2 * jnp.pi * self.squared_norm / self.points) + 1)
        return {"evidence": jnp.exp(log_density - reference)}
