"""Online SGD: steps per second against a NumPy loop, a PyTorch loop and the floor of drawing the samples alone.

Spherical online PCA, −⟨x, Y⟩², one fresh Gaussian sample a step, in single precision. Nearly all of the time is random
numbers, so the generator is what there is to choose: JAX's default, threefry, computes some twenty rounds of integer
arithmetic for each number; "rbg" leaves the bits to the generator built into the compiler. On a CPU threefry is the
faster of the two, and it is the one whose numbers do not depend on batching, so the library stays with it; on another
device the table below decides.

The first part needs JAX alone, and PyTorch where it is installed; it also runs on a GPU. The reduced chains need
deeplimits.
"""

import importlib.util
import time

import jax
import jax.numpy as jnp
import numpy as np

SIGNAL, STEP = 1.0, 0.3
DIMENSIONS = (1_000, 10_000, 100_000)


def sgd(key, start, steps: int):
    """The correlation after so many steps; the signal is the first axis."""
    n = start.shape[0]
    boost = (1 + SIGNAL) ** 0.5

    def one(i, x):
        y = jax.random.normal(jax.random.fold_in(key, i), (n,), dtype=jnp.float32)
        y = y.at[0].multiply(boost)
        z = x @ y
        moved = x + (2 * STEP / n) * z * (y - z * x)
        return moved / jnp.linalg.norm(moved)

    return jax.lax.fori_loop(0, steps, one, start)[0]


def draw_only(key, start, steps: int):
    """The same samples, drawn and summed."""
    n = start.shape[0]

    def one(i, total):
        return total + jax.random.normal(jax.random.fold_in(key, i), (n,), dtype=jnp.float32)

    return jax.lax.fori_loop(0, steps, one, start)[0]


def numpy_loop(n: int, steps: int) -> None:
    rng = np.random.default_rng(0)
    x = np.zeros(n, np.float32)
    x[0], x[1] = 0.6, 0.8
    for _ in range(steps):
        y = rng.standard_normal(n, dtype=np.float32)
        y[0] *= np.float32((1 + SIGNAL) ** 0.5)
        z = x @ y
        x = x + (2 * STEP / n) * z * (y - z * x)
        x /= np.linalg.norm(x)


def torch_loop(n: int, steps: int) -> None:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.zeros(n, device=device)
    x[0], x[1] = 0.6, 0.8
    for _ in range(steps):
        y = torch.randn(n, device=device)
        y[0] *= (1 + SIGNAL) ** 0.5
        z = x @ y
        x = x + (2 * STEP / n) * z * (y - z * x)
        x = x / torch.linalg.vector_norm(x)
    float(x[0])  # waits for the device


def steps_per_second(function, steps: int, repeats: int = 3) -> float:
    """The best of a few runs, after one that compiles and warms up."""
    function(steps)
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        function(steps)
        times.append(time.perf_counter() - began)
    return steps / min(times)


def compiled(function, n: int, generator: str, seeds: int = 1):
    """A compiled loop over steps, for one seed or for many side by side."""
    start = jnp.zeros(n, jnp.float32).at[0].set(0.6).at[1].set(0.8)
    keys = jax.random.split(jax.random.key(0, impl=generator), seeds)
    body = jax.jit(jax.vmap(function, in_axes=(0, None, None)) if seeds > 1 else function, static_argnums=2)
    return lambda steps: jax.block_until_ready(body(keys if seeds > 1 else keys[0], start, steps))


def direct() -> None:
    backend = jax.default_backend()
    with_torch = importlib.util.find_spec("torch") is not None
    print(f"spherical online PCA on {backend}, steps per second")
    print(
        f"{'N':>8} {'generator':>10} {'SGD':>10} {'samples alone':>14} {'of floor':>9} {'NumPy':>10} "
        f"{'PyTorch':>10} ratios"
    )
    for n in DIMENSIONS:
        steps = max(100, 10_000_000 // n if backend == "cpu" else 20_000_000 // n)
        peers = {"NumPy": steps_per_second(lambda count, n=n: numpy_loop(n, count), steps)}
        if with_torch:
            peers["PyTorch"] = steps_per_second(lambda count, n=n: torch_loop(n, count), steps)
        for generator in ("threefry2x32", "rbg"):
            ours = steps_per_second(compiled(sgd, n, generator), steps)
            floor = steps_per_second(compiled(draw_only, n, generator), steps)
            shown = " ".join(f"{peers[name]:10.0f}" if name in peers else f"{'-':>10}" for name in ("NumPy", "PyTorch"))
            ratios = ", ".join(f"{ours / rate:.2f} x {name}" for name, rate in peers.items())
            print(f"{n:>8} {generator:>10.10} {ours:10.0f} {floor:14.0f} {ours / floor:9.2f} {shown} {ratios}")


def many_seeds(seeds: int = 256) -> None:
    print(f"{seeds} seeds at once against 1, on {jax.default_backend()}: seed-steps per second")
    for n in (1_000, 10_000) if jax.default_backend() == "cpu" else DIMENSIONS:
        steps = 20 if jax.default_backend() == "cpu" else 300
        for generator in ("threefry2x32", "rbg"):
            one = steps_per_second(compiled(sgd, n, generator), 10 * steps)
            all_of_them = seeds * steps_per_second(compiled(sgd, n, generator, seeds), steps)
            print(f"{n:>8} {generator:>13} {one:12.0f} {all_of_them:12.0f}   {all_of_them / one:6.1f} x")


def reduced() -> None:
    if importlib.util.find_spec("deeplimits") is None:
        print("reduced chains: deeplimits is not installed here")
        return
    from deeplimits.ensembles import reduced_chains

    print("reduced chains of online PCA, exact at every N: chain-steps per second, 1000 chains side by side")
    keys = jax.random.split(jax.random.key(0), 1000)
    rates = {}
    for n in (1_000, 100_000_000):

        def step(key, m, n=n):
            return reduced_chains.spherical_step(m, reduced_chains.pca_gradient(key, m, n, SIGNAL), n, STEP)

        many = jax.jit(jax.vmap(lambda key, step=step: reduced_chains.run(step, key, jnp.asarray(0.2), 1, 500)))
        rates[n] = 1000 * steps_per_second(lambda steps, many=many: jax.block_until_ready(many(keys)), 500)
        print(f"{n:>10} {rates[n]:12.0f}")
    first, last = rates.values()
    print(f"N = 10^8 at {last / first:.2f} x the speed of N = 10^3")


def main() -> None:
    direct()
    many_seeds()
    reduced()


if __name__ == "__main__":
    main()
