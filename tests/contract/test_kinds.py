"""What is no Task, Overlaps, Landscape or EffectiveDynamics is said to be none, wherever one is asked for."""

import ast
import importlib
import inspect
import pathlib
import re

import jax.numpy as jnp
import pytest

import deeplimits
import extremes
from deeplimits.errors import ParameterError
from deeplimits.models.committees import Overlaps, Task
from deeplimits.theory import online_sgd

SOURCE = pathlib.Path(deeplimits.__file__).parent
RIGHT = {
    "Task": lambda: Task([[1.0]]),
    "Overlaps": lambda: Overlaps([[0.3]], [[0.7]]),
    "Landscape": lambda: online_sgd.online_pca(1.0),
    "EffectiveDynamics": lambda: online_sgd.EffectiveDynamics(jnp.negative, jnp.zeros_like),
}


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


def test_all_are_found():
    places = "\n".join(file.read_text() for file in SOURCE.rglob("*.py"))
    assert sum(len(asked) for *_, asked in FOUND) == len(re.findall(r"(?<!def )(?<!>>> )\bof_kind\(", places))


@pytest.mark.parametrize(("module", "name", "asked"), FOUND, ids=[name for _, name, _ in FOUND])
def test_another_kind_is_refused_in_a_sentence(module, name, asked):
    function = getattr(importlib.import_module(module), name)
    required = [
        each.name
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    ]
    for wrong, kind in asked.items():
        given = {one: RIGHT[asked[one]]() if one in asked else 0.5 for one in required} | {wrong: "tanh"}
        sentence = f"{wrong} = 'tanh' is a str; it must be a {kind}"
        with extremes.as_a_user(), pytest.raises(ParameterError, match=re.escape(sentence)):
            function(**given)
