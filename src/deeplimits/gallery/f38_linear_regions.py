"""The linear regions of ReLU networks: few, though depth could make exponentially many.

Breakpoints of random networks of two layers of 32 neurons along the line from a 3 to an 8 of scikit-learn's digits,
beside the expected numbers; the regions of a network in the plane through a 3, an 8 and a 5 before and after 400
steps of training on 1,000 digits (small: 16 neurons, 150 steps, 200 digits); and the sawtooth, whose pieces double
with every layer.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits import ensembles
from deeplimits.gallery import datasets, marks
from deeplimits.gallery.extrapolated import of_mean
from deeplimits.gallery.figure import Check
from deeplimits.measure import regions
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points
from deeplimits.theory import expressivity

NOTES = "ORF 543, 12/5"
LIMITS = ("exact-breakpoints", "expected-breakpoints", "telgarsky-sawtooth")
WEIGHT_VARIANCE, BIAS_VARIANCE, THREE = 2.0, 0.1, (3, 8, 5)
DEPTHS = np.arange(1, 8)


def compute(run):
    """Breakpoints of random networks, regions before and after training, pieces of the sawtooth."""
    width = run.pick(32, 16)
    run.expect(2)
    ends = np.linspace(0.05, 1.0, 40)
    at = np.linspace(0.1, 1.0, 10)
    first, second, _ = images()
    expected = expressivity.expected_breakpoints
    theory = [
        expected(first, second - first, 0.0, end, WEIGHT_VARIANCE, BIAS_VARIANCE, [width] * 2).layers for end in ends
    ]
    found = {"ends": ends, "at": at, "theory": np.array(theory)}
    found |= run.step("random", breakpoints, width=width, samples=run.pick(400, 60), at=at)
    saws = [
        regions.line_pieces(matrices(one), np.array([[0.0], [1.0]]))
        for one in map(expressivity.sawtooth, DEPTHS.tolist())
    ]
    found["pieces"] = np.array([len(saw.breakpoints) + 1 for saw in saws])
    return found | run.step("trained", planes, width=width, count=run.pick(1000, 200), steps=run.pick(400, 150))


def matrices(saw):
    """The sawtooth as a network of matrices."""
    return regions.Matrices(saw.weights, saw.biases)


def images():
    """A 3, an 8 and a 5."""
    x, classes = datasets.digits()
    return np.stack([8 * x[int(np.flatnonzero(classes == digit)[0])] for digit in THREE]) / 4


def random_weights(width, random):
    """Weights and biases 64-w-w-10 with the variances that the theory speaks of."""
    widths = [64, width, width, 10]
    weights = [np.sqrt(WEIGHT_VARIANCE / a) * random.standard_normal((b, a)) for a, b in itertools.pairwise(widths)]
    return weights, [np.sqrt(BIAS_VARIANCE) * random.standard_normal(b) for b in widths[1:]]


def breakpoints(width, samples, at):
    """How many breakpoints of each layer lie before some places of the line, in random networks."""
    counts = np.empty((samples, len(at), 2))
    for place in range(samples):
        line = regions.line_pieces(regions.Matrices(*random_weights(width, np.random.default_rng(place))), images()[:2])
        for layer in (0, 1):
            counts[place, :, layer] = np.searchsorted(np.sort(line.breakpoints[line.layers == layer]), at)
    return {"counts": counts}


def planes(width, count, steps):
    """The edges of all regions in the plane, before and after training on digits."""
    x, classes = datasets.digits()
    x, labels = jnp.asarray(2 * x[:count]), jax.nn.one_hot(classes[:count], 10)

    def loss(network):
        h = x
        for w, b in zip(network[0][:-1], network[1][:-1], strict=True):
            h = jax.nn.relu(h @ w.T + b[None])
        return -jnp.mean(jnp.sum(labels * jax.nn.log_softmax(h @ network[0][-1].T + network[1][-1][None]), axis=1))

    start = jax.tree.map(jnp.asarray, random_weights(width, np.random.default_rng(1)))
    descent = jax.jit(functools.partial(ensembles.gradient_descent, loss, marks=[0, steps]))
    path = descent(start, jnp.asarray(0.3))
    found = {}
    for place, when in enumerate(("before", "after")):
        network = regions.Matrices(*jax.tree.map(lambda leaf, place=place: np.asarray(leaf[place]), path))
        plane = regions.plane_regions(network, images(), margin=0.4)
        corners = [np.vstack([one, one[:1], [[np.nan, np.nan]]]) for one in plane.polygons]
        found |= {f"edges_{when}": np.vstack(corners), f"count_{when}": np.array(len(plane.polygons))}
        found[f"residual_{when}"] = np.array(plane.residual)
    return found


def draw(data):
    """Breakpoints along the line, regions in the plane, pieces of the sawtooth."""
    line = []
    for layer, name in enumerate(("first layer", "second layer")):
        line.append(Line(data["ends"], data["theory"][:, layer], series=layer, label=f"{name}, theory"))
        line.append(marks.averages(data["at"], data["counts"][:, :, layer], series=layer))
    panels = [
        Picture(
            Axis("place on the line from a 3 to an 8", "t"),
            Axis("breakpoints so far"),
            tuple(line),
            "A random network bends once for every few neurons, as Kac and Rice predict, not exponentially often.",
        )
    ]
    places = Points([0, 1, 0], [0, 0, 1], series=1, role=SIMULATION, label="a 3, an 8 and a 5")
    for when in ("before", "after"):
        edges = Line(*data[f"edges_{when}"].T, series=0, label=f"exact regions: {int(data[f'count_{when}'])}")
        caption = f"All linear regions of the plane through three digits, {when} training."
        panels.append(Picture(Axis("u"), Axis("v"), (edges, places), caption))
    saw = (
        Line(DEPTHS, 2.0**DEPTHS, label="theory, 2^L"),
        Line(DEPTHS, 2.0 * DEPTHS + 1, label="most with one layer of as many neurons", series=1),
        Points(DEPTHS, data["pieces"], role=SIMULATION, label="sawtooth network, counted"),
    )
    caption = "The sawtooth doubles its pieces with every layer of two neurons; one layer would need as many as pieces."
    words = Axis("layers", "L", whole=True)
    return [*panels, Picture(words, Axis("linear pieces on [0, 1]", log=True), saw, caption)]


def check(data):
    """The first layer's breakpoints are those expected; the sawtooth has all its pieces; polygons fit the network."""
    residual = max(float(data["residual_before"]), float(data["residual_after"]))
    return [
        of_mean("breakpoints of the first layer from a 3 to an 8", data["counts"][:, -1, 0], data["theory"][-1, 0]),
        Check("pieces of the deepest sawtooth", data["pieces"][-1], 0.0, 2.0 ** DEPTHS[-1], 0.0),
        Check("largest miss of a network in its polygons", residual, 0.0, 0.0, 1e-6),
    ]
