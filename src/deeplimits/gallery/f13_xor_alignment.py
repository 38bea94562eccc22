"""Both layers of a network that learns XOR align with outlier eigenspaces of their own curvature.

K = 20 ReLU neurons (small: 8), d = 1000 (small: 100), clusters at ±μ and ±ν with λ = 10, ridge 0.05, step 1/d, up to
t = 60. The rows W_i are compared with the two leading eigenvectors of their block of the Hessian and of the second
moment of gradients, averaged with weights v_i², over 10d fresh samples; the second layer v with four eigenvectors of
its block. Lines: theory at the summary statistics that were reached.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse.linalg import eigsh

from deeplimits import measure
from deeplimits.gallery.figure import Check
from deeplimits.gallery.mixture_sgd import products
from deeplimits.gallery.xor_sgd import KINDS, PER_DIMENSION, SEPARATION, fresh, statistics, trained
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points
from deeplimits.theory import landscape

NOTES = "Mathematics of Deep Learning, Fig 1.6"
LIMITS = ("xor-alignment-theorems", "xor-hessian-g-blocks")
TIMES = np.array([0.0, 5, 10, 20, 30, 45, 60])


def compute(run):
    """Alignment of both layers, measured and stated."""
    width, d = run.pick((20, 1000), (8, 100))
    return {
        **run.step("training", aligned, width=width, d=d, few=run.pick(tuple(range(len(TIMES))), (1, 3, 6))),
        "d": d,
    }


def aligned(width, d, few):
    """ρ of both layers for each matrix over time, beside theory (for the first layer at the times numbered `few`).

    Neurons of little weight are left out of the first layer.
    """
    random = np.random.default_rng(3)
    begin = random.normal(size=width), random.normal(size=(width, d)) / np.sqrt(d)
    found = {
        f"{side} {layer} {kind}": [] for side in ("seen", "said") for layer in ("first", "second") for kind in KINDS
    }
    for index, (v, w) in enumerate(trained(random, *begin, TIMES)):
        y, h, counts = fresh(random, v, w)
        state, share = statistics(v, w), v**2 / np.sum(v**2)
        heavy = np.flatnonzero(share > 0.05)
        blocks = landscape.xor_second_layer(state, SEPARATION)
        active = np.maximum(h, 0)
        for kind, weights in counts.items():
            block = (active * weights[:, None]).T @ active / len(y)
            found[f"seen second {kind}"].append(measure.alignment(v, measure.top_eigenspace(block, 4)))
            found[f"said second {kind}"].append(measure.alignment(v, measure.top_eigenspace(getattr(blocks, kind), 4)))
            rows = [measure.alignment(w[i], top_two(y, weights * (h[:, i] > 0))) for i in heavy]
            found[f"seen first {kind}"].append(np.sqrt(share[heavy] @ np.array(rows) ** 2 / share[heavy].sum()))
            if index in few:
                lines = np.array([first_layer(state, i, kind) for i in heavy])
                found[f"said first {kind}"].append(np.sqrt(share[heavy] @ lines**2 / share[heavy].sum()))
    return found | {"at": TIMES[list(few)]}


def top_two(y, weights):
    """The two leading eigenvectors of (1/M) Σ w y y', by products."""
    start = np.cos(np.arange(y.shape[1]))
    return eigsh(products(y, weights), k=2, which="LA", tol=1e-6, v0=start)[1]  # pyright: ignore[reportArgumentType]


_outliers = jax.jit(landscape.weighted_outliers)


def first_layer(state, neuron, kind):
    """ρ(W_i, E_2) in theory, at these summary statistics."""
    v, mu, nu, rest = state
    sample = landscape.xor_weighted_block(state, SEPARATION, PER_DIMENSION, neuron=neuron, kind=kind, points=128)
    root = jnp.linalg.cholesky(rest + 1e-12 * jnp.eye(len(v)))
    x = jnp.concatenate([mu[neuron, None], nu[neuron, None], root[neuron]])
    return float(jnp.sqrt(landscape.outlier_alignment(_outliers(sample), x, 2)))


def draw(data):
    """A panel for each matrix."""
    pictures, d = [], int(data["d"])
    for kind, words in KINDS.items():
        marks = (
            Line(data["at"], data[f"said first {kind}"], series=0, label="first layer, theory"),
            Line(TIMES, data[f"said second {kind}"], series=1, label="second layer, theory"),
            Points(TIMES, data[f"seen first {kind}"], role=SIMULATION, series=0, label=f"first layer, SGD, d = {d}"),
            Points(TIMES, data[f"seen second {kind}"], role=SIMULATION, series=1, label="second layer, SGD"),
        )
        said = f"Both layers move into the outlier eigenspaces of their blocks of the {words}, and almost entirely."
        y = Axis("alignment", r"\rho", low=0.0, high=1.05)
        pictures.append(Picture(Axis("time", "t"), y, marks, said))
    return pictures


def check(data):
    """The end, beside theory at the state that was reached: what fluctuates are eigenvectors, by 1/√d in all."""
    checks, d = [], int(data["d"])
    for kind, words in KINDS.items():
        for layer in ("first", "second"):
            seen, said = data[f"seen {layer} {kind}"][-1], data[f"said {layer} {kind}"][-1]
            label = f"{layer} layer and {words} at t = {TIMES[-1]:g}"
            checks.append(Check(label, seen, 0.3 / np.sqrt(d), said, 4))
    return checks
