r"""Stochastic gradient descent on least squares, to second order exactly.

Losses l_k = (⟨x_k, θ⟩ − y_k)²/2 of m samples; a step is θ ← θ − η ∇L_B with the mean loss L_B of a random batch of
(mean) size B. With A = X'X/m, δ = θ − θ_LS and residuals r_k, the second moment S = E δδ' obeys the linear recursion

    S ← S − η(AS + SA) + η² C̃(S),
    C̃(S) = ASA + κ [Σ_k x_k (x_k'S x_k) x_k' − χ m ASA] + κ Σ_k r_k² x_k x_k',

C̃ being the mean of ∇L_B ∇L_B'. κ and χ depend on how batches are drawn.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Scalar

Matrix = Float[Array, "m d"] | Float[np.ndarray, "m d"]
Vector = Float[Array, " m"] | Float[np.ndarray, " m"]

SAMPLINGS = ("with replacement", "without replacement", "bernoulli")


class Stationary(NamedTuple):
    """What stationary stochastic gradient descent fluctuates around, and by how much."""

    minimizer: Float[Array, " d"]
    covariance: Float[Array, "d d"]
    """S = ⟨δδ'⟩."""
    position_side: Scalar
    """⟨θ·∇L⟩ = tr(AS)."""
    noise_side: Scalar
    """(η/2)⟨tr C̃⟩, equal to `position_side` at every step size."""
    gradient_side: Scalar
    """⟨‖∇L‖²⟩ = tr(A²S)."""
    curvature_side: Scalar
    """(η/2)⟨tr(H C̃)⟩, equal to `gradient_side` for a quadratic loss."""
    radius: Scalar
    """Spectral radius of the recursion of second moments; the covariance is finite where it is below one."""
    residual: Scalar
    """How well S solves its equation, relative."""


class BatchFactors(NamedTuple):
    """κ and χ of the covariance κ(Σ_k g_k g_k' − χ m ḡḡ') of a batch gradient."""

    scale: Any
    centred: float


def batch_factors(sampling: str, samples: int, batch: Any) -> BatchFactors:
    """κ and χ: the covariance of a batch gradient is κ(Σ_k g_k g_k' − χ m ḡḡ') with the samples' gradients g_k.

    κ = (1−p)/(Bm), χ = 0 for Bernoulli batches with p = B/m; κ = (m−B)/(Bm(m−1)), χ = 1 without replacement;
    κ = 1/(Bm), χ = 1 with replacement.

    >>> float(batch_factors("without replacement", 4, 2).scale)
    0.08333333333333333
    """
    arguments.choice("sampling", sampling, SAMPLINGS)
    if arguments.known(batch):
        allowed = arguments.above(0) if sampling == "bernoulli" else arguments.COUNT
        arguments.number("batch", batch, allowed, "samples in a batch")
        most = math.inf if sampling == "with replacement" else samples
        if not (0 if sampling == "bernoulli" else 1) <= float(batch) <= most:
            raise ParameterError(
                f"batch = {float(batch):g} is not allowed; of {samples} samples it holds between 1 and {most}"
            )
    m, b = samples, batch * 1.0
    if sampling == "bernoulli":
        return BatchFactors((1 - b / m) / (b * m), 0.0)
    if sampling == "without replacement":
        return BatchFactors((m - b) / (b * m * max(m - 1, 1)), 1.0)
    return BatchFactors(1 / (b * m), 1.0)


