"""Softmax regression learnt online on k Gaussian classes, and eigenvectors of its curvature: what F11, F12, F14 share.

Points y = μ_a + N(0, I/λ), a uniform on k orthonormal means, cross-entropy with ridge β, step 1/d, time t = steps/d.
Blocks cc of the Hessian, E p_c(1 − p_c) y y', and of the second moment of gradients, E (p_c − 1{a = c})² y y', are
averaged over M = 10d fresh samples.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from deeplimits.theory import landscape

CLASSES, SEPARATION, RIDGE, PER_DIMENSION = 10, 10.0, 0.01, 10
KINDS = {"hessian": "Hessian", "gradient": "gradient moment G"}


def softmax(z):
    """Probabilities of the classes, along the last axis."""
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def trained(random, means, times):
    """Weights, a row for each class, at these times."""
    k, d = means.shape
    x, step, done = random.normal(size=(k, d)) / np.sqrt(d), 1 / d, 0
    for mark in np.round(np.asarray(times) * d).astype(int):
        for _ in range(done, mark):
            a = random.integers(k)
            y = means[a] + random.normal(size=d) / np.sqrt(SEPARATION)
            error = softmax(x @ y)
            error[a] -= 1
            x = (1 - step * RIDGE) * x - step * np.outer(error, y)
        done = mark
        yield x


def eigenpairs(random, x, means, classes, count):
    """(class, kind, values, vectors): the largest eigenpairs of its blocks, over fresh samples."""
    k, d = x.shape
    labels = random.integers(k, size=PER_DIMENSION * d)
    y = means[labels] + random.normal(size=(len(labels), d)) / np.sqrt(SEPARATION)
    chance = softmax(y @ x.T)
    for c in classes:
        weights = chance[:, c] * (1 - chance[:, c]), (chance[:, c] - (labels == c)) ** 2
        for kind, w in zip(KINDS, weights, strict=True):
            matrix = products(y, w)
            values, vectors = eigsh(matrix, k=count, which="LA", tol=1e-5, v0=np.cos(np.arange(d)))  # pyright: ignore[reportArgumentType]
            yield c, kind, values[::-1], vectors[:, ::-1]


def products(y, w):
    """(1/M) Σ w y y', known by its products."""

    def product(v):
        return y.T @ (w * (y @ v)) / len(y)

    shape = (y.shape[1], y.shape[1])
    return LinearOperator(shape, matvec=product, dtype=float)  # pyright: ignore[reportCallIssue]


@functools.cache
def summary(times):
    """The summary statistics of the weights at these times, by their equations."""
    return landscape.kgmm_symmetric_path(np.array(times), CLASSES, SEPARATION, RIDGE, 1.0)


_outliers = jax.jit(landscape.weighted_outliers)


@functools.cache
def stated(times, index, kind):
    """What theory says at one of the times, of the block 11: alignment, eigenvalues, edge, and ⟨v_1, μ_a⟩ for all a."""
    k, along = CLASSES, summary(times)
    amplitude, rest, common = (float(part[index]) for part in along)
    projector = np.eye(k) - 1 / k
    state = landscape.MixtureState(jnp.asarray(amplitude * projector), jnp.asarray(rest * projector + common / k))
    found = _outliers(landscape.kgmm_weighted_block(state, SEPARATION, PER_DIMENSION, kind=kind, points=128))
    x = np.append(np.asarray(state.means[0]), np.linalg.cholesky(np.asarray(state.rest))[0])
    return {
        "alignment": float(np.sqrt(landscape.outlier_alignment(found, x, k))),
        "eigenvalues": np.asarray(found.eigenvalues)[:k],
        "edge": float(found.edge),
        "levels": float(np.sqrt(found.projections[0]))
        * np.asarray(found.directions[:k, 0])
        * np.sign(float(found.directions[0, 0])),
    }
