"""How programs are compiled: at which effort, in how many threads, and kept where."""

import contextlib
import functools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import jax

_QUICK = {
    # Two batches of LAPACK calls that run at once can wait for each other forever (jaxlib 0.10, Cholesky on two cores):
    # so the parts of a program run in order, and programs one after the other (`deeplimits.lab.programs`).
    "xla_cpu_enable_concurrency_optimized_scheduler": False,
    # The older way to make loops from operations compiles in a third to two thirds of the time and runs as fast.
    "xla_cpu_use_fusion_emitters": False,
    # Several programs are compiled at once already.
    "xla_cpu_parallel_codegen_split_count": 1,
}


@functools.cache
def options(level: int) -> dict[str, int]:
    """Compiler options: the level of optimization, and of the rest what the installed JAX knows.

    Level 0 is for theory, which runs once. At level 1 simulations run as fast as at the highest.
    """
    wanted = {"xla_backend_optimization_level": level, **_QUICK}
    if _known(wanted):
        return wanted
    return {name: value for name, value in wanted.items() if _known({name: value})}


def _known(chosen: dict[str, int]) -> bool:
    try:
        jax.jit(lambda: 0.0).lower().compile(compiler_options=chosen)  # pyright: ignore[reportArgumentType]
    except jax.errors.JaxRuntimeError:
        return False
    return True


LARGE = 1000
"""Size above which linear algebra may use all cores."""
CACHE_BYTES = 2 * 2**30
"""How large the folder of compiled programs may become; those that were not used for longest go first."""
LOOKED_AFTER = 3600.0
"""Seconds between two looks at its size."""


@functools.cache
def use_cache() -> None:
    """Turn JAX's persistent cache on, so that the second run of anything starts at once.

    Not where the user chose a directory, or chose none with DEEPLIMITS_CACHE=0.
    """
    if os.environ.get("DEEPLIMITS_CACHE") == "0" or getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "deeplimits" / "jax"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    # Its size is looked after here: JAX would read a file for each program that is kept whenever it keeps another.
    with contextlib.suppress(OSError):
        bound(folder, CACHE_BYTES)


def bound(folder: Path, most: int) -> None:
    """Remove what was not used for longest, so that a folder holds at most so many bytes; looks once an hour."""
    mark = folder / ".looked-after"
    if mark.exists() and time.time() - mark.stat().st_mtime < LOOKED_AFTER:
        return
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()
    with os.scandir(folder) as files:
        found = [(file.stat(), file.path) for file in files if file.is_file() and file.path != str(mark)]
    size = sum(stat.st_size for stat, _ in found)
    for stat, path in sorted(found, key=lambda one: max(one[0].st_atime, one[0].st_mtime)):
        if size <= most:
            return
        with contextlib.suppress(FileNotFoundError):  # another process looks after it too
            os.remove(path)
        size -= stat.st_size


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
