"""Online SGD: steps per second against a NumPy loop, a PyTorch loop and the floor of drawing the samples alone.

    python -m benchmarks online_sgd                       in double precision, as the library computes
    DEEPLIMITS_X64=0 python -m benchmarks online_sgd      in single precision

Spherical online PCA, −⟨x, Y⟩², one fresh Gaussian sample a step, by the compiled loop of `deeplimits.ensembles`. On a
CPU everything runs in one thread, and seconds are those of the processor, not of the clock on the wall.

Nearly all of the time goes into random numbers. Keys of JAX's default kind, threefry, are hashed by a program of the
library that makes two numbers of each hash; "rbg" leaves the bits to the compiler's generator, and its numbers depend
on how a program is batched. Both are timed, each beside its floor: the same samples, by the same blocks, for the loss
a⟨w, Y⟩ of a number a, a single inner product a step. Everyone runs in turns.

The package need not be installed (PYTHONPATH=src will do), and a GPU is used where JAX finds one. PyTorch is the one of
this interpreter or else that of its own environment, .peers/torch; where neither can be had it is skipped.
"""

import importlib.util
import os
import subprocess
import sys
import time

# Before NumPy and JAX are imported: one thread, so that a loop is compared with a loop.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._peers import environment
from benchmarks._report import compare, grow
from deeplimits.ensembles import online_sgd, reduced_chains

SIGNAL, STEP = 1.0, 0.3
DIMENSIONS = (1_000, 10_000, 100_000)
GENERATORS = ("threefry2x32", "rbg")
REPEATS, TURNS = 3, 5
PRECISION = jnp.zeros(()).dtype.name

# The same loop in PyTorch, run in an interpreter of its own: dimension, steps, precision -> steps per second.
TORCH_LOOP = f"""
import sys, time, torch
n, steps, precision = int(sys.argv[1]), int(sys.argv[2]), getattr(torch, sys.argv[3])
device, clock = ("cuda", time.perf_counter) if torch.cuda.is_available() else ("cpu", time.process_time)
def run(steps):
    x = torch.zeros(n, device=device, dtype=precision)
    x[0], x[1] = 0.6, 0.8
    for _ in range(steps):
        y = torch.randn(n, device=device, dtype=precision)
        y[0] *= {(1 + SIGNAL) ** 0.5}
        z = x @ y
        x = x + (2 * {STEP} / n) * z * (y - z * x)
        x = x / torch.linalg.vector_norm(x)
    float(x[0])  # waits for the device
torch.set_num_threads(1)
with torch.no_grad():
    run(steps)
    times = []
    for _ in range({REPEATS}):
        began = clock()
        run(steps)
        times.append(clock() - began)
print(steps / min(times))
"""


def ours(n: int, generator: str, seeds: int = 1):
    """Steps -> the correlations of so many runs side by side, by the library's loop."""
    direction = jnp.zeros(n).at[0].set(1.0)
    start = jnp.zeros(n).at[0].set(0.6).at[1].set(0.8)

    def one(key, steps):
        return online_sgd.spherical(
            key, start, online_sgd.pca_loss, lambda key: online_sgd.pca_sample(key, SIGNAL, direction), STEP,
            [0, steps], lambda x: x[0],
        )  # fmt: skip

    return compiled(one, generator, seeds)


def samples_alone(n: int, generator: str, seeds: int = 1):
    """The same samples in the same loop, each multiplied by a vector and forgotten."""
    direction, weights = jnp.zeros(n).at[0].set(1.0), jnp.zeros(n).at[0].set(0.6).at[1].set(0.8)

    def one(key, steps):
        return online_sgd.euclidean(
            key, jnp.zeros(()), lambda a, y: a * (weights @ y),
            lambda key: online_sgd.pca_sample(key, SIGNAL, direction), 1e-9, [0, steps], lambda a: a,
        )  # fmt: skip

    return compiled(one, generator, seeds)


def compiled(one, generator: str, seeds: int):
    keys = jax.random.split(jax.random.key(0, impl=generator), seeds)
    body = jax.jit(jax.vmap(one, in_axes=(0, None)) if seeds > 1 else one, static_argnums=1)
    return lambda steps: jax.block_until_ready(body(keys if seeds > 1 else keys[0], steps))


