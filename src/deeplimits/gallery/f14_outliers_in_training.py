"""An eigenvalue of its curvature leaves the bulk while a class finds its mean.

Softmax regression of k = 10 Gaussian classes as in F11, d = 1000 (small: 100). Over training time: the largest
eigenvalues of the block 11 of the Hessian and of the second moment of gradients, over 10d fresh test samples, beside
the outliers and the edge of the bulk that theory gives for so many samples; and the inner products of the weights x^1
with the means.
"""

import numpy as np

from deeplimits.gallery import mixture_sgd
from deeplimits.gallery.figure import Check
from deeplimits.gallery.mixture_sgd import CLASSES, KINDS, RIDGE, SEPARATION
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points
from deeplimits.theory import landscape

NOTES = "Mathematics of Deep Learning, Fig 1.7"
LIMITS = ("weighted-covariance-spectrum", "kgmm-alignment-theorems")
TIMES = (0.5, 2.0, 5.0, 10.0, 20.0, 30.0, 50.0)
MORE = 5
SAID = {
    "hessian": "One eigenvalue of the Hessian, that of the own class, leaves the bulk; those of the others return.",
    "gradient": "One eigenvalue of the gradient moment G stays outside all the time, while all of G becomes smaller.",
}


def compute(run):
    """The largest eigenvalues and the overlaps with the means at each time."""
    d = run.pick(1000, 100)
    return {**run.step("training", measured, d=d), "d": d}


def measured(d):
    """A row for each time."""
    random, means = np.random.default_rng(2), np.eye(CLASSES, d)
    found = {kind: [] for kind in (*KINDS, "overlaps")}
    for x in mixture_sgd.trained(random, means, TIMES):
        found["overlaps"].append(x[0] @ means.T)
        for _, kind, values, _ in mixture_sgd.eigenpairs(random, x, means, [0], CLASSES + MORE):
            found[kind].append(values)
    return found


def draw(data):
    """Eigenvalues of both matrices, overlaps with the means."""
    d, time, pictures = int(data["d"]), Axis("time", "t"), []
    for kind in KINDS:
        said = [mixture_sgd.stated(TIMES, index, kind) for index in range(len(TIMES))]
        outliers, edge = np.array([one["eigenvalues"] for one in said]), [one["edge"] for one in said]
        values = data[kind]
        marks = [
            *(
                Line(TIMES, outliers[:, j], series=1, label="" if j else "theory, outliers")
                for j in range(outliers.shape[1])
            ),
            Line(TIMES, edge, label="theory, edge of the bulk"),
            *(
                Points(TIMES, values[:, j], role=SIMULATION, series=0,
                       label="" if j else f"{CLASSES} largest eigenvalues, d = {d}")
                for j in range(CLASSES)
            ),
            *(
                Points(TIMES, values[:, j], role=SIMULATION, series=2, label="" if j > CLASSES else "those after them")
                for j in range(CLASSES, CLASSES + MORE)
            ),
        ]  # fmt: skip
        pictures.append(Picture(time, Axis("eigenvalue"), tuple(marks), SAID[kind]))
    dense = np.linspace(0.01, TIMES[-1], 200)
    amplitude = np.asarray(landscape.kgmm_symmetric_path(dense, CLASSES, SEPARATION, RIDGE, 1.0).amplitude)
    along = data["overlaps"]
    marks = (
        Line(dense, amplitude * (1 - 1 / CLASSES), series=0, label="theory, own mean"),
        Line(dense, -amplitude / CLASSES, series=1, label="theory, other means"),
        Points(TIMES, along[:, 0], role=SIMULATION, series=0, label=f"SGD, own mean, d = {d}"),
        *(
            Points(TIMES, along[:, j], role=SIMULATION, series=1, label="" if j > 1 else "SGD, other means")
            for j in range(1, CLASSES)
        ),
    )
    said = "Meanwhile the inner product with the own class mean grows and those with the others become negative alike."
    pictures.append(Picture(time, Axis("inner product", r"\langle x^1,\mu_a\rangle"), marks, said))
    return pictures


def check(data):
    """The largest eigenvalue and the own overlap at the end, and how many eigenvalues are outside the bulk.

    An outlier is a mean over 10d samples, most of which weigh little: 3/√(10d) of it is one standard deviation.
    """
    d, checks = int(data["d"]), []
    for kind, words in KINDS.items():
        stated = mixture_sgd.stated(TIMES, len(TIMES) - 1, kind)
        values, top = data[kind][-1], stated["eigenvalues"][0]
        error = 3 * top / np.sqrt(mixture_sgd.PER_DIMENSION * d)
        checks.append(Check(f"largest eigenvalue of the {words} at t = {TIMES[-1]:g}", values[0], error, top, 5))
        far = (top + stated["edge"]) / 2
        counts = np.sum(values > far), np.sum(stated["eigenvalues"] > far)
        checks.append(Check(f"eigenvalues of the {words} beyond half-way to the largest", counts[0], 0, counts[1], 0))
    amplitude = float(mixture_sgd.summary(TIMES).amplitude[-1])
    rest = float(mixture_sgd.summary(TIMES).rest[-1]) + 1 / CLASSES
    checks.append(
        Check("inner product with the own mean", data["overlaps"][-1, 0], np.sqrt(rest / d), 0.9 * amplitude, 5)
    )
    return checks
