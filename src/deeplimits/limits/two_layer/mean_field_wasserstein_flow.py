r"""Infinitely many neurons: SGD becomes a flow of measures."""

import math
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import committees as ensemble
from deeplimits.limit import Limit, Run, activation_choice, axis, integer, real, rounded, whole
from deeplimits.limits.two_layer._shared import steps_at
from deeplimits.models.committees import Task
from deeplimits.numerics import draws
from deeplimits.numerics.arguments import known, written
from deeplimits.numerics.checks import valid
from deeplimits.predictions import Curve, Exponent
from deeplimits.showcase import Showcase, log_points
from deeplimits.theory.gaussian import closed_forms
from deeplimits.theory.two_layer.mean_field import initial_laws, particles

FREQUENCIES = (1.0, 2.0, 3.0)
"""At which the characteristic functions of two measures on neurons are compared, lower for wide initial laws."""

UNRESOLVED = 0.02
"""How far two rules for the initial law may be apart at the end; the error of the finer one is a fraction of it."""

PRECISION = 1e-7
"""Of a step of the flow; points in place of a law cost more digits."""

LARGEST_KICK = 0.6
"""Of a single step, relative to the error that it corrects; at 2 SGD diverges."""


class MeanFieldWassersteinFlow(Limit):
    r"""A wide two-layer network under SGD is a measure on neurons that flows down the risk.

    Setting     f(x) = (1/p) Σ a_i σ(⟨w_i, x⟩), x ~ N(0, I_d) with d fixed, y = b σ(x_1), w_i ~ N(0, s²I) and a_i = 1 at
                the start; one-pass SGD with learning rate γ on both layers, time τ = γν/p
    Limit       p → ∞ at fixed d and γ
    Result      ∂_τ ρ = ∇·(ρ∇Ψ(·; ρ)), Ψ(θ; ρ) = −E[(y − f_ρ) aσ(⟨w, x⟩)], R(τ) = E(y − f_ρ)²/2 non-increasing;
                the initial law is replaced by weighted points, dense around zero, carried by the flow
    Validity    smooth σ of bounded slope; size counts the neurons p
    Finite size the mean risk deviates by O(1/p), a single network by O(p^(−1/2))
    Computed by two_layer.wasserstein_flow, two_layer.graded_normal; with noise two_layer.density_flow,
                two_layer.noisy_linear_neuron; hypotheses of global convergence two_layer.convergence_conditions
    References  mei2018; chizat2018; rotskoff2022; sirignano2020
    """

    # Lipschitz: SGD runs away on u² in some draws of a small system.
    activation: str = activation_choice(
        "erf_saad", lambda a: closed_forms.has_fields(a) and a.smooth and a.lipschitz and a.homogeneous is None
    )
    dimension: int = integer(2, 1, 2, symbol="d", doc="dimension of the input")
    spread: Array = real(0.7, 0.01, 3.0, symbol="s", doc="standard deviation of the initial weights")
    target: Array = real(2.0, -5.0, 5.0, symbol="b", doc="output weight of the teacher")
    step: Array = real(1.0, 0.01, 10.0, log=True, symbol=r"\gamma", doc="learning rate")
    times: Array = axis((0.1, 0.25, 0.5), 0.001, 100.0, log=True, symbol=r"\tau", doc="times")

    usual = Run(sizes=(16, 64, 256), samples=2000, batch=200)
    showcase = Showcase(
        parameters={"dimension": 1, "times": log_points(0.05, 8.0, 8)},
        fine=24,
        see="A measure on neurons flows down the risk; finite networks fluctuate around it by p^(−1/2).",
    )

    inputs = 60
    """Fresh inputs on which a risk is measured."""
    points = (160, 20)
    """Points of the initial law in each direction, in one dimension and in two; even, so that none is on an axis."""
    coarser = (80, 14)
    """And those of the flow that it is compared with, to know its error."""

    def _frequencies(self):
        # Frequencies that the initial law damps to nothing would compare nothing.
        return jnp.asarray(FREQUENCIES) / jnp.maximum(1.0, self.spread / 0.7)

    def theory(self):
        (risk, fine), (_, coarse) = (self._flow(rule[self.dimension - 1]) for rule in (self.points, self.coarser))
        unresolved = jnp.linalg.norm(fine - coarse)
        centre = valid(
            fine,
            unresolved <= UNRESOLVED,
            "the neurons that start near each other drift too far apart until the last of the times to be followed by "
            "points; take earlier times",
        )
        return {
            "risk": Curve(self.times, risk, axis="time", axis_symbol=r"\tau", label="risk", symbol="R", rate=1.0),
            "distance": Exponent(
                -0.5,
                centre=centre,
                norm="l2",
                label="distance of a network from the flow",
                symbol=r"E\,\|\rho_p-\rho\|",
            ),
        }

    def _flow(self, count):
        """Risks at the times, and what is compared of the measure at the last one, by a rule of so many points."""
        nodes, weights = initial_laws.graded_normal(count, self.dimension, self.spread)
        # Only the first axis is special: of two points that differ by the sign of the other weight, one moves.
        mirror = 1 if self.dimension == 2 else None
        if mirror is not None:
            half = np.nonzero(np.tile(np.arange(count) >= count // 2, count))[0]
            nodes, weights = nodes[half], 2 * weights[half]
        start = particles.Particles(nodes, jnp.ones(len(nodes)), weights)
        flow = particles.wasserstein_flow(
            start,
            jnp.eye(1, self.dimension),
            self.target[None],
            self.times,
            activation=self.activation,
            mirror=mirror,
            rtol=PRECISION,
        )
        found = _features(flow.w[-1], flow.a[-1], self._frequencies())
        if mirror is not None:
            found = (found + _features(flow.w[-1].at[:, mirror].multiply(-1.0), flow.a[-1], self._frequencies())) / 2
        return flow.risk, weights @ found

    def validity_at(self, size):
        if not known(self.step, self.target):
            return ()
        step, target = float(self.step), float(self.target)
        # One step moves the output by γ/p times the squared gradient of a neuron, where a has become b.
        kick = step * (1 + self.dimension * target**2)
        if kick <= LARGEST_KICK * size:
            return ()
        return (
            f"step = {written(step)} with target = {written(target)} lets {size} neurons leave the flow "
            "in single steps; take "
            f"sizes of at least {math.ceil(kick / LARGEST_KICK)}, a smaller step or a smaller target",
        )

    def at_size(self, size):
        p = whole(size, "p", self)
        marks, times = steps_at(self.times, p / float(self.step), self)
        return {"neurons": p, "marks": marks}, rounded(self, times=times)

    def simulate(self, key, *, neurons: int, marks: tuple[int, ...]):
        d = self.dimension
        # In the convention with fields over √d: weights √d larger, learning rate d times larger, equal for both layers.
        root = jnp.sqrt(1.0 * d)
        task = Task(jnp.eye(1), d * self.step, 0.0, self.activation, teacher_output=self.target[None], output_rate=1.0)
        # The weights at the start and the fresh inputs for every mark, in one draw.
        places = neurons + len(marks) * self.inputs
        drawn = draws.draw(draws.neighbour(key, len(marks), word=0), (places,), d).gaussians
        network = ensemble.Network(root * self.spread * drawn[:neurons], jnp.ones(neurons), root * jnp.eye(1, d))
        tests = drawn[neurons:].reshape(len(marks), self.inputs, d)

        def to_mark(network, piece):
            index, steps, x = piece
            # Neighbouring keys in the first word; the steps take those in the last.
            stream = draws.neighbour(key, index, word=0)
            network = ensemble.one_pass_sgd(stream, task, network, steps[None]).network
            return network, jnp.mean(ensemble.residual(task, network, x).clean ** 2) / 2

        steps = jnp.array([end - begin for begin, end in pairwise((0, *marks))])
        network, risks = jax.lax.scan(to_mark, network, (jnp.arange(len(marks)), steps, tests))
        return {
            "risk": risks,
            "distance": jnp.mean(_features(network.w / root, network.a, self._frequencies()), axis=0),
        }


def _features(w: Array, a: Array, frequencies: Array) -> Array:
    """What is compared of two measures on neurons: the means of a, and of e^(ikw) and a e^(ikw) by coordinate."""
    angles = jnp.concatenate([k * w for k in frequencies], axis=1)
    waves = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1)
    return jnp.concatenate([a[:, None], waves, a[:, None] * waves], axis=1)
