r"""Stationary stochastic gradient descent in linear regression."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import trainers
from deeplimits.limit import Limit, Run, choice, integer, real, replace, whole
from deeplimits.limits.bias._shared import nothing_fluctuates, top_eigenvalue
from deeplimits.measure import fluctuation_dissipation
from deeplimits.models import designs
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Curve, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.bias import sgd_noise


class SgdStationaryLinearRegression(Limit):
    r"""Stationary covariance of stochastic gradient descent in linear regression, exactly.

    Setting     l_k = (⟨x_k, θ⟩ − y_k)²/2 for m samples of a fixed polynomial regression, fresh batches of size B,
                constant step η; A = X'X/m, δ = θ − θ_LS, residuals r_k
    Limit       none is needed beyond stationarity, t → ∞
    Result      S = ⟨δδ'⟩ solves AS + SA = η C̃, C̃ = ASA + κ[Σ x_k(x_k'Sx_k)x_k' − χ m ASA] + κ Σ r_k² x_k x_k' with
                Bernoulli batches (p = B/m): κ = (1−p)/(Bm), χ = 0; without replacement: κ = (m−B)/(Bm(m−1)), χ = 1;
                with replacement: κ = 1/(Bm), χ = 1
                fluctuation-dissipation: ⟨δ·∇L⟩ = (η/2)⟨tr C̃⟩ and ⟨‖∇L‖²⟩ = (η/2)⟨tr AC̃⟩, both exact at every η
    Validity    η below a limit smaller than 2/λ_max; size counts the samples m
    Finite size exact
    Computed by bias.sgd_stationary
    References  yaida2019; defossez2015
    """

    samples: int = integer(10, 3, 1000, log=True, symbol="m", doc="number of samples")
    features: int = integer(2, 1, 6, symbol="d", doc="number of features: monomials of a degree below d")
    batch_size: int = integer(2, 1, 1000, log=True, symbol="B", doc="batch size")
    step: Array = real(
        0.4, 0.01, 2.0, log=True, symbol=r"\eta\lambda_{\max}", doc="step size times the top eigenvalue of A"
    )
    sampling: str = choice(
        "without replacement", ("with replacement", "without replacement", "bernoulli"), doc="how batches are drawn"
    )

    usual = Run(sizes=(6, 12, 24), samples=120, batch=60)
    showcase = Showcase(
        first="noise_side",
        see="The larger the step, the more the noise of mini-batches is worth: exact for every batch size and step.",
    )

    def validity(self):
        if found := nothing_fluctuates(self):
            return found
        if self.sampling == "without replacement" and self.batch_size == self.samples:
            return ("batches of all samples leave no gradient noise, and the covariance is zero; take a smaller batch",)
        x, _ = designs.polynomial_regression(self.samples, self.features)
        largest = sgd_noise.largest_sgd_step(x, self.batch_size, self.sampling) * top_eigenvalue(x)
        if float(self.step) >= 0.95 * largest:
            return (
                f"step = {written(self.step)} is not below 0.95 of {largest:.4g}, where the second moment becomes "
                "infinite; take a smaller step",
            )
        return ()

    def theory(self):
        x, y = designs.polynomial_regression(self.samples, self.features)
        step = self.step / top_eigenvalue(x)
        found = sgd_noise.sgd_stationary(x, y, step, self.batch_size, self.sampling)
        upper = np.triu_indices(self.features)
        entries = found.covariance[upper]
        return {
            "covariance": Curve(
                jnp.arange(len(entries), dtype=float),
                entries,
                axis="entry",
                label="stationary covariance",
                symbol="S_{ij}",
            ),
            "position_side": Value(
                found.position_side, label="position side", symbol=r"\langle\delta\cdot\nabla L\rangle"
            ),
            "noise_side": Value(
                found.noise_side, label="noise side", symbol=r"\frac{\eta}{2}\langle\mathrm{tr}\,\tilde C\rangle"
            ),
            "gradient_side": Value(found.gradient_side, label="gradient side", symbol=r"\langle\|\nabla L\|^2\rangle"),
            "curvature_side": Value(
                found.curvature_side,
                label="curvature side",
                symbol=r"\frac{\eta}{2}\langle\mathrm{tr}\,A\tilde C\rangle",
            ),
        }

    def at_size(self, size):
        m = whole(size, "m", self, least=3)
        x, _ = designs.polynomial_regression(m, self.features)
        # 15 relaxation times of the slowest direction before anything is recorded, 40 of them recorded
        memory = float(np.linalg.cond(x)) ** 2 / float(self.step)
        return {"warmup": int(15 * memory) + 20, "steps": int(40 * memory) + 400}, replace(self, samples=m)

    def simulate(self, key, *, warmup: int, steps: int):
        x, y = designs.polynomial_regression(self.samples, self.features)
        step = self.step / top_eigenvalue(x)
        centre = jnp.asarray(np.linalg.lstsq(x, y)[0])
        upper = np.triu_indices(self.features)

        def losses(theta):
            return (x @ theta - y) ** 2 / 2

        gradient = jax.grad(lambda theta: jnp.mean(losses(theta)))

        def look(theta, batch_gradient, before):
            full, bent = jax.jvp(gradient, (theta,), (batch_gradient,))
            seen = fluctuation_dissipation.observe(
                theta, full, batch_gradient, step, centre, hessian_times_batch_gradient=bent
            )
            return (*seen, jnp.outer(theta - centre, theta - centre)[upper])

        run = trainers.stochastic_phases(
            key, losses, centre, step, (warmup, steps), self.batch_size, self.sampling, look
        )
        position, noise, gradient_side, curvature, entries = (part[1] / steps for part in run.sums)
        return {
            "covariance": entries,
            "position_side": position,
            "noise_side": noise,
            "gradient_side": gradient_side,
            "curvature_side": curvature,
        }
