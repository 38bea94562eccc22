"""The spread of gradients is depth over width.

A signal, or a gradient, that passes L layers of n ReLU neurons is multiplied by a random factor R of mean one. Drawn
are histograms of log R for L/n = 0.1, 0.5 and 1 on the theory's normal laws of mean −β/2 and variance β = 5L/n, and
the variance over L/n at several widths. Networks have n = 200 neurons a layer (small: 80) and no biases.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from deeplimits.ensembles import deep_networks
from deeplimits.gallery.extrapolated import SURE, of_mean
from deeplimits.gallery.figure import Check
from deeplimits.models.activations import activation
from deeplimits.predictions.picture import SIMULATION, Axis, Histogram, Line, Mark, Picture, Points
from deeplimits.theory import expressivity

NOTES = "ORF 543, 11/30"
LIMITS = ("jacobian-lognormal", "jacobian-moments")
RATIOS = (0.1, 0.5, 1.0)


def compute(run):
    """log R after every layer, in many networks of each width; and what theory says exactly of one layer."""
    widths, samples = run.pick((50, 100, 200), (40, 80)), run.pick(20_000, 3000)
    run.expect(len(widths))
    found = {"widths": np.array(widths)}
    for width in widths:
        found |= {f"log_{width}": run.step("networks", log_factors, width=width, samples=samples)["log"]}
        factor = expressivity.layer_factor(width)
        found[f"layer_{width}"] = np.array([factor.mean, factor.variance], float)
    return found


def log_factors(width, samples):
    """log R of networks as deep as they are wide, after every twentieth of their layers."""
    seen = np.unique(np.linspace(0, width, 21).round().astype(int))

    @jax.jit
    def one(key):
        noise = jax.random.normal(key, (width, width))
        two, none = jnp.asarray(2.0), jnp.asarray(0.0)
        variances = deep_networks.variance_chain(noise, activation("relu"), jnp.ones(()), two, none)
        return jnp.log(variances)[seen]

    return {"log": jax.lax.map(one, jax.random.split(jax.random.key(width), samples), batch_size=100)}


def depths(data, width):
    """The depths over width at which networks were looked at."""
    return np.unique(np.linspace(0, width, 21).round().astype(int)) / width


def draw(data):
    """Histograms on the normal laws, and the variance over depth."""
    width = int(data["widths"][-1])
    marks, at = [], depths(data, width)
    for series, ratio in enumerate(RATIOS):
        values, beta = data[f"log_{width}"][:, np.argmin(np.abs(at - ratio))], 5 * ratio
        heights, edges = np.histogram(values, bins=40, density=True)
        marks.append(Histogram(edges, heights, role=SIMULATION, series=series))
        x = np.linspace(-10, 6, 400)
        law = stats.norm.pdf(x, -beta / 2, np.sqrt(beta))
        marks.append(Line(x, law, series=series, label=f"L/n = {ratio:g}: N(−β/2, β), β = {beta:g}"))
    dense = np.linspace(0, 1, 50)
    growth: list[Mark] = [Line(dense, 5 * dense, label="theory, β = 5L/n")]
    for series, n in enumerate(data["widths"]):
        values = data[f"log_{n}"]
        spread = values.var(axis=0, ddof=1)
        bar = 2 * spread_error(values)
        label = f"networks of width {n}"
        points = Points(
            depths(data, n), spread, spread - bar, spread + bar, role=SIMULATION, series=series, label=label
        )
        growth.append(points)
    return [
        Picture(
            Axis("log of the factor", r"\log R", low=-10, high=5),
            Axis("density"),
            tuple(marks),
            f"The deeper for its width ({width}), the wider is the spread of a network's gradients.",
        ),
        Picture(
            Axis("depth over width", "L/n"),
            Axis("variance of the log of the factor"),
            tuple(growth),
            "Only the ratio of depth and width counts: a network as deep as it is wide is off by a factor of ten.",
        ),
    ]


def spread_error(values):
    """The standard error of a sample variance, from the fourth moment."""
    centred = values - values.mean(axis=0)
    return np.sqrt(np.maximum((centred**4).mean(axis=0) - (centred**2).mean(axis=0) ** 2, 0) / len(values))


def check(data):
    """Mean and variance at L = n against the exact ones, and the approach of 5L/n."""
    found = []
    for n in map(int, data["widths"]):
        values, (mean, variance) = data[f"log_{n}"][:, -1], data[f"layer_{n}"] * n
        error = spread_error(values)
        found.append(of_mean(f"mean of log R, {n} layers of {n}", values, mean))
        found.append(Check(f"variance of log R, {n} layers of {n}", values.var(ddof=1), error, variance, SURE))
    return found
