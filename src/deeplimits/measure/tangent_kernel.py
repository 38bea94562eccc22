r"""Empirical kernels of a finite network: its tangent kernel and the covariance of its outputs given its features.

Θ(x, x') = Σ_q rate_q ∂_q f(x) ∂_q f(x')ᵀ over all parameters, without any other factor: the parametrization's scales
are in f. There are three ways to compute it, and the cheapest is chosen from the shapes. With n₁ and n₂ inputs,
k outputs, P parameters and layers of width n_l, they take about

- 'jacobian': (n₁ + n₂)kP to form both Jacobians and n₁n₂k²P to contract them, with memory (n₁ + n₂)kP;
- 'products': one vector-Jacobian and one Jacobian-vector product for each of the smaller set of inputs and each output:
  3 n₁n₂kP, with memory P;
- 'layerwise', for fully connected networks: Θ = Σ_l ⟨g^l, g'^l⟩(rate·⟨α^{l−1}, α'^{l−1}⟩ + rate_b), where g^l = ∂f/∂h^l
  and α^{l−1} enters layer l: 3(n₁ + n₂)kP for the sensitivities and n₁n₂ Σ_l (k²n_l + n_{l−1}) to contract: no n₁n₂P.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from deeplimits.ensembles.wide_networks import Parameters, WideNetwork
from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.shapes import Floats

METHODS = ("auto", "jacobian", "products", "layerwise")
MEMORY = 2**28
"""Numbers that two Jacobians may hold; above it they are not formed."""


def costs(n1: int, n2: int, outputs: int, parameters: int, *, sizes: tuple[int, ...] | None = None) -> dict[str, float]:
    """Multiplications that each method takes; infinite where it does not apply or needs too much memory.

    >>> found = costs(100, 100, 1, 1_000_000, sizes=(10, 1000, 1000, 1))
    >>> min(found, key=found.get)
    'layerwise'
    """
    jacobian = (n1 + n2) * outputs * parameters + n1 * n2 * outputs**2 * parameters
    if (n1 + n2) * outputs * parameters > MEMORY:
        jacobian = math.inf
    layerwise = math.inf
    if sizes is not None:
        contraction = sum(outputs**2 * after + before for before, after in itertools.pairwise(sizes))
        layerwise = 3 * (n1 + n2) * outputs * parameters + n1 * n2 * contraction
    return {"jacobian": jacobian, "products": 3 * n1 * n2 * outputs * parameters, "layerwise": layerwise}


def empirical_ntk(
    model: WideNetwork | Callable[[Any, Array], Array],
    parameters: Any,
    x1: Float[Array, "n1 ..."],
    x2: Float[Array, "n2 ..."] | None = None,
    *,
    output: int | str | None = None,
    rates: Any = None,
    method: str = "auto",
) -> Floats:
    r"""The tangent kernel of a finite network at given parameters.

    Setting     f(θ, x) with k outputs; `model` is a `WideNetwork` (whose own rates are used) or any JAX function
                (parameters, x of shape (n, ...)) -> (n, k), with optional `rates` shaped like the parameters
    Result      Θ(x, x') = Σ_q rate_q ∂_q f(x) ∂_q f(x')ᵀ, no prefactor. `output` chooses one output by its index,
                'mean' averages over outputs, 'all' gives (n1, n2, k, k); None needs k = 1
    Validity    exact at any width; its limit is `theory.kernels.InfiniteWidth(net).ntk` times the identity
    References  jacot2018; novak2022

    >>> from deeplimits.models.architectures import FullyConnected
    >>> network = WideNetwork(FullyConnected(0, ()), inputs=2, widths=())
    >>> x = jnp.array([[1.0, 1.0], [1.0, -1.0]])
    >>> empirical_ntk(network, network.init(jax.random.key(0)), x).round(12).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    arguments.choice("method", method, METHODS)
    network = model if isinstance(model, WideNetwork) else None
    x2 = x1 if x2 is None else x2
    apply: Callable[[Any, Array], Array] = model.apply if isinstance(model, WideNetwork) else model
    outputs = jax.eval_shape(apply, parameters, x1).shape[-1]
    chosen = _columns(output, outputs)
    if network is not None:
        rates = network.rates() if rates is None else rates
    roots = jax.tree.map(jnp.ones_like if rates is None else jnp.sqrt, parameters if rates is None else rates)
    if method == "auto":
        total = sum(leaf.size for leaf in jax.tree.leaves(parameters))
        shapes = None if network is None else network.sizes
        found = costs(x1.shape[0], x2.shape[0], len(chosen), total, sizes=shapes)
        method = min(found, key=lambda name: found[name])
    if method == "layerwise":
        if network is None:
            raise ParameterError("method = 'layerwise' is not allowed here; it needs a WideNetwork")
        blocks = _layerwise(network, parameters, x1, x2, chosen)
    else:
        by = _by_jacobians if method == "jacobian" else _by_products

        def scaled(weights, x):
            return apply(jax.tree.map(jnp.multiply, weights, roots), x)[:, jnp.asarray(chosen)]  # type: ignore

        blocks = by(scaled, jax.tree.map(jnp.divide, parameters, roots), x1, x2)
    if output == "all":
        return blocks
    return jnp.einsum("abkk->ab", blocks) / len(chosen)


