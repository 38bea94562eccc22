"""Double descent in training time: a classifier is best before it is done.

Gradient flow of a linear classifier of two Gaussian classes at ±μ, |μ|² = 2, from small random weights, with c = p/n
= 0.5, 1 and 2 dimensions per sample (n = 256, small: 96). Drawn are the errors on new and on training points over
time.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import norm

from deeplimits import ensembles
from deeplimits.gallery import marks
from deeplimits.gallery.extrapolated import at_infinity
from deeplimits.predictions.picture import Axis, Line, Picture, Rule
from deeplimits.theory import regression

NOTES = "Random Matrix Theory and Its Applications in ML, double descent in training time"
LIMITS = ("gradient-descent-dynamics-gmm",)
RATIOS, STRENGTH, START = (0.5, 1.0, 2.0), 2.0, 0.3
CHECKED = 0.3
"""A time at which errors are compared."""


def compute(run):
    """Errors over time: theory on a dense grid, data sets at some times."""
    sizes, samples = run.pick((64, 128, 256), (48, 96)), run.pick(200, 40)
    run.expect(len(RATIOS) * len(sizes))
    dense = np.sort(np.append(np.geomspace(0.02, 300.0, 150), CHECKED))
    times = np.sort(np.append(np.geomspace(0.03, 250.0, 14), CHECKED))
    found = {"sizes": np.array(sizes), "times": times, "dense": dense}
    theory = [regression.classification_dynamics(dense, ratio, STRENGTH, start=START) for ratio in RATIOS]
    found["test"] = np.stack([one.test_error for one in theory])
    found["training"] = np.stack([one.training_error for one in theory])
    for ratio in RATIOS:
        for size in sizes:
            one = run.step("data sets", errors, ratio=ratio, size=size, samples=samples, times=times)
            found |= {f"{name}_{ratio}_{size}": values for name, values in one.items()}
    return {name: np.asarray(values) for name, values in found.items()}


def errors(ratio, size, samples, times):
    """Test and training error of some data sets over time."""
    p = round(ratio * size)
    random = np.random.default_rng([size, p])
    means = random.standard_normal((samples, p))
    means *= np.sqrt(STRENGTH) / np.linalg.norm(means, axis=1, keepdims=True)
    y = np.where(np.arange(size) % 2, 1.0, -1.0)
    x = y[:, None] * means[:, None, :] + random.standard_normal((samples, size, p))
    begin = np.sqrt(START / p) * random.standard_normal((samples, p))
    flow = jax.jit(
        jax.vmap(lambda x, begin: ensembles.ridge_flow(x, jnp.asarray(y), jnp.zeros(()), begin, jnp.asarray(times)))
    )
    weights = np.asarray(flow(x, begin))
    # Given w, y w'x of a new point is Gaussian with mean μ'w and variance |w|².
    test = norm.sf(np.einsum("stp,sp->st", weights, means) / np.linalg.norm(weights, axis=2))
    training = np.mean(np.einsum("stp,snp->stn", weights, x * y[:, None]) < 0, axis=2)
    return {"test": test, "training": training}


def draw(data):
    """Test errors with their best times, and training errors."""
    size = int(data["sizes"][-1])
    panels = []
    for name, label, caption in (
        (
            "test",
            "error on new points",
            "The error on new points falls and rises again: stopping early (dotted) is best.",
        ),
        (
            "training",
            "error on training points",
            "Meanwhile the training error falls; with c of at least 1 it vanishes.",
        ),
    ):
        seen = []
        for series, ratio in enumerate(RATIOS):
            seen.append(Line(data["dense"], data[name][series], series=series, label=f"theory, c = {ratio:g}"))
            seen.append(marks.averages(data["times"], data[f"{name}_{ratio}_{size}"], series=series))
            if name == "test":
                best = float(data["dense"][np.argmin(data["test"][series])])
                seen.append(Rule(best, upright=True, series=series))
        panels.append(Picture(Axis("training time", "t", log=True), Axis(label, low=0), tuple(seen), caption))
    return panels


def check(data):
    """The test error at one time, for every number of dimensions per sample."""
    sizes = data["sizes"].tolist()
    at = int(np.argmin(np.abs(data["times"] - CHECKED)))
    stated = data["test"][:, np.argmin(np.abs(data["dense"] - CHECKED))]
    found = []
    for series, ratio in enumerate(RATIOS):
        draws = [data[f"test_{ratio}_{size}"][:, at] for size in sizes]
        found.append(at_infinity(f"test error at t = {CHECKED:g}, c = {ratio:g}", sizes, draws, stated[series], 1.0))
    return found
