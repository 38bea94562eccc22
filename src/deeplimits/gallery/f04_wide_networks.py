"""Wide networks: Gaussian outputs at the start, a tangent kernel that stands still, training like a kernel method.

Two-layer ReLU networks f(x) = √(2/m) Σ v_j max(⟨w_j, x⟩, 0) with standard normal weights, both layers trained, on 40
digits of unit length, zeros against ones, test on 20 others; widths m = 16 to 4096 (small: to 256), gradient descent on
(1/2n)|y − f|² with step 1 for 60 steps. Against the limits of infinite width: the Gaussian law of outputs, the tangent
kernel, and the outputs of the network linearized in its kernel.
"""

import numpy as np

from deeplimits.gallery.datasets import digits
from deeplimits.gallery.figure import Check
from deeplimits.gallery.marks import averages, histogram, mean_and_error
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Mark, Picture, Points
from deeplimits.theory import kernels

NOTES = "Mathematics of Deep Learning, ch 8"
LIMITS = ("ntk-recursion", "ntk-training-constancy", "kernel-gradient-flow")
TRAIN, TEST, STEP, STEPS, NETWORKS = 40, 20, 1.0, 60, 20000
NARROW = 8


def examples():
    """Digits 0 and 1 of unit length, their labels ±1; the first ones to train on."""
    x, classes = digits()
    chosen = np.flatnonzero(classes < 2)[: TRAIN + TEST]
    x = x[chosen]
    return x / np.linalg.norm(x, axis=1, keepdims=True), 1.0 - 2.0 * classes[chosen]


def compute(run):
    """Outputs of many networks at the start, and kernels and outputs of some through training."""
    widths, repeats = run.pick(((16, 64, 256, 1024, 4096), 8), ((16, 64, 128, 256), 6))
    run.expect(2 + len(widths))
    found = {"widths": widths}
    for width in (NARROW, 256):
        found[f"start {width}"] = run.step(f"start, m = {width}", starts, width=width)["output"]
    rows = [run.step(f"trained, m = {m}", trained, width=m, repeats=repeats) for m in widths]
    return found | rows[-1] | {key: np.stack([row[key] for row in rows], axis=1) for key in ("initial", "moved")}


def starts(width):
    """Outputs of independent networks at one digit: ⟨w, x⟩ is standard normal."""
    random = np.random.default_rng(width)
    rows = random.normal(size=(NETWORKS, width)) * np.maximum(random.normal(size=(NETWORKS, width)), 0)
    return {"output": np.sqrt(2 / width) * rows.sum(axis=1)}


def tangent(w, v, x):
    """The tangent kernel of a finite network, from its gradients: in v, and in w where a unit is active."""
    h = x @ w.T
    active, slope = np.maximum(h, 0), (h > 0) * v
    return 2 / len(v) * (active @ active.T + (x @ x.T) * (slope @ slope.T))


def trained(width, repeats):
    """Relative distance of the kernel from its limit, and its motion in training; outputs of the last network."""
    x, y = examples()
    limit, found, path = np.asarray(kernels.two_layer_ntk("relu", x)) * 2, {"initial": [], "moved": []}, []
    for number in range(repeats):
        random = np.random.default_rng(1000 * width + number)
        w, v = random.normal(size=(width, x.shape[1])), random.normal(size=width)
        before, path = tangent(w, v, x), []
        for _ in range(STEPS + 1):
            h = x @ w.T
            output = np.sqrt(2 / width) * np.maximum(h, 0) @ v
            path.append(output)
            pull = np.sqrt(2 / width) * (y - output)[:TRAIN] / TRAIN
            active = h[:TRAIN] > 0
            w, v = (
                w + STEP * ((pull[:, None] * active).T @ x[:TRAIN]) * v[:, None],
                v + STEP * np.maximum(h[:TRAIN], 0).T @ pull,
            )
        found["initial"].append(np.linalg.norm(before - limit) / np.linalg.norm(limit))
        found["moved"].append(np.linalg.norm(tangent(w, v, x) - before) / np.linalg.norm(before))
    return found | {"path": path, "limit": limit}


