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
from deeplimits.numerics.arguments import NOT_NEGATIVE, argument, array, at_least, inside
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Floats, Scalar

_FAR, _POINTS, _HALVINGS = 1e4, 12_001, 60


class Curvature(NamedTuple):
    """What a search along the line found of σ''."""

    largest: float
    """sup |σ''|; infinite where σ' jumps or σ'' grows without bound."""
    kink: float | None
    """Where σ or σ' jumps, if it does."""


@functools.cache
def curvature(activation: ActivationLike) -> Curvature:
    """sup |σ''| over the line, and whether σ' jumps somewhere.

    A grid that widens with the distance from zero. Between two of its points σ' and σ can change by no more than
    sup |σ''| allows; where they change by more the interval hides something and is halved, until it is seen or until
    there is nothing left to halve: a kink, also of a function that does not name one.

    >>> curvature("relu").kink, round(curvature(lambda u: jnp.tanh(u - 100)).largest, 10)
    (0.0, 0.7698003589)
    """
    found = named(activation)
    if found.kinks:
        return Curvature(np.inf, float(found.kinks[0]))
    grid = np.sinh(np.linspace(-np.arcsinh(_FAR), np.arcsinh(_FAR), _POINTS))
    left, right = grid[:-1], grid[1:]
    points, values = grid, _curvature(found, grid)
    if not np.all(np.isfinite(values)):
        return Curvature(np.inf, None)
    inner, outer = np.abs(grid) < _FAR / 2, np.abs(grid) > 0.95 * _FAR
    if values[outer].max() > 1.5 * values[inner].max():
        return Curvature(np.inf, None)
    for _ in range(_HALVINGS):
        hidden = _hides(found, left, right, values.max())
        if not hidden.any():
            break
        middle = (left[hidden] + right[hidden]) / 2
        points, values = np.append(points, middle), np.append(values, _curvature(found, middle))
        left, right = np.append(left[hidden], middle), np.append(middle, right[hidden])
    else:
        return Curvature(np.inf, float(left[_hides(found, left, right, values.max())][0]))
    order = np.argsort(points)
    points, values = points[order], values[order]
    largest = values.max()
    for _ in range(3):
        # As many points again between the neighbours of the best. A maximum is missed by the square of the distance.
        best = int(np.argmax(values))
        points = np.linspace(points[max(best - 1, 0)], points[min(best + 1, len(points) - 1)], 2001)
        values = _curvature(found, points)
        largest = max(largest, values.max())
    return Curvature(float(largest), None)


def _hides(activation: Activation, left: np.ndarray, right: np.ndarray, largest: float) -> np.ndarray:
    """Which intervals σ or σ' cross by more than a curvature of `largest` allows."""
    with jax.ensure_compile_time_eval():
        ends = np.stack([left, right])
        slope = np.asarray(_derivative(activation, jnp.asarray(ends.ravel()))).reshape(ends.shape)
        value = np.asarray(_value(activation, jnp.asarray(ends.ravel()))).reshape(ends.shape)
    width = right - left
    room = 1.01 * largest * width
    rounding = 1e-12 * (1 + np.abs(slope).max(axis=0))
    turns = np.abs(slope[1] - slope[0]) > room + rounding
    rises = np.abs(value[1] - value[0] - slope[0] * width) > room * width + rounding * width + 1e-14 * np.abs(value[0])
    return turns | rises


def curvature_bound(activation: ActivationLike) -> float:
    """sup |σ''| over the line, to rounding; refused for activations with kinks and for unbounded σ''.

    >>> round(curvature_bound("tanh"), 13)
    0.7698003589195
    """
    found = curvature(activation)
    if found.kink is not None:
        name = named(activation).name
        raise OutsideValidity(
            f"activation = {name} has a kink at {found.kink:g}, where its slope jumps; take a smooth one"
        )
    if not np.isfinite(found.largest):
        raise OutsideValidity(
            f"the second derivative of {named(activation).name} is unbounded, so the bound does not apply"
        )
    return found.largest


@functools.partial(jax.jit, static_argnums=0)
def _value(activation: Activation, u: Float[Array, " points"]) -> Float[Array, " points"]:
    return jnp.broadcast_to(activation.value(u), u.shape)


@functools.partial(jax.jit, static_argnums=0)
def _derivative(activation: Activation, u: Float[Array, " points"]) -> Float[Array, " points"]:
    return jnp.broadcast_to(activation.derivative(u), u.shape)


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
    *,
    largest_output_weight: ArrayLike = 1.0,
    input_norm: ArrayLike = 1.0,
) -> Floats:
    """Bound on |f(x;W) − f(x;V) − ⟨∇f(x;V), W−V⟩| for ‖W − V‖_F = `distance`: sup|σ''| max|a| ‖x‖² distance²/(2√m).

    Refused for activations with a kink, which no bound of this kind serves: see `relu_remainder_bound`.

    >>> float(smooth_remainder_bound("quadratic", 4, 1.0))  # attained
    0.25
    """
    bend = curvature_bound(activation)
    m, distance = argument("width", width, at_least(1)), argument("distance", distance, NOT_NEGATIVE)
    output = argument("largest_output_weight", largest_output_weight, NOT_NEGATIVE)
    norm = argument("input_norm", input_norm, NOT_NEGATIVE)
    return bend * output * norm**2 * distance**2 / (2 * jnp.sqrt(m))


