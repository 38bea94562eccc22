r"""Effective dynamics: what summary statistics of online SGD do in high dimension.

x' = x − δ ∇L(x, Y) with δ = c/N, t = δ·steps. Statistics u with population drift f = ⟨∇Φ, ∇u⟩, population corrector
g = (δ/2)⟨V, ∇²u⟩ and diffusion matrix Σ = δ J V Jᵀ, V the covariance of the gradient, J the Jacobian of u, follow

    du = (−f + g)(u) dt + Σ(u)^{1/2} dB.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import NotConverged, OutsideValidity, ParameterError
from deeplimits.numerics import flows
from deeplimits.numerics.arguments import POSITIVE, array, number, of_kind

TOLERANCE = 1e-10


class EffectiveDynamics(NamedTuple):
    """The limit of summary statistics, as functions of the vector u of statistics."""

    drift: Callable
    """f(u): the statistics descend along it."""
    corrector: Callable
    """g(u): what the noise of the gradient adds through the curvature of the statistics."""
    diffusion: Callable | None = None
    """Σ(u), a matrix; None for a ballistic limit."""

    def velocity(self, u: Array) -> Array:
        """−f(u) + g(u)."""
        return -self.drift(u) + self.corrector(u)


class Scaling(NamedTuple):
    """How large the step is for the statistics: what of its noise is left in the limit."""

    drift: float
    """max |f| over the points, and the same of |g| and of the largest eigenvalue of Σ."""
    corrector: float
    diffusion: float
    critical: bool
    """Whether g or Σ is left; below the critical scaling of the step the statistics follow gradient flow on Φ."""
    diffusive: bool
    """Whether Σ is left; without it the limit is ballistic, an ODE."""

    @property
    def name(self) -> str:
        """\"sub-critical\", \"ballistic\" or \"diffusive\"."""
        return "diffusive" if self.diffusive else "ballistic" if self.critical else "sub-critical"


class FixedPoint(NamedTuple):
    """A rest point of the ballistic limit."""

    point: np.ndarray
    eigenvalues: np.ndarray
    """Of the Jacobian of the velocity, by decreasing real part."""
    stable: bool
    residual: float


def solve_ode(
    dynamics: EffectiveDynamics,
    start: ArrayLike,
    times: ArrayLike,
    *,
    tolerance: float = TOLERANCE,
    stiff: bool = False,
) -> Array:
    """The ballistic limit du/dt = −f(u) + g(u) at increasing times ≥ 0, from u(0) = start.

    Setting     online SGD x' = x − δ∇L(x, Y) in R^N with δ = c/N; summary statistics u(x) in R^k, t = δ·steps
    Result      u → the solution of du = (−f + g)(u) dt + Σ(u)^{1/2} dB; without Σ, of the ODE solved here
    Validity    statistics localizable (bounded operator norms of their Hessians up to δ^{−1/2}, gradient noise
                with eight moments) and closed: f, g, Σ depend on x through u only
    References  benarous2022

    >>> import jax.numpy as jnp
    >>> decay = EffectiveDynamics(drift=lambda u: u, corrector=jnp.zeros_like)
    >>> round(float(solve_ode(decay, [1.0], [0.0, 1.0])[1, 0]), 9)
    0.367879441
    """
    of_kind("dynamics", dynamics, EffectiveDynamics)
    return flows.solve(
        lambda t, u: dynamics.velocity(u),
        jnp.atleast_1d(jnp.asarray(start, float)),
        times,
        rtol=tolerance,
        atol=tolerance,
        stiff=stiff,
        most_steps=20_000,
        otherwise="the ballistic limit ends before the last time asked for; take earlier times",
    ).states