def numpy_loop(n: int, steps: int) -> None:
    rng, precision = np.random.default_rng(0), np.dtype(PRECISION).type
    x = np.zeros(n, precision)
    x[0], x[1] = 0.6, 0.8
    for _ in range(steps):
        y = rng.standard_normal(n, dtype=precision)
        y[0] *= precision((1 + SIGNAL) ** 0.5)
        z = x @ y
        x = x + precision(2 * STEP / n) * z * (y - z * x)
        x /= np.linalg.norm(x)


def torch_python() -> str | None:
    """An interpreter with PyTorch: this one, or the environment made on first use; None where there is none."""
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    python = environment("torch", "torch==2.13.0", "numpy")
    return None if python is None else str(python)


def torch_steps_per_second(python: str, n: int, steps: int) -> float:
    command = [python, "-c", TORCH_LOOP, str(n), str(steps), PRECISION]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def seconds(function, steps: int) -> float:
    clock = time.process_time if jax.default_backend() == "cpu" else time.perf_counter
    began = clock()
    function(steps)
    return clock() - began


def steps_per_second(function, steps: int) -> float:
    """The best of a few runs, after one that compiles and warms up."""
    function(steps)
    return steps / min(seconds(function, steps) for _ in range(REPEATS))


def direct() -> None:
    cpu = jax.default_backend() == "cpu"
    python = torch_python()
    if python is None:
        print("PyTorch could not be installed into .peers/torch and is skipped")
    print(f"spherical online PCA on {jax.devices()[0].device_kind}, {PRECISION}, microseconds of a step")
    for n in DIMENSIONS:
        steps = max(200, (10_000_000 if cpu else 20_000_000) // n)
        runs = {"NumPy": lambda count, n=n: numpy_loop(n, count)}
        for kind in GENERATORS:
            runs |= {kind: ours(n, kind), f"{kind}: samples alone": samples_alone(n, kind)}
        for run in runs.values():
            run(steps)
        times: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(TURNS):
            for name, run in runs.items():
                times[name].append(seconds(run, steps) / steps)
        if python is not None:
            times["PyTorch"] = [1 / torch_steps_per_second(python, n, steps) for _ in range(TURNS)]
        for name, found in times.items():
            print(f"{n:>8} {name:<30} {1e6 * min(found):10.2f}", flush=True)
        what = f"one-pass SGD, {PRECISION}"
        grow("online_sgd", what, "N", n, seconds=min(times[GENERATORS[0]]))
        for peer in ("NumPy", "PyTorch"):
            if peer in times:
                compare("online_sgd", what, f"{peer} loop", times[GENERATORS[0]], times[peer], size=n, of="N")
        floor = times[f"{GENERATORS[0]}: samples alone"]
        compare("online_sgd", what, "drawing its samples alone", times[GENERATORS[0]], floor, size=n, of="N")


def many_seeds(seeds: int = 256) -> None:
    cpu = jax.default_backend() == "cpu"
    print(f"{seeds} seeds at once against 1: seed-steps per second")
    print(f"{'N':>8} {'generator':>13} {'1 seed':>12} {'all':>12} {'their floor':>12}")
    for n in DIMENSIONS[:2] if cpu else DIMENSIONS:
        steps = 20 if cpu else 300
        for generator in GENERATORS:
            one = steps_per_second(ours(n, generator), 10 * steps)
            together = seeds * steps_per_second(ours(n, generator, seeds), steps)
            floor = seeds * steps_per_second(samples_alone(n, generator, seeds), steps)
            print(f"{n:>8} {generator:>13} {one:12.0f} {together:12.0f} {floor:12.0f}   {together / one:.1f} x 1 seed",
                  flush=True)  # fmt: skip


def reduced(chains: int = 1000, steps: int = 500) -> None:
    print(f"reduced chains of online PCA, exact at every N: chain-steps per second, {chains} chains side by side")
    keys = jax.random.split(jax.random.key(0), chains)
    rates = {}
    for n in (1_000, 100_000_000):

        def path(key, n=n):
            model = reduced_chains.online_pca(n, SIGNAL)
            samples = model.samples(key, (steps,))
            return reduced_chains.spherical_path(model, samples, jnp.asarray(0.2), STEP, [steps])[-1]

        many = jax.jit(jax.vmap(path))
        rates[n] = chains * steps_per_second(lambda _, many=many: jax.block_until_ready(many(keys)), steps)
    for n, rate in rates.items():
        print(f"{n:>10} {rate:12.0f}   {rate / rates[1_000]:.2f} x N = 1000")


def main() -> None:
    direct()
    many_seeds()
    reduced()


if __name__ == "__main__":
    main()
