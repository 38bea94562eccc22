"""Weights of a class and eigenvectors of its curvature have the same large entries: the class means.

Softmax regression of k = 10 Gaussian classes as in F11, whose means are the coordinates e_50, e_100, …, e_500 in
d = 500 dimensions (small: every 10th of 100), after t = 50, that is 50d steps. Drawn over the coordinate are the
entries of the weights x^1 and of the leading eigenvectors of the block 11 of the Hessian and of the second moment of
gradients, with what theory says of the entries at the means.
"""

import numpy as np

from deeplimits.gallery import mixture_sgd
from deeplimits.gallery.figure import Check
from deeplimits.gallery.mixture_sgd import CLASSES, KINDS
from deeplimits.predictions.picture import SIMULATION, Axis, Field, Histogram, Picture, Points

NOTES = "Mathematics of Deep Learning, Fig 1.4"
LIMITS = ("kgmm-alignment-theorems", "kgmm-sgd-effective-dynamics")
TIMES = (50.0,)


def places(d):
    """The coordinates of the means."""
    return np.arange(1, CLASSES + 1) * d // CLASSES - 1


def compute(run):
    """Weights and eigenvectors at the end."""
    d = run.pick(500, 100)
    return run.step("training", trained, d=d)


def trained(d):
    """x^1 and the k leading eigenvectors of both matrices, as columns."""
    random, means = np.random.default_rng(1), np.eye(d)[places(d)]
    (x,) = mixture_sgd.trained(random, means, TIMES)
    return {"weights": x[0]} | {k: v for _, k, _, v in mixture_sgd.eigenpairs(random, x, means, [0], CLASSES)}


def levels():
    """⟨x^1, μ_a⟩ in theory."""
    amplitude = float(mixture_sgd.summary(TIMES).amplitude[0])
    return amplitude * (np.eye(CLASSES)[0] - 1 / CLASSES)


def leading(vectors, d):
    """The first eigenvector, its entry at the first mean positive."""
    return vectors[:, 0] * np.sign(vectors[places(d)[0], 0])


def draw(data):
    """Weights, first eigenvectors, and all of them as an image."""
    d = len(data["weights"])
    edges, at = np.arange(d + 1) + 0.5, places(d) + 1
    along = Axis("coordinate", "i", low=0, high=d + 1)

    def entries(values, said, theory, words):
        marks = (
            Histogram(edges, values, role=SIMULATION, label=words),
            Points(at[: len(theory)], theory, label="theory, at the class means"),
        )
        return Picture(along, Axis("entry"), marks, said)

    pictures = [
        entries(
            data["weights"],
            "The weights of class 1 stand out at the class means: up at its own, down at the others.",
            levels(),
            f"entries of the weights, d = {d}",
        )
    ]
    for kind, words in KINDS.items():
        pictures.append(
            entries(
                leading(data[kind], d),
                f"The first eigenvector of the {words} stands out at its own mean alone.",
                mixture_sgd.stated(TIMES, 0, kind)["levels"][:1],
                "entries of the eigenvector",
            )
        )
    image = np.abs(data["hessian"].T)
    pictures.append(
        Picture(
            along,
            Axis("number of the eigenvector", whole=True),
            (Field(np.arange(1, d + 1), np.arange(1, CLASSES + 1), image, role=SIMULATION, label="size of the entry"),),
            "The first eigenvector of the Hessian is the own mean; the next nine mix the others, and noise.",
        )
    )
    return pictures


def check(data):
    """Entries at the first mean, in units of the entries elsewhere: that is the size of their fluctuation."""
    d = len(data["weights"])
    elsewhere = np.ones(d, bool)
    elsewhere[places(d)] = False
    checks, first = [], places(d)[0]
    others = data["weights"][places(d)[1:]].mean()
    error = np.std(data["weights"][elsewhere])
    checks.append(Check("weight at the mean of its own class", data["weights"][first], error, levels()[0], 5))
    checks.append(Check("mean weight at those of the others", others, error / 3, levels()[1], 5))
    for kind, words in KINDS.items():
        vector = leading(data[kind], d)
        theory = mixture_sgd.stated(TIMES, 0, kind)["levels"][0]
        error = np.std(vector[elsewhere])
        checks.append(Check(f"first eigenvector of the {words} at that mean", vector[first], error, theory, 5))
    return checks
