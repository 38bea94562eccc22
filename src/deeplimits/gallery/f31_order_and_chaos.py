"""Order, chaos and the edge between them.

Drawn are the correlation of two inputs over the depth of random tanh networks in both phases and at the edge, the
correlation that is left after 100 layers over the whole plane of weight and bias variance (a network simulated in
every cell) with the theory's critical line, and the slow approach c → 1 of ReLU networks, 1 − c ~ 9π²/(2l²).

Parameters  tanh with C_b = 0.05 and C_w = 1.2, the edge 1.761 and 2.5; ReLU with C_w = 2, C_b = 0; depth 100
Notes       004, 9/19
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.ensembles import deep_networks
from deeplimits.gallery.extrapolated import at_infinity, of_mean
from deeplimits.models.activations import activation
from deeplimits.predictions.picture import SIMULATION, Axis, Field, Line, Picture, Points
from deeplimits.theory import initialization

NOTES = "ORF 543, 9/19"
LIMITS = ("order-chaos-phase-diagram", "nngp-kernel-recursion")

DEPTH, START, BIAS_VARIANCE = 100, 0.6, 0.05
ORDERED, CHAOTIC = 1.2, 2.5
KERNEL = 0.57004788164076
"""Of the critical network with that bias variance."""
CASES = ("ordered", "critical", "chaotic")


def compute(run):
    """Paths, the critical line, and the networks beside them."""
    widths = run.pick((500, 1000, 2000), (200, 400))
    samples = run.pick(100, 40)
    run.expect(2 + len(widths))
    line = initialization.edge_of_chaos("tanh", np.append(np.geomspace(1e-4, 3.0, 299), KERNEL))
    weights = np.array([ORDERED, line.weight_variance[-1], CHAOTIC])
    found = {"weights": weights, "widths": np.array(widths)}
    found |= {"line_weights": line.weight_variance[:-1], "line_biases": line.bias_variance[:-1]}
    for sigma, variance, bias in (("tanh", weights, BIAS_VARIANCE), ("relu", 2.0, 0.0)):
        path = jax.jit(functools.partial(initialization.correlation_path, sigma, layers=DEPTH))
        found[sigma] = path(1 - START, 1.0, variance, bias).gaps
    found |= run.step("growth", growth, weights=float(weights[1]), width=widths[0], samples=20 * samples)
    for width in widths:
        gaps = run.step("gaps", network_gaps, weights=weights, width=width, samples=samples)
        found |= {f"{name}_{width}": values for name, values in gaps.items()}
    cells = run.pick((61, 41), (21, 13))
    found |= run.step("map", correlation_map, columns=cells[0], rows=cells[1], width=run.pick(500, 150))
    return {name: np.asarray(values) for name, values in found.items()}


def network_gaps(weights, width, samples):
    """1 − c over the layers of some random networks, at every weight variance, and of ReLU."""
    start = jnp.array([1.0, START, 1.0])

    def gaps(sigma, noise, weight_variance, bias_variance):
        chain = deep_networks.pair_chain(noise, activation(sigma), start, weight_variance, jnp.asarray(bias_variance))
        return deep_networks.correlation_gap(chain.given)

    @jax.jit
    def one(key):
        noise = jax.random.normal(key, (DEPTH + 1, 2, width))
        tanh = jax.vmap(lambda weight: gaps("tanh", noise, weight, BIAS_VARIANCE))(jnp.asarray(weights))
        return {"tanh": tanh, "relu": gaps("relu", noise, jnp.asarray(2.0), 0.0)}

    return jax.lax.map(one, jax.random.split(jax.random.key(width), samples))


def growth(weights, width, samples):
    """By how much one layer multiplies the squared distance of two inputs that are close: χ_⊥, at every width."""
    sigma, near = activation("tanh"), 1e-4

    @jax.jit
    def measured(key, weights):
        kernel = deep_networks.settled_variance(sigma, weights, jnp.asarray(BIAS_VARIANCE))
        noise = jnp.sqrt(kernel) * jax.random.normal(key, (samples, 2, width))
        moved = (sigma.value(noise[:, 0] + near * noise[:, 1]) - sigma.value(noise[:, 0])) / near
        return {"growth": weights * jnp.mean(moved**2, axis=1) / kernel}

    return measured(jax.random.key(1), jnp.asarray(weights))


def correlation_map(columns, rows, width):
    """The correlation after all layers, a network for each pair of variances."""
    weights, biases = np.linspace(0.5, 4.5, columns), np.linspace(0.01, 0.6, rows)
    start, sigma = jnp.array([1.0, START, 1.0]), activation("tanh")

    @jax.jit
    def one(case):
        noise = jax.random.normal(jax.random.key(case[2].astype(int)), (DEPTH + 1, 2, width))
        chain = deep_networks.pair_chain(noise, sigma, start, case[0], case[1])
        return 1 - deep_networks.correlation_gap(chain.given)[-1]

    grid = [(w, b, number) for number, (b, w) in enumerate(itertools.product(biases, weights))]
    values = jax.lax.map(one, jnp.asarray(grid))
    return {"map_weights": weights, "map_biases": biases, "map": values.reshape(rows, columns)}


def draw(data):
    """Correlations over depth, the map with its line, and ReLU's slow approach."""
    width = int(data["widths"][-1])
    layers = np.arange(1, DEPTH + 2)
    paths = []
    for series, (name, weight) in enumerate(zip(CASES, data["weights"], strict=True)):
        paths.append(Line(layers, 1 - data["tanh"][:, series], label=f"{name}, C_w = {weight:.4g}", series=series))
        paths.append(points(1 - data[f"tanh_{width}"][:, series], series))
    inside = (data["line_biases"] >= 0) & (data["line_biases"] <= data["map_biases"][-1])
    field = Field(data["map_weights"], data["map_biases"], data["map"], label="correlation, simulated", role=SIMULATION)
    line = Line(data["line_weights"][inside], data["line_biases"][inside], label="theory: the edge of chaos, χ_⊥ = 1")
    relu = (
        Line(layers, data["relu"], label="theory, ReLU at C_w = 2"),
        Line(layers[9:], 4.5 * np.pi**2 / layers[9:] ** 2, label="9π²/(2l²)", series=1),
        points(data[f"relu_{width}"], 0, f"networks of width {width}"),
    )
    depth = Axis("layer", "l", log=True)
    return [
        Picture(
            depth,
            Axis("correlation of two inputs", "c_l"),
            tuple(paths),
            f"Tanh networks forget that two inputs differ, or pull them apart: theory (lines), width {width} (points).",
        ),
        Picture(
            Axis("weight variance", "C_w"),
            Axis("bias variance", "C_b"),
            (field, line),
            f"The correlation left after {DEPTH} layers is 1 exactly up to the theory's line: one network per cell.",
        ),
        Picture(
            depth,
            Axis("distance of two inputs", "1-c_l", log=True),
            relu,
            "In ReLU networks at their critical point inputs become alike slowly, like 1/l².",
        ),
    ]


def points(draws, series, label=""):
    """Means at some layers, with two standard errors."""
    at = np.unique(np.geomspace(1, DEPTH, 18).round().astype(int)) - 1
    mean, bar = draws[:, at].mean(axis=0), 2 * draws[:, at].std(axis=0, ddof=1) / np.sqrt(len(draws))
    return Points(at + 1, mean, mean - bar, mean + bar, label=label, role=SIMULATION, series=series)


def check(data):
    """The critical line, and how far inputs stay apart in the other phase and in ReLU networks."""
    widths = data["widths"].tolist()
    chaotic = [data[f"tanh_{width}"][:, 2, -1] for width in widths]
    relu = [data[f"relu_{width}"][:, 20] for width in widths]
    return [
        of_mean("χ_⊥ at the critical line", data["growth"], 1.0),
        at_infinity(f"1 − c after {DEPTH} layers in the chaotic phase", widths, chaotic, data["tanh"][-1, 2], 1.0),
        at_infinity("1 − c after 21 layers of ReLU", widths, relu, data["relu"][20], 1.0),
    ]
