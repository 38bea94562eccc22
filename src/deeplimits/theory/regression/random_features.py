"""Ridge regression on random features of a given data set: training and test error for every number of features.

Conventions: rows of x (n, d) are the training points; features σ(⟨w_l, x⟩), l = 1, …, N, w_l ~ N(0, I) independent;
the fit minimizes (1/n)‖y − Σ'β‖² + λ‖β‖². Errors are mean squares, summed over outputs. Expectations over w only: the
data are fixed, whatever they are.
"""

import warnings
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidityWarning, ParameterError
from deeplimits.models.activations import ActivationLike
from deeplimits.models.architectures import FullyConnected
from deeplimits.models.atoms import Atoms
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, argument, array, at_least, known
from deeplimits.numerics.checks import valid
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.kernels.infinite_width import InfiniteWidth
from deeplimits.theory.spectra.ridge_equation import effective_ridge

# A mean that carries more than this share of the mean squared norm keeps quadratic forms from concentrating.
LARGEST_MEAN = 0.1
# Eigenvalues of the kernel below this share of n times the largest are rounding.
RANK = 1e-15


class FeatureErrors(NamedTuple):
    """Mean squared errors of the fit, and the effective ridge κ that explains them."""

    training: Floats
    test: Floats
    effective_ridge: Floats
    """κ: as N grows the fit is kernel ridge regression with ridge κ on the n×n kernel."""


class FeatureRegression(NamedTuple):
    """A data set seen through its random-feature kernel, decomposed once; then every (N, λ) costs O(n).

    Made by `feature_regression` from data, or by `from_kernels` from kernel matrices.
    """

    values: Float[Array, " n"]
    """Eigenvalues of the kernel K, increasing."""
    labels: Float[Array, "n k"]
    """Labels in the eigenbasis of K."""
    cross: Float[Array, "m n"]
    """Kernel between test and training points, in that basis."""
    test_labels: Float[Array, "m k"]
    test_trace: Scalar
    """Mean of K(x̂, x̂) over the test points."""

    def errors(self, features: ArrayLike, ridge: ArrayLike) -> FeatureErrors:
        """Training and test error with N features and ridge λ; the two broadcast against each other.

        Setting     fixed data, features σ(⟨w_l, x⟩) with Gaussian w_l, β̂ = argmin (1/n)‖y − Σ'β‖² + λ‖β‖²
        Result      κ solves N = tr K(K+κ)^{-1} + nλ/κ; with R = (K+κ)^{-1}, D = N − tr KRKR
                    train (κ²/n) y'R[(tr RKR/D) K + 1]Ry
                    test  (1/n̂)‖ŷ − K̂Ry‖² + (y'RKRy/D)(1/n̂) tr[K_{X̂X̂} − K̂(R + κR²)K̂']
        Validity    n, N, d large together, ‖X‖ bounded: centred data of unit scale; Lipschitz σ. At λ = 0 the test
                    error is infinite at N = rank K
        References  louart2018; liao2020
        """
        n = len(self.values)
        count, lam = argument("features", features, at_least(1)), argument("ridge", ridge, NOT_NEGATIVE)
        count, lam = jnp.broadcast_arrays(count, lam)
        k, square = self.values, jnp.sum(self.labels**2, axis=1)
        # N = Σ k/(k+κ) + nλ/κ is the equation of an effective ridge, with ratio n/N and ridge nλ/N.
        kappa = effective_ridge(n * lam / count, Atoms(k, jnp.full(n, 1 / n)), n / count)
        k, square, shift = same_rank(k, square, kappa[..., None])
        shifted = k + shift
        r = jnp.where(shifted > 0, 1 / jnp.where(shifted > 0, shifted, 1.0), 0.0)
        # κR, which is one on the null space of K however small κ is
        kept = jnp.where(shifted > 0, shift * r, 1.0)
        # N − tr KRKR = Σ kκ/(k+κ)² + nλ/κ, the last term N − rank K where κ = 0
        some = kappa > 0
        rank = jnp.sum(jnp.where(self.values > 0, 1.0, 0.0))
        slack = jnp.sum(k * r * kept, axis=-1) + jnp.where(some, n * lam / jnp.where(some, kappa, 1.0), count - rank)
        safe = jnp.where(slack > 0, slack, 1.0)
        growth = jnp.sum(k * r**2, axis=-1) / safe
        training = jnp.sum(square * kept**2 * (growth[..., None] * k + 1), axis=-1) / n
        told, fitted = same_rank(self.test_labels, jnp.einsum("mn,...n,nk->...mk", self.cross, r, self.labels))
        residual = told - fitted
        seen, r = same_rank(jnp.mean(self.cross**2, axis=0), r)
        spread = self.test_trace - jnp.sum(seen * r * (1 + kept), axis=-1)
        fluctuation = jnp.sum(square * k * r**2, axis=-1) / safe * jnp.maximum(spread, 0.0)
        test = jnp.mean(jnp.sum(residual**2, axis=-1), axis=-1) + jnp.where(slack > 0, fluctuation, jnp.inf)
        return FeatureErrors(training, test, kappa)

    def resolvent(self, features: ArrayLike, ridge: ArrayLike) -> Floats:
        """The limit of (1/n) y'Qy, Q = (Σ'Σ/n + λ)^{-1}, λ > 0: Q ≍ ((N/n)K/(1+δ) + λ)^{-1} = (κ/λ)(K+κ)^{-1}."""
        lam = argument("ridge", ridge, POSITIVE, "the resolvent has a pole at 0")
        return self.resolvent_at(self.errors(features, lam).effective_ridge, lam)

    def delta(self, features: ArrayLike, ridge: ArrayLike) -> Floats:
        """δ = (1/n) tr KQ̄ = Nκ/(nλ) − 1, λ > 0, in Q̄ = ((N/n)K/(1+δ) + λ)^{-1}, the equivalent of the resolvent."""
        lam = argument("ridge", ridge, POSITIVE, "the resolvent has a pole at 0")
        k, kappa = same_rank(self.values, self.errors(features, lam).effective_ridge[..., None])
        # tr K(K + κ)^{-1} κ/(nλ), without a difference
        return jnp.sum(k / (k + kappa), axis=-1) * kappa[..., 0] / (len(self.values) * lam)

    def equivalent_eigenvalues(self, features: ArrayLike, ridge: ArrayLike) -> Floats:
        """Those of Q̄ = (κ/λ)(K + κ)^{-1}, which has the eigenvectors of K; in the order of `values`, last axis."""
        lam = argument("ridge", ridge, POSITIVE, "the resolvent has a pole at 0")
        kappa = self.errors(features, lam).effective_ridge
        k, shift, lam = same_rank(self.values, kappa[..., None], jnp.broadcast_to(lam, kappa.shape)[..., None])
        return shift / lam / (k + shift)

    def resolvent_at(self, effective_ridge: ArrayLike, ridge: ArrayLike) -> Floats:
        """`resolvent` where the effective ridge κ is already known: (κ/λ)(1/n) y'(K+κ)^{-1}y."""
        kappa, lam = jnp.asarray(effective_ridge, float), jnp.asarray(ridge, float)
        square, k, shift = same_rank(jnp.sum(self.labels**2, axis=1), self.values, kappa[..., None])
        forms = jnp.sum(square / (k + shift), axis=-1)
        return kappa / lam * forms / len(self.values)


