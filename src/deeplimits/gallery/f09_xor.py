"""Learning XOR: neurons fall towards the four clusters, and all four must be found.

A two-layer ReLU network of K neurons on clusters at ±μ (label 1) and ±ν (label 0) of covariance I/λ, logistic loss,
online SGD. Trajectories of output weights and overlaps, K = 4, N = 500 dimensions (small: 100), λ = 10 and 1000, ridge
0.05, step 1/N, beside the effective equations from the same start. And the share of random starts from which all four
clusters are found, over K = 2 to 20, for clusters without width, beside its exact probability.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.gallery.figure import Check
from deeplimits.gallery.marks import averages
from deeplimits.gallery.xor_sgd import trained
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points
from deeplimits.theory import online_sgd

NOTES = "Mathematics of Deep Learning, ch 12.4"
LIMITS = ("xor-gmm-ballistic", "xor-success-probability")
SEPARATIONS, RIDGE, TIMES = (10.0, 1000.0), 0.05, np.array([0.0, 1, 2, 4, 6, 9, 12, 16, 20])
OUTPUT = np.array([1.0, 0.8, -0.9, -0.7])
ALONG = np.array([[0.3, 0.1], [-0.3, 0.1], [0.1, 0.25], [0.05, -0.3]])
WIDTHS, WEAK, SMALL, PER_UNIT, UNITS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20), 0.02, 1e-3, 10, 120


def compute(run):
    """Paths of the network's statistics, and how often all clusters are found."""
    n, runs, starts = run.pick((500, 10, 2000), (100, 8, 500))
    run.expect(len(SEPARATIONS) + len(WIDTHS))
    found = {"n": n, "starts": starts}
    for lam in SEPARATIONS:
        for name, path in run.step(f"paths, λ = {lam:g}", paths, separation=lam, n=n, runs=runs).items():
            found[f"{name} {lam:g}"] = path
    found["share"] = [run.step(f"K = {k}", found_all, width=k, starts=starts)["share"] for k in WIDTHS]
    return found


def begin(random, n):
    """Weights with these overlaps, their rest random of squared length 0.2 each."""
    rest = random.normal(size=(len(OUTPUT), n - 2)) * np.sqrt(0.2 / n)
    return OUTPUT, np.concatenate([ALONG, rest], axis=1)


def paths(separation, n, runs):
    """v, Wμ and Wν over time, a row for each run."""
    rows = []
    for number in range(runs):
        random = np.random.default_rng(number)
        states = trained(random, *begin(random, n), TIMES, separation=separation, ridge=RIDGE)
        rows.append([[v, w[:, 0], w[:, 1]] for v, w in states])
    v, mu, nu = np.moveaxis(np.array(rows), 2, 0)
    return {"v": v, "mu": mu, "nu": nu}


def found_all(width, starts):
    """The share of starts whose network fits all four clusters in the end: SGD on points at ±μ and ±ν."""
    random = np.random.default_rng(width)
    v, w = random.normal(size=(starts, width)), SMALL * random.normal(size=(starts, width, 2))
    step = 1 / PER_UNIT
    for _ in range(UNITS * PER_UNIT):
        cluster = random.integers(4, size=starts)
        x = np.zeros((starts, 2))
        x[np.arange(starts), cluster // 2] = 1 - 2 * (cluster % 2)
        h = np.einsum("skd,sd->sk", w, x)
        error = 1 / (1 + np.exp(-np.sum(v * np.maximum(h, 0), axis=1))) - (cluster < 2)
        push = error[:, None] * v * (h > 0)
        v = v - step * (error[:, None] * np.maximum(h, 0) + WEAK * v)
        w = w - step * (push[:, :, None] * x[:, None, :] + WEAK * w)
    # A cluster is found when its score exceeds an eighth of that at rest, log((1 − 4α)/4α).
    least = np.log((1 - 4 * WEAK) / (4 * WEAK)) / 8
    scores = [
        sign * np.sum(v * np.maximum(side * w[:, :, axis], 0), axis=1)
        for axis, sign in ((0, 1), (1, -1))
        for side in (1, -1)
    ]
    return {"share": np.mean(np.all(np.array(scores) > least, axis=0))}


@functools.cache
def stated(separation):
    """The effective equations from the mean start, at the times."""
    start = online_sgd.XorState(*map(jnp.asarray, (OUTPUT, ALONG[:, 0], ALONG[:, 1], 0.2 * np.eye(len(OUTPUT)))))
    path = jax.jit(lambda start: online_sgd.xor_ballistic(start, TIMES, separation, RIDGE, 1.0, points=2048, steps=160))
    return path(start)


def draw(data):
    """Output weights and overlaps for each width of the clusters; success over K."""
    n, pictures = int(data["n"]), []
    for lam in SEPARATIONS:
        path = stated(lam)
        parts = [("v", path.output[:, 0], "v_1"), ("mu", path.along_mu[:, 0], "⟨W_1, μ⟩"),
                 ("nu", path.along_nu[:, 2], "⟨W_3, ν⟩"), ("nu", path.along_nu[:, 0], "⟨W_1, ν⟩")]  # fmt: skip
        which = (0, 0, 2, 0)
        marks = []
        for i, ((name, line, words), neuron) in enumerate(zip(parts, which, strict=True)):
            marks.append(Line(TIMES, line, series=i, label=f"theory, {words}"))
            values = data[f"{name} {lam:g}"][:, :, neuron]
            marks.append(averages(TIMES, values, series=i, label=f"SGD, N = {n}" if i == 0 else ""))
        said = f"Clusters of width λ^(−1/2), λ = {lam:g}: neurons turn to the mean they overlap most with."
        pictures.append(Picture(Axis("time", "t"), Axis("statistics of the network"), tuple(marks), said))
    dense = np.arange(2, 21)
    share, starts = np.array(data["share"]), int(data["starts"])
    error = np.sqrt(np.maximum(share * (1 - share), 1 / starts) / starts)
    marks = (
        Line(dense, [float(online_sgd.xor_success_probability(int(k))) for k in dense], label="exact probability"),
        Points(WIDTHS, share, np.maximum(share - 2 * error, 0), np.minimum(share + 2 * error, 1), role=SIMULATION,
               label=f"share of {starts} random starts"),
    )  # fmt: skip
    said = "Four neurons could do it and succeed in 9 % of the starts; with 20 neurons 99 % find all four clusters."
    pictures.append(Picture(Axis("neurons", "K", whole=True), Axis("all four clusters found"), marks, said))
    return pictures


def check(data):
    """Ends of the paths, which leave the equations by O(1/N) on average; shares of success."""
    checks, n = [], int(data["n"])
    for lam in SEPARATIONS:
        at = f"t = {TIMES[-1]:g}, λ = {lam:g}"
        for name, line in (("v", stated(lam).output), ("mu", stated(lam).along_mu)):
            values = data[f"{name} {lam:g}"][:, -1, 0]
            error = np.hypot(values.std(ddof=1) / np.sqrt(len(values)), 2 / n)
            checks.append(Check(f"{name} of neuron 1 at {at}", values.mean(), error, line[-1, 0], 5))
    for k in (4, 8, 16):
        exact = float(online_sgd.xor_success_probability(k))
        error = np.sqrt(exact * (1 - exact) / int(data["starts"]))
        checks.append(Check(f"share of success, K = {k}", data["share"][WIDTHS.index(k)], error, exact, 5))
    return checks
