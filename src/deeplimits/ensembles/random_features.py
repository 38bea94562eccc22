"""Random features, drawn."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.ensembles import estimators
from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.shapes import Floats, Scalar


class RidgeErrors(NamedTuple):
    """Mean squared errors of ridge regression, and what its training labels y say through the resolvent."""

    training: Floats
    test: Floats
    resolvent: Floats
    """y'(ΦΦ'/n + γ)^{-1}y/n."""


def neurons(
    key: PRNGKeyArray, activation: ActivationLike, x: Float[Array, "n d"], count: int
) -> Float[Array, "n count"]:
    """σ(⟨w_l, x⟩) for independent w_l ~ N(0, I).

    >>> neurons(jax.random.key(0), "relu", jnp.ones((3, 2)), 5).shape
    (3, 5)
    """
    return named(activation).value(x @ jax.random.normal(key, (x.shape[1], count)))


def fourier(key: PRNGKeyArray, x: Float[Array, "n d"], count: int, *, scale: float = 1.0) -> Float[Array, "n count"]:
    """√2 cos(⟨w_l, x⟩ + b_l), w_l ~ N(0, I/scale²), b_l uniform on the circle: features of the Gaussian kernel.

    >>> fourier(jax.random.key(0), jnp.ones((3, 2)), 5).shape
    (3, 5)
    """
    w_key, b_key = jax.random.split(key)
    phase = jax.random.uniform(b_key, (count,), maxval=2 * jnp.pi)
    return jnp.sqrt(2.0) * jnp.cos(x @ jax.random.normal(w_key, (x.shape[1], count)) / scale + phase[None, :])


def ridge_errors_along(
    features: Float[Array, "n+m N"],
    y: Float[Array, " n"],
    y_test: Float[Array, " m"],
    ridge: Scalar,
    counts: Sequence[int],
    *,
    repeats: int = 1,
) -> RidgeErrors:
    """`ridge_errors` with several numbers of features, in increasing order, taken from one draw.

    With more features than points their leading columns are taken; with fewer, a mean over as many disjoint sets as
    there are, `repeats` at most. The training points come first.
    """
    few, many = [c for c in counts if c < len(y)], [c for c in counts if c >= len(y)]
    found = []
    if few:
        found.append(_with_few(features, y, y_test, ridge, few, repeats))
    if many:
        found.append(_with_many(features, y, y_test, ridge, many))
    return RidgeErrors(*(jnp.concatenate(parts) for parts in zip(*found, strict=True)))


def _with_few(features, y, y_test, ridge, counts, repeats):
    n, widest = len(y), max(counts)
    sets = [(c, k * c) for c in counts for k in range(min(repeats, features.shape[1] // c))]
    labels = jnp.concatenate([y, y_test])
    # Room for the last set, whatever its size.
    features = jnp.pad(features, ((0, 0), (0, widest)))

    def errors(chosen):
        count, start = chosen
        # All sets have one shape: features that a set does not have are zero, and so are their coefficients.
        there = jnp.arange(widest) < count
        phi = jnp.where(there[None, :], jax.lax.dynamic_slice_in_dim(features, start, widest, axis=1), 0.0)
        # β̂ = (Φ'Φ/n + γ)^{-1}Φ'y/n, and (ΦΦ'/n + γ)^{-1}y = (y − Φβ̂)/γ
        beta = _solve(phi[:n].T @ phi[:n] / n + ridge * jnp.eye(widest), phi[:n].T @ y / n)
        left = labels - phi @ beta
        return _errors(left, y, left[:n] / ridge)

    sizes = np.array(sets)
    found = jax.lax.map(errors, (jnp.asarray(sizes[:, 0]), jnp.asarray(sizes[:, 1])))
    same = sizes[:, 0] == np.array(counts)[:, None]
    return RidgeErrors(*(jnp.asarray(same / same.sum(axis=1, keepdims=True)) @ part for part in found))


def _with_many(features, y, y_test, ridge, counts):
    n = len(y)
    labels = jnp.concatenate([y, y_test])
    # Kernels of all points with the training points; each grows out of the last by what the new features bring.
    parts = [features[:, a:b] @ features[:n, a:b].T for a, b in itertools.pairwise([0, *counts])]
    kernels = jnp.tensordot(jnp.tri(len(parts), dtype=float), jnp.stack(parts), 1) / n

    def errors(kernel):
        # Φβ̂ = (ΦΦ'/n)(ΦΦ'/n + γ)^{-1}y
        solved = _solve(kernel[:n] + ridge * jnp.eye(n), y)
        return _errors(labels - kernel @ solved, y, solved)

    # One after the other: see `estimators.NestedLeastSquares`.
    return jax.lax.map(errors, kernels)


def _solve(gram, right):
    factor = jax.lax.linalg.cholesky(gram, symmetrize_input=False)
    return solve_triangular(factor, solve_triangular(factor, right, lower=True), lower=True, trans=1)


def _errors(left, y, solved):
    n = len(y)
    return RidgeErrors(jnp.mean(left[:n] ** 2), jnp.mean(left[n:] ** 2), solved @ y / n)


def ridge_errors(
    features: Float[Array, "n N"],
    y: Float[Array, " n"],
    test_features: Float[Array, "m N"],
    y_test: Float[Array, " m"],
    ridge: Scalar,
) -> RidgeErrors:
    """Mean squared training and test error of argmin (1/n)‖y − Φβ‖² + γ‖β‖², γ > 0.

    >>> one = jnp.ones((1, 1))
    >>> [float(part.round(12)) for part in ridge_errors(one, one[0], one, one[0], jnp.asarray(1.0))]
    [0.25, 0.25, 0.5]
    """
    beta = estimators.ridge_fit(features, y, ridge)
    left, missed = y - features @ beta, y_test - test_features @ beta
    # (ΦΦ'/n + γ)^{-1}y = (y − Φβ̂)/γ
    return _errors(jnp.concatenate([left, missed]), y, left / ridge)
