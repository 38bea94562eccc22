"""The Hessian's spectrum: what stands out of its bulk, how much of it is negative, where it comes from."""

from collections.abc import Iterator

import numpy as np

from deeplimits.diagnosis.findings import Assumption, Finding
from deeplimits.diagnosis.subject import Subject
from deeplimits.errors import DeeplimitsError, NotConverged
from deeplimits.measure.classes import gradient_decomposition
from deeplimits.measure.curvature import count_outliers, eigenpairs, hessian
from deeplimits.measure.estimates import Estimate
from deeplimits.predictions.picture import Axis, Picture, Points, Rule

TESTED = 6
"""Eigenvalues beyond the number of classes that are tested for standing out."""
BEHIND = 12
"""Eigenvalues of the bulk that the test needs behind those."""
DOWNHILL = 0.3
"""Share of negative over positive curvature that is worth a word."""


def products_needed(subject: Subject) -> int:
    """About how many products the findings take."""
    return 4 * ((subject.classes or 1) + TESTED + BEHIND) + 40


def examine(subject: Subject) -> Iterator[Finding]:
    """Outliers, negative curvature and the shares of the classes."""
    matrix = hessian(subject.model)
    size = subject.model.size
    tested = min((subject.classes or 1) + TESTED, size - BEHIND - 1)
    if tested >= 1:
        top = eigenpairs(matrix, count=tested + BEHIND, tolerance=1e-3, seed=subject.seed)
        yield _outliers(subject, top.values, tested)
        yield _negative(subject, matrix, float(top.values[0]))
    if subject.classes and subject.model.separable:
        yield from _shares(subject)


def _outliers(subject: Subject, values: np.ndarray, tested: int) -> Finding:
    found = count_outliers(values, most=tested, seed=subject.seed)
    expected = subject.classes
    said = f"{found.count} eigenvalues of the Hessian stand out of its bulk, whose edge is at {found.edge:.3g}"
    if expected is None:
        sentence = f"{said}."
    else:
        sentence = (
            f"{said}; for {expected} classes up to {expected - 1} are expected early in training, up to {expected} "
            "where classes have their own directions, and up to their square when cross-class parts split off."
        )
    chance = float(found.p_values[found.count - 1]) if found.count else float(found.p_values[0])
    return Finding(
        "outliers",
        "curvature",
        "note",
        f"{sentence} The chance of the last of them in a bulk alone is {chance:.1g}."
        if found.count
        else f"no eigenvalue of the Hessian stands out of its bulk (p = {chance:.2g}).",
        measured=Estimate(found.count, None, seed=subject.seed),
        what="eigenvalues that stand out",
        theory=None if expected is None else float(expected - 1),
        assumptions=(Assumption("the bulk ends like a square root", None),),
        references=("papyan2020", "sagun2017"),
        picture=Picture(
            Axis("rank, from the largest", whole=True),
            Axis("eigenvalue of the Hessian", log=bool(values[-1] > 0)),
            (
                Points(np.arange(1, len(values) + 1), values, label="measured", role="simulation", series=0),
                Rule(found.edge, label="edge of the bulk"),
            ),
        ),
        urgency=-1.0,
        brief=f"{found.count} directions of the loss stand out of the others"
        + ("." if expected is None else f"; for {expected} classes {expected - 1} to {expected} are usual."),
        theory_what="one for every class but one",
    )


def _negative(subject: Subject, matrix, top: float) -> Finding:
    try:
        bottom = eigenpairs(matrix, count=1, which="smallest", tolerance=1e-2, most_products=150, seed=subject.seed)
    except NotConverged:
        return Finding(
            "negative-curvature",
            "curvature",
            "fine",
            "negative curvature was not resolved from zero: it is small beside the sharpness.",
            references=("sagun2017",),
            urgency=-1.0,
        )
    value, error = float(bottom.values[0]), float(bottom.error[0])
    share = -value / top if top > 0 else float("inf")
    if value >= 0:
        sentence, severity = "the Hessian has no negative eigenvalue.", "fine"
    else:
        sentence = f"the most negative eigenvalue is {value:.3g}, {share:.1%} of the sharpness"
        severity = "note" if share > DOWNHILL else "fine"
        sentence += ": far from a minimum, a direction downhill is still open." if share > DOWNHILL else "."
    return Finding(
        "negative-curvature",
        "curvature",
        severity,
        sentence,
        "train on from here: this is no minimum." if severity == "note" else "",
        measured=Estimate(value, error, products=bottom.products, seed=subject.seed),
        what="smallest eigenvalue of the Hessian",
        theory=0.0,
        assumptions=(Assumption("training has come to a minimum", False if value < -DOWNHILL * top else None),),
        references=("sagun2017",),
        urgency=-1.0,
        theory_what="at a minimum, or above",
    )


def _shares(subject: Subject) -> Iterator[Finding]:
    try:
        traces = gradient_decomposition(subject.model).traces(products=30, seed=subject.seed)
    except DeeplimitsError:
        return
    parts = ("what tells classes apart", "pairs of classes", "differences within classes", "the right labels")
    # Of v₀/Σv, the parts being independent estimates.
    errors = np.array([float(one.error) for one in traces])
    weights = np.array([1 - traces.shares[0], *(-traces.shares[0] * np.ones(3))])
    error = float(np.linalg.norm(weights * errors)) / sum(float(one.value) for one in traces)
    said = ", ".join(f"{float(share):.0%} from {name}" for name, share in zip(parts, traces.shares, strict=True))
    yield Finding(
        "class-shares",
        "curvature",
        "note",
        f"of the curvature (the trace of the Gauss-Newton matrix) comes {said}.",
        measured=Estimate(float(traces.shares[0]), error, seed=subject.seed),
        what="share of the class means",
        references=("papyan2020",),
        picture=Picture(
            Axis("1 classes, 2 pairs of classes, 3 within classes, 4 the right label", whole=True, low=0.5, high=4.5),
            Axis("share of the trace", low=0.0, high=1.0),
            (Points(np.arange(1, 5), np.array(traces.shares, float), label="measured", role="simulation", series=0),),
        ),
        urgency=-1.0,
    )
