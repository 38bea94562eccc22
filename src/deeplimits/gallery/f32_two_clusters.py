"""One outlier in the Hessian, as long as the two clusters are narrow.

Logistic regression on two Gaussian clusters at (−1, −1) and (1, 1) of standard deviation s, weights of length a along
the means, 2,000 samples (small: 500). Drawn are the two eigenvalues of the Hessian over s at the start (a = 0) and on
the way (a = 1), and their ratio, which closes as the variance grows.
"""

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.gallery import marks
from deeplimits.gallery.extrapolated import of_mean
from deeplimits.predictions.picture import Axis, Line, Picture
from deeplimits.theory import landscape

NOTES = "ORF 543, 10/3"
LIMITS = ("hessian-two-clusters",)
LENGTHS, ALONG = (0.0, 1.0), np.array([1.0, 1.0]) / np.sqrt(2)


def compute(run):
    """Curvature along and across the means, stated and measured."""
    noises = np.geomspace(0.25, 3.0, run.pick(12, 6))
    dense = np.geomspace(0.2, 3.2, 80)
    run.expect(len(LENGTHS))
    found = {"noises": noises, "dense": dense}
    stated = jax.jit(lambda a, s: jnp.stack(landscape.two_cluster_curvature(a, s)[:2]))
    for length in LENGTHS:
        found[f"theory_{length}"] = np.array([stated(length, s) for s in dense])
        found[f"exact_{length}"] = np.array([stated(length, s) for s in noises])
        size = {"samples": run.pick(2000, 500), "draws": run.pick(100, 30)}
        found |= run.step("Hessians", hessians, length=length, noises=noises, **size)
    return found


def hessians(length, noises, samples, draws):
    """vv'H and the other diagonal entry of Hessians by automatic differentiation, v along the means."""
    curvature = jax.jit(jax.hessian(lambda w, signed: jnp.mean(jnp.logaddexp(0.0, -signed @ w))))
    random = np.random.default_rng(0)
    across = np.array([1.0, -1.0]) / np.sqrt(2)
    found = np.empty((draws, len(noises), 2))
    for place in range(draws):
        for at, noise in enumerate(noises):
            # A point times its label is always of the cluster at (1, 1).
            signed = 1.0 + noise * random.standard_normal((samples, 2))
            h = np.asarray(curvature(length * ALONG, signed))
            found[place, at] = ALONG @ h @ ALONG, across @ h @ across
    return {f"measured_{length}": found}


def draw(data):
    """The two eigenvalues over the clusters' width, and their ratio."""
    panels = []
    width = Axis("standard deviation of a cluster", "s", log=True)
    captions = {
        0.0: "At the start of training the eigenvalue along the clusters stands apart while they are narrow.",
        1.0: "On the way both are smaller, for points that are well classified bend the loss little.",
    }
    for length in LENGTHS:
        seen = []
        for series, name in enumerate(("along the means", "across")):
            seen.append(
                Line(data["dense"], data[f"theory_{length}"][:, series], series=series, label=f"{name}, theory")
            )
            seen.append(marks.averages(data["noises"], data[f"measured_{length}"][:, :, series], series=series))
        panels.append(Picture(width, Axis("eigenvalue of the Hessian", log=True), tuple(seen), captions[length]))
    ratio = []
    for series, length in enumerate(LENGTHS):
        theory = data[f"theory_{length}"]
        ratio.append(Line(data["dense"], theory[:, 0] / theory[:, 1], series=series, label=f"theory, a = {length:g}"))
        seen = data[f"measured_{length}"]
        ratio.append(marks.averages(data["noises"], seen[:, :, 0] / seen[:, :, 1], series=series))
    caption = "The ratio of the two, 1 + 2/s² at the start, closes as the clusters grow into each other."
    return [*panels, Picture(width, Axis("ratio of the eigenvalues", log=True), tuple(ratio), caption)]


def check(data):
    """Mean curvatures at the narrowest and the widest clusters."""
    found = []
    for length in LENGTHS:
        for at in (0, -1):
            for place, name in enumerate(("along", "across")):
                draws = data[f"measured_{length}"][:, at, place]
                label = f"curvature {name} at s = {data['noises'][at]:.3g}, a = {length:g}"
                wanted = data[f"exact_{length}"][at, place]
                found.append(of_mean(label, draws, wanted))
    return found
