"""Phase portrait of SGD on a spiked matrix: where overlap and length flow, below, at and above the threshold.

Samples Y = λvv' + W, loss |Y − xx'|², step c/N with c = 1; m = ⟨x, v⟩ and r² the squared length of the rest. Lines are
the two equations from several starts up to t = 2, squares and diamonds their rest points; circles are SGD in N = 2000
dimensions (small: 300), one run from each start. λ = 0.8, 1 and 2; the threshold is λ = c.
"""

import functools

import jax
import numpy as np

from deeplimits.gallery.figure import Check
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Mark, Picture, Points
from deeplimits.theory import online_sgd

NOTES = "Mathematics of Deep Learning, Fig 4.1"
LIMITS = ("spiked-tensor-fixed-points", "spiked-tensor-ballistic")
SIGNALS, STEP = (0.8, 1.0, 2.0), 1.0
STARTS = ((0.05, 0.1), (0.3, 0.3), (0.9, 0.1), (1.4, 0.4), (0.2, 1.8), (0.8, 1.9), (1.4, 1.9))
TIMES = np.concatenate([[0.0], np.geomspace(0.01, 2, 31)])


def compute(run):
    """Paths of SGD from each start, for each signal."""
    n = run.pick(2000, 300)
    run.expect(len(SIGNALS))
    return {"n": n} | {f"λ = {lam:g}": run.step(f"λ = {lam:g}", paths, signal=lam, n=n)["path"] for lam in SIGNALS}


def paths(signal, n):
    """(m, r) over the times, from each start: weights x in R^N, v the first axis, Y never formed."""
    random = np.random.default_rng(round(10 * signal))
    x = random.standard_normal((len(STARTS), n))
    x[:, 0] = 0
    m, r = np.array(STARTS).T
    x *= (np.sqrt(r) / np.linalg.norm(x, axis=1))[:, None]
    x[:, 0] = m
    seen, done = [], 0
    for mark in np.round(TIMES * n / STEP).astype(int):
        for _ in range(done, mark):
            # (W + W')x is Gaussian, of deviation 2|x| along x and √2|x| across.
            length = np.linalg.norm(x, axis=1, keepdims=True)
            g = random.standard_normal(x.shape)
            along = np.sum(g * x, axis=1, keepdims=True) / length
            gradient = 4 * length**2 * x - 2 * (np.sqrt(2) * length * g + (2 - np.sqrt(2)) * along * x)
            gradient[:, 0] -= 4 * signal * x[:, 0]
            x = x - STEP / n * gradient
        done = mark
        seen.append(np.stack([x[:, 0], np.sum(x[:, 1:] ** 2, axis=1)], axis=-1))
    return {"path": np.stack(seen, axis=1)}


@functools.cache
def flow(signal):
    """The equations from each start, over the times."""
    path = jax.jit(jax.vmap(lambda start: online_sgd.spiked_ballistic(signal, 2, STEP, start, TIMES)))
    return list(np.asarray(path(np.array(STARTS))))


def draw(data):
    """One portrait for each signal."""
    n, pictures = int(data["n"]), []
    for lam in SIGNALS:
        rest = [p for p in online_sgd.spiked_rest_points(lam, 2, STEP) if p.overlap >= 0]
        marks: list[Mark] = [
            Line(path[:, 0], path[:, 1], label="" if i else "equations") for i, path in enumerate(flow(lam))
        ]
        for i, path in enumerate(data[f"λ = {lam:g}"]):
            marks.append(
                Points(path[::2, 0], path[::2, 1], role=SIMULATION, series=0, label="" if i else f"SGD, N = {n}")
            )
        for stable, words, series in ((True, "stable rest point", 1), (False, "unstable rest point", 2)):
            chosen = [p for p in rest if p.stable == stable]
            if chosen:
                at = [p.overlap for p in chosen], [p.radius for p in chosen]
                # A rest point is drawn in the colour of its kind: lines of theory through a single place.
                marks.append(Points(*at, role=SIMULATION, series=series, label=f"{words} (theory)"))
        said = {
            0.8: "Below the threshold (λ = 0.8) every path ends at m = 0, r² = c: the signal is forgotten.",
            1.0: "At the threshold (λ = 1) the overlap still decays, but slowly.",
            2.0: "Above it (λ = 2) m = 0 repels and paths end at m = √(λ − c) = 1, r² = c.",
        }[lam]
        x, y = Axis("overlap with the spike", "m"), Axis("squared length of the rest", "r^2", low=0.0)
        pictures.append(Picture(x, y, tuple(marks), said))
    return pictures


def check(data):
    """The ends of all paths beside the equations, averaged over starts: a run is off by O(N^(−1/2))."""
    checks, n = [], int(data["n"])
    for lam in SIGNALS:
        for column, name in enumerate(("m", "r²")):
            half = int(np.argmin(np.abs(TIMES - 0.5)))
            apart = [
                run[half, column] - path[half, column]
                for run, path in zip(data[f"λ = {lam:g}"], flow(lam), strict=True)
            ]
            error = np.std(apart, ddof=1) / np.sqrt(len(apart))
            mean = np.mean([path[half, column] for path in flow(lam)])
            label = f"mean {name} at t = {TIMES[half]:.2g}, λ = {lam:g}"
            checks.append(Check(label, mean + np.mean(apart), np.hypot(error, 1 / np.sqrt(n * len(apart))), mean, 5))
    return checks
