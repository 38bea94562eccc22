r"""Fluctuation-dissipation in a network that is not linear."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.ensembles import trainers
from deeplimits.limit import Limit, Run, choice, integer, real, whole
from deeplimits.limits.bias._shared import too_large_batches
from deeplimits.measure import fluctuation_dissipation
from deeplimits.models import designs
from deeplimits.numerics.shapes import Scalar
from deeplimits.predictions import Identity, Value
from deeplimits.showcase import Showcase

WARMUP = 2000


class Recorded(NamedTuple):
    """A stationary run: where it began and ended, about a fixed centre c, and means over its steps."""

    begin: Float[Array, " d"]
    end: Float[Array, " d"]
    position: Scalar
    """⟨(θ − c)·∇L⟩"""
    noise: Scalar
    """(η/2)⟨‖∇L_B‖²⟩"""
    with_batch: Scalar
    """⟨(θ − c)·∇L_B⟩"""
    steps: Scalar


class FluctuationDissipation(Limit):
    r"""Position and noise balance in every stationary run of stochastic gradient descent.

    Setting     a two-layer tanh network, output (1/√h)Σ a_i tanh + bias, with weight decay on a regression problem,
                fresh batches, constant step η; ∇L the full gradient, ∇L_B the batch's, c any fixed point; averages
                over T steps after a warm-up
    Limit       T → ∞
    Result      ⟨(θ − c)·∇L⟩ = (η/2)⟨‖∇L_B‖²⟩ for every η, model and batch size; the left side is measured, the right
                side of the same run is stated, with (‖θ_0 − c‖² − ‖θ_T − c‖²)/(2ηT), with which it is exact at every T
                in the mean, and which vanishes like 1/T once the run is stationary
                exactly in every run: Σ_t [(θ_t − c)·∇L_B − (η/2)‖∇L_B‖²] = (‖θ_0 − c‖² − ‖θ_T − c‖²)/(2η)
                to order η²: ⟨‖∇L‖²⟩ = (η/2)⟨∇L_B·H∇L_B⟩
    Validity    the parameters stay bounded (here by weight decay, and because ‖∂f/∂a‖² + 1 ≤ 2 for every h); size
                counts the recorded steps T
    Finite size none in the mean; without the term of the ends O(1/T), for T ≫ 1/(ημ)
    Computed by bias.fluctuation_dissipation for losses of one's own; in linear regression bias.sgd_stationary; of a run
                of any framework measure.Recorder, measure.report
    References  yaida2019
    """

    neurons: int = integer(4, 1, 100, log=True, symbol="h", doc="hidden neurons")
    samples: int = integer(12, 4, 1000, log=True, symbol="m", doc="number of samples")
    batch_size: int = integer(3, 1, 1000, log=True, symbol="B", doc="batch size")
    step: Array = real(0.2, 0.01, 0.5, log=True, symbol=r"\eta", doc="learning rate")
    decay: Array = real(0.02, 0.001, 0.2, log=True, symbol=r"\mu", doc="weight decay")
    sampling: str = choice(
        "with replacement", ("with replacement", "without replacement", "bernoulli"), doc="how batches are drawn"
    )

    usual = Run(sizes=(1000, 2000, 4000), samples=300, batch=60)
    showcase = Showcase(
        see="Position and noise balance: what is measured on the left equals half the step times the noise "
        "on the right."
    )

    def validity(self):
        return too_large_batches(self)

    def at_size(self, size):
        return {"steps": whole(size, "T", self, least=10)}, self

    def draw(self, key, *, steps: int):
        design = designs.polynomial_regression(self.samples, 2)
        inputs, h = design.x[:, 1], self.neurons

        def losses(theta):
            # The bias of the output keeps the noise alive where weight decay puts all neurons to sleep.
            w, b, a, bias = theta[:h], theta[h : 2 * h], theta[2 * h : -1], theta[-1]
            outputs = jnp.tanh(jnp.outer(inputs, w) + b[None, :]) @ a / math.sqrt(h) + bias
            return (outputs - design.y) ** 2 / 2 + self.decay / 2 * jnp.sum(theta**2)

        gradient = jax.grad(lambda theta: jnp.mean(losses(theta)))

        def look(theta, batch_gradient, before):
            # Any fixed centre will do; one near the run's mean makes the average quiet.
            centre = theta if before is None else before[0]
            seen = fluctuation_dissipation.observe(theta, gradient(theta), batch_gradient, self.step, centre)
            return theta, seen.position_side, seen.noise_side, (theta - centre) @ batch_gradient

        start_key, run_key = jax.random.split(key)
        start = jax.random.normal(start_key, (3 * h + 1,))
        # It settles, finds its mean, and is recorded.
        phases = (WARMUP // 2, WARMUP // 2, steps)
        run = trainers.stochastic_phases(
            run_key, losses, start, self.step, phases, self.batch_size, self.sampling, look
        )
        places, position, noise, with_batch = run.sums
        centre = places[1] / phases[1]
        return Recorded(
            begin=run.begins[2] - centre,
            end=run.ends[2] - centre,
            position=position[2] / steps,
            noise=noise[2] / steps,
            with_batch=with_batch[2] / steps,
            steps=jnp.asarray(float(steps)),
        )

    def stated(self, system):
        # Σ (θ_t − c)·∇L_B = (η/2) Σ ‖∇L_B‖² + (‖θ_0 − c‖² − ‖θ_T − c‖²)/(2η), and fresh batches have the mean ∇L
        begin, end = (jnp.sum(place**2) / (2 * self.step * system.steps) for place in (system.begin, system.end))
        return {
            "first_relation": Value(
                system.noise + begin - end,
                label="position side, as its noise side says",
                symbol=r"\langle(\theta-c)\cdot\nabla L\rangle",
                per_draw="difference",
            ),
            # The end on the other side, so that nothing cancels in what roundings are compared with.
            "telescope": Identity(
                system.noise + begin,
                label="mean product of position and batch gradient, and the end",
                symbol=r"\langle(\theta-c)\cdot\nabla L_B\rangle+|\theta_T-c|^2/(2\eta T)",
                tolerance=1e-12,
                reason="some thousand roundings of 2.2e-16, one at each step",
            ),
        }

    def measured(self, system):
        left = jnp.sum(system.end**2) / (2 * self.step * system.steps)
        return {"first_relation": system.position, "telescope": system.with_batch + left}
