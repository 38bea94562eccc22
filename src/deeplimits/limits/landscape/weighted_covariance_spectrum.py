r"""Bulk and outliers of a block of the Hessian of softmax regression."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import mixture_training
from deeplimits.limit import Limit, Run, choice, integer, real, rounded, whole
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import kgmm, weighted_covariance

# An outlier this near to the edge or to the next one is found in large systems only.
APART = 1.2
POINTS = 2048


class WeightedCovarianceSpectrum(Limit):
    r"""A block of a mixture's Hessian is a weighted covariance: a bulk of noise, and outliers above a threshold.

    Setting     k classes, Y = e_a + Z/√λ in R^d, softmax regression at x^c = a(e_c − mean of all e), αd test samples;
                A the block 11 of the Hessian, weights π_1(1 − π_1), or of the gradients' second moment, (π_1 − y_1)²
    Limit       d → ∞
    Result      z = −1/m + (1/λ)E[w/(1 + wm/(λα))] for m(z) = lim tr(A − z)^{−1}/d; its right edge is the least z
                outlier: z = κ(K(z)) beyond the edge, κ the largest eigenvalue of K = E[w uu'/(1 + wm/(λα))], u = P_U Y
                |P_U v|² = 1/(1 − e'K'(z)e);  tr A/d → E w/λ, tr A²/d → ((E w)² + E w²/α)/λ²
    Validity    the outlier stands apart, by a factor of 1.2, from the edge and from the next outlier; edges of the
                gradients' block converge slowly, rare samples having large weights, and are not compared; size counts
                the dimension d
    Finite size outlier and projection O(1/d), edge O(d^(−2/3))
    Computed by landscape.weighted_outliers, landscape.kgmm_weighted_block
    References  benarous2024; benaych2011
    """

    block: str = choice("hessian", ("hessian", "gradient"), doc="whose block: Hessian, or gradients' second moment")
    classes: int = integer(3, 2, 5, symbol="k", doc="number of classes k")
    separation: Array = real(10.0, 3.0, 50.0, log=True, symbol=r"\lambda", doc="inverse variance λ of a class")
    per_dimension: Array = real(4.0, 1.0, 10.0, log=True, symbol=r"\alpha", doc="test samples per dimension α")
    amplitude: Array = real(1.5, 0.5, 3.0, symbol="a", doc="length a of the weights")

    usual = Run(sizes=(40, 80, 160), samples=120)
    showcase = Showcase(see="The outliers of the Hessian's block stand beyond its bulk once classes are narrow enough.")

    def validity(self):
        own, other, edge = self._sectors()
        first, second = max(own[0], other[0]), sorted((*own, *other, edge))[-2]
        if first < APART * second:
            return (
                f"the largest outlier, {first:.4g}, is not {APART:g} times as large as what comes next, {second:.4g}; "
                f"take another amplitude than {written(self.amplitude)}, or per_dimension above "
                f"{written(self.per_dimension)}",
            )
        return ()

    def _sectors(self):
        own, other = (weighted_covariance.weighted_outliers(part) for part in self._samples())
        return (
            [float(part) for part in own.eigenvalues],
            [float(part) for part in other.eigenvalues],
            float(own.edge),
        )

    def _samples(self):
        """The law of weights and coordinates in the two sectors of the symmetry that keeps class 1."""
        k = self.classes
        state = kgmm.MixtureState(self.amplitude * (jnp.eye(k) - 1 / k), jnp.zeros((k, k)))
        found = kgmm.kgmm_weighted_block(state, self.separation, self.per_dimension, kind=self.block, points=POINTS)
        u = found.coordinates
        others = jnp.sum(u[:, 1:k], axis=1) / jnp.sqrt(k - 1.0)
        # Two of the other classes against each other; with two classes there is only noise.
        across = (u[:, 1] - u[:, 2]) / jnp.sqrt(2.0) if k > 2 else u[:, k]
        return (
            found._replace(coordinates=jnp.stack([u[:, 0], others], axis=1)),
            found._replace(coordinates=across[:, None]),
        )

    def theory(self):
        sample, across = self._samples()
        own, other = weighted_covariance.weighted_outliers(sample), weighted_covariance.weighted_outliers(across)
        wins = own.eigenvalues[0] >= other.eigenvalues[0]
        mean, square = sample.probabilities @ sample.weights, sample.probabilities @ sample.weights**2
        second = (mean**2 + square / self.per_dimension) / self.separation**2
        found = {
            "outlier": Value(
                jnp.where(wins, own.eigenvalues[0], other.eigenvalues[0]),
                label="largest eigenvalue",
                symbol=r"\lambda_1",
                rate=1.0,
            ),
            "projection": Value(
                jnp.where(wins, own.projections[0], other.projections[0]),
                label="its eigenvector within the means",
                symbol="|P_Uv|^2",
                rate=1.0,
            ),
            "second_moment": Value(second, label="second moment of the bulk", symbol=r"\mathrm{tr}A^2/d", rate=1.0),
        }
        if self.block == "hessian":
            found["edge"] = Value(own.edge, label="edge of the bulk", symbol=r"\lambda_+", rate=2 / 3)
        return found

    def at_size(self, size):
        d = whole(size, "d", self, least=4 * self.classes)
        count = whole(d * float(self.per_dimension), "test samples", self)
        return {"dimension": d, "count": count}, rounded(self, per_dimension=min(max(count / d, 1.0), 10.0))

    def simulate(self, key, *, dimension: int, count: int):
        k = self.classes
        weights = jnp.zeros((k, dimension)).at[:, :k].set(self.amplitude * (jnp.eye(k) - 1 / k))
        matrix = mixture_training.held_out_block(key, weights, self.separation, count, 0, self.block)
        values, vectors = jnp.linalg.eigh(matrix)
        # What is orthogonal to the means is noise alone.
        noise = matrix[k:, k:]
        found = {
            "outlier": values[-1],
            "projection": jnp.sum(vectors[:k, -1] ** 2),
            "second_moment": jnp.sum(noise**2) / (dimension - k),
        }
        if self.block == "hessian":
            found["edge"] = jnp.linalg.eigvalsh(noise)[-1]
        return found
