"""How far a sample covariance matrix is from its population, in four norms."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, argument, array, at_least, whole
from deeplimits.numerics.shapes import Floats


class OperatorGap(NamedTuple):
    """Limits of the largest and of minus the smallest eigenvalue of Σ̂ − I; the norm is the first."""

    upper: Floats
    lower: Floats


def operator_gap(gamma: ArrayLike) -> OperatorGap:
    """‖Σ̂ − I‖ → γ + 2√γ, from the upper edge; on the lower side 2√γ − γ for γ ≤ 1, and 1 for γ > 1.

    Setting     Σ̂ = X'X/n of n samples with independent entries of mean 0, variance 1 and finite fourth moment, p/n → γ
    Result      λ_max(Σ̂) − 1 and 1 − λ_min(Σ̂)
    Validity    γ > 0; deviations of order p^{−2/3}
    References  bai1993

    >>> [round(float(side), 10) for side in operator_gap(0.5)]
    [1.9142135624, 0.9142135624]
    """
    rate = argument("gamma", gamma, POSITIVE)
    root = jnp.sqrt(rate)
    return OperatorGap(rate + 2 * root, jnp.where(rate <= 1, 2 * root - rate, 1.0))


def mean_frobenius_gap(samples: int, dimension: int, kurtosis: ArrayLike = 3.0) -> Floats:
    """E‖Σ̂ − I‖²_F/p = (p + κ₄ − 2)/n, exactly, κ₄ = E x⁴ of the independent entries; its limit is γ.

    >>> float(mean_frobenius_gap(400, 200))
    0.5025
    """
    p, n = whole("dimension", dimension, 1), whole("samples", samples, 1)
    return (p + argument("kurtosis", kurtosis, at_least(1), "E x⁴ of a unit variance") - 2) / n


def frobenius_gap(eigenvalues: ArrayLike, gamma: ArrayLike) -> Floats:
    """Limit of ‖Σ̂ − Σ‖²_F/p = γ (tr Σ/p)², for a population with these eigenvalues.

    >>> float(frobenius_gap([1.0, 3.0], 0.5))
    2.0
    """
    t = array("eigenvalues", eigenvalues, ("p",), allowed=NOT_NEGATIVE, why="eigenvalues of a covariance matrix")
    return argument("gamma", gamma, POSITIVE) * jnp.mean(t) ** 2


def largest_entry(samples: int, dimension: int) -> Floats:
    """max_{i≠j} |Σ̂_ij| ≈ √(4 log p/n) for Σ = I: every entry converges although the matrix does not.

    ‖A‖_max ≤ ‖A‖ ≤ p‖A‖_max: the operator norm may be p times larger, and here it is of order √(p/n).

    >>> round(float(largest_entry(800, 400)), 6)
    0.173082
    """
    p, n = whole("dimension", dimension, 2), whole("samples", samples, 1)
    return jnp.sqrt(4 * jnp.log(1.0 * p) / n)
