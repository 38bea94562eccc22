"""A two-layer network that learns XOR: both layers align with outliers of their Hessian blocks; theory and SGD.

Two figures, one command each (half a minute; with `--full` minutes):

    python examples/xor_alignment.py layers layers.png        # W_i with E_2 and v with E_4 of their blocks
    python examples/xor_alignment.py outliers outliers.png    # eigenvalues in v over time, 1 to 4 clusters discerned

K = 20 neurons, d = 200, λ = 10, β = 0.05, δ = 1/d; `--full` takes d = 1000. Test samples, 10 for each dimension, are
fresh at every checkpoint. Lines of `layers` are theory at the summary statistics that were reached, lines of `outliers`
the effective dynamics from the start.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from scipy.sparse.linalg import LinearOperator, eigsh
from tqdm import tqdm

from deeplimits import measure
from deeplimits.theory import landscape, online_sgd

WIDTH, SEPARATION, RIDGE, PER_DIMENSION = 20, 10.0, 0.05, 10
TIMES = np.array([0.0, 5, 10, 15, 20, 30, 45, 60])
EARLY = np.array([0.0, 1, 2, 3, 5, 7, 10, 15, 20, 30])
KINDS = {"hessian": "Hessian", "gradient": "G"}


def samples(random, count, d):
    """Points of the four clusters, and their labels."""
    cluster = random.integers(4, size=count)
    y = random.normal(size=(count, d)) / np.sqrt(SEPARATION)
    y[np.arange(count), cluster // 2] += 1 - 2 * (cluster % 2)
    return y, cluster < 2


def trained(random, v, w, times):
    """Both layers at these times."""
    step, done = 1 / w.shape[1], 0
    for mark in np.round(np.asarray(times) * w.shape[1]).astype(int):
        ys, labels = samples(random, mark - done, w.shape[1])
        for y, label in zip(ys, labels, strict=True):
            h = w @ y
            active = np.maximum(h, 0)
            error = 1 / (1 + np.exp(-v @ active)) - label
            v, w = (
                (1 - step * RIDGE) * v - step * error * active,
                (1 - step * RIDGE) * w - step * error * np.outer(v * (h > 0), y),
            )
        done = mark
        yield v, w


def statistics(v, w):
    """The summary statistics of a state."""
    rest = w[:, 2:]
    return online_sgd.XorState(*map(jnp.asarray, (v, w[:, 0], w[:, 1], rest @ rest.T)))


def weights_of(random, v, w):
    """Fresh samples, their fields, and what they count in the blocks of both matrices."""
    y, labels = samples(random, PER_DIMENSION * w.shape[1], w.shape[1])
    h = y @ w.T
    chance = 1 / (1 + np.exp(-np.maximum(h, 0) @ v))
    return y, h, dict(zip(KINDS, (chance * (1 - chance), (chance - labels) ** 2), strict=True))


def top_two(y, weights):
    """The two leading eigenvectors of (1/M) Σ w y y', by products."""
    d = y.shape[1]
    matrix = LinearOperator((d, d), matvec=lambda x: y.T @ (weights * (y @ x)) / len(y), dtype=float)
    return eigsh(matrix, k=2, which="LA", tol=1e-6, v0=np.cos(np.arange(d)))[1]


outliers_of = jax.jit(landscape.weighted_outliers)


def first_layer(state, neuron, kind):
    """ρ(W_i, E_2) in theory."""
    v, mu, nu, rest = state
    sample = landscape.xor_weighted_block(state, SEPARATION, PER_DIMENSION, neuron=neuron, kind=kind, points=128)
    root = jnp.linalg.cholesky(rest + 1e-12 * jnp.eye(len(v)))
    x = jnp.concatenate([mu[neuron, None], nu[neuron, None], root[neuron]])
    return float(jnp.sqrt(landscape.outlier_alignment(outliers_of(sample), x, 2)))


