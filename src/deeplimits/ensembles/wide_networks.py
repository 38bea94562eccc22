r"""Finite fully connected networks, built from the same description as their infinitely wide limit.

    h¹ = W¹x + b¹,   h^{l+1} = W^{l+1}σ(h^l) + b^{l+1} (+ skip · h^l between hidden layers),   f = h^{L+1}

Parameters are kept as they are trained; each parametrization says how they enter and at what relative rate each is
trained, so that the tangent kernel weighted with these rates tends to the limit of infinite width:

| parametrization | W | law of w | rate of w | rate of b |
| --- | --- | --- | --- | --- |
| ntk | √(C_w/fan in) w | N(0, 1) | 1 | 1 |
| standard | w | N(0, C_w/fan in) | 1/(fan in) | 1 |
| mup | as ntk, output divided by √width | N(0, 1) | width | width |
"""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.errors import ParameterError
from deeplimits.models.architectures import FullyConnected
from deeplimits.numerics.shapes import Scalar


class Affine(NamedTuple):
    """The trained parameters of one layer."""

    weights: Float[Array, "out fan_in"]
    biases: Float[Array, " out"]


Parameters = tuple[Affine, ...]


class Scale(NamedTuple):
    """How the parameters of one layer enter, and the relative rates at which they are trained."""

    weights: Array
    biases: Array
    weight_rate: Array
    bias_rate: Array


class Flat(NamedTuple):
    """A network's parameters as one vector in which plain gradient descent has the right relative rates."""

    start: Float[Array, " parameters"]
    restore: Callable[[Float[Array, " parameters"]], Parameters]


class Forward(NamedTuple):
    """One pass through a network: its outputs, and what enters each affine layer."""

    outputs: Float[Array, "n k"]
    entering: list[Array]


