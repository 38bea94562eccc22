"""The Hessian's eigenvalues as a whole: how many directions are flat, how many curve up, how many down."""

from collections.abc import Iterator

import numpy as np

from deeplimits.diagnosis.findings import Assumption, Finding
from deeplimits.diagnosis.subject import Subject
from deeplimits.measure.curvature import hessian, spectral_density
from deeplimits.measure.estimates import Estimate
from deeplimits.predictions.picture import SIMULATION, Axis, Band, Line, Picture, Rule

PROBES, STEPS = 4, 30
OUTLIERS = 6
FLAT = 0.01
"""Of the sharpness: directions with less curvature are called flat."""
PRODUCTS = PROBES * STEPS + 40.0


def bytes_needed(subject: Subject) -> float:
    """Of the vectors that are held at once."""
    return 8.0 * (STEPS + 2 * OUTLIERS + 80) * subject.model.size


def examine(subject: Subject) -> Iterator[Finding]:
    """Shares of flat, rising and falling directions, with their errors over probes, and the density."""
    size = subject.model.size
    few = max(1, min(OUTLIERS, size // 8))
    found = spectral_density(
        hessian(subject.model), outliers=few, probes=PROBES, steps=STEPS, tolerance=1e-2, seed=subject.seed
    )
    top = float(np.abs(found.outliers).max())
    edge = FLAT * top
    cdf = found.cdf(np.array([-edge, edge]))
    below, above = np.asarray(cdf.value, float)
    error = np.asarray(cdf.error, float)
    flat = above - below
    yield Finding(
        "hessian-spectrum",
        "curvature",
        "note",
        f"of {size:,} directions of the parameters {flat:.1%} are flat (a curvature below {FLAT:.0%} of the sharpness, "
        f"{top:.3g}), {1 - above:.1%} curve upwards and {below:.1%} downwards.",
        measured=Estimate(flat, float(np.hypot(*error)), draws=PROBES, products=found.products, seed=subject.seed),
        what="share of flat directions",
        assumptions=(Assumption("no theory's line: it is measured, by random directions", None),),
        references=("sagun2017", "papyan2020"),
        picture=_picture(found, top),
        urgency=-1.0,
    )


def _picture(found, top: float) -> Picture:
    ends = min(float(found.nodes.min()), float(found.outliers.min())), max(float(found.nodes.max()), top)
    reach = ends[1] - ends[0]
    x = np.linspace(ends[0] - 0.05 * reach, ends[1] + 0.05 * reach, 300)
    density = found.density(x, width=reach / 60)
    value, error = np.asarray(density.value, float), np.asarray(density.error, float)
    least = 0.1 / found.size / reach
    marks = (
        Band(
            x, np.maximum(value - 2 * error, least), np.maximum(value + 2 * error, least), label="two standard errors"
        ),
        Line(x, np.maximum(value, least), label="measured", role=SIMULATION, series=0),
        Rule(0.0, upright=True, label="flat"),
    )
    return Picture(Axis("eigenvalue of the Hessian"), Axis("density of eigenvalues", log=True), marks)
