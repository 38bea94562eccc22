r"""A model αf trained on ½‖αf(w) − y‖²: the factors α at which training is lazy, and where the tangent model ends.

f₀ = f(w₀), J₀ its Jacobian there; the risk at the start, R₀(α) = ½‖αf₀ − y‖², depends on α unless f₀ = 0.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, array, number
from deeplimits.numerics.shapes import Scalar


class LazyRange(NamedTuple):
    """The factors α with least < α < largest; `largest` is inf where every larger one will do."""

    least: float
    largest: float

    def risk(self, alpha: float, outputs: ArrayLike, targets: ArrayLike) -> Scalar:
        """R₀(α) = ½‖αf₀ − y‖²."""
        scaled = number("alpha", alpha, POSITIVE) * jnp.asarray(outputs, float)
        return jnp.sum((scaled - jnp.asarray(targets, float)) ** 2) / 2


def lazy_range(
    outputs: ArrayLike, targets: ArrayLike, lipschitz: float, least: float, largest: float, *, sharp: bool = True
) -> LazyRange:
    r"""The output factors α for which `lazy_scaling` holds: an interval, a half line, or an error where there are none.

    Setting     R(αf(w)) = ½‖αf(w) − y‖², f₀ = `outputs` (n,), y = `targets` (n,), L = Lip(J) = `lipschitz`,
                singular values σ_min = `least`, σ_max = `largest` of J₀
    Result      the condition is α > k‖αf₀ − y‖, k = 4L/σ_min² (sharp) or 24Lσ_max/σ_min³ (as published, where = is
                allowed), so that (1 − k²‖f₀‖²)α² + 2k²⟨f₀, y⟩α − k²‖y‖² > 0: all α > k‖y‖ if f₀ = 0, a bounded interval
                or nothing if k‖f₀‖ > 1
    Validity    α > 0
    References  chizat2019; telgarsky2021

    >>> [round(float(end), 12) for end in lazy_range([0.2], [1.0], 1.0, 1.0, 1.0, sharp=False)]
    [4.137931034483, 6.315789473684]
    >>> lazy_range([0.0], [1.0], 1.0, 1.0, 1.0)
    LazyRange(least=4.0, largest=inf)
    """
    f = np.asarray(array("outputs", outputs, ("n",), why="one output for each point"))
    y = np.asarray(array("targets", targets, f.shape, why="one target for each output"))
    slow, low, high = (
        float(number(name, value, allowed))
        for name, value, allowed in (
            ("lipschitz", lipschitz, NOT_NEGATIVE),
            ("least", least, POSITIVE),
            ("largest", largest, POSITIVE),
        )
    )
    if low > high * (1 + 1e-12):
        raise ParameterError(f"least = {low:g} is above largest = {high:g}; they are singular values of one matrix")
    k = 4 * slow / low**2 if sharp else 24 * slow * high / low**3
    # α² > k²‖αf₀ − y‖², divided by k² and by the size of y, which sets the scale of α
    size = float(np.linalg.norm(y))
    if size == 0:
        if k * np.linalg.norm(f) < 1:
            return LazyRange(0.0, math.inf)
        raise _no_factor(k, f)
    unit, f_norm = y / size, float(np.linalg.norm(f))
    leading, middle = (1 - k * f_norm) * (1 + k * f_norm), k * float(f @ unit)
    # With α = k‖y‖b: leading·b² + 2·middle·b − 1 > 0; 1/b solves c² − 2·middle·c − leading = 0.
    discriminant = middle**2 + leading
    if k == 0:
        return LazyRange(0.0, math.inf)
    if leading > 0:
        return LazyRange(k * size / (middle + math.sqrt(discriminant)), math.inf)
    if middle <= 0 or discriminant <= 0:
        raise _no_factor(k, f)
    sharpest = middle + math.sqrt(discriminant)
    # The product of the two solutions is −leading.
    other = -leading / sharpest
    return LazyRange(k * size / sharpest, k * size / other if other > 0 else math.inf)


def _no_factor(k: float, f: np.ndarray) -> OutsideValidity:
    return OutsideValidity(
        f"no factor makes training lazy: the outputs at the start have norm {np.linalg.norm(f):.4g}, and the condition "
        f"α > {k:.4g}·‖αf₀ − y‖ fails for every α; start where the model vanishes, or widen it"
    )


def _norm(vector: np.ndarray) -> float:
    """‖v‖ of numbers whose squares may be none."""
    largest = float(np.max(np.abs(vector)))
    return largest * float(np.linalg.norm(vector / largest)) if largest > 0 else 0.0


class TangentEnd(NamedTuple):
    """Where the tangent model ends, and how far that is."""

    parameters: Float[Array, " p"]
    displacement: Scalar
    residual: Scalar
    """‖αf̃(û) − y‖ relative to ‖αf₀ − y‖: zero where J₀ has full row rank."""


def tangent_interpolant(
    jacobian: ArrayLike, outputs: ArrayLike, targets: ArrayLike, start: ArrayLike, *, alpha: ArrayLike = 1.0
) -> TangentEnd:
    r"""û = w₀ + J₀⁺(y/α − f₀): where gradient flow on ½‖αf̃(u) − y‖² ends, f̃(u) = f₀ + J₀(u − w₀).

    Setting     J₀ = `jacobian` (n, p), f₀ = `outputs` (n,), y = `targets` (n,), w₀ = `start` (p,)
    Result      the least-squares solution nearest to the start; from f₀ = 0 it lies at ‖J₀⁺y‖/α, and the trained model
                within O(1/α²) of it
    Validity    α > 0; singular values below max(n, p) rounding errors of the largest count as zero
    References  chizat2019; telgarsky2021

    >>> end = tangent_interpolant([[1.0]], [0.0], [1.0], [0.0], alpha=24.0)
    >>> round(float(end.parameters[0]), 15), float(end.residual)
    (0.041666666666667, 0.0)
    """
    j = np.asarray(array("jacobian", jacobian, ("n", "p")))
    f = np.asarray(array("outputs", outputs, j.shape[:1], why="one output for each row of jacobian"))
    y = np.asarray(array("targets", targets, j.shape[:1], why="one target for each row of jacobian"))
    w = np.asarray(array("start", start, j.shape[1:], why="one parameter for each column of jacobian"))
    a = float(number("alpha", alpha, POSITIVE))
    # The size of J₀ is taken out, so that its squares stay numbers.
    scale = float(np.max(np.abs(j)))
    move = (
        np.zeros_like(w)
        if scale == 0
        else np.linalg.pinv(j / scale, rcond=max(j.shape) * 2.0**-52) @ (y / a - f) / scale
    )
    gap, left = _norm(a * f - y), _norm(a * (f + j @ move) - y)
    relative = left / gap if gap > 0 else 0.0
    return TangentEnd(jnp.asarray(w + move), jnp.asarray(_norm(move)), jnp.asarray(relative))
