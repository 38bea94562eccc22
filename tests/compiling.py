"""What tests compile runs once or a few times: it is compiled with little effort, which halves the time of a cold run.

The laboratory compiles its own programs so (`deeplimits.lab.compilation`); here are all the others, of the functions
that tests call one by one. Flags must be set before JAX starts and one that it does not know ends the process: so they
are tried in another process, once, by whoever starts the workers, which find them in their environment.
"""

import os
import subprocess
import sys

QUICK = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
    "--xla_cpu_enable_concurrency_optimized_scheduler=false",
)


def compile_quickly() -> None:
    """Put the flags into the environment, unless they are there or the installed JAX does not know them."""
    given = os.environ.get("XLA_FLAGS", "")
    if all(flag.partition("=")[0] in given for flag in QUICK):
        return
    flags = " ".join((*QUICK, given))  # the last of two values of a flag holds: what was asked for
    trial = [sys.executable, "-c", "import jax; jax.jit(lambda: 0.0)()"]
    if subprocess.run(trial, env={**os.environ, "XLA_FLAGS": flags}, capture_output=True, check=False).returncode == 0:
        os.environ["XLA_FLAGS"] = flags


compile_quickly()
