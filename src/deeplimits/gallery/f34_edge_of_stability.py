"""Training runs at the edge of stability.

Full-batch gradient descent on digits of scikit-learn (a tanh network 64-32-10, squared loss, 200 digits and 4,000
steps; small: 64-12-10, 60 and 600) at three learning rates. Drawn are the sharpness, the largest eigenvalue of the
Hessian, over the steps with the line 2/η above which a quadratic is unstable, and the loss, which falls nevertheless,
not steadily.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits import ensembles
from deeplimits.gallery import datasets
from deeplimits.gallery.figure import Check
from deeplimits.measure import adapters, training
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points, Rule
from deeplimits.theory import landscape

NOTES = "ORF 543, 10/5"
LIMITS = ("edge-of-stability", "gd-linear-stability")


def compute(run):
    """Sharpness and loss along training at every learning rate."""
    steps = run.pick((0.3, 0.45, 0.7), (0.5, 0.8))
    run.expect(len(steps))
    size = {"width": run.pick(32, 12), "count": run.pick(200, 60), "until": run.pick(4000, 600)}
    found = [run.step("run", trained, step=step, **size) for step in steps]
    return {"steps": np.array(steps)} | {name: np.array([one[name] for one in found]) for name in found[0]}


def network(weights, x):
    """Outputs of the network."""
    return jnp.tanh(x @ weights["first"] + weights["bias"][None]) @ weights["second"]


def trained(step, width, count, until):
    """A run with this learning rate: its losses at every step, its sharpness at some."""
    x, classes = datasets.centred_digits()
    x, y = jnp.asarray(4 * x[:count]), jax.nn.one_hot(classes[:count], 10)
    random = np.random.default_rng(0)
    start = {
        "first": jnp.asarray(random.standard_normal((64, width)) / 8),
        "bias": jnp.zeros(width),
        "second": jnp.asarray(random.standard_normal((width, 10)) / np.sqrt(width)),
    }

    def loss(weights):
        return jnp.mean(jnp.sum((network(weights, x) - y) ** 2, axis=1)) / 2

    marks = np.arange(0, until + 1)
    descent = jax.jit(functools.partial(ensembles.gradient_descent, loss, marks=marks, observe=lambda w: (w, loss(w))))
    path, losses = descent(start, jnp.asarray(step))
    model = adapters.open_model(network, lambda z, t: jnp.sum((z - t) ** 2, axis=1) / 2, (x, y), parameters=start)
    recorder = training.SharpnessRecorder(model, optimizer="gd", step=step, tolerance=1e-3)
    at = np.unique(np.linspace(0, until, 61).round().astype(int))
    for place in at:
        recorder(jax.tree.map(lambda leaf, place=place: leaf[place], path))
    return {"losses": losses, "at": at, "sharpness": recorder.record().sharpness[:, 0]}


def draw(data):
    """Sharpness and loss over the steps."""
    sharpness, losses = [], []
    for series, step in enumerate(data["steps"]):
        words = f"η = {step:g}"
        sharpness.append(Rule(2 / step, label=f"2/η, {words}", series=series))
        points = {"role": SIMULATION, "series": series, "label": f"network, {words}"}
        sharpness.append(Points(data["at"][series], data["sharpness"][series], **points))
        losses.append(Line(np.arange(data["losses"].shape[1]), data["losses"][series], **points))
    return [
        Picture(
            Axis("step"),
            Axis("sharpness, largest eigenvalue of the Hessian", low=0),
            tuple(sharpness),
            "Training sharpens the network until 2/η, theory's edge of stability, and then stays there.",
        ),
        Picture(
            Axis("step", low=0),
            Axis("loss", log=True),
            tuple(losses),
            "At the edge the loss still falls, over many steps, though not at every one.",
        ),
    ]


def check(data):
    """At the end sharpness is that of the edge; it came from far below; the loss does rise on the way."""
    found = []
    for series, step in enumerate(data["steps"]):
        edge = float(landscape.stability_threshold(step))
        late = np.median(data["sharpness"][series][-15:]) / edge
        found.append(Check(f"sharpness over 2/η at the end, η = {step:g}", late, 0.0, 1.0, 0.12))
    rises = np.mean(np.diff(data["losses"][-1]) > 0)
    fell = data["losses"][-1][-1] < 0.5 * data["losses"][-1][0]
    found.append(
        Check("loss rises at some steps and falls in the long run", float(rises > 0.02 and fell), 0.0, 1.0, 0.0)
    )
    return found
