"""Training gives the kernels of a network outliers that know the labels.

A network with one hidden layer of N = 800 tanh neurons on n = 400 Gaussian points in dimension 600 (small: 160, 80,
120) and a small second layer is trained by gradient descent on labels y = σ(x'v). Drawn are the eigenvalues of its
conjugate kernel before training on the theory's law for random weights, those after it, the largest of both kernels,
and the share of the labels in the first eigenvectors.
"""

import numpy as np

from deeplimits.gallery import marks
from deeplimits.gallery.figure import Check
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Mark, Picture, Points
from deeplimits.theory import gaussian, spectra

NOTES = "Random Matrix Theory and Its Applications in ML, Fig 3, trained CK and NTK"
LIMITS = ("nonlinear-gram-spectrum", "deep-linear-width-ck-spectrum", "empirical-ntk")
DATA_RATIO, WIDTH_RATIO = 2 / 3, 0.5
"""n/d and n/N."""
RATE, SMALL = 0.5, 0.1
"""The learning rate for the mean loss, and how small the second layer is at the start, so that features are learnt."""


def compute(run):
    """Both kernels before and after training."""
    n = run.pick(400, 80)
    run.expect(1)
    return run.step("training", kernels, n=n, steps=run.pick(2000, 1000))


def kernels(n, steps):
    """Eigenvalues of both kernels before and after training, and the share of the labels along their eigenvectors."""
    d, width = round(n / DATA_RATIO), round(n / WIDTH_RATIO)
    random = np.random.default_rng(0)
    x = random.standard_normal((n, d))
    v = random.standard_normal(d)
    scale = 1 / np.sqrt(float(gaussian.second_moment("tanh", 1.0)))
    y = scale * np.tanh(x @ v / np.linalg.norm(v))
    w, a = random.standard_normal((width, d)) / np.sqrt(d), SMALL * random.standard_normal(width)
    found = {"labels": y}

    def parts():
        h = x @ w.T
        return scale * np.tanh(h) / np.sqrt(width), scale * (1 - np.tanh(h) ** 2) * a / np.sqrt(width)

    for when, count in (("before", 0), ("after", steps)):
        for _ in range(count):
            features, gates = parts()
            left = features @ a - y
            w, a = w - RATE / n * (gates * left[:, None]).T @ x, a - RATE / n * (features.T @ left)
        features, gates = parts()
        conjugate = features @ features.T
        tangent = conjugate + (x @ x.T) * (gates @ gates.T)
        for name, kernel in (("conjugate", conjugate), ("tangent", tangent)):
            values, vectors = np.linalg.eigh(kernel)
            share = (vectors.T @ y)[::-1] ** 2 / (y @ y)
            found |= {f"{name}_{when}": values[::-1], f"{name}_share_{when}": np.cumsum(share)}
        found[f"loss_{when}"] = np.array(np.mean((features @ a - y) ** 2) / np.mean(y**2))
    return found


def law():
    """The law of the conjugate kernel at random weights."""
    return spectra.conjugate_kernel_spectrum("tanh", DATA_RATIO, [WIDTH_RATIO])


def draw(data):
    """Bulks, leading eigenvalues, shares of the labels."""
    stated = law()
    n = len(data["labels"])
    edge = float(stated.edges[-1, 1])
    last = max(4.0, float(data["conjugate_after"][0])) * 1.05
    x = np.linspace(1e-3, edge * 1.05, 150)
    density = Line(x, stated.density(x), label="theory, random weights")
    panels = []
    for when, caption in (
        ("before", "Before training the eigenvalues of the conjugate kernel fill the theory's law."),
        ("after", "After it the bulk is still there, and few large eigenvalues have left it."),
    ):
        bins = np.linspace(0, last, 121)
        seen = marks.histogram(data[f"conjugate_{when}"], bins, label=f"conjugate kernel {when} training")
        panels.append(
            Picture(Axis("eigenvalue", low=0, high=last), Axis("density", low=0, high=1.2), (density, seen), caption)
        )
    count = np.arange(1, 13)
    leading: list[Mark] = []
    shares: list[Mark] = [Line(count, count / n, label="theory, eigenvectors that know nothing: k/n")]
    for series, (name, label) in enumerate((("conjugate", "conjugate"), ("tangent", "tangent"))):
        for when in ("before", "after"):
            look = {"series": 2 * series + (when == "after"), "role": SIMULATION, "label": f"{label} kernel, {when}"}
            leading.append(Points(count, data[f"{name}_{when}"][:12], **look))
            shares.append(Points(count, data[f"{name}_share_{when}"][:12], **look))
    number = Axis("eigenvalues and vectors, from the largest", "k", whole=True)
    leading.insert(0, Line(count, np.full(12, edge), label="theory, edge of the conjugate kernel at random weights"))
    return [
        *panels,
        Picture(
            number,
            Axis("eigenvalue", log=True),
            tuple(leading),
            "An outlier leaves the conjugate kernel in training; the tangent kernel grows as a whole.",
        ),
        Picture(
            number,
            Axis("share of the labels' variance", low=0, high=1),
            tuple(shares),
            "After training two eigenvectors of the conjugate kernel hold nearly all of the labels.",
        ),
    ]


def check(data):
    """The law at the start, without outliers; outliers and the labels' share in the end."""
    stated, n = law(), len(data["labels"])
    values = np.sort(data["conjugate_before"])
    some = np.arange(0, n, max(1, n // 30))
    gap = np.max(np.abs(np.asarray(stated.cdf(values[some])) - (some + 0.5) / n))
    edge = float(stated.edges[-1, 1])
    room = 1 + 4 * n ** (-2 / 3)
    return [
        Check("largest distance of the distribution functions before", gap, 0.0, 0.0, 4 / n),
        Check("outliers before training", np.sum(values > room * edge), 0.0, 0.0, 0.0),
        Check(
            "outliers after training, at least one", float(np.any(data["conjugate_after"] > room * edge)), 0.0, 1.0, 0.0
        ),
        Check("share of the labels in two eigenvectors after", data["conjugate_share_after"][1], 0.0, 1.0, 0.15),
    ]
