"""Which of many perfect solutions gradient descent finds: from sparse to shortest, and the widest margin.

A diagonal linear network w₊² − w₋² of sparse regression (20 samples, 50 features, 3 of them in the truth; small: 10,
20 and 2) is trained by gradient flow from the scale α to zero error. Drawn are how far its solution is from the ℓ1
and ℓ2 ones and the coefficients over α; and, for logistic regression on 20 points in 400 dimensions with labels of a
linear teacher, the direction of the weights and the margin over fourteen decades of time, with gradient descent as
far as its steps reach.
"""

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits import ensembles
from deeplimits.gallery.figure import Check
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Mark, Picture, Points, Rule
from deeplimits.theory import bias

NOTES = "ORF 543, 11/9 and 11/14"
LIMITS = ("diagonal-network-bias", "gd-separable-max-margin")
LAST, STEP = 14.0, 0.1
"""Decades of time that are looked at; the step of descent."""


def compute(run):
    """Theory over α and t, networks and descents beside it."""
    samples, features, sparse = run.pick((20, 50, 3), (10, 20, 2))
    run.expect(3)
    random = np.random.default_rng(4)
    truth = np.zeros(features)
    truth[:sparse] = (1.5, -1.0, 0.6)[:sparse]
    x = random.standard_normal((samples, features))
    problem = {"x": x, "y": x @ truth}
    alphas = np.geomspace(1e-3, 10.0, 120)
    at = np.geomspace(1e-3, 10.0, run.pick(13, 5))
    found = {"alphas": alphas, "at": at, "truth": truth, "sparse": bias.sparse_solution(x, x @ truth)}
    found["short"] = np.asarray(ensembles.min_norm_fit(jnp.asarray(x), jnp.asarray(x @ truth)))
    found |= run.step("theory", interpolants, alphas=alphas, **problem)
    found |= run.step("networks", networks, alphas=at, **problem)
    points = random.standard_normal((20, 400))
    labels = np.where(points[:, 0] > 0, 1.0, -1.0)
    law = bias.log_time_law(points, labels)
    found |= {"predictor": law.predictor.weights, "offset": law.offset, "margin": np.array(law.predictor.margin)}
    found["signed"] = labels[:, None] * points
    found |= run.step("descent", descents, signed=found["signed"], steps=run.pick(10**5, 10**4))
    return {name: np.asarray(values) for name, values in found.items()}


def interpolants(x, y, alphas):
    """The solution that theory says each start leads to."""
    one = jax.jit(lambda alpha: bias.diagonal_interpolant(x, y, alpha).beta)
    return {"theory": np.stack([one(alpha) for alpha in alphas])}


def networks(x, y, alphas):
    """The solution that a network trained from each start has found."""
    ones, zero = jnp.ones(x.shape[1]), jnp.zeros(1)
    one = jax.jit(lambda alpha: ensembles.diagonal_network_flow(jnp.asarray(x), jnp.asarray(y), alpha, ones, 2, zero))
    return {"networks": np.stack([one(alpha).limit for alpha in alphas])}


def descents(signed, steps):
    """The weights of gradient flow at late times, and of gradient descent at its steps."""
    logs = np.linspace(0.5, LAST, 28) * np.log(10)
    flow = ensembles.separable_flow(jnp.asarray(signed), jnp.zeros(signed.shape[1]), jnp.asarray(logs), loss="logistic")
    weights, seen, marks = np.zeros(signed.shape[1]), [], np.unique(np.geomspace(1, steps, 16).round().astype(int))
    for count in range(1, steps + 1):
        weights = weights + STEP * (1 / (1 + np.exp(signed @ weights))) @ signed / len(signed)
        if count in marks:
            seen.append(weights)
    return {"log_times": logs, "flow": flow, "descent": np.array(seen), "descent_times": STEP * marks}


