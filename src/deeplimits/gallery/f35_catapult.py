"""Learning rates: lazy, catapult, divergent.

A bilinear network z = v·u/√m on one point follows an exact recursion: above 2/λ₀ its loss first grows, and up to 4/λ₀
it is caught where the kernel λ is smaller. Beside it a two-layer ReLU network learns to tell small from large digits
(400 of scikit-learn's, width 512; small: 100, 128) at many learning rates: kernel, weights and test accuracy after
training.
"""

import numpy as np

from deeplimits.gallery import datasets
from deeplimits.gallery.figure import Check
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points, Rule
from deeplimits.theory import landscape

NOTES = "ORF 543, 11/7"
LIMITS = ("catapult-phase-diagram", "catapult-recursion")
SHOWN, STEPS = (1.0, 2.5, 3.5), 30
WIDTH = 200
"""Of the bilinear networks."""


def compute(run):
    """Paths and ends of bilinear networks, and networks on digits at every learning rate."""
    ends = np.linspace(0.1, 4.6, 46 if run.small else 91)
    rates = np.array([0.25, 0.5, 1, 1.5, 2, 2.5, 3, 4, 6, 8, 10, 14]) if not run.small else np.array([0.5, 1, 2, 3, 5])
    run.expect(1 + len(rates))
    found = {"ends": ends, "rates": rates} | run.step("bilinear", bilinear, multiples=ends, shown=SHOWN)
    size = {"width": run.pick(512, 128), "count": run.pick(400, 100), "steps": run.pick(1000, 200)}
    learnt = [run.step("digits", on_digits, multiple=float(rate), **size) for rate in rates]
    return found | {name: np.array([one[name] for one in learnt]) for name in learnt[0]}


def bilinear(multiples, shown):
    """Losses of some bilinear networks over time, and where the kernel of others ends, by gradient descent."""
    first, second = np.random.default_rng(3).standard_normal((2, WIDTH))
    kernel = (first @ first + second @ second) / WIDTH
    start = np.array([first @ second / np.sqrt(WIDTH), kernel])

    def descend(multiple, steps):
        u, v, path = first.copy(), second.copy(), []
        for _ in range(steps + 1):
            z = u @ v / np.sqrt(WIDTH)
            path.append((z, (u @ u + v @ v) / WIDTH))
            if abs(z) > 1e6:
                break
            pull = multiple / kernel * z / np.sqrt(WIDTH)
            u, v = u - pull * v, v - pull * u
        return np.array(path)

    paths = [descend(multiple, STEPS) for multiple in shown]
    ended = [descend(multiple, 400)[-1] for multiple in multiples]
    last = np.array([end / kernel if abs(z) < 1e6 else np.nan for z, end in ended])
    return {"start": start, "paths": np.array(paths), "kernels": last}


def on_digits(multiple, width, count, steps):
    """A two-layer ReLU network z = v·relu(Ux)/√m on digits, trained with η = multiple/λ₀."""
    x, classes = datasets.centred_digits()
    x, y = np.sqrt(x.shape[1]) * x, np.where(classes < 5, 1.0, -1.0)
    seen, asked = slice(0, count), slice(count, None)
    random = np.random.default_rng(0)
    u, v = random.standard_normal((width, x.shape[1])) / np.sqrt(x.shape[1]), random.standard_normal(width)
    u0, v0 = u, v

    def parts(u, v):
        h = x[seen] @ u.T
        features, gates = np.maximum(h, 0) / np.sqrt(width), (h > 0) * v / np.sqrt(width)
        return features, gates

    def largest(u, v):
        features, gates = parts(u, v)
        gram = features @ features.T + (x[seen] @ x[seen].T) * (gates @ gates.T)
        return np.linalg.eigvalsh(gram)[-1] / count

    kernel = largest(u, v)
    step, losses = multiple / kernel, []
    for _ in range(steps):
        features, gates = parts(u, v)
        left = features @ v - y[seen]
        losses.append(np.mean(left**2) / 2)
        if losses[-1] > 1e8:
            nothing = np.array(np.nan)
            first = np.array((losses + [losses[-1]] * 6)[:6])
            return {"loss": first, "kernel": nothing, "kept": nothing, "right": nothing}
        pull = (gates * left[:, None]).T @ x[seen]
        u, v = u - step / count * pull, v - step / count * (features.T @ left)
    answers = np.maximum(x[asked] @ u.T, 0) @ v
    kept = (np.sum(u * u0) + v @ v0) / np.sqrt((np.sum(u**2) + v @ v) * (np.sum(u0**2) + v0 @ v0))
    right = np.mean((answers > 0) == (y[asked] > 0))
    return {"loss": np.array(losses[:6]), "kernel": largest(u, v) / kernel, "kept": kept, "right": right}


