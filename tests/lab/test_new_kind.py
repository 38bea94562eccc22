"""A kind that the house does not know is one class: it is compared, drawn, exported and documented like the others."""

import dataclasses
import json
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

import deeplimits as dl
from deeplimits import statistics, tails
from deeplimits.limit import Limit, Run, real
from deeplimits.predictions import KINDS, Kind, Picture, Trial
from deeplimits.predictions.base import Report, as_floats, multiplied, number, standardized
from deeplimits.predictions.composing import alone, dots, over_sizes, size_axis

ROOT = Path(__file__).parents[2]


class Record(NamedTuple):
    sizes: list[int]


class Median(Kind):
    """The median of a random number."""

    returns = "a number"
    compared = "how many simulations lie below"
    drawn = "all simulations"

    value: Float[Array, "..."] = eqx.field(converter=as_floats)

    def reduced(self, measured):
        return measured

    @staticmethod
    def deviation(sizes, stated, reduced):
        below = sum(int((found < float(one.value)).sum()) for one, found in zip(stated, reduced, strict=True))
        p_value = tails.binomial_p_value(below, sum(map(len, reduced)), 0.5)
        z = tails.equivalent_z
        return statistics.Deviation(z(p_value), z(statistics.LEVEL), p_value)

    @staticmethod
    def report(trials, reduced, deviation):
        sizes = [trial.size for trial in trials]
        found = number(float(np.median(reduced[-1])))
        return Report(standardized(deviation), trials[-1].stated.summary(), found, Record(sizes))

    def wrong_by(self, factor):
        return multiplied(self, "value", factor)

    def picture(self, trials=()):
        if not trials:
            return alone(self.axis_of_values, float(self.value))
        sizes = [trial.size for trial in trials]
        stated = over_sizes(sizes, [float(trial.stated.value) for trial in trials])
        return Picture(size_axis(sizes), self.axis_of_values, (stated, dots(sizes, [t.measured for t in trials])))

    @classmethod
    def example(cls, rng):
        return [Trial(n, cls(1.0, label="median"), 1 + 0.1 * rng.standard_normal(400)) for n in (1, 2, 3)]

    def arrays(self):
        return {"": ((), self.value)}

    def summary(self):
        return number(float(self.value))


class Shifted(Limit):
    """A number with symmetric noise."""

    level: jax.Array = real(2.0, 0.1, 10.0, doc="the number")
    usual = Run(sizes=(10, 20), samples=400)

    def theory(self):
        return {"middle": Median(self.level, label="middle")}

    def at_size(self, size):
        return {"size": size}, self

    def simulate(self, key, *, size):
        return {"middle": self.level + jax.random.normal(key)}


def test_a_kind_of_ones_own_is_compared_drawn_and_exported(tmp_path):
    comparison = dl.compare(Shifted())
    assert comparison.agrees, str(comparison)
    wrong = [trial.beside(dataclasses.replace(trial.stated, value=3.0)) for trial in comparison.trials["middle"]]
    assert Median.judge(wrong).outcome == "disagrees"
    document = json.loads(json.dumps(comparison.document(), allow_nan=False))
    assert document["findings"]["middle"]["kind"] == "Median"
    assert Picture.from_json(document["pictures"]["middle"]) == comparison.pictures()["middle"]
    comparison.plot(tmp_path / "figure.png")
    assert "middle" in comparison.to_html()
    assert "Median" in repr(dl.predict(Shifted()))


def test_the_documentation_finds_every_kind(tmp_path):
    runpy.run_path(str(ROOT / "docs" / "made.py"))["write_kinds"](SimpleNamespace(srcdir=tmp_path))
    for name in KINDS:
        assert f"| `{name}` |" in (tmp_path / "_kinds.md").read_text()
        assert f"deeplimits.predictions.{name}\n" in (tmp_path / "_kind_classes.md").read_text()
