r"""Gaussian fluctuations of the overlaps around their deterministic limit.

√(dp/γ) (Ω^ν − Ω(t)) → a Gaussian process with covariance dΣ/dt = JΣ + ΣJᵀ + D, J the Jacobian of the velocity and D the
covariance of one step. State: M row by row, Q_ij for i ≤ j, then a if it is trained.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike

from deeplimits.errors import NotConverged, OutsideValidity
from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics import arguments, flows, quasi_random, symmetric
from deeplimits.numerics.checks import converged
from deeplimits.theory.gaussian.fields.trapezoid import semidefinite_factor
from deeplimits.theory.two_layer.overlaps import equations, fixed_points, integration

REACH = 7.5
_NODES = {2: 151, 3: 59, 4: 41}
"""Nodes per dimension of the trapezoid rule on [−7.5, 7.5] for the one-step covariance, by number of fields."""
MOST_FIELDS, POINTS = 40, 2**14
"""Beyond four fields: so many quasi-random points, and their reflections."""
EVEN = 0.02
"""Difference of D from that of half the points, relative to the largest entry, above which they are too few."""
RESOLVED = 1e-5
"""Relative error of E σ'⁴ and E σ⁴, the sharpest factors of that integral, above which a field is too wide."""
MOST_OVERLAPS = 160
"""Along a flow, which asks for D some three hundred times: points × overlaps² multiplications each."""


class Fluctuations(NamedTuple):
    """Mean trajectory and covariance of the scaled fluctuations, at each time."""

    times: Float[Array, " times"]
    mean: Float[Array, "times size"]
    covariance: Float[Array, "times size size"]
    converged: Bool[Array, ""]


def step_covariance(task: Task, state: Overlaps, *, time: ArrayLike = 0.0) -> Float[Array, "size size"]:
    """D, the covariance of one step ξ.

    ξ = (a_i E σ'_i λ*_r;  a_i E σ'_i λ_j + a_j E σ'_j λ_i + (γ/pb) a_i a_j E² σ'_i σ'_j;  ρ_a E σ_i)

    By the trapezoid rule over all p + k ≤ 4 fields, beyond by quasi-random points, whose error is a thousandth or so
    and is checked against half of them; exact over the label noise. For a batch, the first-order parts of ξ
    average over b samples.
    """
    arguments.of_kind("task", task, Task)
    arguments.of_kind("state", state, Overlaps)
    p, k = state.students, state.teachers
    _check(task, p + k)
    equations.check(task, state)
    return converged(_one_step(task, state, time), _resolved(task, state), _UNRESOLVED)


def _one_step(task: Task, state: Overlaps, time: ArrayLike, points: int = POINTS) -> Float[Array, "size size"]:
    p, k = state.students, state.teachers
    # With odd activations every mean below is one of an even function of the fields.
    fields, weight = _grid(p + k, points, half=task.activation.odd and task.teacher_activation.odd)
    factor = semidefinite_factor(equations.covariance(task, state))
    lam = fields @ factor.T
    sigma, slope = task.activation.value(lam[:, :p]), task.activation.derivative(lam[:, :p])
    clean = task.teacher_activation.value(lam[:, p:]) @ task.teacher_output / k - sigma @ state.a / p
    pushed = state.a[None, :] * slope
    first, second = symmetric.upper(p)
    # ξ = E u + E² w, and w is there for Q only: E = clean + √Δ ζ, over which the means are polynomials.
    among = pushed[:, first] * lam[:, second] + pushed[:, second] * lam[:, first]
    outputs = [] if task.frozen else [task.output_rate * sigma]
    u = jnp.concatenate([(pushed[:, :, None] * lam[:, None, p:]).reshape(-1, p * k), among, *outputs], axis=1)
    w = task.learning_rate(time) / (p * task.batch) * pushed[:, first] * pushed[:, second]
    square, noise = clean**2, task.noise_variance
    squared, cubed = square + noise, clean * (square + 3 * noise)
    fourth = square * (square + 6 * noise) + 3 * noise**2
    q = slice(p * k, p * k + len(first))
    crossed = (u * (weight * cubed)[:, None]).T @ w
    moments = (u * (weight * squared)[:, None]).T @ u
    moments = moments.at[:, q].add(crossed).at[q, :].add(crossed.T)
    moments = moments.at[q, q].add((w * (weight * fourth)[:, None]).T @ w)
    mean = ((weight * clean) @ u).at[q].add((weight * squared) @ w)
    return (moments - mean[:, None] * mean[None, :]) / task.batch