class WideNetwork(eqx.Module):
    """A finite network: a description, the dimension of the input, the hidden widths, the number of outputs.

    `widths` is one number for all hidden layers, or one for each.

    >>> import jax
    >>> network = WideNetwork(FullyConnected(2, "tanh"), inputs=3, widths=8)
    >>> parameters = network.init(jax.random.key(0))
    >>> network.apply(parameters, jax.numpy.ones((5, 3))).shape
    (5, 1)
    """

    net: FullyConnected
    sizes: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, net: FullyConnected, inputs: int, widths: int | Sequence[int], outputs: int = 1):
        hidden = (widths,) * net.hidden_layers if isinstance(widths, int | np.integer) else tuple(widths)
        if len(hidden) != net.hidden_layers:
            raise ParameterError(f"widths has {len(hidden)} entries; give one, or one per hidden layer")
        sizes = (inputs, *hidden, outputs)
        if any(isinstance(size, bool) or int(size) != size or size < 1 for size in sizes):
            raise ParameterError(f"inputs, widths, outputs = {sizes} is not allowed; each is a whole number ≥ 1")
        if net.residual and len(set(hidden)) > 1:
            raise ParameterError(f"widths = {hidden} is not allowed with skip; residual layers have one width")
        self.net = net
        self.sizes = tuple(int(size) for size in sizes)

    def scales(self) -> tuple[Scale, ...]:
        """What multiplies each layer's parameters, and their rates."""
        found = []
        one = jnp.ones(())
        for layer in range(self.net.hidden_layers + 1):
            fan_in = self.sizes[layer]
            c_w, c_b = self.net.weight_variance[layer], self.net.bias_variance[layer]
            if self.net.parametrization == "standard":
                found.append(Scale(one, one, one / fan_in, one))
                continue
            width = one * (self.sizes[-2] if self.net.parametrization == "mup" and self.net.hidden_layers else 1)
            last = layer == self.net.hidden_layers
            shrink = jnp.sqrt(width) if last else one
            found.append(Scale(jnp.sqrt(c_w / fan_in) / shrink, jnp.sqrt(c_b) / shrink, width, width))
        return tuple(found)

    def init(self, key: PRNGKeyArray) -> Parameters:
        """Random parameters."""
        return self.shaped(jax.random.normal(key, (self.count,)))

    @property
    def count(self) -> int:
        """How many parameters there are."""
        return sum((before + 1) * after for before, after in itertools.pairwise(self.sizes))

    def shaped(self, normals: Float[Array, " parameters"]) -> Parameters:
        """Parameters made of standard normal numbers; drawn in one call, they compile faster than layer by layer."""
        layers, used = [], 0
        for layer, (before, after) in enumerate(itertools.pairwise(self.sizes)):
            w = normals[used : used + before * after].reshape(after, before)
            b = normals[used + before * after : used + (before + 1) * after]
            used += (before + 1) * after
            if self.net.parametrization == "standard":
                w = w * jnp.sqrt(self.net.weight_variance[layer] / before)
                b = b * jnp.sqrt(self.net.bias_variance[layer])
            layers.append(Affine(w, b))
        return tuple(layers)

    def apply(self, parameters: Parameters, x: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """Outputs at the rows of x."""
        return self.forward(parameters, x).outputs

    def forward(self, parameters: Parameters, x: Float[Array, "n d"], shifts: Sequence[Array] | None = None) -> Forward:
        """Outputs, and what enters each affine layer; `shifts` are added to the pre-activations h¹ … h^{L+1}.

        Derivatives with respect to the shifts are the network's sensitivities ∂f/∂h^l.
        """
        current, before, entering = x, None, []
        for layer, (affine, scale) in enumerate(zip(parameters, self.scales(), strict=True)):
            entering.append(current)
            h = scale.weights * current @ affine.weights.T + scale.biases * affine.biases[None, :]
            if self.net.residual and 0 < layer < self.net.hidden_layers and before is not None:
                h = h + self.net.skip * before
            if shifts is not None:
                h = h + shifts[layer]
            before = h
            if layer < self.net.hidden_layers:
                if self.net.layer_norm:
                    # Divided by the root mean square over the neurons.
                    h = h / jnp.sqrt(jnp.mean(h**2, axis=1, keepdims=True))
                current = self.net.activations[layer].value(h)
        assert before is not None
        return Forward(before, entering)

    def rates(self) -> Parameters:
        """The relative learning rate of every parameter, shaped like the parameters."""
        return tuple(
            Affine(
                jnp.full((self.sizes[layer + 1], self.sizes[layer]), 1.0) * scale.weight_rate,
                jnp.full((self.sizes[layer + 1],), 1.0) * scale.bias_rate,
            )
            for layer, scale in enumerate(self.scales())
        )

    def flat(self, parameters: Parameters) -> Flat:
        """Parameters as one vector φ with θ = √rate · φ.

        A gradient step of φ moves θ by rate times its gradient, so that the trainers and flows of this room, which know
        one learning rate only, train the network in its parametrization, and the Jacobian with respect to φ has the
        tangent kernel with these rates.
        """
        roots = jax.tree.map(jnp.sqrt, self.rates())
        start, unravel = ravel_pytree(jax.tree.map(jnp.divide, parameters, roots))
        return Flat(start, lambda vector: jax.tree.map(jnp.multiply, unravel(vector), roots))

    def linearized(self, parameters: Parameters) -> Callable[[Parameters, Float[Array, "n d"]], Float[Array, "n k"]]:
        """f(θ_0) + ⟨∇f(θ_0), θ − θ_0⟩ as a function of θ and x."""

        def model(theta, x):
            move = jax.tree.map(jnp.subtract, theta, parameters)
            value, change = jax.jvp(lambda where: self.apply(where, x), (parameters,), (move,))
            return value + change

        return model


def squared_loss(
    outputs: Callable[[Float[Array, " parameters"]], Float[Array, "n k"]], targets: Float[Array, "n k"]
) -> Callable[[Float[Array, " parameters"]], Scalar]:
    """(1/2n)‖y − f(X)‖² as a function of the parameters, ready for the trainers and flows of this room."""
    return lambda vector: jnp.sum((targets - outputs(vector)) ** 2) / (2 * targets.shape[0])


def antisymmetric(key: PRNGKeyArray, network: WideNetwork) -> Parameters:
    """A start at which the network of one hidden layer vanishes: the second half repeats the first, signs reversed."""
    if network.net.hidden_layers != 1 or network.sizes[1] % 2:
        raise ParameterError(
            f"widths = {network.sizes[1:-1]} is not allowed; an antisymmetric start needs one layer of even width"
        )
    first, last = network.init(key)
    half = network.sizes[1] // 2

    def twice(part, sign, axis):
        kept = jax.lax.slice_in_dim(part, 0, half, axis=axis)
        return jnp.concatenate([kept, sign * kept], axis=axis)

    hidden = Affine(twice(first.weights, 1.0, 0), twice(first.biases, 1.0, 0))
    return hidden, Affine(twice(last.weights, -1.0, 1), jnp.zeros_like(last.biases))
