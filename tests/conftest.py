"""Every test runs with checked shapes and types, strict promotion of dtypes and ranks, and warnings as errors."""

import functools
import gc
import math

from jaxtyping import install_import_hook

import compiling  # before anything that compiles  # noqa: F401

with install_import_hook("deeplimits", "checking.typechecker"):
    import deeplimits as dl
    import deeplimits.atlas
    import deeplimits.cli
    import deeplimits.lab.compare
    import deeplimits.limit

import jax
import pytest

from deeplimits.lab import programs
from deeplimits.lab.compilation import use_cache
from deeplimits.lab.simulate import CHUNKS
from deeplimits.lab.workers import Growth

pytest_plugins = ["slowly"]

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
# The compiled programs of one run serve the next, and one worker's serve the others.
use_cache()
# Small ones too: tests call functions one operation at a time, and the same operations everywhere.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
# Where in the source each operation stands helps to read a program, and is never read here.
jax.config.update("jax_traceback_in_locations_limit", 0)
# What is traced makes many objects that stay; looking through all of them often finds nothing.
gc.set_threshold(200_000, 20, 100)

LIMITS = [entry.name for entry in dl.catalogue.limits()]


def each_limit(function):
    """Run a test for every limit of the catalogue; the tests of one limit share a worker and its simulations."""
    parameters = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in LIMITS]
    return pytest.mark.parametrize("name", parameters)(function)


def quick_samples(limit) -> int:
    """A tenth of the usual samples, which run in the usual program; all of them where they are few."""
    return max(math.ceil(limit.usual.samples / CHUNKS), min(limit.usual.samples, 60))


@functools.cache
def quick_comparison(name: str, seed: int = 0):
    """The quick grade: usual sizes, few samples. It must notice gross errors."""
    limit = dl.catalogue[name]()
    return dl.compare(limit, samples=quick_samples(limit), seed=seed)


@functools.cache
def usual_comparison(name: str, seed: int = 0):
    """The sharp grade: what `compare` does unless told otherwise. It must notice five percent."""
    return dl.compare(dl.catalogue[name](), seed=seed)


MEMORY, MAPPINGS, GROWTH = 4.0e9, 40_000, 1.0e9
"""Bytes and mappings that a worker may hold before compiled programs that are no longer needed are dropped. What it
holds after that is mostly free, though the system does not get it back: so it may grow by that much before the next."""
_allowed = MEMORY


def pytest_runtest_teardown(item, nextitem):
    global _allowed
    leaving = nextitem is None or nextitem.path != item.path or _group(nextitem) != _group(item)
    if leaving:
        growth = Growth.of_this_process()
        if growth.memory > _allowed or growth.mappings > MAPPINGS:
            quick_comparison.cache_clear()
            usual_comparison.cache_clear()
            programs.clear()
            _allowed = max(MEMORY, Growth.of_this_process().memory + GROWTH)


def _group(item) -> str:
    return item.callspec.params.get("name", "") if hasattr(item, "callspec") else ""
