r"""How much of the gradient lies in the top eigenspace of the Hessian."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.ensembles import data, trainers
from deeplimits.errors import OutsideValidity
from deeplimits.limit import Limit, Run, axis, integer, real, rounded, whole
from deeplimits.predictions import Identity, Value
from deeplimits.predictions.picture import Axis, Line, Picture
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import curvature_parts
from deeplimits.theory.spectra.laws import marchenko_pastur


class System(NamedTuple):
    """Features, and the distance from the minimum at the start."""

    x: Float[Array, "n d"]
    start: Float[Array, " d"]


class GradientTopSubspace(Limit):
    r"""On a quadratic, small steps take the gradient out of the top eigenspace, steps near the edge keep it there.

    Setting     gradient descent on |Xδ|²/(2n) from δ₀ ~ N(0, I), X of shape (n, d) with independent entries of unit
                variance; learning rate η = 2c/λ₁; k top eigenvectors of the Hessian X'X/n
    Limit       n, d → ∞ with d/n → γ for the mean start; none for the rest
    Result      share |P_k g|²/|g|² after t steps: Σ_{i≤k} g_i²/Σ g_i² with g_i = λ_i(1 − ηλ_i)^t δ_i
                c < ½: it falls towards 0; c near 1: towards that of the first eigenvector
                at the start, over δ₀, E|g|²/d = tr H²/d → 1 + γ
    Validity    a quadratic: the subspace itself does not move; size counts the samples n
    Finite size shares exact; tr H²/d O(1/n)
    Computed by landscape.top_gradient_share
    References  gurari2018
    """

    gamma: Array = real(0.5, 0.05, 5.0, log=True, symbol=r"\gamma", doc="features per sample, d/n")
    step: Array = real(0.25, 0.02, 0.99, symbol="c", doc="learning rate, in units of the largest stable one, 2/λ₁")
    count: int = integer(2, 1, 10, symbol="k", doc="dimension k of the top eigenspace")
    horizon: Array = axis((0.0, 1.0, 3.0, 10.0, 30.0), 0.0, 100.0, symbol="t", doc="steps, rounded down, to look after")

    usual = Run(sizes=(60, 120, 240), samples=150)
    showcase = Showcase(
        first="shares",
        see="Small steps take the gradient out of the top eigenspace, steps near the edge of stability keep it there.",
    )

    def charts(self):
        # Quantiles of the law of the Hessian's eigenvalues, at as many dimensions as are simulated.
        d = max(self.count, round(max(self.usual.sizes) * float(self.gamma)))
        values = marchenko_pastur(self.gamma).quantile((jnp.arange(d) + 0.5) / d)
        times = jnp.arange(0.0, 41.0)

        def line(step, series, words):
            found = curvature_parts.top_gradient_share(values, jnp.ones(d), 2 * step / values[-1], times, self.count)
            return Line(times, found, series=series, label=f"c = {float(step):.2g}{words}")

        lines = (line(self.step, 0, ""), line(0.5, 1, ""), line(0.99, 2, ", near the edge"))
        y = Axis("share of the gradient in the top space", low=0.0, high=1.0)
        return {"shares": Picture(Axis("steps", "t"), y, lines)}

    def at_size(self, size):
        n = whole(size, "n", self, least=8)
        d = whole(n * float(self.gamma), "d", self, least=2)
        if d < self.count:
            raise OutsideValidity(f"GradientTopSubspace: count = {self.count} exceeds the {d} features; larger size")
        return {"samples": n, "features": d}, rounded(self, gamma=d / n)

    def theory(self):
        return {
            "gradient": Value(
                1 + self.gamma, label="squared gradient, over starts", symbol=r"\mathrm{tr}\,H^2/d", rate=1.0
            ),
        }

    def draw(self, key, *, samples: int, features: int):
        data_key, start_key = jax.random.split(key)
        return System(data.independent_entries(data_key, samples, features), jax.random.normal(start_key, (features,)))

    def stated(self, system):
        x, start = system
        values, vectors = jnp.linalg.eigh(x.T @ x / x.shape[0])
        values = jnp.maximum(values, 0.0)
        share = curvature_parts.top_gradient_share(
            values, vectors.T @ start, 2 * self.step / values[-1], self._times(), self.count
        )
        return {
            "share": Identity(
                share,
                label="share of the gradient in the top space",
                symbol="|P_kg|^2/|g|^2",
                tolerance=1e-9,
                reason="rounding of a hundred steps, and of the eigenvectors",
            )
        }

    def measured(self, system):
        x, start = system
        n = x.shape[0]

        def loss(delta):
            return jnp.sum((x @ delta) ** 2) / (2 * n)

        # Singular vectors of the data, not eigenvectors of a Hessian
        _, singular, rows = jnp.linalg.svd(x, full_matrices=False)
        gradients = trainers.gradient_descent(
            loss, start, 2 * self.step * n / singular[0] ** 2, self._times().astype(int), observe=jax.grad(loss)
        )
        inside = gradients @ rows[: self.count].T
        share = jnp.sum(inside**2, axis=1) / jnp.sum(gradients**2, axis=1)
        return {"share": share, "gradient": jnp.sum(jax.hessian(loss)(start) ** 2) / start.shape[0]}

    def _times(self):
        """The start, whose share is never small, and the steps that are asked for."""
        return jnp.append(0.0, jnp.floor(self.horizon))
