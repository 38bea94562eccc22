"""Plain random deep networks: drawn, passed through, trained."""

import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import panels
from deeplimits.numerics.shapes import Floats, Scalar


class Layer(NamedTuple):
    """Weights and biases of one layer."""

    weights: Float[Array, "fan_in fan_out"]
    biases: Float[Array, " fan_out"]


Weights = list[Layer]


def preactivations(
    key: PRNGKeyArray,
    activation: ActivationLike,
    inputs: Float[Array, "points n0"],
    weight_variance: Scalar,
    bias_variance: Scalar,
    width: int,
    layers: int,
) -> Float[Array, "layers points width"]:
    """z^(1) … z^(layers) of a network with weights N(0, C_w/fan-in) and biases N(0, C_b), every weight drawn.

    >>> one = jnp.ones(())
    >>> preactivations(jax.random.key(0), "tanh", jnp.ones((2, 5)), one, one, width=7, layers=3).shape
    (3, 2, 7)
    """
    sigma = named(activation)
    first, second = jax.random.split(key)

    def layer(key, features):
        weight_key, bias_key = jax.random.split(key)
        fan_in = features.shape[1]
        weights = jax.random.normal(weight_key, (fan_in, width)) * jnp.sqrt(weight_variance / fan_in)
        return features @ weights + jnp.sqrt(bias_variance) * jax.random.normal(bias_key, (width,))[None, :]

    z = layer(first, inputs)

    def advance(z, key):
        following = layer(key, sigma.value(z))
        return following, following

    _, path = jax.lax.scan(advance, z, jax.random.split(second, layers - 1))
    return jnp.concatenate([z[None], path])


class PairChain(NamedTuple):
    """What two inputs look like in every layer of one network; entries of 2×2 matrices as (11, 12, 22)."""

    given: Float[Array, "layers 3"]
    """Covariance of a neuron of layer l over the weights into it, given the layer before."""
    seen: Float[Array, "layers 3"]
    """The same averaged over the neurons that the layer has."""


def pair_chain(
    normals: Float[Array, "layers 2 width"],
    activation: ActivationLike,
    start: Float[Array, " 3"],
    weight_variance: Scalar,
    bias_variance: Scalar,
) -> PairChain:
    """Two inputs carried through a random network of which only the neurons are drawn, not the weights.

    Given one layer, the neurons of the next are independent pairs of Gaussian variables with covariance
    C_b + (C_w/n) Σ_j σ(z_ja)σ(z_jb): this is the law of `preactivations`, at the cost of the neurons alone. `normals`
    holds standard normal numbers, `start` the covariance (11, 12, 22) in the first layer, C_b + C_w x_a·x_b/n₀.

    >>> one, zero = jnp.ones(()), jnp.zeros(())
    >>> pair_chain(jnp.ones((1, 2, 4)), "identity", jnp.array([1.0, 0.0, 4.0]), one, zero).seen.tolist()
    [[1.0, 2.0, 4.0]]
    """
    sigma = named(activation)

    def advance(given, drawn):
        root = jnp.sqrt(given[0])
        slope = given[1] / jnp.where(root > 0, root, 1.0)
        rest = jnp.maximum(given[2] - slope**2, 0.0)
        # The root's derivative is kept finite where the two inputs are one.
        spread = jnp.where(rest > 0, jnp.sqrt(jnp.where(rest > 0, rest, 1.0)), 0.0)
        z = jnp.stack([root * drawn[0], slope * drawn[0] + spread * drawn[1]])
        features = sigma.value(z)
        return bias_variance + weight_variance * _products(features), (given, _products(z))

    _, (given, seen) = jax.lax.scan(advance, start, normals)
    return PairChain(given, seen)


def pair_chain_of_inputs(
    weights: Float[Array, "width n0+1"],
    normals: Float[Array, "layers-1 2 width"],
    activation: ActivationLike,
    inputs: Float[Array, "2 n0"],
    weight_variance: Scalar,
    bias_variance: Scalar,
) -> Float[Array, "layers 3"]:
    """What `pair_chain` has `seen`, with the first layer from its own weights and biases: z = Wx + b, W ~ N(0, C_w/n₀).

    `weights` and `normals` hold standard normal numbers, the biases in the last column of `weights`.
    """
    fan_in = inputs.shape[1]
    w, b = weights[:, :-1] * jnp.sqrt(weight_variance / fan_in), weights[:, -1] * jnp.sqrt(bias_variance)
    z = inputs @ w.T + b[None, :]
    second = bias_variance + weight_variance * _products(named(activation).value(z))
    behind = pair_chain(normals, activation, second, weight_variance, bias_variance).seen
    return jnp.concatenate([_products(z)[None], behind])


