"""What the best covariance estimators that shrink eigenvalues are, in the limit."""

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics.arguments import FINITE, POSITIVE, argument, number
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.spectra import laws
from deeplimits.theory.spectra.closed_laws import MarchenkoPastur
from deeplimits.theory.spectra.preimages import first_and_second, monotone_preimage
from deeplimits.theory.spectra.sample_covariance_law import SampleCovariance
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure


def oracle_shrinkage(law: SampleCovariance | MarchenkoPastur, eigenvalues: ArrayLike) -> Floats:
    """d(λ) = λ/|1 − γ − γλ m(λ)|²: what û'Σû is for a sample eigenvector with eigenvalue λ.

    Setting     a sample covariance matrix with limiting law `law`; λ inside a bulk, or 0 where γ > 1
    Result      û_i'Σû_i → d(λ_i) = |α(λ_i)|²/λ_i, α = −1/m̲; the best rotation-equivariant estimator has these
                eigenvalues; at zero d(0) = 1/((γ − 1) m̲(0)), 1/m̲(0) = γ∫t dH/(1 + t m̲(0))
    Validity    λ in the support of the law
    References  ledoit2011

    For the precision matrix `oracle_inverse_shrinkage`; towards a multiple of the identity
    `linear_shrinkage_intensity`; from the eigenvalues of your own data `measure.analytical_shrinkage`, and as
    estimators `measure.NonlinearShrinkage` and `measure.LinearShrinkage`.

    >>> from deeplimits.theory.spectra import laws
    >>> law = laws.sample_covariance(laws.from_atoms([1.0, 3.0, 10.0], [0.2, 0.4, 0.4]), 0.4)
    >>> [round(float(d), 8) for d in oracle_shrinkage(law, [0.6, 3.0, 12.0])]
    [1.62697953, 3.71829081, 9.42617447]
    """
    _of_samples(law)
    values = np.asarray(argument("eigenvalues", eigenvalues, FINITE))
    flat = values.ravel()
    zero = flat == 0
    answer = np.empty(flat.shape)
    if zero.any():
        if law.gamma <= 1:
            raise OutsideValidity(f"an eigenvalue is 0 although gamma = {law.gamma:g} ≤ 1; there is no null space")
        # Below the support z = ψ(α) and at zero α < 0 solves 1 + γS₁(α) = 0; m̲(0) = −1/α.
        isotropic = isinstance(law, MarchenkoPastur)
        answer[zero] = law.variance if isotropic else -_preimage_of_zero(law) / (law.gamma - 1)
    if not zero.all():
        alpha = np.asarray(law.preimage(flat[~zero]))
        # 1 − γ − γλm = −λ m̲ = λ/α
        answer[~zero] = np.abs(alpha) ** 2 / flat[~zero]
    return jnp.asarray(answer.reshape(values.shape))


def _of_samples(law: object) -> None:
    if not isinstance(law, SampleCovariance | MarchenkoPastur):
        raise ParameterError(
            f"law is a {type(law).__name__}; shrinkage needs the law of a sample covariance matrix, from "
            "sample_covariance(…) or marchenko_pastur(…)"
        )


def _preimage_of_zero(law: SampleCovariance) -> float:
    # ψ rises from −∞ to the lower edge on (−∞, α₁), and 1 + γS₁ with it through zero.
    left, right = np.array([-2 * law.gamma * law.population.support[1]]), law.ends[:1, 0]

    def image(alpha):
        first, second = first_and_second(law.population, alpha)
        return alpha * (1 + law.gamma * first), 1 - law.gamma * second

    return float(monotone_preimage(image, np.zeros(1), left, right)[0])


def oracle_inverse_shrinkage(law: SampleCovariance | MarchenkoPastur, eigenvalues: ArrayLike) -> Floats:
    """û'Σ^{-1}û → (1 − γ − 2γλ Re m(λ))/λ for γ < 1: the best eigenvalues for the precision matrix.

    >>> from deeplimits.theory.spectra import laws
    >>> law = laws.sample_covariance(laws.from_atoms([1.0, 3.0, 10.0], [0.2, 0.4, 0.4]), 0.4)
    >>> round(float(oracle_inverse_shrinkage(law, 3.0)), 9)
    0.338416268
    """
    _of_samples(law)
    if law.gamma >= 1:
        raise OutsideValidity(f"gamma = {law.gamma:g} is not allowed; the formula needs more samples than dimensions")
    values = np.asarray(argument("eigenvalues", eigenvalues, FINITE))
    outside = ~law._in_bulk(values.ravel())
    if outside.any():
        wrong = values.ravel()[outside][0]
        raise ParameterError(f"eigenvalues contains {wrong:g}, which lies outside the bulks of the law")
    return jnp.asarray((1 - law.gamma - 2 * law.gamma * values * np.real(np.asarray(law.boundary(values)))) / values)


def linear_shrinkage_intensity(population: SpectralMeasure | ArrayLike, gamma: float) -> Scalar:
    """ρ* = γm₁²/(γm₁² + Var H): how far to go from the sample covariance towards a multiple of the identity.

    Setting     (1 − ρ)Σ̂ + ρ (tr Σ̂/p) I, squared Frobenius loss
    Result      the best ρ, in the limit p/n → γ
    Validity    γ > 0; a population that is not all at zero
    References  ledoit2004

    >>> from deeplimits.theory.spectra import laws
    >>> round(float(linear_shrinkage_intensity(laws.from_atoms([1.0, 3.0, 10.0], [0.2, 0.4, 0.4]), 0.4)), 10)
    0.4434306569
    """
    if not isinstance(population, SpectralMeasure):
        population = laws.from_eigenvalues(laws.covariance_eigenvalues("population", population))
    strength = float(number("gamma", gamma, POSITIVE)) * population.mean() ** 2
    if not strength > 0:
        raise OutsideValidity("population is all at zero, or too small to be squared; there is nothing to shrink")
    return strength / (strength + population.var())
