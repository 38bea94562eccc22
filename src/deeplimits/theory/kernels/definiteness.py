r"""When is the Gram matrix of a random-feature kernel positive definite?"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.errors import ParameterError
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import panels
from deeplimits.theory.gaussian import dual, dual_of, hermite_coefficients
from deeplimits.theory.gaussian.pairs import Pair

DEGREE = 40
SAME = 1e-28
"""1 − cos of points that are the same, or opposite, but for rounding."""
NEAR = 0.05
"""Up to this 1 − cos what the kernel loses is an integral, of full relative accuracy; beyond, a difference."""
_RULE = panels.gauss(24, 0.0, 1.0)


class Definiteness(NamedTuple):
    """The least eigenvalue of E σ(w·x_a)σ(w·x_b), and what the theorem says about it."""

    least_eigenvalue: float
    guaranteed: bool
    """Whether the criterion below proves positive definiteness for these points."""
    antipodal_pairs: int
    even_degrees: int
    """Nonzero Hermite coefficients of even degree, up to degree 40."""
    odd_degrees: int


def gram_definiteness(activation: ActivationLike, points: ArrayLike) -> Definiteness:
    r"""Least eigenvalue of E σ(w·x_a)σ(w·x_b) for unit vectors, and whether it must be positive.

    Setting     unit vectors x_a (rows of `points`), w ~ N(0, I), σ = Σ_k s_k He_k/√k!
    Result      E σ(w·x_a)σ(w·x_b) = Σ_k s_k²(x_a·x_b)^k. If σ is not a polynomial, the matrix is positive definite
                whenever x_a ≠ ±x_b for all pairs. With antipodal pairs the sums and differences over a pair decouple:
                infinitely many nonzero s_k of each parity suffice; an odd or even σ is then singular, and so is ReLU
                (s_3 = s_5 = … = 0) as soon as there are more antipodal pairs than dimensions
    Validity    unit inputs, no two equal; infinitely many coefficients are judged by those up to degree 40, so
                `guaranteed` is False for polynomials and where a parity has fewer than five there; the eigenvalue is
                known to rounding of the largest difference between the kernel's entries: for points however close to
                each other, all of them, to many digits
    References  daniely2016; du2019

    >>> import numpy as np
    >>> angles = np.pi * np.arange(4) / 4
    >>> found = gram_definiteness("relu", np.stack([np.cos(angles), np.sin(angles)], axis=1))
    >>> round(found.least_eigenvalue, 12), found.guaranteed
    (0.017977920665, True)
    """
    x = np.asarray(points, float)
    if x.ndim != 2 or not x.size or np.any(np.abs(np.sum(x**2, axis=1) - 1) > 1e-8):
        raise ParameterError("points must be a matrix (n, d) whose rows have length one; divide each by its norm")
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    apart = np.triu_indices(len(x), 1)
    # 1 ∓ cos as half the square of a difference or a sum, which have their digits
    gaps, cogaps = (
        np.concatenate([np.sum((x[k] - sign * x[k + 1 :]) ** 2, axis=1) / 2 for k in range(len(x))]) for sign in (1, -1)
    )
    if np.any(gaps < SAME):
        raise ParameterError("points contains the same point twice; the matrix is then singular, so remove one")
    chosen = named(activation)
    expansion = hermite_coefficients(lambda z: np.asarray(chosen.value(jnp.asarray(z))), DEGREE)
    present = ~expansion.vanishes()
    even, odd = int(present[::2].sum()), int(present[1::2].sum())
    antipodal = int(np.sum(cogaps < SAME))
    losses = np.zeros((len(x), len(x)))
    losses[apart] = _losses(chosen, gaps, cogaps)
    least = _least_eigenvalue(float(dual(chosen, 1.0, 1.0, 1.0)), losses + losses.T)
    # Five of one parity below degree 40 do not belong to a polynomial that a person would write down.
    endless_even, endless_odd = even >= 5, odd >= 5
    guaranteed = (endless_even or endless_odd) if antipodal == 0 else (endless_even and endless_odd)
    return Definiteness(least, guaranteed, antipodal, even, odd)


def _losses(activation: Activation, gaps: np.ndarray, cogaps: np.ndarray) -> np.ndarray:
    """K(1) − K(1 − g), K(ρ) = E σ(u)σ(v) at correlation ρ: by Price's theorem ∫_0^g K̇(1 − t) dt for small g."""
    where = dual_of(activation)
    one = jnp.ones(gaps.shape)
    found = np.array(where.variance(one) - where.value(Pair(one, one, jnp.asarray(gaps), jnp.asarray(cogaps))))
    near = gaps < NEAR
    if not near.any():
        return found
    # t = gs², as K̇ has roots of t where σ has kinks
    t = gaps[near][:, None] * _RULE.nodes**2
    one = jnp.ones(t.shape)
    slopes = np.asarray(where.slope(Pair(one, one, jnp.asarray(t), jnp.asarray(2 - t))))
    integrals = gaps[near] * (slopes @ (2 * _RULE.nodes * _RULE.weights))
    # A step has no slope there: its kernel falls like a root.
    found[near] = np.where(np.isfinite(integrals), integrals, found[near])
    return found


def _least_eigenvalue(height: float, losses: np.ndarray) -> float:
    """Of `height` − `losses`: where these are small against it, with digits relative to them."""
    n = len(losses)
    if n == 1 or not np.max(losses) < 0.5 * height:
        return float(np.linalg.eigvalsh(height - losses)[0])
    # With 1/√n as first vector of an orthonormal basis the large constant stands in one entry.
    mirror = np.full(n, 1 / math.sqrt(n))
    mirror[0] += 1
    turned = losses - np.outer(mirror, mirror @ losses) / mirror[0]
    turned = turned - np.outer(turned @ mirror, mirror) / mirror[0]
    first, cross, rest = n * height - turned[0, 0], -turned[0, 1:], -turned[1:, 1:]
    least = 0.0
    for _ in range(30):
        previous, least = least, float(np.linalg.eigvalsh(rest - np.outer(cross, cross) / (first - least))[0])
        if abs(least - previous) <= 1e-15 * abs(least):
            break
    return least
