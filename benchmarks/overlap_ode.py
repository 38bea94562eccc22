"""Overlap equations: time and accuracy against a NumPy + LSODA solver and against fixed Euler steps, in one run.

Run with `python -m benchmarks.overlap_ode`. Case: erf, k = 2 teachers, p = 4 students, outputs averaged, second layer
fixed, γ/p = 1, label noise 1e-3, a start drawn from seed 0. All solvers are timed interleaved, after compilation; CPU
seconds, best of several. The NumPy right-hand side forms the whole I₄ tensor, as the public codes do; the Euler steps
are those codes' 1e-3.
"""

import resource
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import deeplimits  # noqa: F401  (turns on double precision)
from benchmarks._report import compare, grow
from deeplimits.models.committees import Overlaps, Task
from deeplimits.theory.two_layer.overlaps import equations, trajectory

TIMES = (1.0, 10.0, 100.0, 1000.0)
REPEATS = 5


def case() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    m = 0.1 * rng.standard_normal((4, 2))
    a = 0.15 * rng.standard_normal((4, 4))
    return m, m @ m.T + a @ a.T + 0.3 * np.eye(4)


class NumpySolver:
    """The same equations written in NumPy by someone who has no library: vectorized, with the I₄ tensor in memory."""

    def __init__(self, p: int, k: int, rate: float, noise: float):
        self.p, self.k, self.share, self.noise = p, k, rate / p, noise
        self.v = np.concatenate([np.full(p, -1 / p), np.full(k, 1 / k)])
        self.upper = np.triu_indices(p)

    def omega(self, y):
        p, k = self.p, self.k
        m = y[: p * k].reshape(p, k)
        q = np.zeros((p, p))
        q[self.upper] = y[p * k :]
        q = q + np.triu(q, 1).T
        return np.block([[q, m], [m.T, np.eye(k)]])

    def risk(self, y):
        c = self.omega(y)
        root = np.sqrt(1 + np.diag(c))
        return 0.5 * self.v @ (2 / np.pi * np.arcsin(c / np.outer(root, root))) @ self.v

    def __call__(self, _, y):
        p, c, v = self.p, self.omega(y), self.v
        d = 1 + np.diag(c)
        lam = np.sqrt(d[:p, None] * d - c[:p] ** 2)
        j2 = 2 / np.pi / lam
        k20 = -2 / np.pi * c[:p] / (d[:p, None] * lam)
        moved = (j2 * v) @ c + (k20 @ v)[:, None] * c[:p]
        # I₄(i, j, c, d) as one tensor of p² (p + k)² numbers
        a, b, off = d[:p, None], d[None, :p], c[:p, :p]
        det = a * b - off**2
        ci, cj = c[:p, None, :], c[None, :p, :]
        x = (b[..., None] * ci - off[..., None] * cj) / det[..., None]
        z = (a[..., None] * cj - off[..., None] * ci) / det[..., None]
        s = c - ci[..., :, None] * x[..., None, :] - cj[..., :, None] * z[..., None, :]
        g = 1 + np.einsum("ijcc->ijc", s)
        angles = np.arcsin(s / np.sqrt(g[..., :, None] * g[..., None, :]))
        variance = 4 / np.pi**2 * (angles @ v @ v) / np.sqrt(det) + self.noise * j2[:, :p]
        dq = moved[:, :p] + moved[:, :p].T + self.share * variance
        return np.concatenate([moved[:, p:].ravel(), dq[self.upper]])


def cpu(function):
    start = time.process_time()
    answer = function()
    return time.process_time() - start, answer


