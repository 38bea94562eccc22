"""Interpolation without harm: estimates that fit every noisy label and still learn.

Regression at the centre of a ball in d = 2 and 5 dimensions, n uniform points, target ‖x‖ and noise 1. Averages of the
k nearest neighbours, k = 1 to 50 at n = 1000; and the Nadaraya-Watson smoother with the singular kernel ‖u‖^(−a),
a = 0.4d/2, which goes through every label, with the bandwidth n^(−1/(2+d)), over n. Lines are exact means.
"""

import functools

import numpy as np

from deeplimits.gallery.figure import Check
from deeplimits.gallery.marks import averages, mean_and_error
from deeplimits.predictions.picture import Axis, Line, Picture, Rule
from deeplimits.theory import regression

NOTES = "Mathematics of Deep Learning, ch 5"
LIMITS = ("knn-bias-variance", "nadaraya-watson-singular-kernel")
DIMENSIONS, NEIGHBOURS, POINTS = (2, 5), (1, 2, 3, 5, 8, 12, 20, 30, 50), 1000
SIZES, NOISE = (10, 30, 100, 300, 1000, 3000, 10000), 1.0


def singularity(d):
    """a, below d/2, where the variance would no longer fall."""
    return 0.4 * d / 2


def compute(run):
    """Squared errors of both estimates at the centre, averaged over the noise."""
    draws = run.pick(4000, 400)
    run.expect(len(DIMENSIONS) * (1 + len(SIZES)))
    found = {}
    for d in DIMENSIONS:
        found[f"knn {d}"] = run.step(f"neighbours, d = {d}", neighbours, d=d, draws=draws)["error"]
        rows = [run.step(f"smoother, d = {d}, n = {n}", smoother, d=d, n=n, draws=draws)["error"] for n in SIZES]
        found[f"smoother {d}"] = np.stack(rows, axis=1)
    return found


def distances(random, d, n, draws):
    """Distances of n uniform points of the ball from its centre."""
    return random.random((draws, n)) ** (1 / d)


def neighbours(d, draws):
    """(estimate − 0)² for each k, the estimate with the mean of its noise squared added: a row for each draw."""
    random = np.random.default_rng(d)
    nearest = np.sort(distances(random, d, POINTS, draws), axis=1)[:, : max(NEIGHBOURS)]
    bias = np.cumsum(nearest, axis=1) / np.arange(1, max(NEIGHBOURS) + 1)
    return {"error": np.stack([bias[:, k - 1] ** 2 + NOISE**2 / k for k in NEIGHBOURS], axis=1)}


def smoother(d, n, draws):
    """The same for the weights ‖x_i‖^(−a) within the bandwidth, which add up to one; without a point there it is 0."""
    random, h = np.random.default_rng(d * n), n ** (-1 / (2 + d))
    rows = []
    for _ in range(draws):
        r = distances(random, d, n, 1)[0]
        r = r[r <= h]
        w = r ** -singularity(d)
        w = w / w.sum() if len(r) else w
        rows.append((w @ r) ** 2 + NOISE**2 * (w @ w))
    return {"error": rows}


@functools.cache
def nearest_theory(d):
    """Mean risk of k neighbours, k = 1 to 50."""
    k = range(1, max(NEIGHBOURS) + 1)
    bias = [float(regression.nearest_neighbours_bias_cone(1.0, 1.0, one, POINTS, d)) for one in k]
    return np.array(bias), NOISE**2 / np.array(k)


@functools.cache
def smoother_theory(d):
    """Mean risk of the smoother, at the sizes."""
    found = [
        regression.singular_kernel_risk(n, d, singularity(d), 1.0, 1.0, NOISE**2, n ** (-1 / (2 + d))) for n in SIZES
    ]
    return np.array([float(one.bias + one.variance) for one in found])


def draw(data):
    """Neighbours over k, smoother over n."""
    k = np.arange(1, max(NEIGHBOURS) + 1)
    marks = []
    for i, d in enumerate(DIMENSIONS):
        bias, variance = nearest_theory(d)
        marks.append(Line(k, bias + variance, series=i, label=f"theory, d = {d}"))
        marks.append(averages(NEIGHBOURS, data[f"knn {d}"], series=i, label=f"k nearest of {POINTS} points, d = {d}"))
    marks.append(Line(k, NOISE**2 / k, label="variance σ²/k, every d"))
    first = Picture(
        Axis("neighbours", "k", log=True, whole=True),
        Axis("mean squared error at the centre", log=True),
        tuple(marks),
        "More neighbours average the noise away, until the distance to them costs more: earlier in high dimension.",
    )
    marks = []
    for i, d in enumerate(DIMENSIONS):
        marks.append(Line(SIZES, smoother_theory(d), series=i, label=f"theory, d = {d}"))
        marks.append(averages(SIZES, data[f"smoother {d}"], series=i, label=f"interpolating smoother, d = {d}"))
    marks.append(Rule(NOISE**2, label="one neighbour: the noise stays"))
    second = Picture(
        Axis("samples", "n", log=True),
        Axis("mean squared error at the centre", log=True),
        tuple(marks),
        "A smoother that goes through every noisy label still learns: its error falls like n^(−2/(2+d)).",
    )
    return [first, second]


def check(data):
    """Means beside exact theory."""
    checks = []
    for d in DIMENSIONS:
        for k in (1, 8, 50):
            mean, error = mean_and_error(data[f"knn {d}"][:, NEIGHBOURS.index(k)])
            bias, variance = nearest_theory(d)
            checks.append(Check(f"error of {k} neighbours, d = {d}", mean, error, bias[k - 1] + variance[k - 1], 5))
        for n in (30, 10000):
            mean, error = mean_and_error(data[f"smoother {d}"][:, SIZES.index(n)])
            checks.append(
                Check(f"error of the smoother at n = {n}, d = {d}", mean, error, smoother_theory(d)[SIZES.index(n)], 5)
            )
    return checks
