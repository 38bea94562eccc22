"""Three errors of a trained network: what the class cannot do, what the sample hides, what the optimizer leaves.

Random-feature networks of N ReLU neurons learn which of scikit-learn's digits are small and which large by gradient
descent with a small ridge (1,797 digits, 600 of them seen, N = 300, 200 steps; small: 500, 150, 100, 50). Drawn are
the distances of the labels from the best network of the class, of that from the best one for the sample, and of that
from the one found, over width, samples and steps, beside the error of infinitely many features and what theory says
descent leaves after k steps.
"""

import numpy as np

from deeplimits import measure
from deeplimits.gallery import datasets, marks
from deeplimits.gallery.figure import Check
from deeplimits.predictions.picture import Axis, Line, Mark, Picture, Rule
from deeplimits.theory import gaussian, regression

NOTES = "Dynamic-based Statistical Guarantees, errors"
LIMITS = ("review-model-and-errors", "random-feature-kernel")
PARTS = ("approximation", "generalization", "optimization", "total")
RIDGE = 1e-3


def compute(run):
    """Errors over width, over samples and over steps."""
    size = {"count": run.pick(1797, 500), "draws": run.pick(10, 3)}
    middle = {"width": run.pick(300, 100), "seen": run.pick(600, 150), "steps": run.pick(200, 50)}
    over = {"width": run.pick((10, 30, 100, 300, 1000), (10, 30, 100, 300)),
            "seen": run.pick((50, 100, 200, 400, 800, 1600), (50, 100, 200, 400)),
            "steps": run.pick((10, 100, 1000, 10_000), (10, 100, 1000))}  # fmt: skip
    run.expect(len(over) + 1)
    found = {f"over_{name}": np.array(values) for name, values in over.items()}
    for name, values in over.items():
        found |= run.step("errors", errors, over=name, values=values, middle=middle, **size)
    return found | run.step("theory", stated, middle=middle, count=size["count"], last=over["steps"][-1])


def system(count, width, seen, seed):
    """Features of all digits, labels, and which digits are seen."""
    x, classes = datasets.centred_digits()
    x, y = x[:count], np.where(classes[:count] < 5, 1.0, -1.0)
    random = np.random.default_rng(seed)
    features = np.maximum(x @ random.standard_normal((x.shape[1], width)), 0) / np.sqrt(width)
    return features, y, random.permutation(count)[:seen]


def fitted(features, y):
    """The least of mean((y − f)²) + λ|w|²."""
    gram = features.T @ features / len(y) + RIDGE * np.eye(features.shape[1])
    return np.linalg.solve(gram, features.T @ y / len(y))


def rate(features):
    """A learning rate that is stable."""
    return 1 / (np.linalg.norm(features, 2) ** 2 / len(features) + RIDGE)


def errors(over, values, middle, count, draws):
    """The four norms along one axis, (draws, values) for each."""
    found = {part: np.empty((draws, len(values))) for part in PARTS}
    for draw in range(draws):
        for at, value in enumerate(values):
            width, seen, steps = ({**middle, over: value}[name] for name in ("width", "seen", "steps"))
            features, y, chosen = system(count, width, seen, draw)
            phi, labels = features[chosen], y[chosen]
            weights, step = np.zeros(width), rate(phi)
            for _ in range(steps):
                weights = weights - step * (phi.T @ (phi @ weights - labels) / len(phi) + RIDGE * weights)
            best, fit = fitted(features, y), fitted(phi, labels)
            split = measure.error_split(y, features @ best, features @ fit, features @ weights)
            for part in PARTS:
                found[part][draw, at] = getattr(split, part)
    return {f"{part}_{over}": values for part, values in found.items()}


def stated(middle, count, last):
    """What descent leaves over the steps, of the first network; and what infinitely many features cannot do."""
    features, y, chosen = system(count, middle["width"], middle["seen"], 0)
    phi, labels = features[chosen], y[chosen]
    steps = np.unique(np.geomspace(10, last, 40).round().astype(int))
    weights = np.asarray(regression.ridge_descent(phi, labels, RIDGE, rate(phi), steps))
    left = np.sqrt(np.mean(((weights - fitted(phi, labels)) @ features.T) ** 2, axis=1))
    x = datasets.centred_digits()[0][:count]
    squares = np.sum(x**2, axis=1)
    kernel = np.asarray(gaussian.dual("relu", squares[:, None], squares[None], x @ x.T))
    answers = kernel @ np.linalg.solve(kernel + RIDGE * count * np.eye(count), y)
    return {"steps": steps, "left": left, "wide": np.array(np.sqrt(np.mean((y - answers) ** 2)))}


def draw(data):
    """Errors over width, samples and steps."""
    panels = []
    wide = Rule(float(data["wide"]), label="theory: approximation, infinitely many features", series=None)
    left = Line(data["steps"], data["left"], label="theory: (1 − ηλ)^k left along every eigenvector")
    for name, label, theory, caption in (
        ("width", "neurons", wide, "Wider networks can do more, up to infinitely many features."),
        (
            "seen",
            "digits seen",
            wide,
            "More samples hide less: the generalization error vanishes when all digits are seen.",
        ),
        ("steps", "steps of descent", left, "More steps leave less, exactly as theory says for the first network."),
    ):
        seen: list[Mark] = [theory]
        for series, part in enumerate(PARTS):
            at, values = data[f"over_{name}"], data[f"{part}_{name}"]
            seen.append(marks.averages(at, values, series=series, label=f"{part} error"))
        words = Axis("error, L² distance", log=True) if name == "steps" else Axis("error, L² distance", low=0, high=1.3)
        panels.append(Picture(Axis(label, log=True), words, tuple(seen), caption))
    return panels


def check(data):
    """Descent leaves what theory says; wide networks approach the kernel; the parts bound the total."""
    last = float(data["optimization_steps"][0, -1])
    slack = min(
        float(np.min(sum(data[f"{part}_{name}"] for part in PARTS[:3]) - data[f"total_{name}"]))
        for name in ("width", "seen", "steps")
    )
    ends = data["approximation_width"][:, -1].mean()
    return [
        Check("optimization error after all steps", last, 0.0, float(data["left"][-1]), 1e-8),
        Check("approximation error of the widest networks", ends, 0.0, float(data["wide"]), 0.06),
        Check("by how much the parts fall short of the total", min(slack, 0.0), 0.0, 0.0, 1e-12),
    ]
