"""Lazy against rich: one network, from learning features to standing still, by the scale of its output.

f = α(g(θ) − g(θ₀)), g a two-layer tanh network of 200 neurons (small: 60) started at θ₀, trained by gradient descent
on (1/2nα²)|y − f|² until the training loss has fallen a thousandfold, on 60 digits of unit length, even against odd
(small: 20), tested on 400 others; α = 0.1 to 100. Drawn over α: the motion of the tangent kernel, the distance of the
network's outputs from those of its linearization, and test errors. The notes' ReLU has kinks, which so few neurons
cross one at a time; α below 0.1 would need steps too small to be run here.
"""

import numpy as np

from deeplimits.gallery.datasets import digits
from deeplimits.gallery.figure import Check
from deeplimits.gallery.marks import averages, mean_and_error
from deeplimits.predictions.picture import Axis, Line, Picture

NOTES = "Mathematics of Deep Learning, ch 9"
LIMITS = ("lazy-two-layer-scalings", "ntk-vs-mean-field-scaling")
ALPHAS, TEST, FALL, MOST = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0), 400, 1e-3, 20000


def compute(run):
    """Kernel motion, linearization error and test errors at each α."""
    width, points, repeats = run.pick((200, 60, 5), (60, 20, 3))
    run.expect(len(ALPHAS))
    rows = [run.step(f"α = {a:g}", trained, alpha=a, width=width, points=points, repeats=repeats) for a in ALPHAS]
    return {key: np.stack([row[key] for row in rows], axis=1) for key in rows[0]} | {"width": width}


def examples(points):
    """Digits of unit length, even +1 and odd −1: to train on, and to test on."""
    x, classes = digits()
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return x[: points + TEST], (1.0 - 2.0 * (classes % 2))[: points + TEST]


def features(w, v, x):
    """Gradients of g at each input, a row for each: in v and in w."""
    h = x @ w.T
    inner = ((1 - np.tanh(h) ** 2) * v)[:, :, None] * x[:, None, :]
    return np.concatenate([np.tanh(h), inner.reshape(len(x), -1)], axis=1) / np.sqrt(len(v))


def trained(alpha, width, points, repeats):
    """A row for each network."""
    x, y = examples(points)
    rows = []
    for number in range(repeats):
        random = np.random.default_rng(number)
        w, v = random.normal(size=(width, x.shape[1])), random.normal(size=width)
        begin = np.tanh(x @ w.T) @ v
        before = features(w, v, x)
        kernel = before @ before[:points].T
        step = 1.0 / np.linalg.eigvalsh(kernel[:points] / points)[-1] * min(1.0, alpha)
        linear = f = np.zeros(len(y))
        for _ in range(MOST):
            h = x @ w.T
            active = np.tanh(h)
            f = alpha * (active @ v - begin) / np.sqrt(width)
            left = y[:points] - f[:points]
            if np.mean(left**2) < FALL:
                break
            # Gradient descent on (1/2nα²)|y − αg|²: the outputs move with the kernel, whatever α.
            linear = linear + step / points * kernel @ (y - linear)[:points]
            pull = left / (alpha * points * np.sqrt(width))
            w, v = (
                w + step * ((pull[:, None] * (1 - active[:points] ** 2)).T @ x[:points]) * v[:, None],
                v + step * active[:points].T @ pull,
            )
        after = features(w, v, x[:points])
        start = kernel[:points]
        rows.append(
            [
                np.linalg.norm(after @ after.T - start) / np.linalg.norm(start),
                np.sqrt(np.mean((f - linear)[points:] ** 2)),
                np.mean(np.sign(f[points:]) != y[points:]),
                np.mean(np.sign(linear[points:]) != y[points:]),
            ]
        )
    return dict(zip(("motion", "linearization", "error", "linear"), np.array(rows).T, strict=True))


def draw(data):
    """Motion and linearization error over α; test errors."""
    dense = np.geomspace(ALPHAS[0], ALPHAS[-1], 50)
    x = Axis("output scale", r"\alpha", log=True)

    def lazy(values):
        return values.mean(axis=0)[-1] * ALPHAS[-1] / dense

    first = Picture(
        x,
        Axis("relative size", log=True),
        (
            Line(dense, lazy(data["motion"]), series=0, label="lazy regime: falls like 1/α"),
            Line(dense, lazy(data["linearization"]), series=1),
            averages(ALPHAS, data["motion"], series=0, label="motion of the tangent kernel"),
            averages(ALPHAS, data["linearization"], series=1, label="outputs minus those of the linearized network"),
        ),
        "Kernel motion and linearization error fall like 1/α: at large α the network becomes its linearization.",
    )
    second = Picture(
        x,
        Axis("test error, share of wrong labels", low=0.0),
        (
            averages(ALPHAS, data["error"], series=0, label=f"network of {int(data['width'])} neurons"),
            averages(ALPHAS, data["linear"], series=1, label="its linearization"),
        ),
        "At large α network and linearization err alike; what the rich regime gains depends on the data.",
    )
    return [first, second]


def check(data):
    """Powers of α between the two largest: −1 both, with corrections of relative order 1/α."""
    checks = []
    for name, words in (("motion", "kernel motion"), ("linearization", "linearization error")):
        ratio = np.log(data[name][:, -1] / data[name][:, -2]) / np.log(ALPHAS[-1] / ALPHAS[-2])
        mean, error = mean_and_error(ratio)
        checks.append(Check(f"power of α in the {words}", mean, np.hypot(error, 1 / ALPHAS[-2]), -1, 5))
    gap = np.mean(np.abs(data["error"][:, -1] - data["linear"][:, -1]))
    checks.append(Check("test errors of network and linearization at the largest α differ by", gap, 0, 0, 0.02))
    return checks
