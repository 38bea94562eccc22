"""Learning rate and width decide which limit SGD follows; and how high its noise floor is.

Committee machines with γ ∝ d^(−δ) and p ∝ d^κ: the regimes over (κ, δ) by s = κ + δ, where one unit of time takes
d^(1+s) samples. Measured for one erf neuron at three places of κ = 0: the risk at which SGD ends with label noise of
variance 10⁻⁴, over d, for δ = 0 and δ = 1/2 with γ = 2d^(−δ) (d = 16 to 256; small: 16 to 64); and where variance
dominates, δ = −1/4, the length of the student in the time u = νγ²/(dp²) without noise, for growing d. Overlaps are
followed as the Markov chain that they are.
"""

import functools

import numpy as np
from scipy.special import erf

from deeplimits.gallery.figure import Check
from deeplimits.gallery.marks import averages, mean_and_error
from deeplimits.models.committees import Overlaps, Task
from deeplimits.predictions.picture import SIMULATION, Axis, Field, Line, Mark, Picture, Points, Rule
from deeplimits.theory.two_layer import overlaps

NOTES = "Wonders of high-dimensions, phase diagram"
LIMITS = ("sgd-regime-diagram", "noise-floor-and-critical-learning-rate")
DELTAS, NOISE, RATE, BURN, LAST = (0.0, 0.5), 0.01, 2.0, 30.0, 60.0
TIMES = np.array([0.25, 0.5, 1.0, 2.0, 3.5, 5.0])
NAMES = {"gradient-flow": 3, "saad-solla": 2, "variance-dominated": 1, "no-ode": 0}


def compute(run):
    """Floors over the dimension, and lengths of the student where variance dominates."""
    sizes, runs = run.pick(((16, 32, 64, 128, 256), 64), ((16, 32, 64), 32))
    large, paths = run.pick(((10**4, 10**5, 10**6), 64), ((10**3, 10**4), 48))
    run.expect(len(DELTAS) * len(sizes) + len(large))
    found = {"sizes": sizes, "large": large}
    for delta in DELTAS:
        rows = [run.step(f"floor, δ = {delta}, d = {d}", floors, delta=delta, d=d, runs=runs)["risk"] for d in sizes]
        found[f"floor {delta:g}"] = np.stack(rows, axis=1)
    for d in large:
        found |= {
            f"{key} {d}": value for key, value in run.step(f"variance, d = {d}", lengths, d=d, runs=paths).items()
        }
    return found


def floors(delta, d, runs):
    """The mean risk between two late times, over the noise variance: a row for each run."""
    rate = RATE * d**-delta
    first, last = (round(time * d / rate) for time in (BURN, LAST))
    state, total = (np.ones(runs), np.ones(runs)), np.zeros(runs)
    random = np.random.default_rng(d)
    for count in range(last):
        state, clean = step(random, *state, rate, NOISE, d)
        total += (count >= first) * clean**2 / 2
    return {"risk": total / (last - first) / NOISE**2}


def lengths(d, runs):
    """Q and M over the time u, at γ = d^(1/4)."""
    rate, random = d**0.25, np.random.default_rng(d)
    marks = np.round(TIMES * d / rate**2).astype(int)
    state, seen = (np.full(runs, 0.3), np.full(runs, 0.8)), []
    for count in range(1, marks[-1] + 1):
        state, _ = step(random, *state, rate, 0.0, d)
        if count in marks:
            seen.append(state)
    m, q = np.moveaxis(np.array(seen), 1, 0)
    return {"m": m.T, "q": q.T}


def step(random, m, q, rate, noise, d):
    """One sample of SGD as the overlaps see it: ((M, Q) after it, f* − f before it), for independent runs.

    w ← w + γEσ'(λ)x/√d, σ = erf(·/√2). Of x only its components along the teacher and the rest of the student count,
    which are normal, and the squared length of what is left, which is χ² with d − 2 degrees of freedom.
    """
    along, other = random.standard_normal((2, len(m)))
    rest = random.chisquare(d - 2, len(m))
    field = m * along + np.sqrt(np.maximum(q - m**2, 0)) * other
    clean = erf(along / np.sqrt(2)) - erf(field / np.sqrt(2))
    error = clean + noise * random.standard_normal(len(m))
    push = rate * error * np.sqrt(2 / np.pi) * np.exp(-(field**2) / 2)
    length = along**2 + other**2 + rest
    return (m + push * along / d, q + 2 * push * field / d + push**2 * length / d**2), clean