def feature_regression(
    x: ArrayLike, y: ArrayLike, x_test: ArrayLike, y_test: ArrayLike, *, activation: ActivationLike = "relu"
) -> FeatureRegression:
    """A data set of your own, ready for the error of ridge regression on any number of random features.

    `x` (n, d), `y` (n,) or (n, k), `x_test` (m, d), `y_test` (m,) or (m, k). Centre the data (subtract the training
    mean) and scale them to rows of norm about one. Data that are not centred get a warning: the theorem excludes a
    common direction that carries a sizeable share of the norm.

    >>> import numpy as np
    >>> i, j = np.arange(1, 7)[:, None], np.arange(1, 4)
    >>> x, new = np.cos(i * j + 0.3 * j) / np.sqrt(3), np.sin(0.7 * i[:4] * j + 0.1 * j) / np.sqrt(3)
    >>> y = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    >>> toy = feature_regression(x, y, new, np.array([1.0, 1.0, -1.0, -1.0]))
    >>> found = toy.errors(features=4, ridge=0.1)
    >>> round(float(found.training), 10), round(float(found.test), 10)
    (0.2965665358, 1.0584273279)
    """
    x = array("x", x, ("n", "d"), why="one point in each row")
    x_test = array("x_test", x_test, ("m", x.shape[1]), why="as many columns as x")
    y, y_test = _labels("y", y, x.shape[0]), _labels("y_test", y_test, x_test.shape[0])
    if known(x):
        _warn_of_a_mean(x)
    # Var w = 1 for every input: C_w/d = 1.
    network = InfiniteWidth(FullyConnected(1, activation, weight_variance=float(x.shape[1])))
    return from_kernels(
        network.conjugate(x), network.conjugate(x_test, x), network.conjugate(x_test, diagonal=True), y, y_test
    )


def from_kernels(
    kernel: Float[Array, "n n"],
    cross: Float[Array, "m n"],
    diagonal: Float[Array, " m"],
    y: ArrayLike,
    y_test: ArrayLike,
) -> FeatureRegression:
    """From K on the training points (n, n), between test and training points (m, n), and K(x̂, x̂) on the test points."""
    kernel = array("kernel", kernel, ("n", "n"))
    n = kernel.shape[0]
    cross = array("cross", cross, ("m", n), why="one column for each row of kernel")
    diagonal = array("diagonal", diagonal, cross.shape[:1], why="one entry for each row of cross")
    values, vectors = jnp.linalg.eigh(kernel)
    noise = RANK * n * jnp.max(jnp.abs(values))
    values = valid(
        values,
        values[0] >= -1e3 * noise,
        "the kernel is not positive semidefinite, as every kernel is",
        lambda: f": it has the eigenvalue {float(values[0]):g}",
    )
    values = jnp.where(values > noise, values, 0.0)
    y, y_test = _labels("y", y, n), _labels("y_test", y_test, cross.shape[0])
    if y.shape[1] != y_test.shape[1]:
        raise ParameterError(f"y has {y.shape[1]} outputs and y_test has {y_test.shape[1]}; they must be equally many")
    # What a direction outside the range of K says about test points is rounding.
    projected = jnp.where(values > 0, cross @ vectors, 0.0)
    return FeatureRegression(values, vectors.T @ y, projected, y_test, jnp.mean(diagonal))


def _warn_of_a_mean(x):
    share = float(jnp.sum(jnp.mean(x, axis=0) ** 2) / jnp.mean(jnp.sum(x**2, axis=1)))
    if share > LARGEST_MEAN:
        warnings.warn(
            f"x is not centred: its mean carries {100 * share:.0f} % of the squared norm, and the predictions will "
            "be off; subtract the mean of the training points from training and test points",
            OutsideValidityWarning,
            stacklevel=3,
        )


def _labels(name, y, count):
    y = array(name, y, (count,), (count, "k"), why="one label or one row of outputs for each point")
    return y if y.ndim == 2 else y[:, None]
