r"""Other people's conventions: how their learning rates, times, outputs and risks translate into ours.

Ours is that of `deeplimits.models.committees`. A network is the same network in every convention; what differs is

- the second layer: a student's output is Σ_i g_i σ(λ_i) with g_i = a_i/p here;
- the learning rate η in front of the gradient of the first layer's weights, and the time ν/(samples per unit of time);
- whether the risk has its factor ½ and whether the label noise is counted in it.

| name | output | clock | risk |
| --- | --- | --- | --- |
| saad-solla | Σ_i σ(λ_i) | α = ν/d | ½ E(f* − f)² |
| goldt | Σ_i v_i σ(λ_i) | α = ν/d | ½ E(f* − f)² |
| veiga | (1/p) Σ_i σ(λ_i) | α = ν/d | ½ E(f* − f)² |
| arnaboldi | (1/p) Σ_i a_i σ(λ_i) | t = νγ/(pd) | E(f* − f)² |
| here | (1/p) Σ_i a_i σ(λ_i) | t = νγ/(pd) | ½ E(f* − f)² |

The rows of Veiga and Arnaboldi follow the authors' public codes for erf (2022, 2023).
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from deeplimits.errors import ParameterError, UnknownName
from deeplimits.models.activations import ActivationLike
from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics.arguments import of_kind
from deeplimits.numerics.shapes import Scalar


class Foreign(NamedTuple):
    """A task in another convention."""

    convention: str
    step: Scalar
    """Learning rate of the first layer as that convention writes it."""
    output_rate: Scalar
    """Learning rate of the second layer as that convention writes it; 0 if frozen."""
    outputs: Float[Array, " p"]
    teacher_outputs: Float[Array, " k"]
    noise: Scalar
    """Standard deviation of the label noise in the units of that convention's outputs."""
    time_unit: Scalar
    """One unit of our t in that convention's time."""
    risk_unit: Scalar
    """Our risk times this is theirs."""


@dataclass(frozen=True)
class Convention:
    """What a convention does with outputs, clock and risk."""

    name: str
    normalized_outputs: bool
    """Outputs carry 1/p: the second layer is a_i rather than a_i/p."""
    unit_outputs: bool
    """The second layer is fixed to one and cannot be anything else."""
    sample_clock: bool
    """Time counts samples per dimension."""
    risk_factor: float


CONVENTIONS = {
    convention.name: convention
    for convention in (
        Convention("here", True, False, False, 1.0),
        Convention("saad-solla", False, True, True, 1.0),
        Convention("goldt", False, False, True, 1.0),
        Convention("veiga", True, True, True, 1.0),
        Convention("arnaboldi", True, False, False, 2.0),
    )
}


def convention(name: str) -> Convention:
    """The convention of that name."""
    if name not in CONVENTIONS:
        raise UnknownName(f"convention = {name!r} is unknown; there are {', '.join(CONVENTIONS)}")
    return CONVENTIONS[name]


