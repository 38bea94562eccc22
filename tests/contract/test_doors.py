"""Every room has a door: a short list of documented names, which is what the documentation teaches."""

import ast
import builtins
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import runpy
import subprocess
import sys
import typing
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import SimpleNamespace

import pytest

import deeplimits.theory
from deeplimits.catalogue import FUNCTIONS
from deeplimits.lab.task import imports, module_path, offers
from deeplimits.measure.estimates import Estimate
from house import modules

PAGES = Path(__file__).parents[2]
TOPS = ("theory", "models", "ensembles", "measure", "numerics")
DOORS = [module for module in modules() if offers(module)]
MOST = 45


def members(door):
    module = importlib.import_module(door)
    return {name: getattr(module, name) for name in module.__all__}


def test_every_room_has_a_door():
    rooms = {f"deeplimits.theory.{part.name}" for part in pkgutil.iter_modules(deeplimits.theory.__path__)}
    assert rooms | {f"deeplimits.{top}" for top in TOPS} <= set(DOORS)
    assert rooms == {f"deeplimits.theory.{name}" for name in deeplimits.theory.__all__}


@pytest.mark.parametrize("door", DOORS)
def test_a_door_is_a_short_list_of_documented_names(door):
    module, found = importlib.import_module(door), members(door)
    assert dir(module) == sorted(found), "dir(room) is the table of contents"
    assert set(found) == set(offers(door))
    assert len(found) <= MOST
    assert module.__doc__
    files = {part.name for part in pkgutil.iter_modules(module.__path__)}
    for name, member in found.items():
        if inspect.ismodule(member):
            assert member.__name__ in DOORS, f"{door}.{name} is a module; a door lists what is in it"
            continue
        assert name not in files, f"{door}.{name} hides the file {name}.py"
        assert member.__name__ == name, f"{door} calls {member.__name__} by another name"
        doc = inspect.getdoc(member)
        assert doc, f"{door}.{name} has no docstring"
        assert not doc.startswith(f"{name}("), f"{door}.{name} has no docstring of its own"


@pytest.mark.parametrize("door", [door for door in DOORS if door.split(".")[1] in ("theory", "ensembles", "measure")])
def test_functions_show_an_example(door):
    without = [
        name
        for name, member in members(door).items()
        if not inspect.ismodule(member) and not isinstance(member, type) and ">>>" not in (inspect.getdoc(member) or "")
    ]
    assert not without


def parts_of(annotation):
    """A type and, for named results, the types of all their parts and of what their methods answer."""
    yield annotation
    for part in typing.get_args(annotation):
        yield from parts_of(part)
    if inspect.isclass(annotation) and issubclass(annotation, tuple) and hasattr(annotation, "_fields"):
        for part in typing.get_type_hints(annotation).values():
            yield from parts_of(part)
        for method in vars(annotation).values():
            if inspect.isfunction(method) and not method.__name__.startswith("_"):
                yield typing.get_type_hints(method).get("return")


INSTRUMENTS = {
    f"{door}.{name}": one
    for door in DOORS
    if door.startswith("deeplimits.measure")
    for name, one in members(door).items()
    if inspect.isfunction(one)
}
MADE_TO_BE_MEASURED = {"Model", "Curvature"}
"""Networks and operators that are opened, with what is random in them kept fixed; no answers."""
BOUNDED = {"p_value", "p_values", "error"}
"""A test of a hypothesis answers with its p-value; what is found from a random start, with a bound on its error."""


def test_what_chance_moves_is_an_estimate_and_nothing_else_is():
    """An instrument that draws, or averages over what was drawn, says how far chance may have moved its answer."""
    assert len(INSTRUMENTS) > 55
    for name, instrument in INSTRUMENTS.items():
        answer = typing.get_type_hints(instrument)["return"]
        if getattr(answer, "__name__", "") in MADE_TO_BE_MEASURED:
            continue
        # A record of a training run goes up and down by chance too.
        statistical = bool({"key", "seed", "observations", "record"} & set(inspect.signature(instrument).parameters))
        parts = list(parts_of(answer))
        chance = Estimate in parts or any(BOUNDED & set(getattr(part, "_fields", ())) for part in parts)
        assert chance == statistical, name


def test_the_api_page_lists_every_door(tmp_path):
    runpy.run_path(str(PAGES / "docs" / "made.py"))["write_doors"](SimpleNamespace(srcdir=tmp_path))
    pages = "\n".join(page.read_text() for page in sorted((tmp_path / "api").glob("*.md")))
    listed = re.findall(r"^\.\. auto(?:function|class):: ([\w.]+)$", pages, re.MULTILINE)
    named = [f"{door}.{name}" for door in DOORS for name, one in members(door).items() if not inspect.ismodule(one)]
    assert sorted(listed) == sorted(named)


