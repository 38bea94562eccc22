r"""The noisy mean-field flow in one dimension: a partial differential equation, its stationary law and free energy.

Neurons θ ∈ R with features Φ(x; θ); V(θ) = −E[yΦ], U(θ, θ') = E[ΦΦ']; Ψ_λ(θ; ρ) = V(θ) + ∫U(θ,θ')ρ(θ')dθ' + λθ²/2.

    ∂_τ ρ = ∂_θ(ρ ∂_θ Ψ_λ) + β⁻¹ ∂²_θ ρ,      F(ρ) = R(ρ) + (λ/2)∫θ²ρ + β⁻¹ ∫ρ ln ρ,      R = E y²/2 + ∫Vρ + ½∫∫Uρρ
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from deeplimits.errors import NotConverged, ParameterError
from deeplimits.numerics import flows
from deeplimits.numerics.arguments import FINITE, NOT_NEGATIVE, argument, array, of_kind
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.two_layer.mean_field import frozen_steps
from deeplimits.theory.two_layer.mean_field.frozen_steps import bernoulli
from deeplimits.theory.two_layer.mean_field.solvable_flows import check_temperature

MANY = 300
"""Points of a grid from which on the Jacobian is too large to be factored at every step."""


class Interaction(NamedTuple):
    """A noisy mean-field problem on a uniform grid of neurons."""

    grid: Float[Array, " n"]
    external: Float[Array, " n"]
    """V on the grid, ridge not included."""
    pair: Float[Array, "n n"]
    """U on the grid."""
    constant: Scalar
    """E y²/2."""
    ridge: Scalar
    inverse_temperature: Scalar

    @property
    def spacing(self) -> Scalar:
        return self.grid[1] - self.grid[0]

    def potential(self, density: Float[Array, " n"]) -> Float[Array, " n"]:
        """Ψ_λ(θ; ρ)."""
        return self.external + self.spacing * self.pair @ density + self.ridge * self.grid**2 / 2

    def free_energy(self, density: Float[Array, " n"]) -> Scalar:
        """F(ρ); it never increases along the flow."""
        h = self.spacing
        risk = self.constant + h * self.external @ density + h**2 * density @ self.pair @ density / 2
        entropy = h * jnp.sum(jnp.where(density > 0, density * jnp.log(jnp.where(density > 0, density, 1.0)), 0.0))
        return risk + self.ridge / 2 * h * self.grid**2 @ density + entropy / self.inverse_temperature


def interaction(
    grid: ArrayLike,
    external: ArrayLike,
    pair: ArrayLike,
    constant: ArrayLike,
    ridge: ArrayLike,
    inverse_temperature: ArrayLike,
) -> Interaction:
    """Check and assemble a problem; the grid must be uniform.

    >>> grid = np.linspace(-8.0, 8.0, 401)
    >>> problem = interaction(grid, np.zeros(401), np.zeros((401, 401)), 0.0, 2.0, 1.0)
    >>> float(problem.potential(jnp.zeros(401))[0])  # without data, the ridge alone
    64.0
    """
    check_temperature(ridge, inverse_temperature)
    parts = [jnp.asarray(value, float) for value in (grid, external, pair, constant, ridge, inverse_temperature)]
    theta = np.asarray(parts[0])
    if theta.ndim != 1 or len(theta) < 3 or not np.allclose(np.diff(theta), theta[1] - theta[0], rtol=1e-8):
        raise ParameterError("grid is not uniform; give at least three equally spaced increasing points")
    if parts[1].shape != theta.shape or parts[2].shape != theta.shape * 2:
        raise ParameterError(
            f"external and pair have shapes {parts[1].shape}, {parts[2].shape}; the grid has {len(theta)} points"
        )
    for name, value in zip(("grid", "external", "pair", "constant"), parts[:4], strict=True):
        argument(name, value, FINITE)
    return Interaction(*parts)


def density_flow(problem: Interaction, start: ArrayLike, times: ArrayLike) -> Float[Array, "times n"]:
    """ρ on the grid at each time, by finite volumes with exponentially fitted (Scharfetter-Gummel) fluxes.

    The scheme keeps mass, has the Gibbs law as its exact equilibrium, and is second order in the spacing. In time it is
    exact to 1e-8: by a linearly implicit method of order six or, on more than 300 points (not to be differentiated
    backwards), by extrapolated implicit steps in a frozen potential, which cost a product with the matrix U each.

    >>> grid = np.linspace(-8.0, 8.0, 161)
    >>> problem = interaction(grid, np.zeros(161), np.zeros((161, 161)), 0.0, 1.0, 1.0)
    >>> start = np.exp(-2 * grid**2) * np.sqrt(2 / np.pi)
    >>> (density,) = density_flow(problem, start, [1.0])
    >>> round(float(problem.spacing * density @ grid**2), 2)  # 1 − ¾ e^{−2t}, an Ornstein-Uhlenbeck process
    0.9
    """
    of_kind("problem", problem, Interaction)
    h, temperature = problem.spacing, 1 / problem.inverse_temperature
    start = array("start", start, problem.grid.shape, allowed=NOT_NEGATIVE, why="a density on the grid")
    if len(problem.grid) > MANY:
        return frozen_steps.density_path(problem.potential, start, times, h, temperature)

    def slope(t, density):
        difference = jnp.diff(problem.potential(density)) / temperature
        # flux from cell i to i+1: (T/h) [B(ΔΨ/T) ρ_i − B(−ΔΨ/T) ρ_{i+1}]
        flux = temperature / h * (bernoulli(difference) * density[:-1] - bernoulli(-difference) * density[1:])
        return jnp.diff(-jnp.pad(flux, 1)) / h

    return flows.solve(
        slope,
        start,
        times,
        rtol=1e-8,
        atol=1e-10,
        stiff=True,
        most_steps=20_000,
        otherwise="the density needs more steps than allowed; ask for earlier times or take a coarser grid",
    ).states


class Stationary(NamedTuple):
    """The stationary law, its free energy and the residual with which it solves its equation."""

    density: Float[Array, " n"]
    free_energy: float
    residual: float


def stationary_law(problem: Interaction, *, tolerance: float = 1e-11, iterations: int = 20_000) -> Stationary:
    """ρ ∝ exp(−βΨ_λ(·; ρ)), unique because the free energy is strictly convex; by damped iteration.

    >>> grid = np.linspace(-8.0, 8.0, 401)
    >>> problem = interaction(grid, np.zeros(401), np.zeros((401, 401)), 0.0, 2.0, 1.0)
    >>> round(float(problem.spacing * stationary_law(problem).density @ grid**2), 10)  # 1/(βλ)
    0.5
    """
    of_kind("problem", problem, Interaction)
    h, beta = float(problem.spacing), float(problem.inverse_temperature)
    external, pair, grid = (np.asarray(part) for part in (problem.external, problem.pair, problem.grid))
    confining = external + float(problem.ridge) * grid**2 / 2

    def gibbs(density):
        energy = -beta * (confining + h * pair @ density)
        weight = np.exp(energy - energy.max())
        return weight / (h * weight.sum())

    density, damping, residual = gibbs(np.zeros_like(grid)), 1.0, np.inf
    for _ in range(iterations):
        proposal = gibbs(density)
        following = h * np.abs(proposal - density).sum()
        if following < tolerance:
            energy = float(problem.free_energy(jnp.asarray(proposal)))
            return Stationary(jnp.asarray(proposal), energy, float(following))
        # An iteration that overshoots is damped more; one that converges is trusted a little more again.
        damping = max(damping / 2, 1e-4) if following > residual else min(damping * 1.02, 1.0)
        density, residual = density + damping * (proposal - density), following
    raise NotConverged(
        f"the stationary law was found with residual {residual:.2g} only, above {tolerance:.2g}; lower the inverse "
        "temperature or raise iterations"
    )
