"""How programs are compiled: at which effort, in how many threads, and kept where."""

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path

import jax

# Two batches of LAPACK calls that run at once can wait for each other forever (jaxlib 0.10, Cholesky on two cores): so
# the parts of a program run in order, and programs one after the other (`deeplimits.lab.programs`).
_IN_ORDER = {"xla_cpu_enable_concurrency_optimized_scheduler": False}
PLAIN = {"xla_backend_optimization_level": 0, **_IN_ORDER}
"""Compiler options for theory, which runs once: a third of the compile time."""
BRISK = {"xla_backend_optimization_level": 1, **_IN_ORDER}
"""Compiler options for simulations: they run as fast as at the full level, and compile in two thirds of its time."""
LARGE = 1000
"""Size above which linear algebra may use all cores."""
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
    """How many programs are compiled at once: one a core, or as DEEPLIMITS_THREADS says."""
    given = os.environ.get("DEEPLIMITS_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    from deeplimits.lab.workers import cores

    return cores()


@contextlib.contextmanager
def few_threads(size: int) -> Iterator[None]:
    """Linear algebra in one thread, unless systems are large: below a thousand rows a second one only waits."""
    if size > LARGE:
        yield
        return
    import scipy.linalg  # noqa: F401  (what is loaded later could not be told)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield
