"""Inequalities for sums, martingales, differential equations and eigenvalues."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.models.atoms import atoms
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, SHARE, above, argument, array, at_least, known
from deeplimits.numerics.checks import valid
from deeplimits.numerics.roots import bracketed
from deeplimits.numerics.shapes import Floats


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
    return jnp.minimum(1.0, 2 * jnp.exp(-2 * n * (eps / width) ** 2))


def bernoulli_lower_tail(probability: ArrayLike, count: ArrayLike) -> Floats:
    """P(Z̄ ≤ p/2) ≤ exp(−np/8) for the mean of n Bernoulli variables of probability p.

    >>> round(float(bernoulli_lower_tail(0.1, 400)), 8)
    0.00673795
    """
    n, p = argument("count", count, at_least(1)), argument("probability", probability, SHARE)
    return jnp.exp(-n * p / 8)


class Burkholder(NamedTuple):
    """Constants c, C with c‖S‖_p ≤ ‖M_n − M_0‖_p ≤ C‖S‖_p, S² = Σ_k (M_k − M_{k−1})²."""

    lower: Floats
    upper: Floats


def burkholder(power: ArrayLike) -> Burkholder:
    """Constants of Burkholder's inequality between a martingale and its square function, in L^p, 1 < p < ∞.

    C = 1/c = max(p, p/(p − 1)) − 1; both are one at p = 2, where the two sides are equal.

    >>> [float(part) for part in burkholder(4.0)]
    [0.3333333333333333, 3.0]
    """
    p = argument("power", power, above(1), "the inequality fails in L¹")
    largest = jnp.maximum(p - 1, 1 / (p - 1))
    return Burkholder(1 / largest, largest)


def azuma(deviation: ArrayLike, differences: ArrayLike) -> Floats:
    """P(|M_n − M_0| > t) ≤ min(1, 2 exp(−t²/(2 Σ c_k²))) for martingale differences |M_k − M_{k−1}| ≤ c_k.

    Setting     a martingale with bounded differences; for differences in intervals of length r_k take c_k = r_k/2
    Result      the bound above
    Validity    t ≥ 0, c_k ≥ 0 and not all zero
    References  azuma1967

    Moments in place of tails: `burkholder`. Whether limits of transforms are weak or only vague: `spectra.total_mass`.

    >>> round(float(azuma(2.0, [1.0, 1.0])), 6)
    0.735759
    """
    t, c = argument("deviation", deviation, NOT_NEGATIVE), argument("differences", differences, NOT_NEGATIVE)
    largest = jnp.max(c, initial=0.0)
    largest = valid(largest, largest > 0, "all differences are zero: the martingale does not move")
    # Only ratios are squared, whatever the unit.
    return jnp.minimum(1.0, 2 * jnp.exp(-((t / largest) ** 2) / (2 * jnp.sum((c / largest) ** 2))))


def gronwall(start: ArrayLike, rate: ArrayLike, times: ArrayLike) -> Floats:
    """u(t) ≤ a e^{bt} for every continuous u with u(t) ≤ a + b∫_0^t u.

    Setting     a perturbation that grows at most in proportion to itself; for eigenvalues in the place of trajectories
                see `weyl` and `hoffman_wielandt`, for random ones that are sub-Gaussian `sub_gaussian_norm`
    Result      the bound above, attained by u' = bu
    Validity    a, b, t ≥ 0
    References  gronwall1919; hoffman1953

    >>> round(float(gronwall(0.1, 2.0, 1.0)), 8)
    0.73890561
    """
    names = ("start", start), ("rate", rate), ("times", times)
    a, b, t = (argument(name, value, NOT_NEGATIVE) for name, value in names)
    # In two halves: the bound may be a number where e^{bt} is none. From zero nothing grows, however fast.
    half = jnp.exp(b * t / 2)
    return jnp.where(a > 0, a * half * half, 0.0)


def sub_gaussian_norm(values: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """‖X‖_ψ₂ = inf{K > 0 : E exp(X²/K²) ≤ 2}, of the law Σ w_k δ(x_k), equal weights unless given.

    X is sub-Gaussian if it is finite, and then P(|X| ≥ t) ≤ 2 exp(−t²/K²); of draws it is an estimate from below.

    Setting     `values` x_k, draws or the nodes of a quadrature; `weights` w_k, probabilities
    Result      between max|x|/√ln(2/w) of its place and max|x|/√ln 2; √(8/3) for the standard Gaussian law
    Validity    values that are not all zero
    References  vershynin2018 Sec 2.5

    >>> round(float(sub_gaussian_norm([-1.0, 1.0])), 12)
    1.201122408786
    """
    law = atoms(values, weights)
    x, w = jnp.abs(jnp.asarray(law.values)), jnp.asarray(law.weights)
    largest = jnp.max(jnp.where(w > 0, x, 0.0))
    largest = valid(largest, largest > 0, "values are all zero, and so is every K")
    share = (x / largest) ** 2

    # log E exp(−b(1 − s)) + b = log 2 for b = (max|x|/K)², s = x²/max x²: nothing overflows
    def excess(b, share, w):
        return b + jnp.log(jnp.sum(w * jnp.exp(-b[..., None] * (1 - share)), axis=-1)) - jnp.log(2.0)

    most = jnp.log(2 / jnp.min(jnp.where((w > 0) & (share == 1), w, 1.0))) + 1
    b = bracketed(excess, 0.5 * jnp.log(2.0), most, share, w, sentence="the norm was not found")
    return largest / jnp.sqrt(b)


class Sides(NamedTuple):
    """The two sides of an inequality, left ≤ right."""

    left: Floats
    right: Floats


def weyl(first: ArrayLike, second: ArrayLike) -> Sides:
    """Left and right side of max_i |σ_i(A) − σ_i(B)| ≤ ‖A − B‖ (Weyl) for two matrices of one shape.

    >>> [round(float(side), 6) for side in weyl([[1.0, 0.0], [0.0, 2.0]], [[1.0, 1.0], [0.0, 2.0]])]
    [0.288246, 1.0]
    """
    a = array("first", first, ("n", "m"))
    b = array("second", second, a.shape, why="that of first")
    change = jnp.linalg.svd(a, compute_uv=False) - jnp.linalg.svd(b, compute_uv=False)
    return Sides(jnp.max(jnp.abs(change)), jnp.linalg.norm(a - b, ord=2))


def hoffman_wielandt(first: ArrayLike, second: ArrayLike) -> Sides:
    """Left and right side of min_π Σ_i |λ_i(A) − λ_π(i)(B)|² ≤ ‖A − B‖²_F for normal matrices.

    Symmetric matrices are matched in the order of their eigenvalues; other normal ones, AA' = A'A, whose eigenvalues
    are complex, by the best permutation.

    >>> [round(float(side), 6) for side in hoffman_wielandt([[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])]
    [2.0, 2.0]
    >>> [round(float(side), 6) for side in hoffman_wielandt([[0.0, 1.0], [-1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])]
    [4.0, 4.0]
    """
    a = array("first", first, ("n", "n"), why="a square matrix")
    b = array("second", second, a.shape, why="that of first")
    right = jnp.sum((a - b) ** 2)
    for name, matrix in (("first", a), ("second", b)):
        defect, size = jnp.max(jnp.abs(matrix @ matrix.T - matrix.T @ matrix)), jnp.max(jnp.abs(matrix)) ** 2
        sentence = f"{name} is not normal (AA' ≠ A'A); the inequality does not hold for such matrices"
        a = valid(a, defect <= 1e-10 * a.shape[0] * size, sentence)
    if not known(a, b) or bool(jnp.all(a == a.T) & jnp.all(b == b.T)):
        a = valid(a, jnp.all(a == a.T) & jnp.all(b == b.T), "inside jit both matrices must be symmetric")
        return Sides(jnp.sum((jnp.linalg.eigvalsh(a) - jnp.linalg.eigvalsh(b)) ** 2), right)
    from scipy.optimize import linear_sum_assignment

    one, two = (np.linalg.eigvals(np.asarray(matrix)) for matrix in (a, b))
    cost = np.abs(one[:, None] - two) ** 2
    return Sides(jnp.asarray(cost[linear_sum_assignment(cost)].sum()), right)
