r"""How slowly the direction of gradient flow converges."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, flows
from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.measure import margins
from deeplimits.predictions import Value
from deeplimits.theory.bias import hard_margin, separable


class MaxMarginGradientFlow(Limit):
    r"""The direction and the margin of gradient flow converge like 1/log t.

    Setting     gradient flow on Σ exp(−y_i⟨w, x_i⟩) from zero, n points in R^d, d ≫ n; ŵ, w̃, a_i as in the log-time law
    Limit       t → ∞
    Result      ‖w/‖w‖ − ŵ/‖ŵ‖‖ log t → ‖w̃ − (⟨w̃,ŵ⟩/‖ŵ‖²)ŵ‖/‖ŵ‖
                (1/‖ŵ‖ − min_i y_i⟨w, x_i⟩/‖w‖) log t → [max log a_i + ⟨ŵ, w̃⟩/‖ŵ‖²]/‖ŵ‖
                t L(t) → ‖ŵ‖² = 1/margin²; measured are the ratios of the two sides
    Validity    separable, non-degenerate data; d ≫ n makes every point a support vector and q close to one; size counts
                log t
    Finite size relative gaps of order 1/log t for direction and margin, t^{−q} for the loss
    References  soudry2018 Thm 5
    """

    points: int = integer(6, 2, 50, symbol="n", doc="number of points")
    log_time: Array = real(240.0, 40.0, 1e5, log=True, symbol=r"\log t", doc="logarithm of the time")
    overparametrization: Array = real(60.0, 20.0, 1000.0, log=True, symbol="d/n", doc="features per point")

    usual = Run(sizes=(60, 120, 240), samples=24)

    def theory(self):
        one = jnp.ones(())
        return {
            "direction": Value(one, label="distance of directions, over its law", rate=1.0),
            "margin": Value(one, label="shortfall of the margin, over its law", rate=1.0),
            "loss": Value(one, label="late loss, over its law", symbol=r"t L/\|\hat w\|^2", resolution=1e-6),
        }

    def at_size(self, size):
        features = whole(self.points * float(self.overparametrization), "d", self)
        time = whole(size, "log t", self, least=40)
        ratio = features / self.points
        return {"features": features}, self.replace(log_time=float(time), overparametrization=ratio)

    def simulate(self, key, *, features: int):
        x = data.independent_entries(key, self.points, features)
        # Labels are absorbed in x by symmetry. From zero the flow stays in the span of the data: coordinates there.
        signed = jnp.linalg.qr(x.T)[1].T
        (end,) = flows.separable_flow(signed, jnp.zeros(self.points), self.log_time[None], loss_scale=1.0, rtol=1e-9)
        predictor, multipliers = hard_margin.traced_hard_margin(signed)
        offset = separable.support_offset(signed, multipliers, 1.0)
        norm, size = jnp.linalg.norm(predictor), jnp.linalg.norm(end)
        distance = jnp.linalg.norm(end / size - predictor / norm)
        shortfall = 1 / norm - margins.normalized_margin(signed @ end, size)
        stated = 1 / norm - separable.normalized_margin(predictor, offset, multipliers, self.log_time, 1.0)
        return {
            "direction": distance / separable.direction_error(predictor, offset, self.log_time),
            "margin": shortfall / stated,
            "loss": jnp.exp(self.log_time + flows.log_loss_along(signed, end, "exponential", 1.0)) / norm**2,
        }
