"""Infinite-width kernels: deeplimits against neural-tangents, and against what the machine can do.

    python -m benchmarks kernels

NNGP and NTK together of fully connected ReLU and erf networks, 3 and 10 hidden layers, C_w = 2 (1 at the output), C_b
= 0.01, inputs in dimension 256, float64. On a CPU the peer runs in the same minutes, turn by turn, in an environment
of its own; medians of the turns are compared, in seconds of the processors, which other work on the machine does not
change much. The error of each is that of its ReLU NTK at nearly coinciding inputs
against 60-digit arithmetic. Peak memory is that of a fresh process. On a GPU there is no peer: the time stands beside
the floor, the largest of the time to write the two matrices at the measured copy bandwidth, of one angle for each pair
and layer at the best measured rate, and of the matrix product at its measured rate.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

from benchmarks._peers import environment
from benchmarks._report import compare, grow

DIMENSION = 256
NETS = [("relu", 3), ("relu", 10), ("erf", 3), ("erf", 10)]
SIZES = (1000, 2000, 4000)
GPU_SIZES = (4000, 20_000, 50_000)
MACHINE = {"matrix": 20_000, "product": 8192, "angles": 2**27}
"""How large what measures a GPU is."""
TURNS = 3
PEER = (
    "neural-tangents==0.6.5",
    "jax==0.4.23",
    "jaxlib==0.4.23",
    "numpy<2",
    "scipy<1.13",
    "tf2jax==0.3.6",
)

# Runs in the peer's environment: one line in (activation, layers, n), one line out (seconds).
SERVER = """
import json, sys, time, functools
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp, numpy as np
from neural_tangents import stax
@functools.cache
def kernel(activation, layers):
    nonlinear = {"relu": stax.Relu, "erf": stax.Erf}[activation]
    parts = []
    for layer in range(layers):
        parts += [stax.Dense(1, W_std=2 ** 0.5, b_std=0.1), nonlinear()]
    _, _, kernel_fn = stax.serial(*parts, stax.Dense(1, W_std=1.0, b_std=0.1))
    return jax.jit(lambda x: kernel_fn(x, None, ("nngp", "ntk")))
for line in sys.stdin:
    activation, layers, n, entry = json.loads(line)
    x = np.random.default_rng(0).standard_normal((n, 256)) if n else np.array(entry)
    begin = time.process_time()
    found = kernel(activation, layers)(jnp.asarray(x))
    found.ntk.block_until_ready()
    seconds = time.process_time() - begin
    print(json.dumps([seconds, float(found.ntk[0, 1])]), flush=True)
