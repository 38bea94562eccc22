"""Constructors of spectral laws."""

import numpy as np
from numpy.typing import ArrayLike

from deeplimits.errors import ParameterError
from deeplimits.models.atoms import Atoms, merged
from deeplimits.numerics.arguments import POSITIVE, array, number
from deeplimits.theory.spectra.additive_convolution import free_sum as _free_sum
from deeplimits.theory.spectra.atomic import Atomic
from deeplimits.theory.spectra.closed_laws import MarchenkoPastur, Semicircle
from deeplimits.theory.spectra.factors import free_product as _free_product
from deeplimits.theory.spectra.sample_covariance_law import SampleCovariance
from deeplimits.theory.spectra.sample_covariance_law import sample_covariance as _sample_covariance
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure


def marchenko_pastur(gamma: ArrayLike, variance: ArrayLike = 1.0) -> MarchenkoPastur:
    """The Marchenko-Pastur law: X'X/M for an (M, N) matrix of independent entries, γ = N/M.

    Setting     X is (M, N) with independent centred entries of variance σ²; rows are samples
    Result      density √((λ₊ − x)(x − λ₋))/(2πσ²γx) on [λ₋, λ₊] = σ²(1 ∓ √γ)², atom (1 − 1/γ)₊ at 0
    Validity    γ > 0, σ² > 0
    References  marchenko1967

    >>> law = marchenko_pastur(2.0)
    >>> round(float(law.pdf(2.0)), 10), float(law.atoms.weights[0]), round(float(law.ppf(0.75)), 6)
    (0.1052710998, 0.5, 1.660932)
    """
    return MarchenkoPastur(float(number("gamma", gamma, POSITIVE)), float(number("variance", variance, POSITIVE)))


def semicircle(variance: ArrayLike = 1.0) -> Semicircle:
    """Wigner's semicircle law: a symmetric N×N matrix with entries of variance s²/N.

    >>> float(semicircle(1.0).moment(4)), round(float(semicircle(1.0).cdf(1.0)), 6)
    (2.0, 0.804499)
    """
    return Semicircle(float(number("variance", variance, POSITIVE)))


def from_atoms(values: Atoms | ArrayLike, weights: ArrayLike | None = None) -> Atomic:
    """The law Σ w_k δ(t_k) of `Atoms`, or of values with weights, equal ones unless given.

    >>> law = from_atoms([3.0, 1.0, 1.0])
    >>> law.atoms.values.tolist(), round(float(law.mean()), 6)
    ([1.0, 3.0], 1.666667)
    """
    return Atomic(merged(*values) if isinstance(values, Atoms) else merged(values, weights))


def from_eigenvalues(eigenvalues: ArrayLike) -> Atomic:
    """The empirical law of the eigenvalues of one matrix.

    >>> complex(from_eigenvalues([1.0, 2.0]).stieltjes(0.0)).real
    0.75
    """
    return from_atoms(eigenvalues)


def sample_covariance(population: SpectralMeasure | ArrayLike, gamma: ArrayLike) -> SampleCovariance:
    """The law of the sample covariance matrix of data whose population covariance has a given law.

    Setting     n samples Σ^{1/2}z of dimension p, z with independent entries of mean 0 and variance 1; H the law of
                the eigenvalues of Σ, given as a `SpectralMeasure`, as a list of eigenvalues or as the matrix Σ; γ = p/n
    Result      m(z) = m_H(α)/(1 + γS₁(α)) where α solves z = α(1 + γS₁(α)) in the upper half plane,
                S₁ = ∫ t dH/(α − t); edges are the images of the zeros of 1 − γ∫ t² dH/(α − t)²; atom
                max(H{0}, 1 − 1/γ) at 0
    Validity    γ > 0, H on [0, ∞) and not all at 0
    References  silverstein1995; silverstein1995b

    >>> law = sample_covariance([1.0, 3.0, 7.0], 0.1)
    >>> [round(float(edge), 6) for edge in law.edges.ravel()]
    [0.600418, 1.285018, 1.936307, 3.999019, 4.928488, 9.984083]
    >>> round(float(law.density(2.0)), 10)
    0.1033742445
    """
    if not isinstance(population, SpectralMeasure):
        population = from_eigenvalues(covariance_eigenvalues("population", population))
    return _sample_covariance(population, gamma)


