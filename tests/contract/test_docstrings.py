"""Every example in a docstring runs, and says what it prints; statements have the sections of the house."""

import ast
import doctest
import importlib
import re

import pytest

from deeplimits.lab.task import module_path
from deeplimits.statement import COLUMN, SECTIONS
from house import modules

WITH_EXAMPLES = [name for name in modules() if ">>>" in module_path(name).read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name):
    module = importlib.import_module(name)
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted
    assert not found.failed


@pytest.mark.parametrize("name", list(modules()))
def test_statements_have_the_sections_of_the_house(name):
    """What begins like a section of a statement, text in its column, is one; else it drops out of what is shown."""
    for node in ast.walk(ast.parse(module_path(name).read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        lines = (ast.get_docstring(node) or "").splitlines()
        if not any(line[:COLUMN].rstrip() == "Result" for line in lines):
            continue
        found = [re.match(r"([A-Z][a-z]+(?: [a-z]+)?)  +(?=\S)", line) for line in lines]
        words = {match[1] for match in found if match and match.end() == COLUMN}
        assert words <= set(SECTIONS), node.name
