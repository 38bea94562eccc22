"""The catalogue: three kinds of names, search, helpful errors, limits of third parties."""

import sys
import types

import equinox as eqx
import jax
import pytest

import deeplimits as dl
from deeplimits import references
from deeplimits.catalogue import Catalogue, Entry
from deeplimits.errors import UnknownName
from deeplimits.index import part_of
from deeplimits.limit import speaks_of_draws


def test_listing():
    listing = dl.catalogue()
    assert len(listing) == len(dl.catalogue)
    assert "ridgeless-double-descent" in repr(listing)
    assert {entry.role for entry in listing} == {"limit", "result", "function"}


def test_names_lead_to_classes_and_functions():
    assert dl.catalogue["marchenko-pastur-law"] is dl.limits.MarchenkoPasturLaw
    assert dl.catalogue["covariance-operator-norm-gap"] is dl.limits.MarchenkoPasturLaw
    assert callable(dl.catalogue["ridgeless-finite-sample"])
    assert "MarchenkoPasturLaw" in dir(dl.limits)
    with pytest.raises(AttributeError, match="no limit class 'Nothing'"):
        _ = dl.limits.Nothing
    with pytest.raises(AttributeError, match=r"did you mean .*MarchenkoPasturLaw"):
        _ = dl.limits.MarchenkoPastur


@pytest.mark.parametrize("entry", dl.catalogue(), ids=lambda entry: entry.name)
def test_every_name_resolves(entry):
    loaded = entry.load()
    assert entry.about.statement.title
    assert entry.title.lower().endswith(entry.about.statement.title.lower())
    assert entry.about.statement.references, f"{entry.name} must cite its source"
    assert references.bibtex(entry.about.statement.references)
    assert all(references.short(key) for key in entry.about.statement.references)
    if entry.role == "result":
        assert entry.result in everything_stated(loaded())


SEVERAL = [entry for entry in dl.catalogue.limits() if any(part.results for part in entry.about.parts)]


@pytest.mark.parametrize("entry", SEVERAL, ids=lambda entry: entry.name)
def test_functions_are_said_to_be_behind_results_that_there_are(entry):
    named = {result for part in entry.about.parts for result in part.results}
    assert named <= set(everything_stated(entry.load()()))


def test_the_functions_behind_one_result():
    assert [part.name for part in dl.catalogue.entry("trace-lemma").about.parts_of("quadratic_form")] == [
        "quadratic_form_variance",
        "quadratic_form_bound",
    ]
    with pytest.raises(UnknownName, match=r"theory.bias.no_such_function is in no file"):
        part_of("bias.no_such_function")


def everything_stated(limit):
    """What a limit predicts, whatever the draw and of one draw."""
    sizes, realised = limit.at_size(min(limit.usual.sizes))

    def stated(limit):
        if not speaks_of_draws(limit):
            return limit.theory()
        return {**limit.theory(), **limit.stated(limit.draw(jax.random.key(0), **sizes))}

    return eqx.filter_eval_shape(stated, realised)


def test_every_reference_is_used_and_complete():
    used = {key for entry in dl.catalogue() for key in entry.about.statement.references}
    for key, text in references.entries().items():
        assert {"author", "title", "year"} <= {line.split("=")[0].strip() for line in text.splitlines()}, key
    assert used <= set(references.entries())


def test_search():
    assert "ridgeless-double-descent" in [entry.name for entry in dl.catalogue.search("peak interpolation")]
    assert {entry.name for entry in dl.catalogue.search("Poincaré")} >= {"equator-initialization"}
    assert repr(dl.catalogue.search("no such thing anywhere")) == "(no entries)"
    # The titles of what is cited count, and a name's words may stand apart.
    assert {entry.name for entry in dl.catalogue.search("neural tangent kernel")} >= {"ntk-recursion"}
    assert dl.catalogue.search("order chaos") == dl.catalogue.search("order-chaos")
    assert "dpp" in [entry.name for entry in dl.catalogue.search("Dpp")]


def test_unknown_names_are_answered_with_near_ones():
    with pytest.raises(UnknownName, match=r"did you mean .*marchenko-pastur-law"):
        dl.catalogue["marchenko-pastur-lw"]
    with pytest.raises(UnknownName, match="no entry xyz"):
        references.bibtex(["xyz"])


def test_third_parties_add_limits(monkeypatch):
    point = types.SimpleNamespace(
        name="their-limit", value="deeplimits.limits.bias.hard_margin_predictor:HardMarginPredictor"
    )
    taken = types.SimpleNamespace(name="marchenko-pastur-law", value="elsewhere:Impostor")
    monkeypatch.setattr(sys.modules["deeplimits.catalogue"], "entry_points", lambda group: [point, taken])
    extended = Catalogue()
    assert extended["their-limit"] is dl.limits.HardMarginPredictor
    assert extended["marchenko-pastur-law"] is dl.limits.MarchenkoPasturLaw


def test_a_module_that_is_not_there():
    with pytest.raises(UnknownName, match=r"no_such_package.module:Thing cannot be imported"):
        _ = Entry("x", "limit", "no_such_package.module:Thing").about
    assert "no_such_package" not in sys.modules
