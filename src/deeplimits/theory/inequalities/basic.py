"""Inequalities for sums, martingales, differential equations and eigenvalues."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, argument, at_least
from deeplimits.numerics.checks import valid

Floats = Float[Array, "..."]


def hoeffding(deviation: ArrayLike, count: ArrayLike, low: ArrayLike = 0.0, high: ArrayLike = 1.0) -> Floats:
    """P(|Z̄ − E Z̄| > ε) ≤ min(1, 2 exp(−2nε²/(b − a)²)).

    Setting     Z̄ the mean of n independent variables in [a, b]
    Result      the bound above
    Validity    ε ≥ 0, a < b; for rare events P(Z̄ ≤ p/2) ≤ exp(−np/8) is sharper (`bernoulli_lower_tail`)
    References  hoeffding1963

    >>> round(float(hoeffding(0.1, 100)), 6)
    0.270671
    """
    eps, n = argument("deviation", deviation, NOT_NEGATIVE), argument("count", count, at_least(1))
    width = jnp.asarray(high, float) - jnp.asarray(low, float)
    width = argument("high − low", width, POSITIVE, "the length of the interval")
    return jnp.minimum(1.0, 2 * jnp.exp(-2 * n * eps**2 / width**2))


def bernoulli_lower_tail(probability: ArrayLike, count: ArrayLike) -> Floats:
    """P(Z̄ ≤ p/2) ≤ exp(−np/8) for the mean of n Bernoulli variables of probability p.

    >>> round(float(bernoulli_lower_tail(0.1, 400)), 8)
    0.00673795
    """
    return jnp.exp(-jnp.asarray(count, float) * jnp.asarray(probability, float) / 8)


def azuma(deviation: ArrayLike, differences: ArrayLike) -> Floats:
    """P(|M_n − M_0| > t) ≤ min(1, 2 exp(−t²/(2 Σ c_k²))) for martingale differences |M_k − M_{k−1}| ≤ c_k.

    Setting     a martingale with bounded differences; for differences in intervals of length r_k take c_k = r_k/2
    Result      the bound above
    Validity    t ≥ 0, c_k ≥ 0 and not all zero
    References  azuma1967

    >>> round(float(azuma(2.0, [1.0, 1.0])), 6)
    0.735759
    """
    t, c = argument("deviation", deviation, NOT_NEGATIVE), argument("differences", differences, NOT_NEGATIVE)
    total = valid(jnp.sum(c**2), jnp.sum(c) > 0, "all differences are zero: the martingale does not move")
    return jnp.minimum(1.0, 2 * jnp.exp(-(t**2) / (2 * total)))


def gronwall(start: ArrayLike, rate: ArrayLike, times: ArrayLike) -> Floats:
    """u(t) ≤ a e^{bt} for every continuous u with u(t) ≤ a + b∫_0^t u.

    Setting     a perturbation that grows at most in proportion to itself; for eigenvalues in the place of trajectories
                see `weyl` and `hoffman_wielandt`
    Result      the bound above, attained by u' = bu
    Validity    a, b, t ≥ 0
    References  gronwall1919; hoffman1953

    >>> round(float(gronwall(0.1, 2.0, 1.0)), 8)
    0.73890561
    """
    names = ("start", start), ("rate", rate), ("times", times)
    a, b, t = (argument(name, value, NOT_NEGATIVE) for name, value in names)
    return a * jnp.exp(b * t)


class Sides(NamedTuple):
    """The two sides of an inequality, left ≤ right."""

    left: Floats
    right: Floats


def weyl(first: ArrayLike, second: ArrayLike) -> Sides:
    """Left and right side of max_i |σ_i(A) − σ_i(B)| ≤ ‖A − B‖ (Weyl) for two matrices of one shape.

    >>> [round(float(side), 6) for side in weyl([[1.0, 0.0], [0.0, 2.0]], [[1.0, 1.0], [0.0, 2.0]])]
    [0.288246, 1.0]
    """
    a, b = jnp.asarray(first, float), jnp.asarray(second, float)
    if a.shape != b.shape:
        raise ParameterError(f"second has shape {b.shape}; it must have that of first, {a.shape}")
    change = jnp.linalg.svd(a, compute_uv=False) - jnp.linalg.svd(b, compute_uv=False)
    return Sides(jnp.max(jnp.abs(change)), jnp.linalg.norm(a - b, ord=2))


def hoffman_wielandt(first: ArrayLike, second: ArrayLike) -> Sides:
    """Left and right side of Σ_i (λ_i(A) − λ_i(B))² ≤ ‖A − B‖²_F for symmetric matrices, eigenvalues in order.

    >>> [round(float(side), 6) for side in hoffman_wielandt([[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])]
    [2.0, 2.0]
    """
    a, b = jnp.asarray(first, float), jnp.asarray(second, float)
    if a.shape != b.shape or a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ParameterError(f"first and second have shapes {a.shape} and {b.shape}; they must be square and equal")
    return Sides(jnp.sum((jnp.linalg.eigvalsh(a) - jnp.linalg.eigvalsh(b)) ** 2), jnp.sum((a - b) ** 2))
