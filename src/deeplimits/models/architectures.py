r"""Architectures: what a network is, before it is finite or infinite.

    h¹ = W¹x + b¹,   h^{l+1} = W^{l+1} σ(h^l) + b^{l+1} (+ skip · h^l between hidden layers),   f = h^{L+1}

with L hidden layers, W^l_ij of variance C_w/(fan in) and biases of variance C_b. With layer norm, σ is applied to h^l
divided by its root mean square over the neurons. The parametrizations differ in what is trained and how fast, not in
the law of f at the start (except that `mup` makes the output small):

- `ntk`: W = √(C_w/fan in) w and b = √C_b β with standard normal w, β, which are trained at one learning rate;
- `standard`: W and b themselves are trained, W at the rate 1/(fan in), b at the rate 1, so that the limit of infinite
  width exists;
- `mup` (maximal update, mean field): as `ntk`, with the output divided by √width once more and rates multiplied by
width.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as activation_named
from deeplimits.models.shown import call, one_or_all
from deeplimits.numerics.arguments import NOT_NEGATIVE, array, choice, known, whole
from deeplimits.numerics.shapes import Scalar

PARAMETRIZATIONS = ("ntk", "standard", "mup")
_ALIASES = {"mean-field": "mup", "maximal-update": "mup"}

Named = ActivationLike


class FullyConnected(eqx.Module):
    """A fully connected network of any width: layers, activations, variances, parametrization.

    `weight_variance` (C_w) and `bias_variance` (C_b) are one number, or one for each of the L + 1 affine layers;
    `activation` is one, or one for each of the L hidden layers. `skip` is the strength of the residual connections
    between hidden layers.

    >>> net = FullyConnected(3, "relu", weight_variance=2.0)
    >>> net.weight_variance.tolist()
    [2.0, 2.0, 2.0, 2.0]
    """

    hidden_layers: int = eqx.field(static=True)
    activations: tuple[Activation, ...] = eqx.field(static=True)
    weight_variance: Float[Array, " affine"]
    bias_variance: Float[Array, " affine"]
    skip: Scalar
    residual: bool = eqx.field(static=True)
    layer_norm: bool = eqx.field(static=True)
    parametrization: str = eqx.field(static=True)

    def __init__(
        self,
        hidden_layers: int,
        activation: Named | Sequence[Named] = "relu",
        weight_variance: Any = 1.0,
        bias_variance: Any = 0.0,
        *,
        skip: Any = 0.0,
        layer_norm: bool = False,
        parametrization: str = "ntk",
    ):
        self.hidden_layers = whole("hidden_layers", hidden_layers)
        self.activations = _activations(activation, self.hidden_layers)
        self.weight_variance = _per_layer("weight_variance", weight_variance, self.hidden_layers + 1)
        self.bias_variance = _per_layer("bias_variance", bias_variance, self.hidden_layers + 1)
        self.skip = jnp.asarray(skip, float)
        self.residual = not known(skip) or bool(np.any(np.asarray(skip) != 0))
        self.layer_norm = bool(layer_norm)
        choice("parametrization", parametrization, (*PARAMETRIZATIONS, *_ALIASES))
        self.parametrization = _ALIASES.get(parametrization, parametrization)

    def __repr__(self) -> str:
        distinct = self.activations if len({one.name for one in self.activations}) > 1 else self.activations[:1]
        names = [one.name for one in distinct]
        rest = {"skip": self.skip} if self.residual else {}
        rest |= {"layer_norm": True} if self.layer_norm else {}
        return call(
            self,
            hidden_layers=self.hidden_layers,
            activation=names[0] if len(names) == 1 else names,
            weight_variance=one_or_all(self.weight_variance),
            bias_variance=one_or_all(self.bias_variance),
            **rest,
            parametrization=self.parametrization,
        )

    @property
    def rates(self) -> tuple[Float[Array, " affine"], Float[Array, " affine"]]:
        """λ_W and λ_b: layer l adds λ_b + λ_W E σσ to the tangent kernel, at infinite width."""
        if self.parametrization == "standard":
            return jnp.ones_like(self.weight_variance), jnp.ones_like(self.bias_variance)
        return self.weight_variance, self.bias_variance


def _activations(given, layers: int) -> tuple[Activation, ...]:
    if isinstance(given, Sequence) and not isinstance(given, str):
        if len(given) != layers:
            raise ParameterError(f"activation has {len(given)} entries; give one, or one per hidden layer ({layers})")
        return tuple(activation_named(one) for one in given)
    return (activation_named(given),) * layers


def _per_layer(name: str, given, count: int):
    why = f"one variance, or one for each of {count} affine layers"
    return jnp.broadcast_to(array(name, given, (), (count,), allowed=NOT_NEGATIVE, why=why), (count,))
