"""The data: where its variance is, whether classes are balanced, whether labels contradict each other."""

from collections.abc import Iterator

import numpy as np

from deeplimits.diagnosis.findings import Assumption, Finding
from deeplimits.diagnosis.subject import Subject
from deeplimits.measure.adapters.data import arrays, host
from deeplimits.measure.estimates import Estimate
from deeplimits.predictions.picture import Axis, Picture, Points
from deeplimits.theory.regression import ridgeless_finite_sample_risk

LARGEST = 2**26
"""Entries of the inputs that are looked at."""
MOST_WORK = 2e9
"""Multiplications beyond which the error of the effective dimension is not computed."""
BLOCKS = 10
"""Of samples, whose scatter is the error of the effective dimension."""
MEAN_SHARE = (0.9, 0.999)
REPEATED = (0.01, 0.2)
"""Shares of samples that are there more than once: worth a note, a warning."""
IMBALANCE = (20.0, 1e4)


def flat_inputs(subject: Subject) -> np.ndarray | None:
    """Real inputs as rows; None where they are whole numbers (tokens), several arrays, or of unlike shapes."""
    rows, entries = [], 0
    for batch in subject.model.data:
        found = arrays(batch.inputs)
        if len(found) != 1:
            return None
        values = host(found[0])
        if values.dtype.kind != "f" or (rows and values.shape[1:] != rows[0].shape[1:]):
            return None
        rows.append(values)
        entries += values.size
        if entries > LARGEST:
            break
    joined = np.concatenate(rows)
    return joined.reshape(len(joined), -1).astype(float)


def examine(subject: Subject) -> Iterator[Finding]:
    """Spectrum of the inputs, classes, contradictions."""
    rows = flat_inputs(subject)
    if rows is not None and min(rows.shape) > 1:
        yield _spectrum(rows)
        if subject.classes:
            yield from _contradictions(subject, rows)
    if subject.classes:
        yield _balance(subject)


def _spectrum(rows: np.ndarray) -> Finding:
    mean = rows.mean(axis=0)
    centred = rows - mean
    values = np.linalg.svd(centred, compute_uv=False) ** 2 / len(rows)
    total = float(values.sum())
    size = float(mean @ mean) + total
    if total == 0:
        return Finding(
            "inputs", "data", "critical", "all inputs are the same sample.", "look at how the data are loaded.",
            Estimate(0.0, None), "variance of the inputs", references=("hastie2022",),
        )  # fmt: skip
    dimension = total**2 / float(np.sum(values**2))
    share = float(mean @ mean) / size
    severity = "warning" if share > MEAN_SHARE[0] else "fine"
    said = (
        f"{rows.shape[0]:,} samples of {rows.shape[1]:,} features have an effective dimension of {dimension:.3g}; "
        f"their mean carries {share:.0%} of their mean square"
    )
    peak = _peak(len(rows), int(np.sum(values > 1e-9 * values[0])), rows.shape[1])
    return Finding(
        "inputs",
        "data",
        severity,
        f"{said}: one large eigenvalue of every kernel, which limits the step."
        if severity != "fine"
        else f"{said}. {peak}",
        "" if severity == "fine" else "subtract the mean of each feature.",
        Estimate(dimension, _jackknifed(rows) if rows.size * min(rows.shape) < MOST_WORK else None),
        "effective dimension (Σλ)²/Σλ² of the centred inputs",
        references=("hastie2022",),
        brief=said + ".",
        picture=Picture(
            Axis("rank", log=True),
            Axis("eigenvalue of the covariance", log=True),
            (
                Points(
                    np.arange(1, len(values) + 1)[values > 1e-9 * values[0]],
                    values[values > 1e-9 * values[0]],
                    label="measured",
                    role="simulation",
                    series=0,
                ),
            ),
        ),
    )


def _jackknifed(rows: np.ndarray) -> float:
    """Standard error of (Σλ)²/Σλ², by leaving out blocks of samples in turn."""
    parts = np.array_split(np.random.default_rng(0).permutation(len(rows)), min(BLOCKS, len(rows)))
    left = []
    for part in parts:
        kept = np.delete(rows, part, axis=0)
        kept = kept - kept.mean(axis=0)
        gram = kept @ kept.T if len(kept) < kept.shape[1] else kept.T @ kept
        size = float(np.sum(gram**2))
        left.append(float(np.trace(gram)) ** 2 / size if size > 0 else 0.0)
    return float(np.sqrt((len(parts) - 1) * np.mean((np.array(left) - np.mean(left)) ** 2)))


