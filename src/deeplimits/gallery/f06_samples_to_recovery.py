"""How many samples it takes to find a direction: N, N log N, or N^(k−1), by the information exponent k.

Spherical SGD on tensor PCA, L = −⟨λθ^(⊗k) + W, x^(⊗k)⟩ with λ = 4, from the correlation 2.5/√N up to 0.83, in N = 100
to 3000 dimensions (small: 50 to 400); step 1/N for k = 1, 2 and N^(−3/2) for k = 3. The correlation is followed as the
Markov chain that it is, in the exact law of the weights. Lines are times of the limiting equation.
"""

import functools

import numpy as np

from deeplimits.gallery.figure import Check
from deeplimits.gallery.marks import averages
from deeplimits.predictions.picture import Axis, Line, Picture
from deeplimits.theory import online_sgd

NOTES = "Mathematics of Deep Learning, ch 11"
LIMITS = ("sample-complexity-thresholds",)
SIGNAL, BEGIN, END = 4.0, 2.5, 0.83
SAID = {1: "N", 2: "N log N", 3: "N²"}


def step_of(k, n):
    """The largest step that the exponent allows, in units of 1/N."""
    return 1.0 if k < 3 else n**-0.5


def compute(run):
    """Samples until the direction is found, for each exponent and dimension."""
    sizes, runs = run.pick(((100, 200, 400, 800, 1500, 3000), 100), ((50, 100, 200, 400), 60))
    run.expect(3 * len(sizes))
    found = {"sizes": sizes}
    for k in SAID:
        rows = [run.step(f"k = {k}, N = {n}", passages, k=k, n=n, runs=runs)["samples"] for n in sizes]
        found[f"k = {k}"] = np.stack(rows, axis=1)
    return found


def passages(k, n, runs):
    """The first step at which m exceeds the end, for each run."""
    random, rate = np.random.default_rng(10 * n + k), step_of(k, n) / n
    m, passed, count = np.full(runs, BEGIN / np.sqrt(n)), np.zeros(runs), 0
    while not passed.all():
        count += 1
        # The spherical gradient: kλm^(k−1) towards θ, and k slots of fresh noise in every direction.
        q = np.sqrt(1 - m**2)
        across = k * SIGNAL * m ** (k - 1) * q + np.sqrt(k) * random.standard_normal(runs)
        rest = k * random.chisquare(n - 2, runs)
        m = (m + rate * across * q) / np.sqrt(1 + rate**2 * (across**2 + rest))
        passed[(passed == 0) & (m > END)] = count
    return {"samples": passed}


@functools.cache
def stated(k, sizes):
    """Samples of the limiting equation from the same start."""
    landscape = online_sgd.tensor_pca(SIGNAL, k)
    return np.array([n * float(online_sgd.passage_time(landscape, BEGIN / n**0.5, END, step_of(k, n))) for n in sizes])


def draw(data):
    """Samples over the dimension, and per dimension for the first two."""
    sizes = tuple(int(n) for n in data["sizes"])
    dense = tuple(np.geomspace(sizes[0], sizes[-1], 25))
    marks, relative = [], []
    for i, (k, words) in enumerate(SAID.items()):
        line, found = stated(k, dense), data[f"k = {k}"]
        marks.append(Line(dense, line, series=i, label=f"k = {k}: {words}"))
        marks.append(averages(sizes, found, series=i, label=f"SGD, mean of {len(found)} runs" if i == 0 else ""))
        if k < 3:
            relative.append(Line(dense, line / dense, series=i, label=f"k = {k}"))
            relative.append(averages(sizes, found / np.array(sizes), series=i, label="SGD" if i == 0 else ""))
    x = Axis("dimension", "N", log=True)
    return [
        Picture(
            x,
            Axis("samples until recovery", "T", log=True),
            tuple(marks),
            "The samples needed grow like N, N log N and N² for information exponents 1, 2 and 3.",
        ),
        Picture(
            x,
            Axis("samples per dimension", "T/N", low=0.0),
            tuple(relative),
            "For k = 2 the samples per dimension grow with log N; for k = 1 they settle.",
        ),
    ]


def slope(x, y):
    """Of a straight line through points."""
    return np.polyfit(x, y, 1)[0]


def check(data):
    """Slopes over the dimension beside those of the equation at the same dimensions, from the same starts.

    The equation leaves out the noise at the start, which moves T by a part that falls like 1/N for k = 1, 2; for k = 3
    it changes T by the same factor at every N. The equation itself has a gap of order N^(−1/2) in its power.
    """
    sizes = tuple(int(n) for n in data["sizes"])
    log, checks = np.log(sizes), []
    for k in SAID:
        found, theory = data[f"k = {k}"], stated(k, sizes)
        if k == 2:
            measured, wanted = found / np.array(sizes), theory / np.array(sizes)
            label = "samples per dimension for each e-fold of N, k = 2"
        else:
            measured, wanted, label = np.log(found), np.log(theory), f"power of N, k = {k}"
        mean, error = measured.mean(axis=0), measured.std(axis=0, ddof=1) / np.sqrt(len(found))
        weights = (log - log.mean()) / np.sum((log - log.mean()) ** 2)
        spread = np.sqrt(np.sum((weights * error) ** 2))
        checks.append(Check(label, slope(log, mean), np.hypot(spread, 1 / sizes[0]), slope(log, wanted), 5))
    checks.append(
        Check("power of N of the equation, k = 3", slope(log, np.log(stated(3, sizes))), 0, 2, sizes[0] ** -0.5)
    )
    return checks
