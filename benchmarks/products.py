"""Products with the Hessian of a network: deeplimits beside PyTorch's own double backward, on a CPU or a GPU.

    python -m benchmarks products

Networks 64-w-w-10 with tanh and a cross-entropy, 10⁴ to 10⁷ parameters, float32, the same weights and data for
everyone. The peers are what one writes by hand in PyTorch: the gradient with `create_graph`, then its product with v
differentiated, anew for each product or with the graph kept from product to product. deeplimits takes and returns NumPy
vectors, as an operator of SciPy does, and the peers tensors that stay where they are: the way to and from the device
counts for us. Everyone runs turn by turn in one process. The error is that of one product against float64; the rate
counts twelve operations for each parameter and sample, which a product with the Hessian needs.
"""

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._report import compare, grow

WIDTHS = (64, 280, 960, 3100)
CLASSES = 10


def arrays(width: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [(64, width), (width, width), (width, CLASSES)]
    return [rng.normal(size=shape) / shape[0] ** 0.5 for shape in shapes]


def of_jax(weights: list[np.ndarray], x: np.ndarray, y: np.ndarray, precision: str) -> Callable[[np.ndarray], Any]:
    import jax
    import jax.numpy as jnp

    from deeplimits.measure import curvature
    from deeplimits.measure.adapters import open_model

    def apply(p, x):
        return jnp.tanh(jnp.tanh(x @ p[0]) @ p[1]) @ p[2]

    def loss(z, y):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], 1))

    kind = np.dtype(precision)
    parameters = [jnp.asarray(one, kind) for one in weights]
    matrix = curvature.hessian(
        open_model(apply, loss, (x.astype(kind), y), parameters=parameters, precision=precision, chunk=len(x))
    )
    return lambda v: matrix @ v


def of_torch(weights: list[np.ndarray], x: np.ndarray, y: np.ndarray, device: str) -> dict[str, Any]:
    """deeplimits over the PyTorch network, and the two peers."""
    import torch

    from deeplimits.measure import curvature
    from deeplimits.measure.adapters import open_model

    def layer(weight: np.ndarray) -> Any:
        made = torch.nn.Linear(*weight.shape, bias=False)
        made.weight.data = torch.tensor(weight.T, dtype=torch.float32)
        return made

    parts = [[layer(weight), torch.nn.Tanh()] for weight in weights]
    net = torch.nn.Sequential(*[part for pair in parts for part in pair][:-1]).to(device)
    inputs, labels = torch.tensor(x, dtype=torch.float32, device=device), torch.tensor(y, device=device)
    loss, parameters = torch.nn.CrossEntropyLoss(), list(net.parameters())
    matrix = curvature.hessian(open_model(net, loss, (inputs, labels), chunk=len(x)))

    def gradient():
        return torch.autograd.grad(loss(net(inputs), labels), parameters, create_graph=True)

    def times(slopes, v, keep: bool):
        return torch.autograd.grad(slopes, parameters, grad_outputs=v, retain_graph=keep)

    def finish(found):
        if device == "cuda":
            torch.cuda.synchronize()
        return found

    kept = gradient()
    return {
        "deeplimits, of PyTorch": lambda v: matrix @ v,
        "PyTorch, anew": lambda v: finish(times(gradient(), v, False)),
        "PyTorch, graph kept": lambda v: finish(times(kept, v, True)),
    }


def split(v: np.ndarray, weights: list[np.ndarray]) -> list[np.ndarray]:
    ends = np.cumsum([one.size for one in weights])[:-1]
    return [part.reshape(one.shape) for part, one in zip(np.split(v, ends), weights, strict=True)]


def error(found: Any, exact: np.ndarray, weights: list[np.ndarray]) -> float:
    if not isinstance(found, np.ndarray):
        found = np.concatenate([part.detach().cpu().numpy().T.ravel() for part in found])
    elif found.shape == exact.shape and np.linalg.norm(found - exact) > 0.1 * np.linalg.norm(exact):
        # PyTorch keeps a layer's weights transposed.
        shapes = [one.T.shape for one in weights]
        ends = np.cumsum([one.size for one in weights])[:-1]
        parts = zip(np.split(found, ends), shapes, strict=True)
        found = np.concatenate([part.reshape(shape).T.ravel() for part, shape in parts])
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def main() -> None:
    import jax

    try:
        import torch
    except ImportError:
        print("PyTorch is not installed, and this benchmark is skipped: pip install torch")
        return
    device = "cuda" if jax.default_backend() == "gpu" and torch.cuda.is_available() else "cpu"
    clock = time.perf_counter if device == "cuda" else time.process_time
    samples = 50_000 if device == "cuda" else 1000
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(samples, 64)), rng.integers(0, CLASSES, samples)
    print(f"{jax.devices()[0].device_kind}, {samples:,} samples, float32")
    print(f"{'parameters':>10}  {'':<24} {'products/s':>10} {'of PyTorch, anew':>17} {'TFLOP/s':>8} {'error':>8}")
    for width in WIDTHS if device == "cuda" else WIDTHS[:3]:
        weights = arrays(width)
        size = sum(one.size for one in weights)
        v = rng.normal(size=size)
        turned = np.concatenate([part.T.ravel() for part in split(v, weights)])
        tensors = [torch.tensor(part.T, dtype=torch.float32, device=device) for part in split(v, weights)]
        exact = np.asarray(of_jax(weights, x, y, "float64")(v))
        runs: dict[str, tuple[Callable[[Any], Any], Any]] = {
            "deeplimits, of JAX": (of_jax(weights, x.astype(np.float32), y, "float32"), v),
        }
        for name, run in of_torch(weights, x, y, device).items():
            runs[name] = (run, turned if name.startswith("deeplimits") else tensors)
        errors = {name: error(run(vector), exact, weights) for name, (run, vector) in runs.items()}
        for run, vector in runs.values():
            run(vector)
        times: dict[str, list[float]] = {name: [] for name in runs}
        for _, (name, (run, vector)) in itertools.product(range(7), runs.items()):
            begin = clock()
            run(vector)
            times[name].append(clock() - begin)
        for ours, peer in itertools.product(list(times)[:2], list(times)[2:]):
            what = f"product with a Hessian, {ours.partition(', ')[2]}, float32"
            compare("products", what, peer, times[ours], times[peer], size=size, of="parameters")
        for name, found in times.items():
            grow("products", name, "parameters", size, seconds=statistics.median(found))
            took = statistics.median(found)
            beside = statistics.median(peer / own for peer, own in zip(times["PyTorch, anew"], found, strict=True))
            rate = 12 * size * samples / took / 1e12
            print(
                f"{size:>10,}  {name:<24} {1 / took:>10.1f} {beside:>17.2f} {rate:>8.2f} {errors[name]:>8.1e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
