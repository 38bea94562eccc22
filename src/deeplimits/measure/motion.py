r"""How far training moves a wide network: its tangent kernel, and the operator norms of its weights' increments."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.ensembles.wide_networks import Affine, Parameters, WideNetwork
from deeplimits.errors import ParameterError
from deeplimits.measure.tangent_kernel import empirical_ntk
from deeplimits.numerics.shapes import Scalar


class TrainingMotion(NamedTuple):
    """What moved between two parameters, relative to what was there or to the root of the width."""

    kernel: Scalar
    """‖Θ_t − Θ_0‖_F/‖Θ_0‖_F on the given points: O(1/n)."""
    weights: Float[Array, " layers"]
    """w̃^(k) = ‖W^(k)_t − W^(k)_0‖_op/√n_k, n_k what enters layer k: O(n^(−1/2)) behind the first hidden layer."""
    features: Float[Array, " layers"]
    """ã^(k) = ‖α^(k)_t − α^(k)_0‖_F/√n_k, α^(k) what enters layer k at the points; 0 for the inputs."""
    start_weights: Float[Array, " layers"]
    """w^(k) = ‖W^(k)_0‖_op/√n_k."""
    start_features: Float[Array, " layers"]
    """a^(k) = ‖α^(k)_0‖_F/√n_k."""


def training_motion(
    network: WideNetwork, start: Parameters, end: Parameters, x: Float[Array, "n d"], *, output: int = 0
) -> TrainingMotion:
    """How far a network has moved from `start` to `end`, as seen at the points `x`.

    Setting     parametrization ntk, where entries of W^(k) are of order one; Θ the tangent kernel of one output
    Result      the observables in which the theorem that the kernel stands still is proved:
                Σ_k (a + ã + w + w̃) grows by O(n^(−1/2)) as long as the targets are fitted in bounded time
    Validity    two parameters of one network; ratios are infinite where a start is zero
    References  jacot2018; dyer2020

    >>> import jax
    >>> from deeplimits.models.architectures import FullyConnected
    >>> network = WideNetwork(FullyConnected(1, "tanh"), inputs=2, widths=8)
    >>> start = network.init(jax.random.key(0))
    >>> found = training_motion(network, start, start, jnp.ones((1, 2)))
    >>> float(found.kernel), found.weights.tolist()
    (0.0, [0.0, 0.0])
    """
    shapes = [[layer.weights.shape for layer in part] for part in (start, end)]
    if shapes[0] != shapes[1]:
        raise ParameterError(f"end has weights of shapes {shapes[1]}; those of start are {shapes[0]}")
    before, after = (empirical_ntk(network, part, x, output=output) for part in (start, end))
    first, last = (network.forward(part, x).entering for part in (start, end))
    roots = jnp.sqrt(jnp.asarray(network.sizes[:-1], float))

    def operator(layers: list[Affine]) -> Array:
        return jnp.stack([jnp.linalg.norm(layer.weights, ord=2) for layer in layers]) / roots

    moved = [Affine(b.weights - a.weights, b.biases - a.biases) for a, b in zip(start, end, strict=True)]
    change = jnp.stack([jnp.linalg.norm(b - a) for a, b in zip(first, last, strict=True)]) / roots
    there = jnp.stack([jnp.linalg.norm(a) for a in first]) / roots
    kernel = jnp.linalg.norm(after - before) / jnp.linalg.norm(before)
    return TrainingMotion(kernel, operator(moved), change, operator(list(start)), there)
