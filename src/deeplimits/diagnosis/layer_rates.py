r"""How much one step of the optimizer changes what leaves each layer: the rates that would make all layers learn alike.

Maximal update is the scaling in which ΔW x is of the order of W x in every layer at every width n, so that the learning
rates are, from the first over the inner layers to the last, ∝ n, 1, 1/n for SGD and ∝ 1, 1/n, 1/n for Adam, relative to
the step of a narrow network, with a last layer that starts as 1/n.
"""

from collections.abc import Iterator

import numpy as np

from deeplimits.diagnosis.findings import Assumption, Finding
from deeplimits.diagnosis.subject import Subject
from deeplimits.measure.adapters.data import Batch, cut
from deeplimits.measure.adapters.signals import passages
from deeplimits.measure.estimates import Estimate
from deeplimits.predictions.picture import Axis, Picture, Points, Rule

UNEQUAL = 100.0
"""Layers whose relative changes differ by more than this are worth a word."""
TOO_MUCH = 1.0
SAMPLES = 64


def direction(subject: Subject) -> np.ndarray:
    """The first step of the optimizer in use, over its learning rate."""
    from deeplimits.diagnosis.learning_rate import denominators, rates

    optimizer = subject.optimizer
    gradient = subject.gradient
    if optimizer is not None and optimizer.name == "adam":
        gradient = gradient / denominators(subject)
    return -gradient * rates(subject)


def relative_changes(subject: Subject) -> dict[str, float]:
    """‖ΔW x‖/‖W x + b‖ of a step of size one, for every affine layer."""
    model = subject.model
    named = model.layout.named(direction(subject))
    batch = next(iter(model.data))
    count = min(SAMPLES, batch.count)
    seen = passages(model, Batch(cut(batch.inputs, 0, count), cut(batch.targets, 0, count), count))
    found = {}
    for one in seen:
        change = next(
            (named[key] for key in (f"{one.name}.weight", one.name, f"{one.name}.kernel") if key in named), None
        )
        size = float(np.sqrt(np.mean(one.leaving**2)))
        if change is not None and one.times is not None and size > 0:
            found[one.name] = float(np.sqrt(np.mean(one.times(change) ** 2))) / size
    return {name: value for name, value in found.items() if value > 0}


def examine(subject: Subject) -> Iterator[Finding]:
    """One finding: which layers a step moves most and least."""
    if subject.optimizer is None:
        return
    found = relative_changes(subject)
    if len(found) < 2:
        return
    step = subject.optimizer.step
    names, values = list(found), step * np.array(list(found.values()))
    middle = float(np.exp(np.mean(np.log(values))))
    most, least = int(np.argmax(values)), int(np.argmin(values))
    ratio = float(values[most] / values[least])
    rule = "1, 1/n, 1/n" if subject.optimizer.name == "adam" else "n, 1, 1/n"
    severity = "note" if ratio > UNEQUAL or values[most] > TOO_MUCH else "fine"
    said = ", ".join(f"{name} × {middle / value:.2g}" for name, value in zip(names, values, strict=True))
    yield Finding(
        "layer-rates",
        "learning rate",
        severity,
        f"a step changes what leaves the layers by between {values[least]:.2g} of its size (in {names[least]}) and "
        f"{values[most]:.2g} (in {names[most]}); by the maximal-update rule the rates in networks of width n go as "
        f"{rule} from the first layer to the last.",
        f"rates that make all layers learn alike: {said if len(names) <= 8 else f'{said[:200]} …'}."
        if severity != "fine"
        else "",
        Estimate(ratio, None),
        "largest over smallest relative change of a layer in one step",
        1.0,
        (Assumption("first step on the whole data set; steps of a network that is trained differ", None),),
        ("yang2021",),
        brief=f"a step changes the layers by between {values[least]:.2g} ({names[least]}) and {values[most]:.2g} "
        f"({names[most]}) of what leaves them.",
        theory_what="layers that learn alike",
        picture=Picture(
            Axis("layer", whole=True),
            Axis("relative change of what leaves it, by its own update", log=True),
            (
                Rule(middle, label="alike, as in maximal update"),
                Points(np.arange(1, len(values) + 1), values, label="measured", role="simulation", series=0),
            ),
        ),
    )
