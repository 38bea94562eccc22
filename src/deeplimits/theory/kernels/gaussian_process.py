r"""Gaussian processes and kernel ridge regression: one predictor, two readings.

The minimizer of ½Σ(f(x_i) − y_i)² + (λ/2)‖f‖² over the kernel's Hilbert space is the mean of the Gaussian process with
covariance K, observed with noise of variance λ. With K the covariance of an infinitely wide network at the start
(`net.nngp`), the posterior is that of the network's function under its prior.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.numerics.arguments import NOT_NEGATIVE, known, number, of_kind
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.kernels import positive
from deeplimits.theory.kernels.training import Blocks


class Posterior(NamedTuple):
    """The noiseless function at new points, given noisy values at the training points."""

    mean: Floats
    covariance: Float[Array, "t t"]
    log_evidence: Scalar


def kernel_ridge(kernel: ArrayLike, targets: ArrayLike, ridge: ArrayLike, *, cross: ArrayLike | None = None) -> Floats:
    r"""Kernel ridge regression: coefficients, or predictions at new points where `cross` = K(x, X) is given.

    Setting     minimize ½Σ(f(x_i) − y_i)² + (λ/2)‖f‖²_H; by the representer theorem f = Σ α_i K(·, x_i)
    Result      α = (K + λ)⁻¹ y, f(x) = k(x)ᵀα; the mean of a Gaussian process with noise variance λ. λ → 0: the
                interpolant of least norm, α = K⁺ y. In features, (ΦΦᵀ + λ)⁻¹ΦY = Φ(ΦᵀΦ + λ)⁻¹Y
    Validity    K positive semidefinite, λ ≥ 0; no jitter is ever added: at λ = 0 a singular K uses the pseudo-inverse
    References  rasmussen2006 Sec 2.2, 6.2; aronszajn1950

    >>> import jax.numpy as jnp
    >>> x = jnp.arange(3.0)
    >>> k = jnp.exp(-((x[:, None] - x[None]) ** 2) / 2)
    >>> cross = jnp.exp(-((0.5 - x) ** 2) / 2)[None]
    >>> float(kernel_ridge(k, [0.0, 1.0, 0.0], 0.1, cross=cross)[0].round(14))
    0.57454782952382
    """
    lam = number("ridge", ridge, NOT_NEGATIVE)
    if known(lam) and float(lam) > 0:
        y, single = positive.column(targets, jnp.asarray(kernel).shape[0], "targets")
        alpha = cho_solve((_factor(kernel, lam, "ridge"), True), y)
    else:
        found = positive.modes(kernel)
        y, single = positive.column(targets, found.eigenvalues.shape[0], "targets")
        vanish = found.null & (lam == 0)
        inverse = jnp.where(vanish, 0.0, 1 / jnp.where(vanish, 1.0, found.eigenvalues + lam))
        alpha = found.vectors @ (inverse[:, None] * (found.vectors.T @ y))
    answer = alpha if cross is None else positive.cross_matrix(cross, y.shape[0]) @ alpha
    return answer[:, 0] if single else answer


def posterior(prior: Blocks, targets: ArrayLike, noise_variance: ArrayLike) -> Posterior:
    r"""Posterior of a Gaussian process with covariance `prior` and label noise, and its log evidence.

    λ = `noise_variance`; mean k(x)ᵀ(K + λ)⁻¹y; covariance of the noiseless function k(x, x') − k(x)ᵀ(K + λ)⁻¹k(x').
    `targets` (n,) or (n, k)
    with k independent outputs, whose evidences are multiplied. For an infinitely wide network take
    `regression.blocks(net.nngp, x, x_test)`.

    >>> import jax.numpy as jnp
    >>> x, new = jnp.arange(3.0), jnp.array([0.5])
    >>> k = lambda a, b: jnp.exp(-((a[:, None] - b[None]) ** 2) / 2)
    >>> found = posterior(Blocks(k(x, x), k(new, x), k(new, new)), [0.0, 1.0, 0.0], 0.1)
    >>> round(float(found.mean[0]), 12), round(float(found.covariance[0, 0]), 12)
    (0.574547829524, 0.082395236285)
    """
    of_kind("prior", prior, Blocks)
    lower = _factor(prior.train, number("noise_variance", noise_variance, NOT_NEGATIVE), "noise_variance")
    y, single = positive.column(targets, lower.shape[0], "targets")
    cross = positive.cross_matrix(prior.cross, lower.shape[0], name="prior.cross")
    mean = cross @ cho_solve((lower, True), y)
    # k(x)ᵀ(K + λ)⁻¹k(x') = ⟨L⁻¹k(x), L⁻¹k(x')⟩: never negative on the diagonal
    half = solve_triangular(lower, cross.T, lower=True)
    covariance = prior.test - half.T @ half
    return Posterior(mean[:, 0] if single else mean, covariance, _log_evidence(lower, y))


def log_evidence(kernel: ArrayLike, targets: ArrayLike, noise_variance: ArrayLike) -> Scalar:
    """log N(y; 0, K + λ) = −½yᵀ(K + λ)⁻¹y − ½ log det(K + λ) − (n/2) log 2π; differentiable in both.

    >>> float(log_evidence([[1.0]], [0.0], 1.0).round(12))
    -1.265512123485
    """
    lower = _factor(kernel, number("noise_variance", noise_variance, NOT_NEGATIVE), "noise_variance")
    return _log_evidence(lower, positive.column(targets, lower.shape[0], "targets")[0])


def _log_evidence(lower: Array, y: Array) -> Array:
    white = solve_triangular(lower, y, lower=True)
    each = jnp.sum(jnp.log(jnp.diagonal(lower))) + y.shape[0] / 2 * jnp.log(2 * jnp.pi)
    return -jnp.sum(white**2) / 2 - y.shape[1] * each


def _factor(kernel: ArrayLike, noise: Array, name: str) -> Array:
    """The Cholesky factor of K + λ; nothing is added that was not asked for."""
    found = positive.matrix(kernel)
    shifted = found + noise * jnp.eye(found.shape[0])
    lower = jnp.linalg.cholesky(shifted)
    return valid(
        lower,
        jnp.isfinite(lower),
        f"K + {name} is not positive definite; raise {name}, or remove coinciding points",
        lambda: (
            f": the least eigenvalue of K is {float(jnp.linalg.eigvalsh(found)[0]):.6g} and {name} = {float(noise):g}"
        ),
    )
