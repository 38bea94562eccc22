"""Online SGD on a mixture aligns with the outlier eigenspaces of its own curvature.

Softmax regression of k = 10 Gaussian classes with orthonormal means, λ = 10, ridge β = 0.01, step 1/d, d = 1000 (small:
100), up to t = 50. The weights x^c of a class are compared with the k leading eigenvectors of their block of the
Hessian and of the second moment of gradients, over 10d fresh test samples: ρ(x, E) is the share of the length of x
that lies in E. Lines: theory for exactly that many test samples, and for infinitely many.
"""

import numpy as np

from deeplimits.gallery import mixture_sgd
from deeplimits.gallery.figure import Check
from deeplimits.gallery.marks import averages, mean_and_error
from deeplimits.measure import alignment
from deeplimits.predictions.picture import Axis, Line, Picture
from deeplimits.theory import landscape

NOTES = "Mathematics of Deep Learning, Fig 1.3"
LIMITS = ("kgmm-alignment-theorems", "kgmm-sgd-effective-dynamics")
TIMES = (0.5, 2.0, 5.0, 10.0, 20.0, 30.0, 50.0)


def compute(run):
    """Alignment of the weights with both eigenspaces over training, for some classes."""
    d, classes = run.pick((1000, 5), (100, 10))
    return {**run.step("training", measured, d=d, classes=classes, times=TIMES), "d": d}


def measured(d, classes, times):
    """ρ(x^c, E_k) at each time, a row for each class."""
    random = np.random.default_rng(0)
    k = mixture_sgd.CLASSES
    means = np.eye(k, d)
    found = {kind: np.zeros((classes, len(times))) for kind in mixture_sgd.KINDS}
    for index, x in enumerate(mixture_sgd.trained(random, means, times)):
        for c, kind, _, vectors in mixture_sgd.eigenpairs(random, x, means, range(classes), k):
            found[kind][c, index] = alignment(x[c], vectors)
    return found


def draw(data):
    """One panel for each matrix."""
    dense = np.linspace(0.01, TIMES[-1], 200)
    whole = landscape.kgmm_symmetric_path(dense, mixture_sgd.CLASSES, mixture_sgd.SEPARATION, mixture_sgd.RIDGE, 1.0)
    pictures = []
    for kind, words in mixture_sgd.KINDS.items():
        lines = [mixture_sgd.stated(TIMES, index, kind)["alignment"] for index in range(len(TIMES))]
        marks = (
            Line(TIMES, lines, label="theory, 10 test samples a dimension"),
            Line(dense, whole.alignment(mixture_sgd.CLASSES), series=1, label="theory, infinitely many"),
            averages(
                TIMES, data[kind], series=0, label=f"SGD, d = {int(data['d'])}, mean of {len(data[kind])} classes"
            ),
        )
        chance = np.sqrt(mixture_sgd.CLASSES / int(data["d"]))
        said = f"From the {chance:.2f} of chance, √(k/d), the weights move into the outlier space of the {words}."
        pictures.append(
            Picture(Axis("time", "t"), Axis("alignment", r"\rho(x^c, E_k)", low=0.0, high=1.0), marks, said)
        )
    return pictures


def check(data):
    """Alignment at the end; classes share one run, so that its gap of order 1/√d counts beside their spread."""
    checks, d = [], int(data["d"])
    for kind, words in mixture_sgd.KINDS.items():
        for index in (3, len(TIMES) - 1):
            mean, error = mean_and_error(data[kind][:, index])
            theory = mixture_sgd.stated(TIMES, index, kind)["alignment"]
            label = f"alignment with the {words} at t = {TIMES[index]:g}"
            checks.append(Check(label, mean, np.hypot(error, 0.15 / np.sqrt(d)), theory, 5))
    return checks