def accuracy_and_time() -> None:
    m, q = case()
    numpy_solver = NumpySolver(4, 2, 4.0, 1e-3)
    y0 = np.concatenate([m.ravel(), q[np.triu_indices(4)]])
    task, start = Task(np.eye(2), 4.0, 1e-3**0.5), Overlaps(m, q)

    def ours(rtol, atol):
        return np.asarray(trajectory(task, start, TIMES, rtol=rtol, atol=atol, method="explicit").risk)

    def lsoda(rtol):
        path = solve_ivp(numpy_solver, (0, TIMES[-1]), y0, "LSODA", TIMES, rtol=rtol, atol=rtol / 100)
        return np.array([numpy_solver.risk(y) for y in path.y.T])

    def euler():
        y, risks = y0.copy(), []
        for step in range(1, round(100 / 1e-3) + 1):
            y = y + 1e-3 * numpy_solver(0, y)
            if step * 1e-3 in (1.0, 10.0, 100.0):
                risks.append(numpy_solver.risk(y))
        return np.array(risks)

    first, _ = cpu(lambda: ours(1e-11, 1e-13))
    ours(1e-9, 1e-11)
    exact = lsoda(1e-13)
    rows = {"deeplimits, rtol 1e-11": [], "deeplimits, rtol 1e-9": [], "NumPy + LSODA, rtol 1e-8": []}
    answers = {}
    for _ in range(REPEATS):
        for name, solve in zip(
            rows, (lambda: ours(1e-11, 1e-13), lambda: ours(1e-9, 1e-11), lambda: lsoda(1e-8)), strict=True
        ):
            seconds, answers[name] = cpu(solve)
            rows[name].append(seconds)
    print("risk to t = 1000, p = 4, k = 2 (CPU s, relative error at t = 1, 10, 100, 1000; truth: LSODA at rtol 1e-13)")
    print(f"  first call, with compilation: {first:.2f} s")
    for name, seconds in rows.items():
        errors = " ".join(f"{error:.1e}" for error in np.abs(answers[name] / exact - 1))
        print(f"  {name:26s} {min(seconds):8.4f} s   {errors}")
    seconds, risks = cpu(euler)
    errors = " ".join(f"{error:.1e}" for error in np.abs(risks / exact[:3] - 1))
    print(f"  {'NumPy + Euler 1e-3, t = 100':26s} {seconds:8.4f} s   {errors} (to t = 100 only)")
    best = {name: min(seconds) for name, seconds in rows.items()}
    ratio = best["NumPy + LSODA, rtol 1e-8"] / best["deeplimits, rtol 1e-11"]
    print(f"  ratio LSODA / deeplimits (rtol 1e-11): {ratio:.1f}")
    theirs = rows["NumPy + LSODA, rtol 1e-8"]
    for name in list(rows)[:2]:
        what = f"overlap equations to t = 1000, {name.partition(', ')[2]}"
        compare("overlap_ode", what, "NumPy + LSODA, rtol 1e-8", rows[name], theirs)


def long_times() -> None:
    m, q = case()
    task, start = Task(np.eye(2), 4.0, 1e-3**0.5), Overlaps(m, q)
    trajectory(task, start, [1.0, 1e3, 1e6])
    seconds, found = cpu(lambda: trajectory(task, start, [1.0, 1e3, 1e6]))
    print(f"t = 1e6: {seconds:.2f} CPU s, {int(found.steps)} implicit steps, risk {float(found.risk[-1]):.6e}")


def many_starts(count: int = 100) -> None:
    m, _ = case()
    task = Task(np.eye(2), 4.0, 1e-3**0.5)
    rng = np.random.default_rng(1)
    starts = [m + 0.05 * rng.standard_normal(m.shape) for _ in range(count)]
    ms, qs = np.stack(starts), np.stack([x @ x.T + 0.3 * np.eye(4) for x in starts])

    @jax.jit
    def all_at_once(ms, qs):
        def one(m, q):
            return trajectory(task, Overlaps(m, q), jnp.array(TIMES[:3]), method="explicit").risk

        return jax.vmap(one)(ms, qs)

    jax.block_until_ready(all_at_once(ms, qs))
    seconds, risks = cpu(lambda: jax.block_until_ready(all_at_once(ms, qs)))
    solver = NumpySolver(4, 2, 4.0, 1e-3)

    def one_by_one():
        found = []
        for m, q in zip(ms[:5], qs[:5], strict=True):
            y0 = np.concatenate([m.ravel(), q[np.triu_indices(4)]])
            path = solve_ivp(solver, (0, 100), y0, "LSODA", TIMES[:3], rtol=1e-8, atol=1e-10)
            found.append([solver.risk(y) for y in path.y.T])
        return np.array(found)

    theirs, checked = cpu(one_by_one)
    gap = np.abs(np.asarray(risks)[:5] / checked - 1).max()
    print(
        f"{count} starts to t = 100: {seconds:.2f} CPU s by vmap; NumPy + LSODA one by one {theirs / 5 * count:.2f} s "
        f"(5 timed), ratio {theirs / 5 * count / seconds:.1f}, largest difference {gap:.1e}"
    )


def wide_students() -> None:
    print("right-hand side at p students, k = 2: time grows like p²(p + k)², memory like (p + k)²; no tensor is formed")
    previous = None
    for p in (10, 25, 50, 100, 200):
        rng = np.random.default_rng(p)
        m = 0.3 * rng.standard_normal((p, 2))
        state = Overlaps(m, m @ m.T + 0.3 * np.eye(p))
        task = Task(np.eye(2), float(p), 1e-3**0.5)
        compiled = eqx.filter_jit(equations.velocity)
        jax.block_until_ready(compiled(task, state).q)
        seconds, _ = cpu(lambda: jax.block_until_ready(compiled(task, state).q))  # noqa: B023
        tensor = p**2 * (p + 2) ** 2 * 8 / 2**30
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        power = "" if previous is None else f", growth p^{np.log(seconds / previous[1]) / np.log(p / previous[0]):.1f}"
        print(f"  p = {p:3d}: {seconds:9.5f} CPU s{power}; peak memory {peak:.2f} GiB (the tensor alone: {tensor:.2f})")
        previous = (p, seconds)
        grow("overlap_ode", "right-hand side, k = 2", "students p", p, seconds=seconds, memory=peak)


def main() -> None:
    accuracy_and_time()
    long_times()
    many_starts()
    wide_students()


if __name__ == "__main__":
    main()
