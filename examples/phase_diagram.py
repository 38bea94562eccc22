"""Phase diagrams of clustering over time and inverse temperature, for four random ensembles of transformers.

The share of pairs of tokens with a cosine above 0.999, d = 128, n = 32, the mean of several systems whose matrices are
redrawn. Every (ensemble, β) is kept in the folder as soon as it is there, and a second run does only what is missing.

    python examples/phase_diagram.py phase-diagram.png
    python examples/phase_diagram.py phase-diagram.png --systems 40 --betas 24     # finer, hours
"""

import argparse
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

from deeplimits.ensembles import transformers
from deeplimits.measure import tokens as measure
from deeplimits.theory import attention

TITLES = {
    "identity": r"$Q^\top K=V=I$, and the theory's $t^*(\beta)$",
    "A": r"A: $Q^\top K$ and $V$ Ginibre",
    "B": r"B: $Q^\top K$ Wigner, $V\succeq0$ Wishart",
    "C": r"C: $Q^\top K$ Ginibre, $V=Q^\top K$",
    "D": r"D: $Q^\top K$ Wigner, $V=Q^\top K$",
}


@functools.cache
def program(panel: str, tokens: int, dimension: int, step: float, steps: int):
    """The share of clustered pairs over time, in one system, from its key and β."""

    @jax.jit
    def one(key, beta):
        token_key, layer_key = jax.random.split(key)
        x = transformers.random_tokens(token_key, tokens, dimension)
        layer = None if panel == "identity" else transformers.panel_layer(layer_key, panel, dimension)
        path = transformers.attention_layers(x, beta, step, steps, layer=layer)
        return measure.clustered_share(path, threshold=0.999)

    return one


def shares(panel: str, beta: float, options: argparse.Namespace) -> np.ndarray:
    """The share of clustered pairs over time, a row for each system."""
    steps = round(options.time / options.step)
    one = program(panel, options.tokens, options.dimension, options.step, steps)
    keys = jax.random.split(jax.random.key(options.seed), options.systems)
    return np.stack([np.asarray(one(key, beta)) for key in keys])


def table(options: argparse.Namespace) -> dict[str, np.ndarray]:
    """The mean shares, (β, time) for each panel; what is in the folder is read and not computed again."""
    options.store.mkdir(parents=True, exist_ok=True)
    betas = np.linspace(options.low, options.high, options.betas)
    found = {}
    with tqdm(total=len(TITLES) * len(betas), disable=options.quiet) as bar:
        for panel in TITLES:
            rows = []
            for beta in betas:
                words = (panel, f"{beta:.6g}", options.dimension, options.tokens, options.systems, options.step,
                         options.time, options.seed)  # fmt: skip
                path = options.store / ("-".join(map(str, words)) + ".npy")
                if not path.exists():
                    half = path.with_suffix(".part.npy")
                    np.save(half, np.mean(shares(panel, float(beta), options), axis=0))
                    half.replace(path)
                rows.append(np.load(path))
                bar.update()
            found[panel] = np.stack(rows)
    return found


def draw(found: dict[str, np.ndarray], options: argparse.Namespace) -> None:
    betas = np.linspace(options.low, options.high, options.betas)
    steps = round(options.time / options.step)
    times = np.linspace(0, options.step * steps, steps + 1)
    figure = Figure(figsize=(15, 3.6), layout="constrained")
    panels = figure.subplots(1, len(found), sharey=True)
    shown = None
    for axes, (panel, values) in zip(panels, found.items(), strict=True):
        shown = axes.pcolormesh(
            times, betas, values, vmin=0, vmax=1, cmap="viridis", shading="nearest", rasterized=True
        )
        axes.set_title(TITLES[panel], fontsize=9)
        axes.set_xlabel("time $t$")
    fine = jnp.linspace(options.low, options.high, 200)
    step = jnp.exp(attention.equiangular_time(0.999, 0.0, options.tokens, fine))
    panels[0].plot(np.minimum(step, 2 * options.time), fine, color="#e4572e", lw=2)
    panels[0].set_xlim(0, options.time)
    panels[0].set_ylim(options.low, options.high)
    panels[0].set_ylabel(r"inverse temperature $\beta$")
    figure.colorbar(shown, ax=list(panels), label="share of pairs, cosine > 0.999")
    figure.suptitle(
        f"Clustering of {options.tokens} tokens in dimension {options.dimension}, {options.systems} systems"
    )
    figure.savefig(options.figure, dpi=150)


def main(arguments: list[str] | None = None) -> dict[str, np.ndarray]:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("figure", nargs="?", default="phase-diagram.png")
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--systems", type=int, default=8, help="systems in a mean")
    parser.add_argument("--betas", type=int, default=10, help="inverse temperatures")
    parser.add_argument("--low", type=float, default=0.1)
    parser.add_argument("--high", type=float, default=9.0)
    parser.add_argument("--time", type=float, default=30.0)
    parser.add_argument("--step", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", type=Path, default=Path("runs/phase-diagram"), help="folder of what is done")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    options = parser.parse_args(arguments)
    found = table(options)
    draw(found, options)
    last = {panel: [round(float(value), 3) for value in values[:, -1]] for panel, values in found.items()}
    print(f"share of clustered pairs at t = {options.time:g}, by β from {options.low:g} to {options.high:g}: {last}")
    return found


if __name__ == "__main__":
    main()
