"""A package elsewhere brings a limit by an entry point, with its citation: a user meets it like any other."""

import os
import subprocess
import sys

import pytest

LIMIT = '''
import jax

from deeplimits.limit import Limit, Run, real
from deeplimits.predictions import Value


class SampleMean(Limit):
    """The mean of noisy samples.

    Setting     n samples of mean a and variance one
    Limit       n → ∞
    Result      their mean tends to a
    Validity    size counts the samples n
    Finite size exact on average at every n
    References  nobody2099
    """

    level: object = real(1.0, 0.0, 10.0, symbol="a", doc="the mean")
    usual = Run(sizes=(10, 20), samples=2000)

    def theory(self):
        return {"mean": Value(self.level, label="mean of the samples")}

    def at_size(self, size):
        return {"size": size}, self

    def simulate(self, key, *, size: int):
        return {"mean": self.level + jax.random.normal(key, (size,)).mean()}
'''
BIB = """@book{nobody2099,
  author = {Nobody, Ann},
  title = {Means},
  publisher = {Nowhere},
  year = {2099},
}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """As an installer leaves it: the package, and beside it what it declares."""
    place = tmp_path_factory.mktemp("site")
    package, declared = place / "their_limits", place / "their_limits-1.0.dist-info"
    package.mkdir()
    declared.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "means.py").write_text(LIMIT, encoding="utf-8")
    (package / "references.bib").write_text(BIB, encoding="utf-8")
    (declared / "METADATA").write_text("Metadata-Version: 2.1\nName: their-limits\nVersion: 1.0\n", encoding="utf-8")
    (declared / "entry_points.txt").write_text(
        "[deeplimits.limits]\nsample-mean = their_limits.means:SampleMean\n", encoding="utf-8"
    )
    return place


def run(installed, *arguments):
    known = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(installed), *([known] if known else [])])
    command = [sys.executable, "-c", "from deeplimits.cli import main; main()", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_it_is_listed_shown_and_cited(installed):
    assert "sample-mean" in run(installed, "list", "noisy samples")
    shown = run(installed, "show", "sample-mean")
    assert "Nobody (2099). Means. Nowhere." in shown
    assert "a, the mean; a number between 0 and 10 (default 1)" in shown
    assert run(installed, "cite", "sample-mean").startswith("@book{nobody2099,")


def test_it_is_compared_and_drawn(installed, tmp_path):
    page = tmp_path / "page.html"
    said = run(installed, "compare", "sample-mean", "--level", "2", "--html", str(page))
    assert said.startswith("sample-mean (level = 2)")
    assert "AGREES" in said.splitlines()[-1]
    assert "Nobody" in page.read_text(encoding="utf-8")
