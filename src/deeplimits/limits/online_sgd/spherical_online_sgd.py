r"""Spherical online SGD at the critical step."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from deeplimits.ensembles import online_sgd, reduced_chains
from deeplimits.limit import Limit, Run, activation_choice, real
from deeplimits.limits.online_sgd._shared import correlation_curve, even_times, paced
from deeplimits.models.activations import activation
from deeplimits.numerics import draws
from deeplimits.predictions import Identity
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import landscapes, spherical_ode

POINTS = 5


class System(NamedTuple):
    """The source of a path of so many `steps`; and, for one step, a point, an input and its label."""

    key: PRNGKeyArray
    steps: Array
    point: Array
    input: Array
    label: Array


class SphericalOnlineSgd(Limit):
    r"""Online SGD on the sphere follows an ODE with two terms: population gradient and retraction of the noise.

    Setting     x̃ = x − (δ/N)∇L(x, Y), x' = x̃/|x̃|, one fresh sample a step, ∇ on the sphere; L = (y − f(⟨a, x⟩))²,
                y = f(⟨a, θ⟩) + ε, a ~ N(0, I_N), |θ| = 1; m = ⟨x, θ⟩, τ = steps/N
    Limit       N → ∞ with δ fixed
    Result      dm/dτ = −δ(1 − m²)φ'(m) − (δ²/2) s(m) m, φ the population loss, s = lim E|∇L|²/N
                exactly at every step |x̃|² = 1 + (δ/N)²|∇L|²
    Validity    δ fixed; for links with information exponent 2 the equator repels iff δ < 2a₂/s(0) (1/12 for z²);
                size counts the dimension N
    Finite size mean gap O(1/N), single paths fluctuate by O(N^(−1/2))
    Computed by online_sgd.single_index, online_sgd.correlation, online_sgd.plateau
    References  benarous2021
    """

    activation: str = activation_choice(
        "tanh", lambda a: a.continuous and (a.odd or a.homogeneous is not None), symbol="f", doc="link f"
    )
    noise: Array = real(0.3, 0.0, 2.0, symbol=r"\sigma", doc="standard deviation of the label noise")
    step: Array = real(0.5, 0.001, 2.0, log=True, symbol=r"\delta", doc="step size δ")
    start: Array = real(0.2, 0.0, 0.95, symbol="m_0", doc="correlation at the start")
    horizon: Array = real(3.0, 0.1, 50.0, log=True, symbol=r"\tau", doc="samples per dimension")

    usual = Run(sizes=(50, 100, 200), samples=600, batch=200)
    showcase = Showcase(
        parameters={"horizon": 8.0},
        see="The correlation follows an equation with two terms: the gradient pulls up, the noise's retraction down.",
    )

    def theory(self):
        landscape = landscapes.single_index(self.activation, self.activation, self.noise)
        times = even_times(self.horizon, POINTS)
        return {
            "correlation": correlation_curve(times, spherical_ode.correlation(landscape, self.start, self.step, times)),
        }

    def at_size(self, size):
        return paced(self, size, POINTS, least=3)

    def draw(self, key, *, dimension: int, every: int):
        # For the identity one step of the full system: a point, an input and the error of its label.
        found = draws.draw(draws.neighbour(key, -1, word=0), (2,), dimension + 1).gaussians
        point, direction = found[0, :-1] / jnp.linalg.norm(found[0, :-1]), jnp.eye(dimension)[0]
        label = activation(self.activation).value(found[1, :-1] @ direction) + self.noise * found[1, -1]
        return System(key, jnp.arange(POINTS * every), point, found[1, :-1], label)

    def stated(self, system):
        # |x̃|² = 1 + (δ/N)²|∇L|², ∇L = −2(y − f(z))f'(z)(a − zx), z = ⟨a, x⟩
        f, a, z = activation(self.activation), system.input, system.input @ system.point
        squared = (2 * (system.label - f.value(z)) * f.derivative(z)) ** 2 * (a @ a - z**2)
        return {
            "norm": Identity(
                1 + (self.step / len(a)) ** 2 * squared, label="squared norm before retraction", symbol=r"|\tilde x|^2",
                tolerance=5e-15, reason="two scalar products of unit vectors, 20 roundings of 2e-16",
            )
        }  # fmt: skip

    def measured(self, system):
        f, x = activation(self.activation), system.point
        model = reduced_chains.single_index(len(x), f, f, self.noise)
        samples = model.samples(system.key, system.steps.shape)
        marks = len(system.steps) // POINTS * np.arange(1, POINTS + 1)
        path = reduced_chains.spherical_path(model, samples, self.start, self.step, marks)
        slope = jax.grad(online_sgd.single_index_loss)(x, online_sgd.Labelled(system.input, system.label), f)
        moved = x - self.step / len(x) * (slope - (slope @ x) * x)
        return {"correlation": path, "norm": moved @ moved}
