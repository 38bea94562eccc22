"""Where tokens are proven to run together into one cluster, over dimension and inverse temperature.

Self-attention with Q'K = V = I on n = 16 tokens on the sphere (small: 8). Colour: nothing is proven (0), convergence to
one cluster from almost every start (1), with an exponential rate (2). Symbols: the share of random starts that are in
one cluster, to within a chord of 10⁻³, by time 50 (small: 20); a finite time cannot show what happens later.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.ensembles import transformers
from deeplimits.gallery.figure import Check
from deeplimits.measure import tokens
from deeplimits.predictions.picture import SIMULATION, Axis, Field, Picture, Points, Rule
from deeplimits.theory import attention

NOTES = "Mathematics of Deep Learning, ch 14 Fig 2.1"
LIMITS = ("clustering-phase-diagram", "single-cluster-convergence")
BETAS, STEP, COLLAPSED = (0.02, 0.3, 1.0, 3.0, 9.0, 30.0), 0.1, 1e-3


def compute(run):
    """The share of starts in one cluster, a row for each β and a column for each dimension."""
    n, dimensions, starts, time = run.pick((16, (2, 3, 4, 8, 16, 24), 20, 50.0), (8, (2, 8, 12), 8, 20.0))
    run.expect(len(dimensions))
    columns = [
        run.step(f"d = {d}", clustered, n=n, dimension=d, starts=starts, time=time, betas=BETAS)["share"]
        for d in dimensions
    ]
    return {"n": n, "dimensions": dimensions, "starts": starts, "time": time, "share": np.stack(columns, axis=1)}


def clustered(n, dimension, starts, time, betas):
    """The share of random starts with all tokens within a chord at the end, for each β."""
    steps = round(time / STEP)

    @functools.partial(jax.vmap, in_axes=(None, 0))
    def end(beta, key):
        x = transformers.random_tokens(key, n, dimension)
        return tokens.chord(transformers.after_layers(x, beta, STEP, steps)) < COLLAPSED

    keys = jax.random.split(jax.random.key(dimension), starts)
    found = jax.jit(lambda betas: jax.lax.map(lambda beta: end(beta, keys), betas))(jnp.asarray(betas))
    return {"share": np.mean(np.asarray(found), axis=1)}


def draw(data):
    """The map of theorems, and what simulations do on it."""
    n, share = int(data["n"]), data["share"]
    d, betas = np.arange(2, 2 * n + 1), np.geomspace(0.1 / n, 10 * n**2, 150)
    proven = attention.proven_regime(d[None, :], jnp.asarray(betas)[:, None], n)
    level = np.asarray(proven.proven, float) + np.asarray(proven.exponential, float)
    at_d, at_beta = np.meshgrid(data["dimensions"], BETAS)
    groups = [
        (share == 1, "all starts in one cluster"),
        ((share > 0) & (share < 1), "some starts"),
        (share == 0, "none"),
    ]
    marks = [
        Field(d, betas, level, label="0: nothing proven, 1: one cluster, 2: at an exponential rate"),
        Rule(float(n), upright=True, label=f"d = n = {n}"),
        *(
            Points(
                at_d[chosen],
                at_beta[chosen],
                role=SIMULATION,
                series=i,
                label=f"{words}, by t = {float(data['time']):g}",
            )
            for i, (chosen, words) in enumerate(groups)
            if chosen.any()
        ),
    ]
    said = (
        "Where one cluster is proven, every simulated start has come together, except at large β, where that takes "
        "longer than any simulation; where nothing is proven, they come together as well."
    )
    return [
        Picture(
            Axis("dimension", "d", log=True, ticks=tuple(float(one) for one in data["dimensions"]), whole=True),
            Axis("inverse temperature", r"\beta", log=True),
            tuple(marks),
            said,
        )
    ]


def check(data):
    """In high dimension and at moderate β every start clusters; at large β it takes a time exponential in β."""
    high, dimensions = data["share"], list(data["dimensions"])
    column, checks = dimensions.index(data["n"]), []
    for beta in (0.3, 1.0):
        share = high[BETAS.index(beta), column]
        proven = attention.proven_regime(int(data["n"]), beta, int(data["n"]))
        label = f"share of starts in one cluster at d = n, β = {beta:g}"
        checks.append(Check(label, share, 0, float(np.asarray(proven.proven)), 0))
    return checks
