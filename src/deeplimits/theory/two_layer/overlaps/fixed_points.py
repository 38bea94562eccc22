"""Fixed points of the overlap equations and their stability."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from deeplimits.errors import NotConverged
from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics.arguments import of_kind
from deeplimits.theory.two_layer.overlaps import equations, integration


class FixedPoint(NamedTuple):
    """A state that does not move, how well it does not, and how perturbations of it grow."""

    state: Overlaps
    risk: float
    residual: float
    rates: np.ndarray
    """Eigenvalues of the Jacobian, by decreasing real part; the symmetric part of Q only."""

    @property
    def stable(self) -> bool:
        """No perturbation grows; neutral directions, as at zero risk with spare students, are allowed."""
        return bool(np.real(self.rates).max() < 1e-9)


def jacobian(task: Task, state: Overlaps, variance: bool = True) -> Float[Array, "size size"]:
    """Derivative of the velocity in the packed variables (M row by row, Q_ij for i ≤ j, and a where it is trained)."""
    of_kind("task", task, Task)
    of_kind("state", state, Overlaps)
    a = state.a if task.frozen else None
    right_side = integration.packed_velocity(task, state.students, a=a, variance=variance)
    return jax.jacfwd(lambda vector: right_side(0.0, vector))(integration.pack(state, with_outputs=a is None))


def fixed_point(
    task: Task, guess: Overlaps, *, variance: bool = True, tolerance: float = 1e-13, iterations: int = 200
) -> FixedPoint:
    """The fixed point near a guess, by Newton's method with halved steps; saddles are found as well as attractors.

    >>> task = Task(teacher=[[1.0]], step=1.0, noise=0.1**0.5)
    >>> found = fixed_point(task, Overlaps([[1.0]], [[1.0]]))
    >>> round(float(found.state.m[0, 0]), 9), round(float(found.state.q[0, 0]), 9), found.stable
    (1.103514366, 1.287116875, True)
    """
    of_kind("task", task, Task)
    of_kind("guess", guess, Overlaps)
    equations.check(task, guess)
    a = guess.a if task.frozen else None
    right_side = integration.packed_velocity(task, guess.students, a=a, variance=variance)

    @jax.jit
    def both(vector):
        return right_side(0.0, vector), jax.jacfwd(lambda y: right_side(0.0, y))(vector)

    vector = integration.pack(guess, with_outputs=a is None)
    value, slope = (np.asarray(part) for part in both(vector))
    residual = np.abs(value).max()
    for _ in range(iterations):
        if residual <= tolerance:
            break
        if not np.all(np.isfinite(slope)):
            break
        # Least squares, because a family of fixed points makes the Jacobian singular.
        step = np.linalg.lstsq(slope, -value, rcond=1e-11)[0]
        for halving in range(40):
            trial = vector + step / 2**halving
            trial_value, trial_slope = (np.asarray(part) for part in both(trial))
            trial_residual = np.abs(trial_value).max()
            if np.isfinite(trial_residual) and trial_residual < residual * (1 - 1e-4 / 2**halving):
                break
        else:
            break
        vector, value, slope, residual = trial, trial_value, trial_slope, trial_residual
    # Rounding in the risk's differences leaves a floor just above machine precision.
    found = residual <= max(tolerance, 1e-14 * (1 + np.abs(np.asarray(vector)).max()))
    if not (found and np.all(np.isfinite(slope))):
        raise NotConverged(
            f"no fixed point was found near the guess: the velocity is still {residual:.2g}, above {tolerance:.2g}; "
            "start closer, for instance from the end of a trajectory"
        )
    state = integration.unpack(vector, guess.students, guess.teachers, a=a)
    rates = np.linalg.eigvals(slope)
    return FixedPoint(state, float(equations.risk(task, state)), float(residual), rates[np.argsort(-rates.real)])
