"""Hessian spectra: deeplimits against PyHessian, curvlinops, hessian-eigenthings and matfree.

    python -m benchmarks curvature

Net A: 64-16-16-10, tanh, on 500 digits; its dense spectrum in float64 is the oracle. Net B: 784-512-512-10 on 2,000
digits enlarged to 28×28 with noise. Both are trained by Adam from a fixed seed to a small cross-entropy. Asked for are
the five largest eigenvalues of B, judged by products with the Hessian, CPU seconds (opening and compiling included) and
the largest relative error against float64; and the density of A from ten probes, judged by its Wasserstein distance to
the exact one. Defaults differ in what they deliver, so there are two more kinds of rows: peers at settings raised until
they are as exact as ours, or as far as they go, and ours lowered to what a peer's default delivers. Everyone runs
alike: a process and one thread of their own, imports not counted; on a GPU, which is given to JAX only, seconds are
those of the clock. Peers live in environments of their own under .peers/; what cannot be installed is skipped with a
sentence. Last comes how time and memory grow with parameters and samples.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks._peers import environment
from benchmarks._report import compare, grow
from benchmarks._timing import clock

COUNT, TOP = 5, 20
TURNS, LOOSE = 2, ", to 0.03"
ONCE = ("float64", "tolerance 1e-8", "50 steps", "45 steps", "100 probes")
"""Words of those who are asked once."""
LIMIT = 600
SIZES = {"A": (64, 16, 16, 10), "B": (784, 512, 512, 10)}
ALONE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PATH": "/usr/bin:/bin",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    # Where the driver of a GPU is, on machines that say it so.
    **{name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
}
TORCH_PEERS = ("torch==2.13.0", "pyhessian", "curvlinops-for-pytorch==3.0.1", "hessian-eigenthings", "scipy")

COMMON = """
import json, sys, time, warnings
import numpy as np
clock = getattr(time, sys.argv[3])
warnings.simplefilter("ignore")
data = np.load(sys.argv[1]); count = int(sys.argv[2])
def said(values, products, begin, **more):
    values = sorted(map(float, values), reverse=True)
    print(json.dumps({"values": values, "products": int(products), "seconds": clock() - begin, **more}))
"""
TORCH = """
import torch
torch.set_num_threads(1)
def net(name, sizes):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [torch.nn.Linear(a, b), torch.nn.Tanh()]
    made = torch.nn.Sequential(*layers[:-1])
    made.load_state_dict({k[2:]: torch.tensor(data[k]) for k in data.files if k.startswith(name + "_") and "." in k})
    return made
B = net("B", (784, 512, 512, 10)); xb, yb = torch.tensor(data["B_x"]), torch.tensor(data["B_y"])
A = net("A", (64, 16, 16, 10)); xa, ya = torch.tensor(data["A_x"]), torch.tensor(data["A_y"])
loss = torch.nn.CrossEntropyLoss()
"""
PYHESSIAN = """
from pyhessian import hessian
inner = sys.modules["pyhessian.hessian"]
made, real = [0], inner.hessian_vector_product
def counted(*arguments):
    made[0] += 1
    return real(*arguments)
inner.hessian_vector_product = counted
begin = clock()
H = hessian(B, loss, data=(xb, yb), cuda=False)
values, _ = H.eigenvalues(top_n=count, **given)
said(values, made[0], begin)
"""
EIGENTHINGS = """
from hessian_eigenthings import HessianOperator, lanczos, supervised_loss
begin = clock()
H = HessianOperator(B, [(xb, yb)], supervised_loss(loss))
found = lanczos(H, k=count, seed=0, **given)
said(found.eigenvalues, found.iterations, begin)
"""
MATFREE = """
import jax, jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from matfree import decomp
p = {k[2:]: jnp.asarray(data[k]) for k in data.files if k.startswith("B_") and "." in k}
x, y = jnp.asarray(data["B_x"]), jnp.asarray(data["B_y"])
flat, restore = ravel_pytree(p)
def loss(v, x, y):
    p = restore(v)
    for i in (0, 2):
        x = jnp.tanh(x @ p[f"{i}.weight"].T + p[f"{i}.bias"])
    z = x @ p["4.weight"].T + p["4.bias"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], 1))
def times(v, flat, x, y):
    return jax.jvp(lambda w: jax.grad(loss)(w, x, y), (flat,), (v,))[1]
