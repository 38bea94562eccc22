"""What the eigenvectors of a kernel matrix know of two classes, on both sides of the transition, and for two digits.

Heat kernel exp(−|x_i − x_j|²/2p) of n points, centred. Above: two Gaussian classes ±μ with |μ|² below and beyond the
transition at √(p/n). Below: zeros and ones, and threes and eights, of scikit-learn's digits. Drawn are all eigenvalues,
with the bulk and the informative eigenvalue that the theory predicts for the mixtures, and the entries of the two
largest eigenvectors, points sorted by class; lines are the predicted means of the informative one, ±√A. Half a minute:

    python examples/kernel_clustering.py kernel-clustering.png
"""

import argparse
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_digits

from deeplimits.theory import mixtures

COLOURS = "C0", "C1"


class Clusters(NamedTuple):
    """Spectrum of a centred kernel matrix, beside the classes."""

    values: np.ndarray
    vectors: np.ndarray
    """The two largest, in columns."""
    labels: np.ndarray
    overlaps: np.ndarray
    """Squared alignment of both with the classes."""
    wrong: float
    """Share of points on the wrong side of zero in the better one."""


def heat(t):
    return jnp.exp(-t / 2)


def clusters(x, labels) -> Clusters:
    """Eigenvectors of the centred heat kernel, points sorted by class."""
    order = np.argsort(labels, kind="stable")
    x, labels = np.asarray(x)[order], np.asarray(labels)[order]
    kernel = np.asarray(heat(squareform(pdist(x, "sqeuclidean")) / x.shape[1]))
    kernel = kernel - kernel.mean(axis=0)
    values, vectors = np.linalg.eigh(kernel - kernel.mean(axis=1)[:, None])
    top = vectors[:, [-1, -2]]
    y = 1.0 - 2 * labels
    y = y - y.mean()
    top = top * np.where(y @ top < 0, -1.0, 1.0)
    overlaps = (y @ top) ** 2 / (y @ y)
    wrong = float(np.mean((top[:, np.argmax(overlaps)] > 0) != (labels == 0)))
    return Clusters(values, top, labels, overlaps, min(wrong, 1 - wrong))


def mixture(dimension, points, strength, seed) -> Clusters:
    """Of a drawn Gaussian mixture ±μ, |μ|² = `strength`."""
    labels = np.arange(points) % 2
    x = np.random.default_rng(seed).normal(size=(points, dimension))
    x[:, 0] += (1 - 2 * labels) * strength**0.5
    return clusters(x, labels)


def digits(first, second) -> Clusters:
    """Of two digits, centred and of mean squared length p."""
    images, labels = load_digits(return_X_y=True)
    chosen = (labels == first) | (labels == second)
    return clusters(mixtures.standardized(images[chosen]), (labels[chosen] == second).astype(int))


def draw(dimension, points, seed):
    """The figure, and what is in it: found and predicted."""
    gamma = dimension / points
    rows, found = [], []
    for strength in (0.5 * gamma**0.5, 3.0):
        stated = mixtures.kernel_clustering(heat, gamma, strength)
        rows.append((f"mixture, |μ|² = {strength:.2f}", mixture(dimension, points, strength, seed), stated))
    for pair in ((0, 1), (3, 8)):
        rows.append((f"digits {pair[0]} and {pair[1]}", digits(*pair), None))
    figure = Figure(figsize=(13, 10), layout="constrained")
    for panels, (title, one, stated) in zip(figure.subplots(len(rows), 3), rows, strict=True):
        spectrum(panels[0], title, one, stated)
        for place in range(2):
            entries(panels[1 + place], one, place, stated)
        found.append((title, one, stated))
    return figure, found


def spectrum(axes, title, one, stated):
    """All eigenvalues; shaded the predicted bulk, dashed the predicted informative eigenvalue."""
    axes.hist(one.values, bins=60, color="0.7")
    axes.plot(one.values[-2:], [1.5, 1.5], "k|", ms=14, label="two largest")
    if stated is not None:
        axes.axvspan(*(float(edge) for edge in stated.edges), color="C2", alpha=0.2, label="predicted bulk")
        axes.axvline(float(stated.at_point), color="C2", ls=":", label="predicted for n − p of them")
        if float(stated.rank) > 0:
            axes.axvline(float(stated.informative), color="C3", ls="--", label="predicted informative eigenvalue")
    axes.set(title=f"{title}: eigenvalues", yscale="log", xlabel="eigenvalue")
    axes.legend(frameon=False, fontsize=8)


def entries(axes, one, place, stated):
    """Entries of an eigenvector times √n, coloured by class."""
    n = len(one.labels)
    scaled = one.vectors[:, place] * n**0.5
    for label, colour in enumerate(COLOURS):
        at = np.flatnonzero(one.labels == label)
        axes.plot(at, scaled[at], ".", ms=2, color=colour)
        if stated is not None and int(stated.rank) == place + 1:
            height = (1 - 2 * label) * float(stated.overlap) ** 0.5
            axes.plot([at[0], at[-1]], [height, height], "k-", lw=1.5)
    words = f"eigenvector {place + 1}: overlap {one.overlaps[place]:.2f}"
    if stated is not None:
        expected = float(stated.overlap) if int(stated.rank) == place + 1 else 0.0
        words += f" (predicted {expected:.2f})"
    axes.set(title=words, xlabel="point, sorted by class", ylabel="√n × entry")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", nargs="?", default="kernel-clustering.png")
    parser.add_argument("--dimension", type=int, default=250, help="of the mixtures (default: 250)")
    parser.add_argument("--points", type=int, default=500, help="of the mixtures (default: 500)")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    figure, found = draw(chosen.dimension, chosen.points, chosen.seed)
    figure.savefig(chosen.figure, dpi=110)
    for title, one, stated in found:
        predicted = (
            "" if stated is None else f" (predicted {float(stated.overlap):.3f}, wrong {float(stated.error):.3f})"
        )
        print(f"{title}: overlap {one.overlaps.max():.3f}, wrong side {one.wrong:.3f}{predicted}")


if __name__ == "__main__":
    main()
