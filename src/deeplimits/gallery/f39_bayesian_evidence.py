"""Which deep linear network do the diabetes data speak for? Their exact evidence over depth and prior scale.

Patients of scikit-learn's diabetes data (100; small: 40) in random Fourier features, four to a patient, so that
linear networks interpolate; hidden layers are as wide as there are patients. Drawn are the evidence as a map over
depth and weight variance, as curves beside networks drawn from the prior, and what the data leave open over the
effective depth λ = PL/n, the only number of the architecture that counts.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from deeplimits.ensembles import deep_linear
from deeplimits.gallery import datasets
from deeplimits.gallery.extrapolated import SURE
from deeplimits.gallery.figure import Check
from deeplimits.predictions.picture import SIMULATION, Axis, Field, Line, Picture, Points
from deeplimits.theory import bayes

NOTES = "ORF 543, 12/7"
LIMITS = ("bayes-linear-evidence", "bayes-effective-depth")
LENGTH, SHARE, NORM = 4.0, 0.25, 1.3
"""Of the features' kernel e^(−Σ|x_i − x'_i|/ℓ); patients per feature; ν over P/n_0, in units of which labels are."""
DEPTHS = (0, 1, 3, 8)


def compute(run):
    """Evidence by theory and from random networks."""
    points = run.pick(100, 40)
    run.expect(len(DEPTHS) - 1)
    x, y = features(points)
    data = bayes.interpolate(x, y)
    variances = np.geomspace(0.5, 2.0, run.pick(121, 41))
    depths = np.arange(0, 13)
    kept = {"x": x, "y": y, "variances": variances, "depths": depths}
    kept["map"] = np.asarray(bayes.evidence_map(data, variances, points, depths))
    for depth in DEPTHS[1:]:
        run_of = {"width": points, "depth": depth, "samples": run.pick(20_000, 1500)}
        kept[f"rows_{depth}"] = run.step("networks", squared_rows, **run_of)["rows"]
    open_part = [bayes.posterior_norm_moment(data, 1.0, [points] * depth) for depth in DEPTHS]
    lambdas = np.linspace(0, depths[-1], 100)
    deep = bayes.deep_posterior(data.squared_norm, SHARE, lambdas)
    return kept | {"open": np.array(open_part), "lambdas": lambdas, "deep": np.asarray(deep.perpendicular)}


def features(points):
    """Fourier features of some patients and their labels, in the unit of the shortest interpolant."""
    x, y = (part[:points] for part in datasets.diabetes())
    random = np.random.default_rng(0)
    count = round(points / SHARE)
    frequencies = random.standard_cauchy((x.shape[1], count)) / LENGTH
    found = np.sqrt(2) * np.cos(x @ frequencies + random.uniform(0, 2 * np.pi, count))
    shortest, *_ = np.linalg.lstsq(found, y, rcond=None)
    return found, y * np.sqrt(NORM * SHARE / (shortest @ shortest))


def squared_rows(width, depth, samples):
    """|row|² of the product of all matrices but the first, at weight variance 1."""

    @jax.jit
    def one(key):
        row = deep_linear.last_row(key, width, [width] * (depth - 1), jnp.asarray(1.0))
        return jnp.sum(row**2)

    return {"rows": jax.lax.map(one, jax.random.split(jax.random.key(depth), samples))}


def prior_average(data, depth, variances):
    """From networks of the prior: log evidence, its error, the open part given the data, its error; for each σ²."""
    x, y = data["x"], data["y"]
    points, inputs = x.shape
    gram = x @ x.T
    size, logdet = y @ np.linalg.solve(gram, y), np.linalg.slogdet(gram)[1]
    found = []
    for variance in variances:
        # Given the hidden layers labels are N(0, τ² XX'), and θ_⊥ is N(0, τ²) in n_0 − P directions.
        scale = variance ** (depth + 1) * (data[f"rows_{depth}"] if depth else np.ones(2)) / inputs
        logs = -points / 2 * np.log(2 * np.pi * scale) - logdet / 2 - size / (2 * scale)
        weights = np.exp(logs - logs.max())
        error = weights.std() / weights.mean() / np.sqrt(len(logs))
        share = weights / weights.sum()
        left = share @ scale * (inputs - points)
        spread = np.sqrt(share**2 @ (scale * (inputs - points) - left) ** 2)
        found.append((logsumexp(logs) - np.log(len(logs)), error, left, spread))
    return np.array(found).T


def draw(data):
    """The map, its cuts with random networks, and what is left open."""
    best = data["map"].max()
    depth_axis = Axis("hidden layers", "L", whole=True)
    variance_axis = Axis("weight variance times fan-in", r"\sigma^2", log=True)
    ridge = data["variances"][data["map"].argmax(axis=1)]
    shown = np.maximum(data["map"] - best, -60.0)
    cuts = []
    for series, depth in enumerate(DEPTHS):
        row = data["map"][int(depth)] - best
        cuts.append(Line(data["variances"], row, series=series, label=f"{depth} hidden layers"))
        some = data["variances"][:: max(1, len(row) // 20)]
        value, error, _, _ = prior_average(data, depth, some)
        good = (error < 0.4) & (value > best - 40)
        ends = {"low": (value - best - 2 * error)[good], "high": (value - best + 2 * error)[good]}
        if depth:
            cuts.append(Points(some[good], (value - best)[good], **ends, role=SIMULATION, series=series))
    lefts = np.array([prior_average(data, depth, [1.0])[2:, 0] for depth in DEPTHS]).T
    left = (
        Line(data["lambdas"], data["deep"], label="theory, all large: only λ counts"),
        Points(DEPTHS, data["open"], label="theory, exact at this width", series=1),
        Points(DEPTHS, lefts[0], lefts[0] - 2 * lefts[1], lefts[0] + 2 * lefts[1], role=SIMULATION, label="networks"),
    )
    return [
        Picture(
            depth_axis,
            variance_axis,
            (
                Field(data["depths"], data["variances"], shown.T, label="log evidence, relative to the best"),
                Line(data["depths"], ridge, label="best prior scale of each depth", series=1),
            ),
            "The deeper the network, the more exactly its prior scale must be right.",
        ),
        Picture(
            variance_axis,
            Axis("log evidence, relative to the best", low=-40, high=3),
            tuple(cuts),
            "The exact evidence (lines) is the average likelihood of networks drawn from the prior (points).",
        ),
        Picture(
            Axis("effective depth", r"\lambda=PL/n"),
            Axis("squared norm that the data leave open", r"E|\theta_\perp|^2"),
            left,
            "At prior variance 1 deeper networks adapt to the scale that the data show.",
        ),
    ]


def check(data):
    """Average likelihoods and posterior norms of random networks against Meijer's G."""
    found = []
    at = int(np.argmin(np.abs(np.log(data["variances"]))))
    for place, depth in enumerate(DEPTHS[1:], start=1):
        value, error, left, spread = prior_average(data, depth, data["variances"][at : at + 1])[:, 0]
        exact = data["map"][depth, at]
        found.append(Check(f"log evidence of {depth} hidden layers", value, error, exact, SURE))
        found.append(Check(f"open part with {depth} hidden layers", left, spread, data["open"][place], SURE))
    return found
