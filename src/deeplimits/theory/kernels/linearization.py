"""How far a two-layer network is from its linearization in the weights.

f(x; W) = m^{−1/2} Σ_j a_j σ(⟨w_j, x⟩) with |a_j| ≤ 1 and m neurons; W has the rows w_j.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named

_RANGE = 30.0


@functools.cache
def curvature_bound(activation: ActivationLike) -> float:
    """sup |σ''| over the line, to rounding.

    >>> round(curvature_bound("tanh"), 13)
    0.7698003589195
    """
    sigma = named(activation)
    grid = np.linspace(-_RANGE, _RANGE, 12_001)
    values = _curvature(sigma, grid)
    if not np.all(np.isfinite(values)) or values[[0, -1]].max() > 1.5 * values[len(grid) // 4 : -len(grid) // 4].max():
        raise OutsideValidity(f"the second derivative of {sigma.name} is unbounded, so the bound does not apply")
    largest = values.max()
    for _ in range(2):
        # As many points again between the neighbours of the best. A maximum is missed by the square of the distance:
        # after one pass, 1e-6 apart, by 1e-13; after two by nothing that a number could hold.
        best = int(np.argmax(values))
        grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], len(grid))
        values = _curvature(sigma, grid)
        largest = max(largest, values.max())
    return float(largest)


def _curvature(activation: Activation, u: np.ndarray) -> np.ndarray:
    # A prediction may be under compilation; these numbers are needed now.
    with jax.ensure_compile_time_eval():
        return np.abs(np.asarray(_second_derivative(activation, u)))


@functools.partial(jax.jit, static_argnums=0)
def _second_derivative(activation: Activation, u: Float[Array, " points"]) -> Float[Array, " points"]:
    return jnp.broadcast_to(activation.second_derivative(u), u.shape)


def smooth_remainder_bound(
    activation: ActivationLike,
    width: ArrayLike,
    distance: ArrayLike,
    largest_output_weight: ArrayLike = 1.0,
    input_norm: ArrayLike = 1.0,
) -> Float[Array, "..."]:
    """Bound on |f(x;W) − f(x;V) − ⟨∇f(x;V), W−V⟩| for ‖W − V‖_F = `distance`: sup|σ''| max|a| ‖x‖² distance²/(2√m).

    >>> from deeplimits.models import activation
    >>> float(smooth_remainder_bound(activation("quadratic"), 4, 1.0))  # attained
    0.25
    """
    curvature = curvature_bound(activation)
    width, distance = jnp.asarray(width, float), jnp.asarray(distance, float)
    return (
        curvature
        * jnp.asarray(largest_output_weight, float)
        * jnp.asarray(input_norm, float) ** 2
        * distance**2
        / (2 * jnp.sqrt(width))
    )


def relu_remainder_bound(
    width: ArrayLike, distance: ArrayLike, failure: ArrayLike, two_points: bool = False, sharp: bool = False
) -> Float[Array, "..."]:
    r"""Bound on a wide ReLU network's distance from its linearization, for all weights within ‖W − W₀‖_F ≤ B at once.

    Setting     |a_j| ≤ 1, ‖x‖ ≤ 1, Gaussian W₀, probability at least 1 − δ (δ = `failure`)
    Result      |f(x;W) − f̃(x;W)| ≤ (2B^{4/3} + B log(1/δ)^{1/4})/m^{1/6}; with `two_points`, f expanded around any V
                within B: (6B^{4/3} + 2B log(1/δ)^{1/4})/m^{1/6}. `sharp` gives what the proof gives:
                √2 B^{4/3}m^{−1/6} + B log(1/δ)^{1/4}m^{−1/4}, and 2√3, 2 in place of √2, 1 for two points
    Validity    B² ≤ m; ‖x‖ ≠ 1: replace B by B‖x‖
    References  telgarsky2021

    >>> round(float(relu_remainder_bound(10**6, 1.0, 0.01)), 5)
    0.34649
    """
    m, b = jnp.asarray(width, float), jnp.asarray(distance, float)
    chance = jnp.log(1 / jnp.asarray(failure, float)) ** 0.25
    first, second = (6.0, 2.0) if two_points else (2.0, 1.0)
    if sharp:
        first = 2 * 3**0.5 if two_points else 2**0.5
        return first * b ** (4 / 3) * m ** (-1 / 6) + second * b * chance * m**-0.25
    return (first * b ** (4 / 3) + second * b * chance) / m ** (1 / 6)


def relu_worst_case(width: ArrayLike, distance: ArrayLike, balanced: bool = True) -> Float[Array, "..."]:
    """sup over ‖W − W₀‖_F ≤ B of |f − f̃| for a ReLU network with a_j = ±1 and ‖x‖ = 1, at leading order in m.

    (3/8) 2^{2/3} κ^{1/3} B^{4/3} m^{−1/6}, κ = φ(0) for balanced signs, 2φ(0) if all a_j are equal: neurons with
    |⟨w, x⟩| ≤ D/2 are moved by D = (2B²/κm)^{1/3} across their kink. No bound can have a better power than 1/6.

    >>> round(float(relu_worst_case(1, 1.0)), 12), round(float(relu_worst_case(1, 1.0, balanced=False)), 12)
    (0.438215720611, 0.552117210793)
    """
    m, b = jnp.asarray(width, float), jnp.asarray(distance, float)
    density = (1.0 if balanced else 2.0) / jnp.sqrt(2 * jnp.pi)
    return 3 / 8 * 2 ** (2 / 3) * density ** (1 / 3) * b ** (4 / 3) * m ** (-1 / 6)


class Expansion(NamedTuple):
    """f̃(x; W) and its features ∇f(x; W₀)."""

    value: Float[Array, ""]
    features: Float[Array, "m d"]


def two_layer_expansion(
    activation: ActivationLike, weights: ArrayLike, start: ArrayLike, output: ArrayLike, x: ArrayLike
) -> Expansion:
    r"""The first-order Taylor expansion of a two-layer network in its inner weights: its value, and its features.

    Setting     f(x; W) = m^(−1/2) Σ_j a_j σ(⟨w_j, x⟩), expanded around W₀ = `start`, evaluated at W = `weights` (m, d)
    Result      ∇_{w_j} f = m^(−1/2) a_j σ'(⟨w_j, x⟩) x; f̃(x; W) = f(x; W₀) + ⟨∇f(x; W₀), W − W₀⟩. For σ positively
                homogeneous of degree k, ⟨∇f(x; W), W⟩ = k f(x; W): a ReLU network is f̃ = ⟨∇f(x; W₀), W⟩
    Validity    any differentiable σ; at the kink of ReLU any subgradient does, since it is multiplied by ⟨w, x⟩ = 0
    References  bartlett2021 Sec 5; chizat2019

    >>> value, features = two_layer_expansion("relu", [[2.0]], [[1.0]], [1.0], [1.0])
    >>> float(value), features.tolist()
    (2.0, [[1.0]])
    """
    sigma = named(activation)
    w, w0 = jnp.asarray(weights, float), jnp.asarray(start, float)
    a, x = jnp.asarray(output, float), jnp.asarray(x, float)
    root = jnp.sqrt(1.0 * w.shape[0])
    features = (a * sigma.derivative(w0 @ x) / root)[:, None] * x
    return Expansion(a @ sigma.value(w0 @ x) / root + jnp.sum(features * (w - w0)), features)
