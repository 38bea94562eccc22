"""A linear probe on what enters the last layer: its error over the ridge, and how near to the peak it stands."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from deeplimits.diagnosis.findings import Assumption, Finding
from deeplimits.diagnosis.subject import Subject
from deeplimits.errors import DeeplimitsError
from deeplimits.measure.adapters.data import arrays, host
from deeplimits.measure.estimates import Estimate
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points

MOST_SAMPLES = 1500
LARGEST = 2**25
"""Entries of the features that are looked at."""
RIDGES = np.geomspace(1e-6, 1e2, 41)
"""In units of the features' mean variance."""
NEEDED = 1.3
"""A ridge is recommended where going without it costs more than this factor."""


class Probe(NamedTuple):
    """Errors of ridge regression from features to targets, in units of the variance of the targets, by ridge."""

    ridges: np.ndarray
    """λ in (1/n)‖y − Zβ − b‖² + λ‖β‖²."""
    measured: np.ndarray
    """By leaving out each sample in turn, exactly."""
    error: np.ndarray
    predicted: np.ndarray
    """(κ/λ)² times the training error, λ/κ = 1 − df(λ)/n: what the theory of ridge regression says of new samples."""
    rank: int
    samples: int


def examine(subject: Subject) -> Iterator[Finding]:
    """The probe's curve, its best ridge, and its peak."""
    try:
        features, targets = _entering(subject)
    except DeeplimitsError:
        return
    if features is None or targets is None or min(features.shape) < 2:
        return
    found = ridge_probe(features, targets)
    if found is None:
        return
    best = int(np.argmin(found.predicted))
    ridge, without = float(found.ridges[best]), float(found.predicted[0] / found.predicted[best])
    needed = without > NEEDED
    told = (
        f"a linear probe on what enters the last layer ({found.rank} directions, {found.samples:,} samples) is best "
        f"with a ridge of {ridge:.2g}: an error of {found.predicted[best]:.2g} of the targets' variance is predicted "
        f"for new samples, {found.measured[best]:.2g} is measured"
    )
    peak = (
        f"; without one it is {without:.3g} times larger: the peak of double descent is at {found.rank + 1:,} samples."
        if needed
        else "; it hardly needs one."
    )
    yield Finding(
        "linear-probe",
        "data",
        "note" if needed else "fine",
        told + peak,
        f"give a probe on these features that ridge (in scikit-learn Ridge(alpha={ridge * found.samples:.2g}))."
        if needed
        else "",
        Estimate(float(found.measured[best]), float(found.error[best])),
        "error on samples that were left out, over the variance of the targets",
        float(found.predicted[best]),
        (
            Assumption("samples are independent, and none stands far out", None),
            Assumption("many directions share the variance", bool(found.rank > 20)),
        ),
        ("hastie2022",),
        Picture(
            Axis("ridge", r"\lambda", log=True),
            Axis("error over variance of targets", log=True),
            (
                Line(found.ridges, found.predicted, label="predicted from the training error"),
                Points(
                    found.ridges[::4],
                    found.measured[::4],
                    np.maximum(found.measured - 2 * found.error, 1e-12)[::4],
                    (found.measured + 2 * found.error)[::4],
                    label="samples left out",
                    role=SIMULATION,
                    series=0,
                ),
            ),
        ),
        urgency=-1.0,
        brief=f"a linear fit to the last features errs by {found.measured[best]:.2g} on samples left out, with a "
        f"ridge of {ridge:.2g}" + (f"; {without:.3g} times that without one." if needed else "."),
        theory_what="the same, predicted from the training error",
    )


def ridge_probe(features: np.ndarray, targets: np.ndarray, ridges: np.ndarray | None = None) -> Probe | None:
    """Errors of ridge regression from features (n, p) to targets (n, k); None where either does not vary.

    The prediction needs eigenvalues and the training error; what is measured needs each sample's leverage.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(60, 50))
    >>> found = ridge_probe(z, z @ rng.normal(size=(50, 1)) / 7 + rng.normal(size=(60, 1)))
    >>> bool(found.predicted[0] > 3 * found.predicted.min())  # 50 directions, 60 samples: near the peak
    True
    """
    n = len(features)
    z, y = features - features.mean(axis=0), targets - targets.mean(axis=0)
    variance = float(np.mean(np.sum(y**2, axis=1)))
    u, s, _ = np.linalg.svd(z, full_matrices=False)
    kept = s > 1e-10 * s[0] if s[0] > 0 else s > 0
    if not variance or not kept.any():
        return None
    u, values = u[:, kept], s[kept] ** 2 / n
    scale = float(values.sum()) / len(values)
    ridges = scale * RIDGES if ridges is None else np.asarray(ridges, float)
    inside = u.T @ y
    measured, error, predicted = [], [], []
    for ridge in ridges:
        shrunk = values / (values + ridge)
        left = y - u @ (shrunk[:, None] * inside)
        # 1 − H_ii, where the mean takes its share too
        rest = 1 - 1 / n - (u**2) @ shrunk
        each = np.sum(left**2, axis=1) / np.maximum(rest, 1e-12) ** 2
        measured.append(each.mean() / variance)
        error.append(each.std(ddof=1) / np.sqrt(n) / variance)
        predicted.append(np.mean(np.sum(left**2, axis=1)) / max(1 - (1 + shrunk.sum()) / n, 1e-12) ** 2 / variance)
    return Probe(ridges, np.array(measured), np.array(error), np.array(predicted), len(values), n)


def _entering(subject: Subject) -> tuple[np.ndarray | None, np.ndarray | None]:
    """What enters the last layer, as rows, and the targets: classes one-hot."""
    rows, targets, count = [], [], 0
    for batch in subject.model.data:
        inside = subject.model.network.inside(batch, None, np.zeros((batch.count, 0, 1)))
        rows.append(np.asarray(inside.entering, float).reshape(batch.count, -1))
        targets.append(host(arrays(batch.targets)[0]))
        count += batch.count
        if count >= MOST_SAMPLES or count * rows[0].shape[1] > LARGEST:
            break
    joined = np.concatenate(targets)[:MOST_SAMPLES]
    if subject.classes:
        labels = subject.model.labels()[: len(joined)]
        joined = np.eye(int(labels.max()) + 1)[labels]
    elif joined.dtype.kind != "f":
        return None, None
    return np.concatenate(rows)[:MOST_SAMPLES], joined.reshape(len(joined), -1).astype(float)
