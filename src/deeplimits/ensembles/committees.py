"""Finite committee machines trained by one-pass SGD, step by step in weight space."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpy.typing import ArrayLike

from deeplimits.ensembles import trainers
from deeplimits.errors import ParameterError
from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics import draws
from deeplimits.numerics.arguments import known
from deeplimits.numerics.shapes import Scalar


class Network(NamedTuple):
    """A student and its teacher: first layers w (p, d) and teacher (k, d), second layer a (p)."""

    w: Float[Array, "p d"]
    a: Float[Array, " p"]
    teacher: Float[Array, "k d"]


def with_overlaps(task: Task, state: Overlaps, dimension: int) -> Network:
    """Weights whose overlaps are exactly those wanted: the first axes, combined by a root of Ω.

    The law of the inputs does not change under rotations, so nothing is lost by starting along the axes.

    >>> task, state = Task(teacher=[[1.0]]), Overlaps([[0.5]], [[0.7]])
    >>> overlaps(with_overlaps(task, state, 5)).m.round(12).tolist()
    [[0.5]]
    """
    p, k = state.students, task.teachers
    if dimension < p + k:
        raise ParameterError(f"dimension = {dimension} is not allowed; {p + k} weight vectors need at least {p + k}")
    omega = joint_overlaps(task, state)
    values, vectors = jnp.linalg.eigh(omega)
    root = vectors * jnp.sqrt(jnp.maximum(values, 0.0))[None, :]
    weights = jnp.sqrt(1.0 * dimension) * jnp.pad(root, ((0, 0), (0, dimension - p - k)))
    return Network(weights[:p], state.a, weights[p:])


def joint_overlaps(task: Task, state: Overlaps) -> Float[Array, "n n"]:
    """Ω = [[Q, M], [Mᵀ, P]], refused where it is known and no weights have it."""
    omega = jnp.block([[state.q, state.m], [state.m.T, task.teacher]])
    if known(omega):
        least = float(jnp.linalg.eigvalsh(omega)[0])
        if not least >= -1e-9 * float(jnp.max(jnp.abs(omega))):
            raise ParameterError(
                f"the overlaps are not positive semidefinite (least eigenvalue {least:.3g}): no weights have them; "
                "give Q − M P⁻¹ Mᵀ positive semidefinite"
            )
    return omega


def overlaps(network: Network) -> Overlaps:
    """M = W W*ᵀ/d and Q = W Wᵀ/d, beside the second layer."""
    dimension = network.w.shape[1]
    return Overlaps(network.w @ network.teacher.T / dimension, network.w @ network.w.T / dimension, network.a)


class Residual(NamedTuple):
    """What is left to learn on a batch of inputs."""

    clean: Float[Array, " b"]
    """f* − f, without label noise."""
    fields: Float[Array, "b p"]
    """The student's fields ⟨w_i, x⟩/√d."""


def residual(task: Task, network: Network, x: Float[Array, "b d"]) -> Residual:
    """f* − f on inputs, without label noise, and the student's fields."""
    scale = jnp.sqrt(1.0 * x.shape[-1])
    fields, teacher_fields = x @ network.w.T / scale, x @ network.teacher.T / scale
    student = task.activation.value(fields) @ network.a / network.w.shape[0]
    teacher = task.teacher_activation.value(teacher_fields) @ task.teacher_output / network.teacher.shape[0]
    return Residual(teacher - student, fields)


class Step(NamedTuple):
    """A network after one step, and the mean of (f* − f)²/2 over the batch before it."""

    network: Network
    risk: Scalar


def step(
    task: Task,
    network: Network,
    step: ArrayLike,
    x: Float[Array, "b d"],
    z: Float[Array, " b"],
    *,
    shares: Float[Array, " b"] | None = None,
) -> Step:
    """One SGD step on a batch of fresh inputs x with standard normal noises z; also the batch's mean of (f* − f)²/2.

    `shares` are the samples' weights in the means over the batch, all equal unless given.
    """
    p, d = network.w.shape
    step = jnp.asarray(step, float)
    shares = jnp.full(x.shape[0], 1 / x.shape[0]) if shares is None else shares
    clean, fields = residual(task, network, x)
    error = shares * (clean + task.noise * z)
    # w_i ← w_i + (γ/p) E a_i σ'(λ_i) x/√d, averaged over the batch
    push = error[:, None] * network.a[None, :] * task.activation.derivative(fields)
    w = network.w + step / (p * jnp.sqrt(1.0 * d)) * push.T @ x
    # a_i ← a_i + (ρ_a γ/(dp)) E σ(λ_i)
    a = network.a + task.output_rate * step / (d * p) * error @ task.activation.value(fields)
    return Step(Network(w, a, network.teacher), shares @ clean**2 / 2)


class Record(NamedTuple):
    """What was measured after given numbers of steps."""

    m: Float[Array, "times p k"]
    q: Float[Array, "times p p"]
    a: Float[Array, "times p"]
    online_risk: Float[Array, " times"]
    """Mean of (f* − f)²/2 over the steps since the mark before, each on its fresh sample: unbiased for the risk."""


class Trained(NamedTuple):
    """What was measured on the way, and the network at the end."""

    record: Record
    network: Network


def one_pass_sgd(
    key: PRNGKeyArray,
    task: Task,
    network: Network,
    marks: Int[Array, " times"],
    *,
    shares: Float[Array, " b"] | None = None,
) -> Trained:
    """Train on fresh samples and record the overlaps after `marks` steps (increasing), as one compiled loop.

    A step uses the task's batch, or one in which each sample has its share (see `step`).

    >>> task, state = Task(teacher=[[1.0]]), Overlaps([[0.5]], [[0.7]])
    >>> network = with_overlaps(task, state, 5)
    >>> one_pass_sgd(jax.random.key(0), task, network, jnp.array([10, 20])).record.m.shape
    (2, 1, 1)
    """
    p, d = network.w.shape
    batch = task.samples if shares is None else shares.shape[0]
    if batch is None:
        raise ParameterError("task.batch is not known while the program is made; give the samples' shares instead")

    def advance(index, carry):
        network, t, total = carry
        rate = task.learning_rate(t)
        # Inputs and label noise in one draw: each call of a generator is compiled anew.
        drawn = draws.draw(draws.neighbour(key, index), (batch,), d + 1).gaussians
        network, risk = step(task, network, rate, drawn[:, :d], drawn[:, d], shares=shares)
        return network, t + rate / (d * p), total + risk

    def to_mark(begin, end, carry):
        network, t = carry
        network, t, total = jax.lax.fori_loop(begin, end, advance, (network, t, jnp.zeros(())))
        now = overlaps(network)
        return (network, t), Record(now.m, now.q, now.a, total / jnp.maximum(end - begin, 1).astype(float))

    (network, _), record = trainers.to_marks(to_mark, (network, jnp.zeros(())), marks)
    return Trained(record, network)
