"""Three ways that the risk of a committee machine falls: classical limit, plateau, noise floor.

One-pass SGD on a two-layer network of erf units against a teacher of its kind, time t = νγ/(dp) after ν samples. The
classical limit of small learning rates (γ = 0.05, small: 0.2; two students, one teacher) in d = 5, 10 and 50
dimensions; two students and two teachers at γ = 1 in d = 1000 (small: 100), which first learn the mean of the teachers
and wait on a plateau until each takes one teacher; and the same with label noise of variance 0.01, where the risk ends
on a floor.
"""

import functools

import jax.numpy as jnp
import numpy as np
from scipy.special import erf

from deeplimits.gallery.figure import Check
from deeplimits.gallery.marks import averages, mean_and_error
from deeplimits.models.committees import Overlaps, Task
from deeplimits.predictions.picture import Axis, Line, Picture, Rule
from deeplimits.theory.two_layer import overlaps

NOTES = "Wonders of high-dimensions, regimes"
LIMITS = ("classical-gradient-flow-limit", "saad-solla-ode", "symmetric-plateau-and-specialization")
DIMENSIONS = (5, 10, 50)
SLOW, NOISE = 0.05, 0.1
EARLY = np.geomspace(0.1, 10, 9)
LATE = np.array([0.1, 0.3, 1, 3, 10, 20, 35, 50, 65, 80, 100, 130, 180, 250, 350.0])
INPUTS = 4000


def setting(kind, rate=SLOW):
    """What is learnt and where it begins: one teacher at a small rate, or two teachers without and with noise."""
    if kind == "classical":
        return Task([[1.0]], rate), Overlaps([[0.3], [0.1]], [[0.45, 0.03], [0.03, 0.65]])
    m = np.array([[0.22, 0.08], [0.08, 0.22]])
    return Task(jnp.eye(2), 1.0, NOISE if kind == "noise" else 0.0), Overlaps(m, m @ m.T + 0.1 * np.eye(2))


def compute(run):
    """Overlaps and risks of finite networks."""
    d, rate = run.pick((1000, SLOW), (100, 0.2))
    run.expect(len(DIMENSIONS) + 2)
    few, many = run.pick((48, 16), (12, 10))
    found = {"d": d, "rate": rate}
    for dimension in DIMENSIONS:
        one = run.step(
            f"d = {dimension}", trained, kind="classical", dimension=dimension, runs=few, times=EARLY, rate=rate
        )
        found[f"classical {dimension}"] = one["risk"]
    late = LATE[: run.pick(None, 12)]
    for kind in ("plateau", "noise"):
        one = run.step(kind, trained, kind=kind, dimension=d, runs=many, times=late)
        found |= {kind: one["risk"], f"{kind} m": one["m"]}
    return found


def trained(kind, dimension, runs, times, rate=SLOW):
    """Risk and overlaps with the teachers at these times, a row for each run.

    Of a sample x only the fields of all units count, which are Gaussian of covariance Ω = [[Q, M], [M', P]], and the
    squared length of the rest of x, which is χ²: the overlaps are followed step by step in the law of the weights'.
    """
    task, start = setting(kind, rate)
    p, k, step, noise = start.students, start.teachers, float(task.step), float(task.noise)
    m, q = (np.repeat(np.asarray(part)[None], runs, axis=0) for part in (start.m, start.q))
    teacher, random, done = np.repeat(np.eye(k)[None], runs, axis=0), np.random.default_rng(dimension), 0
    risks, seen = [], []

    def fields(inputs):
        omega = np.block([[q, m], [np.swapaxes(m, 1, 2), teacher]]) + 1e-13 * np.eye(p + k)
        z = random.standard_normal((runs, p + k, inputs))
        return np.linalg.cholesky(omega) @ z, np.sum(z**2, axis=1)

    def left(values):
        values = erf(values / np.sqrt(2))
        return values[:, p:].mean(axis=1) - values[:, :p].mean(axis=1)

    for mark in np.round(np.asarray(times) * dimension * p / step).astype(int):
        for _ in range(done, mark):
            values, length = fields(1)
            error = left(values)[:, 0] + noise * random.standard_normal(runs)
            values = values[:, :, 0]
            # w_i moves by g_i x/√d, g_i = (γ/p) E σ'(λ_i)
            g = step / p * error[:, None] * np.sqrt(2 / np.pi) * np.exp(-(values[:, :p] ** 2) / 2)
            square = length[:, 0] + random.chisquare(dimension - p - k, runs)
            cross = g[:, :, None] * values[:, None, :p]
            m = m + g[:, :, None] * values[:, None, p:] / dimension
            q = q + (cross + np.swapaxes(cross, 1, 2)) / dimension
            q = q + g[:, :, None] * g[:, None, :] * (square / dimension**2)[:, None, None]
        done = mark
        risks.append(np.mean(left(fields(INPUTS)[0]) ** 2, axis=1) / 2)
        seen.append(m)
    return {"risk": np.array(risks).T, "m": np.swapaxes(np.array(seen), 0, 1)}


