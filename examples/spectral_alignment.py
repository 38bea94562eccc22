"""Online SGD on a mixture aligns with the outlier eigenspaces of its Hessian; theory as lines, SGD as points.

Three figures, one command each (half a minute; with `--full` minutes):

    python examples/spectral_alignment.py alignment alignment.png        # x^c with E_k of block cc of Hessian and G
    python examples/spectral_alignment.py entries entries.png            # entries of x¹ and of k eigenvectors
    python examples/spectral_alignment.py eigenvalues eigenvalues.png    # eigenvalues and overlaps over training

k = 10 classes, d = 200, λ = 10, β = 0.01, δ = 1/d, up to t = 50; test samples, 10 for each dimension, are fresh at
every checkpoint. `--full` takes d = 1000; for the entries d = 500, where 50d are 25,000 steps and the means are e_50,
e_100, ….
"""

import argparse
import functools
from typing import NamedTuple

import jax
import numpy as np
import scipy.linalg
from matplotlib.figure import Figure
from tqdm import tqdm

from deeplimits import measure
from deeplimits.theory import landscape

CLASSES, SEPARATION, RIDGE, PER_DIMENSION = 10, 10.0, 0.01, 10
TIMES = np.array([0.5, 2, 5, 10, 15, 20, 30, 40, 50])
KINDS = {"hessian": "Hessian", "gradient": "G"}


class Stated(NamedTuple):
    """What theory says at one time, of the block 11 of one matrix."""

    alignment: float
    """ρ(x¹, E_k)"""
    eigenvalues: np.ndarray
    """The k largest: outliers, or the edge where there is none."""
    edge: float
    first: float
    """|⟨v_1, μ_1⟩|"""


def softmax(z):
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def trained(random, means, times):
    """Weights of softmax regression at these times."""
    k, d = means.shape
    x, step, done = random.normal(size=(k, d)) / np.sqrt(d), 1 / d, 0
    for mark in np.round(np.asarray(times) * d).astype(int):
        for _ in range(done, mark):
            a = random.integers(k)
            y = means[a] + random.normal(size=d) / np.sqrt(SEPARATION)
            error = softmax(x @ y)
            error[a] -= 1
            x = (1 - step * RIDGE) * x - step * np.outer(error, y)
        done = mark
        yield x


def eigenpairs(random, x, means, classes, count):
    """The largest eigenpairs of blocks cc of the Hessian and of the gradients' second moment, over fresh samples."""
    k, d = x.shape
    labels = random.integers(k, size=PER_DIMENSION * d)
    y = means[labels] + random.normal(size=(len(labels), d)) / np.sqrt(SEPARATION)
    chance = softmax(y @ x.T)
    for c in classes:
        weights = chance[:, c] * (1 - chance[:, c]), (chance[:, c] - (labels == c)) ** 2
        for kind, w in zip(KINDS, weights, strict=True):
            values, vectors = scipy.linalg.eigh((y * w[:, None]).T @ y / len(y), subset_by_index=[d - count, d - 1])
            yield c, kind, values[::-1], vectors[:, ::-1]


@functools.cache
def path():
    """The summary statistics over the times."""
    return landscape.kgmm_symmetric_path(TIMES, CLASSES, SEPARATION, RIDGE, 1.0)


outliers = jax.jit(landscape.weighted_outliers)


def stated(index, kind):
    """Theory at the time of this index."""
    k, along = CLASSES, path()
    amplitude, rest, common = (float(part[index]) for part in along)
    projector = np.eye(k) - 1 / k
    state = landscape.MixtureState(amplitude * projector, rest * projector + common / k)
    found = outliers(landscape.kgmm_weighted_block(state, SEPARATION, PER_DIMENSION, kind=kind, points=128))
    x = np.append(state.means[0], np.linalg.cholesky(state.rest)[0])
    first = np.sqrt(found.projections[0]) * abs(found.directions[0, 0])
    level = np.sqrt(landscape.outlier_alignment(found, x, k))
    return Stated(float(level), np.asarray(found.eigenvalues)[:k], float(found.edge), float(first))


def alignment(random, d):
    """x^c with the k leading eigenvectors of its block, for every class c."""
    means = np.eye(CLASSES, d)
    found = {kind: np.zeros((len(TIMES), CLASSES)) for kind in KINDS}
    for index, x in enumerate(tqdm(trained(random, means, TIMES), "alignment", len(TIMES))):
        for c, kind, _, vectors in eigenpairs(random, x, means, range(CLASSES), CLASSES):
            found[kind][index, c] = measure.alignment(x[c], vectors)
    lines = {kind: [stated(index, kind).alignment for index in range(len(TIMES))] for kind in KINDS}
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    for ax, (kind, words) in zip(figure.subplots(1, 2, sharey=True), KINDS.items(), strict=True):
        ax.plot(TIMES, found[kind], "C7.", ms=4, alpha=0.7)
        ax.errorbar(
            TIMES, found[kind].mean(axis=1), found[kind].std(axis=1, ddof=1) / np.sqrt(CLASSES), fmt="C0o",
            label="SGD, mean of the classes (grey: each)",
        )  # fmt: skip
        ax.plot(TIMES, lines[kind], "C1", label=f"theory, {PER_DIMENSION} test samples for each dimension")
        ax.plot(TIMES, path().alignment(CLASSES), "k--", lw=1, label="theory, Span μ (infinitely many)")
        ax.set(title=f"ρ(x^c, E_k) of block cc of {words}, d = {d}", xlabel="t", ylim=(0, 1))
        ax.legend(frameon=False, loc="lower right")
    gap = {kind: found[kind][-1].mean() - lines[kind][-1] for kind in KINDS}
    words = ", ".join(
        f"{name} {found[kind][-1].mean():.3f} against {lines[kind][-1]:.3f}" for kind, name in KINDS.items()
    )
    return figure, f"alignment at t = {TIMES[-1]:g}, measured against theory: {words}", gap


