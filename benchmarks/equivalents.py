"""Deterministic equivalents against forming the kernel exactly; compressed networks against dense ones.

    python -m benchmarks equivalents

The first table: CPU seconds and memory of the conjugate kernel of a ReLU layer on n points in dimension p = 400, formed
exactly (in tiles, entry by entry), against the parts of its equivalent and the solution of (K̃ + λ)a = y, which needs no
n × n matrix. The second: operator norm of kernel less equivalent over the dimension, n = p, for mixtures that
differ in mean, size and shape of the covariance, with the fitted power of p; and, relative to the centred kernel, on
scikit-learn's digits and breast cancer data. The third: a network compressed to ternary weights and three levels of
activation on digits, at sparsity 0, 0.5 and 0.9: accuracy, bytes, and CPU seconds of its features for 1,000 inputs.
Times are CPU seconds of this process, so that other load does not count. The first and the third go to the page too.
"""

import statistics

import jax
import jax.numpy as jnp
import numpy as np
from sklearn import datasets

from benchmarks._report import compare, grow
from benchmarks._timing import in_turns
from deeplimits.diagnosis import compress
from deeplimits.ensembles import class_mixtures
from deeplimits.ensembles.few_level_networks import unpacked_features
from deeplimits.models.architectures import FullyConnected
from deeplimits.theory import kernels, mixtures

SIZES = (2500, 5000, 10_000)
DIMENSIONS = (50, 100, 200, 400)
WIDTH = 1000
RIDGE = 0.1


def drawn(n: int, p: int, seed: int):
    """Points of two classes that differ in mean, size and shape, and their mixture."""
    numbers = jax.random.normal(jax.random.key(seed), (n, p))
    found = class_mixtures.contrasted_classes(numbers, jnp.asarray(3.0), jnp.asarray(1.0), jnp.asarray(0.3))
    covariances = np.asarray(found.variances)[:, :, None] * np.eye(p)
    return np.asarray(found.x), np.asarray(found.labels), mixtures.gaussian_mixture(found.means, covariances)


def forming(sizes: tuple[int, ...]) -> None:
    wide = kernels.InfiniteWidth(FullyConnected(1, "relu"))
    what = "kernel of a ReLU layer on a mixture, p = 400, estimated and solved"
    print("     n   exact kernel s   its bytes   equivalent, estimated and solved s   its bytes   ratio")
    for n in sizes:
        x, labels, _ = drawn(n, 400, 0)
        y = np.where(labels == 0, 1.0, -1.0)[:, None]
        points = jnp.asarray(x)

        def whole(points=points):
            return jax.block_until_ready(wide.nngp(points))

        def parts(x=x, labels=labels, y=y):
            found = mixtures.conjugate_kernel_equivalent("relu", mixtures.kernel_data(x, labels))
            return jax.block_until_ready(found.solve(y, RIDGE))

        ours, exact = in_turns(parts, whole)
        size = mixtures.conjugate_kernel_equivalent("relu", mixtures.kernel_data(x, labels)).factor.nbytes
        note = f"{size / 1e6:,.0f} MB instead of {8 * n * n / 1e6:,.0f}"
        compare("equivalents", what, "forming it exactly", ours, exact, size=n, of="n", note=note)
        for name, seconds in ((what, ours), ("the same kernel, formed exactly", exact)):
            grow("equivalents", name, "n", n, seconds=statistics.median(seconds))
        print(
            f"{n:>6}   {statistics.median(exact):>14.2f}   {8 * n * n:>9.1e}   {statistics.median(ours):>34.2f}   "
            f"{size:>9.1e}   {statistics.median(exact) / statistics.median(ours):>5.1f}",
            flush=True,
        )


def gap(kind: str, x, data) -> tuple[float, float]:
    """Operator norm of P(K − K̃)P and of PKP for one of the kernels of this room."""
    if kind == "implicit ReLU":
        found = mixtures.equilibrium_coefficients("relu", 0.5, 1.0, data.variance)
        kernel, numbers = (
            mixtures.equilibrium_kernels("relu", 0.5, 1.0, x, mean=float(found.mean)).conjugate,
            found.conjugate,
        )
    else:
        layers, tangent = (["relu"], False) if kind == "ReLU" else (["relu"] * 2, kind.endswith("tangent"))
        found = mixtures.deep_coefficients(layers, data.variance)
        kernel = mixtures.centred_kernel(layers, x, data.variance, tangent=tangent)
        numbers = (found.tangent if tangent else found.conjugate)[-1]
    kernel, other = np.asarray(kernel), np.asarray(mixtures.equivalent_kernel(numbers, data).matrix())
    return tuple(
        float(np.linalg.norm(one - one.mean(axis=0) - one.mean(axis=1)[:, None] + one.mean(), 2))
        for one in (kernel - other, kernel)
    )