begin = clock()
tridiag = decomp.tridiag_sym(steps, reortho="full")
@jax.jit
def run(v, flat, x, y):
    return tridiag(lambda u: times(u, flat, x, y), v)
found = run(jax.random.normal(jax.random.key(0), flat.shape), flat, x, y)
T = np.asarray(getattr(found, "J_small", found[1] if isinstance(found, tuple) else None))
if T.ndim != 2:
    a, b = found[1]
    T = np.diag(a) + np.diag(b, 1) + np.diag(b, -1)
said(np.linalg.eigvalsh(T.astype(float))[-count:], steps, begin)
"""
PEERS = {
    "curvlinops + eigsh": COMMON + TORCH + """
from curvlinops import HessianLinearOperator
from scipy.sparse.linalg import LinearOperator, eigsh
begin = clock()
H = HessianLinearOperator(B, loss, [p for p in B.parameters()], [(xb, yb)], check_deterministic=False)
H = H.to_scipy() if hasattr(H, "to_scipy") else H
made = [0]
def times(v):
    made[0] += 1
    return H @ v.astype(np.float32)
op = LinearOperator(H.shape, matvec=times, dtype=np.float32)
v0 = np.random.default_rng(0).standard_normal(H.shape[0]).astype(np.float32)
values = eigsh(op, k=count, which="LA", return_eigenvectors=False, v0=v0)
said(values, made[0], begin)
""",
    "PyHessian, default": COMMON + TORCH + "given = {}\n" + PYHESSIAN,
    "PyHessian, tolerance 1e-8": COMMON + TORCH + "given = {'tol': 1e-8, 'maxIter': 1000}\n" + PYHESSIAN,
    "hessian-eigenthings, default": COMMON + TORCH + "given = {}\n" + EIGENTHINGS,
    "hessian-eigenthings, 30 steps": COMMON + TORCH + "given = {'max_iter': 30, 'which': 'LA'}\n" + EIGENTHINGS,
    "hessian-eigenthings, 50 steps": COMMON + TORCH + "given = dict(max_iter=50, which='LA', tol=0.0)\n" + EIGENTHINGS,
    "matfree, 30 steps": COMMON + "steps = 30\n" + MATFREE,
    "matfree, 45 steps": COMMON + "steps = 45\n" + MATFREE,
}  # fmt: skip
BEFORE = """
sys.path[:0] = paths
from benchmarks.curvature import opened
from deeplimits.measure.adapters import open_model
from deeplimits.measure.curvature import eigenpairs, hessian, spectral_density
if framework == "torch":
    import torch
    import deeplimits.measure.adapters.torch_opening
    torch.set_num_threads(1)
else:
    import deeplimits.measure.adapters.with_jax
nets = {name: data[name] for name in data.files}
begin = clock()
"""
OURS = (
    COMMON
    + BEFORE
    + """
found = eigenpairs(hessian(opened(nets, "B", framework, precision)), count=count, **given)
said(found.values, found.products, begin)
"""
)
OUR_DENSITY = (
    COMMON
    + BEFORE
    + """
found = spectral_density(hessian(opened(nets, "A", framework, precision)), **given)
said(found.outliers, found.products, begin, nodes=found.nodes.tolist(), weights=found.weights.tolist())
"""
)
EIGENTHINGS_DENSITY = """
from hessian_eigenthings import HessianOperator, lanczos_tridiagonal, supervised_loss
begin = clock()
H = HessianOperator(A, [(xa, ya)], supervised_loss(loss))
nodes, weights = [], []
torch.manual_seed(0)
for probe in range(probes):
    found = lanczos_tridiagonal(H, torch.randn(H.size), 80)
    b = found.betas.double().numpy()[: len(found.alphas) - 1]
    theta, s = np.linalg.eigh(np.diag(found.alphas.double().numpy()) + np.diag(b, 1) + np.diag(b, -1))
    nodes.append(theta.tolist()); weights.append((s[0] ** 2).tolist())
said([], 80 * probes, begin, nodes=nodes, weights=weights)
"""
DENSITIES = {
    "PyHessian, its torch.eig put back": COMMON + TORCH + """
from pyhessian import hessian
def eig(matrix, eigenvectors):
    values, vectors = torch.linalg.eigh(matrix)
    return torch.stack([values, torch.zeros_like(values)], dim=1), vectors
torch.eig = eig  # PyPI's version needs what torch no longer has
begin = clock()
H = hessian(A, loss, data=(xa, ya), cuda=False)
nodes, weights = H.density(iter=80, n_v=10)
said([], 800, begin, nodes=np.real(np.array(nodes)).tolist(), weights=np.real(np.array(weights)).tolist())
""",
    "curvlinops": COMMON + TORCH + """
