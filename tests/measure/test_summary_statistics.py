"""The estimator of effective dynamics, fed with losses only, against dense linear algebra and against SGD."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from deeplimits.ensembles import online_sgd
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.measure import summary_statistics as measured
from deeplimits.statistics import LEVEL
from deeplimits.theory.online_sgd import spiked_tensor, xor
from xor_network import ALONG_MU, ALONG_NU, OUTPUT, OVERLAPS
from xor_network import weights as weights_of

N = 12


def statistics(x):
    return jnp.stack([x[0], x @ x - x[0] ** 2])


def point(m, r, seed=0):
    rest = np.random.default_rng(seed).standard_normal(N)
    rest[0] = 0
    x = np.sqrt(r) * rest / np.linalg.norm(rest)
    x[0] = m
    return jnp.asarray(x)


def close(estimate, exact):
    gap = np.abs(np.asarray(estimate.value) - np.asarray(exact))
    widest = special.ndtri(1 - LEVEL / (2 * gap.size))
    assert np.all(gap <= widest * np.asarray(estimate.error) + 1e-9), (estimate, exact)


def pooled(key, loss, draw, values, x, step, draws, repeats):
    """The coefficients from many draws, a part of them at a time: what a 5 % error takes to be seen."""
    one = jax.jit(lambda key: measured.estimate(key, loss, draw, values, x, step, draws))
    parts = [one(part) for part in jax.random.split(key, repeats)]

    def together(name):
        estimates = [getattr(part, name) for part in parts]
        error = np.sqrt(sum(np.asarray(estimate.error) ** 2 for estimate in estimates)) / repeats
        return measured.Estimate(sum(np.asarray(estimate.value) for estimate in estimates) / repeats, error)

    return measured.Coefficients(parts[0].statistics, together("drift"), together("corrector"), together("diffusion"))


def close_and_sharp(estimate, exact):
    """Within its errors of what is exact, and not of what is 5 % off, either way."""
    close(estimate, exact)
    for factor in (1.05, 1 / 1.05):
        with pytest.raises(AssertionError):
            close(estimate, factor * np.asarray(exact))


def dense(x, mean, covariance, step):
    """f, g and Σ of (m, r) from the gradient's mean and covariance as full matrices."""
    jacobian = np.zeros((2, N))
    jacobian[0, 0] = 1
    jacobian[1] = 2 * np.asarray(x)
    jacobian[1, 0] = 0
    hessian = 2 * np.eye(N)
    hessian[0, 0] = 0
    return (
        jacobian @ mean,
        np.array([0, step / 2 * np.trace(covariance @ hessian)]),
        step * jacobian @ covariance @ jacobian.T,
    )


def test_online_pca():
    lam, step, x = 1.7, 0.1, point(0.4, 0.8)
    spread = np.eye(N)
    spread[0, 0] += lam
    direction = jnp.eye(N)[0]
    found = pooled(
        jax.random.key(0),
        online_sgd.pca_loss,
        lambda key: online_sgd.pca_sample(key, lam, direction),
        statistics,
        x,
        step,
        50_000,
        8,
    )
    sx = spread @ np.asarray(x)
    # ∇L = −2⟨x,Y⟩Y: by Wick, its covariance is 4[(x'Sx)S + Sxx'S]
    covariance = 4 * ((np.asarray(x) @ sx) * spread + np.outer(sx, sx))
    for estimate, exact in zip(
        (found.drift, found.corrector, found.diffusion), dense(x, -2 * sx, covariance, step), strict=True
    ):
        close_and_sharp(estimate, exact)
    np.testing.assert_allclose(found.velocity, -found.drift.value + found.corrector.value)


def test_spiked_matrix():
    lam, c, x = 2.0, 1.0, point(0.3, 0.7)
    spike = jnp.zeros((N, N)).at[0, 0].set(lam)
    found = pooled(
        jax.random.key(1),
        lambda x, y: jnp.sum((y - jnp.outer(x, x)) ** 2),
        lambda key: spike + jax.random.normal(key, (N, N)),
        statistics,
        x,
        c / N,
        15_000,
        8,
    )
    square = 0.3**2 + 0.7
    covariance = 4 * (2 * square * np.eye(N) + 2 * np.outer(x, x))
    mean = -4 * lam * 0.3 * np.eye(N)[0] + 4 * square * np.asarray(x)
    for estimate, exact in zip(
        (found.drift, found.corrector, found.diffusion), dense(x, mean, covariance, c / N), strict=True
    ):
        close_and_sharp(estimate, exact)
    # The closed form of the limit: the drift exactly, the rest up to 1/N.
    limit = spiked_tensor.spiked_dynamics(lam, 2, c)
    close(found.drift, limit.drift(jnp.array([0.3, 0.7])))
    close(found.diffusion, spiked_tensor.path_noise(jnp.array([0.3, 0.7]), 2, c) / N)