@functools.cache
def stated(kind, rate=SLOW, variance=True):
    """The overlap equations, at the times of the points and between them."""
    dense = grid(kind)
    return dense, overlaps.trajectory(*setting(kind, rate), dense, variance=variance)


def grid(kind):
    """Times to draw a line through, those of the points among them."""
    times = EARLY if kind == "classical" else LATE
    return np.unique(np.concatenate([np.geomspace(0.01, times[-1], 200), times]))


def at(kind, times, values):
    """The line's values at the times of the points."""
    dense = grid(kind)
    return np.asarray(values)[np.searchsorted(dense, times)]


def draw(data):
    """Classical limit, plateau and specialization, noise floor."""
    d, time = int(data["d"]), Axis("time", "t", log=True)
    dense, flow = stated("classical", variance=False)
    first = Picture(
        time,
        Axis("risk", "R", log=True),
        (
            Line(dense, flow.risk, label="gradient flow, every d"),
            *(
                averages(EARLY, data[f"classical {n}"], series=i, label=f"SGD, d = {n}")
                for i, n in enumerate(DIMENSIONS)
            ),
        ),
        "With a small learning rate the risk falls in one way in 5, 10 and 50 dimensions: gradient flow.",
    )
    dense, path = stated("plateau")
    _, noisy = stated("noise")
    runs = data["plateau m"]
    marks = runs.shape[1]
    height = float(overlaps.symmetric_plateau(2).risk)
    second = Picture(
        time,
        Axis("risk", "R", log=True, low=1e-7),
        (
            Line(dense, path.risk, label="overlap equations"),
            Line(dense, noisy.risk, series=1, label="with label noise"),
            Rule(height, label="height of the plateau", series=2),
            averages(LATE[:marks], data["plateau"], series=0, label=f"SGD, d = {d}"),
            averages(LATE[:marks], data["noise"], series=1, label="SGD with label noise"),
        ),
        "With two teachers the risk waits on a plateau before it falls again; label noise stops it at a floor.",
    )
    third = Picture(
        time,
        Axis("overlap of student and teacher", "M_{ir}"),
        (
            Line(dense, path.m[:, 0, 0], series=0, label="own teacher, theory"),
            Line(dense, path.m[:, 0, 1], series=1, label="other teacher, theory"),
            averages(LATE[:marks], runs[:, :, 0, 0], series=0, label=f"own teacher, SGD, d = {d}"),
            averages(LATE[:marks], runs[:, :, 0, 1], series=1, label=f"other teacher, SGD, d = {d}"),
        ),
        "On the plateau a student resembles both teachers alike; then it specializes: one overlap goes to 1, the other "
        "to 0.",
    )
    return [first, second, third]


def check(data):
    """Risks of SGD beside the equations, with their variance term; and when the students specialize.

    Deviations of the mean are of order 1/d, and grow along the plateau: they count as 20/d of the overlap.
    """
    checks, d, rate = [], int(data["d"]), float(data["rate"])
    for n in DIMENSIONS:
        mean, error = mean_and_error(data[f"classical {n}"][:, -2])
        theory = at("classical", EARLY, stated("classical", rate)[1].risk)[-2]
        checks.append(Check(f"risk at t = {EARLY[-2]:.3g}, d = {n}, γ = {rate:g}", mean, error, theory, 5))
    last = data["noise"].shape[1] - 1
    for index in (4, 8, min(12, last)):
        mean, error = mean_and_error(data["plateau m"][:, index, 0, 0] - data["plateau m"][:, index, 0, 1])
        path = stated("plateau")[1].m
        theory = at("plateau", LATE, path[:, 0, 0] - path[:, 0, 1])[index]
        checks.append(
            Check(f"specialization at t = {LATE[index]:g}", mean, np.hypot(error, 20 / d * theory / 5), theory, 5)
        )
    mean, error = mean_and_error(data["noise"][:, -1])
    theory = at("noise", LATE, stated("noise")[1].risk)[last]
    checks.append(
        Check(f"risk with label noise at t = {LATE[last]:g}", mean, np.hypot(error, theory * 2 / d), theory, 5)
    )
    return checks
