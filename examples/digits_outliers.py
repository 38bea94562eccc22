"""The Hessian of a network trained on digits: a bulk, and an outlier for every class but one.

An MLP 64-32-10 (tanh, cross-entropy) after 40 steps of Adam on scikit-learn's 1,797 digits. Drawn are the density of
all eigenvalues with its band, outliers deflated and exact; the largest eigenvalues of the Hessian, of the Gauss-Newton
matrix and of the gradients' second moment, beside those of the class part that theory makes responsible for them (C
mean gradients, Papyan 2020); and the p-value of each eigenvalue against the bulk behind it. A minute:

    python examples/digits_outliers.py digits-outliers.png
"""

import argparse

import numpy as np
import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from tqdm import tqdm

from deeplimits.measure import classes, curvature
from deeplimits.measure.adapters import open_model

CLASSES = 10


def trained(seed, steps):
    """The network, its loss and its data."""
    digits = load_digits()
    x, y = torch.tensor(digits.data / 16), torch.tensor(digits.target)
    torch.manual_seed(seed)
    network = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, CLASSES)).double()
    optimizer, loss = torch.optim.Adam(network.parameters(), lr=1e-2), torch.nn.CrossEntropyLoss()
    for _ in range(steps):
        optimizer.zero_grad()
        loss(network(x), y).backward()
        optimizer.step()
    return open_model(network, loss, (x, y))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", nargs="?", default="digits-outliers.png")
    parser.add_argument("--steps", type=int, default=40, help="of Adam (default: 40)")
    parser.add_argument("--probes", type=int, default=6, help="random vectors for the density (default: 6)")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    figure, found = draw(chosen.seed, chosen.steps, chosen.probes)
    figure.savefig(chosen.figure, dpi=130)
    print(
        f"{found.count} outliers, p = {found.p_values[found.count - 1]:.1g} for the last and "
        f"{found.p_values[found.count]:.1g} for the next eigenvalue"
    )


def draw(seed, steps, probes):
    """The figure, and the count of outliers."""
    with tqdm(total=5, desc="digits") as bar:
        model = trained(seed, steps)
        bar.update()
        matrices = {
            "Hessian": curvature.hessian(model),
            "Gauss-Newton": curvature.gauss_newton(model),
            "gradient moment": curvature.gradient_moment(model),
        }
        top = {name: curvature.eigenpairs(one, count=30, tolerance=1e-5) for name, one in matrices.items()}
        bar.update()
        found = curvature.count_outliers(top["Hessian"].values, most=18)
        bar.update()
        parts = classes.gradient_decomposition(model)
        bar.update()
        pairs = curvature.eigenpairs(matrices["Hessian"], count=20, which="magnitude", tolerance=1e-6)
        density = curvature.spectral_density(matrices["Hessian"], outliers=pairs, probes=probes, steps=60)
        bar.update()

    figure = Figure(figsize=(14, 4.3), layout="constrained")
    axes = figure.subplots(1, 3)
    low, high = float(density.nodes.min()), float(density.outliers[0])
    grid = np.linspace(low - 0.02 * high, 1.05 * high, 2000)
    curve = density.density(grid, width=high / 250)
    axes[0].fill_between(
        grid, np.maximum(curve.value - curve.error, 1e-6), curve.value + curve.error, color="C0", alpha=0.3, lw=0
    )
    axes[0].plot(grid, np.maximum(curve.value, 1e-6), "C0", lw=1, label="density, ± standard error")
    axes[0].plot(top["Hessian"].values[: found.count], np.full(found.count, 3e-4), "k|", ms=12, label="outliers")
    axes[0].axvline(found.edge, color="k", ls="--", lw=0.8, label="edge of the bulk")
    axes[0].set(
        title=f"Hessian, {model.size:,} eigenvalues",
        xlabel="eigenvalue",
        yscale="log",
        ylim=(1e-4, 2 * curve.value.max()),
    )
    axes[0].legend(frameon=False)
    for (name, pairs), mark in zip(top.items(), "o^s", strict=True):
        axes[1].plot(np.arange(1, 21), pairs.values[:20], f"C0{mark}", mfc="none", ms=5, label=name)
    axes[1].plot(
        np.arange(1, CLASSES + 1), parts.spectra().classes[:CLASSES], "C1.-", label="class part, C mean gradients"
    )
    axes[1].axvline(CLASSES - 0.5, color="k", lw=0.8, ls=":")
    axes[1].set(title="Largest eigenvalues", xlabel="number", yscale="log")
    axes[1].legend(frameon=False)
    axes[2].semilogy(np.arange(1, len(found.p_values) + 1), np.maximum(found.p_values, 1e-30), "C0o")
    axes[2].axhline(found.level / len(found.p_values), color="k", lw=0.8, ls="--", label="1 % over 18 tests")
    axes[2].axvline(CLASSES - 0.5, color="k", lw=0.8, ls=":", label="predicted: one for every class but one")
    axes[2].set(title=f"Outliers found: {found.count}", xlabel="number", ylabel="p-value against the bulk behind it")
    axes[2].legend(frameon=False)
    return figure, found


if __name__ == "__main__":
    main()
