"""Every test runs with checked shapes and types, strict dtype promotion and warnings as errors."""

import functools
import os
from pathlib import Path

from jaxtyping import install_import_hook

with install_import_hook("deeplimits", "checking.typechecker"):
    import deeplimits as dl
    import deeplimits.atlas
    import deeplimits.cli
    import deeplimits.lab.compare
    import deeplimits.limit

import jax
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")

LIMITS = [entry.name for entry in dl.catalogue.limits()]


def each_limit(function):
    """Run a test for every limit of the catalogue; the tests of one limit share a worker and its simulations."""
    parameters = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in LIMITS]
    return pytest.mark.parametrize("name", parameters)(function)


def each_compared_limit(function):
    """As `each_limit`, for tests that simulate or differentiate at length: costly limits are left to the slow tests."""
    parameters = [pytest.param(name, marks=_marks(name, dl.catalogue[name].costly)) for name in LIMITS]
    return pytest.mark.parametrize("name", parameters)(function)


def one_limit_of_each_family(function):
    """As `each_limit`, with all but the first affordable limit of each family left to the slow tests."""
    affordable = [name for name in LIMITS if not dl.catalogue[name].costly]
    first = {dl.catalogue.entry(name).family: name for name in reversed(affordable)}.values()
    parameters = [pytest.param(name, marks=_marks(name, name not in first)) for name in LIMITS]
    return pytest.mark.parametrize("name", parameters)(function)


def _marks(name: str, slow: bool) -> list:
    return [pytest.mark.xdist_group(name), *([pytest.mark.slow] if slow else [])]


@functools.cache
def usual_comparison(name: str, seed: int = 0):
    """The default comparison of a limit, run once per worker."""
    return dl.compare(dl.catalogue[name](), seed=seed)


@pytest.fixture
def comparison(name):
    return usual_comparison(name)


MEMORY = 2.5e9
"""Bytes that a worker may hold before compiled programs that are no longer needed are dropped."""


def pytest_runtest_teardown(item, nextitem):
    statistics = Path("/proc/self/statm")
    leaving = nextitem is None or nextitem.path != item.path or _group(nextitem) != _group(item)
    if leaving and statistics.exists():
        resident = int(statistics.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        if resident > MEMORY:
            jax.clear_caches()


def _group(item) -> str:
    return item.callspec.params.get("name", "") if hasattr(item, "callspec") else ""