def relu_remainder_bound(
    width: ArrayLike, distance: ArrayLike, failure: ArrayLike, *, two_points: bool = False, sharp: bool = False
) -> Floats:
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
    m, b = argument("width", width, at_least(1)), argument("distance", distance, NOT_NEGATIVE)
    chance = jnp.log(1 / argument("failure", failure, inside(0, 1), "a probability")) ** 0.25
    first, second = (6.0, 2.0) if two_points else (2.0, 1.0)
    if sharp:
        first = 2 * 3**0.5 if two_points else 2**0.5
        return first * b ** (4 / 3) * m ** (-1 / 6) + second * b * chance * m**-0.25
    return (first * b ** (4 / 3) + second * b * chance) / m ** (1 / 6)


def relu_worst_case(width: ArrayLike, distance: ArrayLike, *, balanced: bool = True) -> Floats:
    """sup over ‖W − W₀‖_F ≤ B of |f − f̃| for a ReLU network with a_j = ±1 and ‖x‖ = 1, at leading order in m.

    (3/8) 2^{2/3} κ^{1/3} B^{4/3} m^{−1/6}, κ = φ(0) for balanced signs, 2φ(0) if all a_j are equal: neurons with
    |⟨w, x⟩| ≤ D/2 are moved by D = (2B²/κm)^{1/3} across their kink. No bound can have a better power than 1/6.

    >>> round(float(relu_worst_case(1, 1.0)), 12), round(float(relu_worst_case(1, 1.0, balanced=False)), 12)
    (0.438215720611, 0.552117210793)
    """
    m, b = argument("width", width, at_least(1)), argument("distance", distance, NOT_NEGATIVE)
    density = (1.0 if balanced else 2.0) / jnp.sqrt(2 * jnp.pi)
    return 3 / 8 * 2 ** (2 / 3) * density ** (1 / 3) * b ** (4 / 3) * m ** (-1 / 6)


def relu_worst_deviation(start: ArrayLike, output: ArrayLike, x: ArrayLike, distance: ArrayLike) -> Scalar:
    """sup over ‖W − W₀‖_F ≤ B of |f(x;W) − f̃(x;W)| for this very ReLU network, exactly: `relu_worst_case` at finite m.

    Setting     f(x; W) = m^(−1/2) Σ_j a_j relu(⟨w_j, x⟩), a_j = ±a, W₀ = `start` (m, d), B = `distance`
    Result      for each sign of a_j sort s_j = |⟨w_{0j}, x⟩|; max_k (|a|B‖x‖√k − |a|Σ_{j≤k} s_j)/√m, the larger of the
                two signs: the k neurons nearest to their kink are moved across it, by B/√k each
    Validity    output weights of one size
    References  telgarsky2021

    >>> round(float(relu_worst_deviation([[0.1], [-0.2], [2.0]], [1.0, 1.0, 1.0], [1.0], 1.0)), 12)
    0.643291500171
    """
    w = array("start", start, ("m", "d"))
    a, point = array("output", output, (w.shape[0],)), array("x", x, (w.shape[1],))
    reach = argument("distance", distance, NOT_NEGATIVE) * jnp.linalg.norm(point)
    size = jnp.abs(a[0])
    a = valid(a, jnp.all(jnp.abs(jnp.abs(a) - size) <= 1e-12 * size), "output weights must all have one size")
    near = jnp.abs(w @ point)

    def of_sign(chosen):
        # Neurons of the other sign come last and cost too much to be moved.
        costs = jnp.cumsum(jnp.sort(jnp.where(chosen, near, jnp.inf)))
        count = jnp.arange(1.0, len(near) + 1)
        return jnp.max(jnp.maximum(reach * jnp.sqrt(count) - costs, 0.0))

    return size * jnp.maximum(of_sign(a > 0), of_sign(a < 0)) / jnp.sqrt(1.0 * w.shape[0])


class Expansion(NamedTuple):
    """f̃(x; W) and its features ∇f(x; W₀)."""

    value: Scalar
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
    w = array("weights", weights, ("m", "d"), why="one row for each neuron")
    w0 = array("start", start, w.shape, why="that of weights")
    a, x = array("output", output, (w.shape[0],)), array("x", x, (w.shape[1],))
    root = jnp.sqrt(1.0 * w.shape[0])
    features = (a * sigma.derivative(w0 @ x) / root)[:, None] * x[None, :]
    return Expansion(a @ sigma.value(w0 @ x) / root + jnp.sum(features * (w - w0)), features)
