"""Moments of free products, by power series of S-transforms."""

from collections.abc import Sequence

import numpy as np

from deeplimits.theory.spectra.spectral_measure import Floats, SpectralMeasure


def product_moments(factors: Sequence[SpectralMeasure], counts: Sequence[int], order: int) -> Floats:
    """The first `order` moments of a free product, factor j appearing n_j times.

    With ψ(w) = Σ m_k w^k and its inverse χ, S(u) = χ(u)(1 + u)/u; the S of a product is the product of the S.

    >>> from deeplimits.theory.spectra import laws
    >>> product_moments([laws.marchenko_pastur(1.0)], [2], 3).round(10).tolist()
    [1.0, 3.0, 12.0]
    """
    means = [float(law.moment(1)) for law in factors]
    # Of laws scaled to mean one, whose S begin with one.
    logarithm = np.zeros(order)
    for law, n, mean in zip(factors, counts, means, strict=True):
        own = np.array([float(law.moment(k)) / mean**k for k in range(1, order + 1)])
        logarithm += n * _log(_times(_inverse(own), _ONE_MORE))
    ratio = _times(_exp(logarithm), _geometric(order))
    moments = _inverse(ratio)
    scale = sum(n * np.log(mean) for n, mean in zip(counts, means, strict=True))
    return moments * np.exp(scale * np.arange(1, order + 1))


def signed_product_moments(positive: SpectralMeasure, signed: SpectralMeasure, order: int) -> Floats:
    """The first `order` moments of a free product whose second factor has any mean, also zero.

    With η = ψ/(1 + ψ) and H(w) = η(w)/w the reciprocals of the y are series in u = 1/z: w_A = u H_B(w_B),
    w_B = u H_A(w_A), and the product has η = w_A w_B/u. Each round makes one more coefficient right.

    >>> from deeplimits.theory.spectra import laws
    >>> coin = laws.from_atoms([-1.0, 1.0])
    >>> signed_product_moments(laws.marchenko_pastur(1.0), coin, 4).round(10).tolist()
    [0.0, 1.0, 0.0, 3.0]
    """
    both = [_over_one_more(np.array([float(law.moment(k)) for k in range(1, order + 1)])) for law in (positive, signed)]
    # w/u of both, as 1 + …-like lists of coefficients
    first = second = np.zeros(order)
    for _ in range(order):
        first, second = _composed(both[1], second), _composed(both[0], first)
    eta = _times(first, second)
    # ψ = η/(1 − η)
    return -_over_one_more(-eta)


def _over_one_more(one: Floats) -> Floats:
    """f/(1 + f) for f = a₁x + a₂x² + …, kept as (a₁, a₂, …)."""
    found = np.zeros(len(one))
    for n in range(len(one)):
        found[n] = one[n] - np.dot(found[:n], one[:n][::-1])
    return found


def _composed(one: Floats, inner: Floats) -> Floats:
    """Σ a_k x^k (g_0 + g_1 x + …)^k, from the list of a_k and that of g_k."""
    found, power = np.zeros(len(one)), np.eye(1, len(one))[0]
    for k, value in enumerate(one):
        found[k:] += value * power[: len(one) - k]
        power = _times(power, inner)
    return found


# Series x + a₂x² + … are kept as (1, a₂, …), and 1 + b₁x + … likewise as (1, b₁, …): one list of `order` numbers.
_ONE_MORE = np.array([1.0, 1.0])


def _geometric(order: int) -> Floats:
    """1/(1 + x)."""
    return (-1.0) ** np.arange(order)


def _times(one: Floats, two: Floats) -> Floats:
    return np.convolve(one, two)[: len(one)]


def _log(one: Floats) -> Floats:
    """log of a series that begins with 1: n l_n = n a_n − Σ_{k<n} k l_k a_{n−k}."""
    found = np.zeros(len(one))
    for n in range(1, len(one)):
        found[n] = one[n] - sum(k * found[k] * one[n - k] for k in range(1, n)) / n
    return found


def _exp(one: Floats) -> Floats:
    found = np.zeros(len(one))
    found[0] = 1.0
    for n in range(1, len(one)):
        found[n] = sum(k * one[k] * found[n - k] for k in range(1, n + 1)) / n
    return found


def _inverse(one: Floats) -> Floats:
    """The series inverse to x + a₂x² + …, by Lagrange: its n-th coefficient is [x^{n−1}] (x/f)^n/n."""
    logarithm = _log(one)
    return np.array([_exp(-n * logarithm[:n])[n - 1] / n for n in range(1, len(one) + 1)])
