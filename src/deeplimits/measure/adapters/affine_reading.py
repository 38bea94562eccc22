"""A user's fully connected network as a list of matrices and activations, read and checked against its outputs."""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.models.activations import NAMED, Activation, ActivationLike
from deeplimits.models.activations import activation as named

CLOSE = 1e-3
"""Relative difference of outputs below which the reading is right, in single precision."""
# What frameworks call what.
TORCH = {
    "ReLU": "relu", "Tanh": "tanh", "Sigmoid": "sigmoid", "GELU": "gelu", "SiLU": "swish", "Softplus": "softplus",
    "Hardtanh": "hard_tanh",
}  # fmt: skip
SKIPPED = ("Identity", "Flatten", "Dropout", "AlphaDropout")
JAX: dict[Any, str] = {
    jax.nn.relu: "relu", jnp.tanh: "tanh", jax.nn.sigmoid: "sigmoid", jax.nn.silu: "swish", jax.nn.softplus: "softplus",
}  # fmt: skip


class AffineNetwork(NamedTuple):
    """h_l = W_l x_{l−1} + b_l, x_l = σ_l(h_l), and outputs h of the last layer."""

    weights: tuple[np.ndarray, ...]
    """One row for each neuron."""
    biases: tuple[np.ndarray, ...]
    activations: tuple[Activation, ...]
    bits: int
    """Bits of one number, as the user stores it."""

    @property
    def widths(self) -> tuple[int, ...]:
        """Neurons of the hidden layers."""
        return tuple(len(bias) for bias in self.biases[:-1])

    @property
    def bytes(self) -> int:
        """Memory of all parameters."""
        return sum(part.size for part in (*self.weights, *self.biases)) * self.bits // 8

    def hidden(self, x: np.ndarray) -> np.ndarray:
        """What enters the last layer."""
        for weight, bias, activation in zip(self.weights, self.biases, self.activations, strict=False):
            x = np.asarray(activation.value(jnp.asarray(x @ weight.T + bias)))
        return x

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """The network's outputs."""
        return self.hidden(x) @ self.weights[-1].T + self.biases[-1]


def affine_layers(
    network: Any, x: Any, *, activation: ActivationLike | None = None, parameters: Any = None
) -> AffineNetwork:
    """The matrices, biases and activations of a fully connected network of PyTorch or JAX.

    `network` is a `torch.nn.Module` of linear layers and activations, an `equinox.nn.MLP`, or a JAX function
    apply(parameters, x) with its `parameters`, matrices in the order of the layers; `activation` says which one stands
    between the layers where that cannot be read. What was read is run at the points `x` beside the network itself, and
    refused where the outputs differ.

    >>> weights = [(np.ones((2, 3)), np.zeros(3)), (np.ones((3, 1)), np.zeros(1))]
    >>> def apply(w, x):
    ...     return jnp.tanh(x @ w[0][0] + w[0][1][None, :]) @ w[1][0] + w[1][1][None, :]
    >>> affine_layers(apply, np.ones((1, 2)), activation="tanh", parameters=weights).widths
    (3,)
    """
    points = np.asarray(x, float)
    if points.ndim != 2 or not points.size or not np.all(np.isfinite(points)):
        raise ParameterError(f"x has shape {points.shape}; give finite inputs, one in each row")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(network, torch.nn.Module):
        found = _of_torch(torch, network, activation)
        run: Callable[[np.ndarray], np.ndarray] = _torch_outputs(torch, network)
    elif parameters is None and isinstance(network, eqx.nn.MLP):
        found = _of_mlp(network, activation)
        run = _mlp_outputs(network)
    elif callable(network) or hasattr(network, "apply"):
        if parameters is None:
            raise ParameterError("a JAX function needs its parameters: compress(apply, ..., parameters=...)")
        apply = getattr(network, "apply", network)
        run = _jax_outputs(apply, parameters)
        found = _of_leaves(parameters, activation, points.shape[1])
    else:
        raise ParameterError(
            f"the network is a {type(network).__name__}; give a torch Module, an equinox.nn.MLP or a JAX function of "
            "parameters and inputs"
        )
    _require_same(found, run, points[:64])
    return found


def _require_same(found: AffineNetwork, run: Callable[[np.ndarray], np.ndarray], points: np.ndarray) -> None:
    if found.weights[0].shape[1] != points.shape[1]:
        raise ParameterError(f"x has {points.shape[1]} columns, and the first layer takes {found.weights[0].shape[1]}")
    try:
        wanted = run(points)
    except Exception as error:
        line = (str(error).strip().splitlines() or [""])[0]
        raise ParameterError(f"the network failed on x: {type(error).__name__}: {line}") from error
    ours = found.outputs(points)
    wanted = np.asarray(wanted, float).reshape(len(points), -1)
    if ours.shape != wanted.shape or not np.max(np.abs(ours - wanted)) <= CLOSE * max(np.max(np.abs(wanted)), 1e-12):
        raise ParameterError(
            "the network is no chain of linear layers with these activations between them "
            f"({', '.join(one.name for one in found.activations)}): its outputs differ; name the activation or take "
            "a fully connected network without normalization, skips or an activation behind the last layer"
        )


