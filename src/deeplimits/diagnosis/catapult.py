r"""Above the stable step: the window in which wide networks do not diverge but jump to a flatter place.

Gradient descent on a squared loss moves the outputs by the tangent kernel Θ; with λ its largest eigenvalue over the
number of samples, in the loss's own units the largest eigenvalue of the Gauss-Newton matrix, it is lazy below 2/λ,
catapults up to 4/λ, and diverges beyond (exactly so for bilinear networks and one datum).
"""

from collections.abc import Iterator

import numpy as np

from deeplimits.diagnosis.findings import Assumption, Finding
from deeplimits.diagnosis.subject import Subject
from deeplimits.measure.adapters.data import arrays, host
from deeplimits.measure.curvature import eigenpairs, gauss_newton, tangent_kernel
from deeplimits.measure.estimates import Estimate
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points, Rule
from deeplimits.theory.landscape import learning_rate_phases, reduced_catapult

TOLERANCE = 1e-2
KERNEL = 3
"""Eigenvalues of the tangent kernel that are said."""
PRODUCTS = 40.0
"""About how many products it takes."""
STEPS = 24


def examine(subject: Subject) -> Iterator[Finding]:
    """The window of the catapult, from the top of the tangent kernel and of the Gauss-Newton matrix."""
    model = subject.model
    top = eigenpairs(gauss_newton(model), count=1, tolerance=TOLERANCE, seed=subject.seed)
    value = float(top.values[0])
    if not value > 0:
        return
    phases = learning_rate_phases(value)
    lazy, largest = float(phases.lazy), float(phases.largest)
    kernel = tangent_kernel(model)
    few = min(KERNEL, kernel.shape[0])
    theta = eigenpairs(kernel, count=few, tolerance=TOLERANCE, seed=subject.seed).values / model.samples
    said = (
        f"below a learning rate of {lazy:.3g} gradient descent lowers the loss from the first step on; up to "
        f"{largest:.3g} wide networks first jump up, then settle in a flatter place (a catapult); beyond they diverge"
    )
    optimizer, where = subject.optimizer, ""
    if optimizer is not None and optimizer.name == "gd":
        place = "below the window" if optimizer.step < lazy else "in it" if optimizer.step < largest else "beyond it"
        where = f"; your step of {optimizer.step:.3g} is {place}"
    squared = host(arrays(next(iter(model.data)).targets)[0]).dtype.kind == "f"
    yield Finding(
        "catapult",
        "learning rate",
        "note",
        f"{said}{where}. The largest eigenvalues of the tangent kernel over the samples are "
        f"{', '.join(f'{one:.3g}' for one in theta)}.",
        "raise the learning rate from below the window in some tens of steps (warm-up) if you want one inside it."
        if where.endswith(("in it", "beyond it"))
        else "",
        Estimate(value, float(top.error[0]), products=top.products, seed=subject.seed),
        "largest eigenvalue of the Gauss-Newton matrix",
        lazy,
        (
            Assumption("a squared loss (others have a curvature of their own, which changes on the way)", squared),
            Assumption("plain gradient descent on all data", None if optimizer is None else optimizer.name == "gd"),
            Assumption("a network bilinear in its weights; ReLU networks bear more, about 12/λ", None),
        ),
        ("lewkowycz2020",),
        _picture(optimizer.step if where and optimizer is not None else None, value),
        urgency=-1.0,
        brief=f"lazy below a step of {lazy:.3g}, a catapult up to {largest:.3g}{where}.",
        theory_what="the learning rate at which the window of the catapult begins, 2/λ",
    )


def _picture(step: float | None, value: float) -> Picture:
    """The loss of the reduced model, below the window, in it, and at the step in use."""
    shown = [("below the window", 0.5), ("in the middle of it", 3.0)]
    if step is not None and 0 < step * value < 4:
        shown.append(("at your step", step * value))
    marks = []
    for series, (word, product) in enumerate(shown):
        path = reduced_catapult(product, 1e-3 * product**2 / 4, STEPS)
        loss = np.asarray(path.energy) / path.energy[0]
        marks.append(Points(np.arange(STEPS + 1), np.maximum(loss, 1e-8), label=word, role=SIMULATION, series=series))
        marks.append(Line(np.arange(STEPS + 1), np.maximum(loss, 1e-8), series=series))
    return Picture(
        Axis("step of gradient descent", whole=True),
        Axis("loss over that at the start", log=True, low=1e-5),
        (*marks, Rule(1.0)),
    )