def sgd_stationary(x: ArrayLike, y: ArrayLike, step: ArrayLike, batch: ArrayLike, sampling: str) -> Stationary:
    """The exact stationary covariance of stochastic gradient descent in linear regression.

    Setting     mean of (⟨x_k, θ⟩ − y_k)²/2 over m samples, fresh batches of size B, constant step η
    Result      S solves the linear equation above; fluctuation-dissipation: tr(AS) = (η/2) tr C̃, tr(A²S) = (η/2) tr(AC̃)
    Validity    X of full column rank, η below `largest_sgd_step`; otherwise S is infinite and OutsideValidity is raised
    References  yaida2019; defossez2015

    >>> x, y = [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 4.0]], [0.0, 1.0, 1.0, 3.0]
    >>> round(float(sgd_stationary(x, y, 0.05, 2, "bernoulli").position_side), 14)
    0.00287458212886
    """
    # NumPy arrays where that is possible: what does not depend on the step is then computed at once, and not compiled.
    numpy = np if arguments.known(x, y) else jnp
    x, y, step = numpy.asarray(x, float), numpy.asarray(y, float), jnp.asarray(step, float)
    if arguments.known(x, y, batch):
        _check(x, y, batch, sampling)
    moments = _moments(x, y, batch, sampling)
    d = x.shape[1]
    drift = jnp.asarray(_drift(moments[0]))
    curvature, minimizer, noise, source = map(jnp.asarray, moments)
    # η(A⊕A) S − η² N S = η² source
    matrix = drift - step * noise
    flat = jnp.linalg.solve(matrix, step * source.ravel())
    covariance = flat.reshape(d, d)
    covariance = (covariance + covariance.T) / 2
    second = (noise @ covariance.ravel()).reshape(d, d) + source
    recursion = jnp.eye(d * d) - step * drift + step**2 * noise
    # The recursion maps positive matrices to positive matrices and is symmetric: its radius is its top eigenvalue.
    radius = jnp.max(jnp.abs(jnp.linalg.eigvalsh((recursion + recursion.T) / 2)))
    equation = drift @ covariance.ravel() - step * second.ravel()
    found = Stationary(
        minimizer,
        covariance,
        jnp.trace(curvature @ covariance),
        step / 2 * jnp.trace(second),
        jnp.trace(curvature @ curvature @ covariance),
        step / 2 * jnp.trace(curvature @ second),
        radius,
        jnp.max(jnp.abs(equation)) / jnp.max(jnp.abs(step * second)),
    )

    def allowed():
        largest = largest_sgd_step(np.asarray(x), batch, sampling)
        return f" (it is finite for 0 < step < {largest:g} with batches of {batch} {sampling}; step = {float(step):g})"

    sentence = "second moments grow without bound at this step on these data; take one at which their limit is finite"
    return valid(found, (step > 0) & (radius < 1), sentence, allowed)


def largest_sgd_step(x: ArrayLike, batch: ArrayLike, sampling: str) -> float:
    """The step size from which on second moments grow without bound, below 2/λ_max unless there is no gradient noise.

    The recursion S ← E(1 − ηH_B)S(1 − ηH_B) preserves positive matrices, so the first eigenvalue to reach modulus
    one is one itself: 1/η is the largest eigenvalue of (A⊕A)^{−1}N, N S = ASA + κ[Σ x_k x_k'S x_k x_k' − χ m ASA].

    >>> x = [[1.0, 0.0], [0.0, 1.0]]
    >>> largest_sgd_step(x, 2, "without replacement"), largest_sgd_step(x, 1, "without replacement")
    (4.0, 2.0)
    """
    x = np.asarray(arguments.array("x", x, ("m", "d"), why="one input in each row"))
    # Nothing moves off the span of the inputs: coordinates inside it are enough, and there A is positive.
    _, sizes, span = np.linalg.svd(x, full_matrices=False)
    if not sizes[0] > 0:
        raise ParameterError("x holds only zeros, from which nothing is learnt; no step is too large")
    x = x @ span[sizes > max(x.shape) * np.finfo(float).eps * sizes[0]].T
    curvature, _, operator, _ = _moments(x, np.zeros(x.shape[0]), batch, sampling)
    # Both matrices are symmetric and A⊕A is positive: a symmetric eigenvalue problem after a square root.
    values, vectors = np.linalg.eigh(_drift(curvature))
    half = vectors / np.sqrt(values)
    return float(1 / np.linalg.eigvalsh(half.T @ operator @ half)[-1])


