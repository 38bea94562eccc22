"""Hard-margin predictors: deeplimits against scikit-learn's SVC and LinearSVC and against a general QP solver.

    python -m benchmarks.hard_margin            n = 500, 2000, 10000
    python -m benchmarks.hard_margin 500 2000   other sizes

Random points in dimension n/20, labels of a random hyperplane (so they are separable), with an intercept for SVC, which
cannot do without, and without one for the others. Every solver is judged by its time and by the margin that its
hyperplane really has, min_i y_i(⟨w, x_i⟩ + b)/‖w‖, as a fraction of the best margin found. The QP solver, clarabel,
lives in its own environment under .peers/; what cannot be installed is skipped with a sentence.
"""

import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks._peers import environment
from benchmarks._report import compare, grow

SIZES = (500, 2000, 10_000)
POINTS_PER_FEATURE = 20
LIMIT = 900
"""Seconds after which a peer is stopped."""

# What runs in the peer's environment: min ½‖w‖² : −y_i⟨w, x_i⟩ ≤ −1 in the standard form of clarabel.
CLARABEL = """
import json, sys, time
import clarabel, numpy as np
from scipy import sparse
data = np.load(sys.argv[1])
x, y = data["x"], data["y"]
n, d = x.shape
settings = clarabel.DefaultSettings()
settings.verbose = False
begin = time.process_time()
solver = clarabel.DefaultSolver(
    sparse.identity(d, format="csc"), np.zeros(d), sparse.csc_matrix(-x * y[:, None]), -np.ones(n),
    [clarabel.NonnegativeConeT(n)], settings)
solution = solver.solve()
seconds = time.process_time() - begin
print(json.dumps({"seconds": seconds, "weights": list(solution.x), "status": str(solution.status)}))
"""


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    d = n // POINTS_PER_FEATURE
    x = rng.standard_normal((n, d))
    return x, np.where(x @ rng.standard_normal(d) > 0, 1.0, -1.0)


def margin(x, y, weights, intercept=0.0) -> float:
    return float(np.min(y * (x @ weights + intercept)) / np.linalg.norm(weights))


def ours(x, y, intercept):
    from deeplimits.theory.bias.support_vectors import hard_margin

    begin = time.process_time()
    found = hard_margin(x, y, intercept=intercept)
    return time.process_time() - begin, margin(x, y, found.weights, found.intercept), f"residual {found.residual:.0e}"


def svc(x, y):
    from sklearn.svm import SVC

    # A budget of iterations, because libsvm may take hours to converge on a hard margin.
    begin = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = SVC(kernel="linear", C=1e8, tol=1e-6, cache_size=1000, max_iter=2_000_000).fit(x, y)
    seconds = time.process_time() - begin
    note = "stopped after 2e6 iterations" if caught else "converged"
    return seconds, margin(x, y, found.coef_[0], found.intercept_[0]), note


def linear_svc(x, y):
    from sklearn.svm import LinearSVC

    begin = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = LinearSVC(C=1e6, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=20_000).fit(x, y)
    seconds = time.process_time() - begin
    return seconds, margin(x, y, found.coef_[0]), "stopped after 2e4 iterations" if caught else "converged"


def clarabel(python: Path, x, y):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        np.savez(path, x=x, y=y)
        try:
            answer = subprocess.run(
                [str(python), "-c", CLARABEL, str(path)], capture_output=True, text=True, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            return None
    if answer.returncode:
        return None
    found = json.loads(answer.stdout)
    return found["seconds"], margin(x, y, np.array(found["weights"])), found["status"]


def main(sizes: tuple[int, ...] = SIZES) -> None:
    python = environment("clarabel", "clarabel", "numpy", "scipy")
    if python is None:
        print("clarabel could not be installed into .peers/clarabel and is skipped")
    ours(*problem(200), False)  # imports and first calls are not timed
    print(
        f"{'n':>6} {'d':>4}  {'solver':<26} {'seconds':>9} {'times ours':>11} {'margin':>10} {'of the best':>12}  note"
    )
    for n in sizes:
        x, y = problem(n)
        for intercept in (False, True):
            rows = [("deeplimits" + (", intercept" if intercept else ""), ours(x, y, intercept))]
            if intercept:
                rows.append(("scikit-learn SVC, intercept", svc(x, y)))
            else:
                rows.append(("scikit-learn LinearSVC", linear_svc(x, y)))
                if python is not None:
                    rows.append(("clarabel", clarabel(python, x, y)))
            best = max(found[1] for _, found in rows if found is not None)
            own = rows[0][1][0]
            for name, found in rows:
                if found is None:
                    print(f"{n:>6} {x.shape[1]:>4}  {name:<26} no answer within {LIMIT} s")
                    continue
                seconds, achieved, note = found
                if name.startswith("deeplimits"):
                    grow("hard_margin", name, "n", n, seconds=seconds)
                else:
                    what = "hard margin with an intercept" if intercept else "hard margin, no intercept"
                    said = f"its margin is {achieved / best:.6f} of the best, {note}"
                    compare("hard_margin", what, name.partition(",")[0], [own], [seconds], size=n, note=said)
                print(
                    f"{n:>6} {x.shape[1]:>4}  {name:<26} {seconds:>9.3f} {seconds / own:>11.1f} {achieved:>10.6f} "
                    f"{achieved / best:>12.8f}  {note}",
                    flush=True,
                )


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or SIZES)