def covariance_flow(task: Task, start: Overlaps, times: ArrayLike) -> Fluctuations:
    """Mean and covariance Σ of √(dp/γ)(Ω^ν − Ω(t)) along a trajectory, Σ(0) = 0.

    >>> task = Task(teacher=[[1.0]], step=0.4, noise=0.3**0.5, activation="identity")
    >>> found = covariance_flow(task, Overlaps([[0.2]], [[0.7]]), [1.5])
    >>> round(float(found.covariance[0, 0, 0]), 6)
    0.351311
    """
    arguments.of_kind("task", task, Task)
    arguments.of_kind("start", start, Overlaps)
    times = arguments.times("times", times)
    students, teachers = start.students, start.teachers
    _check(task, students + teachers)
    equations.check(task, start)
    a = start.a if task.frozen else None
    right_side = integration.packed_velocity(task, students, a=a)
    size = integration.pack(start, with_outputs=a is None).shape[0]
    if size > MOST_OVERLAPS:
        raise OutsideValidity(
            f"p = {students} and k = {teachers} have {size} overlaps: the covariance of one step is an integral over "
            f"thousands of points of {size} × {size} products, hundreds of times along a flow, which is offered up to "
            f"{MOST_OVERLAPS} overlaps; step_covariance gives it at one state"
        )

    def slope(t, y):
        vector, sigma = y
        # The Jacobian column by column, with the velocity itself from the same program.
        columns = jax.vmap(lambda e: jax.jvp(lambda v: right_side(t, v), (vector,), (e,)), out_axes=(None, 1))
        velocity, j = columns(jnp.eye(vector.size))
        moved = j @ sigma
        d = _one_step(task, integration.unpack(vector, students, teachers, a=a), t)
        return velocity, moved + moved.T + d

    at_rest = (integration.pack(start, with_outputs=a is None), jnp.zeros((size, size)))
    sentence = "the fluctuations diverge or need more steps than allowed; ask for an earlier time"
    found = flows.solve(slope, at_rest, times, rtol=1e-8, atol=1e-10, most_steps=20_000, otherwise=sentence)
    mean, covariance = found.states
    # From one time to the next overlaps stay near those at both.
    met = jnp.concatenate([at_rest[0][None], mean])
    resolved = jax.lax.map(lambda vector: _resolved(task, integration.unpack(vector, students, teachers, a=a)), met)
    return Fluctuations(times, mean, converged(covariance, jnp.all(resolved), _UNRESOLVED), found.converged)


class AtRest(NamedTuple):
    """A stable fixed point, and Σ there."""

    point: fixed_points.FixedPoint
    covariance: np.ndarray


def stationary_covariance(task: Task, guess: Overlaps) -> AtRest:
    """The stable fixed point near a guess and Σ there, from Lyapunov's equation JΣ + ΣJᵀ + D = 0.

    >>> point, covariance = stationary_covariance(Task(np.eye(1), 0.5, 1.0), Overlaps([[1.0]], [[1.0]]))
    >>> point.stable, covariance.shape
    (True, (2, 2))
    """
    arguments.of_kind("task", task, Task)
    arguments.of_kind("guess", guess, Overlaps)
    from scipy.linalg import solve_continuous_lyapunov

    point = fixed_points.fixed_point(task, guess)
    slowest = np.real(point.rates).max()
    if slowest > -1e-10:
        raise OutsideValidity(
            f"the fixed point has a perturbation that grows or stays (rate {slowest:.3g}): fluctuations have no "
            "stationary law there"
        )
    # The task is closed over, so that a second layer at rest is known to be at rest.
    j = np.asarray(jax.jit(lambda state: fixed_points.jacobian(task, state))(point.state))
    d = np.asarray(jax.jit(lambda state: step_covariance(task, state))(point.state))
    sigma = solve_continuous_lyapunov(j, -d)
    residual = np.abs(j @ sigma + sigma @ j.T + d).max()
    if residual > 1e-9 * np.abs(d).max():
        raise NotConverged(f"Lyapunov's equation was solved with residual {residual:.2g} only")
    return AtRest(point, sigma)


