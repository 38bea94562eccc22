r"""How much curvature gradient descent bears, and how sharp the minimum is that it reaches."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from deeplimits.limit import Limit, Run, axis, integer, real, whole
from deeplimits.numerics.arguments import written
from deeplimits.numerics.shapes import Scalar
from deeplimits.predictions import Curve, Probability, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import stability_edge

NAMES = {"gd": "gd", "heavy_ball": "heavy-ball", "nesterov": "nesterov"}
# Steps of a trial on quadratics; the steps that descent on the product is given, per unit of the size.
STEPS, TIME = 6000, 400
NEAR = 0.004


class System(NamedTuple):
    """Where the methods start on the quadratics, and the start of the product."""

    theta: Scalar
    u: Float[Array, " d"]
    v: Float[Array, " d"]
    step: Scalar
    clock: Int[Array, " size"]
    """As many entries as the size."""


class EdgeOfStability(Limit):
    r"""A method with learning rate η bears a sharpness of 2/η, more with momentum; what it reaches is no sharper.

    Setting     quadratics of curvature h: gd θ' = θ − ηhθ, heavy ball with momentum β, Nesterov with β; and gradient
                descent on (⟨u, v⟩ − 1)²/2 for u, v in R^d from Gaussian u₀, v₀ of size s with ⟨u₀, v₀⟩ = ½
    Limit       η → 0 for where descent ends; none for the thresholds
    Result      stable for h < 2/η (gd), 2(1 + β)/η (heavy ball), (2/η)(1 + β)/(1 + 2β) (Nesterov)
                product: the sharpness goes to |u|² + |v|² → S = √(|u₀ + v₀|²|u₀ − v₀|² + 4) as η → 0
                with a step η a little above 2/S descent ends elsewhere, with a sharpness below 2/η; no minimum has
                less than 2, so 2/η = 2 + f(S − 2) with f below 1
    Validity    curvatures not within 0.4 % of a threshold; size counts 1/η in units of |u₀|² + |v₀|² + 2 ≥ S
    Finite size sharpness at the end O(η); thresholds exact
    Computed by landscape.stability_threshold (gd, heavy_ball, nesterov), landscape.product_flow (sharpness, settles)
    References  cohen2021; polyak1964; zhu2023
    """

    sharpnesses: Array = axis(
        (0.3, 0.65, 0.7, 0.95, 1.05, 1.5, 1.85, 1.95, 2.5), 0.05, 4.0, symbol=r"\eta h/2", doc="curvatures h times η/2"
    )
    momentum: Array = real(0.9, 0.0, 0.98, symbol=r"\beta", doc="momentum β")
    dimension: int = integer(10, 8, 50, symbol="d", doc="dimension d of u and of v")
    scale: Array = real(0.8, 0.4, 1.2, symbol="s", doc="size of an entry of u and v at the start")
    share: Array = real(0.95, 0.9, 0.98, symbol="f", doc="step beyond the edge: f = (2/η − 2)/(S − 2)")

    usual = Run(sizes=(10, 20, 40), samples=400, batch=40)
    showcase = Showcase(
        parameters={"sharpnesses": (0.2, 0.5, 0.8, 1.2, 1.5, 1.8, 2.2, 2.5, 2.8)},
        see="Gradient descent bears a sharpness of 2/η; momentum moves the step to the right.",
    )

    def validity(self):
        for method in NAMES.values():
            edge = float(stability_edge.stability_threshold(2.0, method=method, momentum=self.momentum))
            near = [c for c in self.sharpnesses.tolist() if abs(c / edge - 1) < NEAR]
            if near:
                return (
                    f"sharpnesses contains {written(near[0])}, within {NEAR:.1%} of the threshold "
                    f"{edge:.4g} of {method}; "
                    "leave it out",
                )
        return ()

    def theory(self):
        def stable(method, name):
            # In units of 2/η: the threshold of each method over that of gradient descent
            edge = stability_edge.stability_threshold(2.0, method=method, momentum=self.momentum)
            return Curve(
                self.sharpnesses,
                jnp.where(self.sharpnesses < edge, 1.0, 0.0),
                label=f"{name} is stable",
                axis="sharpness times η/2",
                axis_symbol=r"\eta h/2",
                event=True,
            )

        return {
            "gd": stable("gd", "gradient descent"),
            "heavy_ball": stable("heavy-ball", "heavy ball"),
            "nesterov": stable("nesterov", "Nesterov's method"),
            "settles": Probability(1.0, label="descent with ηS > 2 ends below 2/η", symbol="P"),
        }

    def at_size(self, size):
        return {"steps": whole(size, "1/η", self, least=4)}, self

    def draw(self, key, *, steps: int):
        numbers = jax.random.normal(key, (2 * self.dimension + 1,))
        u, v = self.scale * numbers[1:].reshape(2, self.dimension)
        # Started with ⟨u, v⟩ = ½, near the valley: what is asked for is where along it descent ends.
        v = v + u * (0.5 - u @ v) / (u @ u)
        return System(numbers[0], u, v, 1 / (steps * (2 + u @ u + v @ v)), jnp.arange(steps))

    def stated(self, system):
        end = stability_edge.product_flow(system.u, system.v)
        return {
            "sharpness": Value(end.sharpness, label="sharpness at the end", symbol="|u|^2+|v|^2", rate=1.0),
        }

    def measured(self, system):
        found = {name: self._trials(method, system.theta) for name, method in NAMES.items()}
        sharpness, _ = _descend(system, system.step, TIME * len(system.clock))
        # No minimum is flatter than 2: the edge is set between that and where the flow ends.
        edge = 2 + self.share * (sharpness - 2)
        ended, _ = _descend(system, 2 / edge, STEPS)
        settled = ended <= edge
        return {**found, "sharpness": sharpness, "settles": jnp.where(settled, 1.0, 0.0)}

    def _trials(self, method, theta):
        """Whether θ has shrunk after many steps on quadratics, with η = 2, so that h = ηh/2."""

        def advance(_, state):
            now, before = state
            momentum = self.momentum * (now - before)
            if method == "gd":
                return now - 2 * self.sharpnesses * now, now
            if method == "heavy-ball":
                return now + momentum - 2 * self.sharpnesses * now, now
            ahead = now + momentum
            return ahead - 2 * self.sharpnesses * ahead, now

        start = jnp.broadcast_to(theta, self.sharpnesses.shape)
        now, _ = jax.lax.fori_loop(0, STEPS, advance, (start, start))
        return jnp.where(jnp.abs(now) < jnp.abs(theta), 1.0, 0.0)


def _descend(system, step, steps):
    """The sharpness |u|² + |v|² and the misfit ⟨u, v⟩ − 1 after gradient descent on (⟨u, v⟩ − 1)²/2."""

    def advance(_, state):
        u, v = state
        pull = step * (u @ v - 1)
        return u - pull * v, v - pull * u

    u, v = jax.lax.fori_loop(0, steps, advance, (system.u, system.v))
    return u @ u + v @ v, u @ v - 1
