r"""Kernels of infinitely wide networks, carried from layer to layer for blocks of pairs of inputs.

    K¹ = C_w x·x'/d + C_b,                  T¹ = λ_W x·x'/d + λ_b
    K^{l+1} = C_w E σσ + C_b + skip² K^l,   T^{l+1} = λ_W E σσ + λ_b + (C_w E σ'σ' + skip²) T^l

K is the covariance of the outputs (NNGP), T the tangent kernel; the expectations are over a Gaussian pair of
covariance K^l. Beside the standard deviations, which belong to single inputs, 1 − ρ and 1 + ρ are carried for each
pair, from the difference of the inputs on: that keeps all digits for inputs that nearly coincide.
"""

import functools
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.models.architectures import FullyConnected
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian.angles import once
from deeplimits.theory.gaussian.duals.abstract_dual import Dual
from deeplimits.theory.gaussian.pairs import Pair

CLOSE = 0.01
"""Below this value of 1 ∓ ρ a matrix product has too few digits left, and differences of inputs are formed instead."""
TOGETHER = 3
"""Layers in one step of the loop on a GPU: what a step hands on is written to memory and read again, and of many more
layers its compiler makes no single program."""


class Points(NamedTuple):
    """What the recursion needs to know of single inputs, one column (or row) each."""

    directions: Float[Array, "n d+1"]
    """(√(C_w/d) x, √C_b), normalized."""
    inputs: Float[Array, "n d"]
    """x/√d"""
    roots: Float[Array, "layers+1 n"]
    """√K^l(x, x), l = 1 … L + 1."""
    features: Float[Array, "layers n"]
    """√(E σ(h^l)²), l = 1 … L."""


class _Layer(NamedTuple):
    """The affine map behind a hidden layer: variances and rates, and the single inputs' standard deviations."""

    weight_variance: Floats
    bias_variance: Floats
    weight_rate: Floats
    bias_rate: Floats
    skip: Floats
    left_feature: Floats
    right_feature: Floats
    left_root: Floats
    right_root: Floats


class Kinds(NamedTuple):
    """The different duals of a network, and which of them each hidden layer has."""

    different: tuple[Dual, ...]
    which: tuple[int, ...]


class Network(eqx.Module):
    """An architecture with the duals of its activations chosen."""

    net: FullyConnected
    duals: tuple[Dual, ...] = eqx.field(static=True)

    @property
    def kinds(self) -> Kinds:
        """The different duals, and which of them each hidden layer has: one compiled loop serves any depth."""
        different = tuple(dict.fromkeys(self.duals))
        return Kinds(different, tuple(different.index(dual) for dual in self.duals))

    @property
    def kinked(self) -> bool:
        return any(not activation.smooth for activation in self.net.activations)


def points(network: Network, x: Float[Array, "n d"]) -> Points:
    """The diagonal of the recursion: K^l(x, x) needs no other input."""
    net = network.net
    inputs = x / math.sqrt(x.shape[1])
    bias = jnp.broadcast_to(jnp.sqrt(net.bias_variance[0]), (x.shape[0], 1))
    lifted = jnp.concatenate([inputs * jnp.sqrt(net.weight_variance[0]), bias], axis=1)
    # Scaled by the largest entry first, so that no square overflows or vanishes.
    size = jnp.max(jnp.abs(lifted), axis=1, keepdims=True)
    lifted = lifted / jnp.where(size > 0, size, 1.0)
    length = jnp.sqrt(jnp.sum(lifted**2, axis=1, keepdims=True))
    roots, features = _deviations(network, (size * length)[:, 0])
    return Points(lifted / jnp.where(length > 0, length, 1.0), inputs, roots, features)


def _deviations(network: Network, root: Floats) -> tuple[Floats, Floats]:
    """√K^l(x, x) for l = 1 … L + 1 and √(E σ²) for l = 1 … L, from √K¹(x, x)."""
    net = network.net
    if not net.hidden_layers:
        return root[None], jnp.zeros((0, *root.shape))
    different, which = network.kinds

    def advance(root, row):
        kind, weight_variance, bias_variance, skip = row
        square = jnp.ones_like(root) if net.layer_norm else root**2
        feature = _root(_one_of(kind, [dual.variance for dual in different], square))
        following = _root(weight_variance * feature**2 + bias_variance + skip**2 * root**2)
        return following, (feature, following)

    rows = (jnp.asarray(which), net.weight_variance[1:], net.bias_variance[1:], _skips(net))
    _, (features, roots) = jax.lax.scan(advance, root, rows)
    return jnp.concatenate([root[None], roots]), features


def _one_of(kind, functions, *arguments):
    """The value of one of several functions, the one in place `kind`; no choice where there is one only."""
    if len(functions) == 1:
        return functions[0](*arguments)
    return jax.lax.switch(kind, functions, *arguments)


class Gaps(NamedTuple):
    """1 − ρ and 1 + ρ, each with its own relative accuracy."""

    gap: Floats
    cogap: Floats


class LayerKernels(NamedTuple):
    """E σσ of the features below an affine layer, its K, and its tangent kernel where asked for."""

    conjugate: Floats
    nngp: Floats
    ntk: Floats | None


