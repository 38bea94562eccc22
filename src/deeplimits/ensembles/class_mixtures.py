"""Points of two Gaussian classes in high dimension, and kernel matrices of such points, entry by entry.

Kernels of infinitely wide networks are summed as Hermite series, entry by entry: with u_i, u_j Gaussian of variances
a_i, a_j and correlation ρ, E σ(u_i)σ(u_j) = Σ_k c_k(a_i)c_k(a_j)ρ^k, c_k(a) = E σ(√a z)He_k(z)/√k!. Points of high
dimension are almost orthogonal, and few terms are enough.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import panels
from deeplimits.numerics.shapes import Scalar

TERMS = 26
PANELS, NODES, REACH = 26, 10, 10.0


class TwoClasses(NamedTuple):
    """Points of two classes, ±μ and two diagonal covariances."""

    x: Float[Array, "n p"]
    labels: Int[Array, " n"]
    """0 or 1."""
    means: Float[Array, "2 p"]
    variances: Float[Array, "2 p"]


def contrasted_classes(numbers: Float[Array, "n p"], strength: Scalar, trace: Scalar, shape: Scalar) -> TwoClasses:
    """Points of N(±μ, C_a), as many of each class, from standard Gaussian numbers; hard to tell apart in three ways.

    |μ|² = `strength`; C₁ = I; C₂ = (1 + `trace`/√p) diag(1 ± `shape`), half of the coordinates each.

    >>> found = contrasted_classes(jnp.zeros((2, 4)), jnp.ones(()), jnp.ones(()), jnp.full((), 0.5))
    >>> found.x[:, 0].tolist(), found.variances[1].tolist()
    ([1.0, -1.0], [2.25, 2.25, 0.75, 0.75])
    """
    n, p = numbers.shape
    mean = jnp.zeros(p).at[0].set(jnp.sqrt(strength))
    second = (1 + trace / p**0.5) * jnp.where(jnp.arange(p) < p // 2, 1 + shape, 1 - shape)
    means, variances = jnp.stack([mean, -mean]), jnp.stack([jnp.ones(p), second])
    labels = jnp.arange(n) % 2
    return TwoClasses(means[labels] + jnp.sqrt(variances[labels]) * numbers, labels, means, variances)


def distance_matrix(f: Callable[[Array], Array], x: Float[Array, "n p"]) -> Float[Array, "n n"]:
    """f(|x_i − x_j|²/p), entry by entry.

    >>> distance_matrix(lambda t: t, jnp.array([[0.0], [2.0]])).tolist()
    [[0.0, 4.0], [4.0, 0.0]]
    """
    square = jnp.sum(x**2, axis=1)
    apart = jnp.maximum(square[:, None] + square[None, :] - 2 * x @ x.T, 0.0) / x.shape[1]
    return f(apart * (1 - jnp.eye(x.shape[0])))


class Deep(NamedTuple):
    """Kernels behind the last layer."""

    conjugate: Float[Array, "n n"]
    tangent: Float[Array, "n n"]


def deep_kernels(activations: Sequence[ActivationLike], x: Float[Array, "n p"], scale: Scalar) -> Deep:
    """Conjugate and tangent kernel of an infinitely wide network, each activation less its mean at the typical input.

    `scale` is the variance of a typical pre-activation of the first layer; those behind follow from it.

    >>> found = deep_kernels(["identity"], jnp.array([[1.0, 1.0], [1.0, 0.0]]), jnp.ones(()))
    >>> found.tangent.round(10).tolist()
    [[2.0, 1.0], [1.0, 1.0]]
    """
    kernel = x @ x.T / x.shape[1]
    tangent = kernel
    for activation in activations:
        sigma = named(activation)
        mean, scale = centre(sigma, scale)
        found = series(sigma, kernel, mean, scale)
        kernel = found.value
        tangent = kernel + tangent * found.slope
        scale = _typical(sigma, mean, scale)
    return Deep(kernel, tangent)


class Centre(NamedTuple):
    """E σ(√a z) at a typical variance, and that variance."""

    mean: Scalar
    scale: Scalar


def centre(activation: ActivationLike, scale: Scalar) -> Centre:
    """E σ(u) for u of variance `scale`.

    >>> round(float(centre("square", jnp.full((), 2.0)).mean), 10)
    2.0
    """
    sigma = named(activation)
    u, weights = _nodes(sigma, scale)
    return Centre(jnp.sum(weights * _bell(u, scale) * sigma.value(u)), scale)


def _typical(sigma: Activation, mean: Array, scale: Array) -> Array:
    u, weights = _nodes(sigma, scale)
    return jnp.sum(weights * _bell(u, scale) * (sigma.value(u) - mean) ** 2)


class Pairs(NamedTuple):
    """E σ(u_i)σ(u_j) and E σ'(u_i)σ'(u_j) for all pairs."""

    value: Float[Array, "n n"]
    slope: Float[Array, "n n"]


def series(activation: ActivationLike, inner: Float[Array, "n n"], mean: Scalar, scale: Scalar) -> Pairs:
    """E σ̃σ̃ and E σ'σ' for Gaussian variables of covariance `inner`, σ̃ = σ − `mean`, as Hermite series.

    For variances near `scale` and correlations below about a half.

    >>> found = series("square", jnp.array([[1.0, 0.5], [0.5, 1.0]]), jnp.ones(()), jnp.ones(()))
    >>> found.value.round(10).tolist(), found.slope.round(10).tolist()
    ([[2.0, 0.5], [0.5, 2.0]], [[4.0, 2.0], [2.0, 4.0]])
    """
    sigma = named(activation)
    a = jnp.einsum("ii->i", inner)
    root = jnp.sqrt(a)
    u, weights = _nodes(sigma, scale)
    density = weights[None, :] * _bell(u[None, :], a[:, None])
    value = sigma.value(u) - mean
    z = u[None, :] / root[:, None]
    rho = inner / (root[:, None] * root[None, :])
    eye = jnp.eye(a.shape[0])
    rho = rho * (1 - eye)

    def add(k, carry):
        low, high, power, slope_power, total, slopes = carry
        # high = He_k/√k!: He_{k+1} = z He_k − k He_{k−1}
        c = (density * high) @ value
        pair = c[:, None] * c[None, :]
        total = total + pair * power
        slopes = slopes + k * pair * slope_power
        following = (z * high - jnp.sqrt(1.0 * k) * low) / jnp.sqrt(k + 1.0)
        return high, following, power * rho, power, total, slopes

    n = a.shape[0]
    start = (
        jnp.zeros_like(z),
        jnp.ones_like(z),
        jnp.ones((n, n)),
        jnp.zeros((n, n)),
        jnp.zeros((n, n)),
        jnp.zeros((n, n)),
    )
    *_, total, slopes = jax.lax.fori_loop(0, TERMS, add, start)
    own, steep = density @ value**2, density @ jnp.broadcast_to(sigma.derivative(u), u.shape) ** 2
    slopes = slopes / (root[:, None] * root[None, :])
    return Pairs(total * (1 - eye) + own[:, None] * eye, slopes * (1 - eye) + steep[:, None] * eye)


def equilibrium_states(
    activation: ActivationLike,
    recurrent_variance: Scalar,
    input_variance: Scalar,
    x: Float[Array, "n p"],
    typical: Scalar,
    *,
    rounds: int = 30,
) -> Deep:
    """Conjugate and tangent kernel of an infinitely wide implicit network, by so many rounds from an empty state.

    `typical` is |x|²/p of a typical point, at which the activation is centred.

    >>> found = equilibrium_states("identity", jnp.full((), 0.5), jnp.ones(()), jnp.array([[1.0]]), jnp.ones(()))
    >>> round(float(found.conjugate[0, 0]), 6)
    2.0
    """
    sigma, gram = named(activation), x @ x.T / x.shape[1]

    def scales(_, carry):
        scale, _ = carry
        mean = centre(sigma, scale).mean
        return recurrent_variance * _typical(sigma, mean, scale) + input_variance * typical, mean

    scale, mean = jax.lax.fori_loop(0, 4 * rounds, scales, (input_variance * typical, jnp.zeros(())))

    def step(_, g):
        return series(sigma, recurrent_variance * g + input_variance * gram, mean, scale).value

    g = jax.lax.fori_loop(0, rounds, step, jnp.zeros_like(gram))
    slope = series(sigma, recurrent_variance * g + input_variance * gram, mean, scale).slope
    return Deep(g, (g + input_variance * slope * gram) / (1 - recurrent_variance * slope))


def _nodes(sigma: Activation, scale: Array):
    """Gauss-Legendre nodes over ±REACH deviations, with ends at the kinks, the same for all points."""
    reach = REACH * jnp.sqrt(scale)
    even = jnp.linspace(-1.0, 1.0, PANELS + 1) * reach
    ends = jnp.sort(jnp.concatenate([even, jnp.clip(jnp.asarray(sigma.kinks, float), -reach, reach)]))
    nodes, weights = panels.gauss(NODES)
    half = jnp.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + nodes)[None, :]).ravel(), (half * weights[None, :]).ravel()


def _bell(u: Array, variance: Array) -> Array:
    return jnp.exp(-(u**2) / (2 * variance)) / jnp.sqrt(2 * math.pi * variance)
