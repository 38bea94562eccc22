r"""Fluctuation-dissipation in a network that is not linear."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import trainers
from deeplimits.limit import Limit, Run, choice, integer, real, whole
from deeplimits.measure import fluctuation_dissipation
from deeplimits.models import designs
from deeplimits.predictions import Identity, Value

WARMUP = 2000


class FluctuationDissipation(Limit):
    r"""Position and noise balance in every stationary run of stochastic gradient descent.

    Setting     a two-layer tanh network with output bias and weight decay on a regression problem, fresh batches,
                constant step η; ∇L the full gradient, ∇L_B the batch's, c any fixed point; averages over T steps after
                a warm-up
    Limit       T → ∞
    Result      ⟨(θ − c)·∇L⟩ = (η/2)⟨‖∇L_B‖²⟩ for every η, model and batch size; measured is the ratio of the sides
                exactly at every T: Σ_t [(θ_t − c)·∇L_B − (η/2)‖∇L_B‖²] = (‖θ_0 − c‖² − ‖θ_T − c‖²)/(2η)
                to order η²: ⟨‖∇L‖²⟩ = (η/2)⟨∇L_B·H∇L_B⟩
    Validity    stationarity: the parameters stay bounded (here by weight decay); size counts the recorded steps T
    Finite size O(1/T), from ‖θ_T − c‖² − ‖θ_0 − c‖²
    References  yaida2019
    """

    neurons: int = integer(4, 1, 100, log=True, symbol="h", doc="hidden neurons")
    points: int = integer(12, 4, 1000, log=True, symbol="m", doc="number of samples")
    batch_size: int = integer(3, 1, 1000, log=True, symbol="B", doc="batch size")
    step: Array = real(0.2, 0.01, 0.5, log=True, symbol=r"\eta", doc="learning rate")
    decay: Array = real(0.02, 0.001, 0.2, log=True, symbol=r"\mu", doc="weight decay")
    sampling: str = choice(
        "with replacement", ("with replacement", "without replacement", "bernoulli"), doc="how batches are drawn"
    )

    usual = Run(sizes=(1000, 2000, 4000), samples=300, batch=150)

    def validity(self):
        if self.sampling != "with replacement" and self.batch_size > self.points:
            return (f"batch_size = {self.batch_size} exceeds points = {self.points}; take smaller batches",)
        return ()

    def theory(self):
        return {
            "first_relation": Value(
                jnp.ones(()),
                label="position side over noise side",
                symbol=r"2\langle\theta\cdot\nabla L\rangle/\eta\langle\|\nabla L_B\|^2\rangle",
                rate=1.0,
            ),
            "telescope": Identity(label="sum of the balances", constant=1e7),
        }

    def at_size(self, size):
        return {"steps": whole(size, "T", self, least=10)}, self

    def simulate(self, key, *, steps: int):
        start_key, warm_key, run_key = jax.random.split(key, 3)
        design = designs.polynomial_regression(self.points, 2)
        inputs, h = design.x[:, 1], self.neurons

        def losses(theta):
            # The bias of the output keeps the noise alive where weight decay puts all neurons to sleep.
            w, b, a, bias = theta[:h], theta[h : 2 * h], theta[2 * h : -1], theta[-1]
            outputs = jnp.tanh(jnp.outer(inputs, w) + b) @ a + bias
            return (outputs - design.y) ** 2 / 2 + self.decay / 2 * jnp.sum(theta**2)

        def run(key, start, count, observe):
            return trainers.stochastic_gradient_descent(
                key, losses, start, self.step, count, self.batch_size, self.sampling, observe
            )

        def mean_loss(theta):
            return jnp.mean(losses(theta))

        start = jax.random.normal(start_key, (3 * h + 1,))
        settled, earlier = run(warm_key, start, WARMUP, lambda theta, gradient: theta)
        # Any fixed centre will do; one near the run's mean makes the average quiet.
        centre = jnp.mean(earlier[WARMUP // 2 :], axis=0)

        def look(theta, batch_gradient):
            seen = fluctuation_dissipation.observe(theta, jax.grad(mean_loss)(theta), batch_gradient, self.step, centre)
            return seen.position_side, seen.noise_side, (theta - centre) @ batch_gradient

        end, (position, noise, with_batch) = run(run_key, settled, steps, look)
        moved = (jnp.sum((settled - centre) ** 2) - jnp.sum((end - centre) ** 2)) / (2 * self.step)
        return {
            "first_relation": jnp.mean(position) / jnp.mean(noise),
            "telescope": jnp.stack([jnp.sum(with_batch) - moved, jnp.sum(noise)]),
        }