def test_functions_of_the_catalogue_stand_in_doors():
    for target in FUNCTIONS.values():
        room, _, name = target.partition(":")
        assert name in offers(f"deeplimits.{room}"), target


def taught():
    """Every name of a room that a page of the documentation uses, and the room: page, room, name."""
    tops = tuple(f"deeplimits.{top}" for top in TOPS)
    written = [page for page in (PAGES / "docs").rglob("*.md") if page.parent.name not in ("api", "limits")]
    for page in [*PAGES.glob("*.md"), *written, *(PAGES / "examples").glob("*.py")]:
        text = page.read_text(encoding="utf-8")
        code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)) if page.suffix == ".md" else text
        tree, rooms = ast.parse(code), {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("deeplimits."):
                for alias in node.names:
                    inside = f"{node.module}.{alias.name}"
                    if inside in DOORS:
                        rooms[alias.asname or alias.name] = inside
                    # A file that a page tells to write is not there.
                    elif f"{node.module}.".startswith(tops) and importlib.util.find_spec(node.module):
                        yield page.name, node.module, alias.name
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in rooms:
                yield page.name, rooms[node.value.id], node.attr
        if page.name != "CHANGELOG.md":
            for room, name in re.findall(r"`(\w+)\.(\w+)`", text):
                for door in DOORS:
                    if door.endswith(f".{room}") and name != "py":
                        yield page.name, door, name


@pytest.mark.parametrize(("page", "room", "name"), sorted(set(taught())))
def test_pages_teach_doors(page, room, name):
    assert name in offers(room), f"{page} speaks of {name} in {room}, which does not list it"


def test_a_name_that_a_room_does_not_have():
    from deeplimits.theory import spectra

    with pytest.raises(AttributeError, match="did you mean marchenko_pastur"):
        spectra.marchenko_pasteur  # noqa: B018


def test_a_door_leaves_importing_as_it_was(tmp_path, monkeypatch):
    """Also where its list is wrong, where a door is opened inside another, and for every other module meanwhile."""
    usual = builtins.__import__
    head = "from deeplimits.doors import door\nwith door(__name__):\n"
    (tmp_path / "broken.py").write_text(f"{head}    from os import path\n    import no_such_module_at_all\n")
    (tmp_path / "inner.py").write_text(f"{head}    from os import sep\n")
    (tmp_path / "outer.py").write_text(
        f"{head}    from os import path\n    import inner\n    from os import linesep\nfrom os import curdir\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("broken")
    assert builtins.__import__ is usual
    outer = importlib.import_module("outer")
    assert builtins.__import__ is usual
    assert (outer.__all__, outer.inner.__all__) == (["path", "linesep"], ["sep"])
    assert (outer.curdir, outer.linesep, outer.inner.sep) == (os.curdir, os.linesep, os.sep)


def test_a_door_imports_only_what_is_used():
    code = (
        "import sys, deeplimits.theory.spectra, deeplimits.ensembles, deeplimits.measure, deeplimits.numerics\n"
        "heavy = {'jax', 'numpy', 'scipy', 'equinox', 'diffrax'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "deeplimits.theory.inequalities.hoeffding\n"
        "rooms = [name for name in sys.modules if name.startswith('deeplimits.theory.')]\n"
        "assert {name.removeprefix('deeplimits.theory.') for name in rooms}"
        " == {'spectra', 'inequalities', 'inequalities.basic'}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_task_depends_on_what_lies_behind_a_door(tmp_path, monkeypatch):
    (tmp_path / "through_a_door.py").write_text("from deeplimits.theory.spectra import spiked_wigner\n")
    (tmp_path / "through_the_house.py").write_text("from deeplimits.theory import two_layer\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert imports("through_a_door") == {"deeplimits.theory.spectra.spikes"}
    whole = imports("through_the_house")
    assert "deeplimits.theory.two_layer.overlaps.equations" in whole
    assert "deeplimits.theory.two_layer.mean_field.particles" in whole
    assert all(name.startswith(("deeplimits.theory.two_layer.", "deeplimits.models.")) for name in whole)


def at_the_top(module):
    """What a module imports as soon as it is imported itself."""
    if offers(module):
        return set()
    found = set()
    for node in ast.parse(module_path(module).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            offered = offers(node.module)
            found |= {offered.get(alias.name, f"{node.module}.{alias.name}") for alias in node.names}
            found |= set() if offered else {node.module}
    return {name for name in found if name not in (module, "deeplimits") and module_path(name)}


def test_no_imports_in_circles():
    """So that every file can be imported first."""
    graph = {module: at_the_top(module) for module in modules()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
