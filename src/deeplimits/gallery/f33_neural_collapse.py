"""Neural collapse: features become their class means.

A ReLU network 64-w-w-10 learns all of 1,000 of scikit-learn's digits by gradient descent far beyond zero error (w =
64, 6,000 steps; small: 300 digits, w = 24, 700 steps). Drawn are the eigenvalues of the features' second moment
beside those of its class part, layer by layer; and over training how far features and classifier are from the simplex
of theory: the spread within classes, the lengths of class means, their angles, the classifier beside them, the
mismatch with the nearest mean.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits import ensembles
from deeplimits.gallery import datasets
from deeplimits.gallery.figure import Check
from deeplimits.measure import classes as by_class
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Mark, Picture, Points, Rule

NOTES = "ORF 543, 10/5"
LIMITS = ("papyan-feature-decomposition", "neural-collapse-metrics", "neural-collapse-ufm")
CLASSES, RATE = 10, 0.3
METRICS = ("within", "lengths", "angles", "classifier", "mismatch")


def compute(run):
    """Features at the end, and the measures of collapse along training."""
    run.expect(1)
    size = {"count": run.pick(1000, 300), "width": run.pick(64, 24), "steps": run.pick(6000, 700)}
    return run.step("training", trained, **size)


def layers(network, x):
    """Features of every layer, the outputs last."""
    found = [x]
    for place, (w, b) in enumerate(network):
        z = found[-1] @ w + b[None]
        found.append(z if place == len(network) - 1 else jax.nn.relu(z))
    return found


def trained(count, width, steps):
    """A network trained by gradient descent on cross-entropy."""
    x, labels = datasets.centred_digits()
    x, labels = jnp.asarray(4 * x[:count]), jnp.asarray(labels[:count])
    random = np.random.default_rng(0)
    sizes = [64, width, width, CLASSES]
    start = [
        (jnp.asarray(np.sqrt(2 / a) * random.standard_normal((a, b))), jnp.zeros(b))
        for a, b in itertools.pairwise(sizes)
    ]

    def loss(network):
        # A little ridge makes the classifier settle: collapse is a statement about regularized training.
        ridge = sum(jnp.sum(w**2) for w, _ in network)
        scores = jax.nn.log_softmax(layers(network, x)[-1])
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1)) + 5e-4 * ridge

    def seen(network):
        *_, features, outputs = layers(network, x)
        found = by_class.neural_collapse(features, labels, CLASSES, weights=network[-1][0].T, outputs=outputs)
        wrong = jnp.mean(jnp.argmax(outputs, axis=1) != labels)
        spread = found.within_over_between
        measures = (spread, found.nc2_norms, found.nc2_angles, found.nc3, found.nc4)
        return jnp.stack([jnp.asarray(one) for one in measures]), wrong, network

    at = np.unique(np.append(0, np.geomspace(5, steps, 16).round().astype(int)))
    descent = jax.jit(functools.partial(ensembles.gradient_descent, loss, marks=at, observe=seen))
    metrics, wrong, path = descent(start, jnp.asarray(RATE))
    last = jax.tree.map(lambda leaf: leaf[-1], path)
    found = {"at": at, "metrics": metrics, "wrong": wrong}
    for place, features in enumerate(layers(last, x)[1:-1], start=1):
        parts = by_class.feature_parts(features, labels, CLASSES)
        for name, matrix in (("whole", parts.whole), ("classes", parts.classes)):
            found[f"{name}_{place}"] = jnp.linalg.eigvalsh(matrix)[::-1]
        miss = features.T @ features / len(features) - parts.whole
        found[f"miss_{place}"] = jnp.abs(miss).max() / jnp.abs(parts.whole).max()
        found[f"share_{place}"] = jnp.trace(parts.classes) / jnp.trace(parts.whole)
    return found


def draw(data):
    """Eigenvalues by layer, and the approach of the simplex."""
    panels = []
    for place, name in ((1, "first"), (2, "second")):
        whole = data[f"whole_{place}"]
        count = np.arange(1, len(whole) + 1)
        top = data[f"classes_{place}"][:CLASSES]
        seen = (
            Line(count[:CLASSES], top, label="class part, of rank 10", series=1),
            Points(count, np.maximum(whole, 1e-12), role=SIMULATION, label="all features"),
        )
        low = float(whole[0]) * 1e-5
        caption = f"{name.capitalize()} layer: " + (
            "the class means explain the largest eigenvalues, and much is left besides."
            if place == 1
            else "ten eigenvalues are those of the class means, the rest is small."
        )
        words = Axis("eigenvalue of the second moment of features", log=True, low=low)
        panels.append(Picture(Axis("rank", log=True), words, seen, caption))
    step = Axis("step", log=True)
    at = np.maximum(data["at"], 1)
    labels = ("spread within over between classes", "unequal lengths of class means", "angles off −1/9",
              "classifier off the class means", "nearest mean disagrees")  # fmt: skip
    collapse: list[Mark] = [Rule(0.0, label="theory: the simplex, where all of these vanish")]
    for series, label in enumerate(labels):
        collapse.append(Points(at, data["metrics"][:, series], role=SIMULATION, series=series, label=label))
    error = (Rule(0.0, label="no error"), Points(at, data["wrong"], role=SIMULATION, label="training error"))
    panels.append(
        Picture(
            step,
            Axis("distance from the simplex", low=-0.03),
            tuple(collapse),
            "Spread, classifier and nearest mean approach the simplex fast, lengths and angles of class means slowly.",
        )
    )
    panels.append(Picture(step, Axis("share of wrong digits"), error, "They go on falling when all digits are right."))
    return panels


def check(data):
    """The decomposition is exact; features have collapsed towards the simplex."""
    miss = max(float(data["miss_1"]), float(data["miss_2"]))
    first, last = data["metrics"][0], data["metrics"][-1]
    found = [
        Check("largest miss of the decomposition", miss, 0.0, 0.0, 1e-10),
        Check("share of wrong digits in the end", data["wrong"][-1], 0.0, 0.0, 0.0),
        Check("share of the class means in the last layer's moment", data["share_2"], 0.0, 1.0, 0.2),
    ]
    for place in (0, 3, 4):
        name = METRICS[place]
        found.append(Check(f"{name}, end over start", last[place] / first[place], 0.0, 0.0, 0.5))
    return found
