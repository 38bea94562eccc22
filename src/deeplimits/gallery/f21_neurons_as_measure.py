"""Neurons become a measure that flows down the risk.

A wide network (1/p) Σ a σ(wx) of one input learns 2σ(x), σ(u) = erf(u/√2), by one-pass SGD from w ~ N(0, 0.49), a =
1. Drawn are where the weights of p = 1,000 neurons (small: 300) are at three times on the flow of their density, and
the risk. In high dimension two numbers for each neuron are left, its overlap m with the teacher and its norm q beside
it: the reduced flow of two kinds of neurons beside SGD with all of them (p = 128 in d = 256, small: 16 and 32 in 64).
"""

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.ensembles import committees
from deeplimits.gallery import marks
from deeplimits.gallery.extrapolated import at_infinity
from deeplimits.models import Overlaps, Task
from deeplimits.predictions.picture import Axis, Line, Mark, Picture
from deeplimits.theory.two_layer import mean_field

NOTES = "Wonders of high-dimensions, mean field"
LIMITS = ("mean-field-wasserstein-flow", "mean-field-high-d-reduction")
SPREAD, TARGET, ACTIVATION = 0.7, 2.0, "erf_saad"
SHOWN, TIMES = (0.0, 1.0, 4.0), np.array([0.1, 0.25, 0.5, 1.0, 2.0, 4.0])
KINDS = {"m": np.array([0.4, -0.1]), "q": np.array([0.3, 0.6])}
TESTS = 400


def compute(run):
    """Both flows, and networks beside them."""
    widths, samples = run.pick((64, 256, 1000), (75, 300)), run.pick(200, 30)
    students, runs = run.pick((32, 64, 128), (16, 32)), run.pick(100, 16)
    run.expect(len(widths) + len(students))
    dense = np.geomspace(0.05, 4.0, 60)
    law = mean_field.graded_normal(run.pick(200, 120), 1, SPREAD)
    start = mean_field.Particles(law.points, jnp.ones(len(law.points)), law.weights)
    flow = mean_field.wasserstein_flow(start, np.eye(1), np.array([TARGET]), dense, activation=ACTIVATION)
    found = {"dense": dense, "points": law.points[:, 0], "shares": law.weights, "risk": flow.risk}
    found["moved"] = np.stack([flow.w[np.argmin(np.abs(dense - time)), :, 0] for time in SHOWN[1:]])
    reduced = mean_field.reduced_flow(task(1.0), mean_field.Reduced(KINDS["m"][:, None], KINDS["q"]), dense)
    found |= {"m": reduced.m[:, :, 0], "q": reduced.q, "widths": np.array(widths), "students": np.array(students)}
    for width in widths:
        one = run.step("networks", networks, width=width, samples=samples)
        found |= {f"risk_{width}": one["risk"], f"weights_{width}": one["weights"]}
    for count in students:
        one = run.step("high dimension", high_dimension, students=count, samples=runs)
        found |= {f"{name}_{count}": values for name, values in one.items()}
    return {name: np.asarray(values) for name, values in found.items()}


def task(step, **rest):
    """One teacher of unit norm."""
    return Task(jnp.eye(1), step, 0.0, ACTIVATION, **rest)


def networks(width, samples):
    """Risks of networks of one input over time, and their weights at some times; the learning rate is 1."""
    steps = np.round(TIMES * width).astype(int)
    problem = task(1.0, teacher_output=jnp.array([TARGET]), output_rate=1.0)

    @jax.jit
    def one(key):
        begin, rest = jax.random.split(key)
        network = committees.Network(SPREAD * jax.random.normal(begin, (width, 1)), jnp.ones(width), jnp.eye(1))

        def to_mark(network, piece):
            train, test = jax.random.split(piece[0])
            after = committees.one_pass_sgd(train, problem, network, piece[1][None]).network
            x = jax.random.normal(test, (TESTS, 1))
            risk = jnp.mean(committees.residual(problem, after, x).clean ** 2) / 2
            return after, (risk, after.w[:, 0])

        pieces = jax.random.split(rest, len(steps)), jnp.asarray(np.diff(steps, prepend=0))
        _, (risks, weights) = jax.lax.scan(to_mark, network, pieces)
        return risks, jnp.concatenate([network.w.T, weights])

    risks, weights = jax.lax.map(one, jax.random.split(jax.random.key(width), samples))
    chosen = [0, *(1 + int(np.argmin(np.abs(TIMES - time))) for time in SHOWN[1:])]
    return {"risk": risks, "weights": weights[0][np.array(chosen)]}


