"""The Tracy-Widom laws of the largest eigenvalue, β = 1, 2, 4, accurate relative to their size in both tails.

With the operator B_s of kernel Ai(x + y + s) on (0, ∞) and the Hastings-McLeod function q,

    F₁(s) = det(1 − B_s) = exp(−½∫_s^∞ q) F₂^{1/2},   F₂(s) = det(1 − B_s²) = exp(−∫_s^∞ (x − s)q²),
    F₄(s) = ½ (det(1 − B_s) + det(1 + B_s)) = cosh(½∫_s^∞ q) F₂^{1/2}.

Right of `SWITCH` the determinants are computed by Gauss-Legendre quadrature, from eigenvalues of B: small ones give
1 − F without cancellation. Left of it the logarithm of F comes from q. F₄ is the law of the largest eigenvalue in the
scaling in which F₁, F₂ and F₄ describe the same edge; Tracy and Widom's own F₄ has s/√2 in place of s.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import airy

from deeplimits.errors import ParameterError
from deeplimits.models.atoms import merged
from deeplimits.numerics import panels, roots
from deeplimits.numerics.arguments import POSITIVE, number, whole
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.spectra import painleve
from deeplimits.theory.spectra.atomic import Atomic
from deeplimits.theory.spectra.sample_covariance_law import SampleCovariance, sample_covariance
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure

SWITCH = -3.0
NODES, LENGTH = 64, 16.0
BATCH = 512


class _Point(NamedTuple):
    """log F, (log F)', 1 − F: what both representations deliver."""

    log_cdf: NDArray
    slope: NDArray
    survival: NDArray


def tracy_widom_cdf(s: ArrayLike, beta: int = 2) -> Floats:
    """F_β(s), the limiting probability that the scaled largest eigenvalue is at most s.

    Setting     the largest eigenvalue of an N×N Gaussian matrix with real (β = 1), complex (2) or quaternion (4)
                entries, or of a sample covariance matrix: λ₁ ≈ edge + scale·s
    Result      the determinants above; absolute error below 1e-13, relative error of F and of 1 − F below 1e-10
    Validity    β ∈ {1, 2, 4}; every real s
    References  tracy1994; tracy1996; bornemann2010; ferrari2005

    >>> round(float(tracy_widom_cdf(-2.0, 2)), 12), round(float(tracy_widom_cdf(0.0, 1)), 12)
    (0.413224142505, 0.831908066203)
    """
    return _each(s, beta, lambda point: np.where(point.survival < 0.5, 1 - point.survival, np.exp(point.log_cdf)))


def tracy_widom_sf(s: ArrayLike, beta: int = 2) -> Floats:
    """1 − F_β(s), without cancellation.

    >>> float(tracy_widom_sf(4.0, 2)) < 1e-6
    True
    """
    return _each(s, beta, lambda point: point.survival)


def tracy_widom_logcdf(s: ArrayLike, beta: int = 2) -> Floats:
    """log F_β(s), finite for every s.

    >>> round(float(tracy_widom_logcdf(-100.0, 2)), 6)
    -83334.04552
    """
    return _each(s, beta, lambda point: point.log_cdf)


def tracy_widom_pdf(s: ArrayLike, beta: int = 2) -> Floats:
    """The density F_β'(s).

    >>> round(float(tracy_widom_pdf(-2.0, 2)), 10)
    0.4413818019
    """
    return _each(s, beta, lambda point: np.exp(point.log_cdf) * point.slope)


def tracy_widom_quantile(p: ArrayLike, beta: int = 2) -> Floats:
    """The s with F_β(s) = p, 0 < p < 1, by bisection and Newton's method.

    >>> round(float(tracy_widom_quantile(0.95, 1)), 4)
    0.9793
    """
    p = np.asarray(p, float)
    if not np.all((p > 0) & (p < 1)):
        raise ParameterError("p contains a value outside (0, 1); a quantile of an unbounded law needs one inside")
    flat = p.ravel()
    found = roots.on_host(
        lambda s: np.asarray(tracy_widom_logcdf(s, beta)) - np.log(flat),
        np.full(flat.shape, -40.0),
        np.full(flat.shape, 20.0),
    )
    return jnp.asarray(found.reshape(p.shape))


