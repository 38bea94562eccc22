"""One step of attention for many tokens: tile by tile, beside naive full matrices and PyTorch's attention.

    python -m benchmarks attention

ẋ = P^⊥ softmax(β x xᵀ) x for n = 10³, 10⁴, 10⁵ unit tokens in dimension 128, float32, β = 2. On a CPU the peer,
`torch.nn.functional.scaled_dot_product_attention`, and the naive way (the n × n matrix, in PyTorch too; not at 10⁵,
where it takes 40 GB) run turn by turn with it in a process of their own, one thread each (JAX is told so before it
begins). What is compared is the processor time, in medians: on a machine that does other work too, the time on the
clock measures that work. PyTorch's attention does not project; that is not counted against it. Peak memory is that of a
fresh process, less what it took to load and compile everything. Growth is the exponent of the time between two sizes.
On a GPU the time stands beside that of the products alone, at the rate of a large product of the same precision, and
beside PyTorch's attention where PyTorch sees the GPU too, in the time of the clock.
"""

import math
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks._report import compare, grow

DIMENSION = 128
BETA = 2.0
SIZES = (1000, 10_000, 100_000)
TURNS = {1000: 25, 10_000: 5, 100_000: 1}
NAIVE_UP_TO = 10_000
PRODUCT = 8192
WAYS = ("deeplimits", "with weights", "PyTorch", "naive")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}


def tokens(n: int) -> np.ndarray:
    x = np.random.default_rng(0).standard_normal((n, DIMENSION)).astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def step(way: str, x: np.ndarray):
    """A function that takes one step and waits for it."""
    if way in ("deeplimits", "with weights"):
        import jax
        import jax.numpy as jnp

        from deeplimits.ensembles.transformers import AttentionLayer, blockwise_velocity

        places = jnp.asarray(x)
        eye = jnp.eye(DIMENSION, dtype=places.dtype)[None]
        # With weights, that happen to be the identity, no symmetry is used.
        layer = AttentionLayer(eye, eye) if way == "with weights" else None
        return lambda: jax.block_until_ready(blockwise_velocity(places, BETA, layer=layer))
    import torch

    torch.set_num_threads(1)
    y = torch.from_numpy(x)[None, None]
    if way == "PyTorch":
        return lambda: torch.nn.functional.scaled_dot_product_attention(y, y, y, scale=BETA)
    return lambda: torch.softmax(BETA * (y @ y.transpose(-1, -2)), -1) @ y


def seconds(run) -> float:
    return clocks(run)[0]


def clocks(run) -> tuple[float, float]:
    """Seconds on the clock, and of processors."""
    begin, busy = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - begin, time.process_time() - busy


def peak(way: str, n: int) -> float:
    """Gigabytes at the peak of a fresh process that takes one step."""
    code = f"from benchmarks.attention import memory_of; memory_of({way!r}, {n})"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    return float(answer.stdout.split()[-1]) if answer.returncode == 0 else math.nan


def memory_of(way: str, n: int) -> None:
    # Everything that is loaded and compiled is there before the step that counts.
    step(way, tokens(256))()
    before = highest()
    step(way, tokens(n))()
    print(highest() - before)


def highest() -> float:
    """Gigabytes of this process at its peak. What `getrusage` tells is inherited from the parent."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1e6


def on_cpu() -> None:
    heads = f"{'seconds':>9} {'processor':>10} {'of PyTorch':>11} {'growth':>7} {'peak GB':>8}"
    print(f"{'n':>7}  {'way':<13} {heads}", flush=True)
    last: dict[str, float] = {}
    for n in SIZES:
        x = tokens(n)
        ways = [way for way in WAYS if way != "naive" or n <= NAIVE_UP_TO]
        runs = {way: step(way, x) for way in ways}
        if TURNS[n] > 1:
            for run in runs.values():
                run()
        turns = [{way: clocks(run) for way, run in runs.items()} for _ in range(TURNS[n])]
        for way in ways:
            wall, busy = (statistics.median(turn[way][clock] for turn in turns) for clock in (0, 1))
            beside = statistics.median(turn[way][1] / turn["PyTorch"][1] for turn in turns)
            growth = f"{math.log10(busy / last[way]):.2f}" if way in last else ""
            last[way] = busy
            held = peak(way, n)
            row = f"{n:>7}  {way:<13} {wall:>9.4f} {busy:>10.4f} {beside:>11.2f} {growth:>7} {held:>8.3f}"
            print(row, flush=True)
            grow("attention", way, "n", n, seconds=busy, memory=None if math.isnan(held) else held)
        for peer in ways[2:]:
            columns = [[turn[way][1] for turn in turns] for way in ("deeplimits", peer)]
            compare("attention", "one step of attention, d = 128, float32", peer, *columns, size=n)


def on_accelerator() -> None:
    import jax
    import jax.numpy as jnp

    def turns(*runs, count: int = 5) -> list[list[float]]:
        """Seconds of each, turn by turn."""
        for run in runs:
            run()
        return [list(column) for column in zip(*([seconds(run) for run in runs] for _ in range(count)), strict=True)]

    a = jnp.asarray(np.random.default_rng(0).standard_normal((PRODUCT, PRODUCT)), jnp.float32)
    product = jax.jit(lambda a: jnp.matmul(a, a, precision="highest"))
    rate = 2 * PRODUCT**3 / min(turns(lambda: jax.block_until_ready(product(a)))[0])
    print(f"{jax.devices()[0].device_kind}: a float32 product of {PRODUCT} x {PRODUCT} at {rate / 1e12:.1f} TFLOP/s")
    beside = on_cuda()
    what = "one step of attention, d = 128, float32"
    for n in SIZES:
        x = tokens(n)
        peer = [run] if beside and (run := beside(x)) else []
        took = turns(*(step(way, x) for way in WAYS[:2]), *peer)
        for way, found in zip(WAYS[:2], took, strict=False):
            # What must be computed: with symmetry each score once, 2n²d/2 + 2n²d, else 4n²d.
            floor = (3 if way == "deeplimits" else 4) * n**2 * DIMENSION / rate
            task = what if way == "deeplimits" else f"{what}, with weights"
            grow("attention", way, "n", n, seconds=statistics.median(found))
            compare("attention", task, "its products alone", found, [floor] * len(found), size=n)
            if peer:
                compare("attention", task, "PyTorch", found, took[-1], size=n)


def on_cuda():
    """PyTorch's attention on the same device, in full single precision; None where PyTorch has none."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False

    def made(x: np.ndarray):
        y = torch.from_numpy(x).cuda()[None, None]

        def run():
            torch.nn.functional.scaled_dot_product_attention(y, y, y, scale=BETA)
            torch.cuda.synchronize()

        try:
            run()
        except torch.cuda.OutOfMemoryError:
            print(f"{len(x):>7}  PyTorch: not enough memory")
            return None
        return run

    return made


def main() -> None:
    import jax

    if jax.default_backend() == "cpu":
        try:
            import torch  # noqa: F401
        except ImportError:
            print("PyTorch is not installed, and this benchmark is skipped: pip install torch")
            return
        # JAX counts its threads once, when it begins.
        code = "from benchmarks.attention import on_cpu; on_cpu()"
        subprocess.run([sys.executable, "-c", code], env={**os.environ, **ONE_THREAD}, check=True)
    else:
        on_accelerator()


if __name__ == "__main__":
    main()
