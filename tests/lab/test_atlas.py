"""The atlas: complete, offline, and not run again without need."""

import json
import re
import sys

import deeplimits.atlas
from deeplimits.atlas import build
from deeplimits.atlas.fingerprint import fingerprint

NAMES = ["smooth-linearization-bound", "hard-margin-predictor"]


def test_atlas(tmp_path, monkeypatch):
    page, disagreeing = build(tmp_path, NAMES, "small")
    assert disagreeing == []
    text = page.read_text()
    for name in NAMES:
        document = json.loads((tmp_path / "data" / f"{name}.json").read_text())
        assert document["name"] == name
        assert {"fingerprint", "verdict", "findings", "predictions", "statement"} <= set(document)
        assert f'id="{name}"' in text
        assert (tmp_path / "figures" / f"{name}.svg").read_text().startswith("<svg")
    # Opens from disk: nothing is fetched from anywhere.
    assert not re.findall(r'(?:src|href)="https?:', text)

    def refuse(*_, **__):
        raise AssertionError("an unchanged limit was run again")

    monkeypatch.setattr(deeplimits.atlas, "compare", refuse)
    build(tmp_path, NAMES, "small")


def test_fingerprints_follow_code_parameters_and_version():
    target = "deeplimits.limits.bias.hard_margin_predictor:HardMarginPredictor"
    other = "deeplimits.limits.spectra.marchenko_pastur_law:MarchenkoPastur"
    base = (target, {"points": 16}, 100, "0.1.0")
    variants = [
        base,
        (target, {"points": 17}, 100, "0.1.0"),
        (target, {"points": 16}, 100, "0.2.0"),
        (other, *base[1:]),
    ]
    assert fingerprint(*base) == fingerprint(*base)
    assert len({fingerprint(*variant) for variant in variants}) == 4


def test_fingerprints_follow_everything_a_limit_imports(monkeypatch):
    module = sys.modules["deeplimits.atlas.fingerprint"]
    target = "deeplimits.limits.bias.hard_margin_predictor:HardMarginPredictor"
    before = fingerprint(target)
    original = module._source
    changed = "deeplimits.theory.bias.separability"
    monkeypatch.setattr(module, "_source", lambda name: original(name) + (b"#" if name == changed else b""))
    assert fingerprint(target) != before