def correlated_inputs(norm: Scalar, correlation: Scalar) -> Float[Array, "2 4"]:
    """Two inputs with |x|²/n₀ = `norm` and this correlation, in n₀ = 4 dimensions."""
    one, other = jnp.ones(4), jnp.array([1.0, -1.0, 1.0, -1.0])
    across = correlation * one + jnp.sqrt(1 - correlation**2) * other
    return jnp.sqrt(norm) * jnp.stack([one, across])


def variance_chain(
    normals: Float[Array, "layers width"],
    activation: ActivationLike,
    start: Scalar,
    weight_variance: Scalar,
    bias_variance: Scalar,
) -> Float[Array, "layers+1"]:
    """`pair_chain` for one input: variance of a neuron of layers 1 … layers+1, given the layer before.

    >>> one, zero = jnp.ones(()), jnp.zeros(())
    >>> variance_chain(2 * jnp.ones((2, 4)), "identity", one, one, zero).tolist()
    [1.0, 4.0, 16.0]
    """
    sigma = named(activation)

    def advance(given, drawn):
        following = bias_variance + weight_variance * jnp.mean(sigma.value(jnp.sqrt(given) * drawn) ** 2)
        return following, following

    _, path = jax.lax.scan(advance, start, normals)
    return jnp.concatenate([start[None], path])


def settled_variance(activation: ActivationLike, weight_variance: Scalar, bias_variance: Scalar) -> Scalar:
    """The variance that a very wide network with |σ| ≤ 1 has at great depth, found by passing through its layers.

    From the largest possible variance downwards; after every two layers the geometric decay seen in them is continued
    to its end (Aitken), so that thirty layers do for thousands.
    """
    sigma = named(activation)
    z, weight = (jnp.asarray(part) for part in panels.normal(64))

    def layer(variance):
        return bias_variance + weight_variance * jnp.sum(weight * sigma.value(jnp.sqrt(variance) * z) ** 2)

    def two_layers(_, variance):
        first = layer(variance)
        second = layer(first)
        bend = second - 2 * first + variance
        settled = jnp.abs(bend) <= 1e-14 * variance
        return jnp.where(settled, second, variance - (first - variance) ** 2 / jnp.where(settled, 1.0, bend))

    return jax.lax.fori_loop(0, 15, two_layers, bias_variance + weight_variance)


def _products(z: Float[Array, "2 n"]) -> Float[Array, " 3"]:
    return jnp.stack([jnp.mean(z[0] ** 2), jnp.mean(z[0] * z[1]), jnp.mean(z[1] ** 2)])


def correlation_gap(entries: Float[Array, "... 3"]) -> Floats:
    """1 − c of covariances given as (11, 12, 22)."""
    return 1 - entries[..., 1] / jnp.sqrt(entries[..., 0] * entries[..., 2])


def draw(
    key: PRNGKeyArray, inputs: int, width: int, hidden: int, deviations: list[Floats], *, bias: ArrayLike = 0.0
) -> Weights:
    """Weights and biases of a network with `hidden` layers of one width and one output; deviations by layer."""
    sizes, bias = [inputs, *[width] * hidden, 1], jnp.asarray(bias, float)
    shapes = [shape for fan_in, fan_out in itertools.pairwise(sizes) for shape in ((fan_in, fan_out), (fan_out,))]
    # One call for all of them: a program with one generator compiles faster than one with many.
    counts = [math.prod(shape) for shape in shapes]
    noise = jnp.split(jax.random.normal(key, (sum(counts),)), list(itertools.accumulate(counts))[:-1])
    parts = [part.reshape(shape) for part, shape in zip(noise, shapes, strict=True)]
    return [
        Layer(deviation * w, bias * b) for deviation, w, b in zip(deviations, parts[0::2], parts[1::2], strict=True)
    ]


class Passed(NamedTuple):
    """What a network makes of its inputs."""

    outputs: Float[Array, " points"]
    features: Float[Array, "points width"]
    """Of its last hidden layer."""


def outputs(
    activation: ActivationLike,
    weights: Weights,
    x: Float[Array, "points n0"],
    *,
    multipliers: list[float] | None = None,
) -> Passed:
    """The network's outputs and the features of its last hidden layer; weights may be multiplied on the way."""
    sigma, features = named(activation), x
    for layer, (w, b) in enumerate(weights[:-1]):
        scale = 1.0 if multipliers is None else multipliers[layer]
        features = sigma.value(scale * (features @ w) + b[None, :])
    w, b = weights[-1]
    scale = 1.0 if multipliers is None else multipliers[-1]
    return Passed((scale * (features @ w) + b[None, :])[:, 0], features)
