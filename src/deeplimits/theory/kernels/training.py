r"""Training with a fixed kernel: gradient flow and gradient descent on (1/2n)‖y − f(X)‖², at any time.

    d/dt f_t(x) = (1/n) Σ_l K(x, x_l)(y_l − f_t(x_l))                        gradient flow
    f_{k+1}(x) = f_k(x) + (η/n) Σ_l K(x, x_l)(y_l − f_k(x_l))                gradient descent

In the eigenbasis of K the error of a mode with eigenvalue λ is multiplied by e^{−λt/n}, or by (1 − ηλ/n)^k. All answers
below come from one eigendecomposition, whatever the number of times. `times=inf` gives the end of training: kernel
interpolation, by the pseudo-inverse where K is singular.

K is the tangent kernel of one network (then f_0 is that network's output at the start), or its limit at infinite
width (then f_0 is a Gaussian process, and `trained_ensemble` gives mean and covariance of f_t).
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics.arguments import POSITIVE, UNTIL_THE_END, Allowed, array, number, of_kind
from deeplimits.numerics.checks import valid
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.kernels import positive

STEPS = Allowed(lambda x: (x >= 0) & (x == np.round(x)), "a whole number, at least 0 (inf for the end)")


class Predictions(NamedTuple):
    """Outputs during training; a leading axis counts the times where several were given."""

    train: Floats
    test: Floats | None = None


def largest_stable_step(kernel: ArrayLike, *, samples: int | None = None) -> Scalar:
    """η below which gradient descent on (1/2n)‖y − f‖² converges: 2n/λ_max.

    >>> float(largest_stable_step([[1.0, 0.5], [0.5, 1.0]]).round(12))
    2.666666666667
    """
    eigenvalues = positive.modes(kernel).eigenvalues
    return 2 * (eigenvalues.shape[0] if samples is None else samples) / eigenvalues[-1]


def gradient_flow(
    kernel: ArrayLike,
    targets: ArrayLike,
    times: ArrayLike,
    *,
    start: ArrayLike | None = None,
    cross: ArrayLike | None = None,
    test_start: ArrayLike | None = None,
) -> Predictions:
    r"""Outputs of a model with a fixed kernel under gradient flow, on training points and on new ones.

    Setting     loss (1/2n)‖y − f(X)‖², kernel matrix K (n, n) of the training points, f_0(X) = `start`,
                `cross` = K(x, X) of shape (t, n), f_0(x) = `test_start`; targets (n,) or (n, k) for k outputs
    Result      f_t(X) = y + e^{−Kt/n}(f_0(X) − y)
                f_t(x) = f_0(x) + K(x, X) K⁻¹(I − e^{−Kt/n})(y − f_0(X)); mode i decays at the rate λ_i/n
                t = ∞: the interpolant closest to f_0; parameters end at θ_0 + J⁺(y − f_0), J Jᵀ = K
    Validity    exact for models linear in their parameters; for a wide network up to O(1/width) with its own kernel,
                O(width^(−1/2)) with the limiting one
    References  jacot2018; lee2019; bartlett2021 Sec 5

    >>> f = gradient_flow([[1.0, 0.5], [0.5, 1.0]], [1.0, 0.0], 3.0)
    >>> f.train.round(14).tolist()
    [0.71111711134856, 0.18348366408958]
    """
    times = _times(times, "times")
    found = positive.modes(kernel)
    return _predict(found, _flow_decay(found, times), _flow_gain(found, times), targets, start, cross, test_start)


def gradient_descent(
    kernel: ArrayLike,
    targets: ArrayLike,
    step: ArrayLike,
    steps: ArrayLike,
    *,
    start: ArrayLike | None = None,
    cross: ArrayLike | None = None,
    test_start: ArrayLike | None = None,
) -> Predictions:
    r"""Outputs of a model with a fixed kernel after `steps` steps of gradient descent; arguments as `gradient_flow`.

    Setting     θ ← θ − η∇(1/2n)‖y − f(X)‖², f linear in θ with kernel K
    Result      f_k(X) − y = (I − ηK/n)^k (f_0(X) − y), stable for η < 2n/λ_max; if K ≥ λ_0 and ηλ_max ≤ n then
                L_k ≤ (1 − ηλ_0/n)^{2k} L_0
    Validity    exact for linear models; a network adds O(η²) per step, O(width^(−1/2)) in all; η ≥ 2n/λ_max is refused,
                with the largest eigenvalue named
    References  jacot2018; lee2019; polyak1964

    >>> f = gradient_descent([[2.0, 0.5], [0.5, 1.0]], [1.0, -1.0], 0.3, 10)
    >>> f.train.round(14).tolist()
    [0.8500832201024, -0.66344046126566]
    """
    counts = array("steps", steps, (), ("times",), allowed=STEPS)
    found = positive.modes(kernel)
    eta = _stable(step, found)
    n = found.eigenvalues.shape[0]
    eigenvalues, null, k = same_rank(found.eigenvalues, found.null, counts[..., None])
    # |1 − ηλ/n|^k with its sign; a power with a real exponent would not know (−1)^k
    shrink = eta * eigenvalues / n
    factor = 1 - shrink
    sign = jnp.where((factor < 0) & (jnp.mod(k, 2.0) == 1), -1.0, 1.0)
    size = jnp.where(factor == 0, 1.0, jnp.abs(factor))
    # log|1 − ηλ/n|, with all digits of small ηλ/n
    logarithm = jnp.where(factor > 0, jnp.log1p(-jnp.where(factor > 0, shrink, 0.0)), jnp.log(size))
    moving = jnp.where(null, 0.0, logarithm)
    decay = sign * jnp.exp(jnp.where(moving == 0, 0.0, moving * k))
    decay = jnp.where((factor == 0) & (k > 0), 0.0, decay)
    rate = jnp.where(null, 1.0, eigenvalues)
    # Σ_{j<k} (1 − ηλ/n)^j η/n = (1 − decay)/λ, without cancellation for small ηλ/n
    gain = jnp.where(factor > 0, -jnp.expm1(jnp.where(moving == 0, 0.0, moving * k)), 1 - decay) / rate
    forever = jnp.isinf(k)
    still = jnp.where(forever, 0.0, jnp.where(forever, 0.0, k) * eta / n)
    gain = jnp.where(null, still, jnp.where(factor == 0, (1 - decay) / rate, gain))
    return _predict(found, decay, gain, targets, start, cross, test_start)


class Ensemble(NamedTuple):
    """The Gaussian process that infinitely wide networks form after training, at new points; for each "
    "time of several."""

    mean: Floats
    covariance: Floats


