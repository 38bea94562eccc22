"""What the limits about attention have in common: how depth is compared with time, and random layers of the plane."""

from abc import abstractmethod
from itertools import pairwise

import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.ensembles.transformers.particles import AttentionLayer, after_layers
from deeplimits.limit import Limit, Run, real, replace, whole
from deeplimits.numerics.shapes import Scalar
from deeplimits.predictions import Exponent, Identity, Value


class Layered(Limit):
    """A limit about layers as steps of a flow, and about the flow; the size counts layers in a unit of time."""

    layers: Array = real(64, 1, 1e6, log=True, symbol="1/h", doc="layers in a unit of time")

    usual = Run(sizes=(64, 128, 256), samples=60, batch=10)

    def at_size(self, size):
        return {}, replace(self, layers=whole(size, "1/h", self))

    @abstractmethod
    def stated(self, system): ...


def integrated(end: Array, label: str, symbol: str) -> Identity:
    """What a flow comes to, where two integrations must agree."""
    reason = "two integrations at 1e-11, and what the flow makes of their errors"
    return Identity(end, label=label, symbol=symbol, tolerance=1e-8, reason=reason)


def squared_cosine(x: Float[Array, "n d"]) -> Scalar:
    """The mean of ⟨x_i, x_j⟩² over pairs i ≠ j, which tells how far tokens have come together."""
    return squared_cosine_of(x @ x.T)


def squared_cosine_of(gram: Float[Array, "n n"]) -> Scalar:
    """The same of a Gram matrix."""
    n = gram.shape[0]
    return (jnp.sum(gram**2) - n) / (n * (n - 1))


def plane(angles: Float[Array, " n"]) -> Float[Array, "n 2"]:
    """Tokens in the plane."""
    return jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)


def depth_statements(gram: Float[Array, "n n"], step: Array) -> dict[str, Value | Exponent]:
    """A transformer of layers with a step is its flow up to the first order in the step."""
    symbol, steps = r"\overline{\langle x_i,x_j\rangle^2}", step * jnp.array([1.0, 0.5])
    return {
        "layers": Value(squared_cosine_of(gram), label="squared cosine after all layers", symbol=symbol, rate=1.0),
        "order": Exponent(1.0, label="change by halving the step", x=steps, axis="step", rate=1.0),
    }


def depth_measured(
    x: Float[Array, "n d"],
    beta: Array,
    time: Array,
    depth: Array,
    layer: AttentionLayer | None = None,
    kind: str = "softmax",
    shift: Array | float = 0.0,
) -> dict[str, Array]:
    """The end of transformers of L, 2L and 4L layers, L = `depth` per unit of time, and how they differ."""
    count = jnp.maximum(jnp.round(depth * time), 1.0)
    ends = [
        after_layers(x, beta, time / (times * count), times * count, layer=layer, kind=kind, shift=shift)
        for times in (1.0, 2.0, 4.0)
    ]
    apart = [jnp.linalg.norm(one - other) for one, other in pairwise(ends)]
    return {"layers": squared_cosine(ends[0]), "order": jnp.stack(apart)}
