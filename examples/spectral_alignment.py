"""Online SGD aligns with the outlier eigenspaces of its Hessian: five figures, theory as lines, simulation as points.

Run with `python examples/spectral_alignment.py figure.png`: k = 10 classes in d = 200 dimensions, 20 s. With `--full`,
d = 1000 (d = 500 for the entries of weights and eigenvectors), some minutes. λ = 10, β = 0.01, δ = 1/d; test samples,
10 for each dimension, are fresh at every checkpoint.
"""

import argparse
import itertools
import sys

import numpy as np
from matplotlib.figure import Figure

from deeplimits import measure
from deeplimits.theory import landscape

CLASSES, SEPARATION, RIDGE, PER_DIMENSION = 10, 10.0, 0.01, 10
TIMES = np.array([0.5, 2, 5, 10, 15, 20, 30, 40, 50])
XOR_WIDTH, XOR_RIDGE = 20, 0.05


def progress(iterable, total, words):
    """The items, with a bar on the standard error."""
    for done, item in enumerate(iterable, 1):
        yield item
        filled = 30 * done // total
        print(f"\r{words:<28} [{'#' * filled:<30}]", end="" if done < total else "\n", file=sys.stderr, flush=True)


def softmax(z):
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def train_mixture(random, d, means, times, words):
    """Weights of softmax regression at these times."""
    k = len(means)
    x, step = random.normal(size=(k, d)) / np.sqrt(d), 1 / d
    marks = np.round(np.asarray(times) * d).astype(int)
    done = 0
    for mark in progress(marks, len(marks), words):
        for _ in range(done, mark):
            a = random.integers(k)
            y = means[a] + random.normal(size=d) / np.sqrt(SEPARATION)
            error = softmax(x @ y)
            error[a] -= 1
            x = (1 - step * RIDGE) * x - step * np.outer(error, y)
        done = mark
        yield x


def blocks(random, x, means):
    """Block 11 of the Hessian and of the gradients' second moment over fresh samples."""
    k, d = x.shape
    labels = random.integers(k, size=PER_DIMENSION * d)
    y = means[labels] + random.normal(size=(len(labels), d)) / np.sqrt(SEPARATION)
    chance = softmax(y @ x.T)[:, 0]
    for w in (chance * (1 - chance), (chance - (labels == 0)) ** 2):
        yield (y * w[:, None]).T @ y / len(y)


def mixture(random, d):
    """Alignment and eigenvalues over training, measured and stated."""
    k, means = CLASSES, np.eye(CLASSES, d)
    path = landscape.kgmm_symmetric_path(TIMES, k, SEPARATION, RIDGE, 1.0)
    found, stated = [], []
    projector = np.eye(k) - 1 / k
    for index, x in enumerate(train_mixture(random, d, means, TIMES, f"mixture, d = {d}")):
        row = {"span": np.mean([measure.alignment(one, means.T) for one in x])}
        for name, matrix in zip(("hessian", "gradient"), blocks(random, x, means), strict=True):
            values, vectors = np.linalg.eigh(matrix)
            row[name] = measure.alignment(x[0], vectors[:, -k:])
            row[f"{name}_values"], row["vector"] = values, vectors[:, -1]
        found.append(row)
        amplitude, rest, common = (float(part[index]) for part in path)
        state = landscape.MixtureState(amplitude * projector, rest * projector + common / k)
        level = {}
        for name in ("hessian", "gradient"):
            sample = landscape.kgmm_weighted_block(state, SEPARATION, PER_DIMENSION, 0, name, points=128)
            outliers = landscape.weighted_outliers(sample)
            start = np.append(amplitude * projector[0], np.linalg.cholesky(state.rest)[0])
            shares = np.asarray(outliers.projections)[:k] * (np.asarray(outliers.directions)[:k] @ start) ** 2
            level[name] = float(np.sqrt(shares.sum() / (start @ start)))
            level[f"{name}_values"] = np.asarray(outliers.eigenvalues)[:k]
            level[f"{name}_edge"] = float(outliers.edge)
        stated.append(level)
    return np.asarray(path.alignment(k)), found, stated


