r"""Does training still fall, or does the noise of its batches hold it where it is?

A step Δθ changes the loss by ∇L·Δθ + ½Δθ·HΔθ, to second order. At stationarity the mean of the loss is the same before
and after, so that −⟨∇L·Δθ⟩ = ½⟨Δθ·HΔθ⟩; for plain SGD, whose Δθ is −η∇L_B, that is the second fluctuation-dissipation
relation ⟨‖∇L‖²⟩ = (η/2)⟨∇L_B·H∇L_B⟩. Both sides are measured along a short run of the optimizer on a copy.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from deeplimits.diagnosis.findings import Assumption, Finding, few
from deeplimits.diagnosis.learning_rate import WORDS
from deeplimits.diagnosis.regime import shortened
from deeplimits.diagnosis.subject import Optimizer, Subject
from deeplimits.measure.adapters import Model
from deeplimits.measure.estimates import Estimate
from deeplimits.measure.fluctuation_dissipation import Observation, Relation, report
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points

SAMPLES = 1024
WARM, STEPS, BLOCKS = 12, 48, 8
"""Steps in which a velocity builds up, where there is one; steps that are measured, and blocks of them."""
BATCH = 32
"""Samples of a step where the data come as one batch."""
CERTAIN = 4.0
BALANCE = 0.5
"""Of the larger side: what the difference must be below, errors included, for the two to be called equal."""


class Run(NamedTuple):
    """A short run: what each step takes from the loss along the gradient, and what curvature puts back."""

    falls: np.ndarray
    """−∇L·Δθ"""
    rises: np.ndarray
    """½Δθ·HΔθ"""
    relation: Relation


def products_needed(subject: Subject) -> float:
    """About how many products with the Hessian on all data the run costs."""
    optimizer = subject.optimizer
    if optimizer is None or optimizer.name == "adam" or not subject.model.separable:
        return 0.0
    return 2.0 * (WARM + STEPS) * min(1.0, SAMPLES / subject.model.samples)


def examine(subject: Subject) -> Iterator[Finding]:
    """One finding: both sides of the relation, and which is larger."""
    optimizer, model = subject.optimizer, subject.model
    if optimizer is None or optimizer.name == "adam" or not model.separable or model.samples < 16:
        return
    batch = next(iter(model.data)).count
    given = batch < model.samples
    small = model if model.samples <= SAMPLES else shortened(model, SAMPLES)
    count = min(batch if given else BATCH, small.samples // 4)
    run = short_run(small, optimizer, count, subject.seed)
    if run is None:
        return
    fall, rise = float(run.falls.mean()), float(run.rises.mean())
    gap, error = float(run.relation.difference.value), float(run.relation.difference.error)
    clear = abs(gap) > CERTAIN * error
    said = (
        f"in {STEPS} steps of {WORDS[optimizer.name]} on a copy (batches of {count}) a step takes {few(fall)} from the "
        f"loss along the gradient, and overshooting and noise put {few(rise)} back"
    )
    action = ""
    if clear and gap > 0:
        word = "training still falls"
    elif clear:
        word, action = "the loss rises", "take a smaller learning rate or larger batches."
    elif abs(gap) + 2 * error < BALANCE * max(fall, rise):
        word = "the two balance: training stands still at this step"
        action = "a smaller learning rate, or larger batches, take the loss farther down; more steps like these do not."
    else:
        word = "too few steps to tell whether training still falls"
    yield Finding(
        "stationarity",
        "gradient noise",
        "note",
        f"{said} (difference {few(gap)} ± {few(error, 1)}): {word}.",
        action,
        Estimate(gap, error, draws=STEPS, seed=subject.seed),
        "what a step takes from the loss along the gradient, less what it puts back",
        0.0,
        (
            Assumption("steps are small enough for second order", None),
            Assumption("batches are drawn anew in each step", None),
        ),
        ("yaida2019",),
        _picture(run),
        urgency=-1.0,
        brief=f"{word} (a step takes {few(fall)} from the loss, and puts {few(rise)} back).",
        theory_what="at stationarity",
    )


def short_run(model: Model, optimizer: Optimizer, batch: int, seed: int) -> Run | None:
    """Both sides along a run from where the network stands; None where it diverges."""
    random = np.random.default_rng([seed, 13])
    theta, velocity, rows = model.vector.copy(), np.zeros(model.size), []
    moving, beta = model, optimizer.momentum
    first = model.loss()
    for step in range((WARM if beta else 0) + STEPS):
        weights = np.zeros(model.samples)
        weights[random.choice(model.samples, batch, replace=False)] = 1 / batch
        noisy = sum(piece.gradient() for piece in moving.pieces(weights)) + optimizer.coupled * theta
        velocity = beta * velocity + noisy
        change = -optimizer.step * (noisy + beta * velocity if optimizer.name == "nesterov" else velocity)
        if not beta or step >= WARM:
            rows.append((-float(moving.gradient() @ change), float(change @ moving.hessian_product(change)) / 2))
            if not np.all(np.isfinite(rows[-1])):
                return None
        theta = theta + change
        moving = model.at(theta)
    if not moving.loss() < 1e3 * max(first, 1e-12):
        return None
    falls, rises = np.array(rows).T
    zero = np.zeros(STEPS)
    relation = report(Observation(zero, zero, falls, rises), blocks=BLOCKS).second
    return None if relation is None else Run(falls, rises, relation)


def _picture(run: Run) -> Picture:
    steps = np.arange(1, STEPS + 1)
    positive = bool(np.all(run.falls > 0) and np.all(run.rises > 0))
    return Picture(
        Axis("step on a copy", whole=True),
        Axis("change of the loss in a step", log=positive),
        (
            Line(steps, run.falls, label="taken from the loss along the gradient"),
            Points(steps, run.rises, label="put back by overshooting and noise", role=SIMULATION, series=0),
        ),
    )