def to_convention(task: Task, state: Overlaps, name: str) -> Foreign:
    r"""Our task and state in another convention.

    Saad and Solla's outputs are c = p times ours (p = k, a = a* = 1): residuals and noise grow by c, so that the same
    motion of the weights needs η = γ/p². Goldt's v_i = a_i/p leave the residual as it is: η_w = γ, η_v = ρ_a γ/p².

    >>> task = Task(teacher=[[1.0, 0.0], [0.0, 1.0]], step=4.0)
    >>> state = Overlaps([[0.1, 0.0], [0.0, 0.1]], [[1.0, 0.0], [0.0, 1.0]])
    >>> foreign = to_convention(task, state, "saad-solla")
    >>> float(foreign.step), float(foreign.time_unit), float(foreign.risk_unit)
    (1.0, 0.5, 4.0)
    """
    of_kind("task", task, Task)
    of_kind("state", state, Overlaps)
    rules = convention(name)
    p, k = state.students, state.teachers
    scale = _output_scale(rules, p, k)
    if rules.unit_outputs and not bool(jnp.all(state.a == 1) & jnp.all(task.teacher_output == 1)):
        raise ParameterError(f"{name} fixes the second layer to one, but a or teacher_output differs from one")
    if rules.unit_outputs and float(task.output_rate) != 0:
        raise ParameterError(
            f"output_rate = {float(task.output_rate):g} is not allowed: {name} does not train the second layer"
        )
    # w_i moves by (step) × (output weight) × E σ': ours is (γ/p) a_i E σ'.
    if rules.normalized_outputs:
        outputs, teacher_outputs, step = state.a, task.teacher_output, task.step
        output_rate = task.output_rate * task.step
    elif rules.unit_outputs:
        outputs, teacher_outputs, step = state.a, task.teacher_output, task.step / p**2
        output_rate = jnp.zeros(())
    else:
        outputs, teacher_outputs, step = state.a / p, task.teacher_output / k, task.step
        output_rate = task.output_rate * task.step / p**2
    time_unit = p / task.step if rules.sample_clock else jnp.ones(())
    return Foreign(
        name,
        step,
        output_rate,
        outputs,
        teacher_outputs,
        task.noise * scale,
        time_unit,
        jnp.asarray(rules.risk_factor * scale**2),
    )


class Imported(NamedTuple):
    """A task and a state in our convention, and what carries times and risks back."""

    task: Task
    state: Overlaps
    foreign: Foreign


def from_convention(
    name: str,
    step: ArrayLike,
    m: ArrayLike,
    q: ArrayLike,
    teacher: ArrayLike,
    *,
    noise: ArrayLike = 0.0,
    outputs: ArrayLike | None = None,
    teacher_outputs: ArrayLike | None = None,
    output_rate: ArrayLike = 0.0,
    activation: ActivationLike = "erf_saad",
) -> Imported:
    """A task written in another convention, as ours; the third answer says how to carry times and risks back.

    `noise` is the standard deviation of the label noise, in the units of that convention's outputs.

    >>> outputs = {"outputs": [1.0], "teacher_outputs": [1.0]}
    >>> task, state, back = from_convention("goldt", 0.5, [[0.1]], [[1.0]], [[1.0]], **outputs)
    >>> float(task.step), float(back.time_unit)
    (0.5, 2.0)
    """
    rules = convention(name)
    p, k = jnp.asarray(m, float).shape
    ones = (jnp.ones(p), jnp.ones(k))
    given = tuple(
        one if x is None else jnp.asarray(x, float) for x, one in zip((outputs, teacher_outputs), ones, strict=True)
    )
    step = jnp.asarray(step, float)
    if rules.normalized_outputs or rules.unit_outputs:
        a, teacher_a = given
        our_step = step if rules.normalized_outputs else step * p**2
        relative = jnp.asarray(output_rate, float) / jnp.where(our_step > 0, our_step, 1.0)
    else:
        a, teacher_a, our_step = given[0] * p, given[1] * k, step
        relative = jnp.asarray(output_rate, float) * p**2 / jnp.where(step > 0, step, 1.0)
    scale = _output_scale(rules, p, k)
    task = Task(
        teacher,
        our_step,
        jnp.asarray(noise, float) / scale,
        activation,
        teacher_output=teacher_a,
        output_rate=relative,
    )
    state = Overlaps(m, q, a)
    return Imported(task, state, to_convention(task, state, name))


def _output_scale(rules: Convention, p: int, k: int) -> float:
    """How many times larger than ours the outputs of a convention are."""
    if rules.normalized_outputs or not rules.unit_outputs:
        return 1.0
    if p != k:
        raise ParameterError(
            f"{rules.name} adds its units without normalizing: with p = {p} students and k = {k} teachers it is another"
            " task than ours with unit outputs; use goldt, which has output weights"
        )
    return float(p)
