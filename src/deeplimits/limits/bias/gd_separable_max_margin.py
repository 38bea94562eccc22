r"""Gradient flow on separable data and its hard-margin limit."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.ensembles import data, estimators, flows
from deeplimits.limit import Limit, Run, choice, real, rounded, whole
from deeplimits.limits.bias._shared import approach
from deeplimits.numerics.shapes import Scalar
from deeplimits.predictions import Identity
from deeplimits.showcase import Showcase
from deeplimits.theory.bias import least_squares, separable_descent, support_vectors

# The law is approached like t^{−q}: at t = e^{PATIENCE/q} the remainder is below rounding.
PATIENCE = 36.0
# Nearly degenerate data approach their law too slowly, or pull back too stiffly, to be followed: the best of so many
# are taken.
DRAWS = 8
# Points whose score exceeds the smallest by more than this have a loss below that of the others by its exponential.
FAR = 20.0


class Data(NamedTuple):
    """Points times their labels, where the flow starts, and how long it is followed."""

    signed: Float[Array, "n d"]
    start: Float[Array, " d"]
    log_time: Scalar


class GdSeparableMaxMargin(Limit):
    r"""Gradient flow on separable data grows along the hard-margin predictor, with a predicted offset.

    Setting     L(w) = (1/n) Σ ℓ(y_i⟨w, x_i⟩), ℓ = log(1 + e^{−u}) or e^{−u}; gradient flow from w₀, or descent with
                t = ηk; separable data with x̄_i = y_i x_i, hard-margin predictor ŵ = Σ a_i x̄_i, support S
    Limit       t → ∞ at fixed data
    Result      w(t) = ŵ log t + w̃ + O(t^{−q}) with ⟨w̃, x̄_i⟩ = −log(n a_i) on S; t L(w(t)) → ‖ŵ‖²
                q = min(λ_min⁺(Σ a_i x̄_i x̄_i'), ψ − 1), ψ the smallest margin off S
                the component of w̃ across the span of S depends on the start; what is orthogonal to all data never moves
    Validity    separable, non-degenerate data (a_i > 0 on S; degenerate data have a residual of order log log t);
                descent: η < 8/λ_max(X'X/n) for the logistic loss; size counts the points n
    Finite size exact: integrated in s = log t until e^{−qs} vanishes, for the one of eight data sets
                that takes the fewest steps
    Computed by bias.hard_margin, bias.support_offset, bias.in_row_space; all of it for data of one's own by
                bias.log_time_law, bias.largest_separable_step
    References  soudry2018 Thm 3, Thm 4
    """

    gamma: Array = real(2.0, 0.1, 20.0, log=True, symbol=r"d/n", doc="features per sample")
    loss: str = choice("logistic", ("logistic", "exponential"), doc="loss of one sample")
    spread: Array = real(1.0, 0.0, 10.0, symbol=r"\|w_0\|", doc="norm of the start")

    usual = Run(sizes=(4, 8), samples=10)
    showcase = Showcase(
        see="The direction becomes the hard-margin predictor's, but slowly: its distance falls like 1/log t.",
    )

    def charts(self):
        n = max(self.usual.sizes)
        return {"approach": approach(n, max(2, round(n * float(self.gamma))))}

    def at_size(self, size):
        n = whole(size, "n", self, least=2)
        d = whole(n * float(self.gamma), "d", self, least=2)
        return {"points": n, "dimension": d}, rounded(self, gamma=d / n)

    def draw(self, key, *, points: int, dimension: int):
        entries = data.independent_entries(key, DRAWS * points + 1, dimension)
        start = self.spread * entries[-1] / jnp.linalg.norm(entries[-1])
        x = entries[:-1].reshape(DRAWS, points, dimension)
        # Labels of a linear teacher, here the first axis: always separable.
        signed = x * jnp.where(x[:, :, :1] > 0, 1.0, -1.0)
        slowest, fastest = jax.vmap(_rates)(signed)
        # A start far out must be forgotten too: what it adds to the scores.
        forget = PATIENCE + 2 * jnp.max(jnp.abs(signed @ start), axis=1)
        log_time = jnp.maximum(forget / slowest, 40.0)
        # Steps can be no longer than what is fastest allows. Margins too thin for double precision have no rates.
        steps = jnp.where(slowest > 0, log_time * fastest, jnp.inf)
        best = jnp.argmin(jnp.where(jnp.isfinite(steps), steps, jnp.inf))
        return Data(signed[best], start, log_time[best])

    def stated(self, system):
        signed, start, _ = system
        predictor, multipliers = support_vectors.traced_hard_margin(signed)
        offset = separable_descent.support_offset(signed, multipliers, 1 / signed.shape[0])
        untouched = start - least_squares.in_row_space(signed, start)
        return {
            "growth": Identity(
                jnp.stack([predictor, untouched]),
                label="growth of the weights in log t, and what never moves",
                symbol=r"\hat w",
                tolerance=1e-9,
                reason="relative tolerance 1e-11 of the integrator",
            ),
            "residual": Identity(
                jnp.where(multipliers > 0, signed @ offset, 0.0),
                label="offset of the scores of support vectors",
                symbol=r"\langle\tilde w,\bar x_i\rangle",
                tolerance=1e-6,
                reason="relative tolerance 1e-11 of the integrator, on weights some thousand times the offset",
            ),
            "loss": Identity(
                predictor @ predictor,
                label="late loss",
                symbol=r"t L \to \|\hat w\|^2",
                tolerance=1e-7,
                reason="relative tolerance 1e-11 of the integrator, on scores of several hundred in an exponent",
            ),
        }

    def measured(self, system):
        signed, start, log_time = system
        end, later = flows.separable_flow(signed, start, log_time * jnp.array([1.0, 1.5]), loss=self.loss)
        growth = 2 * (later - end) / log_time
        # The points that still count make up the support.
        scores = signed @ end
        near = scores < jnp.min(scores) + FAR
        span = jnp.linalg.qr(signed.T)[0]
        return {
            "growth": jnp.stack([growth, end - (end @ span) @ span.T]),
            "residual": jnp.where(near, scores - signed @ growth * log_time, 0.0),
            "loss": jnp.exp(log_time + flows.log_loss_along(signed, end, self.loss)),
        }


def _rates(signed):
    """How fast the flow forgets where it came from, and how fast it comes back to its path, per unit of log t."""
    weights, multipliers = estimators.max_margin(signed)
    on = multipliers > 1e-6 * jnp.max(multipliers)
    # The nonzero eigenvalues of Σ a_i x̄_i x̄_i' are those of the matrix √(a_i a_j)⟨x̄_i, x̄_j⟩.
    rows = jnp.sqrt(jnp.where(on, multipliers, 0.0))[:, None] * signed
    rates = jnp.linalg.eigvalsh(rows @ rows.T)
    slowest = jnp.min(jnp.where(rates > 1e-9 * rates[-1], rates, jnp.inf))
    gap = jnp.min(jnp.where(on, jnp.inf, signed @ weights)) - 1
    return jnp.minimum(slowest, gap), rates[-1]