from curvlinops import HessianLinearOperator
from curvlinops.papyan2020traces.spectrum import fast_lanczos
begin = clock()
H = HessianLinearOperator(A, loss, [p for p in A.parameters()], [(xa, ya)], check_deterministic=False)
torch.manual_seed(0)
found = [fast_lanczos(H, 80) for probe in range(10)]
nodes, weights = [one[0].tolist() for one in found], [(one[1][0] ** 2).tolist() for one in found]
said([], 800, begin, nodes=nodes, weights=weights)
""",
    "hessian-eigenthings": COMMON + TORCH + "probes = 10\n" + EIGENTHINGS_DENSITY,
    "hessian-eigenthings, 100 probes": COMMON + TORCH + "probes = 100\n" + EIGENTHINGS_DENSITY,
}  # fmt: skip


def trained(name: str, x: np.ndarray, y: np.ndarray, target: float, step: float) -> dict[str, np.ndarray]:
    import torch

    torch.manual_seed(0)
    net = module(SIZES[name])
    inputs, labels = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    optimizer, loss = torch.optim.Adam(net.parameters(), lr=step), torch.nn.CrossEntropyLoss()
    for _ in range(5000):
        optimizer.zero_grad()
        value = loss(net(inputs), labels)
        if value.item() <= target:
            break
        value.backward()
        optimizer.step()
    print(f"net {name}: {'-'.join(map(str, SIZES[name]))}, loss {value.item():.4f}")
    held = {f"{name}_{key}": one.numpy() for key, one in net.state_dict().items()}
    return {**held, f"{name}_x": inputs.numpy(), f"{name}_y": labels.numpy()}


def module(sizes: tuple[int, ...]) -> Any:
    import itertools

    import torch

    layers = []
    for before, after in itertools.pairwise(sizes):
        layers += [torch.nn.Linear(before, after), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def nets() -> dict[str, np.ndarray]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    x, y = digits.data / 16, digits.target
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(x), 2000)
    large = np.kron(x[chosen].reshape(-1, 8, 8), np.ones((1, 4, 4)))[:, 2:30, 2:30].reshape(2000, 784)
    large = large + 0.1 * rng.standard_normal(large.shape)
    return {**trained("A", x[:500], y[:500], 0.0207, 1e-2), **trained("B", large, y[chosen], 0.0369, 1e-3)}


def opened(data: Any, name: str, framework: str, precision: str | None = None):
    from deeplimits.measure.adapters import open_model

    values = {key[2:]: data[key] for key in data if key.startswith(f"{name}_") and "." in key}
    batch = data[f"{name}_x"], data[f"{name}_y"]
    if framework == "torch":
        import torch

        net = module(SIZES[name])
        net.load_state_dict({key: torch.tensor(value) for key, value in values.items()})
        return open_model(net, torch.nn.CrossEntropyLoss(), batch, precision=precision)
    import jax
    import jax.numpy as jnp

    def apply(p, x):
        for layer in (0, 2):
            x = jnp.tanh(x @ p[f"{layer}.weight"].T + p[f"{layer}.bias"])
        return x @ p["4.weight"].T + p["4.bias"]

    def loss(z, y):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], axis=1))

    return open_model(
        apply, loss, batch, parameters={k: jnp.asarray(v) for k, v in values.items()}, precision=precision
    )


def own(code: str, **names: Any) -> tuple[Path, str]:
    """The interpreter that runs this, and code of ours that finds its libraries."""
    paths = [str(Path(__file__).parent.parent), *sys.path]
    given = "".join(f"{name} = {value!r}\n" for name, value in {"paths": paths, **names}.items())
    return Path(sys.executable), given + code


def ask(python: Path | None, code: str, file: str) -> Any:
    if python is None:
        return "could not be installed"
    try:
        found = subprocess.run(
            [str(python), "-c", code, file, str(COUNT), clock().__name__], capture_output=True, text=True,
            timeout=LIMIT, env=ALONE,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no answer within {LIMIT} s"
    if found.returncode:
        lines = found.stderr.strip().splitlines() or ["failed"]
        return next((line for line in reversed(lines) if "Error" in line), lines[-1])[:150]
    return json.loads(found.stdout.strip().splitlines()[-1])


def eigenvalues(data: Any, file: str, peers: Path | None, jax_peers: Path | None) -> None:
    from deeplimits.measure import curvature

    now = clock()
    begin = now()
    reference = curvature.eigenpairs(
        curvature.hessian(opened(data, "B", "jax", "float64")), count=COUNT, tolerance=1e-12, seed=9
    )
    exact = reference.values
    print(f"five largest eigenvalues of B: {exact.round(6).tolist()} (reference: {now() - begin:.1f} s)")
    asked: dict[str, tuple[Path | None, str]] = {
        f"deeplimits, {framework}, {precision or 'float32'}{words}": own(
            OURS, framework=framework, precision=precision, given=given
        )
        for framework, precision, words, given in (
            ("torch", None, "", {}), ("jax", None, "", {}), ("torch", None, LOOSE, {"tolerance": 0.03}),
            ("torch", "float64", "", {}), ("jax", "float64", "", {}),
        )
    }  # fmt: skip
    asked |= {name: (jax_peers if name.startswith("matfree") else peers, code) for name, code in PEERS.items()}
    found = answers(asked, file, lambda answer: float(np.abs(np.asarray(answer["values"])[:COUNT] / exact - 1).max()))
    frameworks = {peer: "jax" if peer.startswith("matfree") else "torch" for peer in PEERS}
    tell(found, "five eigenvalues", "error", frameworks)
    tell(found, "five eigenvalues", "error", {"hessian-eigenthings, default": "torch"}, LOOSE)


def answers(asked: dict[str, tuple[Path | None, str]], file: str, miss: Any) -> "dict[str, list[Answer]]":
    """What everyone answers, turn by turn; whoever is raised or in float64 has one turn."""
    found: dict[str, list[Answer]] = {}
    silent = set()
    for turn in range(TURNS):
        for name, (python, code) in asked.items():
            if name in silent or (turn and any(word in name for word in ONCE)):
                continue
            answer = ask(python, code, file)
            if isinstance(answer, str):
                print(f"  {name}: {answer}")
                silent.add(name)
                continue
            found.setdefault(name, []).append(Answer(answer["seconds"], answer["products"], miss(answer)))
    for name, turns in found.items():
        last, seconds = turns[-1], sorted(one.seconds for one in turns)[len(turns) // 2]
        told = f"{last.products:>5} products {seconds:>7.2f} s   miss {last.miss:.1e}"
        print(f"  {name:<56} {told}", flush=True)
    return found


class Answer(NamedTuple):
    """What someone took, and how far from the truth it is."""

    seconds: float
    products: int
    miss: float


def tell(found: dict[str, list[Answer]], task: str, miss: str, frameworks: dict[str, str], words: str = "") -> None:
    """Every peer beside ours in the framework of that peer; `words` are those of our settings."""
    for peer, framework in frameworks.items():
        name = next(name for name in found if name.startswith(f"deeplimits, {framework}, float32{words}"))
        if peer in found:
            count = min(len(found[name]), len(found[peer]))
            mine, theirs = found[name][:count], found[peer][:count]
            note = (
                f"{miss} {theirs[0].miss:.1e} with {theirs[0].products} products, "
                f"ours {mine[0].miss:.1e} with {mine[0].products}"
            )
            what = f"{task}{words}, of {'PyTorch' if framework == 'torch' else 'JAX'}"
            seconds = [one.seconds for one in mine], [one.seconds for one in theirs]
            compare("curvature", what, peer, *seconds, note=note)


def density(data: Any, file: str, peers: Path | None) -> None:
    from deeplimits.measure import curvature
    from deeplimits.measure.curvature.density import Law

    matrix = curvature.hessian(opened(data, "A", "jax", "float64"))
    exact = np.linalg.eigvalsh(matrix.dense())
    print(f"density of A, {len(exact)} eigenvalues up to {exact[-1]:.4f}: Wasserstein-1 to the exact one")
    settings = (
        ("torch", None, {"steps": 40}), ("torch", None, {"steps": 20, "probes": 3}), ("jax", "float64", {"steps": 40}),
        ("jax", "float64", {"steps": 76}), ("jax", "float64", {"steps": 80, "outliers": 0}),
    )  # fmt: skip
    asked: dict[str, tuple[Path | None, str]] = {}
    for framework, precision, changed in settings:
        given = {"probes": 10, "outliers": TOP, **changed}
        words = ", ".join(f"{value} {name}" for name, value in given.items())
        code = own(OUR_DENSITY, framework=framework, precision=precision, given=given)
        asked[f"deeplimits, {framework}, {precision or 'float32'}, {words}"] = code

    copies: dict[int, int] = {}

    def distance(answer: Any) -> float:
        nodes, weights, apart = (np.array(answer[key]) for key in ("nodes", "weights", "values"))
        taken = int(np.sum(apart > exact[-TOP - 1]))
        copies[len(copies)] = ghosts(nodes, exact, taken)
        share = 1 - len(apart) / len(exact)
        weights = share * weights / weights.sum(axis=1, keepdims=True) / len(weights)
        values = np.concatenate([apart, nodes.ravel()])
        weights = np.concatenate([np.full(len(apart), 1 / len(exact)), weights.ravel()])
        order = np.argsort(values)
        return Law(values[order], weights[order]).distance(exact)

    asked |= {name: (peers, code) for name, code in DENSITIES.items()}
    found = answers(asked, file, distance)
    counts = {name: copies[place] for place, name in enumerate(found)}
    print(f"  ghosts: {', '.join(f'{count} of {name}' for name, count in counts.items() if count) or 'none'}")
    tell(found, "density", "Wasserstein distance", dict.fromkeys(DENSITIES, "torch"))
    defaults = [name for name in DENSITIES if "100 probes" not in name]
    tell(found, "density", "Wasserstein distance", dict.fromkeys(defaults, "torch"), ", 3 probes")


def ghosts(nodes: np.ndarray, exact: np.ndarray, taken: int) -> int:
    """Ritz values above the 21st eigenvalue beyond the 20 that there can be, over all probes."""
    above = np.sum(nodes > exact[-TOP - 1] * (1 + 1e-6), axis=1)
    return int(np.sum(np.maximum(above - (TOP - taken), 0)))


GROWTH = """
import sys, time
import numpy as np, jax, jax.numpy as jnp
clock = getattr(time, sys.argv[3])
from deeplimits.measure import curvature
from deeplimits.measure.adapters import open_model
width, samples = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(0)
p = {"a": jnp.asarray(rng.normal(size=(64, width)) / 8, jnp.float32),
     "b": jnp.asarray(rng.normal(size=(width, width)) / width**0.5, jnp.float32),
     "c": jnp.asarray(rng.normal(size=(width, 10)) / width**0.5, jnp.float32)}
