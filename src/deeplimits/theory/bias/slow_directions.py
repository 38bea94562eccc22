r"""What gradient noise does along directions in which the loss is flat."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics import arguments, flows
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Floats, Scalar


def fast_variance(noise_per_curvature: ArrayLike, step: ArrayLike, curvature: ArrayLike) -> Floats:
    """⟨θ²⟩ = αη/(2(1 − ηλ)) of a steep coordinate with loss λθ² and gradient noise of variance αH, H = 2λ, exactly.

    >>> round(float(fast_variance(0.3, 0.02, 1.5)), 15)
    0.003092783505155
    """
    eta = arguments.argument("step", step, arguments.POSITIVE)
    lam = arguments.argument("curvature", curvature, arguments.POSITIVE)
    alpha = arguments.argument("noise_per_curvature", noise_per_curvature, arguments.NOT_NEGATIVE)
    sentence = "step is not below 1/curvature: the coordinate has no stationary law; take a smaller step"
    eta = valid(eta, eta * lam < 1, sentence, lambda: f" (step = {step}, curvature = {curvature})")
    return alpha * eta / (2 * (1 - eta * lam))


def entropic_drift(
    curvatures: Callable[[Float[Array, " k"]], Float[Array, " n"]],
    start: ArrayLike,
    noise_per_curvature: ArrayLike,
    step: ArrayLike,
    steps: ArrayLike,
    *,
    leading: bool = False,
) -> Float[Array, "points k"]:
    """The slow coordinates φ after the given numbers of SGD steps: noise pushes them to flatter places.

    Setting     L = Σ_i λ_i(φ)θ_i², gradient noise of covariance αH on the steep θ, φ without noise of its own, step
                η → 0
    Result      φ moves by −η Σ_i ⟨θ_i²⟩∇λ_i a step, ⟨θ_i²⟩ = αη/(2(1−ηλ_i)); to leading order by −(αη²/2)∇Σλ_i, so that
                tr H = 2Σλ_i falls by (αη²/4)‖∇tr H‖² a step
    Validity    η λ_i < 1 and slow φ: corrections of relative order η beyond the 1/(1−ηλ) kept here
    References  wei2019

    `curvatures` maps φ of shape (k,) to the λ_i; `noise_per_curvature` is α, `steps` are increasing; `leading`
    drops the factor 1/(1 − ηλ).

    >>> phi = entropic_drift(lambda phi: 1 + phi**2 / 2, [1.0], 0.3, 0.02, [20_000], leading=True)
    >>> round(float(phi[0, 0]), 8)
    0.30119421
    """
    eta = arguments.argument("step", step, arguments.POSITIVE)
    alpha = arguments.argument("noise", noise_per_curvature, arguments.NOT_NEGATIVE)

    def variance(lam):
        return alpha * eta / 2 * jnp.ones_like(lam) if leading else alpha * eta / (2 * (1 - eta * lam))

    def field(t, phi):
        values, pull = jax.vjp(curvatures, phi)
        return -eta * pull(variance(values))[0]

    path = flows.solve(field, jnp.asarray(start, float), steps).states
    # One look at the whole path, start included, in place of one in each step.
    values = jax.vmap(curvatures)(jnp.concatenate([jnp.asarray(start, float)[None], path]))
    sentence = "step is not below 1/curvature on the way: a steep coordinate has no stationary law; take a smaller step"
    return path if leading else valid(path, eta * values < 1, sentence)


def valley_drift(stiffness: ArrayLike, start: ArrayLike, slow_times: ArrayLike) -> Floats:
    """φ(τ) = φ₀ exp(−Σs_i τ/2), τ = αη² · steps: `entropic_drift` to leading order for λ_i = s_i(1 + φ²/2).

    >>> round(float(valley_drift([1.0], 1.0, 0.3 * 0.02**2 * 20_000)), 8)
    0.30119421
    """
    # dφ/dτ = −½ ∂_φ Σλ_i = −½ Σs_i φ
    return jnp.asarray(start, float) * jnp.exp(-jnp.sum(jnp.asarray(stiffness)) * jnp.asarray(slow_times, float) / 2)


def diffusion_density(amplitude: Float[Array, " points"], *, convention: str = "ito") -> Float[Array, " points"]:
    """Stationary density of dθ = a(θ) dW on the circle, at evenly spaced points where a > 0 is given.

    Setting     no drift, noise of amplitude a(θ); Itô: a is evaluated where the step begins, as in SGD
    Result      density ∝ 1/a² (Itô), ∝ 1/a (Stratonovich); mean one over the circle's points divided by 2π
    Validity    a > 0 on the whole circle
    References  gardiner2009

    >>> density = diffusion_density(jnp.array([1.0, 1.0, 2.0, 2.0]))
    >>> round(float(density[0] * jnp.pi), 12)
    0.8
    """
    arguments.choice("convention", convention, ("ito", "stratonovich"))
    amplitude = arguments.argument("amplitude", amplitude, arguments.POSITIVE, "the density is infinite elsewhere")
    weight = amplitude ** (-2.0 if convention == "ito" else -1.0)
    return weight / (jnp.mean(weight) * 2 * jnp.pi)


def slow_half_mass(slow: ArrayLike, fast: ArrayLike) -> Scalar:
    """Stationary probability of the half circle with amplitude `slow` when the other half has `fast`: f²/(s² + f²).

    >>> float(slow_half_mass(1.0, 2.0))
    0.8
    """
    s, f = arguments.argument("slow", slow, arguments.POSITIVE), arguments.argument("fast", fast, arguments.POSITIVE)
    return f**2 / (s**2 + f**2)


def lattice_slow_mass(sites: int, slow: int, fast: int) -> float:
    """The same on a ring of N sites, exactly: jumps of ±s from the sites k < N/2, of ±f from the others.

    The stationary law of the chain started at site 0, on the sites it visits for ever: with speeds 1 and 2 some sites
    of the fast half are never visited again. It tends to f²/(s² + f²) like 1/N.

    >>> [round(lattice_slow_mass(sites, 1, 2), 10) for sites in (20, 50, 102)]  # 10/13, 48/61, 50/63
    [0.7692307692, 0.7868852459, 0.7936507937]
    """
    from scipy.sparse.csgraph import connected_components

    _check_lattice(sites, slow, fast)
    here = np.arange(sites)
    speeds = np.where(here < sites // 2, slow, fast)
    jumps = np.zeros((sites, sites))
    np.add.at(jumps, (here, (here + speeds) % sites), 0.5)
    np.add.at(jumps, (here, (here - speeds) % sites), 0.5)
    _, component = connected_components(jumps, directed=True, connection="strong")
    leaves = [bool(np.any(jumps[np.ix_(component == c, component != c)])) for c in range(component.max() + 1)]
    reachable = np.linalg.matrix_power((jumps + np.eye(sites)) / 2, sites)[0] > 0
    closed = [c for c in np.unique(component[reachable]) if not leaves[c]]
    if len(closed) > 1:
        raise OutsideValidity(
            f"speeds {slow} and {fast} leave {len(closed)} closed parts of the ring, and the stationary law is not "
            "unique; take speeds without a common divisor"
        )
    visited = np.flatnonzero(component == closed[0])
    # π(P − 1) = 0, one equation replaced by Σπ = 1
    balance = jumps[np.ix_(visited, visited)].T - np.eye(len(visited))
    balance[-1] = 1.0
    law = np.linalg.solve(balance, np.eye(len(visited))[-1])
    return float(law[visited < sites // 2].sum())


def _check_lattice(sites: int, slow: int, fast: int) -> None:
    if not isinstance(sites, int | np.integer) or sites < 4 or sites % 2:
        raise ParameterError(f"sites = {sites} is not allowed; it must be an even number of at least 4")
    for name, value in (("slow", slow), ("fast", fast)):
        if not isinstance(value, int | np.integer) or not 1 <= value < sites // 2:
            raise ParameterError(
                f"{name} = {value} is not allowed; it must be a whole number from 1 to below {sites // 2}"
            )
