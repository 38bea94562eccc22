"""Learning rate and width decide which limit SGD follows; and how high its noise floor is.

Committee machines with γ ∝ d^(−δ) and p ∝ d^κ: the regimes over (κ, δ) by s = κ + δ, where one unit of time takes
d^(1+s) samples. Measured for one erf neuron at three places of κ = 0: the risk at which SGD ends with label noise of
variance 10⁻⁴, over d, for δ = 0 and δ = 1/2 with γ = 2d^(−δ) (d = 16 to 256; small: 16 to 64); and where variance
dominates, δ = −1/4, the length of the student in the time u = νγ²/(dp²) without noise, for growing d. Overlaps are
followed as the Markov chain that they are.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.ensembles import overlap_chain
from deeplimits.gallery.figure import Check
from deeplimits.gallery.marks import averages, mean_and_error
from deeplimits.models.committees import Overlaps, Task
from deeplimits.predictions.picture import SIMULATION, Axis, Field, Line, Picture, Points, Rule
from deeplimits.theory.two_layer import overlaps

NOTES = "001, phase diagram"
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
    marks = jnp.asarray(np.round(np.array([BURN, LAST]) * d / rate).astype(int))
    perfect = Overlaps([[1.0]], [[1.0]])
    record = chains_of(Task([[1.0]], rate, NOISE), perfect, marks, d, runs)
    return {"risk": np.asarray(record.online_risk[:, -1]) / NOISE**2}


def lengths(d, runs):
    """Q and M over the time u, at γ = d^(1/4)."""
    rate = d**0.25
    marks = jnp.asarray(np.round(TIMES * d / rate**2).astype(int))
    record = chains_of(Task([[1.0]], rate), Overlaps([[0.3]], [[0.8]]), marks, d, runs)
    return {"q": record.q[:, :, 0, 0], "m": record.m[:, :, 0, 0]}


def chains_of(task, begin, marks, d, runs):
    """Records of independent chains."""
    keys = jax.random.split(jax.random.key(d), runs)
    return jax.jit(jax.vmap(lambda key: overlap_chain(key, task, begin, marks, d)))(keys)


@functools.cache
def floor(delta, d):
    """The floor in theory, for d → ∞ at this learning rate."""
    return float(overlaps.noise_floor(Task([[1.0]], RATE * d**-delta, NOISE))) / NOISE**2


def draw(data):
    """The diagram; floors; a student that grows without learning."""
    kappa, delta = np.linspace(0, 1, 41), np.linspace(-1.2, 1.0, 89)
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
    marks = []
    for i, one in enumerate(DELTAS):
        marks.append(Line(dense, [floor(one, d) for d in dense], series=i, label=f"theory, δ = {one:g}"))
        marks.append(averages(sizes, data[f"floor {one:g}"], series=i, label=f"SGD, γ = {RATE:g}d^(−{one:g})"))
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
