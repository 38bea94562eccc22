r"""How slowly the direction of gradient flow converges."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, estimators, flows
from deeplimits.limit import Limit, Run, integer, real, replace, whole
from deeplimits.limits.bias._shared import approach
from deeplimits.measure import margins
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.bias import separable_descent, support_vectors


class MaxMarginGradientFlow(Limit):
    r"""The direction and the margin of gradient flow converge like 1/log t.

    Setting     gradient flow on Σ exp(−y_i⟨w, x_i⟩) from zero, n points in R^d, d ≫ n; ŵ, w̃, a_i as in the log-time law
    Limit       t → ∞
    Result      ‖w‖/log t → ‖ŵ‖, and
                ‖w‖ ‖w/‖w‖ − ŵ/‖ŵ‖‖ → ‖w̃ − (⟨w̃,ŵ⟩/‖ŵ‖²)ŵ‖
                ‖w‖ (1/‖ŵ‖ − min_i y_i⟨w, x_i⟩/‖w‖) → max log a_i + ⟨ŵ, w̃⟩/‖ŵ‖²
                t L(t) → ‖ŵ‖² = 1/margin²
    Validity    separable, non-degenerate data; d ≫ n makes every point a support vector and q close to one; size counts
                log t
    Finite size relative gaps of order 1/log² t for the direction, 1/log t for margin and growth, t^{−q} for the loss
    Computed by bias.hard_margin, bias.support_offset, bias.direction_error, bias.normalized_margin; all of it for data
                of one's own by bias.log_time_law
    References  soudry2018 Thm 5
    """

    points: int = integer(6, 2, 50, symbol="n", doc="number of points")
    log_time: Array = real(240.0, 40.0, 1e5, log=True, symbol=r"\log t", doc="logarithm of the time")
    gamma: Array = real(60.0, 20.0, 1000.0, log=True, symbol="d/n", doc="features per point")

    usual = Run(sizes=(60, 120, 240), samples=80)
    showcase = Showcase(see="Direction and margin come closer like 1/log t: much more slowly than the loss.")

    def charts(self):
        return {"approach": approach(self.points, round(self.points * float(self.gamma)))}

    def at_size(self, size):
        features = whole(self.points * float(self.gamma), "d", self)
        time = whole(size, "log t", self, least=40)
        ratio = features / self.points
        return {"features": features}, replace(self, log_time=float(time), gamma=ratio)

    def draw(self, key, *, features: int):
        x = data.independent_entries(key, self.points, features)
        # Labels are absorbed in x by symmetry. From zero the flow stays in the span of the data: coordinates there.
        return jnp.linalg.qr(x.T)[1].T

    def stated(self, system):
        predictor, multipliers = support_vectors.traced_hard_margin(system)
        offset = separable_descent.support_offset(system, multipliers, 1.0)
        norm = jnp.linalg.norm(predictor)
        # Both laws are C/log t to leading order, and ‖w‖ is ‖ŵ‖ log t.
        distance = separable_descent.direction_error(predictor, offset, 1.0)
        shortfall = 1 / norm - separable_descent.normalized_margin(predictor, offset, multipliers, 1.0, 1.0)
        return {
            "direction": Value(
                norm * distance,
                label="‖w‖ times the distance of the directions",
                symbol=r"\|w\|\,\|w/\|w\|-\hat w/\|\hat w\|\|",
                rate=2.0,
                resolution=1e-6,
            ),
            # Its gap is ‖w̃⊥‖²/(2‖ŵ‖² log t), a thousandth of it, and very different for different data.
            "margin": Value(norm * shortfall, label="‖w‖ times the shortfall of the margin", rate=1.0, resolution=1e-5),
            "growth": Value(norm, label="growth of the weights", symbol=r"\|w\|/\log t", rate=1.0),
            "loss": Value(norm**2, label="late loss", symbol=r"t L \to \|\hat w\|^2", resolution=1e-6),
        }

    def measured(self, system):
        (end,) = flows.separable_flow(system, jnp.zeros(self.points), self.log_time[None], loss_scale=1.0, rtol=1e-9)
        predictor = estimators.max_margin(system).weights
        norm, size = jnp.linalg.norm(predictor), jnp.linalg.norm(end)
        return {
            "direction": size * jnp.linalg.norm(end / size - predictor / norm),
            "margin": size * (1 / norm - margins.normalized_margin(system @ end, size)),
            "growth": size / self.log_time,
            "loss": jnp.exp(self.log_time + flows.log_loss_along(system, end, "exponential", loss_scale=1.0)),
        }