def tracy_widom_moment(order: int, beta: int = 2) -> float:
    """∫ s^order dF_β.

    >>> round(tracy_widom_moment(1, 2), 10)
    -1.7710868074
    """
    rule = panels.gauss(200, -18.0, 12.0)
    return float(rule.integrate(rule.nodes**order * np.asarray(tracy_widom_pdf(rule.nodes, beta))))


class Edge(NamedTuple):
    """Where the largest eigenvalue sits, and the scale of its fluctuation."""

    centre: float
    scale: float


def white_edge(samples: int, dimension: int, variance: float = 1.0) -> Edge:
    """Centre and scale of the largest eigenvalue of X'X/n, entries of X independent of the given variance.

    μ = (√(n−½) + √(p−½))²/n, σ = (√(n−½) + √(p−½)) (1/√(n−½) + 1/√(p−½))^{1/3}/n; with the halves the error of the
    law falls from O(N^{−1/3}) to O(N^{−2/3}).

    >>> white_edge(100, 50).centre.__round__(6)
    2.893603
    """
    n, p = np.sqrt(whole("samples", samples, 1) - 0.5), np.sqrt(whole("dimension", dimension, 1) - 0.5)
    variance = float(number("variance", variance, POSITIVE))
    return Edge(
        variance * float((n + p) ** 2 / samples), variance * float((n + p) * (1 / n + 1 / p) ** (1 / 3) / samples)
    )


def population_edge(law: SampleCovariance, samples: int) -> Edge:
    """Centre and scale for any population: the upper edge ψ(α₊), and σ = (n √(2/ψ''(α₊))/α₊²)^{−2/3}.

    A density √(2/ψ'')/(πγα₊²) √(λ₊ − x) has that scale: p eigenvalues as dense as the zeros of the Airy function.
    """
    alpha = law.ends[-1, 1]
    if not isinstance(law.population, Atomic):
        raise ParameterError("the population must be a list of atoms: its curvature at the edge is a sum over them")
    t, w = law.population.law
    # ψ''(α) = 2γ Σ w t²/(α − t)³
    curvature = 2 * law.gamma * float(np.sum(w * t**2 / (alpha - t) ** 3))
    return Edge(float(law.bulks[-1, 1]), float((samples * np.sqrt(2 / curvature) / alpha**2) ** (-2 / 3)))


def largest_eigenvalue_pvalue(
    value: ArrayLike,
    samples: int,
    dimension: int,
    *,
    population: SpectralMeasure | ArrayLike | None = None,
    variance: float = 1.0,
    beta: int = 1,
) -> Floats:
    """The probability that noise alone gives a largest eigenvalue of X'X/n at least as large as `value`.

    Setting     n samples of dimension p, independent entries of the given variance, or data with the given population
                covariance (its eigenvalues, or their law); β = 1 for real data, 2 for complex
    Result      1 − F_β((value − centre)/scale)
    Validity    n, p ≥ 2; entries with four moments; a population whose largest eigenvalues do not stand alone
    References  johnstone2001; ma2012; elkaroui2007

    >>> round(float(largest_eigenvalue_pvalue(3.2, 100, 50)), 4)
    0.0021
    """
    for name, count in (("samples", samples), ("dimension", dimension)):
        whole(name, count, 2)
    number("variance", variance, POSITIVE)
    if population is None:
        edge = white_edge(samples, dimension, variance)
    else:
        if not isinstance(population, SpectralMeasure):
            population = Atomic(merged(population))
        edge = population_edge(sample_covariance(population, dimension / samples), samples)
    return tracy_widom_sf((jnp.asarray(value, float) - edge.centre) / edge.scale, beta)


