"""Every test runs with checked shapes and types, strict dtype promotion and warnings as errors."""

import functools

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


@functools.cache
def usual_comparison(name: str, seed: int = 0):
    """The default comparison of a limit, run once per worker."""
    return dl.compare(dl.catalogue[name](), seed=seed)


@pytest.fixture
def comparison(name):
    return usual_comparison(name)
