r"""Which equations hold when learning rate and width scale with the dimension: γ = γ₀ d^{−δ}, p = p₀ d^κ."""

import jax
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics import arguments, flows, symmetric
from deeplimits.theory.two_layer.overlaps import equations, integration

ROUNDING = 1e-12


def regime(width_exponent: float, rate_exponent: float, *, boundary: str = "entrywise") -> str:
    r"""The limit of one-pass SGD at γ = γ₀ d^{−δ}, p = p₀ d^κ.

    Setting     committee machine of p = p₀d^κ students, learning rate γ = γ₀d^{−δ}, n samples in dimension d
    Limit       d → ∞; s = κ + δ; one unit of time uses d^{1+s} samples
    Result      s > 0: "gradient-flow", the variance term drops, learning is perfect up to a floor ∝ Δ d^{−s}
                s = 0: "saad-solla", the full equations with a floor that depends on Δ
                −1/2 < s < 0: "variance-dominated", in time u = νγ²/(dp²) M is frozen and dQ/du = Ψ^var: no learning
                (`variance_flow`)
                s ≤ −1/2: "no-ode", single steps do not vanish and no deterministic limit exists
    Validity    κ ≥ 0; `boundary="norm"` uses −δ < (κ+1)/2 for the last line, stricter than the entrywise one for κ > 0
    References  veiga2022

    >>> regime(0.0, 0.5), regime(0.3, -0.3), regime(0.0, -0.25), regime(0.0, -0.75)
    ('gradient-flow', 'saad-solla', 'variance-dominated', 'no-ode')
    """
    arguments.choice("boundary", boundary, ("entrywise", "norm"))
    arguments.argument("width_exponent", width_exponent, arguments.NOT_NEGATIVE)
    arguments.argument("rate_exponent", rate_exponent, arguments.FINITE)
    total = width_exponent + rate_exponent
    if total > ROUNDING:
        return "gradient-flow"
    if abs(total) <= ROUNDING:
        return "saad-solla"
    lost = (
        total <= -0.5 + ROUNDING if boundary == "entrywise" else -rate_exponent >= (width_exponent + 1) / 2 - ROUNDING
    )
    return "no-ode" if lost else "variance-dominated"


def variance_flow(task: Task, start: Overlaps, times: ArrayLike) -> Float[Array, "times p p"]:
    """Q(u) where variance dominates: dQ/du = Ψ^var(M, Q) with M frozen, u = νγ²/(dp²).

    >>> task = Task(teacher=[[1.0]])
    >>> round(float(variance_flow(task, Overlaps([[0.3]], [[0.8]]), [5.0])[0, 0, 0]), 9)
    1.529066136
    """
    arguments.of_kind("task", task, Task)
    arguments.of_kind("start", start, Overlaps)
    equations.check(task, start)

    def full(vector):
        return symmetric.filled(vector, start.students)

    def slope(u, vector):
        return symmetric.triangle(equations.squared_gradient(task, Overlaps(start.m, full(vector), start.a)))

    found = flows.solve(
        slope,
        symmetric.triangle(start.q),
        times,
        rtol=1e-11,
        atol=1e-13,
        most_steps=integration.MOST_STEPS,
        otherwise="the student's norm diverges where variance dominates; ask for earlier times",
    )
    return jax.vmap(full)(found.states)
