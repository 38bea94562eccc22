"""Matrix PCA by SGD: two summary statistics follow an ODE, and near the saddle a diffusion decides.

Samples Y = λvv' + W, loss |Y − xx'|², step c/N with c = 1 and time t = steps/N, N = 2000 (small: 300); m = ⟨x, v⟩ and
r = |x|² − m². The spike is below, at and above the threshold λ = c: 0.8, 1 and 2. From a start with m = 0.3 the
statistics follow two equations; from a random start √N m is a diffusion of order one, stable below the threshold and
escaping above it.
"""

import functools

import numpy as np

from deeplimits.gallery.figure import Check
from deeplimits.gallery.marks import averages, histogram, mean_and_error
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points
from deeplimits.theory import online_sgd
from deeplimits.theory.online_sgd.spiked_tensor import microscopic_variance

NOTES = "Mathematics of Deep Learning, Fig 4.2"
LIMITS = ("spiked-tensor-ballistic", "spiked-microscopic-sde", "spiked-tensor-fixed-points")
SIGNALS, STEP, START = (0.8, 1.0, 2.0), 1.0, (0.3, 0.7)
LONG, SHORT = np.linspace(0, 2, 21)[1:], np.linspace(0, 0.3, 11)[1:]


def compute(run):
    """Paths of m and r from both starts, for each signal."""
    n, few, many = run.pick((2000, 12, 300), (300, 12, 300))
    run.expect(2 * len(SIGNALS))
    found = {"n": n}
    for lam in SIGNALS:
        visible = run.step(
            f"from m = 0.3, λ = {lam:g}", paths, signal=lam, n=n, runs=few, times=LONG, random_start=False
        )
        unseen = run.step(
            f"from chance, λ = {lam:g}", paths, signal=lam, n=n, runs=many, times=SHORT, random_start=True
        )
        found |= {f"m {lam:g}": visible["m"], f"r {lam:g}": visible["r"], f"u {lam:g}": np.sqrt(n) * unseen["m"]}
    return found


def paths(signal, n, runs, times, random_start):
    """m and r at the times, a row for each run; the matrix Y is never formed.

    What the gradient −2(Y + Y')x + 4|x|²x sees of the noise, (W + W')x, is Gaussian: of deviation 2|x| along x, and
    √2|x| across.
    """
    random = np.random.default_rng(round(100 * signal) + random_start)
    x = random.standard_normal((runs, n)) / np.sqrt(n)
    if not random_start:
        x[:, 0] = 0.0
        x *= np.sqrt(START[1]) / np.linalg.norm(x, axis=1, keepdims=True)
        x[:, 0] = START[0]
    seen, done = [], 0
    for mark in np.round(np.asarray(times) * n / STEP).astype(int):
        for _ in range(done, mark):
            length = np.linalg.norm(x, axis=1, keepdims=True)
            g = random.standard_normal((runs, n))
            along = np.sum(g * x, axis=1, keepdims=True) / length
            noise = np.sqrt(2) * length * g + (2 - np.sqrt(2)) * along * x
            gradient = 4 * length**2 * x - 2 * noise
            gradient[:, 0] -= 4 * signal * x[:, 0]
            x = x - STEP / n * gradient
        done = mark
        seen.append([x[:, 0], np.sum(x[:, 1:] ** 2, axis=1)])
    m, r = np.moveaxis(np.array(seen), 0, -1)
    return {"m": m, "r": r}


@functools.cache
def ballistic(signal):
    """The two equations at the times of the points, every tenth of a dense grid."""
    times = np.linspace(0, LONG[-1], 201)
    return times, np.asarray(online_sgd.spiked_ballistic(signal, 2, STEP, np.array(START), times))


def draw(data):
    """Overlap, radius, variance near the saddle, and its law."""
    n, time = int(data["n"]), Axis("time", "t")
    pictures = []
    for column, (name, axis, said) in enumerate(
        [
            ("m", Axis("overlap with the spike", "m"), "Above the threshold the overlap goes to √(λ − c) = 1, at and "
             "below it to 0: SGD follows the equations at every signal."),
            ("r", Axis("squared length of the rest", "r"), "The rest of the iterate settles at the size r = c of the "
             "step's own noise, whatever the signal."),
        ]
    ):  # fmt: skip
        lines = [
            Line(ballistic(lam)[0], ballistic(lam)[1][:, column], series=i, label=f"ODE, λ = {lam:g}")
            for i, lam in enumerate(SIGNALS)
        ]
        points = [
            averages(LONG, data[f"{name} {lam:g}"], series=i, label=f"SGD, N = {n}" if i == 0 else "")
            for i, lam in enumerate(SIGNALS)
        ]
        pictures.append(Picture(time, axis, (*lines, *points), said))
    dense = np.linspace(0, SHORT[-1], 100)
    marks = []
    for i, lam in enumerate(SIGNALS):
        marks.append(
            Line(dense, microscopic_variance(lam, STEP, dense).variance, series=i, label=f"λ = {lam:g}, theory")
        )
        u = data[f"u {lam:g}"]
        variance, error = spread(u)
        marks.append(
            Points(SHORT, variance, variance - 2 * error, variance + 2 * error, series=i, role=SIMULATION,
                   label=f"{len(u)} runs from random starts" if i == 0 else "")
        )  # fmt: skip
    pictures.append(
        Picture(
            time,
            Axis("variance of the scaled overlap", r"\mathrm{Var}\,\sqrt{N}m", log=True),
            tuple(marks),
            "From a random start the overlap, times √N, stays of order one below the threshold and grows like "
            "e^(8(λ − c)t) in variance above it.",
        )
    )
    marks = []
    for i, lam in enumerate((SIGNALS[0], SIGNALS[-1])):
        sd = float(microscopic_variance(lam, STEP, SHORT[-1]).variance) ** 0.5
        x = np.linspace(-14, 14, 400)
        density = np.exp(-(x**2) / (2 * sd**2)) / (sd * np.sqrt(2 * np.pi))
        marks.append(histogram(data[f"u {lam:g}"][:, -1], np.linspace(-14, 14, 29), series=i, label=f"λ = {lam:g}"))
        marks.append(Line(x, density, series=i, label=f"Gaussian law, λ = {lam:g}"))
    pictures.append(
        Picture(
            Axis(f"scaled overlap √N m at time {SHORT[-1]:g}"),
            Axis("density"),
            tuple(marks),
            "Its law is Gaussian all along: which sign is found is decided by chance at the start.",
        )
    )
    return pictures


def spread(u):
    """Mean square over runs, and its standard error."""
    return mean_and_error(u**2)


def check(data):
    """Means beside the equations, which they leave by O(1/N); variances beside those of the diffusion."""
    n, checks = int(data["n"]), []
    for lam in SIGNALS:
        for column, name in enumerate("mr"):
            mean, error = mean_and_error(data[f"{name} {lam:g}"][:, 9])
            theory = ballistic(lam)[1][100, column]
            checks.append(Check(f"{name} at t = 1, λ = {lam:g}", mean, np.hypot(error, 2 / n), theory, 5))
        u = data[f"u {lam:g}"][:, -1]
        theory = float(microscopic_variance(lam, STEP, SHORT[-1]).variance)
        # The variance of a Gaussian, whose law theory gives; and a gap of order ∫E u² dt/N.
        error = theory * np.hypot(np.sqrt(2 / len(u)), 3 * theory * SHORT[-1] / n)
        checks.append(Check(f"variance of √N m at t = {SHORT[-1]:g}, λ = {lam:g}", np.mean(u**2), error, theory, 5))
    return checks
