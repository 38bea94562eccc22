"""Trained linear models against their limits, beyond the usual comparisons."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import deeplimits as dl
from deeplimits.ensembles import data, linear_training, mixtures
from deeplimits.theory.regression.mixture_dynamics import classification_dynamics

SMALL = (24, 48, 96)


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_classification_below_at_and_above_the_threshold(gamma, ridge):
    for strength, start in ((1.0, 0.3), (0.5, 1.0)):
        limit = dl.limits.GradientDescentDynamicsGmm(
            gamma=gamma, ridge=ridge, strength=strength, start=start, times=[0.2, 1.0, 4.0, 15.0]
        )
        comparison = dl.compare(limit, sizes=SMALL, samples=2000)
        assert comparison.agrees, str(comparison)


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_descent_step_by_step(gamma, ridge):
    """Gradient descent itself, in small steps, averaged over data sets."""
    n, step, systems = 200, 0.0025, 60
    marks = jnp.array([80, 400, 1600])
    p = round(gamma * n)

    def one(key):
        direction, signs, deviations, start = data.gaussian_arrays(key, (p,), (n,), (n, p), (p,))
        mean = mixtures.class_mean(direction, jnp.asarray(1.5))
        x, y = mixtures.two_classes(signs, deviations, mean)
        start = jnp.sqrt(0.3 / p) * start
        path = linear_training.ridge_descent(x, y, jnp.asarray(ridge), start, jnp.asarray(step), np.arange(1601))
        w = path[marks]
        seen = y * (w @ x.T)
        return jnp.stack([w @ mean, jnp.sum(w**2, axis=1), jnp.mean(seen, axis=1), jnp.var(seen, axis=1)])

    drawn = np.asarray(jax.lax.map(jax.jit(one), jax.random.split(jax.random.key(0), systems)))
    stated = np.stack(classification_dynamics(step * marks.astype(float), gamma, 1.5, start=0.3, ridge=ridge)[:4])
    error = drawn.std(axis=0) / np.sqrt(systems)
    # Steps of this size deviate from the flow by about ηλ_max/2, below 1 %, and n = 200 by O(1/n).
    assert np.all(np.abs(drawn.mean(axis=0) - stated) < 5 * error + 0.015 * np.abs(stated))


def test_a_training_variance_that_forgets_the_ridge_is_rejected():
    """(z−γ)φ² and (z−γ)m in the contour, not zφ² and zm: the difference is γ times the test variance."""
    limit = dl.limits.GradientDescentDynamicsGmm(ridge=0.3, times=[0.5, 5.0])
    comparison = dl.compare(limit, sizes=(32, 64, 128), samples=300)
    assert comparison.agrees, str(comparison)
    wrong = [
        right.beside(dataclasses.replace(right.stated, y=right.stated.y + limit.ridge * test.stated.y))
        for right, test in zip(comparison.trials["training_variance"], comparison.trials["test_variance"], strict=True)
    ]
    assert wrong[-1].stated.judge(wrong).outcome == "disagrees"
