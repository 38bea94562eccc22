r"""Drift, corrector and diffusion of summary statistics."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import online_sgd
from deeplimits.limit import Limit, Run, real, whole
from deeplimits.measure import summary_statistics
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import spiked_tensor

DRAWS = 50


class EffectiveDynamicsFramework(Limit):
    r"""Drift, corrector and diffusion of SGD's summary statistics, from the loss of any model.

    Setting     x' = x − δ∇L(x, Y), δ = c/N; statistics u(x); V the covariance of ∇L, J the Jacobian of u, Φ = EL. Here
                L = |λvv' + W − xx'|², W with independent standard Gaussian entries, u = (m, r) = (⟨x, v⟩, |x|² − m²)
    Limit       N → ∞ with c fixed
    Result      f = lim⟨∇Φ, ∇u⟩, g = lim(δ/2)⟨V, ∇²u⟩, Σ = lim δJVJ'
                here −f = (4m(λ − R²), −8R²r), g = (0, 8cR²), R² = m² + r, and N Σ_mm → 8c(R² + m²), the diffusion
                of √N m
    Validity    statistics localizable and closed; the coefficients are estimated from the loss alone, by automatic
                differentiation and Monte Carlo; size counts the dimension N
    Finite size gap O(1/N)
    Computed by online_sgd.spiked_dynamics, online_sgd.path_noise; for a model of one's own measure.coefficients,
                measure.closability, measure.localizability; whether the step is critical, and the limit diffusive,
                online_sgd.classify_dynamics
    References  benarous2022
    """

    signal: Array = real(2.0, 0.0, 10.0, symbol=r"\lambda", doc="strength λ of the spike")
    step: Array = real(1.0, 0.01, 10.0, log=True, symbol="c", doc="step constant c = δN")
    overlap: Array = real(0.3, -2.0, 2.0, symbol="m", doc="overlap m of the point with the spike")
    radius: Array = real(0.7, 0.01, 4.0, symbol="r", doc="squared length r of the rest of the point")

    usual = Run(sizes=(8, 16, 32), samples=800, batch=40)
    showcase = Showcase(
        over="overlap",
        ranges={"overlap": (-2.0, 2.0)},
        see="The drift of the overlap changes sign three times: it leaves zero and rests at ±√(λ − r).",
    )

    def theory(self):
        dynamics = spiked_tensor.spiked_dynamics(self.signal, 2, self.step)
        u = jnp.stack([self.overlap, self.radius])
        drift, corrector = -dynamics.drift(u), dynamics.corrector(u)
        noise = spiked_tensor.path_noise(u, 2, self.step)[0, 0]
        return {
            "overlap_drift": Value(drift[0], label="drift of the overlap", symbol="-f_m"),
            "radius_drift": Value(drift[1], label="drift of the radius", symbol="-f_r"),
            "radius_corrector": Value(corrector[1], label="corrector of the radius", symbol="g_r", rate=1.0),
            "diffusion": Value(noise, label="diffusion of the scaled overlap", symbol=r"N\Sigma_{mm}"),
        }

    def at_size(self, size):
        n = whole(size, "N", self, least=3)
        return {"dimension": n}, self

    def simulate(self, key, *, dimension: int):
        # The law of a sample is invariant under rotations around the spike: any rest of the right length will do.
        rest = jnp.arange(dimension) > 0
        point = jnp.where(rest, jnp.sqrt(self.radius / (dimension - 1)), self.overlap)
        spike = jnp.where(jnp.outer(~rest, ~rest), self.signal, 0.0)

        def draw(key):
            return spike + online_sgd.gaussian(key, (dimension, dimension))

        def loss(x, y):
            return jnp.sum((y - jnp.outer(x, x)) ** 2)

        def statistics(x):
            return jnp.stack([x[0], x @ x - x[0] ** 2])

        step = self.step / dimension
        found = summary_statistics.estimate(key, loss, draw, statistics, point, step, DRAWS)
        return {
            "overlap_drift": -found.drift.value[0],
            "radius_drift": -found.drift.value[1],
            "radius_corrector": found.corrector.value[1],
            "diffusion": dimension * found.diffusion.value[0, 0],
        }
