r"""Three phases of the learning rate: lazy, catapult, divergent."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.limit import Limit, Run, axis, real, whole
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Bound, Curve, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import catapult

# From then on a run that has not passed its bound by far never will; a divergent one squares itself long before.
STEPS = 150
# No run that comes to rest exceeds the bound |z| ≤ 2/(η√w).
FAR = 1e3
NEAR = 0.03


class System(NamedTuple):
    """Weights at the start, the datum being x = 1."""

    first: Float[Array, " m"]
    second: Float[Array, " m"]


class CatapultPhaseDiagram(Limit):
    r"""Between 2/λ₀ and 4/λ₀ gradient descent is thrown out and lands where the curvature is smaller.

    Setting     z = Σ v_i u_i x/√m, one datum x = 1 with label 0, weights N(0, 1), loss z²/2, learning rate η = c/λ₀ of
                the draw; w = 1/m
    Limit       m → ∞ for the rates; the threshold 4/λ₀ holds at every width
    Result      c < 4: bounded, |z| ≤ 2/(η√w), the kernel falls at every step and ends with ηλ < 2; c > 4: divergent
                first step |z₁/z₀| → |1 − c|: the loss falls from the start for c < 2 and rises for c > 2
                lazy phase, c < 2: m(λ(∞)/λ₀ − 1) → −(z₀²/λ₀²)(4 − c)/(2 − c)
    Validity    label 0; learning rates not within 0.03 of 4, where the kernel hardly moves; size counts the width m
    Finite size rates O(1/m); bounded or divergent, exact at every width
    Computed by landscape.learning_rate_phases (bounded), landscape.lazy_kernel_change (kernel_change)
    References  lewkowycz2020; zhu2022
    """

    multiples: Array = axis(
        (0.5, 1.0, 1.5, 2.5, 3.0, 3.5, 4.2, 5.0), 0.2, 8.0, symbol="c", doc="learning rates in units of 1/λ₀"
    )
    step: Array = real(1.3, 0.3, 1.7, symbol=r"\eta\lambda_0", doc="learning rate in the lazy phase, in units of 1/λ₀")

    usual = Run(sizes=(100, 200, 400), samples=800, batch=20)
    showcase = Showcase(
        parameters={"multiples": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 3.8, 4.2, 4.6, 5.0)},
        first="bounded",
        see="Between 2 and 4 the output first grows, and training nevertheless ends, where the curvature is "
        "smaller; beyond 4 it diverges.",
    )

    def validity(self):
        near = [c for c in self.multiples.tolist() if abs(c - catapult.LARGEST) < NEAR]
        if near:
            return (f"multiples contains {written(near[0])}, within {NEAR:g} of the threshold 4; leave it out",)
        return ()

    def theory(self):
        phases = catapult.learning_rate_phases(1.0)
        rates: dict[str, Any] = {"axis": "learning rate times λ₀", "axis_symbol": "c"}
        return {
            "bounded": Curve(
                self.multiples,
                jnp.where(self.multiples < phases.largest, 1.0, 0.0),
                label="training stays bounded",
                symbol="P",
                event=True,
                **rates,
            ),
            "growth": Curve(
                self.multiples,
                jnp.abs(1 - self.multiples),
                label="first step of the output",
                symbol="|z_1/z_0|",
                rate=1.0,
                **rates,
            ),
        }

    def at_size(self, size):
        return {"width": whole(size, "m", self, least=20)}, self

    def draw(self, key, *, width: int):
        return System(*jax.random.normal(key, (2, width)))

    def stated(self, system):
        width = system.first.shape[0]
        output = system.first @ system.second / jnp.sqrt(1.0 * width)
        kernel = (system.first @ system.first + system.second @ system.second) / width
        # a = ηλ, b = η²wz² with η = c/λ₀
        energy = (self.step * output / kernel) ** 2 / width
        change = catapult.lazy_kernel_change(self.step, energy) / self.step
        return {
            "kernel_change": Value(
                width * change, label="change of the kernel, lazy phase", symbol=r"m\Delta\lambda/\lambda_0", rate=1.0
            ),
            "falling": Bound(1.0 + 0 * output, label="largest kernel after a step", side="upper"),
        }

    def measured(self, system):
        first, second = system
        width = first.shape[0]
        root = jnp.sqrt(1.0 * width)
        kernel = (first @ first + second @ second) / width

        def run(multiple, steps):
            def advance(_, state):
                u, v, z, largest = state
                pull = multiple / kernel * z / root
                u, v = u - pull * v, v - pull * u
                return u, v, u @ v / root, jnp.maximum(largest, (u @ u + v @ v) / width)

            u, v, z, largest = jax.lax.fori_loop(
                0, steps, advance, (first, second, first @ second / root, jnp.zeros(()))
            )
            return z, (u @ u + v @ v) / width, largest

        once, _, _ = jax.lax.map(lambda c: run(c, 1), self.multiples)
        late, _, largest = jax.lax.map(lambda c: run(c, STEPS), self.multiples)
        bound = 2 * kernel / self.multiples * root
        bounded = jnp.abs(late) < FAR * bound
        _, ended, first_kernel = run(self.step, STEPS)
        highest = jnp.max(jnp.where(bounded, largest, 0.0))
        return {
            "bounded": jnp.where(bounded, 1.0, 0.0),
            "growth": jnp.abs(once * root / (first @ second)),
            "kernel_change": width * (ended / kernel - 1),
            "falling": jnp.maximum(highest, first_kernel) / kernel,
        }
