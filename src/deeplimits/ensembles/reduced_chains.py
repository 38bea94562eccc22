"""Exact reduced Markov chains of online SGD: the law of the summary statistics at a cost that does not depend on N.

By rotation symmetry the statistics after a step depend on those before, on a few Gaussian variables (the sample's
components
in the span of signal and iterate) and on the squared length of the rest of the sample, which is χ². Each chain is
the exact law of its statistics at every finite N. A step is a function of a key and of the statistics.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from deeplimits.models.links import Link


class Gradient(NamedTuple):
    """One sample's loss and spherical gradient at a point with correlation m, in the frame of x and e = (θ − mx)/q."""

    loss: Array
    across: Array
    """The gradient's component along e; its component along θ is q times this."""
    rest: Array
    """The squared length of what is orthogonal to both x and θ."""


def pca_gradient(key: PRNGKeyArray, m: Array, dimension: int, signal: ArrayLike) -> Gradient:
    """−⟨x, Y⟩², Y ~ N(0, I + λθθ')."""
    gaussians, rest = _gaussians(key, 2, dimension - 2)
    q = _complement(m)
    along = jnp.sqrt(1 + jnp.asarray(signal, float)) * gaussians[0]  # ⟨Y, θ⟩
    z = m * along + q * gaussians[1]  # ⟨Y, x⟩
    return Gradient(-(z**2), -2 * z * (q * along - m * gaussians[1]), 4 * z**2 * rest)


def mixture_gradient(key: PRNGKeyArray, m: Array, dimension: int, field: ArrayLike) -> Gradient:
    """−log cosh(⟨x, Y⟩ + h), Y = ±θ + noise with P(+) = e^h/(e^h + e^{−h})."""
    sign_key, key = jax.random.split(key)
    h = jnp.asarray(field, float)
    label = jnp.where(jax.random.bernoulli(sign_key, jax.nn.sigmoid(2 * h)), 1.0, -1.0)
    gaussians, rest = _gaussians(key, 2, dimension - 2)
    # Y has the components label·m + g_0 along x and label·q + g_1 along e
    t = gaussians[0] + label * m + h
    loss = jnp.log(2.0) - jnp.logaddexp(t, -t)
    return Gradient(loss, -jnp.tanh(t) * (label * _complement(m) + gaussians[1]), jnp.tanh(t) ** 2 * rest)


def single_index_gradient(
    key: PRNGKeyArray, m: Array, dimension: int, teacher: Link, student: Link, noise: ArrayLike
) -> Gradient:
    """(y − g(⟨a, x⟩))², y = f(⟨a, θ⟩) + ε, a ~ N(0, I)."""
    gaussians, rest = _gaussians(key, 3, dimension - 2)
    z, zeta, error = gaussians
    label = teacher.value(m * z + _complement(m) * zeta) + jnp.asarray(noise, float) * error
    residual = label - student.value(z)
    slope = -2 * residual * student.derivative(z)
    return Gradient(residual**2, slope * zeta, slope**2 * rest)


def tensor_pca_gradient(key: PRNGKeyArray, m: Array, dimension: int, signal: ArrayLike, order: int) -> Gradient:
    """−⟨Y, x^{⊗k}⟩, Y = λθ^{⊗k} + W with independent entries."""
    gaussians, rest = _gaussians(key, 2, dimension - 2)
    lam = jnp.asarray(signal, float)
    # k slots, each a contraction of fresh entries: on the tangent space N(0, k I)
    across = order * lam * m ** (order - 1) * _complement(m) + jnp.sqrt(1.0 * order) * gaussians[0]
    return Gradient(-lam * m**order - gaussians[1], -across, order * rest)


def spherical_step(m: Array, gradient: Gradient, dimension: int, step: ArrayLike) -> Array:
    """The correlation after one step x̃ = x − (δ/N)∇L, x' = x̃/|x̃|."""
    rate = jnp.asarray(step, float) / dimension
    moved = m - rate * gradient.across * _complement(m)
    return moved / jnp.sqrt(1 + rate**2 * (gradient.across**2 + gradient.rest))


def uniform_start(key: PRNGKeyArray, dimension: int) -> Float[Array, ""]:
    """The correlation of a uniform point of the sphere with the signal: G/√(G² + χ²_{N−1})."""
    gaussian_key, rest_key = jax.random.split(key)
    gaussian = jax.random.normal(gaussian_key)
    return gaussian / jnp.sqrt(gaussian**2 + chi_square(rest_key, dimension - 1))


def spherical_path(
    gradient: Callable, key: PRNGKeyArray, start: Array, dimension: int, step: ArrayLike, records: int, every: int
) -> Float[Array, " records"]:
    """The correlation at the steps every, …, records·every, for `gradient(key, m)` of one sample."""

    def advance(key, m):
        return spherical_step(m, gradient(key, m), dimension, step)

    return run(advance, key, start, records, every)[1:]


