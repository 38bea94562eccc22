r"""Backpropagated errors split by class and label."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.limits.landscape._shared import Layers, parts_by_loops
from deeplimits.predictions import Identity, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import class_parts


class System(NamedTuple):
    """Inputs, sorted by class, and a network."""

    x: Float[Array, "N d"]
    layers: Layers


class PapyanBackpropDecomposition(Limit):
    r"""Backpropagated errors have the class structure of gradients, and gates of ReLU say how much of it survives.

    Setting     C classes with n inputs, x = √q μ_c + √(1−q) z/√d in R^d, μ_c orthonormal; network z = V relu(Wx)/K,
                entries N(0, 1) at the start; δ_icc' = K ∂l(z, c')/∂(Wx), weights p_ic(c')/(nC); traces over K
    Limit       K = d → ∞: logits vanish, p = 1/C
    Result      Δ = Σ w δδ' = Δ_class + Δ_cross + Δ_within + Δ_{c=c'}, exactly; output layer: tr Δ = Avg (1 − |p|²)
                gates of two inputs of a class are open together with probability κ = ½ − arccos(q)/(2π):
                with M = κ + (½ − κ)/n: M/C², M(C − 2)/C, ((C − 1)/C)²(½ − κ)(1 − 1/n), (1 − 1/C)/(2C)
    Validity    wide networks at the start; size counts the width K, and d = K
    Finite size O(1/K)
    Computed by landscape.class_decomposition (output), landscape.start_gradient_parts
    References  papyan2020
    """

    classes: int = integer(3, 3, 5, symbol="C", doc="number of classes C")
    per_class: int = integer(4, 2, 8, symbol="n", doc="inputs n of a class")
    overlap: Array = real(0.5, 0.0, 0.95, symbol="q", doc="inner product q of two inputs of a class")

    usual = Run(sizes=(50, 100, 200), samples=600)
    showcase = Showcase(
        see="How much of the class structure of backpropagated errors survives the gates, over how alike "
        "inputs of a class are."
    )

    def theory(self):
        together = 0.5 - jnp.arccos(self.overlap) / (2 * jnp.pi)
        parts = class_parts.start_gradient_parts(self.classes, self.per_class, together, 0.5 - together)
        names = (("between", "class means"), ("cross", "cross-class means"), ("within", "within"), ("same", "c = c'"))
        return {
            name: Value(getattr(parts, name), label=f"trace, {words}", symbol=rf"\Delta_{{{name}}}", rate=1.0)
            for name, words in names
        }

    def at_size(self, size):
        return {"width": whole(size, "K", self, least=10)}, self

    def draw(self, key, *, width: int):
        c, n = self.classes, self.per_class
        numbers = jax.random.normal(key, (c * n + width + c, width))
        means = jnp.repeat(jnp.eye(c, width), n, axis=0)
        noise = numbers[: c * n] / jnp.sqrt(1.0 * width)
        x = jnp.sqrt(self.overlap) * means + jnp.sqrt(1 - self.overlap) * noise
        return System(x, Layers(numbers[c * n : -c], numbers[-c:]))

    def stated(self, system):
        x, (first, second) = system
        c, width = second.shape
        logits = jnp.maximum(x @ first.T, 0.0) @ second.T / width
        chance = jax.nn.softmax(width**0.5 * logits, axis=1)
        labels = jnp.repeat(jnp.arange(1.0 * c), len(x) // c)
        parts = class_parts.class_decomposition(chance[:, None, :] - jnp.eye(c)[None], chance / len(x), labels)
        total = jnp.mean(1 - jnp.sum(chance**2, axis=1))
        shared = {"tolerance": 1e-12, "reason": "rounding"}
        return {
            "output": Identity(jnp.stack(list(parts)), label="parts, output layer", symbol=r"\Delta", **shared),
            "total": Identity(total, label="trace, output layer", symbol=r"1-|p|^2", **shared),
        }

    def measured(self, system):
        x, (first, second) = system
        c, width = second.shape
        n = len(x) // c
        fields = x @ first.T

        def loss(hidden, label, scale):
            return -jax.nn.log_softmax(scale * (second @ jnp.maximum(hidden, 0.0)) / width)[label]

        def errors(hidden):
            return jax.vmap(lambda label: jax.grad(loss)(hidden, label, 1.0))(jnp.arange(c))

        hidden = jnp.sqrt(1.0 * width) * jax.vmap(errors)(fields)
        logits = jnp.maximum(fields, 0.0) @ second.T / width
        chance = jax.nn.softmax(logits, axis=1)
        # The output layer, its logits raised to order one, so that probabilities differ
        raised = jnp.sqrt(1.0 * width) * logits
        certain = jax.nn.softmax(raised, axis=1)

        def output_errors(z):
            return jax.vmap(lambda label: jax.grad(lambda z: -jax.nn.log_softmax(z)[label])(z))(jnp.arange(c))

        output = parts_by_loops(jax.vmap(output_errors)(raised), certain / len(x), n)
        traces = [jnp.trace(part) for part in parts_by_loops(hidden, chance / len(x), n)]
        return {
            "output": jnp.stack(output),
            "total": jnp.trace(sum(output)),
            **dict(zip(("between", "cross", "within", "same"), traces, strict=True)),
        }