def products(left: Points, right: Points) -> Floats:
    """ρ of the first layer for every pair of a left and a right input, to the digits of a matrix product."""
    return left.directions @ right.directions.T


def few_digits(product: Floats, same: Array | None) -> Array:
    """Whether 1 − ρ or 1 + ρ of any pair, except for those that `same` marks as equal, needs differences of inputs."""
    few = jnp.minimum(1 - product, 1 + product) < CLOSE
    return jnp.any(few if same is None else few & ~same)


def rough_gaps(product: Floats, same: Array | None) -> Gaps:
    """1 − ρ and 1 + ρ of the first layer, with the digits that `products` have; exact for those that `same` marks."""
    gap, cogap = jnp.maximum(1 - product, 0.0), jnp.maximum(1 + product, 0.0)
    return Gaps(gap, cogap) if same is None else Gaps(jnp.where(same, 0.0, gap), jnp.where(same, 2.0, cogap))


def first_gaps(left: Points, right: Points, same: Array | None, exact: bool) -> Gaps:
    """1 − ρ and 1 + ρ of the first layer for every pair of a left and a right input; `same` marks equal ones."""
    product = products(left, right)
    if not exact:
        return rough_gaps(product, same)
    gap, cogap = rough_gaps(product if same is None else jnp.where(same, 0.0, product), None)
    gap, cogap = _by_differences(left, right, gap, 1.0), _by_differences(left, right, cogap, -1.0)
    return Gaps(gap, cogap) if same is None else Gaps(jnp.where(same, 0.0, gap), jnp.where(same, 2.0, cogap))


def _by_differences(left: Points, right: Points, gap: Floats, sign: float) -> Floats:
    """1 ∓ ρ = |x̂ ∓ x̂'|²/2, where a matrix product has too few digits; most blocks have no such pair and pay nothing."""

    def recomputed():
        columns = (left.directions.T, right.directions.T)

        def add(k, total):
            return total + (columns[0][k][:, None] - sign * columns[1][k][None]) ** 2

        exact = jax.lax.fori_loop(0, columns[0].shape[0], add, jnp.zeros_like(gap)) / 2
        return jnp.where(gap < CLOSE, exact, gap)

    return jax.lax.cond(jnp.any(gap < CLOSE), recomputed, lambda: gap)


def carry(
    network: Network, left: Points, right: Points, gaps: tuple[Floats, Floats], inner: Floats | None, tangent: bool
) -> LayerKernels:
    """E σσ for the hidden layers l = 1 … L, K^l and T^l for the affine maps l = 1 … L + 1, of pairs with these gaps.

    The rows of `left` and `right` broadcast against the gaps. `inner` is x·x'/d where the tangent kernel of the first
    layer is not K¹ itself.
    """
    start, rows = _start(network, left, right, gaps, inner, tangent)
    first = start[1].covariance

    def advance(state, row):
        following, value, kernel, ntk = _choose(network, state, row)
        return (ntk, following), LayerKernels(value, kernel, ntk)

    if not network.net.hidden_layers:
        empty = jnp.zeros((0, *first.shape))
        return LayerKernels(empty, first[None], None if start[0] is None else start[0][None])
    _, found = jax.lax.scan(advance, start, rows)
    behind = None if found.ntk is None or start[0] is None else jnp.concatenate([start[0][None], found.ntk])
    return LayerKernels(found.conjugate, jnp.concatenate([first[None], found.nngp]), behind)


def carry_to_the_end(
    network: Network, left: Points, right: Points, gaps: tuple[Floats, Floats], inner: Floats | None, tangent: bool
) -> LayerKernels:
    """The last entries of `carry`: the layers are one compiled loop, and a deep network is not a long program."""
    start, rows = _start(network, left, right, gaps, inner, tangent)
    layers = network.net.hidden_layers
    on_cpu = jax.default_backend() == "cpu"
    if not layers:
        return LayerKernels(jnp.zeros_like(start[1].covariance), start[1].covariance, start[0])

    def advance(state, row):
        following, _, _, ntk = _choose(network, state, row)
        return (ntk, following), None

    if layers == 2 and on_cpu:
        # A loop of one is no loop to the compiler, and what it makes would be computed in each of its uses: both
        # layers are in the loop then.
        def step(state, row):
            following, value, kernel, ntk = _choose(network, state[0], row)
            return ((ntk, following), value, kernel), None

        empty = jnp.zeros_like(start[1].covariance)
        ((ntk, _), value, kernel), _ = jax.lax.scan(step, (start, empty, empty), rows)
        return LayerKernels(value, kernel, ntk)

    before, last = (jax.tree.map(lambda part, cut=cut: part[cut], rows) for cut in (slice(0, -1), -1))
    if layers > 1:
        start, _ = jax.lax.scan(advance, start, before, unroll=1 if on_cpu else min(TOGETHER, layers - 1))
    # The last hidden layer is outside the loop: nobody asks for the gaps behind it.
    _, value, kernel, ntk = _step(network.net, network.duals[-1], start[1], start[0], last[1])
    return LayerKernels(value, kernel, ntk)