def gradient_moments(
    gradient: Callable, key: PRNGKeyArray, overlaps: Array, dimension: int, draws: int
) -> dict[str, Array]:
    """Averages over fresh samples at each correlation: loss, ⟨∇L, θ⟩, |∇L|²/N and ⟨∇L, θ⟩²."""

    def at(key, m):
        one = jax.vmap(lambda key: gradient(key, m))(jax.random.split(key, draws))
        along = _complement(m) * one.across
        squared = (one.across**2 + one.rest) / dimension
        return {"loss": one.loss.mean(), "slope": along.mean(), "squared_gradient": squared.mean(),
                "directional_moment": (along**2).mean()}  # fmt: skip

    return jax.vmap(at)(jax.random.split(key, len(overlaps)), overlaps)


class SpikedState(NamedTuple):
    """m = ⟨x, v⟩ and r = |x|² − m²."""

    overlap: Array
    radius: Array


def spiked_step(
    key: PRNGKeyArray, state: SpikedState, dimension: int, signal: ArrayLike, order: int, step: ArrayLike
) -> SpikedState:
    """SGD on |Y − x^{⊗k}|² with step δ = c/N, `step` = c."""
    gaussians, rest = _gaussians(key, 2, dimension - 2)
    m, k, delta = state.overlap, order, jnp.asarray(step, float) / dimension
    rho = jnp.sqrt(state.radius)
    radius = jnp.sqrt(m**2 + state.radius)
    s, u = gaussians
    # Noise of the gradient: k s along x, √k times Gaussians across; u turns in the plane of v and x
    size = 2 * delta * radius ** (k - 1)
    shrink = 1 - 2 * delta * k * radius ** (2 * (k - 1))
    root = jnp.sqrt(1.0 * k)
    overlap = (
        shrink * m + 2 * delta * k * jnp.asarray(signal, float) * m ** (k - 1)
        + size * (-root * u * rho + k * s * m) / radius
    )  # fmt: skip
    across = shrink * rho + size * (root * u * m + k * s * rho) / radius
    return SpikedState(overlap, across**2 + size**2 * k * rest)


class XorStatistics(NamedTuple):
    """v, W·μ, W·ν of shape (K,), and the Gram matrix of the rest of W."""

    output: Array
    along_mu: Array
    along_nu: Array
    overlaps: Array


def xor_step(
    key: PRNGKeyArray, state: XorStatistics, dimension: int, separation: ArrayLike, ridge: ArrayLike, step: ArrayLike
) -> XorStatistics:
    """SGD with δ = c/N, `step` = c, on the logistic loss of v·g(WX), X around ±μ (label 1) or ±ν (label 0)."""
    v, mu, nu, overlaps = state
    width = v.shape[0]
    cluster_key, key = jax.random.split(key)
    delta, noise = jnp.asarray(step, float) / dimension, 1 / jnp.sqrt(jnp.asarray(separation, float))
    cluster = jax.random.randint(cluster_key, (), 0, 4)
    sign, label = jnp.where(cluster % 2 == 0, 1.0, -1.0), jnp.where(cluster < 2, 1.0, 0.0)
    gaussians, rest = _gaussians(key, width + 2, dimension - 2 - width)
    x_mu, x_nu = noise * gaussians[0] + sign * label, noise * gaussians[1] + sign * (1 - label)
    frame = jnp.linalg.cholesky(overlaps + 1e-14 * (1 + jnp.trace(overlaps)) * jnp.eye(width))
    inside = noise * gaussians[2:]  # X within the span of the rest of W
    h = x_mu * mu + x_nu * nu + frame @ inside
    error = jax.nn.sigmoid(v @ jnp.maximum(h, 0.0)) - label
    pull = delta * error * jnp.where(h > 0, v, 0.0)
    keep = 1 - delta * jnp.asarray(ridge, float)
    moved = keep * frame - jnp.outer(pull, inside)
    return XorStatistics(
        keep * v - delta * error * jnp.maximum(h, 0.0),
        keep * mu - pull * x_mu,
        keep * nu - pull * x_nu,
        moved @ moved.T + jnp.outer(pull, pull) * noise**2 * rest,
    )


def noiseless_xor_step(key: PRNGKeyArray, state: XorStatistics, ridge: ArrayLike, step: ArrayLike) -> XorStatistics:
    """The same without noise, X in {±μ, ±ν}: nothing depends on N, and δ = `step` itself is small."""
    v, mu, nu, overlaps = state
    delta = jnp.asarray(step, float)
    cluster = jax.random.randint(key, (), 0, 4)
    sign, label = jnp.where(cluster % 2 == 0, 1.0, -1.0), jnp.where(cluster < 2, 1.0, 0.0)
    h = sign * (label * mu + (1 - label) * nu)
    error = jax.nn.sigmoid(v @ jnp.maximum(h, 0.0)) - label
    pull = delta * error * sign * jnp.where(h > 0, v, 0.0)
    keep = 1 - delta * jnp.asarray(ridge, float)
    return XorStatistics(
        keep * v - delta * error * jnp.maximum(h, 0.0),
        keep * mu - label * pull,
        keep * nu - (1 - label) * pull,
        keep**2 * overlaps,
    )