@pytest.mark.slow
def test_xor():
    dimension, lam, ridge, c = 200, 4.0, 0.05, 2.0
    state = xor.XorState(OUTPUT, ALONG_MU, ALONG_NU, OVERLAPS)
    weights = weights_of(dimension)

    def values(network):
        v, w = network
        gram = w[:, 2:] @ w[:, 2:].T
        return jnp.concatenate([v, w[:, 0], w[:, 1], jnp.stack([gram[0, 0], gram[0, 1], gram[1, 1]])])

    found = pooled(
        jax.random.key(2),
        lambda network, sample: online_sgd.xor_loss(network, sample, ridge),
        lambda key: online_sgd.xor_sample(key, lam, dimension),
        values,
        (state.output, weights),
        c / dimension,
        10_000,
        20,
    )

    def velocity(c):
        limit = xor.velocity(state, lam, ridge, c, points=16384)
        overlaps = limit.overlaps[jnp.array([0, 0, 1]), jnp.array([0, 1, 1])]
        return np.concatenate([limit.output, limit.along_mu, limit.along_nu, overlaps])

    # Without a corrector (c = 0) the velocity is the drift; what c adds is the corrector, of the form (N − O(1))/N. The
    # quasi-random expectations are good to 3e-4.
    drift, corrector = velocity(0.0), velocity(c) - velocity(0.0)

    def drift_fits(factor):
        return np.all(np.abs(found.drift.value + factor * drift) < 5 * found.drift.error + 3e-4)

    def corrector_fits(factor):
        allowed = 5 * found.corrector.error + 0.02 * np.abs(corrector) + 1e-12
        return np.all(np.abs(found.corrector.value - factor * corrector) < allowed)

    for fits in (drift_fits, corrector_fits):
        assert fits(1.0)
        assert not fits(1.05)
        assert not fits(1 / 1.05)


def test_closability():
    lam = 1.7
    direction = jnp.eye(N)[0]

    def check(values, points):
        return measured.closability(
            jax.random.key(3),
            online_sgd.pca_loss,
            lambda key: online_sgd.pca_sample(key, lam, direction),
            values,
            points,
            0.1,
            2000,
        )

    assert check(statistics, [point(0.4, 0.8, seed) for seed in (0, 1)]).closed
    # The squared length alone does not close: the loss also sees the overlap.
    alone = check(lambda x: jnp.stack([x @ x]), [point(0.0, 1.0), point(0.9, 0.19)])
    assert not alone.closed
    assert alone.worst
    with pytest.raises(ParameterError, match="different statistics"):
        check(statistics, [point(0.4, 0.8), point(0.5, 0.8)])
    with pytest.raises(ParameterError, match="two or more"):
        check(statistics, [point(0.4, 0.8)])


def test_bad_input():
    def estimate(values=statistics, step=0.1, draws=100):
        return measured.coefficients(
            jax.random.key(0),
            online_sgd.pca_loss,
            lambda key: jax.random.normal(key, (N,)),
            values,
            jnp.zeros(N),
            step,
            draws,
        )

    with pytest.raises(ParameterError, match="draws"):
        estimate(draws=1)
    with pytest.raises(ParameterError, match="step"):
        estimate(step=-1.0)
    with pytest.raises(OutsideValidity, match="not differentiable"):
        measured.coefficients(
            jax.random.key(0), lambda x, y: jnp.sum((x - y) ** 2), lambda key: jax.random.normal(key, (N,)),
            lambda x: jnp.stack([jnp.sqrt(x @ x)]), jnp.zeros(N), 0.1, 100,
        )  # fmt: skip


def test_a_model_for_which_nothing_is_written_down():
    """A two-index teacher: the estimated coefficients give an ODE, and SGD follows it."""
    dimension, c = 100, 0.02

    def draw(key):
        a = jax.random.normal(key, (dimension,))
        return a, a[0] ** 2 + 0.5 * a[1] ** 2 + 0.3 * a[0] * a[1]

    def loss(x, sample):
        a, label = sample
        return (label - (a @ x) ** 2) ** 2

    def values(x):
        return jnp.stack([x[0], x[1], x[2:] @ x[2:]])

    def at(u):
        return jnp.zeros(dimension).at[0].set(u[0]).at[1].set(u[1]).at[2].set(jnp.sqrt(u[2]))

    start, steps = jnp.array([0.4, 0.3, 0.5]), 16
    end = 0.08

    @jax.jit
    def heun(key, u):
        # The same samples in both stages, so that the difference of the slopes is not noise.
        def slope(u):
            found = measured.estimate(key, loss, draw, values, at(u), c / dimension, 4000)
            return -found.drift.value + found.corrector.value

        first = slope(u)
        return u + end / steps * (first + slope(u + end / steps * first)) / 2

    u = start
    for key in jax.random.split(jax.random.key(4), steps):
        u = heun(key, u)

    run = jax.jit(jax.vmap(lambda key: online_sgd.euclidean(
        key, at(start), loss, draw, c / dimension, [round(end / c * dimension)], values)[0]))  # fmt: skip
    ends = np.asarray(run(jax.random.split(jax.random.key(5), 400)))
    error = ends.std(axis=0) / np.sqrt(400)
    np.testing.assert_array_less(np.abs(ends.mean(axis=0) - np.asarray(u)), 5 * error + 0.015)
    assert np.abs(np.asarray(u) - np.asarray(start)).min() > 0.05