@functools.cache
def floor(delta, d):
    """The floor in theory, for d → ∞ at this learning rate."""
    return float(overlaps.noise_floor(Task([[1.0]], RATE * d**-delta, NOISE))) / NOISE**2


def draw(data):
    """The diagram; floors; a student that grows without learning."""
    kappa, delta = np.linspace(0, 1, 41), np.linspace(-1.6, 1.0, 105)
    field = np.array([[NAMES[overlaps.regime(k, round(one, 10))] for k in kappa] for one in delta])
    first = Picture(
        Axis("exponent of the width", r"\kappa"),
        Axis("exponent of the learning rate", r"\delta"),
        (
            Field(kappa, delta, field, label="0: no equation, 1: variance dominates, 3: gradient flow"),
            Line(kappa, -kappa, label="Saad-Solla line, s = 0"),
            Line(kappa, -0.5 - kappa, series=1, label="s = −1/2"),
            Points([0.0, 0.0, 0.0], [0.0, 0.5, -0.25], role=SIMULATION, series=2, label="simulated beside"),
        ),
        "Small steps and wide networks follow gradient flow; on one line the step's noise stays; below it nothing is "
        "learnt.",
    )
    sizes, dense = data["sizes"], np.geomspace(data["sizes"][0], data["sizes"][-1], 40)
    marks: list[Mark] = []
    for i, one in enumerate(DELTAS):
        marks.append(Line(dense, [floor(one, d) for d in dense], series=i, label=f"theory, δ = {one:g}"))
        marks.append(averages(sizes, data[f"floor {one:g}"], series=i, label=f"SGD, δ = {one:g}"))
    second = Picture(
        Axis("dimension", "d", log=True),
        Axis("risk at the end over noise variance", log=True),
        tuple(marks),
        "On the Saad-Solla line, δ = 0, the noise floor stays; in the gradient-flow regime it falls like d^(−1/2).",
    )
    times, large = np.linspace(0.01, TIMES[-1], 60), [int(d) for d in data["large"]]
    marks = [
        Line(times, variance_length(tuple(times)), series=None, label="length Q, variance alone"),
        Rule(0.3, series=2, label="overlap M, frozen"),
    ]
    for i, d in enumerate(large):
        marks.append(averages(TIMES, data[f"q {d}"], series=i, label=f"Q and M of SGD, d = {d:,}"))
        marks.append(averages(TIMES, data[f"m {d}"], series=i))
    third = Picture(
        Axis("rescaled time", "u"),
        Axis("overlaps"),
        tuple(marks),
        "With δ = −1/4 the student grows and learns nothing: as d grows, M stays where it was and Q follows variance "
        "alone.",
    )
    return [first, second, third]


@functools.cache
def variance_length(times):
    """Q(u) where variance dominates."""
    return np.asarray(overlaps.variance_flow(Task([[1.0]]), Overlaps([[0.3]], [[0.8]]), np.array(times)))[:, 0, 0]


def check(data):
    """Floors, which are off by O(1/d); and that M and Q approach their limits like p/γ = d^(−1/4)."""
    checks = []
    for one in DELTAS:
        d = int(data["sizes"][-1])
        mean, error = mean_and_error(data[f"floor {one:g}"][:, -1])
        checks.append(
            Check(f"floor at δ = {one:g}, d = {d}", mean, np.hypot(error, floor(one, d) / d), floor(one, d), 5)
        )
    small, large = (int(d) for d in (data["large"][0], data["large"][-1]))
    moved = [np.mean(data[f"m {d}"][:, -1]) - 0.3 for d in (small, large)]
    spread = [np.std(data[f"m {d}"][:, -1], ddof=1) / np.sqrt(len(data[f"m {d}"])) for d in (small, large)]
    power = np.log(moved[1] / moved[0]) / np.log(large / small)
    error = np.hypot(spread[0] / moved[0], spread[1] / moved[1]) / np.log(large / small)
    checks.append(Check("power of d in what M moves by u = 5, δ = −1/4", power, np.hypot(error, 0.02), -0.25, 5))
    return checks
