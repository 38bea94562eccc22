"""A two-layer ReLU network that learns XOR online, and samples of its curvature: what F9, F13, F15 share."""

import jax.numpy as jnp
import numpy as np

from deeplimits.theory.online_sgd import XorState

SEPARATION, RIDGE, PER_DIMENSION = 10.0, 0.05, 10
KINDS = {"hessian": "Hessian", "gradient": "gradient moment G"}


def samples(random, count, d, separation=SEPARATION):
    """Points around ±e_1 (label 1) and ±e_2 (label 0), and their labels."""
    cluster = random.integers(4, size=count)
    y = random.normal(size=(count, d)) / np.sqrt(separation)
    y[np.arange(count), cluster // 2] += 1 - 2 * (cluster % 2)
    return y, cluster < 2


def trained(random, v, w, times, *, separation=SEPARATION, ridge=RIDGE):
    """Both layers at these times; step 1/d, time t = steps/d."""
    step, done = 1 / w.shape[1], 0
    for mark in np.round(np.asarray(times) * w.shape[1]).astype(int):
        ys, labels = samples(random, mark - done, w.shape[1], separation)
        for y, label in zip(ys, labels, strict=True):
            h = w @ y
            active = np.maximum(h, 0)
            error = 1 / (1 + np.exp(-v @ active)) - label
            v, w = (
                (1 - step * ridge) * v - step * error * active,
                (1 - step * ridge) * w - step * error * np.outer(v * (h > 0), y),
            )
        done = mark
        yield v, w


def statistics(v, w):
    """The summary statistics of a state."""
    rest = w[:, 2:]
    return XorState(*map(jnp.asarray, (v, w[:, 0], w[:, 1], rest @ rest.T)))


def fresh(random, v, w):
    """Fresh samples, their fields, and what each counts in the blocks of both matrices."""
    y, labels = samples(random, PER_DIMENSION * w.shape[1], w.shape[1])
    h = y @ w.T
    chance = 1 / (1 + np.exp(-np.maximum(h, 0) @ v))
    return y, h, dict(zip(KINDS, (chance * (1 - chance), (chance - labels) ** 2), strict=True))