def entries(random, d):
    """Entries over the coordinate, at the end: x¹ and the k leading eigenvectors of block 11 of both matrices."""
    places = np.arange(1, CLASSES + 1) * d // CLASSES - 1
    means = np.eye(d)[places]
    with tqdm(total=2, desc="entries") as bar:
        (x,) = trained(random, means, TIMES[-1:])
        bar.update()
        vectors = {kind: found for _, kind, _, found in eigenpairs(random, x, means, [0], CLASSES)}
        bar.update()
    figure = Figure(figsize=(13, 4.5), layout="constrained")
    axes = figure.subplots(1, 3)
    amplitude = float(path().amplitude[-1])
    levels = np.where(np.arange(CLASSES) == 0, amplitude * (1 - 1 / CLASSES), -amplitude / CLASSES)
    axes[0].plot(np.arange(1, d + 1), x[0], "C0", lw=0.6, label="x¹")
    axes[0].plot(places + 1, levels, "C1_", ms=14, mew=2, label="theory: ⟨x¹, μ_a⟩")
    axes[0].set(title=f"x¹ after {round(TIMES[-1] * d):,} steps, d = {d}")
    axes[0].legend(frameon=False)
    gap = {"weights": float(np.max(np.abs(x[0][places] - levels)))}
    for ax, (kind, words) in zip(axes[1:], KINDS.items(), strict=True):
        for j, vector in enumerate(vectors[kind].T):
            ax.plot(np.arange(1, d + 1), vector * np.sign(vector[np.argmax(np.abs(vector))]) - j, lw=0.6)
        level = stated(len(TIMES) - 1, kind).first
        ax.plot(places[0] + 1, level, "k_", ms=14, mew=2, label="theory: ⟨v₁, μ₁⟩")
        ax.set(title=f"eigenvectors 1 (top) to {CLASSES} of {words}, block 11", xlabel="coordinate", yticks=[])
        ax.legend(frameon=False, loc="upper right")
        gap[kind] = float(abs(vectors[kind][places[0], 0])) - level
    axes[0].set(xlabel="coordinate")
    words = ", ".join(f"{name} {gap[kind]:+.3f}" for kind, name in KINDS.items())
    return figure, f"⟨v₁, μ₁⟩, measured minus theory: {words}; ⟨x¹, μ_a⟩: at most {gap['weights']:.3f} off", gap


def eigenvalues(random, d):
    """Eigenvalues of block 11 over training, and the overlaps of x¹ with the means."""
    means = np.eye(CLASSES, d)
    top, overlaps = {kind: [] for kind in KINDS}, []
    for x in tqdm(trained(random, means, TIMES), "eigenvalues", len(TIMES)):
        overlaps.append(x[0] @ means.T)
        for _, kind, values, _ in eigenpairs(random, x, means, [0], CLASSES + 8):
            top[kind].append(values)
    figure = Figure(figsize=(13, 4.5), layout="constrained")
    axes, gap = figure.subplots(1, 3), {}
    for ax, (kind, words) in zip(axes[:2], KINDS.items(), strict=True):
        levels = [stated(index, kind) for index in range(len(TIMES))]
        ax.plot(TIMES, np.array(top[kind])[:, :CLASSES], "C0.", ms=5)
        ax.plot(TIMES, np.array(top[kind])[:, CLASSES:], "C7.", ms=3)
        ax.plot(TIMES, [level.eigenvalues for level in levels], "C1", lw=1)
        ax.plot(TIMES, [level.edge for level in levels], "k--", lw=1, label="theory: edge of the bulk")
        ax.plot([], [], "C1", lw=1, label="theory: outliers")
        ax.plot([], [], "C0.", label=f"{CLASSES} largest eigenvalues (grey: the next)")
        ax.set(title=f"Block 11 of {words}, d = {d}", xlabel="t")
        ax.legend(frameon=False)
        gap[kind] = top[kind][-1][0] / levels[-1].eigenvalues[0] - 1
    along = np.array(overlaps)
    amplitude = np.asarray(path().amplitude)
    axes[2].plot(TIMES, along[:, 1:], "C7.", ms=4)
    axes[2].plot(TIMES, along[:, 0], "C0o", label="⟨x¹, μ₁⟩ (grey: the other means)")
    axes[2].plot(TIMES, amplitude * (1 - 1 / CLASSES), "C1", label="theory")
    axes[2].plot(TIMES, -amplitude / CLASSES, "C1")
    axes[2].set(title="Overlaps of x¹ with the means", xlabel="t")
    axes[2].legend(frameon=False)
    gap["overlap"] = along[-1, 0] - amplitude[-1] * (1 - 1 / CLASSES)
    words = ", ".join(f"{name} {gap[kind]:+.1%}" for kind, name in KINDS.items())
    return figure, f"largest eigenvalue at t = {TIMES[-1]:g}, measured over theory: {words}", gap


FIGURES = {"alignment": (alignment, 1000), "entries": (entries, 500), "eigenvalues": (eigenvalues, 1000)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=FIGURES)
    parser.add_argument("figure", nargs="?", help="the file to write (default: WHAT.png)")
    parser.add_argument("--full", action="store_true", help="the full sizes")
    parser.add_argument("--dimension", type=int, help="any other dimension (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    draw, full = FIGURES[chosen.what]
    d = chosen.dimension or (full if chosen.full else 200)
    figure, words, _ = draw(np.random.default_rng(chosen.seed), d)
    figure.savefig(chosen.figure or f"{chosen.what}.png", dpi=130)
    print(words)


if __name__ == "__main__":
    main()
