"""How programs are compiled: at which effort, in how many threads, and kept where."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import equinox as eqx
import jax

# Two batches of LAPACK calls that run at once can wait for each other forever (jaxlib 0.10, Cholesky on two cores).
_IN_ORDER = {"xla_cpu_enable_concurrency_optimized_scheduler": False}
PLAIN = {"xla_backend_optimization_level": 0, **_IN_ORDER}
"""Compiler options for theory, which runs once: a third of the compile time."""
BRISK = {"xla_backend_optimization_level": 1, **_IN_ORDER}
"""Compiler options for simulations: they run as fast as at the full level, and compile in two thirds of its time."""
Function = TypeVar("Function", bound=Callable)


def compiled(options: dict[str, int]) -> Callable[[Function], Function]:
    """Decorate a function of arrays and static values: compiled with these options, once for each shape."""
    # Options beyond the documented ones are passed on to jax.jit.
    return lambda function: eqx.filter_jit(function, compiler_options=options)  # pyright: ignore


CACHE_BYTES = 2 * 2**30
"""How large the folder of compiled programs may become; the oldest go first."""


@functools.cache
def use_cache() -> None:
    """Turn JAX's persistent cache on, so that the second run of anything starts at once.

    Not where the user chose a directory, or chose none with DEEPLIMITS_CACHE=0.
    """
    if os.environ.get("DEEPLIMITS_CACHE") == "0" or getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    jax.config.update("jax_compilation_cache_dir", str(Path(home) / "deeplimits" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_compilation_cache_max_size", CACHE_BYTES)


def threads() -> int:
    """How many sizes are compiled and simulated at once: one a core, or as DEEPLIMITS_THREADS says."""
    given = os.environ.get("DEEPLIMITS_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    from deeplimits.lab.workers import cores

    return cores()


@contextlib.contextmanager
def one_thread_each(sizes: int) -> Iterator[None]:
    """While several sizes are simulated at once, linear algebra uses one thread: more would wait for each other."""
    if min(sizes, threads()) == 1:
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield
