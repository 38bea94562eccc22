r"""Lazy or rich: does the network train as its linearization, or does its tangent kernel move?

On a copy, a few samples and full-batch gradient descent from where the network stands, beside the same steps of the
model that is linear in the parameters, f₀ + J₀(θ − θ₀), whose outputs move by its kernel, u ← u − η Θ₀ ∂L/∂u. What is
compared: ‖Θ_t − Θ₀‖/‖Θ₀‖, ‖f_t − f₀ − J₀(θ_t − θ₀)‖/‖f_t − f₀‖, and the two curves of the loss. In networks of width n
in the standard or tangent-kernel parametrization the kernel's change falls like 1/n: it is of the order of Σ_l 1/n_l
over the layers, times ‖f_t − f₀‖² over the variance of an output; in maximal update it does not fall.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from deeplimits.diagnosis.findings import Assumption, Finding
from deeplimits.diagnosis.subject import Subject
from deeplimits.measure.adapters import Model
from deeplimits.measure.adapters.data import Data, arrays, cut, host
from deeplimits.measure.curvature import eigenpairs, hessian
from deeplimits.measure.estimates import Estimate
from deeplimits.predictions.picture import SIMULATION, Axis, Histogram, Line, Picture, Points, Rule

SAMPLES = 128
POINTS = 24
"""Samples at which the kernel is computed."""
STEPS = 20
LARGEST = 2**27
"""Numbers that the gradients of all outputs at those points may hold."""
LAZY, RICH = 0.1, 0.5
"""Relative changes below the first are small, above the second large."""
SHUFFLES = 200


class Run(NamedTuple):
    """A short run of the network and of its linearization."""

    losses: np.ndarray
    linear: np.ndarray
    """losses of the linearization"""
    kernel_change: Estimate
    linearization_error: float
    moved: float
    """Root mean square of f_t − f₀"""
    outputs: int
    parameters: float
    """‖θ_t − θ₀‖/‖θ₀‖"""
    kernels: tuple[np.ndarray, np.ndarray]
    step: float


def products_needed(_: Subject) -> float:
    """About how many products with the Hessian on all data a short run costs."""
    return 60.0


def examine(subject: Subject) -> Iterator[Finding]:
    """The regime, the predicted and the real curve of the loss, and what the kernel knows of the labels."""
    small = shortened(subject.model, SAMPLES)
    found = short_run(small, seed=subject.seed, until=subject.deadline)
    if found is None:
        return
    yield _regime(subject, found)
    yield _curve(found)
    yield from _alignment(subject, small, found)


def shortened(model: Model, samples: int) -> Model:
    """The same network on the first samples of its data."""
    batch = next(iter(model.data))
    count = min(samples, batch.count)
    data = Data([(0, 1)], split=lambda _: (cut(batch.inputs, 0, count), cut(batch.targets, 0, count)))
    return Model(model.network, data, model.notes, model.separable)


def short_run(model: Model, *, steps: int = STEPS, seed: int = 0, until: float = np.inf) -> Run | None:
    """A few steps of gradient descent on a copy, and of the linearization; None where the loss has no curvature."""
    top = float(eigenpairs(hessian(model), count=1, tolerance=0.05, seed=seed).values[0])
    if not top > 0:
        return None
    step = 1 / top
    start = model.vector
    (first,) = list(model.pieces())
    u = f0 = first.outputs()
    before = kernel(model, seed)
    theta, losses, linear = start.copy(), [first.loss()], [first.loss()]
    moving, moved = model, first
    for _ in range(steps):
        theta = theta - step * moved.gradient()
        moving = model.at(theta)
        (moved,) = list(moving.pieces())
        losses.append(moved.loss())
        u = u - step * first.push(first.pull(first.at_outputs(u).slopes))
        linear.append(first.at_outputs(u).loss)
        if not np.isfinite(losses[-1]) or time.monotonic() > until:
            break
    if not np.all(np.isfinite(losses)):
        return None
    after = kernel(moving, seed)
    change = moved.outputs() - f0
    size = float(np.linalg.norm(change))
    gap = float(np.linalg.norm(change - first.push(theta - start)))
    return Run(
        np.array(losses),
        np.array(linear),
        _jackknifed(lambda k: float(np.linalg.norm(after[k] - before[k]) / np.linalg.norm(before[k])), len(before)),
        gap / size if size > 0 else 0.0,
        size / np.sqrt(change.size),
        int(np.prod(change.shape[1:])),
        float(np.linalg.norm(theta - start) / max(np.linalg.norm(start), 1e-300)),
        (before, after),
        step,
    )


def kernel(model: Model, seed: int) -> np.ndarray:
    """The tangent kernel at the first samples, of outputs in random directions, which average to all outputs."""
    small = shortened(model, POINTS)
    (piece,) = list(small.pieces())
    shape = piece.outputs().shape
    width = int(np.prod(shape[1:]))
    random = np.random.default_rng([seed, 7])
    count = 1 if width == 1 else min(2, width)
    rows = min(shape[0], max(4, LARGEST // (model.size * count)))
    total = np.zeros((rows, rows))
    for _ in range(count):
        direction = random.normal(size=width)
        direction /= np.linalg.norm(direction)
        gradients = np.empty((rows, model.size), np.float32)
        for i in range(rows):
            u = np.zeros((shape[0], width))
            u[i] = direction
            gradients[i] = piece.pull(u.reshape(shape))
        total += gradients.astype(float) @ gradients.T
    return total / count


def _jackknifed(function, count: int) -> Estimate:
    """A function of submatrices with its standard error over samples."""
    every = np.arange(count)
    value = function(np.ix_(every, every))
    left = np.array([function(np.ix_(np.delete(every, i), np.delete(every, i))) for i in every])
    return Estimate(value, float(np.sqrt((count - 1) * np.mean((left - left.mean()) ** 2))), draws=count)


def _regime(subject: Subject, run: Run) -> Finding:
    change, error = float(run.kernel_change.value), run.linearization_error
    word = "lazy" if max(change, error) < LAZY else "rich" if max(change, error) > RICH else "between lazy and rich"
    read = subject.architecture
    ratio = sum(1 / one.constants["width"] for one in read.of("affine")[:-1])
    size = subject.expected[-1].mean
    # Second order in the change of the outputs, which all of them bring about: ‖Δf‖²/K times the depth over the width.
    line = ratio * run.moved**2 * run.outputs / size if ratio and size > 0 else None
    sentence = (
        f"in {len(run.losses) - 1} steps of gradient descent on a copy the loss goes from {run.losses[0]:.3g} to "
        f"{run.losses[-1]:.3g}, the tangent kernel changes by {change:.2g} ± {float(run.kernel_change.error):.1g} of "
        f"itself, and the linearization is off by {error:.2g} of the change: the network trains {word}"
    )
    if line is not None:
        sentence += (
            f". Widths of these sizes (Σ 1/n = {ratio:.2g}) with outputs moving by {run.moved:.2g} let one expect"
        )
        sentence += f" about {line:.2g}"
        if change > LAZY:
            sentence += (
                f"; it would be below {LAZY} from {change / LAZY:.2g} times the widths on, if not in maximal update"
            )
    return Finding(
        "regime",
        "regime",
        "note",
        f"{sentence}.",
        measured=run.kernel_change,
        what="relative change of the tangent kernel",
        theory=line,
        assumptions=(
            Assumption("gradient descent on few samples, at half the largest stable step", None),
            Assumption("an order of magnitude, for the standard and the tangent-kernel parametrization", None),
        ),
        references=("jacot2018", "chizat2019"),
        urgency=-1.0,
        brief=f"the network trains {word}: in a short run its tangent kernel changes by {change:.2g} of itself.",
    )


def _curve(run: Run) -> Finding:
    fell, stated = run.losses[0] - run.losses[-1], run.linear[0] - run.linear[-1]
    steps = np.arange(len(run.losses))
    return Finding(
        "kernel-regression",
        "regime",
        "note",
        f"descent by the tangent kernel of the start would bring the loss from {run.linear[0]:.3g} to "
        f"{run.linear[-1]:.3g} in these steps; the network comes to {run.losses[-1]:.3g}"
        + (": it learns faster than its kernel." if fell > 1.1 * stated else "."),
        measured=Estimate(float(run.losses[-1]), None),
        what="loss after the short run",
        theory=float(run.linear[-1]),
        assumptions=(Assumption("the kernel stands still", bool(run.kernel_change.value < LAZY)),),
        references=("lee2019", "jacot2018"),
        picture=Picture(
            Axis("step of gradient descent", whole=True),
            Axis("loss", log=bool(min(run.linear.min(), run.losses.min()) > 0)),
            (
                Line(steps, run.linear, label="predicted by the kernel of the start"),
                Points(steps, run.losses, label="the network", role=SIMULATION, series=0),
            ),
        ),
        urgency=-1.0,
    )


def _alignment(subject: Subject, small: Model, run: Run) -> Iterator[Finding]:
    count = len(run.kernels[0])
    target = host(arrays(next(iter(small.data)).targets)[0])[:count]
    if subject.classes:
        labels = np.unique(target if target.ndim == 1 else np.argmax(target, axis=1), return_inverse=True)[1]
        target = np.eye(int(labels.max()) + 1)[np.ravel(labels)]
    elif target.dtype.kind != "f":
        return
    y = target.reshape(count, -1).astype(float)
    if not np.any(y - y.mean(axis=0)):
        return

    def aligned(matrix: np.ndarray, of: np.ndarray) -> float:
        a, b = (m - m.mean(axis=0) - m.mean(axis=1)[:, None] + m.mean() for m in (matrix, of))
        size = float(np.linalg.norm(a) * np.linalg.norm(b))
        return float(np.sum(a * b)) / size if size > 0 else 0.0

    gram = y @ y.T
    start, end = (_jackknifed(lambda k, m=m: aligned(m[k], gram[k]), count) for m in run.kernels)
    random = np.random.default_rng([subject.seed, 11])
    orders = [random.permutation(count) for _ in range(SHUFFLES)]
    blind = np.array([aligned(run.kernels[0], gram[np.ix_(order, order)]) for order in orders])
    grows = float(end.value) > float(start.value) + float(start.error)
    yield Finding(
        "kernel-alignment",
        "regime",
        "note",
        f"the alignment of the tangent kernel with the labels (1 would be perfect) is {float(start.value):.2g} ± "
        f"{float(start.error):.1g}, where shuffled labels have {blind.mean():.2g} ± {blind.std():.1g}; after a run "
        f"it is {float(end.value):.2g}" + (": the kernel turns towards the labels." if grows else "."),
        measured=start,
        what="cosine of the centred kernel and the labels' Gram matrix",
        theory=float(blind.mean()),
        assumptions=(Assumption("the line is that of shuffled labels", None),),
        references=("jacot2018",),
        picture=_shuffled(blind, float(start.value), float(end.value)),
        urgency=-1.0,
        theory_what="that of shuffled labels",
    )


def _shuffled(blind: np.ndarray, start: float, end: float) -> Picture:
    heights, edges = np.histogram(blind, bins=20, density=True)
    return Picture(
        Axis("alignment of the tangent kernel with the labels"),
        Axis("density"),
        (
            Histogram(edges, heights, label="shuffled labels", series=1),
            Rule(start, upright=True, label="these labels", role=SIMULATION, series=0),
            Rule(end, upright=True, label="after the short run", role=SIMULATION, series=2),
        ),
    )