def sgd_loss_path(
    x: Matrix, y: Vector, start: ArrayLike, step: ArrayLike, batch: ArrayLike, sampling: str, steps: int
) -> Float[Array, " {steps}+1"]:
    """E L(θ_k) − L(θ_LS) for k = 0, …, steps, exactly: tr(A S_k)/2 along the recursion of second moments.

    While E δ ≠ 0 the recursion has one more term, η²κ Σ_k 2r_k⟨x_k, E δ⟩x_k x_k', and E δ itself obeys gradient
    descent.

    >>> x, y = np.ones((2, 1)), np.ones(2)  # without residuals each step halves the distance
    >>> [round(float(part), 12) for part in sgd_loss_path(x, y, np.zeros(1), 0.5, 1, "without replacement", 2)]
    [0.5, 0.125, 0.03125]
    """
    step = arguments.argument("step", step, arguments.POSITIVE)
    given, steps = arguments.samples(x, y), arguments.whole("steps", steps)
    start = arguments.array("start", start, (given[0].shape[1],), why="one parameter for each column of x")
    moments = _moments(x, y, batch, sampling)
    d = x.shape[1]
    drift, cross = jnp.asarray(_drift(moments[0])), jnp.asarray(_cross_source(x, y, moments[1], batch, sampling))
    curvature, minimizer, operator, source = map(jnp.asarray, moments)
    away = jnp.asarray(start, float) - minimizer

    first = jnp.outer(away, away).ravel()

    def advance(state, _):
        second, mean = state
        following = second - step * (drift @ second) + step**2 * (operator @ second + source.ravel() + cross @ mean)
        return (following, mean - step * (curvature @ mean)), following

    _, path = jax.lax.scan(advance, (first, away), length=steps)
    everything = jnp.concatenate([first[None], path]).reshape(steps + 1, d, d)
    return jnp.einsum("ij,tji->t", curvature, everything) / 2


def _cross_source(x, y, minimizer, batch, sampling):
    """κ Σ_k 2 r_k x_k x_k'⟨x_k, E δ⟩, flattened, as a matrix on E δ: what residuals and a mean displacement add."""
    kappa, _ = batch_factors(sampling, x.shape[0], batch)
    residuals = x @ minimizer - y
    return 2 * kappa * _pairs(x).T @ (residuals[:, None] * x)


def _moments(x, y, batch, sampling):
    """A, θ_LS, the operator N on flattened matrices, and the source κ Σ r_k² x_k x_k'."""
    m = x.shape[0]
    numpy = _numpy(x)
    kappa, chi = batch_factors(sampling, m, batch)
    curvature = x.T @ x / m
    minimizer = numpy.linalg.solve(curvature, x.T @ y / m)
    residuals = x @ minimizer - y
    pairs = _pairs(x)
    # ASA as an operator on S is A⊗A; Σ x_k (x_k'S x_k) x_k' is Σ (x_k⊗x_k)(x_k⊗x_k)'
    operator = (1 - kappa * chi * m) * numpy.kron(curvature, curvature) + kappa * pairs.T @ pairs
    return curvature, minimizer, operator, kappa * (x.T * residuals[None, :] ** 2) @ x


def _pairs(x):
    """x_k⊗x_k, a row for each sample."""
    m, d = x.shape
    return (x[:, :, None] * x[:, None, :]).reshape(m, d * d)


def _drift(curvature):
    """A⊕A: the operator S → AS + SA on flattened matrices."""
    numpy = _numpy(curvature)
    eye = numpy.eye(curvature.shape[0])
    return numpy.kron(curvature, eye) + numpy.kron(eye, curvature)


def _numpy(x):
    """NumPy for its own arrays, JAX's for others."""
    return np if isinstance(x, np.ndarray) else jnp


def _check(x, y, batch, sampling):
    arguments.samples(x, y)
    if np.linalg.matrix_rank(x) < x.shape[1]:
        raise OutsideValidity(
            f"x has rank {np.linalg.matrix_rank(x)}, below its {x.shape[1]} columns: directions without gradient never "
            "become stationary; remove dependent columns"
        )
    most = np.inf if sampling == "with replacement" else len(x)
    if not 0 < float(batch) <= most:
        raise ParameterError(f"batch = {batch} is not allowed; it must be positive and at most m = {len(x)}")
