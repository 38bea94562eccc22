r"""Does training still fall, or does the noise of its batches hold it where it is?

A step θ ← θ − η∇L_B changes the loss by −η‖∇L‖² + (η²/2)∇L_B·H∇L_B in mean, to second order in η; at stationarity the
two are equal, ⟨‖∇L‖²⟩ = (η/2)⟨∇L_B·H∇L_B⟩, the second fluctuation-dissipation relation. Both sides are measured along a
short run on a copy. Momentum β is taken as plain SGD with the step η/(1 − β) that it amounts to.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from deeplimits.diagnosis.findings import Assumption, Finding
from deeplimits.diagnosis.regime import shortened
from deeplimits.diagnosis.subject import Subject
from deeplimits.measure.estimates import Estimate
from deeplimits.measure.fluctuation_dissipation import Observation, Relation, report
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points

SAMPLES = 1024
STEPS, BLOCKS = 48, 8
BATCH = 32
"""Samples of a step where the data come as one batch."""
CERTAIN = 4.0


class Run(NamedTuple):
    """A short run of SGD: what each step's gradient takes from the loss and its noise adds, and the loss."""

    falls: np.ndarray
    """η‖∇L‖²"""
    rises: np.ndarray
    """(η²/2)∇L_B·H∇L_B"""
    losses: np.ndarray
    relation: Relation


def products_needed(subject: Subject) -> float:
    """About how many products with the Hessian on all data the run costs."""
    optimizer = subject.optimizer
    if optimizer is None or optimizer.name == "adam" or not subject.model.separable:
        return 0.0
    return 2.0 * STEPS * min(1.0, SAMPLES / subject.model.samples)


def examine(subject: Subject) -> Iterator[Finding]:
    """One finding: both sides of the relation, and which is larger."""
    optimizer, model = subject.optimizer, subject.model
    if optimizer is None or optimizer.name == "adam" or not model.separable or model.samples < 16:
        return
    batch = next(iter(model.data)).count
    given = batch < model.samples
    small = model if model.samples <= SAMPLES else shortened(model, SAMPLES)
    count = min(batch if given else BATCH, small.samples // 4)
    step = optimizer.step / (1 - optimizer.momentum)
    run = short_run(small, step, count, subject.seed)
    if run is None:
        return
    fall, rise = float(run.falls.mean()), float(run.rises.mean())
    gap = run.relation.difference.value * step
    error = float(run.relation.difference.error) * step
    still = abs(gap) <= CERTAIN * error
    said = (
        f"in {STEPS} steps of SGD on a copy (batches of {count}) gradients lower the loss by {fall:.2g} in each, and "
        f"the noise of the batch raises it by {rise:.2g}"
    )
    if still:
        word, action = (
            "the two balance: training stands still at this step",
            ("a smaller learning rate, or larger batches, take the loss farther down; more steps like these do not."),
        )
    elif gap > 0:
        word, action = "training still falls", ""
    else:
        word, action = "the loss rises", "take a smaller learning rate or larger batches."
    yield Finding(
        "stationarity",
        "gradient noise",
        "note",
        f"{said} (difference {gap:.2g} ± {error:.1g}): {word}.",
        action,
        Estimate(gap, error, draws=STEPS, seed=subject.seed),
        "what the gradient takes from the loss in a step, less what noise adds",
        0.0,
        (
            Assumption("the step is small enough for second order", bool(rise < 3 * abs(fall) or still)),
            Assumption("batches are drawn anew in each step", None),
            Assumption("plain SGD" if not optimizer.momentum else "momentum as SGD with the step η/(1 − β)", None),
        ),
        ("yaida2019",),
        _picture(run),
        urgency=-1.0,
        brief=f"{word} (a step's gradient takes {fall:.2g} from the loss, its noise adds {rise:.2g}).",
        theory_what="at stationarity",
    )


def short_run(model, step: float, batch: int, seed: int) -> Run | None:
    """Both sides along a run of SGD from where the network stands; None where it diverges."""
    random = np.random.default_rng([seed, 13])
    theta, rows = model.vector.copy(), []
    moving = model
    for _ in range(STEPS):
        weights = np.zeros(model.samples)
        weights[random.choice(model.samples, batch, replace=False)] = 1 / batch
        full = moving.gradient()
        noisy = sum(piece.gradient() for piece in moving.pieces(weights))
        bent = step / 2 * float(noisy @ moving.hessian_product(noisy))
        rows.append((float(full @ full), bent, moving.loss()))
        theta = theta - step * noisy
        moving = model.at(theta)
        if not np.all(np.isfinite(rows[-1])) or rows[-1][2] > 1e6 * max(rows[0][2], 1e-12):
            return None
    squares, bends, losses = np.array(rows).T
    zero = np.zeros(STEPS)
    found = report(Observation(zero, zero, squares, bends), blocks=BLOCKS).second
    return None if found is None else Run(step * squares, step * bends, losses, found)


def _picture(run: Run) -> Picture:
    steps = np.arange(1, STEPS + 1)
    positive = bool(np.all(run.falls > 0) and np.all(run.rises > 0))
    return Picture(
        Axis("step on a copy", whole=True),
        Axis("change of the loss in a step", log=positive),
        (
            Line(steps, run.falls, label="lowered by the gradient"),
            Points(steps, run.rises, label="raised by the noise of the batch", role=SIMULATION, series=0),
        ),
    )