def _chain(matrices: list[np.ndarray], biases: list[np.ndarray | None], activations: list[Activation], bits: int):
    if len(matrices) < 2:
        raise ParameterError(f"the network has {len(matrices)} linear layers; there is nothing to compress below two")
    if len(activations) == 1:
        activations = activations * (len(matrices) - 1)
    if len(activations) != len(matrices) - 1:
        raise ParameterError(
            f"there are {len(activations)} activations for {len(matrices) - 1} hidden layers; name the one that stands "
            "between all layers, activation=..."
        )
    full = tuple(np.zeros(len(w)) if b is None else b for w, b in zip(matrices, biases, strict=True))
    return AffineNetwork(tuple(matrices), full, tuple(activations), bits)


def _of_torch(torch: Any, network: Any, activation: ActivationLike | None) -> AffineNetwork:
    matrices, biases, found, bits = [], [], [], 32
    for name, one in network.named_modules():
        if next(iter(one.children()), None) is not None:
            continue
        kind = type(one).__name__
        if kind == "Linear":
            matrices.append(one.weight.detach().cpu().double().numpy())
            biases.append(None if one.bias is None else one.bias.detach().cpu().double().numpy())
            bits = 8 * one.weight.element_size()
        elif kind == "LeakyReLU":
            found.append(named(f"leaky_relu({one.negative_slope!r})"))
        elif kind == "Hardtanh" and (one.min_val, one.max_val) == (-1.0, 1.0):
            found.append(named("hard_tanh"))
        elif kind in TORCH and kind != "Hardtanh":
            found.append(named(TORCH[kind]))
        elif kind not in SKIPPED:
            raise ParameterError(
                f"the layer {name or kind} is a {kind}; only linear layers and "
                f"{', '.join([*TORCH, 'LeakyReLU'])} can be compressed"
            )
    return _chain(matrices, biases, found if activation is None else [named(activation)], bits)


def _torch_outputs(torch: Any, network: Any) -> Callable[[np.ndarray], np.ndarray]:
    def run(x: np.ndarray) -> np.ndarray:
        import copy

        held = copy.deepcopy(network).eval()
        weight = next(held.parameters())
        with torch.no_grad():
            return held(torch.tensor(x, dtype=weight.dtype, device=weight.device)).cpu().double().numpy()

    return run


def _of_mlp(network: Any, activation: ActivationLike | None) -> AffineNetwork:
    matrices = [np.asarray(one.weight, float) for one in network.layers]
    biases = [None if one.bias is None else np.asarray(one.bias, float) for one in network.layers]
    bits = 8 * network.layers[0].weight.dtype.itemsize
    # An activation of a MLP may be a module with one copy for each neuron, or a function behind a wrapper.
    held = network.activation
    chosen = activation if activation is not None else JAX.get(held, getattr(held, "__name__", None))
    if chosen is None or (isinstance(chosen, str) and chosen not in NAMED):
        raise ParameterError("the activation of this MLP cannot be read; name it: compress(..., activation='tanh')")
    return _chain(matrices, biases, [named(chosen)], bits)


def _mlp_outputs(network: Any) -> Callable[[np.ndarray], np.ndarray]:
    dtype = network.layers[0].weight.dtype
    return lambda x: np.asarray(jax.vmap(network)(jnp.asarray(x, dtype)))


def _jax_outputs(apply: Any, parameters: Any) -> Callable[[np.ndarray], np.ndarray]:
    dtype = jnp.result_type(*jax.tree.leaves(parameters))
    return lambda x: np.asarray(apply(parameters, jnp.asarray(x, dtype)))


def _of_leaves(parameters: Any, activation: ActivationLike | None, inputs: int) -> AffineNetwork:
    if activation is None:
        raise ParameterError("name the activation of a JAX function: compress(..., activation='tanh')")
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(parameters)]
    bits = 8 * max(leaf.dtype.itemsize for leaf in leaves) if leaves else 32
    matrices, vectors = [leaf for leaf in leaves if leaf.ndim == 2], [leaf for leaf in leaves if leaf.ndim == 1]
    if len(matrices) + len(vectors) < len(leaves) or len(vectors) not in (0, len(matrices)):
        raise ParameterError(
            "the parameters are not matrices with at most one vector each; give a fully connected network"
        )
    found, width = [], inputs
    # (fan in, fan out), as JAX's libraries have it, or the other way round.
    inward = all(
        matrix.shape[0] == before
        for matrix, before in zip(matrices, [inputs, *(matrix.shape[1] for matrix in matrices[:-1])], strict=True)
    )
    for matrix in matrices:
        found.append((matrix.T if inward else matrix).astype(float))
        if found[-1].shape[1] != width:
            raise ParameterError(
                f"a matrix of shape {matrix.shape} does not follow {width} neurons; give the layers in their order"
            )
        width = found[-1].shape[0]
    biases: list[np.ndarray | None] = [vector.astype(float) for vector in vectors] or [None] * len(found)
    return _chain(found, biases, [named(activation)], bits)
