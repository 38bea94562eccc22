"""What is no task, state, landscape or whatever else has a class here is said to be none, where one is asked for."""

import ast
import importlib
import inspect
import pathlib
import pkgutil
import re

import pytest

import deeplimits
import extremes
from deeplimits import theory
from deeplimits.errors import ParameterError

SOURCE = pathlib.Path(deeplimits.__file__).parent
FURTHER = {"free_sum", "free_product"}
"""They take any number of laws, each of which is checked; see tests/spectra."""


def refusals():
    """(module, function, {argument: kind}) of every function that asks for a kind, in the order in which it asks."""
    for file in sorted(SOURCE.rglob("*.py")):
        for function in ast.parse(file.read_text()).body:
            if not isinstance(function, ast.FunctionDef) or function.name == "of_kind":
                continue
            asked = {}
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                if getattr(call.func, "id", getattr(call.func, "attr", None)) == "of_kind":
                    name, _, kind = call.args
                    asked[name.value] = kind.id
            if asked:
                module = ".".join(("deeplimits", *file.relative_to(SOURCE).with_suffix("").parts))
                yield module, function.name, asked


FOUND = list(refusals())


def described():
    """(function, argument) of the theory's doors where the argument is of a class of this package, and no other."""
    for _, room, door in pkgutil.walk_packages(theory.__path__, "deeplimits.theory."):
        # bayes has a sentence of its own: tests/bayes/test_extremes.py
        names = getattr(importlib.import_module(room), "__all__", ()) if door and not room.endswith("bayes") else ()
        for name in names:
            function = inspect.unwrap(getattr(importlib.import_module(room), name))
            if not inspect.isfunction(function) or name in FURTHER:
                continue
            for argument, kind in inspect.get_annotations(function).items():
                if argument != "return" and inspect.isclass(kind) and kind.__module__.startswith("deeplimits."):
                    yield function.__name__, argument


def test_all_are_found():
    checked = {(name, argument) for _, name, asked in FOUND for argument in asked}
    assert len(checked) > 70
    assert not (missing := set(described()) - checked), missing


def some(kind):
    """An instance without content."""
    return tuple.__new__(kind, [None] * len(kind._fields)) if issubclass(kind, tuple) else object.__new__(kind)


@pytest.mark.parametrize(("module", "name", "asked"), FOUND, ids=[name for _, name, _ in FOUND])
def test_another_kind_is_refused_in_a_sentence(module, name, asked):
    home = importlib.import_module(module)
    required = [
        each.name
        for each in inspect.signature(getattr(home, name)).parameters.values()
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    ]
    for wrong, kind in asked.items():
        given = {one: some(getattr(home, asked[one])) if one in asked else 0.5 for one in required} | {wrong: "tanh"}
        sentence = f"{wrong} = 'tanh' is a str; it must be a {kind}"
        with extremes.as_a_user(), pytest.raises(ParameterError, match=re.escape(sentence)):
            getattr(home, name)(**given)
