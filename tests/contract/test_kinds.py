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
from deeplimits.errors import DeeplimitsError, ParameterError

SOURCE = pathlib.Path(deeplimits.__file__).parent


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
        for name in getattr(importlib.import_module(room), "__all__", ()) if door else ():
            function = getattr(importlib.import_module(room), name)
            if inspect.isfunction(inspect.unwrap(function)):
                for argument, kind in inspect.get_annotations(inspect.unwrap(function)).items():
                    if argument != "return" and inspect.isclass(kind) and kind.__module__.startswith("deeplimits."):
                        yield function, argument


def test_no_function_of_a_door_takes_another_kind():
    """Where the sentence is said elsewhere than in the function itself, too."""
    tried = 0
    for function, wrong in described():
        parameters = inspect.signature(function).parameters.values()
        if any(each.kind is each.VAR_POSITIONAL for each in parameters):
            continue
        given = {each.name: 0.5 for each in parameters if each.default is each.empty} | {wrong: "tanh"}
        with extremes.as_a_user(), pytest.raises(DeeplimitsError):
            function(**given)
        tried += 1
    assert tried > 80


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
