"""Eigenvalues of sample covariances fill the law of Marchenko and Pastur.

p independent features of variance 1 and n samples, so that every eigenvalue of the population is 1: a hundred samples
for each feature (p = 500, n = 50,000; small: p = 100), two (c = p/n = 0.5), and fewer samples than features (c = 2),
where half of the eigenvalues are zero. Each histogram is one matrix.
"""

import numpy as np

from deeplimits.gallery.figure import Check
from deeplimits.gallery.marks import histogram
from deeplimits.predictions.picture import Axis, Line, Mark, Picture, Rule, Stem
from deeplimits.theory import spectra

NOTES = "Mathematics of Deep Learning, ch 6 and Random Matrix Theory and Its Applications in ML, first figure"
LIMITS = ("marchenko-pastur-law", "bai-yin-edges")
RATIOS = (0.01, 0.5, 2.0)


def compute(run):
    """Eigenvalues at each ratio."""
    p = run.pick(500, 100)
    run.expect(len(RATIOS))
    return {f"c = {c:g}": run.step(f"c = {c:g}", eigenvalues, p=p, n=round(p / c))["values"] for c in RATIOS}


def eigenvalues(p, n):
    """Of X'X/n for one Gaussian X."""
    x = np.random.default_rng(n).standard_normal((n, p))
    return {"values": np.linalg.eigvalsh(x.T @ x / n)}


def draw(data):
    """A histogram under its density for each ratio."""
    return [panel(c, data[f"c = {c:g}"]) for c in RATIOS]


def panel(c, values):
    """One ratio; what is zero by rank is drawn as the atom."""
    low, high = (float(end) for end in spectra.marchenko_pastur_edges(c))
    p, rank = len(values), min(len(values), round(len(values) / c))
    # Where the density has the root of a distance to the edge, equal steps of an angle show its ends.
    x = (low + high) / 2 - (high - low) / 2 * np.cos(np.linspace(0, np.pi, 400))
    density = spectra.marchenko_pastur_density(x, c)
    bulk = values[p - rank :]
    marks: list[Mark] = [
        histogram(bulk, 45, share=rank / p, label=f"eigenvalues of one matrix, p = {p}, n = {round(p / c):,}"),
        Line(x, density, label="Marchenko-Pastur density"),
    ]
    if rank < p:
        marks.append(Stem(0.0, float(np.max(density)), label=f"atom at zero, mass {1 - rank / p:g}"))
        said = f"With fewer samples than features (c = {c:g}) half of them are zero, the others up to {high:.2f}."
    elif c < 0.1:
        marks.append(Rule(1.0, upright=True, label="every population eigenvalue"))
        said = f"Even with {1 / c:g} samples a feature, eigenvalues are not 1 but spread from {low:.2f} to {high:.2f}."
    else:
        marks.append(Rule(1.0, upright=True, label="every population eigenvalue"))
        said = f"With {1 / c:g} samples a feature (c = {c:g}) they spread from {low:.2f} to {high:.2f}."
    y = Axis("density", low=0.0)
    return Picture(Axis("eigenvalue", r"\lambda", low=-0.15 if rank < p else None), y, tuple(marks), said)


def check(data):
    """The whole law, and its upper edge.

    The number of eigenvalues below a point has the standard deviation √(log p)/π, below 0.8 here: counts that differ
    from the law's by 5 anywhere are five of these, and the step of one eigenvalue, off. The largest eigenvalue follows
    Tracy and Widom's law, of mean -1.2065 and deviation 1.268 on the scale of `white_edge`.
    """
    checks = []
    for c in RATIOS:
        values = data[f"c = {c:g}"]
        p, zeros = len(values), max(0, len(values) - round(len(values) / c))
        law = np.asarray(spectra.marchenko_pastur_cdf(values[zeros:], c)) * p
        place = np.arange(zeros, p)
        apart = float(np.max(np.maximum(np.abs(law - place), np.abs(law - place - 1))))
        checks.append(Check(f"c = {c:g}: largest difference of eigenvalue counts", apart, 0, 0, 5))
        centre, scale = spectra.white_edge(round(p / c), p)
        checks.append(Check(f"c = {c:g}: largest eigenvalue", values[-1], 1.268 * scale, centre - 1.2065 * scale, 4))
    return checks