def covariance_eigenvalues(name: str, population: ArrayLike) -> np.ndarray:
    """A list of eigenvalues as it is, and those of a symmetric matrix; negative ones within rounding become zero.

    >>> covariance_eigenvalues("population", [[2.0, 1.0], [1.0, 2.0]]).round(12).tolist()
    [1.0, 3.0]
    """
    why = "at least one eigenvalue, or a covariance matrix"
    found = np.asarray(array(name, np.atleast_1d(population), ("p",), ("p", "p"), why=why))
    if found.ndim == 1:
        return found
    scale = np.max(np.abs(found))
    if np.max(np.abs(found - found.T)) > 1e-10 * scale:
        raise ParameterError(f"{name} is a matrix that is not symmetric; give a covariance matrix or its eigenvalues")
    values = np.linalg.eigvalsh((found + found.T) / 2)
    # Eigenvalues of a matrix are known to rounding of the largest.
    return np.where((values < 0) & (values > -1e-12 * scale * len(values)), 0.0, values)


def free_sum(first: SpectralMeasure, second: SpectralMeasure, *more: SpectralMeasure) -> SpectralMeasure:
    """Free additive convolution: the law of A + UBU' for large matrices A, B and a uniform orthogonal U.

    Setting     A, B symmetric N×N with given limiting laws, U uniform on the orthogonal group, independent of both
    Result      m(z) = m_A(ω₁), ω₁ = z + h_B(ω₂), ω₂ = z + h_A(ω₁), h(w) = −1/m(w) − w; free cumulants add; an atom at
                a + b of mass μ_A{a} + μ_B{b} − 1 where that is positive
    Validity    laws of bounded support; several terms are added one after the other
    References  voiculescu1986; mingo2017 Ch. 3

    >>> law = free_sum(semicircle(1.0), marchenko_pastur(0.5))
    >>> round(float(law.density(1.0)), 8), round(float(law.density(3.0)), 8)
    (0.26410284, 0.13523341)
    """
    _laws(first, second, *more)
    total = _free_sum(first, second)
    for law in more:
        total = _free_sum(total, law)
    return total


def _laws(*given: object) -> None:
    for index, law in enumerate(given):
        if not isinstance(law, SpectralMeasure):
            raise ParameterError(
                f"term {index + 1} is a {type(law).__name__}; free convolutions take laws, such as from_eigenvalues(…)"
            )


def free_product(*factors: SpectralMeasure | tuple[SpectralMeasure, int]) -> SpectralMeasure:
    """Free multiplicative convolution: the law of A^{1/2} UBU' A^{1/2} and of longer products.

    Setting     positive N×N matrices with given limiting laws, in general position to each other; a pair (law, n)
                stands for n free copies
    Result      z((1 + M)/M)^{N−1} = Π y_j^{n_j}, M = M_j(y_j) = y_jG_j(y_j) − 1, on the branch with M ≈ mean/z at
                infinity; G(z) = (1 + M)/z; S-transforms multiply; atoms where masses allow
    Validity    laws of bounded support on [0, ∞), none of them all at zero; one factor, once, may have both signs
    References  voiculescu1987; mingo2017 Ch. 4

    >>> law = free_product((marchenko_pastur(1.0), 3))
    >>> round(float(law.density(1.0)), 4), round(float(law.edges[-1, 1]), 6)
    (0.1369, 9.481481)
    """
    pairs = [factor if isinstance(factor, tuple) else (factor, 1) for factor in factors]
    _laws(*(law for law, _ in pairs))
    for _, count in pairs:
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ParameterError(
                f"a factor is asked for {count} times; it must be a whole number of times, at least one"
            )
    return _free_product([law for law, _ in pairs], [count for _, count in pairs])