"""


def network(activation: str, layers: int):
    from deeplimits.models.architectures import FullyConnected
    from deeplimits.theory.kernels import InfiniteWidth

    return InfiniteWidth(FullyConnected(layers, activation, [2.0] * layers + [1.0], 0.01))


def ours(activation: str, layers: int, n: int) -> float:
    import jax

    x = jax.numpy.asarray(np.random.default_rng(0).standard_normal((n, DIMENSION)))
    begin = time.process_time()
    jax.block_until_ready(network(activation, layers).kernels(x))
    return time.process_time() - begin


class Peer:
    """neural-tangents in its own process."""

    def __init__(self, python):
        self.process = subprocess.Popen(
            [str(python), "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, activation: str, layers: int, n: int, entry=None) -> tuple[float, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([activation, layers, n, entry]) + "\n")
        self.process.stdin.flush()
        seconds, value = json.loads(self.process.stdout.readline())
        return seconds, value


def peak_memory(activation: str, layers: int, n: int) -> float:
    """Gigabytes at the peak of a fresh process that computes these kernels and nothing else."""
    code = f"from benchmarks.kernels import memory_of; memory_of({activation!r}, {layers}, {n})"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    return float(answer.stdout.split()[-1]) if answer.returncode == 0 else float("nan")


def memory_of(activation: str, layers: int, n: int) -> None:
    ours(activation, layers, n)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)


def exact_ntk(x, y, layers: int):
    """The ReLU NTK in 60-digit arithmetic."""
    import mpmath

    with mpmath.workdps(60):
        bias = mpmath.mpf(0.01)
        rows = [[mpmath.mpf(float(v)) for v in row] for row in (x, y)]

        def first(u, v):
            return 2 * mpmath.fsum(p * q for p, q in zip(u, v, strict=True)) / len(u) + bias

        a, b, c = first(rows[0], rows[0]), first(rows[1], rows[1]), first(*rows)
        tangent = c
        for layer in range(layers):
            weight = 2 if layer < layers - 1 else 1
            theta = mpmath.atan2(mpmath.sqrt(max(a * b - c * c, mpmath.mpf(0))), c)
            value = mpmath.sqrt(a * b) * (mpmath.sin(theta) + (mpmath.pi - theta) * mpmath.cos(theta)) / (2 * mpmath.pi)
            slope = (mpmath.pi - theta) / (2 * mpmath.pi)
            a, b, c = weight * a / 2 + bias, weight * b / 2 + bias, weight * value + bias
            tangent = c + weight * slope * tangent
        return tangent


def accuracy(peer: "Peer | None") -> None:
    rng = np.random.default_rng(1)
    base, direction = rng.standard_normal((2, DIMENSION))
    direction /= np.linalg.norm(direction)
    print(
        f"{'layers':>6} {'distance':>9} {'error, deeplimits':>18} {'error, neural-tangents':>23}   (relative, ReLU NTK)"
    )
    for layers in (3, 10):
        for distance in (0.0, 1e-10, 1e-8, 1e-6, 1e-4, 1.0):
            pair = np.stack([base, base + distance * direction])
            exact = exact_ntk(*pair, layers)
            own = float(abs(float(network("relu", layers).ntk(pair)[0, 1]) / exact - 1))
            other = (
                f"{float(abs(peer.ask('relu', layers, 0, pair.tolist())[1] / exact - 1)):23.1e}" if peer else " " * 23
            )
            print(f"{layers:>6} {distance:>9.0e} {own:>18.1e} {other}", flush=True)


def on_cpu() -> None:
    python = environment("neural-tangents", *PEER)
    peer = Peer(python) if python else None
    accuracy(peer)
    print(f"\n{'network':<10} {'n':>6} {'deeplimits s':>13} {'neural-tangents s':>18} {'ratio':>6}")
    for activation, layers in NETS:
        for n in SIZES:
            ours(activation, layers, n)  # compilation is not timed
            if peer:
                peer.ask(activation, layers, n)
            turns = [
                (ours(activation, layers, n), peer.ask(activation, layers, n)[0] if peer else float("nan"))
                for _ in range(TURNS)
            ]
            own, other = (statistics.median(column) for column in zip(*turns, strict=True))
            what = f"{activation} NNGP and NTK, {layers} hidden layers, d = 256"
            grow("kernels", what, "n", n, seconds=own)
            if peer:
                compare("kernels", what, "neural-tangents", *zip(*turns, strict=True), size=n)
            print(f"{activation:<6} {layers:>3} {n:>6} {own:>13.3f} {other:>18.3f} {other / own:>6.1f}", flush=True)
    print(f"\npeak memory, relu 10, n = 4000: {peak_memory('relu', 10, 4000):.2f} GB (the two matrices: 0.26 GB)")
    begin = time.perf_counter()
    peak = peak_memory("relu", 10, 20_000)
    print(
        f"n = 20000: {peak:.1f} GB at the peak (the two matrices: 6.4 GB), {time.perf_counter() - begin:.0f} s in all"
    )


def on_gpu() -> None:
    import jax
    import jax.numpy as jnp

    from deeplimits.theory.gaussian.angles import angles

    def turns(run, repeat=5):
        jax.block_until_ready(run())
        found = []
        for _ in range(repeat):
            begin = time.perf_counter()
            jax.block_until_ready(run())
            found.append(time.perf_counter() - begin)
        return found

    def fastest(step, *given):
        step = jax.jit(step)
        return min(turns(lambda: step(*given)))

    side = MACHINE["matrix"]
    block = jnp.ones((side, side))
    copies = 2 * block.nbytes / fastest(lambda block: block + 1.0, block)
    del block
    square = jnp.ones((MACHINE["product"],) * 2)
    rate = 2 * MACHINE["product"] ** 3 / fastest(lambda a: a @ a, square)
    del square
    gaps = jnp.linspace(0.01, 1.99, MACHINE["angles"])
    ways = {
        "polynomials": lambda gap: angles(gap, 2 - gap).theta,
        "arctan2": lambda gap: jnp.arctan2(jnp.sqrt(gap * (2 - gap)), 1 - gap),
        "arccos": lambda gap: jnp.arccos(1 - gap),
    }
    each = {name: len(gaps) / fastest(way, gaps) for name, way in ways.items()}
    del gaps
    said = ", ".join(f"{name} {value / 1e9:.0f} G/s" for name, value in each.items())
    device = jax.devices()[0].device_kind
    print(f"{device}: copies {copies / 1e9:.0f} GB/s, float64 products {rate / 1e12:.1f} Tflop/s, angles: {said}")
    print(f"{'network':<10} {'n':>6} {'seconds':>9} {'floor':>8} {'ratio':>6}")
    for activation, layers in NETS:
        for n in GPU_SIZES:
            x = jnp.asarray(np.random.default_rng(0).standard_normal((n, DIMENSION)))
            net = network(activation, layers)
            own = turns(lambda net=net, x=x: net.kernels(x), repeat=3)
            parts = {
                "writing": 2 * 8 * n**2 / copies,
                "angles": layers * n**2 / 2 / max(each.values()),
                "the product": n**2 * DIMENSION / rate,
            }
            largest = max(parts, key=parts.__getitem__)
            floor, took = parts[largest], statistics.median(own)
            what = f"{activation} NNGP and NTK, {layers} hidden layers, d = {DIMENSION}, float64"
            grow("kernels", what, "n", n, seconds=took)
            note = f"{took:.3g} s, floor {floor:.3g} s: {largest}"
            compare("kernels", what, "the machine's floor", own, [floor] * len(own), size=n, note=note)
            print(f"{activation:<6} {layers:>3} {n:>6} {took:>9.4f} {floor:>8.4f} {took / floor:>6.1f}", flush=True)


def main() -> None:
    import jax

    import deeplimits  # noqa: F401  float64 is turned on

    (on_gpu if jax.default_backend() == "gpu" else on_cpu)()


if __name__ == "__main__":
    main()
