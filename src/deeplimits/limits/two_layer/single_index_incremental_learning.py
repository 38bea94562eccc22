r"""One Hermite degree after the other."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import single_index
from deeplimits.limit import Limit, Run, axis, real, rounded, whole
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Curve
from deeplimits.showcase import Showcase, log_points
from deeplimits.theory.two_layer.mean_field import incremental, initial_laws

LOG_WIDTH = 0.4
"""ln m over t/√ε from which on the risk closes at its rate; found by simulation at widths from 12 to 192."""


class SingleIndexIncrementalLearning(Limit):
    r"""A wide network learns a single-index target degree by degree.

    Setting     y = φ(⟨u*, x⟩) with Hermite coefficients φ₀, φ₁, φ₂, neurons (1/m) Σ a_i σ(⟨u_i, x⟩), ‖u_i‖ = 1, σ with
                coefficients (0.7, 1, 0.6); spherical gradient flow on the risk, second layer 1/ε times faster;
                start: a_i ~ N(0, 1), u_i orthogonal to u* and to each other
    Limit       d ≥ m + 1, m → ∞
    Result      ε ȧ = V(s) − ∫a'U(ss')dρ,  ṡ = a(1 − s²)[V'(s) − ∫a's'U'(ss')dρ],  s = ⟨u, u*⟩,
                V = Σ φ_lσ_l s^l, U = Σ σ_l² r^l, R = ½ Σ_l (φ_l − σ_l ∫a s^l dρ)²;
                as ε → 0 degree 0 is learnt at ε ln2/σ₀², degree 1 at √ε ln(1/ε)/(4|φ₁σ₁|), degree l ≥ 2 at Θ(ε^(1/2l))
    Validity    ε > 0; a component with σ_l = 0 is never learnt; t ≪ ln m where the flow has passed a
                saddle, which narrow networks leave by another way; size counts the neurons m
    Finite size O(1/m) in the mean
    Computed by two_layer.incremental_learning, two_layer.graded_normal, two_layer.learning_time; as ε → 0
                two_layer.incremental_time_scales
    References  berthier2024
    """

    constant: Array = real(0.5, -5.0, 5.0, symbol=r"\varphi_0", doc="Hermite coefficient of degree 0 of the target")
    linear: Array = real(1.0, -5.0, 5.0, symbol=r"\varphi_1", doc="Hermite coefficient of degree 1 of the target")
    quadratic: Array = real(0.8, -5.0, 5.0, symbol=r"\varphi_2", doc="Hermite coefficient of degree 2 of the target")
    epsilon: Array = real(
        0.1, 0.02, 10.0, log=True, symbol=r"\varepsilon", doc="time scale of the second layer over the first"
    )
    times: Array = axis((0.1, 0.3, 0.8), 0.01, 10.0, log=True, symbol="t", doc="times")

    usual = Run(sizes=(12, 24, 48), samples=600, batch=10)
    showcase = Showcase(
        parameters={"epsilon": 0.02, "times": log_points(0.01, 1.0, 9)},
        see="The risk falls in steps: first the constant, then the linear part, then the quadratic one.",
    )

    activation_coefficients = (0.7, 1.0, 0.6)
    steps_per_time = 50
    points = 400
    """Points of the initial law of a: what becomes of a neuron depends steeply on where it starts."""

    def _target(self):
        return jnp.stack([self.constant, self.linear, self.quadratic])

    def theory(self):
        a, weights = initial_laws.graded_normal(self.points, 1, 1.0)
        problem = incremental.SingleIndex(self._target(), jnp.array(self.activation_coefficients), self.epsilon)
        learning = incremental.incremental_learning(problem, a[:, 0], self.times, weights=weights, method="explicit")
        return {
            "risk": Curve(
                self.times, learning.risk, axis="time", axis_symbol="t", label="risk", symbol="R", rate=1.0, log_x=True
            )
        }

    def validity_at(self, size):
        if not known(self.times, self.epsilon):
            return ()
        latest, epsilon = float(self.times[-1]), float(self.epsilon)
        # Degrees are learnt at multiples of √ε; behind a saddle the networks need ln m well above that many.
        least = LOG_WIDTH * latest / math.sqrt(epsilon)
        if least <= math.log(size):
            return ()
        larger = f"sizes of at least {math.ceil(math.exp(least))}, or " if least < 12 else ""
        return (
            f"at time {written(latest)}, {latest / math.sqrt(epsilon):.3g} times the square root of "
            f"epsilon, {size} neurons "
            f"leave the saddles by other ways; take {larger}earlier times",
        )

    def at_size(self, size):
        m = whole(size, "m", self, least=2)
        # Steps short enough for the fast layer, and for large targets: neurons turn with a·φ, and a grows with φ.
        strength = float(self.constant) ** 2 + float(self.linear) ** 2 + float(self.quadratic) ** 2
        finer = max(1.0, 0.1 / float(self.epsilon)) * max(1.0, strength / 15)
        steps_per_time = int(np.ceil(self.steps_per_time * finer))
        marks = tuple(round(float(t) * steps_per_time) for t in self.times)
        return {"neurons": m, "marks": marks, "steps_per_time": steps_per_time}, rounded(
            self, times=[mark / steps_per_time for mark in marks]
        )

    def simulate(self, key, *, neurons: int, marks: tuple[int, ...], steps_per_time: int):
        # By rotation symmetry the neurons may start along the axes, with the target's direction last.
        u = jnp.eye(neurons, neurons + 1)
        direction = jnp.eye(neurons + 1)[-1]
        a = jax.random.normal(key, (neurons,))
        risk = single_index.spherical_flow(
            a,
            u,
            direction,
            self._target(),
            jnp.array(self.activation_coefficients),
            self.epsilon,
            jnp.asarray(1 / steps_per_time),
            marks,
        )
        return {"risk": risk}