def predicted(data):
    """Outputs over the steps, by the infinite network's kernel from the finite one's start."""
    kernel, (_, y), start = data["limit"], examples(), data["path"][0]
    rows = []
    for k in range(STEPS + 1):
        found = kernels.gradient_descent(
            kernel[:TRAIN, :TRAIN], y[:TRAIN], STEP, k,
            start=start[:TRAIN], cross=kernel[TRAIN:, :TRAIN], test_start=start[TRAIN:],
        )  # fmt: skip
        rows.append(np.concatenate([np.asarray(found.train), np.asarray(found.test)]))
    return np.array(rows)


def draw(data):
    """Law of the output, distance and motion of the kernel, outputs over the steps."""
    grid = np.linspace(-4, 4, 200)
    marks: list[Mark] = [Line(grid, np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi), label="Gaussian, infinite width")]
    for i, width in enumerate((NARROW, 256)):
        marks.append(
            histogram(
                data[f"start {width}"], np.linspace(-4, 4, 41), series=i, label=f"{NETWORKS} networks, m = {width}"
            )
        )
    first = Picture(
        Axis("output at the start", "f_0(x)"),
        Axis("density"),
        tuple(marks),
        "Outputs of random networks become Gaussian as they get wider: eight neurons are too peaked, 256 are not.",
    )
    widths = data["widths"]
    initial, moved = data["initial"].mean(axis=0)[-1], data["moved"].mean(axis=0)[-1]
    dense = np.geomspace(widths[0], widths[-1], 50)
    second = Picture(
        Axis("width", "m", log=True),
        Axis("relative distance of kernels", log=True),
        (
            Line(dense, initial * (dense / widths[-1]) ** -0.5, label="theory: falls like m^(−1/2)", series=0),
            Line(dense, moved * (dense / widths[-1]) ** -1.0, label="theory: falls like 1/m", series=1),
            averages(widths, data["initial"], series=0, label="at the start, from the limit"),
            averages(widths, data["moved"], series=1, label="motion in training"),
        ),
        "The wider the network, the closer its tangent kernel is to the limit, and the less it moves in training.",
    )
    lines, path, steps = predicted(data), data["path"], np.arange(STEPS + 1)
    marks = []
    for i, (place, words) in enumerate(((0, "training digit"), (TRAIN, "a test digit"), (TRAIN + 1, "another one"))):
        marks.append(Line(steps, lines[:, place], series=i, label=f"kernel, {words}"))
        marks.append(
            Points(
                steps[::4],
                path[::4, place],
                role=SIMULATION,
                series=i,
                label="" if i else f"m = {int(widths[-1])}",
            )
        )
    third = Picture(
        Axis("steps of gradient descent"),
        Axis("output", "f(x)"),
        tuple(marks),
        "A wide network learns as the kernel method says, at training and at test digits, step by step.",
    )
    return [first, second, third]


def check(data):
    """Kurtosis of the start, powers of the width, and the distance of the outputs from the kernel's.

    Excess kurtosis at m neurons is 15/m: E(v max(w, 0))⁴ = 3·3/2 against 3(1/2)²; its standard error is estimated.
    """
    u = data[f"start {NARROW}"]
    fourth = u**4 - 6 * u**2 * np.mean(u**2)  # the influence of a draw on E u⁴ − 3(E u²)²
    kurtosis = np.mean(u**4) / np.mean(u**2) ** 2 - 3
    error = fourth.std(ddof=1) / np.sqrt(len(u))
    checks = [Check(f"excess kurtosis of the output, m = {NARROW}", kurtosis, error, 15 / NARROW, 5)]
    wide = (
        np.array(data["widths"]) >= 64
    )  # a kernel that moves by as much as its size is not in the regime of the power
    log = np.log(np.array(data["widths"])[wide])
    weights = (log - log.mean()) / np.sum((log - log.mean()) ** 2)
    for name, words, power in (("initial", "distance from its limit", -0.5), ("moved", "motion", -1.0)):
        mean, error = mean_and_error(np.log(data[name][:, wide]))
        # The next order counts at the narrowest of them: a twentieth of the power.
        spread = np.hypot(np.sqrt(np.sum((weights * error) ** 2)), 0.05)
        checks.append(Check(f"power of the width in the kernel's {words}", weights @ mean, spread, power, 5))
    apart = np.sqrt(np.mean((data["path"] - predicted(data)) ** 2))
    m = int(data["widths"][-1])
    checks.append(Check(f"root mean square of outputs minus kernel's, m = {m}", apart, 0, 0, 4 / np.sqrt(m)))
    return checks