def noiseless_xor_fits(
    key: PRNGKeyArray, start: XorStatistics, ridge: ArrayLike, step: ArrayLike, steps: int
) -> Bool[Array, "4"]:
    """Which of the clusters μ, −μ, ν, −ν the network fits after so many steps without noise.

    A cluster counts as fitted when its score has the right sign and exceeds half of log((1 − 4α)/(4α)), its size at
    rest.
    """
    found = run(lambda key, state: noiseless_xor_step(key, state, ridge, step), key, start, 1, steps)
    v, mu, nu = found.output[-1], found.along_mu[-1], found.along_nu[-1]
    alpha = jnp.asarray(ridge, float)
    half = jnp.log((1 - 4 * alpha) / (4 * alpha)) / 2
    scores = jnp.stack([v @ jax.nn.relu(mu), v @ jax.nn.relu(-mu), -v @ jax.nn.relu(nu), -v @ jax.nn.relu(-nu)])
    return scores > half


def run(step: Callable, key: PRNGKeyArray, start: Any, records: int, every: int) -> Any:
    """The chain `state = step(key, state)` at the steps 0, every, …, records·every."""

    def one(i, carry):
        state, key = carry
        return step(jax.random.fold_in(key, i), state), key

    def block(state, key):
        state, _ = jax.lax.fori_loop(0, every, one, (state, key))
        return state, state

    _, found = jax.lax.scan(block, start, jax.random.split(key, records))
    return jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), start, found)


def first_passage(
    step: Callable, key: PRNGKeyArray, start: Array, thresholds: Float[Array, " levels"], most: int, both_signs: bool
) -> Float[Array, " levels"]:
    """The first steps at which the state (its absolute value, for `both_signs`) exceeds each of increasing thresholds.

    After `most` steps the walk is given up and the levels not reached are returned as infinite.
    """

    def reached(state):
        return jnp.abs(state) if both_signs else state

    def unfinished(carry):
        state, count, _ = carry
        return (count < most) & ~(reached(state) > thresholds[-1])

    def advance(carry):
        state, count, passed = carry
        passed = jnp.where(jnp.isinf(passed) & (reached(state) > thresholds), 1.0 * count, passed)
        return step(jax.random.fold_in(key, count), state), count + 1, passed

    infinite = jnp.full(thresholds.shape, jnp.inf)
    state, count, passed = jax.lax.while_loop(unfinished, advance, (start, jnp.asarray(0), infinite))
    return jnp.where(jnp.isinf(passed) & (reached(state) > thresholds), count.astype(float), passed)


def _complement(m: Array) -> Array:
    return jnp.sqrt(jnp.maximum(1 - m**2, 0.0))


def _gaussians(key: PRNGKeyArray, count: int, freedom: int) -> tuple[Float[Array, " count"], Float[Array, ""]]:
    """Independent standard Gaussians and a χ² variable with `freedom` degrees of freedom."""
    normal_key, rest_key = jax.random.split(key)
    normals = jax.random.normal(normal_key, (count + 1,))
    return normals[:count], chi_square(rest_key, freedom, normals[count])


def chi_square(key: PRNGKeyArray, freedom: int, normal: Array | None = None) -> Float[Array, ""]:
    """A χ² variable by Marsaglia and Tsang's method: a Gaussian (`normal`, where given), cubed and seldom refused.

    `jax.random.chisquare` has the same law; this compiles and runs several times faster in a loop over steps.
    """
    if freedom < 1:
        return jnp.zeros(())
    boost = freedom == 1  # the method needs a shape of at least one: χ²_1 = χ²_3 U²
    d = (freedom + 2 * boost) / 2 - 1 / 3
    c = 1 / (9 * d) ** 0.5
    first_key, again_key = jax.random.split(key)

    def propose(x, uniform):
        v = (1 + c * x) ** 3
        logarithm = jnp.log(jnp.where(v > 0, v, 1.0))
        return v, (v > 0) & (jnp.log1p(-uniform) < x**2 / 2 + d - d * v + d * logarithm)

    def retry(carry):
        _, _, attempt = carry
        x_key, u_key = jax.random.split(jax.random.fold_in(again_key, attempt))
        return *propose(jax.random.normal(x_key), jax.random.uniform(u_key)), attempt + 1

    x = jax.random.normal(jax.random.fold_in(first_key, 1)) if normal is None else normal
    start = (*propose(x, jax.random.uniform(first_key)), jnp.asarray(0))
    v, _, _ = jax.lax.while_loop(lambda carry: ~carry[1], retry, start)
    value = 2 * d * v
    return value * jax.random.uniform(jax.random.fold_in(again_key, 2**31 - 1)) ** 2 if boost else value