def train_xor(random, d, width, output, weights, until):
    """A network that learns XOR; the weights at the end."""
    v, w, step = output.copy(), weights.copy(), 1 / d
    for _ in range(round(until * d)):
        cluster = random.integers(4)
        y = random.normal(size=d) / np.sqrt(SEPARATION)
        y[cluster // 2] += 1 - 2 * (cluster % 2)
        h = w @ y
        active = np.maximum(h, 0)
        error = 1 / (1 + np.exp(-v @ active)) - (cluster < 2)
        v, w = (
            (1 - step * XOR_RIDGE) * v - step * error * active,
            (1 - step * XOR_RIDGE) * w - step * error * np.outer(v * (h > 0), y),
        )
    return v, w


def second_layer(random, v, w, count=5000):
    """The block vv of the Hessian over fresh samples."""
    cluster = random.integers(4, size=count)
    y = random.normal(size=(count, w.shape[1])) / np.sqrt(SEPARATION)
    y[np.arange(count), cluster // 2] += 1 - 2 * (cluster % 2)
    active = np.maximum(y @ w.T, 0)
    chance = 1 / (1 + np.exp(-active @ v))
    return (active * (chance * (1 - chance))[:, None]).T @ active / count


def xor(random, d):
    """Alignment of both layers over training."""
    v, w = random.normal(size=XOR_WIDTH), random.normal(size=(XOR_WIDTH, d)) / np.sqrt(d)
    times, rows = np.array([0.0, 5, 10, 15, 20, 30, 45, 60]), []
    for before, now in progress(itertools.pairwise(np.append(0.0, times)), len(times), f"XOR, d = {d}"):
        v, w = train_xor(random, d, XOR_WIDTH, v, w, now - before)
        top = measure.top_eigenspace(second_layer(random, v, w), 4)
        plane = np.sum(v**2 * np.sum(w[:, :2] ** 2, axis=1)) / np.sum(v**2 * np.sum(w**2, axis=1))
        rows.append((now, np.sqrt(plane), measure.alignment(v, top)))
    return np.array(rows)


def clusters(random, d):
    """Eigenvalues of the second layer of networks that discern 1, 2, 3 and 4 clusters."""
    found = []
    for active in progress(range(1, 5), 4, f"outliers, d = {d}"):
        kinds = np.arange(XOR_WIDTH) % active
        # One and two: ±μ; three and four: ±ν. A small overlap puts a neuron into the basin of its type.
        w = random.normal(size=(XOR_WIDTH, d)) * 0.05 / np.sqrt(d)
        w[np.arange(XOR_WIDTH), kinds // 2] += 0.3 * (1 - 2 * (kinds % 2))
        v = np.where(kinds < 2, 0.5, -0.5)
        v, w = train_xor(random, d, XOR_WIDTH, v, w, 40.0)
        found.append(np.linalg.eigvalsh(second_layer(random, v, w))[::-1][:8])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", nargs="?", default="spectral-alignment.png")
    parser.add_argument("--full", action="store_true", help="the full sizes: d = 1000")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    d, random = (1000 if chosen.full else 200), np.random.default_rng(chosen.seed)

    span, found, stated = mixture(random, d)
    figure = Figure(figsize=(12, 7), layout="constrained")
    axes = figure.subplots(2, 3)
    ax = axes[0, 0]
    ax.plot(TIMES, span, "C0", label="Span μ")
    ax.plot(TIMES, [row["span"] for row in found], "C0o")
    for name, colour, words in (("hessian", "C1", "E_k(Hessian)"), ("gradient", "C2", "E_k(G)")):
        ax.plot(TIMES, [row[name] for row in stated], colour, label=words)
        ax.plot(TIMES, [row[name] for row in found], f"{colour}o")
    ax.set(title="Alignment of x¹ (lines: theory)", xlabel="t", ylim=(0, 1))
    ax.legend(frameon=False)

    for ax, name, words in ((axes[0, 1], "hessian", "Hessian"), (axes[0, 2], "gradient", "G")):
        top = np.array([row[f"{name}_values"][::-1][: CLASSES + 2] for row in found])
        ax.plot(TIMES, top, "C7.", ms=4)
        ax.plot(TIMES, [row[f"{name}_values"] for row in stated], "C1", lw=1)
        ax.plot(TIMES, [row[f"{name}_edge"] for row in stated], "k--", lw=1, label="edge of the bulk")
        ax.set(title=f"Largest eigenvalues of {words}, block 11", xlabel="t")
        ax.legend(frameon=False)

    ax, small = axes[1, 0], (500 if chosen.full else 200)
    spaced = np.eye(small)[np.arange(CLASSES) * small // CLASSES]
    x = next(iter(train_mixture(random, small, spaced, [50.0], f"entries, d = {small}")))
    leading = np.linalg.eigh(next(iter(blocks(random, x, spaced))))[1][:, -1]
    ax.plot(x[0], "C0", lw=0.8, label="x¹")
    ax.plot(
        leading * np.sign(leading @ x[0]) * np.linalg.norm(x[0]) - 3, "C1", lw=0.8, label="first eigenvector, shifted"
    )
    ax.set(title="Entries over the coordinate", xlabel="coordinate")
    ax.legend(frameon=False)

    rows = xor(random, d)
    axes[1, 1].plot(rows[:, 0], rows[:, 1], "C0o-", lw=0.6, label="first layer, Span(μ, ν)")
    axes[1, 1].plot(rows[:, 0], rows[:, 2], "C1o-", lw=0.6, label="second layer, E₄(Hessian)")
    axes[1, 1].set(title=f"XOR, K = {XOR_WIDTH}", xlabel="t", ylim=(0, 1.02))
    axes[1, 1].legend(frameon=False)
    for active, values in enumerate(clusters(random, d), 1):
        axes[1, 2].plot(np.arange(1, 9) + 0.1 * active, values, "o", ms=4, label=f"{active} discerned")
    limit = landscape.xor_rest_eigenvalues(XOR_RIDGE)
    axes[1, 2].axhline(float(limit.hessian), color="k", lw=0.8, ls="--", label="λ = ∞")
    axes[1, 2].set(title="XOR, second layer: eigenvalues", xlabel="number")
    axes[1, 2].legend(frameon=False)
    figure.savefig(chosen.figure, dpi=130)


if __name__ == "__main__":
    main()