class Blocks(NamedTuple):
    """One kernel on training points X and new points x: K(X, X), K(x, X), K(x, x)."""

    train: Float[Array, "n n"]
    cross: Float[Array, "t n"]
    test: Float[Array, "t t"]


def blocks(kernel, train: ArrayLike, test: ArrayLike) -> Blocks:
    """The three parts of `kernel(x1, x2)`, such as `net.nngp`, on training and new inputs (rows).

    >>> found = blocks(lambda x, z=None: x @ (x if z is None else z).T, jnp.eye(3), jnp.ones((2, 3)))
    >>> found.train.shape, found.cross.shape, found.test.shape
    ((3, 3), (2, 3), (2, 2))
    """
    return Blocks(kernel(train), kernel(test, train), kernel(test))


def trained_ensemble(
    nngp: Blocks, ntk: Blocks, targets: ArrayLike, time: ArrayLike, *, step: ArrayLike | None = None
) -> Ensemble:
    r"""Mean and covariance at new points of infinitely wide networks trained for a time t from random starts.

    Setting     Σ (`nngp`) covariance of the outputs at the start, Θ (`ntk`) the tangent kernel; loss (1/2n)‖y − f(X)‖²
    Result      A_t = Θ_XX⁻¹(I − e^{−Θ_XX t/n});  mean Θ_xX A_t y
                covariance Σ_xx + Θ_xX A_t Σ_XX A_t Θ_Xx − Θ_xX A_t Σ_Xx − Σ_xX A_t Θ_Xx
    Validity    widths → ∞ at fixed data and time; with `step`, `time` counts steps of gradient descent; several times
                (times,) give a mean and a covariance for each
    References  lee2019; jacot2018

    This is the law of f_t over networks, each of which keeps its own f_0: one network with known outputs at the start
    is `gradient_flow(..., start=f_0(X), test_start=f_0(x))` and has no spread at all. Nor is it the posterior of a
    Gaussian process: only for Θ = Σ (the last layer trained alone) and t = ∞ do the two coincide.

    >>> import jax.numpy as jnp
    >>> same = Blocks(jnp.eye(1), jnp.array([[0.5]]), jnp.eye(1))
    >>> found = trained_ensemble(same, same, [2.0], jnp.inf)
    >>> found.mean.tolist(), found.covariance.tolist()
    ([1.0], [[0.75]])
    """
    of_kind("nngp", nngp, Blocks)
    of_kind("ntk", ntk, Blocks)
    moments = positive.modes(ntk.train, name="ntk.train")
    when = _times(time, "time")
    if step is None:
        gain = _flow_gain(moments, when)
    else:
        eta = _stable(step, moments)
        unit = jnp.eye(moments.eigenvalues.shape[0])
        return _descent_ensemble(nngp, ntk, targets, eta, when, unit)
    seen = ntk.cross @ moments.vectors
    return _gaussian(nngp, ntk, jnp.einsum("tj,...j,ij->...ti", seen, gain, moments.vectors), targets)