x, y = rng.normal(size=(samples, 64)).astype(np.float32), rng.integers(0, 10, samples)
net = lambda p, x: jnp.tanh(jnp.tanh(x @ p["a"]) @ p["b"]) @ p["c"]
loss = lambda z, y: -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], 1))
model = open_model(net, loss, (x, y), parameters=p, chunk=1000)
H = curvature.hessian(model)
v = rng.normal(size=model.size)
H @ v
begin = clock()
for _ in range(3): H @ v
took = (clock() - begin) / 3
held = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(model.size, samples, took, float(held.split()[1]) / 2**20)
"""


def growth() -> None:
    print("growth: one product, by parameters and samples (GiB: most the process held, 0.3 of them the libraries)")
    python, code = own("import sys; sys.path[:0] = paths\n" + GROWTH)
    for width, samples in ((64, 1000), (280, 1000), (960, 1000), (3100, 1000), (280, 4000), (280, 16000)):
        found = subprocess.run(
            [str(python), "-c", code, str(width), str(samples), clock().__name__],
            capture_output=True, text=True, check=True, env=ALONE,
        )  # fmt: skip
        size, count, seconds, held = map(float, found.stdout.split())
        flops = 12 * size * count / seconds / 1e9
        memory = held * 1.073741824
        if count == 1000:
            grow("curvature", "one product, 1,000 samples", "parameters", size, seconds=seconds, memory=memory)
        if width == 280:
            what = f"one product, {int(size):,} parameters"
            grow("curvature", what, "samples", count, seconds=seconds, memory=memory)
        told = f"{seconds:>8.4f} CPU s {held:>6.2f} GiB {flops:>6.0f} Gflop/s"
        print(f"  {int(size):>10,} parameters {int(count):>6,} samples {told}", flush=True)


def main() -> None:
    peers = environment("hessian", *TORCH_PEERS)
    jax_peers = environment("matfree", "jax[cpu]", "matfree", "scipy")
    data = nets()
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "nets.npz")
        np.savez(file, **data)
        eigenvalues(data, file, peers, jax_peers)
        density(data, file, peers)
    growth()


if __name__ == "__main__":
    main()
