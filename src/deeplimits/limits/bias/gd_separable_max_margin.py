r"""Gradient flow on separable data and its hard-margin limit."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, flows
from deeplimits.limit import Limit, Run, choice, real, whole
from deeplimits.predictions import Identity
from deeplimits.theory.bias import hard_margin, separable

# The law is approached like t^{−q}: at t = e^{PATIENCE/q} the remainder is below the integrator's precision.
PATIENCE = 32.0
# Nearly degenerate data approach their law too slowly to be followed: of so many draws the fastest is taken.
DRAWS = 4


class SeparableMaxMargin(Limit):
    r"""Gradient flow on separable data grows along the hard-margin predictor, with a predicted offset.

    Setting     L(w) = (1/n) Σ ℓ(y_i⟨w, x_i⟩), ℓ = log(1 + e^{−u}) or e^{−u}; gradient flow from w₀, or descent with
                t = ηk; separable data with x̄_i = y_i x_i, hard-margin predictor ŵ = Σ a_i x̄_i, support S
    Limit       t → ∞ at fixed data
    Result      w(t) = ŵ log t + w̃ + O(t^{−q}) with ⟨w̃, x̄_i⟩ = −log(n a_i) on S; t L(w(t)) → ‖ŵ‖²
                q = min(λ_min⁺(Σ a_i x̄_i x̄_i'), ψ − 1), ψ the smallest margin off S
                the component of w̃ across the span of S depends on the start; what is orthogonal to all data never moves
    Validity    separable, non-degenerate data (a_i > 0 on S; degenerate data have a residual of order log log t);
                descent: η < 8/λ_max(X'X/n) for the logistic loss; size counts the points n
    Finite size exact: integrated in log t until e^{−qs} vanishes
    References  soudry2018 Thm 3, Thm 4
    """

    gamma: Array = real(2.0, 0.1, 20.0, log=True, symbol=r"d/n", doc="features per sample")
    loss: str = choice("logistic", ("logistic", "exponential"), doc="loss of one sample")
    spread: Array = real(1.0, 0.0, 10.0, symbol=r"\|w_0\|", doc="norm of the start")

    usual = Run(sizes=(4, 8), samples=10)

    def theory(self):
        # The integrator's relative tolerance 1e-11 acts on w = ŵ log t, which may be a thousand times the offset.
        return {
            "residual": Identity(label="offset of the weights", symbol=r"\tilde w", constant=1e9),
            "loss": Identity(label="late loss", symbol=r"t L \to \|\hat w\|^2", constant=1e9),
            "untouched": Identity(label="component orthogonal to the data", constant=1e5),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=2)
        d = whole(n * float(self.gamma), "d", self, least=2)
        return {"points": n, "dimension": d}, self.replace(gamma=d / n)

    def simulate(self, key, *, points: int, dimension: int):
        points_key, start_key = jax.random.split(key)
        start = self.spread * data.on_sphere(start_key, dimension)

        def draw(key):
            x = data.independent_entries(key, points, dimension)
            # Labels of a linear teacher, here the first axis: always separable.
            signed = x * jnp.where(x[:, :1] > 0, 1.0, -1.0)
            predictor, multipliers = hard_margin.traced_hard_margin(signed)
            return signed, predictor, multipliers, separable.approach_rate(signed, predictor, multipliers)

        drawn = jax.lax.map(draw, jax.random.split(points_key, DRAWS))
        fastest = jnp.argmax(drawn[-1])
        signed, predictor, multipliers, rate = (part[fastest] for part in drawn)
        log_time = jnp.maximum(PATIENCE / rate, 40.0)
        (end,) = flows.separable_flow(signed, start, log_time[None], self.loss)
        offset = separable.support_offset(signed, multipliers, 1 / points)
        seen = separable.in_support_span(signed, multipliers, end - predictor * log_time)
        late_loss = jnp.exp(log_time + flows.log_loss_along(signed, end, self.loss))
        span = jnp.linalg.qr(signed.T)[0]
        across = jnp.stack([end, start]) - (jnp.stack([end, start]) @ span) @ span.T
        return {
            "residual": jnp.stack([seen, offset]),
            "loss": jnp.stack([late_loss, predictor @ predictor]),
            # Shifted by ‖w‖, because rounding is relative to that and the component may be zero.
            "untouched": across + jnp.linalg.norm(end),
        }
