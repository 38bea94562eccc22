"""Ten points, 23 parameters, a million steps.

The classic first network of sigmoids, 2 → 2 → 3 → 2, trained by stochastic gradient descent with step 0.05, one of
its ten points at a time, for 10⁶ steps from three random starts (small: 3·10⁵ and one). Drawn are the region that the
first network gives to each class, and the cost over the steps between the two plateaus that can be computed by hand:
the best constant output, and every point of one class right with the others left at the best constant.
"""

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits import ensembles
from deeplimits.ensembles import classic_network
from deeplimits.gallery.figure import Check
from deeplimits.predictions.contours import level_lines
from deeplimits.predictions.picture import SIMULATION, Axis, Field, Line, Picture, Points, Rule

NOTES = "Random Matrix Theory and Its Applications in ML, a simple network"
LIMITS = ("higham-network-sgd",)


def compute(run):
    """Costs along training from every start, and the outputs of the first network over the square."""
    starts, steps = run.pick(3, 1), run.pick(10**6, 3 * 10**5)
    run.expect(starts)
    found = [run.step("training", trained, start=start, steps=steps) for start in range(starts)]
    return {"costs": np.array([one["costs"] for one in found]), "at": found[0]["at"],
            "grid": found[0]["grid"], "lead": found[0]["lead"], "leads": found[0]["leads"]}  # fmt: skip


def trained(start, steps):
    """One network: its cost at some steps, and by how much its first output leads."""
    at = np.unique(np.geomspace(1, steps, 120).round().astype(int))
    network = ensembles.ClassicNetwork(*classic_network.random_network(jax.random.key(start)))
    found = ensembles.train_classic_network(network, at, key=jax.random.key(100 + start))
    grid = jnp.linspace(0, 1, 101)
    outputs = classic_network.outputs(found.network, jnp.stack(jnp.meshgrid(grid, grid), axis=-1))
    leads = classic_network.outputs(found.network, jnp.asarray(classic_network.POINTS))
    return {"at": at, "costs": found.costs, "grid": grid, "lead": outputs[..., 0] - outputs[..., 1],
            "leads": leads[:, 0] - leads[:, 1]}  # fmt: skip


def plateaus():
    """The cost of the best constant output, and of one class right and the other at its best constant."""
    targets = classic_network.TARGETS
    constant = np.mean(np.sum((targets - targets.mean(axis=0)) ** 2, axis=1)) / 2
    return {"best constant output": constant, "half of that": constant / 2}


def draw(data):
    """The regions and the cost."""
    first = classic_network.TARGETS[:, 0] == 1
    points = [
        Points(*classic_network.POINTS[chosen].T, series=series, role=SIMULATION, label=f"points of class {series + 1}")
        for series, chosen in enumerate((first, ~first))
    ]
    border = Line(*level_lines(data["grid"], data["grid"], data["lead"], 0.0), role=SIMULATION, label="border")
    field = Field(data["grid"], data["grid"], data["lead"], role=SIMULATION, label="first output less second")
    rules = [Rule(level, label=label, series=3 + k) for k, (label, level) in enumerate(plateaus().items())]
    costs = [
        Points(data["at"], row, series=k, role=SIMULATION, label=f"network {k + 1}")
        for k, row in enumerate(data["costs"])
    ]
    return [
        Picture(
            Axis("first coordinate", "x_1", low=0, high=1),
            Axis("second coordinate", "x_2", low=0, high=1),
            (field, border, *points),
            "After training all ten points lie on their class's side of the border.",
        ),
        Picture(
            Axis("step", log=True),
            Axis("cost", log=True),
            (*rules, *costs),
            "The cost rests at the best constant output for thousands of steps, and then falls within few.",
        ),
    ]


def check(data):
    """All points are right in the end; the cost starts its rest where computed, and ends far below."""
    right = np.mean((data["leads"] > 0) == (classic_network.TARGETS[:, 0] == 1))
    early = (data["at"] > 300) & (data["at"] < 2000)
    rest = float(np.median(data["costs"][0][early]))
    return [
        Check("share of points on their side", right, 0.0, 1.0, 0.0),
        Check("cost on the first plateau", rest, 0.0, plateaus()["best constant output"], 0.02),
        Check("cost in the end", data["costs"][0][-1], 0.0, 0.0, 0.01),
    ]