def empirical_nngp(
    network: WideNetwork, parameters: Parameters, x1: Float[Array, "n1 d"], x2: Float[Array, "n2 d"] | None = None
) -> Float[Array, "n1 n2"]:
    """Covariance of the outputs over the last layer's parameters, given the hidden layers: s²⟨α, α'⟩ + s_b².

    Its mean over networks is the covariance of the outputs at this width; its limit is
    `theory.kernels.InfiniteWidth(net).nngp`.

    >>> from deeplimits.models.architectures import FullyConnected
    >>> network = WideNetwork(FullyConnected(1, "relu"), inputs=2, widths=8)
    >>> empirical_nngp(network, network.init(jax.random.key(0)), jnp.ones((3, 2))).shape
    (3, 3)
    """
    left = network.forward(parameters, x1).entering[-1]
    right = left if x2 is None else network.forward(parameters, x2).entering[-1]
    scale = network.scales()[-1]
    standard = network.net.parametrization == "standard"
    # In the standard parametrization the variances are in the law of the parameters, not in a factor.
    weight = network.net.weight_variance[-1] / network.sizes[-2] if standard else scale.weights**2
    bias = network.net.bias_variance[-1] if standard else scale.biases**2
    return weight * left @ right.T + bias


def _columns(output: int | str | None, outputs: int) -> tuple[int, ...]:
    if output in ("all", "mean"):
        return tuple(range(outputs))
    if output is None and outputs == 1:
        return (0,)
    if isinstance(output, int) and not isinstance(output, bool) and 0 <= output < outputs:
        return (output,)
    raise ParameterError(
        f"output = {output!r} is not allowed for a network with {outputs} outputs; give an index below {outputs}, "
        "'mean' or 'all'"
    )


def _by_jacobians(apply, parameters, x1, x2) -> Array:
    def jacobian(x):
        # One input at a time: the Jacobian of all outputs with respect to all parameters would be mostly zeros.
        vector, restore = ravel_pytree(parameters)
        return jax.vmap(lambda one: jax.jacrev(lambda v: apply(restore(v), one[None])[0])(vector))(x)

    left = jacobian(x1)
    right = left if x2 is x1 else jacobian(x2)
    return jnp.einsum("akp,blp->abkl", left, right)


def _by_products(apply, parameters, x1, x2) -> Array:
    if x1.shape[0] < x2.shape[0]:
        return jnp.transpose(_by_products(apply, parameters, x2, x1), (1, 0, 3, 2))
    outputs = jax.eval_shape(apply, parameters, x1).shape[-1]

    def column(one):
        _, pull = jax.vjp(lambda where: apply(where, one[None])[0], parameters)

        def product(direction):
            (pulled,) = pull(direction)
            return jax.jvp(lambda where: apply(where, x1), (parameters,), (pulled,))[1]

        return jax.lax.map(product, jnp.eye(outputs))

    # (b, l, a, k): for each input b and output l the change of all outputs at all inputs a
    return jnp.transpose(jax.lax.map(column, x2), (2, 0, 3, 1))


def _layerwise(network: WideNetwork, parameters, x1, x2, chosen: tuple[int, ...]) -> Array:
    def pieces(x):
        shifts = [jnp.zeros((x.shape[0], size)) for size in network.sizes[1:]]

        def sensitivity(index):
            # Inputs do not mix, so the gradient of a sum over inputs is the gradient for each.
            return jax.grad(lambda added: jnp.sum(network.forward(parameters, x, added).outputs[:, index]))(shifts)

        per_output = [sensitivity(index) for index in chosen]
        entering = network.forward(parameters, x).entering
        return [jnp.stack(layer, axis=1) for layer in zip(*per_output, strict=True)], entering

    left, entering_left = pieces(x1)
    right, entering_right = (left, entering_left) if x2 is x1 else pieces(x2)
    total = jnp.zeros((x1.shape[0], x2.shape[0], len(chosen), len(chosen)))
    for layer, scale in enumerate(network.scales()):
        inner = scale.weight_rate * scale.weights**2 * entering_left[layer] @ entering_right[layer].T
        inner = inner + scale.bias_rate * scale.biases**2
        total = total + jnp.einsum("aki,bli->abkl", left[layer], right[layer]) * inner[:, :, None, None]
    return total
