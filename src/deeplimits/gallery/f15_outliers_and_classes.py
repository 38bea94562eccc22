"""A network has as many outliers as it discerns clusters: one to four.

XOR clusters with λ = 10, K = 20 neurons (small: 12), d = 1000 (small: 100), ridge 0.05, step 1/d, up to t = 30.
Networks that begin in the basin of a classifier which discerns one, two, three or all four of the clusters μ, −μ, ν,
−ν: the largest eigenvalues of the second layer's block of the gradients' second moment over time. Lines: theory
at the summary statistics that were reached.
"""

import numpy as np

from deeplimits.gallery.figure import Check
from deeplimits.gallery.xor_sgd import SEPARATION, fresh, statistics, trained
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Mark, Picture, Points
from deeplimits.theory import landscape

NOTES = "Mathematics of Deep Learning, Fig 1.8"
LIMITS = ("rank-deficient-spectra", "xor-hessian-g-blocks")
TIMES, SHOWN = np.array([0.0, 1, 3, 5, 10, 15, 20, 30]), 6
CLUSTERS = (1, 2, 3, 4)


def compute(run):
    """Eigenvalues for each number of clusters, measured and stated."""
    width, d = run.pick((20, 1000), (12, 100))
    run.expect(len(CLUSTERS))
    found = {"d": d}
    for active in CLUSTERS:
        one = run.step(f"{active} discerned", spectra, active=active, width=width, d=d)
        found |= {f"seen {active}": one["seen"], f"said {active}": one["said"]}
    return found


def start(random, width, d, active):
    """Rows that lean to μ, −μ, ν, −ν in turn, to so many of them, with the sign that each needs."""
    kinds = np.arange(width) % active
    w = random.normal(size=(width, d)) * 0.7 / np.sqrt(d)
    w[np.arange(width), kinds // 2] += 0.3 * (1 - 2 * (kinds % 2))
    return np.where(kinds < 2, 0.5, -0.5), w


def spectra(active, width, d):
    """The largest eigenvalues over time, of SGD and of theory at the summary statistics that were reached."""
    random = np.random.default_rng(active)
    begin = start(random, width, d, active)
    seen, said = [], []
    for v, w in trained(random, *begin, TIMES):
        _, h, counts = fresh(random, v, w)
        on = np.maximum(h, 0)
        seen.append(np.linalg.eigvalsh((on * counts["gradient"][:, None]).T @ on / len(h))[::-1][:SHOWN])
        block = landscape.xor_second_layer(statistics(v, w), SEPARATION).gradient
        said.append(np.linalg.eigvalsh(np.asarray(block))[::-1][:SHOWN])
    return {"seen": seen, "said": said}


def draw(data):
    """A panel for each number of clusters."""
    pictures, d = [], int(data["d"])
    for active in CLUSTERS:
        seen, said = data[f"seen {active}"], data[f"said {active}"]
        marks: list[Mark] = [Line(TIMES, said[:, j], label="" if j else "theory") for j in range(SHOWN)]
        for j in range(SHOWN):
            words = {0: f"the first {active}, SGD, d = {d}", active: "those after them"}.get(j, "")
            marks.append(Points(TIMES, seen[:, j], role=SIMULATION, series=0 if j < active else 2, label=words))
        y = Axis("eigenvalue of the second layer's block", log=True, low=1e-5, high=1.0)
        words = "one cluster is" if active == 1 else f"{active} clusters are"
        counted = "one eigenvalue stands" if active == 1 else f"{active} eigenvalues stand"
        said = f"Where {words} discerned, {counted} out from the rest."
        pictures.append(Picture(Axis("time", "t"), y, tuple(marks), said))
    return pictures


def check(data):
    """The widest gap, as a ratio, among the largest eigenvalues at the end is after as many as there are clusters."""
    checks = []
    for active in CLUSTERS:
        seen, said = data[f"seen {active}"][-1], data[f"said {active}"][-1]
        ratio = seen[:-1] / np.maximum(seen[1:], 1e-300)
        checks.append(Check(f"outliers with {active} discerned", 1 + np.argmax(ratio), 0, active, 0))
        # An average over 10d samples, of which some clusters have a quarter and weigh unequally.
        error = 2 / np.sqrt(10 * int(data["d"]))
        checks.append(
            Check(f"log of the largest eigenvalue, {active} discerned", np.log(seen[0]), error, np.log(said[0]), 5)
        )
    return checks
