r"""Wasserstein gradient flow of two-layer networks at fixed dimension, on the population risk.

θ = (a, w), Φ(x; θ) = a σ(⟨w, x⟩) with x ~ N(0, I_d) and no 1/√d; f_ρ = ∫Φ dρ, y = Σ_r b_r σ(⟨w*_r, x⟩),
R = E(y − f_ρ)²/2.
θ̇ = −∇Ψ(θ; ρ), Ψ = δR/δρ = −E[(y − f_ρ)Φ(x; θ)]; the measure is carried by weighted points, Σ_i ω_i δ_{θ_i}.
By Stein's lemma the flow closes on the Gram matrix:
ẇ_i = a_i Σ_c v_c [K₂₀(i,c) w_i + J₂(i,c) w_c], ȧ_i = Σ_c v_c I₂(i,c),
v = −ω_i a_i for students and b_r for teachers.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike

from deeplimits.errors import ParameterError
from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import arguments, flows
from deeplimits.numerics.checks import converged
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.two_layer.overlaps.integrals import Moments

UNREACHED = "the flow needs more steps than allowed or diverges; ask for earlier times"


class Particles(eqx.Module):
    """Weighted points of a measure on neurons: first layer w (n, d), second layer a (n), weights ω (n) of sum one."""

    w: Float[Array, "n d"]
    a: Float[Array, " n"]
    weights: Float[Array, " n"]

    def __init__(self, w: ArrayLike, a: ArrayLike | None = None, weights: ArrayLike | None = None):
        self.w = jnp.asarray(w, float)
        if self.w.ndim != 2 or self.w.size == 0:
            raise ParameterError(f"w has shape {self.w.shape}; it must be (neurons, dimension)")
        count = self.w.shape[0]
        self.a = jnp.ones(count) if a is None else jnp.asarray(a, float)
        self.weights = jnp.full(count, 1 / count) if weights is None else jnp.asarray(weights, float)
        for name, value in (("a", self.a), ("weights", self.weights)):
            if value.shape != (count,):
                raise ParameterError(f"{name} has shape {value.shape}; with {count} neurons it must be ({count},)")


class Flow(NamedTuple):
    """The measure and its risk at each time."""

    times: Float[Array, " times"]
    w: Float[Array, "times n d"]
    a: Float[Array, "times n"]
    risk: Float[Array, " times"]
    converged: Bool[Array, ""]


class Velocity(NamedTuple):
    """(ẇ, ȧ) of every particle."""

    w: Float[Array, "n d"]
    a: Float[Array, " n"]


def velocity(
    particles: Particles,
    teacher: Float[Array, "k d"],
    outputs: Float[Array, " k"],
    moments: Moments,
    train_outputs: bool,
    *,
    mirror: int | None = None,
) -> Velocity:
    """(ẇ, ȧ) = −∇Ψ(θ; ρ) at every particle."""
    every, v = _sources(particles, teacher, outputs, mirror)
    i2, j2, k20 = moments.between(every, particles.w.shape[0])
    moved = particles.a[:, None] * ((k20 @ v)[:, None] * particles.w + (j2 * v[None, :]) @ every)
    return Velocity(moved, i2 @ v if train_outputs else jnp.zeros_like(particles.a))


def _sources(particles: Particles, teacher: Array, outputs: Array, mirror: int | None) -> tuple[Array, Array]:
    """The neurons that y − f_ρ is made of, particles first, and what each of them contributes."""
    own, v = [particles.w], [-particles.weights * particles.a]
    if mirror is not None:
        own, v = [*own, particles.w.at[:, mirror].multiply(-1.0)], [v[0] / 2, v[0] / 2]
    return jnp.concatenate([*own, teacher]), jnp.concatenate([*v, outputs])


def risk(
    particles: Particles,
    teacher: Float[Array, "k d"],
    outputs: Float[Array, " k"],
    moments: Moments,
    *,
    mirror: int | None = None,
) -> Scalar:
    """R(ρ) = ½ vᵀ I₂ v: the output is linear in ρ, the risk is a convex quadratic functional."""
    every, v = _sources(particles, teacher, outputs, mirror)
    return 0.5 * v @ moments.second_moments(every @ every.T, particles.w.shape[0]) @ v


def wasserstein_flow(
    start: Particles,
    teacher: ArrayLike,
    outputs: ArrayLike,
    times: ArrayLike,
    *,
    activation: ActivationLike = "erf_saad",
    train_outputs: bool = True,
    mirror: int | None = None,
    rtol: float = 1e-9,
) -> Flow:
    r"""Gradient flow of the population risk on the measure of neurons.

    Setting     f_ρ(x) = ∫ a σ(⟨w, x⟩) dρ(a, w), x ~ N(0, I_d), y = Σ_r b_r σ(⟨w*_r, x⟩); ρ₀ given by weighted points
    Limit       p → ∞ neurons, step γ/p → 0, at time τ = γν/p
    Result      ∂_τ ρ = ∇·(ρ ∇Ψ), dR/dτ = −∫|∇Ψ|² dρ ≤ 0. If σ is positively homogeneous of degree one (ReLU), both
                layers are trained, ρ₀ charges every direction with both signs of a, and the flow converges, then its
                limit is a global minimizer, R → 0 for a realizable y (Chizat and Bach); and a² − ‖w‖² is conserved
    Validity    the convergence statement is for p = ∞; finitely many neurons can be stuck, ever more rarely as p grows;
                `convergence_conditions` looks at its hypotheses for a start of one's own
    References  mei2018; chizat2018; rotskoff2022; sirignano2020

    Where ρ₀ and the teachers are symmetric under a change of sign of w along one axis, so is ρ at all times: with
    `mirror` that axis, one of each two particles is given, and stands for both; half the work.

    >>> start = Particles([[0.5, 0.5], [-0.3, 0.6]], [1.0, -0.5])
    >>> flow = wasserstein_flow(start, [[1.0, 0.0]], [1.0], [1.0, 10.0], activation="relu")
    >>> [round(float(r), 10) for r in flow.risk]
    [0.0832619403, 0.0012305971]
    """
    arguments.of_kind("start", start, Particles)
    times = arguments.times("times", times)
    teacher, outputs = _checked(start, teacher, outputs)
    sigma = named(activation)
    if mirror is not None:
        mirror = arguments.whole("mirror", mirror, 0, "an axis of the input")
        if mirror >= teacher.shape[1] or (arguments.known(teacher) and bool(jnp.any(teacher[:, mirror] != 0))):
            raise ParameterError(
                f"mirror = {mirror} is not allowed; it must be an axis of the input on which every teacher is zero"
            )
    flow = _solve(start, teacher, outputs, times, Moments(sigma, sigma), train_outputs, mirror, rtol)
    return converged(flow, flow.converged, UNREACHED)


def _checked(start: Particles, teacher: ArrayLike, outputs: ArrayLike) -> tuple[Array, Array]:
    """Teacher and outputs as arrays that fit the particles, all finite, the weights a probability."""
    for name, value in (("w", start.w), ("a", start.a)):
        arguments.argument(name, value, arguments.FINITE)
    arguments.probabilities("weights", start.weights, len(start.weights))
    teacher = arguments.argument("teacher", teacher, arguments.FINITE)
    outputs = arguments.argument("outputs", outputs, arguments.FINITE)
    if teacher.ndim != 2 or teacher.shape[1] != start.w.shape[1]:
        raise ParameterError(
            f"teacher has shape {teacher.shape}; its rows must have the dimension {start.w.shape[1]} of w"
        )
    if outputs.shape != teacher.shape[:1]:
        raise ParameterError(f"outputs has shape {outputs.shape}; it must be ({teacher.shape[0]},)")
    return teacher, outputs


@eqx.filter_jit
def _solve(
    start: Particles, teacher, outputs, times, moments: Moments, train_outputs: bool, mirror: int | None, rtol: float
) -> Flow:
    def slope(t, y):
        return velocity(Particles(y[0], y[1], start.weights), teacher, outputs, moments, train_outputs, mirror=mirror)

    found = flows.solve(slope, (start.w, start.a), times, rtol=rtol, atol=rtol / 100, throw=False, otherwise=UNREACHED)
    w, a = found.states
    risks = jax.lax.map(
        lambda y: risk(Particles(y[0], y[1], start.weights), teacher, outputs, moments, mirror=mirror), (w, a)
    )
    return Flow(times, w, a, risks, found.converged)


def dissipation(
    particles: Particles,
    teacher: ArrayLike,
    outputs: ArrayLike,
    activation: ActivationLike,
    *,
    train_outputs: bool = True,
) -> Scalar:
    """−dR/dτ = ∫|∇Ψ|² dρ.

    >>> float(dissipation(Particles(jnp.eye(1)), jnp.eye(1), jnp.ones(1), "identity"))  # at the teacher nothing moves
    0.0
    """
    sigma = named(activation)
    w, a = velocity(particles, *_checked(particles, teacher, outputs), Moments(sigma, sigma), train_outputs)
    return particles.weights @ (jnp.sum(w**2, axis=1) + a**2)
