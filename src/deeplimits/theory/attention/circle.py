"""Tokens on the circle are angles: particles, and the density of infinitely many."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.nn import softmax
from jax.scipy.special import i0e
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import arguments, flows
from deeplimits.numerics.arguments import known
from deeplimits.numerics.checks import converged
from deeplimits.theory.attention.equiangular import KINDS

UNRESOLVED = "the density has become sharper than the modes resolve; ask for earlier times, less beta or more modes"
RESOLVED = 1e-9


class AngularHead(NamedTuple):
    """A head: the score matrix B = QᵀK and the value matrix V, both 2 × 2."""

    score: Float[Array, "2 2"]
    value: Float[Array, "2 2"]


class AngularFeedForward(NamedTuple):
    """w σ(a x + b) with w (2, m), a (m, 2), b (m), and the name of σ."""

    out: Float[Array, "2 m"]
    into: Float[Array, "m 2"]
    bias: Float[Array, " m"]
    activation: ActivationLike = "tanh"


def angular_velocity(
    angles: ArrayLike,
    beta: ArrayLike,
    *,
    heads: Sequence[AngularHead] = (),
    feed_forward: AngularFeedForward | None = None,
    kind: str = "softmax",
    repulsive: bool = False,
) -> Float[Array, " n"]:
    """θ̇_i = ⟨τ_i, Σ_h Σ_j A^h_ij V_h x_j + w σ(a x_i + b)⟩ with x = (cos θ, sin θ), τ = (−sin θ, cos θ).

    Without heads B = V = I: θ̇_i = −Σ_j A_ij sin(θ_i − θ_j), A_ij ∝ e^{β cos(θ_i − θ_j)}, divided by Z_i or by n.
    Negative β only where `repulsive` says that it is meant.

    >>> [round(float(speed), 9) for speed in angular_velocity([0.0, 1.0, 2.5], 2.0)]
    [0.246742553, -0.115802143, -0.145226671]
    """
    arguments.choice("kind", kind, KINDS)
    theta = arguments.array("angles", angles, ("n",))
    b = arguments.number(
        "beta", beta, arguments.FINITE if repulsive else arguments.NOT_NEGATIVE, "repulsive=True allows β < 0"
    )
    _refuse_misfits(heads, feed_forward)
    x = jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=1)
    along = jnp.stack([-jnp.sin(theta), jnp.cos(theta)], axis=1)

    def weights(scores):
        return softmax(scores, axis=1) if kind == "softmax" else jnp.exp(scores) / theta.shape[0]

    if not heads and feed_forward is None:
        apart = theta[:, None] - theta[None, :]
        return _finite(-jnp.sum(weights(b * jnp.cos(apart)) * jnp.sin(apart), axis=1))
    speed = jnp.zeros_like(theta)
    for head in heads:
        # ⟨τ_i, V x_j⟩ for all pairs at once: no sum of vectors is formed
        speed = speed + jnp.sum(weights(b * (x @ head.score @ x.T)) * (along @ head.value @ x.T), axis=1)
    if feed_forward is not None:
        hidden = named(feed_forward.activation).value(x @ feed_forward.into.T + feed_forward.bias[None, :])
        speed = speed + jnp.sum((along @ feed_forward.out) * hidden, axis=1)
    return _finite(speed)


def _refuse_misfits(heads, feed_forward):
    for head in heads:
        arguments.array("score", head.score, (2, 2), why="a head on the circle")
        arguments.array("value", head.value, (2, 2), why="a head on the circle")
    if feed_forward is not None:
        m = arguments.array("bias", feed_forward.bias, ("m",), why="one number for each hidden unit").shape[0]
        arguments.array("out", feed_forward.out, (2, m), why="from the hidden units to the plane")
        arguments.array("into", feed_forward.into, (m, 2), why="from the plane to the hidden units")


def _finite(speed):
    if known(speed) and not np.all(np.isfinite(speed)):
        raise ParameterError("attention without its normalization is too large for numbers; take a smaller beta")
    return speed


def angular_flow(
    start: ArrayLike,
    times: ArrayLike,
    beta: ArrayLike,
    *,
    heads: Sequence[AngularHead] = (),
    feed_forward: AngularFeedForward | None = None,
    kind: str = "softmax",
    repulsive: bool = False,
    rtol: float = 1e-11,
) -> Float[Array, "times n"]:
    """The angles of tokens on the circle at increasing times: `angular_velocity`, integrated.

    >>> [round(float(angle), 8) for angle in angular_flow([0.0, 1.0, 2.5], [3.0], 2.0)[0]]
    [0.65935839, 0.80573144, 1.85042105]
    """
    theta = arguments.array("start", start, ("n",))
    how = {"heads": heads, "feed_forward": feed_forward, "kind": kind, "repulsive": repulsive}
    angular_velocity(theta, beta, **how)

    def field(t, angles):
        return angular_velocity(angles, beta, **how)

    return flows.solve(field, theta, times, rtol=rtol, atol=1e-13).states


def circle_moments(
    start: ArrayLike, times: ArrayLike, beta: ArrayLike, *, modes: int = 128
) -> Float[Array, "times modes"]:
    """The moments m_k(t) = E cos kθ, k = 1 … `modes`, of the density of infinitely many tokens, symmetric about θ = 0.

    The continuity equation ∂_tμ + ∂_θ(μ𝒳) = 0, 𝒳 = β⁻¹∂_θ log ∫ e^{β cos(θ − φ)} μ(dφ), in its Fourier modes: a
    convolution multiplies mode k by I_k(β), products are formed on a grid three times as fine. `start` are the first
    moments at t = 0, the rest vanish. Densities sharpen like e^t; where the modes do not resolve them it raises.

    >>> [round(float(m), 9) for m in circle_moments([0.25], [1.0, 2.0], 2.0)[:, 0]]
    [0.35119868, 0.485869335]
    """
    given = arguments.array("start", start, ("k",))
    b = arguments.number("beta", beta, arguments.NOT_NEGATIVE)
    count = arguments.whole("modes", modes, given.shape[0], "at least those that are given")
    order = np.arange(1.0, count + 1)
    grid = np.arange(3 * count) * (2 * np.pi / (3 * count))
    cosines, sines = jnp.asarray(np.cos(grid[:, None] * order)), jnp.asarray(np.sin(grid[:, None] * order))
    lowest = jnp.min(1 + 2 * cosines[:, : given.shape[0]] @ given)
    if known(lowest) and float(lowest) < -RESOLVED:
        raise ParameterError(f"start = {given} are the moments of no density: 1 + 2Σ m_k cos kθ falls to {lowest:.3g}")
    blurred = bessel_ratios(count, b)

    def field(t, m):
        # 2πμ = 1 + 2Σ m_k cos kθ; ∫e^{β cos(θ−φ)}μ = I₀ [1 + 2Σ (I_k/I₀) m_k cos kθ], and I_k/β = (I_{k−1}−I_{k+1})/2k
        density = 1 + 2 * cosines @ m
        partition = 1 + 2 * cosines @ (blurred.ratios * m)
        speed = -2 * (sines @ (order * blurred.over_beta * m)) / partition
        # ṁ_k = −k E[𝒳 sin kθ]
        return -order * (sines.T @ (speed * density)) / grid.size

    found = flows.solve(field, jnp.zeros(count).at[: given.shape[0]].set(given), times, rtol=1e-11, atol=1e-13).states
    tail = jnp.max(jnp.abs(found[:, -max(count // 16, 1) :]))
    return converged(found, tail < RESOLVED, UNRESOLVED)


class BesselRatios(NamedTuple):
    """I_k(β)/I₀(β) and I_k(β)/(β I₀(β)) for k = 1, 2, …; both are finite at β = 0."""

    ratios: Float[Array, " modes"]
    over_beta: Float[Array, " modes"]


def bessel_ratios(modes: int, beta: ArrayLike) -> BesselRatios:
    """The first `modes` ratios of modified Bessel functions, by the trapezoid rule on e^{β(cos φ − 1)} cos kφ.

    >>> [round(float(ratio), 9) for ratio in bessel_ratios(3, 4.0).ratios]
    [0.863522611, 0.568238694, 0.295283917]
    """
    b = arguments.number("beta", beta, arguments.NOT_NEGATIVE)
    # Spectral: aliases are of the order of I_{points−k}.
    points = 4 * modes + 512
    phi = np.arange(points) * (2 * np.pi / points)
    order = np.arange(1.0, modes + 1)
    weight = jnp.exp(b * (np.cos(phi) - 1)) / points / i0e(b)
    # I_k/β = (1/k) mean of e^{β cos φ} sin φ sin kφ
    over = (jnp.asarray(np.sin(np.outer(order, phi)) * np.sin(phi)) @ weight) / order
    return BesselRatios(jnp.asarray(np.cos(np.outer(order, phi))) @ weight, over)
