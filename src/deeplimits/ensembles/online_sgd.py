"""Online SGD: one fresh sample a step, drawn when it is needed and never stored.

The loops take `draw(key)`, which makes one sample, and `loss(x, sample)`; they are compiled as one program, whatever
the number of steps, and return `observe(x)` after `marks` steps (see `trainers`). Map them over keys for many runs.
Most of the time goes into random numbers. Samples are therefore drawn in single precision, whose rounding is far below
what a sample does to any statistic, and computed with in double; the keys may be of any of JAX's generators, which
`benchmarks/online_sgd.py` compares.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import ArrayLike

from deeplimits.ensembles import trainers
from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.arguments import known
from deeplimits.numerics.box_muller import gaussians
from deeplimits.numerics.shapes import Floats, Scalar

IN_CACHE = 32_768
"""Numbers of samples that are drawn at once."""
MOST_STEPS, FEW_STEPS = 64, 8
"""Steps of a block at most, and where it is not known how far apart the marks are."""
LONG = 8192
"""From so many coordinates on a step on a processor waits for its memory."""
WASTE = 1.2
"""Samples may be drawn in vain up to this share of all."""


class Labelled(NamedTuple):
    """One input and its label."""

    x: Float[Array, " N"]
    label: Scalar


def spherical(
    key: PRNGKeyArray, start: Float[Array, " N"], loss: Callable, draw: Callable, step: ArrayLike,
    marks: ArrayLike, observe: Callable,
) -> Any:  # fmt: skip
    """x̃ = x − (δ/N)(∇L − ⟨∇L, x⟩x), x' = x̃/|x̃|.

    >>> def draw(key):
    ...     return pca_sample(key, 1.0, jnp.eye(3)[0])
    >>> seen = spherical(jax.random.key(0), jnp.eye(3)[1], pca_loss, draw, 0.5, [0, 10], jnp.linalg.norm)
    >>> seen.round(12).tolist()
    [1.0, 1.0]
    """
    rate = jnp.asarray(step, float) / start.shape[0]

    def advance(x, gradient):
        if x.shape[0] >= LONG and jax.default_backend() == "cpu":
            return _advanced(x, gradient, rate)
        moved = x - rate * (gradient - (gradient @ x) * x)
        # One division, not one for each coordinate.
        return moved * (1 / jnp.linalg.norm(moved))

    return _loop(key, start, jax.grad(loss), draw, advance, marks, observe)


def _advanced(x: Float[Array, " N"], gradient: Float[Array, " N"], rate: Scalar) -> Float[Array, " N"]:
    """The same step where x is long and waits for memory: x̃ = ax − δg is written once, by its length divided already.

    |x̃|² = a²|x|² − 2aδ⟨g, x⟩ + δ²|g|² with a = 1 + δ⟨g, x⟩ loses the more digits the larger δ|g| is: beyond one it is
    summed.
    """
    along, square, own = gradient @ x, gradient @ gradient, x @ x
    a = 1 + rate * along

    def small(x, gradient):
        return a * a * own - 2 * a * rate * along + rate * rate * square

    def large(x, gradient):
        return jnp.sum((a * x - rate * gradient) ** 2)

    length = jnp.sqrt(jax.lax.cond(rate * rate * square < 1, small, large, x, gradient))
    return (a / length) * x - (rate / length) * gradient


def euclidean(
    key: PRNGKeyArray, start: Any, loss: Callable, draw: Callable, step: ArrayLike,
    marks: ArrayLike, observe: Callable,
) -> Any:  # fmt: skip
    """x' = x − δ∇L(x, Y) for any pytree x of parameters.

    >>> def loss(x, sample):
    ...     return (x - sample) ** 2 / 2
    >>> def draw(key):
    ...     return jnp.ones(())
    >>> euclidean(jax.random.key(0), jnp.zeros(()), loss, draw, 0.5, [0, 1, 3], lambda x: x).tolist()
    [0.0, 0.5, 0.875]
    """
    rate = jnp.asarray(step, float)

    def advance(x, gradient):
        return jax.tree.map(lambda part, slope: part - rate * slope, x, gradient)

    return _loop(key, start, jax.grad(loss), draw, advance, marks, observe)


def spiked_tensor(
    key: PRNGKeyArray, start: Float[Array, " N"], spike: Float[Array, " N"], signal: ArrayLike, order: int,
    step: ArrayLike, marks: ArrayLike, observe: Callable,
) -> Any:  # fmt: skip
    """SGD on |Y − x^{⊗k}|², Y = λv^{⊗k} + W, in O(N) a step: the tensor is never formed.

    What a gradient sees of the noise is the sum of its k contractions with x in all slots but one: a Gaussian vector, k
    equal contributions along x and k independent ones across.

    >>> spike = jnp.eye(4)[0]
    >>> spiked_tensor(jax.random.key(0), 0.5 * spike, spike, 1.0, 3, 0.01, [0, 5], lambda x: x @ spike).shape
    (2,)
    """
    rate, lam, k = jnp.asarray(step, float), jnp.asarray(signal, float), order

    def gradient(x, noise):
        square = x @ x
        radius = jnp.sqrt(square)
        along = noise @ x / radius
        contraction = jnp.sqrt(1.0 * k) * (noise - along * x / radius) + k * along * x / radius
        population = -2 * k * lam * (x @ spike) ** (k - 1) * spike + 2 * k * square ** (k - 1) * x
        return population - 2 * radius ** (k - 1) * contraction

    def draw(key):
        return gaussian(key, start.shape)

    return _loop(key, start, gradient, draw, lambda x, slope: x - rate * slope, marks, observe)


def _loop(key, start, gradient, draw, advance, marks, observe):
    def sample(i):
        return draw(jax.random.fold_in(key, i))

    length = _block_length(jax.eval_shape(sample, 0), marks)

    # Samples are drawn for some steps at once: one program for many numbers, and no sample is drawn within a step,
    # where it would be fused into each of its uses, that is drawn several times over. Each has a key of its own: what
    # is drawn does not depend on the blocks.
    def run(begin, end, x):
        def block(state):
            first, x = state
            samples = jax.vmap(sample)(first + jnp.arange(length))

            def one(i, x):
                return advance(x, gradient(x, jax.tree.map(lambda part: _entry(part, i), samples)))

            return first + length, jax.lax.fori_loop(0, jnp.minimum(length, end - first), one, x)

        _, x = jax.lax.while_loop(lambda state: state[0] < end, block, (begin, x))
        return x, observe(x)

    return trainers.to_marks(run, start, marks).seen


def _entry(array, index):
    return jax.lax.dynamic_index_in_dim(array, index, keepdims=False)


def _block_length(sample, marks) -> int:
    """Steps whose samples are drawn at once: as many as stay in cache, and few enough that little is thrown away at
    the marks."""
    length = max(1, min(MOST_STEPS, IN_CACHE // max(1, sum(part.size for part in jax.tree.leaves(sample)))))
    if not known(marks):
        return min(length, FEW_STEPS)
    gaps = np.diff(np.asarray(marks).ravel(), prepend=0)
    while length > 1 and np.sum(-(-gaps // length) * length) > WASTE * np.sum(gaps):
        length = (length + 1) // 2
    return length


def gaussian(key: PRNGKeyArray, shape: tuple[int, ...]) -> Floats:
    """Standard Gaussian noise, drawn in single precision (see `numerics.box_muller`)."""
    return gaussians(key, shape).astype(float)


def pca_sample(key: PRNGKeyArray, signal: ArrayLike, direction: Float[Array, " N"]) -> Float[Array, " N"]:
    """Y ~ N(0, I + λθθ')."""
    noise = gaussian(key, direction.shape)
    return noise + (jnp.sqrt(1 + jnp.asarray(signal, float)) - 1) * (noise @ direction) * direction


def pca_loss(x: Float[Array, " N"], sample: Float[Array, " N"]) -> Scalar:
    """−⟨x, Y⟩²."""
    return -((x @ sample) ** 2)


def mixture_sample(key: PRNGKeyArray, field: ArrayLike, direction: Float[Array, " N"]) -> Float[Array, " N"]:
    """±θ + noise, with P(+) = e^h/(e^h + e^{−h})."""
    sign_key, noise_key = jax.random.split(key)
    plus = jax.random.bernoulli(sign_key, jax.nn.sigmoid(2 * jnp.asarray(field, float)))
    return gaussian(noise_key, direction.shape) + jnp.where(plus, 1.0, -1.0) * direction


def mixture_loss(x: Float[Array, " N"], sample: Float[Array, " N"], field: ArrayLike) -> Scalar:
    """−log cosh(⟨x, Y⟩ + h)."""
    t = x @ sample + jnp.asarray(field, float)
    return jnp.log(2.0) - jnp.logaddexp(t, -t)


def single_index_sample(
    key: PRNGKeyArray, teacher: ActivationLike, noise: ArrayLike, direction: Float[Array, " N"]
) -> Labelled:
    """a ~ N(0, I) and its label f(⟨a, θ⟩) + ε, ε of standard deviation `noise`."""
    input_key, noise_key = jax.random.split(key)
    a = gaussian(input_key, direction.shape)
    return Labelled(a, named(teacher).value(a @ direction) + jnp.asarray(noise, float) * jax.random.normal(noise_key))


def single_index_loss(x: Float[Array, " N"], sample: Labelled, student: ActivationLike) -> Scalar:
    """(y − g(⟨a, x⟩))²."""
    return (sample.label - named(student).value(sample.x @ x)) ** 2


def xor_sample(key: PRNGKeyArray, separation: ArrayLike, dimension: int) -> Labelled:
    """X around ±e_1 (label 1) or ±e_2 (label 0) with covariance I/λ, and its label."""
    cluster_key, noise_key = jax.random.split(key)
    cluster = jax.random.randint(cluster_key, (), 0, 4)
    x = gaussian(noise_key, (dimension,)) / jnp.sqrt(jnp.asarray(separation, float))
    x = x.at[cluster // 2].add(jnp.where(cluster % 2 == 0, 1.0, -1.0))
    return Labelled(x, jnp.where(cluster < 2, 1.0, 0.0))


def xor_loss(network: tuple[Array, Array], sample: Labelled, ridge: ArrayLike) -> Scalar:
    """Logistic loss of v·g(WX) with ridge: network = (v of shape (K,), W of shape (K, N))."""
    v, weights = network
    x, label = sample
    score = v @ jax.nn.relu(weights @ x)
    penalty = jnp.asarray(ridge, float) / 2 * (v @ v + jnp.sum(weights**2))
    return -label * score + jnp.logaddexp(score, 0.0) + penalty
