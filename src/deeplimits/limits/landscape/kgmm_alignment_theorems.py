r"""Online SGD aligns with the outlier eigenvectors of its own Hessian."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.ensembles import mixture_training, reduced_chains
from deeplimits.limit import Limit, Run, integer, real, rounded, whole
from deeplimits.limits.landscape._shared import over_time
from deeplimits.numerics import draws
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import kgmm, weighted_covariance

RECORDS, POINTS = 4, 128
DENSE = 3 * RECORDS
"""Points of the line that is drawn."""
# The k-th outlier must stand this far from the edge, and the gradients' first from the second.
APART = 1.15


class System(NamedTuple):
    """What SGD recorded, overlaps with the means and the Gram matrix of the rest, and a key for the test samples."""

    means: Float[Array, "records k k"]
    rest: Float[Array, "records k k"]
    key: PRNGKeyArray
    frame: Float[Array, "count d"]
    """Its shape says how many test samples of which dimension."""


class KgmmAlignmentTheorems(Limit):
    r"""Weights trained online live in the span of the means and, up to a level below one, in the top eigenspaces.

    Setting     k classes Y = e_a + Z/√λ in R^d, softmax regression by online SGD, δ = c/d, ridge β, from N(0, 1/d);
                after time t, αd test samples: Hessian block H_11 and second moment of the gradients G_11
    Limit       d → ∞
    Result      ρ(x^c, Span μ)² = a²(k − 1)/(a²(k − 1) + r(k − 1) + e^{−2βt}) along the ODE for (a, r)
                of the state that was reached: |P x^1|²/|x^1|² for P on E_k(H_11), the k largest eigenvalues, is
                Σ_j |P_U v_j|²⟨e_j, x^1⟩²/|x^1|² over the outliers, and ⟨v_1(G_11), μ_1⟩² = |P_U v_1|²⟨e_1, μ_1⟩²
    Validity    k ≥ 3; k outliers of the Hessian's block stand apart from its edge, by a factor of 1.15, and the first
                of the gradients' from the second; size counts the dimension d
    Finite size O(1/d)
    Computed by landscape.kgmm_symmetric_path (span), landscape.weighted_outliers, landscape.kgmm_weighted_block,
                landscape.outlier_alignment (hessian)
    References  benarous2024
    """

    classes: int = integer(3, 3, 4, symbol="k", doc="number of classes k")
    separation: Array = real(10.0, 5.0, 50.0, log=True, symbol=r"\lambda", doc="inverse variance λ of a class")
    per_dimension: Array = real(8.0, 2.0, 12.0, log=True, symbol=r"\alpha", doc="test samples per dimension α")
    ridge: Array = real(0.05, 0.01, 0.2, log=True, symbol=r"\beta", doc="ridge parameter β")
    step: Array = real(1.0, 0.2, 2.0, log=True, symbol="c", doc="step constant c = δd")
    horizon: Array = real(12.0, 4.0, 40.0, log=True, symbol="t", doc="time up to which SGD is followed")

    usual = Run(sizes=(40, 80), samples=300)
    showcase = Showcase(see="The weights turn into the span of the class means.")

    def validity(self):
        k = self.classes
        path = self._path(self.horizon[None])
        projector = jnp.eye(k) - 1 / k
        rest = path.rest[0] * projector + path.common[0] / k
        state = kgmm.MixtureState(path.amplitude[0] * projector, rest)
        hessian, gradient = self._outliers(state)
        last, edge = float(hessian.eigenvalues[k - 1]), float(hessian.edge)
        if last < APART * edge:
            return (
                f"eigenvalue {k} of the Hessian's block, {last:.3g}, does not stand apart from the edge of the bulk, "
                f"{edge:.3g}; take more samples per dimension than per_dimension = {written(self.per_dimension)}",
            )
        first, second = float(gradient.eigenvalues[0]), float(gradient.eigenvalues[1])
        if first < APART * second:
            return (f"the first outlier of the gradients' block, {first:.3g}, is too near to the next, {second:.3g}",)
        return ()

    def theory(self):
        times = self.horizon * jnp.arange(1.0, DENSE + 1) / DENSE
        alignment = self._path(times).alignment(self.classes) ** 2
        label, symbol = "squared alignment with the means", r"\rho(x^c, \mathrm{Span}\,\mu)^2"
        return {"span": over_time(times, alignment, RECORDS, label, symbol)}

    def _path(self, times):
        return kgmm.kgmm_symmetric_path(times, self.classes, self.separation, self.ridge, self.step)

    def _outliers(self, state):
        """Of the Hessian's block and of the gradients', in one program."""
        samples = [
            kgmm.kgmm_weighted_block(state, self.separation, self.per_dimension, kind=kind, points=POINTS)
            for kind in ("hessian", "gradient")
        ]
        both = jax.tree.map(lambda *parts: jnp.stack(parts), *samples)
        found = jax.vmap(weighted_covariance.weighted_outliers)(both)
        return type(found)(*(part[0] for part in found)), type(found)(*(part[1] for part in found))

    def at_size(self, size):
        d = whole(size, "d", self, least=6 * self.classes)
        every = whole(float(self.horizon) * d / float(self.step) / RECORDS, "steps between records", self)
        count = min(max(whole(d * float(self.per_dimension), "test samples", self), 2 * d), 12 * d)
        realised = rounded(self, horizon=every * RECORDS * float(self.step) / d, per_dimension=count / d)
        return {"dimension": d, "every": every, "count": count}, realised

    def draw(self, key, *, dimension: int, every: int, count: int):
        k = self.classes
        mixture = mixture_training.Mixture(jnp.eye(k), jnp.full(k, 1 / k), self.separation)

        def step(sample, state):
            return mixture_training.mixture_step(sample, state, mixture, dimension, self.ridge, self.step)

        start = mixture_training.random_start(draws.neighbour(key, -1, word=0), mixture, dimension)
        samples = mixture_training.samples(key, RECORDS * every, dimension, k)
        found = reduced_chains.run(step, samples, start, every * jnp.arange(1, RECORDS + 1))
        return System(found.means, found.rest, draws.neighbour(key, -2, word=0), jnp.zeros((count, dimension)))

    def stated(self, system):
        state = kgmm.MixtureState(system.means[-1], system.rest[-1])
        hessian, gradient = self._outliers(state)
        k = self.classes
        x = jnp.concatenate([state.means, jnp.linalg.cholesky(state.rest)], axis=1)[0]
        return {
            "hessian": Value(
                weighted_covariance.outlier_alignment(hessian, x, k),
                label="in the Hessian's top space",
                symbol=r"\rho(x^1,E_k(H))^2",
                rate=1.0,
            ),
            "gradient": Value(
                gradient.projections[0] * gradient.directions[0, 0] ** 2,
                label="own mean and the gradients' first eigenvector",
                symbol=r"\langle v_1(G),\mu_1\rangle^2",
                rate=1.0,
            ),
            "outlier": Value(
                hessian.eigenvalues[0], label="largest eigenvalue of the Hessian", symbol=r"\lambda_1(H)", rate=1.0
            ),
        }

    def measured(self, system):
        k = self.classes
        count, d = system.frame.shape
        along = jnp.einsum("tcb,tcb->tc", system.means, system.means)
        beside = jnp.einsum("tcc->tc", system.rest)
        root = jnp.linalg.cholesky(system.rest[-1])
        weights = jnp.concatenate([system.means[-1], root, jnp.zeros((k, d - 2 * k))], axis=1)
        hessian_key, gradient_key = jax.random.split(system.key)
        found = {"span": jnp.mean(along / (along + beside), axis=1)}
        hessian = mixture_training.held_out_block(hessian_key, weights, self.separation, count, 0, "hessian")
        values, vectors = jnp.linalg.eigh(hessian)
        inside = weights[0] @ vectors[:, -k:]
        gradient = mixture_training.held_out_block(gradient_key, weights, self.separation, count, 0, "gradient")
        return {
            **found,
            "hessian": inside @ inside / (weights[0] @ weights[0]),
            "gradient": jnp.linalg.eigh(gradient)[1][0, -1] ** 2,
            "outlier": values[-1],
        }
