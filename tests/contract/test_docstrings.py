"""Every example in a docstring runs, and says what it prints."""

import doctest
import importlib

import pytest

from deeplimits.lab.task import module_path
from house import modules

WITH_EXAMPLES = [name for name in modules() if ">>>" in module_path(name).read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name):
    module = importlib.import_module(name)
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted
    assert not found.failed
