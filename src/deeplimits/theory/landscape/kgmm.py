r"""A mixture of k Gaussians learnt by softmax regression with online SGD: summary statistics and Hessian blocks.

Class a with probability p_a, Y = μ_a + Z/√λ; weights x = (x^1, …, x^k), loss −log π_a with π = softmax(xY), ridge β,
learning rate δ = c/d. M_cb = x^c·μ_b, and R is the Gram matrix of the parts of the x^c orthogonal to all means.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics import arguments, flows
from deeplimits.numerics.arguments import known
from deeplimits.numerics.checks import converged
from deeplimits.numerics.quasi_random import gaussian_points
from deeplimits.numerics.roots import bracketed
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.landscape.softmax import softmax_moments
from deeplimits.theory.landscape.weighted_covariance import WeightedSample, weighted_sample

JITTER = 1e-13
UNCERTAIN = 2e-3
"""Statistics may change by this where the number of steps is halved; a fifteenth of it is the error of order four."""
MOST_RELAXATIONS = 3e3
"""Along a path of the symmetric mixture: an explicit method takes a step or so for each, and each an integral."""


class MixtureState(NamedTuple):
    """The summary statistics."""

    means: Float[Array, "*times k k"]
    """M_cb = x^c·μ_b."""
    rest: Float[Array, "*times k k"]
    """R."""


def kgmm_ballistic(
    start: MixtureState, times: ArrayLike, separation: ArrayLike, ridge: ArrayLike, step: ArrayLike,
    *, probabilities: ArrayLike | None = None, gram: ArrayLike | None = None, points: int = 2048,
) -> MixtureState:  # fmt: skip
    """The statistics of online SGD at increasing times, for any means and class probabilities.

    Setting     `start` (M, R) at time 0; `separation` λ, `ridge` β, `step` c; `gram` Ḡ_ab = μ_a·μ_b, the identity and
                equal `probabilities` unless given; time t = δ·steps, δ = c/d
    Limit       d → ∞
    Result      Q = MḠ⁻¹M' + R, logits N(M_·a, Q/λ) under class a;
                dM/dt = Σ p_a E_a[e_a − π]Ḡ_a· − SM/λ − βM, S = Σ p_a E_a[diag π − ππ']
                dR/dt = −(SR + RS)/λ − 2βR + (c/λ)F, F = Σ p_a E_a[(π − e_a)(π − e_a)']
    Validity    linearly independent means; expectations by 2·`points` quasi-random points for each class
    References  benarous2024

    >>> start = MixtureState(jnp.zeros((3, 3)), jnp.eye(3))
    >>> end = kgmm_ballistic(start, [5.0], 10.0, 0.05, 1.0)
    >>> path = kgmm_symmetric_path([5.0], 3, 10.0, 0.05, 1.0)
    >>> bool(abs(end.means[0, 0, 0] - path.amplitude[0] * 2 / 3) < 1e-3)
    True
    """
    arguments.of_kind("start", start, MixtureState)
    k = arguments.array("start.means", start.means, ("k", "k")).shape[0]
    arguments.array("start.rest", start.rest, (k, k))
    lam = arguments.number("separation", separation, arguments.POSITIVE)
    beta = arguments.number("ridge", ridge, arguments.NOT_NEGATIVE)
    c = arguments.number("step", step, arguments.POSITIVE)
    p = jnp.full(k, 1 / k) if probabilities is None else probabilities
    p = arguments.probabilities("probabilities", p, k)
    overlaps = arguments.array("gram", jnp.eye(k) if gram is None else gram, (k, k), why="inner products of the means")
    if known(overlaps) and np.linalg.eigvalsh(np.asarray(overlaps))[0] < 1e-10 * np.trace(np.asarray(overlaps)):
        raise ParameterError("gram is singular or not positive: the means are linearly dependent; drop one")
    z = jnp.asarray(gaussian_points(k, points))

    def field(_, state):
        m, r = state
        spread = m @ jnp.linalg.solve(overlaps, m.T) + r
        noise = z @ _root(spread).T / jnp.sqrt(lam)
        chance = jax.nn.softmax(m.T[:, None, :] + noise[None], axis=-1)  # class, point, logit
        error = jnp.eye(k)[:, None, :] - chance
        mean_error = error.mean(axis=1)
        weighted = p[:, None, None] / len(z)
        curvature = jnp.diag(jnp.sum(weighted * chance, axis=(0, 1))) - jnp.einsum(
            "anb,anc->bc", weighted * chance, chance
        )
        force = jnp.einsum("anb,anc->bc", weighted * error, error)
        pull = curvature @ r / lam
        # first term: Σ_a p_a E_a[e_a − π] (column) times row a of Ḡ
        return MixtureState(
            (p[:, None] * mean_error).T @ overlaps - curvature @ m / lam - beta * m,
            -pull - pull.T - 2 * beta * r + c / lam * force,
        )

    moments = arguments.times("times", times)
    count = max(36, int(np.ceil(4 * float(moments[-1])))) if known(moments) else 60
    begin = MixtureState(jnp.asarray(start.means, float), jnp.asarray(start.rest, float))
    fine = flows.fixed_steps(field, begin, moments, max(count, moments.shape[0]))
    coarse = flows.fixed_steps(field, begin, moments, max(count // 2, moments.shape[0]))
    apart = jnp.stack([jnp.max(jnp.abs(one - other)) for one, other in zip(fine, coarse, strict=True)])
    return converged(fine, apart <= UNCERTAIN, "the statistics depend on the number of steps")


class SymmetricState(NamedTuple):
    """M = aP, R = rP + s·11'/k with P = 1 − 11'/k: orthonormal means, equal probabilities."""

    amplitude: Float[Array, "*times"]
    """a."""
    rest: Float[Array, "*times"]
    """r."""
    common: Float[Array, "*times"]
    """s: the softmax does not see it."""

    def alignment(self, classes: int) -> Float[Array, "*times"]:
        """ρ(x^c, Span μ) = |P x^c|/|x^c|: |P x^c|² = a²(k − 1)/k, and the rest is r(k − 1)/k + s/k."""
        along = self.amplitude**2 * (classes - 1)
        return jnp.sqrt(along / (along + self.rest * (classes - 1) + self.common))


def kgmm_symmetric_path(
    times: ArrayLike, classes: int, separation: ArrayLike, ridge: ArrayLike, step: ArrayLike
) -> SymmetricState:
    """The same for orthonormal means, equal probabilities and x₀ with rows N(0, I/d): two equations, for any k.

    Result      a' = (1 − Eπ_correct)/(k − 1) − (s/λ + β)a, r' = −2(s/λ + β)r + (c/λ)f from a = 0, r = 1
                with s = (1 − E|π|²)/(k − 1), f = E|π − e_a|²/(k − 1); common part e^{−2βt}
    References  benarous2024

    >>> path = kgmm_symmetric_path([50.0], 10, 10.0, 0.01, 1.0)
    >>> round(float(path.amplitude[0] * 0.9), 4), round(float(path.alignment(10)[0]), 4)
    (2.1071, 0.9726)
    """
    k, lam, beta, c = _symmetric_arguments(classes, separation, ridge, step)

    def field(_, state):
        a, r = state
        drift = _drift(a, r, k, lam)
        pull = drift.curvature / lam + beta
        return drift.force - pull * a, -2 * pull * r + c / lam * drift.noise

    moments = arguments.times("times", times)
    if known(lam, beta, moments) and moments.size:
        # No softmax is more curved than the even one, where s = 1/k.
        rate = 2 * (1 / (k * float(lam)) + float(beta))
        if rate * float(moments[-1]) > MOST_RELAXATIONS:
            raise OutsideValidity(
                f"separation = {float(lam):g} and ridge = {float(beta):g} make the spread relax at the rate "
                f"{rate:.3g}, too fast to be followed to the time {float(moments[-1]):g}: at most "
                f"{MOST_RELAXATIONS:g} relaxations are; kgmm_fixed_point is where it comes to rest"
            )
    solved = flows.solve(field, (jnp.zeros(()), jnp.ones(())), moments, rtol=1e-8, atol=1e-10)
    amplitude, rest = solved.states
    return SymmetricState(amplitude, rest, jnp.exp(-2 * beta * moments))


def kgmm_fixed_point(classes: int, separation: ArrayLike, ridge: ArrayLike, step: ArrayLike) -> SymmetricState:
    """Where online SGD comes to rest: a(β + s/λ) = (1 − Eπ_correct)/(k − 1), r = cf/(2(s + λβ)).

    `separation` may be infinite: then r = 0 and βka = (1 − π)·k/(k − 1) with π = e^a/(e^a + k − 1).

    >>> point = kgmm_fixed_point(10, jnp.inf, 0.01, 1.0)
    >>> round(float(point.amplitude) * 0.9, 10)  # M_cc
    2.8190366283
    >>> point = kgmm_fixed_point(2, 10.0, 0.1, 1.0)
    >>> round(float(point.amplitude), 8), round(float(point.rest), 8)
    (1.530815, 0.03894984)
    """
    k = arguments.whole("classes", classes, 2)
    beta = arguments.number("ridge", ridge, arguments.POSITIVE, "without it the weights grow for ever")
    lam = arguments.number("separation", separation, arguments.Allowed(lambda x: x > 0, "positive (inf: no noise)"))
    c = arguments.number("step", step, arguments.POSITIVE)
    # a is below its value for π = 0 and no curvature
    amplitude = bracketed(_rest_condition, 0.0, 1 / (beta * (k - 1)), jnp.full(k, 1.0), lam, beta, c)
    return SymmetricState(amplitude, _resting_spread(amplitude, k, lam, beta, c), jnp.zeros(()))


def kgmm_noiseless_path(times: ArrayLike, classes: int, ridge: ArrayLike) -> Float[Array, " times"]:
    """M_cc for λ = ∞ from 0: da/dt = (1 − π(a))/k − βa with π = e^{ka/(k−1)}/(e^{ka/(k−1)} + k − 1).

    >>> [round(float(a), 9) for a in kgmm_noiseless_path([10.0, 50.0], 10, 0.01)]
    [0.804849861, 2.337730843]
    """
    k = arguments.whole("classes", classes, 2)
    beta = arguments.number("ridge", ridge, arguments.NOT_NEGATIVE)

    def field(_, a):
        return (k - 1) / (k - 1 + jnp.exp(k * a / (k - 1))) / k - beta * a

    return flows.solve(field, jnp.zeros(()), arguments.times("times", times), rtol=1e-11, atol=1e-13).states


class BlockEigenvalues(NamedTuple):
    """Diagonal blocks and full matrices without noise, orthonormal means, symmetric state."""

    hessian_own: Scalar
    """Of the Hessian block cc along μ_c: π(1 − π)/k."""
    hessian_other: Scalar
    """Along the other means: q(1 − q)/k."""
    gradient_own: Scalar
    """Of the block cc of the gradients' second moment along μ_c: (1 − π)²/k."""
    gradient_other: Scalar
    """Along the other means: q²/k."""
    full_hessian: Float[Array, "2"]
    """πq, k times, and q/k, k(k − 2) times."""
    full_gradient: Scalar
    """(k − 1)q², k times."""


def kgmm_blocks(amplitude: ArrayLike, classes: int) -> BlockEigenvalues:
    """Eigenvalues of the blocks of Hessian and gradient moment for λ = ∞, M = aP; the ridge excluded.

    Result      π = e^a/(e^a + k − 1), q = (1 − π)/(k − 1); the top eigenvector of the Hessian's block cc is μ_c for
                k ≥ 3 and π > 1/k, that of the gradients' for k ≥ 3
    References  benarous2024

    >>> found = kgmm_blocks(kgmm_fixed_point(3, jnp.inf, 0.05, 1.0).amplitude, 3)
    >>> [round(float(part), 12) for part in found[:4]]
    [0.05430646394, 0.03065209631, 0.01399545736, 0.00349886434]
    """
    k = arguments.whole("classes", classes, 2)
    a = arguments.argument("amplitude", amplitude, arguments.FINITE)
    chance = jax.nn.sigmoid(a - jnp.log(k - 1.0))
    # 1 − π without cancellation
    other = jax.nn.sigmoid(jnp.log(k - 1.0) - a) / (k - 1)
    return BlockEigenvalues(
        chance * (k - 1) * other / k,
        other * (1 - other) / k,
        ((k - 1) * other) ** 2 / k,
        other**2 / k,
        jnp.stack([chance * other, other / k]),
        (k - 1) * other**2,
    )


def kgmm_weighted_block(
    state: MixtureState, separation: ArrayLike, per_dimension: ArrayLike,
    *, block: int = 0, kind: str = "hessian", probabilities: ArrayLike | None = None, points: int = 1024,
) -> WeightedSample:  # fmt: skip
    """Block cc of the test matrix at a state, for `weighted_outliers`; orthonormal means.

    Coordinates: the k means, then an orthonormal frame of the rest, in which the x^c are the rows of L, LL' = R.
    Weights: hessian π_c(1 − π_c), gradient (π_c − y_c)².

    >>> start = MixtureState(jnp.zeros((10, 10)), jnp.zeros((10, 10)))
    >>> kgmm_weighted_block(start, 10.0, 10.0, points=16).coordinates.shape
    (320, 20)
    """
    arguments.of_kind("state", state, MixtureState)
    k = arguments.array("state.means", state.means, ("k", "k")).shape[0]
    arguments.choice("kind", kind, ("hessian", "gradient"))
    lam = arguments.number("separation", separation, arguments.POSITIVE)
    c = arguments.whole("block", block)
    p = jnp.full(k, 1 / k) if probabilities is None else jnp.asarray(probabilities, float)
    weights = jnp.concatenate([jnp.asarray(state.means, float), _root(jnp.asarray(state.rest, float))], axis=1)
    noise = jnp.asarray(gaussian_points(2 * k, points)) / jnp.sqrt(lam)
    u = noise[None] + jnp.eye(k, 2 * k)[:, None, :]
    chance = jax.nn.softmax(u @ weights.T, axis=-1)[:, :, c]
    if kind == "hessian":
        w = chance * (1 - chance)
    else:
        w = (chance - jnp.eye(k)[c][:, None]) ** 2
    mass = jnp.broadcast_to(p[:, None] / len(noise), w.shape)
    return weighted_sample(w.ravel(), u.reshape(-1, 2 * k), lam, per_dimension, probabilities=mass.ravel())


class _Drift(NamedTuple):
    force: Array
    curvature: Array
    noise: Array


def _drift(a, r, k, lam) -> _Drift:
    found = softmax_moments(a, jnp.sqrt((a**2 + r) / lam), k)
    return _Drift(
        (1 - found.correct) / (k - 1),
        (1 - found.squared) / (k - 1),
        (found.squared - 2 * found.correct + 1) / (k - 1),
    )


def _resting_spread(a, k, lam, beta, c):
    # r = cf/(2(s + λβ)), with s and f at r itself
    return bracketed(_spread_condition, 0.0, c / (2 * lam * beta) + 1e-300, a, jnp.full(k, 1.0), lam, beta, c)


def _spread_condition(r, a, ones, lam, beta, c):
    drift = _drift(a, r, len(ones), lam)
    return r - c * drift.noise / (2 * (drift.curvature + lam * beta))


def _rest_condition(a, ones, lam, beta, c):
    k = len(ones)
    r = _resting_spread(a, k, lam, beta, c)
    drift = _drift(a, r, k, lam)
    return drift.force - a * (beta + drift.curvature / lam)


def _symmetric_arguments(classes, separation, ridge, step):
    return (
        arguments.whole("classes", classes, 2),
        arguments.number("separation", separation, arguments.POSITIVE),
        arguments.number("ridge", ridge, arguments.NOT_NEGATIVE),
        arguments.number("step", step, arguments.POSITIVE),
    )


def _root(matrix: Array) -> Array:
    """L with LL' = matrix, which may be singular."""
    size = matrix.shape[0]
    return jnp.linalg.cholesky(matrix + JITTER * (1 + jnp.trace(matrix)) * jnp.eye(size))


def softmax_curvature(weights: ArrayLike, x: ArrayLike, classes: ArrayLike, *, kind: str = "hessian") -> Array:
    """The Hessian of softmax regression over a sample, or the second moment of its gradients, block by block.

    Setting     `weights` (k, d), samples `x` (n, d) with `classes` 0 … k − 1
    Result      block bc: the mean of π_b(δ_bc − π_c)YY' (hessian), of (π_b − y_b)(π_c − y_c)YY' (gradient)
    References  benarous2024

    >>> softmax_curvature([[0.0], [0.0]], [[2.0]], [0]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    w = arguments.array("weights", weights, ("k", "d"), why="a row for each class")
    k, d = w.shape
    y = arguments.array("x", x, ("n", d), why="a row for each sample")
    allowed = arguments.Allowed(lambda c: (c >= 0) & (c < k) & (c == np.round(c)), f"a class, 0 to {k - 1}")
    labels = arguments.array("classes", classes, (y.shape[0],), allowed=allowed)
    chance = jax.nn.softmax(y @ w.T, axis=1)
    if arguments.choice("kind", kind, ("hessian", "gradient")) == "hessian":
        middle = chance[:, :, None] * (jnp.eye(k)[None] - chance[:, None, :])
    else:
        error = chance - jax.nn.one_hot(labels.astype(int), k, dtype=float)
        middle = error[:, :, None] * error[:, None, :]
    return jnp.einsum("nbc,ni,nj->bicj", middle, y, y).reshape(k * d, k * d) / y.shape[0]