def high_dimension(students, samples):
    """Mean overlap and norm of both kinds of neurons over time, in dimension 2p."""
    dimension, half = 2 * students, students // 2
    steps = np.round(TIMES * dimension * students).astype(int)
    m, q = np.repeat(KINDS["m"], half)[:, None], np.repeat(KINDS["q"], half)
    problem = task(1.0)
    network = committees.with_overlaps(problem, Overlaps(m, m @ m.T + np.diag(q)), dimension)

    @jax.jit
    def one(key):
        record = committees.one_pass_sgd(key, problem, network, jnp.asarray(steps)).record
        norms = jnp.diagonal(record.q, axis1=1, axis2=2) - record.m[:, :, 0] ** 2
        kinds = [slice(0, half), slice(half, None)]
        means = [(jnp.mean(record.m[:, k, 0], axis=1), jnp.mean(norms[:, k], axis=1)) for k in kinds]
        return jnp.stack([mean for mean, _ in means], axis=1), jnp.stack([norm for _, norm in means], axis=1)

    found = jax.lax.map(one, jax.random.split(jax.random.key(students), samples))
    return {"overlap": found[0], "norm": found[1]}


def draw(data):
    """The density of the weights, the risk, and the reduced flow."""
    width, students = int(data["widths"][-1]), int(data["students"][-1])
    neurons = []
    order = np.argsort(data["points"])
    start, shares = data["points"][order], data["shares"][order]
    for series, (time, now) in enumerate(zip(SHOWN, [start, *data["moved"][:, order]], strict=True)):
        bins = np.linspace(-2.6, 2.6, 40)
        neurons.append(marks.histogram(data[f"weights_{width}"][series], bins, series=series))
        # The flow carries the mass between two points along.
        density = (shares[1:] + shares[:-1]) / 2 / np.maximum(np.diff(now), 1e-9)
        middle = (now[1:] + now[:-1]) / 2
        seen = np.abs(middle) < 2.6
        neurons.append(Line(middle[seen], density[seen], series=series, label=f"theory, time {time:g}"))
    time = Axis("time", r"\tau", log=True)
    risks: list[Mark] = [Line(data["dense"], data["risk"], label="theory")]
    for series, count in enumerate(data["widths"]):
        risks.append(marks.averages(TIMES, data[f"risk_{count}"], series=series, label=f"networks, p = {count}"))
    panels = [
        Picture(
            Axis("first-layer weight", "w"),
            Axis("density of neurons"),
            tuple(neurons),
            f"The weights of {width} neurons (histograms) move as the density that flows down the risk (lines).",
        ),
        Picture(time, Axis("risk", "R"), tuple(risks), "The risk of wide networks is that of the measure."),
    ]
    for name, letter, label, caption in (
        ("overlap", "m", "overlap with the teacher", "In high dimension two kinds of neurons turn to the teacher"),
        ("norm", "q", "squared norm beside it", "What they have beside the teacher shrinks"),
    ):
        seen = []
        for series in (0, 1):
            seen.append(Line(data["dense"], data[letter][:, series], series=series, label=f"theory, kind {series + 1}"))
            seen.append(marks.averages(TIMES, data[f"{name}_{students}"][:, :, series], series=series))
        caption += f": the reduced flow (lines), SGD with p = {students} (points)."
        panels.append(Picture(time, Axis(label, letter), tuple(seen), caption))
    return panels


def check(data):
    """Risk and overlap at time 1, carried to infinitely many neurons."""
    at = int(np.argmin(np.abs(TIMES - 1.0)))

    def stated(row):
        return float(np.interp(np.log(TIMES[at]), np.log(data["dense"]), row))

    widths, students = data["widths"].tolist(), data["students"].tolist()
    risks = [data[f"risk_{width}"][:, at] for width in widths]
    found = [at_infinity("risk at time 1", widths, risks, stated(data["risk"]), 1.0)]
    for kind in (0, 1):
        overlaps = [data[f"overlap_{count}"][:, at, kind] for count in students]
        label = f"overlap of kind {kind + 1} at time 1"
        found.append(at_infinity(label, students, overlaps, stated(data["m"][:, kind]), 1.0))
    return found