def classify_dynamics(dynamics: EffectiveDynamics, points: ArrayLike, *, tolerance: float = 1e-9) -> Scaling:
    """Whether the step is sub-critical (g = Σ = 0), or critical with a ballistic (Σ = 0) or a diffusive limit.

    Setting     dynamics in the limit, looked at in points (n, k) of the statistics' space
    Result      g and Σ count as zero where they are at most `tolerance` times the largest of |f|, |g|, ‖Σ‖ found
    Validity    as good as the points: what vanishes in all of them may be left elsewhere. Σ must be positive
                semidefinite
    References  benarous2022

    >>> from deeplimits.theory.online_sgd import spiked_dynamics
    >>> points = [[0.3, 0.7], [0.0, 1.0]]
    >>> [classify_dynamics(spiked_dynamics(2.0, 2, c), points).name for c in (0.0, 1.0)]
    ['sub-critical', 'ballistic']
    """
    of_kind("dynamics", dynamics, EffectiveDynamics)
    found = np.asarray(array("points", points, ("n", "k"), why="one vector of statistics in each row"))
    small = float(number("tolerance", tolerance, POSITIVE))
    drift, corrector, diffusion = 0.0, 0.0, 0.0
    for u in jnp.asarray(found):
        drift = max(drift, float(jnp.max(jnp.abs(dynamics.drift(u)))))
        corrector = max(corrector, float(jnp.max(jnp.abs(dynamics.corrector(u)))))
        if dynamics.diffusion is not None:
            eigenvalues = np.linalg.eigvalsh(np.asarray(dynamics.diffusion(u)))
            if eigenvalues[0] < -1e-9 * np.abs(eigenvalues).max():
                raise ParameterError(
                    f"the diffusion matrix at {np.asarray(u).tolist()} has the eigenvalue {eigenvalues[0]:.4g}; a "
                    "covariance is positive semidefinite"
                )
            diffusion = max(diffusion, float(eigenvalues[-1]))
    largest = max(drift, corrector, diffusion)
    if not np.isfinite(largest):
        raise ParameterError("drift, corrector or diffusion is not finite at a point; give other points")
    diffusive = diffusion > small * largest
    return Scaling(drift, corrector, diffusion, diffusive or corrector > small * largest, diffusive)


class Fluctuations(NamedTuple):
    """A path and the covariance around it, at the times asked for."""

    path: Float[Array, "times d"]
    covariance: Float[Array, "times d d"]


def fluctuations(
    dynamics: EffectiveDynamics,
    noise_covariance: Callable,
    start: ArrayLike,
    times: ArrayLike,
    *,
    covariance: ArrayLike | None = None,
    stiff: bool = False,
) -> Fluctuations:
    """The ballistic path and lim N Cov around it: dC/dt = J C + C Jᵀ + D, J the Jacobian of the velocity.

    `noise_covariance` is D(u) = lim N δ J_u V J_uᵀ; `covariance` the initial N Cov, zero unless given.

    >>> decay = EffectiveDynamics(drift=lambda u: u, corrector=jnp.zeros_like)
    >>> path, covariance = fluctuations(decay, lambda u: jnp.array([[2.0]]), jnp.ones(1), jnp.log(jnp.array([2.0])))
    >>> round(float(path[0, 0]), 8), round(float(covariance[0, 0, 0]), 8)  # e^{−t} and 1 − e^{−2t}
    (0.5, 0.75)
    """
    of_kind("dynamics", dynamics, EffectiveDynamics)
    start = jnp.atleast_1d(jnp.asarray(start, float))
    count = start.shape[0]
    initial = jnp.zeros((count, count)) if covariance is None else jnp.asarray(covariance, float)

    def velocity(state):
        u, c = state[:count], state[count:].reshape(count, count)
        jacobian = jax.jacfwd(dynamics.velocity)(u)
        change = jacobian @ c + c @ jacobian.T + noise_covariance(u)
        return jnp.concatenate([dynamics.velocity(u), change.ravel()])

    joint = EffectiveDynamics(drift=lambda state: -velocity(state), corrector=jnp.zeros_like)
    path = solve_ode(joint, jnp.concatenate([start, initial.ravel()]), times, stiff=stiff)
    return Fluctuations(path[:, :count], path[:, count:].reshape(-1, count, count))


