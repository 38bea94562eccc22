"""In large dimension all points are equally far apart, whatever their classes.

200 points of two Gaussian classes in R^p, p = 5, 50, 500, the class means at distance 4: an oracle errs on 2.3 % of
points in every dimension. Drawn are all squared distances over p within and between classes on their exact laws, the
kernel matrices as images, and how far the two laws are from each other in units of their width.
"""

import numpy as np
from scipy import stats

from deeplimits.gallery import marks
from deeplimits.gallery.extrapolated import of_mean
from deeplimits.predictions.picture import SIMULATION, Axis, Field, Line, Picture, Points
from deeplimits.theory import mixtures

NOTES = "Random Matrix Theory and Its Applications in ML, classification in small and large dimension"
LIMITS = ("distance-concentration", "kernel-linearization")
DIMENSIONS, APART, POINTS = (5, 50, 500), 4.0, 200


def compute(run):
    """Points, and distances of many independent pairs in more dimensions."""
    dimensions = np.unique(np.geomspace(2, 2000, run.pick(13, 6)).round().astype(int))
    run.expect(len(DIMENSIONS) + len(dimensions))
    found = {f"apart_{p}": run.step("points", distances, dimension=p)["apart"] for p in DIMENSIONS}
    pairs = [run.step("pairs", pair_distances, dimension=int(p), pairs=run.pick(20_000, 2000)) for p in dimensions]
    return found | {"dimensions": dimensions} | {name: np.array([one[name] for one in pairs]) for name in pairs[0]}


def distances(dimension):
    """Squared distances over p of all points, the first half of them of one class."""
    x = np.random.default_rng(dimension).standard_normal((POINTS, dimension))
    x[POINTS // 2 :, 0] += APART
    square = np.sum(x**2, axis=1)
    return {"apart": (square[:, None] + square - 2 * x @ x.T) / dimension}


def pair_distances(dimension, pairs):
    """Squared distances over p of independent pairs, within and between classes."""
    first, second = np.random.default_rng(1000 + dimension).standard_normal((2, pairs, dimension))
    within = np.sum((first - second) ** 2, axis=1) / dimension
    second[:, 0] += APART
    return {"within": within, "between": np.sum((first - second) ** 2, axis=1) / dimension}


def moments(dimension):
    """Means and variances of the squared distance over p, within and between."""
    means = np.zeros((2, dimension))
    means[1, 0] = APART
    return mixtures.pair_distances(mixtures.gaussian_mixture(means, 1.0))


def draw(data):
    """Laws of distances, kernel matrices, and the contrast of the classes."""
    same = np.add.outer(np.arange(POINTS) // (POINTS // 2), np.arange(POINTS) // (POINTS // 2)) != 1
    upper = np.triu(np.ones((POINTS, POINTS), bool), 1)
    panels = []
    for p in DIMENSIONS:
        apart = data[f"apart_{p}"]
        x = np.linspace(0, apart.max(), 300)
        within, between = stats.chi2.pdf(x, p, scale=2 / p), stats.ncx2.pdf(x, p, APART**2 / 2, scale=2 / p)
        panels.append(
            Picture(
                Axis("squared distance over p", r"|x-x'|^2/p"),
                Axis("density"),
                (
                    marks.histogram(apart[same & upper], series=0),
                    marks.histogram(apart[~same & upper], series=1),
                    Line(x, within, series=0, label="within a class, theory"),
                    Line(x, between, series=1, label="between classes, theory"),
                ),
                f"p = {p}: distances within and between classes "
                + {5: "tell the classes apart.", 50: "overlap.", 500: "are the same, all near 2."}[p],
            )
        )
    for p in (DIMENSIONS[0], DIMENSIONS[-1]):
        field = Field(np.arange(POINTS), np.arange(POINTS), np.exp(-data[f"apart_{p}"] / 2),
                      label="exp(−|x−x'|²/2p)", role=SIMULATION)  # fmt: skip
        seen = "two blocks are the two classes." if p == 5 else "all entries but the diagonal look the same."
        panels.append(Picture(Axis("point"), Axis("point"), (field,), f"The kernel matrix at p = {p}: {seen}"))
    gap = (data["between"] - data["within"]).mean(axis=1) / data["within"].std(axis=1, ddof=1)
    dense = np.geomspace(2, 2000, 100)
    contrast = (
        Line(dense, APART**2 / dense / np.sqrt(8 / dense), label="theory, d²/√(8p)"),
        Points(data["dimensions"], gap, role=SIMULATION, label="pairs of points"),
    )
    words = Axis("distance of the two laws over their width", log=True)
    caption = "The classes' mark on a single distance fades like 1/√p; only all distances together still hold it."
    return [*panels, Picture(Axis("dimension", "p", log=True), words, contrast, caption)]


def check(data):
    """Means and variance of the distances, at every dimension looked at."""
    found = []
    for place in (0, len(data["dimensions"]) // 2):
        p = int(data["dimensions"][place])
        stated = moments(p)
        for name, other in (("within", 0), ("between", 1)):
            found.append(of_mean(f"mean {name} classes, p = {p}", data[name][place], stated.mean[0, other]))
        squares = (data["within"][place] - float(stated.mean[0, 0])) ** 2
        found.append(of_mean(f"variance within a class, p = {p}", squares, stated.variance[0, 0]))
    return found
