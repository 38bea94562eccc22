"""A staircase: a wide network learns one degree of its target after the other.

A single-index target with Hermite coefficients (0.5, 1, 0.8) is learnt by neurons on the sphere whose second layer is
1/ε times faster. Drawn are the risk over time for ε = 0.1 and 0.02 beside networks of m = 16, 32, 64 neurons (small:
12, 24), and for ε = 10⁻³ the theory's staircase with what is left of every degree.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.ensembles import single_index
from deeplimits.gallery import marks
from deeplimits.gallery.extrapolated import at_infinity
from deeplimits.predictions.picture import Axis, Line, Mark, Picture, Rule
from deeplimits.theory.two_layer import mean_field

NOTES = "Wonders of high-dimensions, incremental learning"
LIMITS = ("single-index-incremental-learning",)
TARGET, COEFFICIENTS = (0.5, 1.0, 0.8), (0.7, 1.0, 0.6)
SEEN, STEEP = (0.1, 0.02), 1e-3
LAST = 0.8


def compute(run):
    """The flow of the measure, and of finite networks."""
    widths, samples = run.pick((16, 32, 64), (12, 24)), run.pick(200, 24)
    dense = np.geomspace(1e-3, 2.0, 120)
    run.expect(len(SEEN) * len(widths))
    # What becomes of a neuron depends steeply on where it starts: its law is resolved around zero.
    law = mean_field.graded_normal(run.pick(400, 200), 1, 1.0)
    found = {"dense": dense, "widths": np.array(widths)}
    for epsilon in SEEN:
        flow = mean_field.incremental_learning(
            problem(epsilon), law.points[:, 0], dense, weights=law.weights, method="explicit"
        )
        found[f"risk_{epsilon}"] = flow.risk
        for width in widths:
            one = run.step("networks", networks, epsilon=epsilon, width=width, samples=samples)
            found |= {f"at_{epsilon}": one["at"], f"risk_{epsilon}_{width}": one["risk"]}
    times = np.geomspace(1e-5, 2.0, 120)
    steep = mean_field.incremental_learning(
        problem(STEEP), law.points[:, 0], times, weights=law.weights, method="explicit"
    )
    found |= {"times": times, "steep": steep.risk, "left": steep.residuals}
    return {name: np.asarray(values) for name, values in found.items()}


def problem(epsilon):
    """The target, the activation and the ratio of the layers' time scales."""
    return mean_field.SingleIndex(np.array(TARGET), np.array(COEFFICIENTS), np.asarray(epsilon))


def networks(epsilon, width, samples):
    """Risks of finite networks over time, from orthogonal neurons."""
    per_time = round(50 * max(1.0, 0.1 / epsilon))
    at = np.unique(np.geomspace(1, LAST * per_time, 12).round().astype(int))
    u, direction = jnp.eye(width, width + 1), jnp.eye(width + 1)[-1]
    flow = functools.partial(
        single_index.spherical_flow, u=u, direction=direction, target=jnp.asarray(TARGET),
        activation_coefficients=jnp.asarray(COEFFICIENTS), epsilon=jnp.asarray(epsilon),
        step=jnp.asarray(1 / per_time), marks=tuple(at.tolist()),
    )  # fmt: skip
    starts = jax.random.normal(jax.random.key(width), (samples, width))
    return {"at": at / per_time, "risk": jax.lax.map(jax.jit(flow), starts)}


def draw(data):
    """The risk with networks on it, and the staircase by degrees."""
    time = Axis("time", "t", log=True)
    seen = []
    for series, epsilon in enumerate(SEEN):
        seen.append(Line(data["dense"], data[f"risk_{epsilon}"], series=series, label=f"theory, ε = {epsilon:g}"))
        width = int(data["widths"][-1])
        label = f"networks of {width} neurons"
        seen.append(marks.averages(data[f"at_{epsilon}"], data[f"risk_{epsilon}_{width}"], series=series, label=label))
    scales = mean_field.incremental_time_scales(problem(STEEP))
    stairs: list[Mark] = [Line(data["times"], data["steep"], label="risk, theory")]
    for degree, scale in enumerate(scales):
        stairs.append(Rule(float(scale), upright=True, series=degree, label=f"time scale of degree {degree}"))
    left = [
        Line(data["times"], np.abs(row) / TARGET[degree], series=degree, label=f"degree {degree}")
        for degree, row in enumerate(data["left"].T)
    ]
    return [
        Picture(
            time,
            Axis("risk", "R"),
            tuple(seen),
            "The faster the second layer, the earlier the risk falls: measure on neurons (lines), networks (points).",
        ),
        Picture(
            time,
            Axis("risk", "R"),
            tuple(stairs),
            "With ε = 10⁻³ a staircase: constant, linear and quadratic part are learnt one after the other.",
        ),
        Picture(time, Axis("share of a degree that is left", low=0), tuple(left), "Each step learns one degree."),
    ]


def check(data):
    """The risk at one time for each ε, carried to infinite width."""
    widths = data["widths"].tolist()
    found = []
    for epsilon in SEEN:
        at = data[f"at_{epsilon}"]
        place = int(np.argmin(np.abs(at - 0.3)))
        stated = float(np.interp(np.log(at[place]), np.log(data["dense"]), data[f"risk_{epsilon}"]))
        draws = [data[f"risk_{epsilon}_{width}"][:, place] for width in widths]
        found.append(at_infinity(f"risk at t = {at[place]:.3g}, ε = {epsilon:g}", widths, draws, stated, 1.0))
    return found