def layers(random, d):
    """Alignment of the first layer's rows and of the second layer, over training."""
    begin = random.normal(size=WIDTH), random.normal(size=(WIDTH, d)) / np.sqrt(d)
    seen = {(layer, kind): [] for layer in ("first", "second") for kind in KINDS}
    said = {key: [] for key in seen}
    for now, (v, w) in zip(TIMES, tqdm(trained(random, *begin, TIMES), "layers", len(TIMES)), strict=True):
        y, h, middle = weights_of(random, v, w)
        state = statistics(v, w)
        share = v**2 / np.sum(v**2)
        blocks = landscape.xor_second_layer(state, SEPARATION)
        for kind, weights in middle.items():
            active = np.maximum(h, 0)
            block = (active * weights[:, None]).T @ active / len(y)
            seen["second", kind].append(measure.alignment(v, measure.top_eigenspace(block, 4)))
            said["second", kind].append(measure.alignment(v, measure.top_eigenspace(getattr(blocks, kind), 4)))
            rows = [measure.alignment(w[i], top_two(y, weights * (h[:, i] > 0))) for i in range(WIDTH)]
            seen["first", kind].append(np.array(rows))
            if now in TIMES[[0, 3, 5, 7]]:
                lines = [first_layer(state, i, kind) for i in range(WIDTH)]
                said["first", kind].append((now, float(np.sqrt(share @ np.array(lines) ** 2))))
            seen["first", kind][-1] = np.append(rows, np.sqrt(share @ np.array(rows) ** 2))
    figure = Figure(figsize=(12, 7.5), layout="constrained")
    axes, gap = figure.subplots(2, 2, sharex=True, sharey=True), {}
    for column, (kind, words) in enumerate(KINDS.items()):
        ax, found = axes[0, column], np.array(seen["first", kind])
        ax.plot(TIMES, found[:, :-1], "C7.", ms=3, alpha=0.6)
        ax.plot(TIMES, found[:, -1], "C0o", label="SGD, weighted with v_i² (grey: each neuron)")
        ax.plot(
            *zip(*said["first", kind], strict=True),
            "C1D",
            mfc="none",
            ms=9,
            label="theory at the state that was reached",
        )
        ax.set(title=f"W_i and E_2 of its block of {words}, d = {d}", ylim=(0, 1.03))
        axes[1, column].plot(TIMES, seen["second", kind], "C0o", label="SGD")
        axes[1, column].plot(TIMES, said["second", kind], "C1", label="theory at the state that was reached")
        axes[1, column].set(title=f"v and E_4 of its block of {words}", xlabel="t")
        gap["first", kind] = found[-1, -1] - said["first", kind][-1][1]
        gap["second", kind] = float(np.max(np.abs(np.array(seen["second", kind]) - said["second", kind])))
    for ax in axes.ravel():
        ax.legend(frameon=False, loc="lower right")
    words = ", ".join(f"{name} {gap['first', kind]:+.3f}" for kind, name in KINDS.items())
    return figure, f"first layer at t = {TIMES[-1]:g}, measured minus theory: {words}", gap


def discerning(random, d, active):
    """A start in the basin of a classifier that discerns so many clusters: μ, −μ, ν, −ν in turn."""
    kinds = np.arange(WIDTH) % active
    w = random.normal(size=(WIDTH, d)) * 0.7 / np.sqrt(d)
    w[np.arange(WIDTH), kinds // 2] += 0.3 * (1 - 2 * (kinds % 2))
    return np.where(kinds < 2, 0.5, -0.5), w


def outliers(random, d):
    """Eigenvalues of the second layer's block of G over time, for networks that discern 1, 2, 3 and 4 clusters."""
    figure, gap = Figure(figsize=(14, 4), layout="constrained"), {}
    axes = figure.subplots(1, 4, sharey=True)
    start = [discerning(random, d, active) for active in range(1, 5)]
    compiled = jax.jit(lambda state: online_sgd.xor_ballistic(state, EARLY, SEPARATION, RIDGE, 1.0, points=128))
    for ax, active, begin in zip(axes, range(1, 5), tqdm(start, "outliers"), strict=True):
        path = compiled(statistics(*begin))
        stated, found = [], []
        for index, (v, w) in enumerate(trained(random, *begin, EARLY)):
            _, h, middle = weights_of(random, v, w)
            on = np.maximum(h, 0)
            found.append(np.linalg.eigvalsh((on * middle["gradient"][:, None]).T @ on / len(h))[::-1][:6])
            state = online_sgd.XorState(*(part[index] for part in path))
            block = landscape.xor_second_layer(state, SEPARATION).gradient
            stated.append(np.linalg.eigvalsh(np.asarray(block))[::-1][:6])
        stated, found = np.array(stated), np.array(found)
        ax.plot(EARLY, stated, "C1", lw=1)
        ax.plot(EARLY, found[:, :active], "C0o", ms=4)
        ax.plot(EARLY, found[:, active:], "C7.", ms=4)
        ax.plot([], [], "C1", label="theory")
        ax.plot([], [], "C0o", label=f"the first {active}")
        ax.set(title=f"{active} discerned, d = {d}", xlabel="t", yscale="log", ylim=(1e-5, 1))
        ax.legend(frameon=False)
        gap[active] = found[-1, active - 1] / found[-1, active]
    axes[0].set_ylabel("eigenvalues of G_vv")
    words = ", ".join(f"{value:.0f}" for value in gap.values())
    return figure, f"the last outlier over the next eigenvalue, for 1 to 4 clusters discerned: {words}", gap


FIGURES = {"layers": layers, "outliers": outliers}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=FIGURES)
    parser.add_argument("figure", nargs="?", help="the file to write (default: WHAT.png)")
    parser.add_argument("--full", action="store_true", help="d = 1000")
    parser.add_argument("--dimension", type=int, help="any other dimension (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    d = chosen.dimension or (1000 if chosen.full else 200)
    figure, words, _ = FIGURES[chosen.what](np.random.default_rng(chosen.seed), d)
    figure.savefig(chosen.figure or f"{chosen.what}.png", dpi=130)
    print(words)


if __name__ == "__main__":
    main()