def fixed_points(
    dynamics: EffectiveDynamics, guesses: Sequence[ArrayLike], *, tolerance: float = 1e-9, apart: float = 1e-6
) -> list[FixedPoint]:
    """The distinct rest points that Newton's method reaches from the guesses, with their stability.

    A guess from which nothing is reached is passed over; `NotConverged` is raised when none reaches a rest point.

    >>> import jax.numpy as jnp
    >>> pitchfork = EffectiveDynamics(drift=lambda u: u**3 - u, corrector=jnp.zeros_like)
    >>> [(round(float(p.point[0]), 6), p.stable) for p in fixed_points(pitchfork, [[-0.9], [0.1], [1.2]])]
    [(-1.0, True), (0.0, False), (1.0, True)]
    """
    of_kind("dynamics", dynamics, EffectiveDynamics)
    import scipy.optimize  # here, because only rest points need it

    velocity, jacobian = jax.jit(dynamics.velocity), jax.jit(jax.jacfwd(dynamics.velocity))
    found: list[FixedPoint] = []
    best = np.inf
    for guess in guesses:
        start = np.atleast_1d(np.asarray(guess, float))
        answer = scipy.optimize.root(
            lambda u: np.asarray(velocity(jnp.asarray(u))), start, jac=lambda u: np.asarray(jacobian(jnp.asarray(u)))
        )
        residual = float(np.max(np.abs(np.asarray(velocity(jnp.asarray(answer.x))))))
        best = min(best, residual)
        if not residual <= tolerance or any(np.max(np.abs(p.point - answer.x)) < apart for p in found):
            continue
        eigenvalues = np.linalg.eigvals(np.asarray(jacobian(jnp.asarray(answer.x))))
        eigenvalues = eigenvalues[np.argsort(-eigenvalues.real)]
        found.append(FixedPoint(answer.x, eigenvalues, bool(eigenvalues[0].real < 0), residual))
    if not found:
        raise NotConverged(
            f"no rest point was reached from {len(guesses)} guesses: the smallest velocity found is {best:.3g}, above "
            f"{tolerance:g}; give guesses closer to one"
        )
    return sorted(found, key=lambda p: tuple(p.point))


def zoom(dynamics: EffectiveDynamics, point: ArrayLike, scales: ArrayLike) -> EffectiveDynamics:
    """The same dynamics for ũ = (u − point)/scales: with scales N^{−1/2}, the microscopic view of a rest point.

    `dynamics` must be the one before the limit, whose diffusion of order 1/N then becomes of order one.

    >>> around = EffectiveDynamics(lambda u: u - 1, jnp.zeros_like, lambda u: 1e-4 * jnp.eye(1))
    >>> close = zoom(around, jnp.ones(1), jnp.array([1e-2]))
    >>> round(float(close.velocity(jnp.ones(1))[0]), 10), round(float(close.diffusion(jnp.ones(1))[0, 0]), 10)
    (-1.0, 1.0)
    """
    of_kind("dynamics", dynamics, EffectiveDynamics)
    centre, scales = jnp.asarray(point, float), jnp.asarray(scales, float)

    def outer(u):
        return centre + scales * u

    diffusion = dynamics.diffusion
    return EffectiveDynamics(
        drift=lambda u: dynamics.drift(outer(u)) / scales,
        corrector=lambda u: dynamics.corrector(outer(u)) / scales,
        diffusion=None if diffusion is None else lambda u: diffusion(outer(u)) / jnp.outer(scales, scales),
    )


def stationary_covariance(dynamics: EffectiveDynamics, noise_covariance: Callable, point: ArrayLike) -> np.ndarray:
    """lim N Cov at a stable rest point: J C + C Jᵀ + D = 0.

    >>> import jax.numpy as jnp
    >>> decay = EffectiveDynamics(drift=lambda u: 2 * u, corrector=jnp.zeros_like)
    >>> stationary_covariance(decay, lambda u: jnp.array([[8.0]]), [0.0]).tolist()
    [[2.0]]
    """
    of_kind("dynamics", dynamics, EffectiveDynamics)
    import scipy.linalg

    point = jnp.atleast_1d(jnp.asarray(point, float))
    jacobian = np.asarray(jax.jacfwd(dynamics.velocity)(point))
    largest = float(np.linalg.eigvals(jacobian).real.max())
    if largest >= 0:
        raise OutsideValidity(
            f"the rest point has the growth rate {largest:.4g}; fluctuations are stationary only where all are negative"
        )
    forcing = np.asarray(noise_covariance(point))
    found = scipy.linalg.solve_continuous_lyapunov(jacobian, -forcing)
    residual = np.abs(jacobian @ found + found @ jacobian.T + forcing).max()
    if not residual <= 1e-9 * np.abs(forcing).max():
        raise NotConverged(f"Lyapunov's equation was solved with residual {residual:.2g} only")
    return found