def recursion(data, multiple):
    """The path of output and kernel that theory says."""
    output, kernel = data["start"]
    found = landscape.catapult_path(output, kernel, 0.0, 1 / WIDTH, multiple / kernel, STEPS)
    return np.stack([found.output, found.kernel], axis=1)


def ends(data):
    """λ(∞)/λ₀ that theory says, for multiples below 4."""
    output, kernel = data["start"]
    below = data["ends"][data["ends"] < 3.99]
    energy = (below * output / kernel) ** 2 / WIDTH
    return below, np.array([landscape.catapult_end(c, b) for c, b in zip(below, energy, strict=True)]) / below


def draw(data):
    """Losses over steps, ends over the learning rate, and what digits make of it."""
    losses = []
    for series, multiple in enumerate(SHOWN):
        losses.append(Line(np.arange(STEPS + 1), recursion(data, multiple)[:, 0] ** 2 / 2, series=series,
                           label=f"theory, η = {multiple:g}/λ₀"))  # fmt: skip
        losses.append(
            Points(np.arange(STEPS + 1), data["paths"][series, :, 0] ** 2 / 2, role=SIMULATION, series=series)
        )
    at, kernels = ends(data)
    phases = (Rule(2.0, upright=True, label="2/λ₀"), Rule(4.0, upright=True, label="4/λ₀", series=1))
    rate = Axis("learning rate in units of 1/λ₀", r"\eta\lambda_0", low=0)
    flat = 2 / np.linspace(2.0, max(data["rates"]), 100)
    on_rates = Axis(rate.label, rate.symbol, log=True)

    def measured(values, label, series):
        return Points(data["rates"], values, label=label, role=SIMULATION, series=series)

    return [
        Picture(
            Axis("step"),
            Axis("loss", log=True, low=1e-12, high=1e4),
            tuple(losses),
            "Above 2/λ₀ the loss first grows a hundredfold, then vanishes: exact recursion (lines), networks (points).",
        ),
        Picture(
            rate,
            Axis("kernel at the end over that at the start", r"\lambda(\infty)/\lambda_0", low=0, high=1.1),
            (
                Line(at, kernels, label="theory"),
                Points(data["ends"], data["kernels"], role=SIMULATION, label="networks"),
                *phases,
            ),
            "Catapults land where the curvature is smaller; beyond 4/λ₀ nothing lands.",
        ),
        Picture(
            on_rates,
            Axis("at the end over at the start", low=0, high=1.1),
            (
                Line(2 / flat, flat, label="ηλ = 2, the most that is stable"),
                measured(data["kernel"], "kernel of the digits' network", 0),
                measured(data["kept"], "cosine of weights with the start", 1),
                Rule(2.0, upright=True, label="2/λ₀"),
            ),
            "On digits the kernel and the weights hardly move below 2/λ₀, and above it the kernel falls below 2/η.",
        ),
        Picture(
            on_rates,
            Axis("test accuracy"),
            (measured(data["right"], "small against large digits", 0), Rule(2.0, upright=True, label="2/λ₀")),
            "On digits not seen, learning rates of the catapult phase do as well as small ones.",
        ),
    ]


def check(data):
    """The recursion is exact; nothing beyond 4 lands; what lands is flat enough; digits are thrown out from 2 on."""
    worst = max(np.abs(data["paths"][k] - recursion(data, c)).max() for k, c in enumerate(SHOWN))
    landed = data["ends"][np.isfinite(data["kernels"])]
    step = data["ends"][1] - data["ends"][0]
    finite = np.isfinite(data["kernel"])
    steep = np.max(data["kernel"][finite] * data["rates"][finite])
    rising = data["loss"].max(axis=1) > 1.05 * data["loss"][:, 0]
    calm = data["rates"] <= 1.5
    return [
        Check("largest distance of networks from the recursion", worst, 0.0, 0.0, 1e-8),
        Check("largest rate that lands, in units of 1/λ₀", landed.max(), 0.0, 4.0, 1.5 * step),
        Check("share of digits' networks with ηλ above 2 at the end", float(steep > 2.02), 0.0, 0.0, 0.0),
        Check("digits' loss rises below 1.5/λ₀", float(np.any(rising[calm])), 0.0, 0.0, 0.0),
        Check("digits' loss rises at 3/λ₀", float(rising[data["rates"] == 3.0].all()), 0.0, 1.0, 0.0),
    ]
