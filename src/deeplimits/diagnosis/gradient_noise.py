"""How noisy gradients are: the batch size up to which larger batches pay."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from deeplimits.diagnosis.findings import Assumption, Finding, few
from deeplimits.diagnosis.subject import Subject
from deeplimits.measure.estimates import Estimate
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Rule

BLOCKS = 20


def block_gradients(subject: Subject) -> tuple[np.ndarray, np.ndarray]:
    """Inner products of the mean gradients of disjoint random blocks of samples, and the sizes of the blocks."""
    model = subject.model
    order = np.random.default_rng(subject.seed).permutation(model.samples)
    blocks = np.array_split(order, min(BLOCKS, model.samples // 2))
    found = []
    for block in blocks:
        weights = np.zeros(model.samples)
        weights[block] = 1 / len(block)
        found.append(sum(piece.gradient() for piece in model.pieces(weights)))
    rows = np.stack(found)
    return rows @ rows.T, np.array([len(block) for block in blocks])


def noise_scale(gram: np.ndarray, sizes: np.ndarray) -> float:
    """tr Σ/|g|², unbiased in numerator and denominator; infinite where no mean gradient is seen.

    Two blocks share the mean gradient and nothing else, so E g_a·g_b = |g|²; E |g_a|² = |g|² + tr Σ/b.
    """
    count = len(sizes)
    off = (gram.sum() - np.trace(gram)) / (count * (count - 1))
    noise = float(np.mean(sizes)) * (np.trace(gram) / count - off)
    return float(noise / off) if off > 0 else float("inf")


def examine(subject: Subject) -> Iterator[Finding]:
    """The noise scale with its jackknife error, beside the batch size in use."""
    model = subject.model
    if not model.separable or model.samples < 8:
        return
    gram, sizes = block_gradients(subject)
    value = noise_scale(gram, sizes)
    count = len(sizes)
    keep = [np.delete(np.arange(count), one) for one in range(count)]
    left = np.array([noise_scale(gram[np.ix_(k, k)], sizes[k]) for k in keep])
    batch = next(iter(model.data)).count
    whole = batch >= model.samples
    if not np.isfinite(value) or not np.all(np.isfinite(left)):
        yield Finding(
            "noise-scale",
            "gradient noise",
            "note",
            f"the mean gradient is not seen above the noise of {model.samples} samples: training stands at a minimum "
            "of this loss, or larger batches pay at any size.",
            measured=Estimate(value, None, draws=count, seed=subject.seed),
            what="noise scale tr Σ/|g|², in samples",
            references=("mccandlish2018",),
            urgency=-1.0,
        )
        return
    error = float(np.sqrt((count - 1) * np.mean((left - left.mean()) ** 2)))
    scale = f"{few(value, 3)} ± {few(error)} samples"
    said = f"the noise scale is {scale}: larger batches pay up to about there, and little beyond"
    said += "." if whole else f"; batches hold {batch}."
    yield Finding(
        "noise-scale",
        "gradient noise",
        "note",
        said,
        ""
        if whole or batch < 10 * value
        else f"batches of {batch} average over far more than the noise asks for; smaller ones go as far in a step.",
        Estimate(value, error, draws=count, seed=subject.seed),
        "noise scale tr Σ/|g|², in samples",
        assumptions=(Assumption("samples are drawn independently", None),),
        references=("mccandlish2018",),
        picture=_picture(value, None if whole else batch, model.samples),
        urgency=-1.0,
        brief=f"larger batches pay up to about {scale}.",
    )


def _picture(scale: float, batch: int | None, samples: int) -> Picture:
    """Steps and samples that training needs, over the least possible of each: 1 + B*/B and 1 + B/B*."""
    sizes = np.geomspace(max(min(scale / 30, batch or scale, 1.0), 1e-2), max(30 * scale, samples), 100)
    marks: list[Any] = [
        Line(sizes, 1 + scale / sizes, label="steps needed, over the fewest possible", series=0),
        Line(sizes, 1 + sizes / scale, label="samples needed, over the fewest possible", series=1),
        Rule(scale, upright=True, label="noise scale"),
    ]
    if batch is not None:
        marks.append(Rule(batch, upright=True, label="batches in use", role=SIMULATION))
    return Picture(Axis("batch size", log=True), Axis("times the least possible", log=True), tuple(marks))