def _start(network, left, right, gaps, inner, tangent):
    """T¹ and the pair of the first layer, and what the loop reads for each hidden layer."""
    net = network.net
    shape = jnp.broadcast_shapes(*(gap.shape for gap in gaps))
    where = Pair(left.roots[0], right.roots[0], *(jnp.broadcast_to(gap, shape) for gap in gaps))
    ntk = None
    if tangent:
        weight_rates, bias_rates = net.rates
        ntk = where.covariance if inner is None else weight_rates[0] * inner + bias_rates[0]
    return (ntk, where), (jnp.asarray(network.kinds.which, int), _layers(net, left, right))


def _choose(network, state, row):
    (ntk, where), (kind, layer) = state, row
    steps = [functools.partial(_step, network.net, dual) for dual in network.kinds.different]
    return _one_of(kind, steps, where, ntk, layer)


def _step(net: FullyConnected, dual: Dual, where: Pair, ntk: Floats | None, layer: _Layer):
    inside = Pair(jnp.ones(()), jnp.ones(()), where.gap, where.cogap) if net.layer_norm else where
    # E σσ, and 1 ∓ ρ of the features
    value, gap, cogap = dual.features(inside, layer.left_feature * layer.right_feature)
    # K' = C_w E σσ + C_b + skip² K
    kernel = layer.weight_variance * value + layer.bias_variance
    root = jnp.sqrt(layer.weight_variance)
    parts = [
        _Part(root * layer.left_feature, root * layer.right_feature, gap, cogap),
        _Part(jnp.sqrt(layer.bias_variance), jnp.sqrt(layer.bias_variance), jnp.zeros(()), jnp.full((), 2.0)),
    ]
    if net.residual:
        kernel = kernel + layer.skip**2 * where.covariance
        parts.append(_Part(layer.skip * where.root_a, layer.skip * where.root_b, where.gap, where.cogap))
    following = Pair(layer.left_root, layer.right_root, *_sum_gaps(parts, layer.left_root, layer.right_root))
    if ntk is not None:
        # T' = λ_W E σσ + λ_b + (C_w E σ'σ' + skip²) T; behind a layer norm T is divided by √(K(x,x) K(x',x'))
        incoming = ntk / jnp.where(where.scale == 0, 1.0, where.scale) if net.layer_norm else ntk
        passed = layer.weight_variance * dual.slope(inside) * incoming
        if net.residual:
            passed = passed + layer.skip**2 * ntk
        ntk = layer.weight_rate * value + layer.bias_rate + passed
    return following, value, kernel, ntk


class _Part(NamedTuple):
    """One of several independent contributions to a pre-activation."""

    left: Floats
    right: Floats
    gap: Floats
    cogap: Floats


def _sum_gaps(parts: list[_Part], left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """1 ∓ ρ of a sum of independent parts with deviations l_i, r_i and correlations ρ_i; `left` = √Σl², `right` = √Σr².

    With s = left · right: s (1 ∓ ρ) = [s − Σ l_i r_i] + Σ l_i r_i (1 ∓ ρ_i), and by Lagrange's identity the bracket is
    Σ_{i<j} (l_i r_j − l_j r_i)²/(s + Σ l_i r_i): nothing cancels.
    """
    scale = left * right
    inner = sum(part.left * part.right for part in parts)
    apart = sum(
        (one.left * other.right - other.left * one.right) ** 2
        for index, one in enumerate(parts)
        for other in parts[index + 1 :]
    )
    # A comparison with 0, not with > 0: what is not a number must stay so.
    empty = scale == 0
    bracket = apart / jnp.where(empty, 1.0, scale + inner)
    # The inverses of single inputs: a division for each pair would be one of the slowest steps of a layer.
    shrink = once(1 / jnp.where(left == 0, 1.0, left)) * once(1 / jnp.where(right == 0, 1.0, right))
    gap = (bracket + sum(part.left * part.right * part.gap for part in parts)) * shrink
    cogap = (bracket + sum(part.left * part.right * part.cogap for part in parts)) * shrink
    return jnp.where(empty, 1.0, gap), jnp.where(empty, 1.0, cogap)


def _layers(net: FullyConnected, left: Points, right: Points) -> _Layer:
    """All hidden layers, one behind the other along the first axis."""
    weight_rates, bias_rates = net.rates
    return _Layer(
        net.weight_variance[1:],
        net.bias_variance[1:],
        jnp.asarray(weight_rates)[1:],
        jnp.asarray(bias_rates)[1:],
        _skips(net),
        left.features,
        right.features,
        left.roots[1:],
        right.roots[1:],
    )


def _skips(net: FullyConnected) -> Floats:
    """Residual connections lead from hidden layers to hidden layers."""
    return jnp.where(jnp.arange(net.hidden_layers) + 1 < net.hidden_layers, net.skip, 0.0)


def _root(x: Floats) -> Floats:
    return jnp.where(x == 0, 0.0, jnp.sqrt(jnp.where(x == 0, 1.0, x)))
