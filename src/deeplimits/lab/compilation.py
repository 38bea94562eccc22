"""JAX's persistent compilation cache, so that the second run of anything starts at once."""

import functools
import os
from pathlib import Path

import jax


@functools.cache
def use_cache() -> None:
    """Turn the cache on, unless the user chose a directory, or chose none with DEEPLIMITS_CACHE=0."""
    if os.environ.get("DEEPLIMITS_CACHE") == "0" or getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    jax.config.update("jax_compilation_cache_dir", str(Path(home) / "deeplimits" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
