"""One way to solve an ordinary differential equation at given times, for all flows of the theory."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from deeplimits.numerics.checks import converged
from deeplimits.numerics.runge_kutta import explicit_path

if TYPE_CHECKING:
    # Its import takes as long as a short solution: only an implicit solver needs it.
    import diffrax


class Solved(NamedTuple):
    """The state at the times asked for, a leading axis on every leaf; not a finite number where it was not reached."""

    states: Any
    converged: Bool[Array, ""]
    steps: Int[Array, ""]

    def require(self, message: str) -> "Solved":
        """Itself, or NotConverged with this message where the solution was not found, traced or not."""
        return self._replace(states=converged(self.states, self.converged, message))


def solve_at(
    slope: Callable[[Any, Any], Any],
    start: Any,
    times: Float[Array, " times"],
    *,
    rtol: float,
    atol: float,
    solver: "diffrax.AbstractSolver | None" = None,
    most_steps: int = 100_000,
) -> Solved:
    """dy/dt = slope(t, y) from y(0) = start, at increasing times ≥ 0; an explicit method of order eight unless given.

    >>> import jax.numpy as jnp
    >>> found = solve_at(lambda t, y: -y, jnp.ones(()), jnp.array([0.5, 1.0]), rtol=1e-10, atol=1e-12)
    >>> round(float(found.states[1]), 8)
    0.36787944
    """
    if solver is None:
        vector, unravel = ravel_pytree(start)
        path, reached, steps = explicit_path(
            lambda t, y: ravel_pytree(slope(t, unravel(y)))[0], vector, times, rtol, atol, most_steps
        )
        return Solved(jax.vmap(unravel)(path), reached, steps)
    import diffrax

    accuracy = diffrax.PIDController(rtol=rtol, atol=atol)
    found: Any = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, _: slope(t, y)),
        solver,
        t0=0.0,
        t1=times[-1],
        dt0=None,
        y0=start,
        saveat=diffrax.SaveAt(ts=times),
        # Steps end at the times asked for: interpolating between steps would cost four digits.
        stepsize_controller=diffrax.ClipStepSizeController(accuracy, step_ts=times),
        max_steps=most_steps,
        throw=False,
    )
    return Solved(found.ys, found.result == diffrax.RESULTS.successful, found.stats["num_steps"])


def fixed_steps(
    terms: "diffrax.AbstractTerm",
    solver: "diffrax.AbstractSolver",
    start: Any,
    times: Float[Array, " times"],
    steps: int,
) -> Any:
    """The state at increasing times ≥ 0 (a leading axis on every leaf), by `steps` equal steps up to the last."""
    import diffrax

    end = jnp.maximum(times[-1], 1e-12)
    found = diffrax.diffeqsolve(
        terms,
        solver,
        t0=0.0,
        t1=end,
        dt0=end / steps,
        y0=start,
        saveat=diffrax.SaveAt(ts=times),
        max_steps=steps + 2,
    )
    assert found.ys is not None
    return found.ys


def implicit(rtol: float, atol: float) -> "diffrax.AbstractSolver":
    """Kvaerno's method of order five, for stiff equations and long rests near a fixed point."""
    import diffrax
    import optimistix

    # Hairer's test of convergence, the usual one, takes rounding at a fixed point for divergence.
    return diffrax.Kvaerno5(root_finder=optimistix.Chord(rtol / 10, atol / 100, cauchy_termination=True))