def distance_gap(kind: str, x, data, mixture) -> tuple[float, float]:
    """Operator norm of K − K̃ and of PKP for a kernel of distances, or of inner products."""
    square = np.sum(x**2, axis=1)
    inner = x @ x.T / x.shape[1]
    if kind == "heat kernel":
        kernel = np.exp(-np.maximum((square[:, None] + square) / x.shape[1] - 2 * inner, 0.0) / 2)
        np.fill_diagonal(kernel, 1.0)
        other = mixtures.linearized_distance_kernel(lambda t: jnp.exp(-t / 2), data, mixture)
    else:
        kernel = np.exp(inner)
        other = mixtures.linearized_inner_kernel(jnp.exp, data)
    centred = kernel - kernel.mean(axis=0) - kernel.mean(axis=1)[:, None] + kernel.mean()
    return float(np.linalg.norm(kernel - np.asarray(other), 2)), float(np.linalg.norm(centred, 2))


def rates(dimensions: tuple[int, ...]) -> None:
    print("\nkernel                    " + "".join(f"   p = {p:<5}" for p in dimensions) + "   power of p")
    for kind in ("heat kernel", "exp of inner", "ReLU", "ReLU twice", "ReLU twice, tangent", "implicit ReLU"):
        gaps = []
        for p in dimensions:
            found = []
            for seed in range(4):
                x, labels, mixture = drawn(p, p, seed)
                data = mixtures.kernel_data(x, labels, mixture=mixture)
                plain = kind in ("heat kernel", "exp of inner")
                found.append((distance_gap(kind, x, data, mixture) if plain else gap(kind, x, data))[0])
            gaps.append(np.mean(found))
        power = np.polyfit(np.log(dimensions), np.log(gaps), 1)[0]
        print(f"{kind:<26}" + "".join(f"   {one:<9.4f}" for one in gaps) + f"   {power:.2f}", flush=True)


def real(name: str, columns: float, seed: int = 0):
    """Digits 0 and 1, or breast cancer with columns of unit variance and rows of one length; a share of the columns."""
    x, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    x, labels = x[labels < 2][:360], labels[labels < 2][:360]
    x = x[:, np.ptp(x, axis=0) > 0]
    order = np.random.default_rng(seed).permutation(x.shape[1])
    x = x[:, order[: round(columns * x.shape[1])]]
    if name == "breast_cancer":
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return mixtures.standardized(x), labels


def real_data() -> None:
    print("\ndata            columns   effective dimension   |P(K - K~)P|/|PKP|, mean over 5 choices of columns")
    for name in ("digits", "breast_cancer"):
        for share in (0.25, 0.5, 1.0):
            found, effective = [], []
            for seed in range(5 if share < 1 else 1):
                x, labels = real(name, share, seed)
                spread = np.asarray(x).T @ np.asarray(x)
                effective.append(np.trace(spread) ** 2 / np.sum(spread**2))
                over, whole = gap("ReLU", x, mixtures.kernel_data(x, labels))
                found.append(over / whole)
            print(f"{name:<14}  {x.shape[1]:>7}   {np.mean(effective):>19.1f}   {np.mean(found):.3f}", flush=True)


def compressed() -> None:
    x, y = datasets.load_digits(return_X_y=True)
    inputs = np.asarray(x[:1000], np.float32)
    random = np.random.default_rng(0)
    dense = [random.standard_normal((WIDTH, before)).astype(np.float32) for before in (x.shape[1], WIDTH)]

    def run_dense():
        state = inputs.T
        for weight in dense:
            state = np.maximum(weight @ state, 0)
        return state

    print(f"\nsparsity   accuracy   dense random       bytes   dense bytes   features s   dense s   (widths {WIDTH})")
    for sparsity in (0.0, 0.5, 0.9):
        found = compress(FullyConnected(2, "relu"), x, y, widths=WIDTH, sparsity=sparsity)
        matrices = [layer.matrix() for layer in found.network.layers]

        def few(found=found, matrices=matrices):
            return unpacked_features(found.network, matrices, inputs)

        ours, usual = in_turns(few, run_dense, 9)
        accuracy, memory = found.accuracy, found.memory
        compare(
            "equivalents",
            f"features of 1,000 digits by a compressed network, {sparsity:.0%} zeros",
            "dense network in NumPy",
            ours,
            usual,
            size=WIDTH,
            of="width",
            note=f"{memory.compressed / 1e6:.2f} MB instead of {memory.original / 1e6:.2f}",
        )
        print(
            f"{sparsity:>8}   {accuracy.compressed:>8.4f}   {accuracy.dense:>12.4f}   {memory.compressed:>9,}"
            f"   {memory.original:>11,}   {statistics.median(ours):>10.3f}   {statistics.median(usual):>7.3f}",
            flush=True,
        )


def main(sizes: tuple[int, ...] = SIZES, dimensions: tuple[int, ...] = DIMENSIONS) -> None:
    compressed()
    rates(dimensions)
    real_data()
    forming(sizes)


if __name__ == "__main__":
    main()