def _descent_ensemble(nngp, ntk, targets, eta, steps, unit) -> Ensemble:
    # Descent is linear in the targets: the response to unit targets is the row Θ_xX A_k
    response = gradient_descent(ntk.train, unit, eta, steps, cross=ntk.cross).test
    return _gaussian(nngp, ntk, response, targets)


def _gaussian(nngp: Blocks, ntk: Blocks, pull: Array | None, targets) -> Ensemble:
    assert pull is not None
    y, single = positive.column(targets, ntk.train.shape[0], "targets")
    mean = jnp.einsum("...ti,ik->...tk", pull, y)
    mixed = jnp.einsum("...ti,si->...ts", pull, nngp.cross)
    trained = jnp.einsum("...ti,ij,...sj->...ts", pull, nngp.train, pull)
    prior, trained, mixed = same_rank(nngp.test, trained, mixed)
    covariance = prior + trained - mixed - jnp.swapaxes(mixed, -1, -2)
    return Ensemble(mean[..., 0] if single else mean, covariance)


def _flow_decay(found: positive.Modes, times: Array) -> Array:
    """e^{−λt/n}, also at t = ∞, where null modes stay."""
    return 1 - _exhausted(found, times)


def _flow_gain(found: positive.Modes, times: Array) -> Array:
    """(1 − e^{−λt/n})/λ; its limit t/n where λ = 0, and the pseudo-inverse's 0 there once t = ∞."""
    n = found.eigenvalues.shape[0]
    forever = jnp.isinf(times)[..., None]
    still = jnp.where(forever, 0.0, jnp.where(forever, 0.0, times[..., None]) / n)
    null, rate, gone = same_rank(found.null, jnp.where(found.null, 1.0, found.eigenvalues), _exhausted(found, times))
    return jnp.where(null, still, gone / rate)


def _exhausted(found: positive.Modes, times: Array) -> Array:
    forever = jnp.isinf(times)[..., None]
    finite = jnp.where(forever, 0.0, times[..., None])
    eigenvalues, null, finite, forever = same_rank(found.eigenvalues, found.null, finite, forever)
    gone = -jnp.expm1(-eigenvalues * finite / found.eigenvalues.shape[0])
    return jnp.where(forever, jnp.where(null, 0.0, 1.0), gone)


def _predict(found, decay, gain, targets, start, cross, test_start) -> Predictions:
    n = found.eigenvalues.shape[0]
    y, single = positive.column(targets, n, "targets")
    f0 = jnp.zeros_like(y) if start is None else positive.column(start, n, "start")[0]
    if f0.shape != y.shape:
        raise ParameterError(f"start has shape {f0.shape} and targets {y.shape}; they must have equally many outputs")
    # Coefficients of the residual in the eigenbasis, (n, k)
    residual = found.vectors.T @ (y - f0)
    train = jnp.subtract(*same_rank(y, jnp.einsum("ij,...j,jk->...ik", found.vectors, decay, residual)))
    test = None
    if cross is not None:
        seen = positive.cross_matrix(cross, n) @ found.vectors
        test = jnp.einsum("tj,...j,jk->...tk", seen, gain, residual)
        if test_start is not None:
            test = jnp.add(*same_rank(test, positive.column(test_start, seen.shape[0], "test_start")[0]))
    elif test_start is not None:
        raise ParameterError("test_start was given without cross; give the kernel between new and training points too")
    if not single:
        return Predictions(train, test)
    return Predictions(train[..., 0], None if test is None else test[..., 0])


def _times(given: ArrayLike, name: str) -> Floats:
    return array(name, given, (), ("times",), allowed=UNTIL_THE_END)


def _stable(step: ArrayLike, found: positive.Modes) -> Scalar:
    """The step, which must be small enough for gradient descent to converge."""
    eta, n, largest = number("step", step, POSITIVE), found.eigenvalues.shape[0], found.eigenvalues[-1]
    return valid(
        eta,
        eta * largest < 2 * n,
        f"the step diverges: gradient descent on {n} points needs one below 2n/λ_max",
        lambda: f" = {2 * n / float(largest):.6g}, and step = {float(eta):g}",
    )