def _peak(samples: int, rank: int, features: int) -> str:
    """Where a linear fit to these inputs has its peak of double descent, and how far from it these samples are."""
    if samples <= rank + 2:
        return (
            f"A linear fit without a ridge goes through all of these samples; its error peaks where there are as many "
            f"samples as directions, {features:,} or fewer here."
        )
    # Exact for Gaussian inputs of any covariance: E tr Σ(X'X)⁻¹ = p/(n − p − 1), the mean taking one sample.
    cost = float(ridgeless_finite_sample_risk(samples - 1, rank, 0.0, 1.0).variance)
    return (
        f"A linear fit without a ridge has the peak of its error at {rank + 1:,} samples; with yours it adds "
        f"{cost:.2g} times the variance of the noise."
    )


def _contradictions(subject: Subject, rows: np.ndarray) -> Iterator[Finding]:
    labels = subject.model.labels()[: len(rows)]
    _, place = np.unique(rows, axis=0, return_inverse=True)
    place = np.ravel(place)
    low = np.full(place.max() + 1, labels.max() + 1)
    high = np.full(place.max() + 1, -1)
    np.minimum.at(low, place, labels)
    np.maximum.at(high, place, labels)
    against = low[place] != high[place]
    if np.any(against):
        yield _against(labels, against, low[place], high[place])
    repeated = (np.bincount(place)[place] > 1) & ~against
    share = float(np.mean(repeated))
    if share > REPEATED[0]:
        counts = np.bincount(labels[repeated])
        worst = int(np.argmax(counts))
        severity = "warning" if share > REPEATED[1] or counts[worst] > 0.5 * np.sum(labels == worst) else "note"
        yield Finding(
            "repeats",
            "data",
            severity,
            f"{int(repeated.sum())} samples ({share:.1%}) are in the data more than once, most ({counts[worst]}) "
            f"in class {worst}: they weigh more than the others, and a test on some of them is no test.",
            "keep one of each, before training and test are split.",
            Estimate(share, None),
            "share of samples",
            theory=0.0,
            assumptions=(Assumption("samples are drawn independently, and equal inputs are no coincidence", False),),
            references=("barz2020",),
            urgency=1.0,
            theory_what="of samples drawn independently, none by chance",
        )


def _against(labels: np.ndarray, against: np.ndarray, low: np.ndarray, high: np.ndarray) -> Finding:
    count = int(np.sum(against))
    share = count / len(labels)
    pairs, counts = np.unique(np.column_stack([low, high])[against], axis=0, return_counts=True)
    a, b = pairs[int(np.argmax(counts))]
    between = np.isin(labels, (a, b))
    whole = share > 0.01 and counts.max() > 0.5 * np.sum(between)
    same = f" Classes {a} and {b} hold the same samples." if whole else ""
    return Finding(
        "contradictions",
        "data",
        "critical" if whole else "warning" if share > 0.01 else "note",
        f"{count} samples ({share:.1%}) have the same input as one with another label: no network fits them all.{same}",
        f"merge classes {a} and {b}, or look at how labels were made."
        if whole
        else "remove duplicates, or look at how labels were made.",
        Estimate(share, None),
        "share of samples",
        theory=0.0,
        assumptions=(Assumption("the label is a function of the input, so that a network can fit it", False),),
        references=("northcutt2021",),
        urgency=4.0,
        theory_what="where the label is a function of the input",
    )


def _balance(subject: Subject) -> Finding:
    counts = np.bincount(subject.model.labels(), minlength=subject.classes or 0)
    ratio = float(counts.max() / max(counts.min(), 1))
    severity = "warning" if ratio > IMBALANCE[0] else "fine"
    return Finding(
        "balance",
        "data",
        severity,
        f"the largest of {len(counts)} classes has {counts.max():,} samples, the smallest {counts.min():,}.",
        "" if severity == "fine" else "weight the loss by class, or sample the rare ones more often.",
        Estimate(ratio, None),
        "largest class over smallest",
        theory=1.0,
        assumptions=(Assumption("classes matter alike", None),),
        references=("buda2018",),
        picture=Picture(
            Axis("class", whole=True),
            Axis("samples", low=0.0),
            (Points(np.arange(len(counts)), counts, label="samples of the class", role="simulation", series=0),),
        ),
        theory_what="classes of equal size",
    )
