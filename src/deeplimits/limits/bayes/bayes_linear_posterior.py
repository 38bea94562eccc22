r"""What a deep linear network believes of what it has not seen."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import deep_linear
from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.bayes import evidence, posterior


class BayesLinearPosterior(Limit):
    r"""The posterior of a deep linear network: what it says of networks drawn from the prior is right on average.

    Setting     a network θ' = W^(L+1) … W^(1) drawn from the prior W^(l)_ij ~ N(0, σ²/n_{l−1}), L hidden layers of
                width n, n_0 inputs; the labels y_i = θ_i of the first P coordinates are seen
    Limit       none: exact
    Result      E[|θ_⊥|² | data] = (n_0−P)(ν/2) G(ζ | P/2−1, n/2)/G(ζ | P/2, n/2) with ν = Σ y_i², for
                every draw of the data: on average over networks it is |θ_⊥|² itself
    Validity    P < n_0; size counts the width n
    Finite size exact
    Computed by bayes.posterior_norm_moment, bayes.predict_labels, bayes.log_predictive_density
    References  hanin2023
    """

    weight_variance: Array = real(1.0, 0.5, 2.0, log=True, symbol=r"\sigma^2", doc="weight variance times fan-in")
    points: int = integer(3, 1, 20, symbol="P", doc="number of labels that are seen")
    inputs: int = integer(8, 2, 60, symbol="n_0", doc="dimension of the data")
    hidden: int = integer(2, 1, 5, symbol="L", doc="number of hidden layers")

    usual = Run(sizes=(8, 16), samples=5000, batch=100)
    showcase = Showcase(
        see="What the posterior says of the part that no label shows is right on average over networks, at "
        "every prior: here it grows with the prior's scale."
    )

    def validity(self):
        if self.points < self.inputs:
            return ()
        return (f"{self.points} points leave nothing open in {self.inputs} dimensions; take fewer points",)

    def at_size(self, size):
        return {"width": whole(size, "n", self, least=2)}, self

    def draw(self, key, *, width: int):
        theta = deep_linear.last_row(key, self.inputs, [width] * self.hidden, self.weight_variance)
        return theta, jnp.asarray(float(width))

    def stated(self, system):
        theta, width = system
        seen = jnp.sum(theta[: self.points] ** 2)
        data = evidence.Interpolation(
            jnp.asarray(float(self.points)), jnp.asarray(float(self.inputs)), seen, jnp.zeros(())
        )
        widths, counts = width[None], jnp.asarray([float(self.hidden)])
        first = posterior.moment_of(data, self.weight_variance, widths, counts, 1)
        return {"open": Value(first, label="squared norm left open", symbol=r"|\theta_\perp|^2", per_draw="difference")}

    def measured(self, system):
        return {"open": jnp.sum(system[0][self.points :] ** 2)}