def _grid(dimensions: int, points: int, *, half: bool) -> tuple[Float[Array, "nodes n"], Float[Array, " nodes"]]:
    """Nodes and weights; those of every second of two opposite nodes where `half`."""
    if dimensions not in _NODES:
        nodes = quasi_random.gaussian_points(dimensions, points)
        weight = np.ones(len(nodes))
        nodes, weight = (nodes[:points], weight[:points]) if half else (nodes, weight)
    else:
        line = np.linspace(-REACH, REACH, _NODES[dimensions])
        line = (line - line[::-1]) / 2  # so that rounding leaves no node without its opposite
        mesh = np.stack(np.meshgrid(*[line] * dimensions, indexing="ij"), axis=-1).reshape(-1, dimensions)
        squared = (mesh**2).sum(axis=1)
        # What is farther away than the ends of the axes weighs e^−28 and less: most of a cube in four dimensions.
        nodes, weight = (part[squared <= REACH**2] for part in (mesh, np.exp(-squared / 2)))
        if half:  # the origin is the one in the middle, its own opposite
            centre = len(nodes) // 2
            nodes, weight = nodes[: centre + 1], np.append(2 * weight[:centre], 1.0)
    return jnp.asarray(nodes), jnp.asarray(weight / weight.sum())


_UNRESOLVED = (
    "a field is too wide for the grid of the one-step covariance, whose integrand is as narrow as σ'⁴; take smaller "
    "overlaps, or an earlier time"
)


def _resolved(task: Task, state: Overlaps) -> Bool[Array, ""]:
    """Whether half the step of the grid gives the same E σ'⁴ of the students and E σ⁴ of all fields; beyond four
    fields, whether half of the points give the same D."""
    if state.students + state.teachers not in _NODES:
        all_points, half = (_one_step(task, state, 0.0, points) for points in (POINTS, POINTS // 2))
        return jnp.max(jnp.abs(all_points - half)) <= EVEN * jnp.max(jnp.abs(all_points))
    count = _NODES[state.students + state.teachers]
    student, teacher = task.activation, task.teacher_activation
    own, others = symmetric.diagonal(state.q), symmetric.diagonal(task.teacher)

    def agrees(function, variances):
        def mean(nodes):
            line = jnp.linspace(-REACH, REACH, nodes)
            weight = jnp.exp(-(line**2) / 2)
            return function(jnp.sqrt(jnp.maximum(variances, 0.0))[:, None] * line[None, :]) ** 4 @ weight / weight.sum()

        coarse, fine = mean(count), mean(2 * count - 1)
        return jnp.all(jnp.abs(coarse - fine) <= RESOLVED * fine)

    return agrees(student.derivative, own) & agrees(student.value, own) & agrees(teacher.value, others)


def _check(task: Task, fields: int) -> None:
    if fields > MOST_FIELDS:
        raise OutsideValidity(
            f"p + k = {fields} is not covered: the one-step covariance is an integral over all fields, offered up to "
            f"{MOST_FIELDS} of them"
        )
    if not (task.activation.smooth and task.teacher_activation.smooth):
        raise OutsideValidity(
            f"activation = {task.activation.name} is not covered: the quadrature of the one-step covariance needs a "
            "smooth activation"
        )