def draw(data):
    """Distances and coefficients over α; direction and margin over time."""
    alpha = Axis("scale of the start", "\\alpha", log=True)
    distance, coefficients = [], []
    for series, name in enumerate(("sparse", "short")):
        words = ("ℓ1 solution", "ℓ2 solution")[series]
        distance.append(
            Line(data["alphas"], away(data["theory"], data[name]), label=f"from the {words}", series=series)
        )
        distance.append(Points(data["at"], away(data["networks"], data[name]), role=SIMULATION, series=series))
    carried = np.flatnonzero(data["truth"])
    others = np.setdiff1d(np.argsort(-np.abs(data["short"])), carried)[:40]
    for place in (*others, *carried):
        series = int(place) if place in carried else 3
        label = f"coefficient {place + 1}, in truth {data['truth'][place]:g}" if place in carried else ""
        coefficients.append(Line(data["alphas"], data["theory"][:, place], series=series, label=label))
        if place in carried:
            coefficients.append(Points(data["at"], data["networks"][:, place], role=SIMULATION, series=series))
    dense = np.linspace(1.0, LAST, 200)
    law = data["offset"] + dense[:, None] * np.log(10) * data["predictor"]
    direction: list[Mark] = [Line(10**dense, error(law, data), label="law ŵ log t + w̃")]
    margins: list[Mark] = [Line(10**dense, margin(law, data), label="law ŵ log t + w̃")]
    for series, (name, times) in enumerate((("flow", np.exp(data["log_times"])), ("descent", data["descent_times"]))):
        words = {"role": SIMULATION, "series": series, "label": f"gradient {name}"}
        direction.append(Points(times, error(data[name], data), **words))
        margins.append(Points(times, margin(data[name], data), **words))
    margins.append(Rule(float(data["margin"]), label="widest margin", series=2))
    time = Axis("time", "t", log=True)
    return [
        Picture(
            alpha,
            Axis("distance of the solution", r"\|\beta(\alpha)-\cdot\|"),
            tuple(distance),
            "A small start leads to the sparsest solution, a large one to the shortest: theory, networks (points).",
        ),
        Picture(
            alpha,
            Axis("coefficients", r"\beta_i"),
            tuple(coefficients),
            "From a small start all coefficients but the true ones (coloured, with networks as points) vanish.",
        ),
        Picture(
            time,
            Axis("distance from the widest margin's direction", log=True),
            tuple(direction),
            "On separable data the weights turn towards the widest margin only like 1/log t.",
        ),
        Picture(
            time,
            Axis("margin of the separating line"),
            tuple(margins),
            "Even at t = 10¹⁴ some of the margin is still missing.",
        ),
    ]


def away(solutions, from_):
    """Distances of solutions from one."""
    return np.linalg.norm(solutions - from_, axis=1)


def error(weights, data):
    """|w/|w| − ŵ/|ŵ|| for each row."""
    wanted = data["predictor"] / np.linalg.norm(data["predictor"])
    return np.linalg.norm(weights / np.linalg.norm(weights, axis=1, keepdims=True) - wanted, axis=1)


def margin(weights, data):
    """The smallest distance of a point from the separating line, negative where one is on the wrong side."""
    return np.min(weights @ data["signed"].T, axis=1) / np.linalg.norm(weights, axis=1)


def check(data):
    """Networks find what theory says; the ends are the two norms' solutions; the law holds late."""
    theory = np.stack([np.interp(np.log(data["at"]), np.log(data["alphas"]), one) for one in data["theory"].T], axis=1)
    last, least = data["flow"][-1], np.abs(data["sparse"]).sum()
    law = (data["offset"] + data["log_times"][-1] * data["predictor"])[None]
    return [
        Check("largest difference of networks and theory", np.abs(data["networks"] - theory).max(), 0.0, 0.0, 2e-3),
        # The ℓ1 norm is approached like 1/log(1/α).
        Check("ℓ1 norm from α = 0.001, over the least", np.abs(data["networks"][0]).sum() / least, 0.0, 1.0, 0.03),
        Check("ℓ2 norm from α = 10", away(data["networks"], 0)[-1], 0.0, float(np.linalg.norm(data["short"])), 1e-3),
        Check("angle from the widest margin late", error(last[None], data)[0], 0.0, error(law, data)[0], 1e-4),
        Check("margin late", margin(last[None], data)[0], 0.0, margin(law, data)[0], 1e-4),
    ]