def _each(s, beta, read):
    if beta not in (1, 2, 4):
        raise ParameterError(f"beta = {beta} is not allowed; it must be 1, 2 or 4")
    s = np.asarray(s, float)
    if np.any(np.isnan(s)):
        raise ParameterError("s contains NaN; a distribution function needs numbers")
    # At −10⁵ everything is as at −∞, and the cubes of its asymptotic form are finite.
    flat = np.maximum(s.ravel(), -1e5)
    answer = np.empty(flat.shape)
    right = flat >= SWITCH
    if right.any():
        for part in np.array_split(np.flatnonzero(right), 1 + right.sum() // BATCH):
            answer[part] = read(_by_determinant(flat[part], beta))
    if not right.all():
        answer[~right] = read(_by_painleve(flat[~right], beta))
    return jnp.asarray(answer.reshape(s.shape))


def _by_determinant(s, beta) -> _Point:
    x, weights = panels.gauss(NODES, 0.0, LENGTH)
    root = np.sqrt(weights)
    # Beyond s = 100 everything underflows.
    value, slope = airy(np.minimum(s, 100.0)[:, None, None] + x[:, None] + x)[:2]
    eigenvalues, vectors = np.linalg.eigh(root[:, None] * root * value)
    # Derivatives of the eigenvalues: λ' = ⟨v, B'v⟩, B' of kernel Ai'(x + y + s).
    turned = np.einsum("nij,njk->nik", root[:, None] * root * slope, vectors)
    speeds = np.einsum("nij,nij->nj", vectors, turned)
    if beta == 1:
        log_cdf = np.sum(np.log1p(-eigenvalues), axis=1)
        return _Point(log_cdf, np.sum(-speeds / (1 - eigenvalues), axis=1), -np.expm1(log_cdf))
    if beta == 2:
        # det(1 − B²) from the squares themselves: log(1 − λ) + log(1 + λ) would cancel in the right tail.
        log_cdf = np.sum(np.log1p(-(eigenvalues**2)), axis=1)
        slope = np.sum(-2 * eigenvalues * speeds / (1 - eigenvalues**2), axis=1)
        return _Point(log_cdf, slope, -np.expm1(log_cdf))
    # ½(Π(1 − λ) + Π(1 + λ)) = 1 + e₂ + e₄ + …, the even elementary symmetric functions of the eigenvalues.
    symmetric, moved = _elementary(eigenvalues, speeds)
    survival = -np.sum(symmetric[:, 2::2], axis=1)
    return _Point(np.log1p(-survival), np.sum(moved[:, 2::2], axis=1) / (1 - survival), survival)


def _elementary(values, speeds):
    """Elementary symmetric functions e_0, e_1, … of each row, and their derivatives, largest values first."""
    order = np.argsort(-np.abs(values), axis=1)
    values, speeds = np.take_along_axis(values, order, 1), np.take_along_axis(speeds, order, 1)
    symmetric, moved = np.zeros((len(values), NODES + 1)), np.zeros((len(values), NODES + 1))
    symmetric[:, 0] = 1.0
    for column in range(NODES):
        value, speed = values[:, column, None], speeds[:, column, None]
        moved[:, 1:] += value * moved[:, :-1] + speed * symmetric[:, :-1]
        symmetric[:, 1:] += value * symmetric[:, :-1]
    return symmetric, moved


def _by_painleve(s, beta) -> _Point:
    solved = painleve.hastings_mcleod()
    inside = np.maximum(s, painleve.LEFT)
    q = solved.solution(inside)
    first, second, log_f2 = solved.first_integral(inside), solved.second_integral(inside), solved.log_f2(inside)
    far = s < painleve.LEFT
    if far.any():
        q[far] = painleve.left_solution(s[far])
        first[far], second[far], log_f2[far] = painleve.beyond_left(s[far])
    if beta == 2:
        log_cdf, slope = log_f2, second
    elif beta == 1:
        log_cdf, slope = (log_f2 - first) / 2, (second + q) / 2
    else:
        # log cosh(x) = x + log1p(e^{−2x}) − log 2 with x = ½∫q
        log_cdf = (log_f2 + first) / 2 + np.log1p(np.exp(-first)) - np.log(2)
        slope = (second - q * np.tanh(first / 2)) / 2
    return _Point(log_cdf, slope, -np.expm1(log_cdf))
