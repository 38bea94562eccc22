r"""The output and the kernel of a bilinear network under gradient descent, exactly."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.ensembles import trainers
from deeplimits.limit import Limit, Run, choice, integer, real, whole
from deeplimits.numerics.shapes import Scalar
from deeplimits.predictions import Identity, Picture
from deeplimits.predictions.picture import Axis, Line, Rule
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import catapult


class System(NamedTuple):
    """One datum, the weights that training starts from, and its learning rate."""

    x: Float[Array, " d"]
    first: Float[Array, "m d"]
    second: Float[Array, " m"]
    step: Scalar


class CatapultRecursion(Limit):
    r"""With one datum, output and tangent kernel of a two-layer network obey an exact recursion.

    Setting     z = Σ v_i φ(u_i·x/√d)/√m, φ linear or ReLU, weights N(0, 1), loss (z − y)²/2, gradient descent with
                learning rate η; λ = |∇z|², w = |x|²/(md), r = z − y
    Limit       none: exact at every width
    Result      z' − y = r(1 − ηλ + wη²zr),  λ' = λ + ηwr(ηλr − 4z)
    Validity    one datum; with ReLU no neuron changes its sign at the datum, which it does not: u_i moves along x by
                amounts that do not decide (the quadratic model keeps the neurons active at the start); size counts the
                width m
    Finite size exact
    Computed by landscape.catapult_path
    References  lewkowycz2020; zhu2022
    """

    activation: str = choice("linear", ("linear", "relu"), doc="activation φ; ReLU keeps its neurons of the start")
    step: Array = real(2.5, 0.05, 3.5, symbol=r"\eta\lambda_0", doc="learning rate η, in units of 1/λ₀ of the draw")
    label: Array = real(0.5, 0.0, 1.0, symbol="y", doc="label y")
    steps: int = integer(30, 1, 60, symbol="t", doc="number of steps t")
    dimension: int = integer(3, 1, 50, symbol="d", doc="input dimension d")

    usual = Run(sizes=(100, 200), samples=60)
    showcase = Showcase(
        parameters={"steps": 40},
        see="Above ηλ₀ = 2 the loss first grows, until the curvature has fallen below 2/η, and training ends well "
        "after all: a catapult. Networks follow this recursion to rounding.",
    )

    def charts(self):
        # A wide network's start: z₀ = 1, λ₀ = 2, of width 200; a small learning rate beside the chosen one.
        rates = {"ηλ₀ = 1": jnp.ones(()), f"ηλ₀ = {float(self.step):.3g}": self.step}
        paths = {
            name: catapult.catapult_path(1.0, 2.0, self.label, 1 / 200, rate / 2, self.steps)
            for name, rate in rates.items()
        }
        across = Axis("step", "t", whole=True)
        t = jnp.arange(self.steps + 1.0)
        losses = [
            Line(t, (path.output - self.label) ** 2 / 2, label=name, series=number)
            for number, (name, path) in enumerate(paths.items())
        ]
        sharpness = [
            Line(t, rates[name] / 2 * path.kernel, label=name, series=number)
            for number, (name, path) in enumerate(paths.items())
        ]
        ends = Rule(2.0, label="2, the largest that is stable")
        return {
            "loss": Picture(across, Axis("loss", "(z-y)^2/2", log=True, low=1e-10), tuple(losses)),
            "curvature": Picture(across, Axis("curvature times learning rate", r"\eta\lambda_t"), (*sharpness, ends)),
        }

    def at_size(self, size):
        return {"width": whole(size, "m", self, least=40)}, self

    def draw(self, key, *, width: int):
        d = self.dimension
        numbers = jax.random.normal(key, (d + width * (d + 1),))
        # The datum has length √d, so that no draw has a kernel near zero.
        x = jnp.sqrt(1.0 * d) * numbers[:d] / jnp.linalg.norm(numbers[:d])
        first, second = numbers[d : d + width * d].reshape(width, d), numbers[d + width * d :]
        fields = first @ x / jnp.sqrt(1.0 * d)
        if self.activation == "relu":
            # A neuron that is off at the datum contributes nothing and never moves.
            second = jnp.where(fields > 0, second, 0.0)
            first = jnp.where((fields > 0)[:, None], first, 0.0)
        kernel = (jnp.sum(second**2) + jnp.sum(jnp.maximum(fields, 0.0) ** 2)) / width
        kernel = kernel if self.activation == "relu" else (jnp.sum(second**2) + jnp.sum(fields**2)) / width
        return System(x, first, second, self.step / kernel)

    def stated(self, system):
        x, first, second, step = system
        width, d = first.shape
        fields = first @ x / jnp.sqrt(1.0 * d)
        weight = x @ x / (width * d)
        # λ = Σ (v_i²|x|² + (u_i·x)²)/(md), the active neurons only, as the others are zero
        kernel = weight * (second @ second) + fields @ fields / width
        path = catapult.catapult_path(
            second @ fields / jnp.sqrt(1.0 * width), kernel, self.label, weight, step, self.steps
        )
        shared = {
            "tolerance": 1e-10,
            "reason": "rounding of each step, multiplied as long as the loss grows, by a few thousand at most",
        }
        return {
            "output": Identity(path.output, label="output over the steps", symbol="z", **shared),
            "kernel": Identity(path.kernel, label="tangent kernel over the steps", symbol=r"\lambda", **shared),
        }

    def measured(self, system):
        x, first, second, step = system
        width, d = first.shape

        def model(weights):
            return weights[1] @ (weights[0] @ x) / jnp.sqrt(1.0 * d * width)

        def observe(weights):
            value, slopes = jax.value_and_grad(model)(weights)
            return value, sum(jnp.sum(part**2) for part in slopes)

        seen = trainers.gradient_descent(
            lambda weights: (model(weights) - self.label) ** 2 / 2,
            (first, second),
            step,
            jnp.arange(self.steps + 1),
            observe=observe,
        )
        return {"output": seen[0], "kernel": seen[1]}
