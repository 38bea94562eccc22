"""Exact reduced Markov chains of online SGD: the law of the summary statistics at a cost that does not depend on N.

By rotation symmetry the statistics after a step depend on those before, on a few Gaussian variables (the sample's
components in the span of signal and iterate) and on the squared length of the rest of the sample, which is χ². Each
chain is the exact law of its statistics at every finite N. A step is a function of what is random in one sample, a
`Draws`, and of the statistics; the samples of many steps are drawn together.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from deeplimits.ensembles import trainers
from deeplimits.ensembles.trainers import Marks
from deeplimits.errors import ParameterError
from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import draws
from deeplimits.numerics.arguments import known
from deeplimits.numerics.draws import Draws
from deeplimits.numerics.shapes import Scalar

BLOCK = 64
"""How many samples a walk of unknown length draws at a time."""


class Gradient(NamedTuple):
    """One sample's loss and spherical gradient at a point with correlation m, in the frame of x and e = (θ − mx)/q."""

    loss: Array
    across: Array
    """The gradient's component along e; its component along θ is q times this."""
    rest: Array
    """The squared length of what is orthogonal to both x and θ."""


class Spherical(NamedTuple):
    """A loss on the unit sphere of R^N, as the correlation with the signal sees it."""

    dimension: int
    gradient: Callable[[Draws, Array], Gradient]
    """Of one sample at the correlation m."""
    gaussians: int = 2
    uniforms: int = 0

    def samples(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Draws:
        """What is random in so many samples."""
        return draws.draw(key, shape, self.gaussians, self.uniforms, max(0, self.dimension - 2))

    def step(self, sample: Draws, m: Array, step: ArrayLike) -> Array:
        """The correlation after one step x̃ = x − (δ/N)∇L, x' = x̃/|x̃|."""
        gradient, rate = self.gradient(sample, m), jnp.asarray(step, float) / self.dimension
        moved = m - rate * gradient.across * complement(m)
        return moved / jnp.sqrt(1 + rate**2 * (gradient.across**2 + gradient.rest))


def online_pca(dimension: int, signal: ArrayLike) -> Spherical:
    """−⟨x, Y⟩², Y ~ N(0, I + λθθ')."""
    spread = jnp.sqrt(1 + jnp.asarray(signal, float))

    def gradient(sample, m):
        q = complement(m)
        along, other = spread * sample.gaussians[0], sample.gaussians[1]  # ⟨Y, θ⟩, and across in the plane of x, θ
        z = m * along + q * other  # ⟨Y, x⟩
        return Gradient(-(z**2), -2 * z * (q * along - m * other), 4 * z**2 * sample.chi_square)

    return Spherical(dimension, gradient)


def binary_mixture(dimension: int, field: ArrayLike) -> Spherical:
    """−log cosh(⟨x, Y⟩ + h), Y = ±θ + noise with P(+) = e^h/(e^h + e^{−h})."""
    h = jnp.asarray(field, float)

    def gradient(sample, m):
        label = jnp.where(sample.uniforms[0] < jax.nn.sigmoid(2 * h), 1.0, -1.0)
        # Y has the components label·m + g_0 along x and label·q + g_1 along e
        t = sample.gaussians[0] + label * m + h
        pull = jnp.tanh(t)
        across = -pull * (label * complement(m) + sample.gaussians[1])
        return Gradient(jnp.log(2.0) - jnp.logaddexp(t, -t), across, pull**2 * sample.chi_square)

    return Spherical(dimension, gradient, uniforms=1)


def single_index(dimension: int, teacher: ActivationLike, student: ActivationLike, noise: ArrayLike) -> Spherical:
    """(y − g(⟨a, x⟩))², y = f(⟨a, θ⟩) + ε, a ~ N(0, I), ε of standard deviation `noise`."""
    f, g = named(teacher), named(student)

    def gradient(sample, m):
        z, zeta, error = sample.gaussians
        label = f.value(m * z + complement(m) * zeta) + jnp.asarray(noise, float) * error
        residual = label - g.value(z)
        slope = -2 * residual * g.derivative(z)
        return Gradient(residual**2, slope * zeta, slope**2 * sample.chi_square)

    return Spherical(dimension, gradient, gaussians=3)


def tensor_pca(dimension: int, signal: ArrayLike, order: int) -> Spherical:
    """−⟨Y, x^{⊗k}⟩, Y = λθ^{⊗k} + W with independent entries."""
    lam = jnp.asarray(signal, float)

    def gradient(sample, m):
        # k slots, each a contraction of fresh entries: on the tangent space N(0, k I)
        across = order * lam * m ** (order - 1) * complement(m) + jnp.sqrt(1.0 * order) * sample.gaussians[0]
        return Gradient(-lam * m**order - sample.gaussians[1], -across, order * sample.chi_square)

    return Spherical(dimension, gradient)


def uniform_start(sample: Draws) -> Scalar:
    """The correlation of a uniform point of the sphere with the signal, G/√(G² + χ²_{N−1}), from one more sample."""
    one, other = sample.gaussians[:2]
    return one / jnp.sqrt(one**2 + other**2 + sample.chi_square)


class Parted(NamedTuple):
    """Samples of a run: the first, for a random start, and those of the steps."""

    first: Draws
    rest: Draws


def first_and_rest(samples: Draws) -> Parted:
    """The first of the samples, and the others."""
    return Parted(jax.tree.map(lambda x: x[0], samples), jax.tree.map(lambda x: x[1:], samples))


def spherical_path(
    model: Spherical, samples: Draws, start: Array, step: ArrayLike, marks: Marks
) -> Float[Array, " marks"]:
    """The correlation after `marks` steps."""
    return run(lambda sample, m: model.step(sample, m, step), samples, start, marks)


def gradient_moments(model: Spherical, samples: Draws, overlaps: Float[Array, " points"]) -> dict[str, Array]:
    """Averages over fresh samples, of shape (points, draws), at each correlation: loss, ⟨∇L, θ⟩, |∇L|²/N, ⟨∇L, θ⟩²."""

    def at(samples, m):
        one = jax.vmap(model.gradient, in_axes=(0, None))(samples, m)
        along = complement(m) * one.across
        squared = (one.across**2 + one.rest) / model.dimension
        return {"loss": one.loss.mean(), "slope": along.mean(), "squared_gradient": squared.mean(),
                "directional_moment": (along**2).mean()}  # fmt: skip

    return jax.vmap(at)(samples, overlaps)


class PathAndMoments(NamedTuple):
    """The correlation at the marks of a run, and averages over samples that the run does not use."""

    path: Float[Array, " marks"]
    moments: dict[str, Array]


def path_and_moments(
    key: PRNGKeyArray, model: Spherical, start: Array, step: ArrayLike, marks: Marks,
    overlaps: Float[Array, " points"], draws_each: int,
) -> PathAndMoments:  # fmt: skip
    """`spherical_path` to the last of the marks and `gradient_moments` of `draws_each` samples, drawn together."""
    steps, points = int(np.asarray(marks)[-1]), len(overlaps)
    samples = model.samples(key, (steps + points * draws_each,))
    fresh = jax.tree.map(lambda x: x[steps:].reshape(points, draws_each, *x.shape[1:]), samples)
    path = spherical_path(model, jax.tree.map(lambda x: x[:steps], samples), start, step, marks)
    return PathAndMoments(path, gradient_moments(model, fresh, overlaps))


class SpikedState(NamedTuple):
    """m = ⟨x, v⟩ and r = |x|² − m²."""

    overlap: Array
    radius: Array


def spiked_samples(key: PRNGKeyArray, shape: tuple[int, ...], dimension: int) -> Draws:
    """What `spiked_step` needs of so many samples."""
    return draws.draw(key, shape, 2, freedom=dimension - 2)


def spiked_step(
    sample: Draws, state: SpikedState, dimension: int, signal: ArrayLike, order: int, step: ArrayLike
) -> SpikedState:
    """SGD on |Y − x^{⊗k}|² with step δ = c/N, `step` = c."""
    m, k, delta = state.overlap, order, jnp.asarray(step, float) / dimension
    rho = jnp.sqrt(state.radius)
    radius = jnp.sqrt(m**2 + state.radius)
    s, u = sample.gaussians
    # Noise of the gradient: k s along x, √k times Gaussians across; u turns in the plane of v and x
    size = 2 * delta * radius ** (k - 1)
    shrink = 1 - 2 * delta * k * radius ** (2 * (k - 1))
    root = jnp.sqrt(1.0 * k)
    overlap = (
        shrink * m + 2 * delta * k * jnp.asarray(signal, float) * m ** (k - 1)
        + size * (-root * u * rho + k * s * m) / radius
    )  # fmt: skip
    across = shrink * rho + size * (root * u * m + k * s * rho) / radius
    return SpikedState(overlap, across**2 + size**2 * k * sample.chi_square)


class XorStatistics(NamedTuple):
    """v, W·μ, W·ν of shape (K,), and the Gram matrix of the rest of W."""

    output: Array
    along_mu: Array
    along_nu: Array
    overlaps: Array


def xor_samples(key: PRNGKeyArray, shape: tuple[int, ...], dimension: int, width: int) -> Draws:
    """What `xor_step` needs of so many samples."""
    return draws.draw(key, shape, width + 2, uniforms=1, freedom=max(0, dimension - 2 - width))


def xor_step(
    sample: Draws, state: XorStatistics, dimension: int, separation: ArrayLike, ridge: ArrayLike, step: ArrayLike
) -> XorStatistics:
    """SGD with δ = c/N, `step` = c, on the logistic loss of v·g(WX), X around ±μ (label 1) or ±ν (label 0)."""
    v, mu, nu, overlaps = state
    delta, noise = jnp.asarray(step, float) / dimension, 1 / jnp.sqrt(jnp.asarray(separation, float))
    sign, label = _cluster(sample)
    gaussians = sample.gaussians
    x_mu, x_nu = noise * gaussians[0] + sign * label, noise * gaussians[1] + sign * (1 - label)
    frame = _triangular_root(overlaps)
    inside = noise * gaussians[2:]  # X within the span of the rest of W
    # Sums written out: a call of the linear algebra library for each small matrix would cost more than the step.
    h = x_mu * mu + x_nu * nu + jnp.sum(frame * inside[None, :], axis=1)
    error = jax.nn.sigmoid(jnp.sum(v * jnp.maximum(h, 0.0))) - label
    pull = delta * error * jnp.where(h > 0, v, 0.0)
    keep = 1 - delta * jnp.asarray(ridge, float)
    moved = keep * frame - jnp.outer(pull, inside)
    return XorStatistics(
        keep * v - delta * error * jnp.maximum(h, 0.0),
        keep * mu - pull * x_mu,
        keep * nu - pull * x_nu,
        jnp.sum(moved[:, None] * moved[None, :], axis=-1) + jnp.outer(pull, pull) * noise**2 * sample.chi_square,
    )


class XorRun(NamedTuple):
    """What a run without noise is made of."""

    samples: Draws
    start: XorStatistics


def noiseless_xor_samples(key: PRNGKeyArray, width: int, steps: int, small: ArrayLike) -> XorRun:
    """Samples for `noiseless_xor_step`, and a start: Gaussian second layer, first-layer overlaps of scale `small`."""
    v, mu, nu = draws.draw(draws.neighbour(key, -1, word=0), (3,), width).gaussians
    start = XorStatistics(v, small * mu, small * nu, jnp.zeros((1, 1)))
    return XorRun(draws.draw(key, (steps,), 0, uniforms=1), start)


def noiseless_xor_step(sample: Draws, state: XorStatistics, ridge: ArrayLike, step: ArrayLike) -> XorStatistics:
    """The same without noise, X in {±μ, ±ν}: nothing depends on N, and δ = `step` itself is small."""
    v, mu, nu, overlaps = state
    delta = jnp.asarray(step, float)
    sign, label = _cluster(sample)
    h = sign * (label * mu + (1 - label) * nu)
    error = jax.nn.sigmoid(jnp.sum(v * jnp.maximum(h, 0.0))) - label
    pull = delta * error * sign * jnp.where(h > 0, v, 0.0)
    keep = 1 - delta * jnp.asarray(ridge, float)
    return XorStatistics(
        keep * v - delta * error * jnp.maximum(h, 0.0),
        keep * mu - label * pull,
        keep * nu - (1 - label) * pull,
        keep**2 * overlaps,
    )


def noiseless_xor_fits(samples: Draws, start: XorStatistics, ridge: ArrayLike, step: ArrayLike) -> Bool[Array, "4"]:
    """Which of the clusters μ, −μ, ν, −ν the network fits after these samples without noise.

    A cluster counts as fitted when its score has the right sign and exceeds an eighth of log((1 − 4α)/(4α)), its size
    at rest: the score of a cluster without a neuron has the wrong sign or is zero, and one with a neuron fluctuates.
    """
    count = samples.chi_square.shape[0]
    found = run(lambda sample, state: noiseless_xor_step(sample, state, ridge, step), samples, start, [count])
    v, mu, nu = found.output[-1], found.along_mu[-1], found.along_nu[-1]
    alpha = jnp.asarray(ridge, float)
    least = jnp.log((1 - 4 * alpha) / (4 * alpha)) / 8
    scores = jnp.stack([v @ jax.nn.relu(mu), v @ jax.nn.relu(-mu), -v @ jax.nn.relu(nu), -v @ jax.nn.relu(-nu)])
    return scores > least


def run(step: Callable, samples: Any, start: Any, marks: Marks) -> Any:
    """The chain `state = step(sample, state)` after `marks` steps, each with a sample of its own; 0 is the start.

    >>> run(lambda sample, state: state + sample, jnp.arange(1.0, 5.0), jnp.zeros(()), [0, 2, 4]).tolist()
    [0.0, 3.0, 10.0]
    """
    count = jax.tree.leaves(samples)[0].shape[0]
    if known(marks) and int(np.max(marks)) > count:
        raise ParameterError(f"marks = {np.max(marks)} is beyond the {count} samples; draw one for every step")

    def advance(index, state):
        return step(jax.tree.map(lambda part: part[index], samples), state)

    def to_mark(begin, end, state):
        state = jax.lax.fori_loop(begin, end, advance, state)
        return state, state

    return trainers.to_marks(to_mark, start, marks).seen


def first_passage(
    key: PRNGKeyArray, step: Callable, draw: Callable, start: Array, thresholds: Float[Array, " levels"], most: int,
    both_signs: bool,
) -> Float[Array, " levels"]:  # fmt: skip
    """The first steps at which the state (its absolute value, for `both_signs`) exceeds each of increasing thresholds.

    `draw(key, shape)` makes samples, and `step(sample, state)` uses one. After `most` steps the walk is given up, and
    the levels not reached are returned as infinite.
    """

    def mark(state, count, passed):
        reached = jnp.abs(state) if both_signs else state
        return jnp.where(jnp.isinf(passed) & (reached > thresholds), count.astype(float), passed)

    def one(carry, sample):
        state, count, passed = carry
        state, count = step(sample, state), count + 1
        return (state, count, mark(state, count, passed)), None

    def unfinished(carry):
        _, count, passed = carry
        return (count < most) & jnp.isinf(passed[-1])

    def block(carry):
        # Neighbouring keys in the first word; `draw` takes those in the last.
        samples = draw(draws.neighbour(key, carry[1] // BLOCK, word=0), (BLOCK,))
        return jax.lax.scan(one, carry, samples)[0]

    none = jnp.asarray(0)
    infinite = jnp.full(thresholds.shape, jnp.inf)
    _, _, passed = jax.lax.while_loop(unfinished, block, (start, none, mark(start, none, infinite)))
    return jnp.where(passed > most, jnp.inf, passed)


def complement(m: Array) -> Array:
    """q = √(1 − m²)."""
    return jnp.sqrt(jnp.maximum(1 - m**2, 0.0))


def _cluster(sample: Draws) -> tuple[Array, Array]:
    """Sign and label of one of the four clusters, each with probability 1/4."""
    u = 4 * sample.uniforms[0]
    return jnp.where((u < 1) | (u >= 3), 1.0, -1.0), jnp.where(u < 2, 1.0, 0.0)


def _triangular_root(gram: Float[Array, "K K"]) -> Float[Array, "K K"]:
    """The lower triangular L with LL' = gram, written out for the same reason."""
    width = gram.shape[0]
    gram = gram + 1e-14 * (1 + jnp.trace(gram)) * jnp.eye(width)
    columns = []
    for index in range(width):
        column = jnp.where(jnp.arange(width) >= index, gram[:, index] * jax.lax.rsqrt(gram[index, index]), 0.0)
        columns.append(column)
        gram = gram - column[:, None] * column[None, :]
    return jnp.stack(columns, axis=1)
