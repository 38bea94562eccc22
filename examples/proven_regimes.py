"""Where convergence of tokens to a single cluster is proven, over dimension and inverse temperature.

The map of theorems for B = V = I, and on it what simulated tokens do by the time asked for: the share of random starts
that have come to one cluster. White is where nothing is proven; simulations answer for a finite time only.

    python examples/proven_regimes.py proven-regimes.png
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from tqdm import tqdm

from deeplimits.ensembles import transformers
from deeplimits.measure import tokens as measure
from deeplimits.theory import attention

COLLAPSED = 1e-3


def simulated(dimension: int, beta: float, options: argparse.Namespace) -> float:
    """The share of random starts with all cosines above 0.999 at the last time."""

    @jax.jit
    def one(key):
        x = transformers.random_tokens(key, options.tokens, dimension)
        end = transformers.after_layers(x, beta, options.step, round(options.time / options.step))
        return measure.chord(end) < COLLAPSED

    return float(np.mean([bool(one(key)) for key in jax.random.split(jax.random.key(0), options.starts)]))


def measured(options: argparse.Namespace) -> np.ndarray:
    """A row for each β, a column for each dimension; each is kept in the folder as soon as it is there."""
    options.store.mkdir(parents=True, exist_ok=True)
    found = np.zeros((len(options.betas), len(options.dimensions)))
    cells = [(i, j) for i in range(len(options.betas)) for j in range(len(options.dimensions))]
    for i, j in tqdm(cells, disable=options.quiet):
        beta, dimension = options.betas[i], options.dimensions[j]
        words = (f"{beta:.6g}", dimension, options.tokens, options.starts, options.time, options.step)
        path = options.store / ("-".join(map(str, words)) + ".txt")
        if not path.exists():
            half = path.with_suffix(".part")
            half.write_text(repr(simulated(dimension, beta, options)))
            half.replace(path)
        found[i, j] = float(path.read_text())
    return found


def draw(shares: np.ndarray, options: argparse.Namespace) -> None:
    n = options.tokens
    dimensions = np.arange(2, 2 * n + 1)
    betas = np.geomspace(0.1 / n, 10 * n**2, 400)
    proven = attention.proven_regime(dimensions[None, :], jnp.asarray(betas)[:, None], n)
    level = np.asarray(proven.proven, int) + np.asarray(proven.exponential, int)
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = figure.subplots()
    colors = ListedColormap(["white", "#bfe3c0", "#63b36b"])
    axes.pcolormesh(dimensions, betas, level, cmap=colors, vmin=0, vmax=2, shading="nearest", rasterized=True)
    places, heights = np.meshgrid(options.dimensions, options.betas)
    dots = axes.scatter(places, heights, c=shares, cmap="magma", vmin=0, vmax=1, s=50, edgecolor="white", zorder=3)
    figure.colorbar(dots, label=f"share of random starts in one cluster at t = {options.time:g}")
    axes.axvline(n, color="#2f6b36", ls=":", lw=1)
    axes.text(n * 1.02, betas[-1] / 3, "$d\\geq n$: exponential rate", fontsize=8, color="#2f6b36")
    axes.set(xscale="log", yscale="log", xlabel="dimension $d$", ylabel=r"inverse temperature $\beta$")
    axes.set_xticks(options.dimensions, [str(d) for d in options.dimensions])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_title(f"One cluster from almost every start: proven where green (n = {n}), simulated in dots", fontsize=10)
    figure.savefig(options.figure, dpi=150)


def main(arguments: list[str] | None = None) -> np.ndarray:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("figure", nargs="?", default="proven-regimes.png")
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 3, 4, 8, 16, 24])
    parser.add_argument("--betas", type=float, nargs="+", default=[0.02, 0.3, 1.0, 3.0, 9.0, 30.0])
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--time", type=float, default=50.0)
    parser.add_argument("--step", type=float, default=0.1)
    parser.add_argument("--store", type=Path, default=Path("runs/proven-regimes"), help="folder of what is done")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    options = parser.parse_args(arguments)
    shares = measured(options)
    draw(shares, options)
    return shares


if __name__ == "__main__":
    main()
