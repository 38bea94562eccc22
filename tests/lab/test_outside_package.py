"""A package elsewhere brings a limit by an entry point, with its citation: a user meets it like any other."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("setuptools", reason="nothing here builds packages: pip install setuptools")

ROOT = Path(__file__).parents[2]


def files_on_the_page():
    """The files of the package, as CONTRIBUTING.md has them."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## A limit in a package of your own")[2]
    found = {"their_limits/__init__.py": ""}
    for language, block in re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL):
        named = re.match(r"# (\S+\.py)\n", block)
        name = named[1] if named else {"toml": "pyproject.toml", "bibtex": "their_limits/references.bib"}.get(language)
        if name:
            found[name] = block
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package built and unpacked, as an installer leaves it."""
    source, place = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name, text in files_on_the_page().items():
        path = source / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(place)], cwd=source, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(place)
    shutil.copytree(source / "tests", place / "tests")
    return place


def run(installed, *arguments):
    known = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(installed), *([known] if known else [])])
    code = "import sys; from deeplimits.cli import main; sys.exit(main())"
    command = [sys.executable, *(arguments if arguments[0] == "-m" else ("-c", code, *arguments))]
    environment = {**os.environ, "PYTHONPATH": path}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=installed)
    assert ran.returncode == 0, ran.stdout + ran.stderr
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


def test_its_own_tests_pass(installed):
    assert "2 passed" in run(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_means.py")
