"""The worked example of CONTRIBUTING.md meets the contract that it tells of, both grades of it."""

import importlib
import re
import sys

import pytest

from conftest import quick_comparison, usual_comparison
from contract import test_quick as quick
from contract import test_sharp as sharp
from deeplimits.catalogue import Entry, catalogue
from docs.test_pages import ROOT, as_modules, blocks

NAME = "gaussian-norm"


@pytest.fixture(scope="module", autouse=True)
def example(tmp_path_factory):
    """The code of the page as a module, its limit in the catalogue."""
    folder = tmp_path_factory.mktemp("example")
    modules, (limit, *_) = as_modules(blocks(ROOT / "CONTRIBUTING.md"))
    (folder / "gaussian_norm.py").write_text(limit, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for name, module in modules.items():
            patch.setitem(sys.modules, name, module)
        patch.syspath_prepend(folder)
        entry = Entry(NAME, "limit", "gaussian_norm:GaussianNorm")
        patch.setattr(catalogue, "_entries", {**catalogue._entries, NAME: entry})
        yield importlib.import_module("gaussian_norm")


def test_its_files_stand_in_rooms_that_there_are():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    inside = page.partition("## A limit in a package of your own")[0]
    named = re.findall(r"^# (\S+)/\w+\.py$", inside, re.MULTILINE)
    assert len(named) == 2
    assert all((ROOT / "src" / "deeplimits" / folder).is_dir() for folder in named)


def test_it_passes_the_quick_grade(tmp_path):
    comparison = quick_comparison(NAME)
    quick.test_theory_does_not_disagree_with_simulation(NAME, comparison)
    for factor in (quick.GROSS, 1 / quick.GROSS):
        quick.test_a_gross_error_is_noticed(NAME, factor, comparison)
    quick.test_theory_and_simulation_speak_of_the_same_results(NAME, comparison)
    quick.test_simulation_is_reproducible(NAME, comparison)
    quick.test_gradients_and_batches_have_their_shapes(NAME)
    quick.test_new_values_do_not_recompile(NAME, comparison)
    quick.test_results_can_be_exported(NAME, comparison, tmp_path)


def test_it_passes_the_sharp_grade():
    comparison = usual_comparison(NAME)
    assert comparison.agrees, str(comparison)
    for factor in (sharp.SHARP, 1 / sharp.SHARP):
        sharp.test_five_percent_is_noticed(NAME, factor, comparison)
