"""What the resolvent of a sample covariance matrix is, to leading order, and how far one matrix is from that."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Complex

from deeplimits.errors import ParameterError
from deeplimits.models.atoms import Atoms, as_atoms
from deeplimits.numerics.arguments import (
    FINITE,
    NOT_NEGATIVE,
    POSITIVE,
    argument,
    array,
    at_least,
    number,
    point,
    probabilities,
    whole,
)
from deeplimits.numerics.checks import valid
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.spectra import laws, marchenko_pastur_formulas
from deeplimits.theory.spectra.ridge_equation import effective_ridge


def companion_below(ridge: ArrayLike, population: Atoms | ArrayLike, gamma: ArrayLike) -> Floats:
    """s̲(−λ) > 0 for λ > 0 and a population Σ w_k δ(t_k): γ Σ w t s̲/(1 + t s̲) + λ s̲ = 1, one over the effective ridge.

    >>> from deeplimits.models.atoms import atoms
    >>> round(float(companion_below(0.4, atoms([1.0, 3.0]), 1.5)), 10)
    0.5965437535
    """
    lam = argument("ridge", ridge, POSITIVE, "the point z = −ridge lies below 0")
    population = as_atoms("population", population)
    array(
        "population.values",
        population.values,
        ("atoms",),
        allowed=NOT_NEGATIVE,
        why="eigenvalues of a covariance matrix",
    )
    probabilities("population.weights", population.weights, len(population.values))
    return 1 / effective_ridge(lam, population, argument("gamma", gamma, POSITIVE))


def resolvent_equivalent(
    ridge: ArrayLike, eigenvalues: ArrayLike, population: Atoms | ArrayLike, gamma: ArrayLike
) -> Floats:
    """The deterministic equivalent (λ(I + s̲Σ))^{-1} of (Σ̂ + λ)^{-1}, for eigenvalues τ of Σ: 1/(λ(1 + s̲τ)).

    Setting     Σ̂ = X'X/n, rows Σ^{1/2}z, spectral law Σ w_k δ(t_k) of Σ (`population`), p/n → γ; `eigenvalues` are
                the τ at which the equivalent is wanted
    Result      β'(Σ̂ + λ)^{-1}β → Σ_i ⟨β, v_i⟩²/(λ(1 + s̲(−λ)τ_i)) for unit vectors β that do not depend on the data,
                v_i the eigenvectors of Σ; 1/s̲ = λ + γ Σ w t/(1 + t s̲)
    Validity    λ > 0; for other points z of the complex plane see `law_resolvent`
    References  rubio2011; hastie2022 App. A

    >>> from deeplimits.models.atoms import atoms
    >>> round(float(resolvent_equivalent(0.4, 1.0, atoms([1.0, 3.0]), 1.5)), 10)
    1.5658825475
    """
    s = companion_below(ridge, population, gamma)
    tau = argument("eigenvalues", eigenvalues, NOT_NEGATIVE, "eigenvalues of a covariance matrix")
    return 1 / (jnp.asarray(ridge, float) * (1 + s * tau))


def law_resolvent(
    z: ArrayLike, eigenvalues: ArrayLike, population: ArrayLike, gamma: ArrayLike
) -> Complex[Array, "..."]:
    """The equivalent −1/(z(1 + s̲(z)τ)) of (Σ̂ − z)^{-1} anywhere off the support, for eigenvalues τ of Σ.

    As 1/(−z s̲(z) τ − z), in which nothing cancels or divides by zero: at z = 0 it is 1/((1 − γ)τ) for γ < 1.

    >>> round(complex(law_resolvent(-0.4, 1.0, [1.0, 3.0], 1.5)).real, 10)
    1.5658825475
    """
    law = laws.sample_covariance(population, gamma)
    z = np.asarray(z, complex)
    if law.zero > 0 and np.any(z == 0):
        raise ParameterError("z = 0 is an eigenvalue of the sample covariance matrix, a pole; take another z")
    tau = argument("eigenvalues", eigenvalues, NOT_NEGATIVE, "eigenvalues of a covariance matrix")
    _, stretch = law.preimage_off_support(z)
    pulled = jnp.asarray(stretch) * tau.astype(complex) - z
    return 1 / valid(pulled, pulled != 0, "z lies at the edge of the spectrum, where the resolvent is infinite")


class TraceFluctuation(NamedTuple):
    """Fluctuation of tr R(z) around N S(z): what is left after the law of large numbers."""

    bias: Array
    variance: Array


def trace_fluctuation(z: ArrayLike, gamma: ArrayLike) -> TraceFluctuation:
    """Bias and variance of tr (Σ̂ − z)^{-1} for real Gaussian entries of variance one; both stay of order one.

    Setting     Σ̂ = X'X/M of size N, γ = N/M exactly
    Result      E tr R − N S(z) → γ s̲³(1+s̲)^{−3}/[1 − γ s̲²(1+s̲)^{−2}]², E|tr R − E tr R|² → Cov(z, z̄) of
                `trace_covariance`
    Validity    z off the support; real z outside the spectrum is allowed. `azuma_bound` holds for any law and any size
    References  bai2004

    >>> found = trace_fluctuation(-1.0, 0.5)
    >>> round(float(found.variance), 10), round(complex(found.bias).real, 10)
    (0.0553633218, 0.051582022)
    """
    z = point("z", z)
    rate = argument("gamma", gamma, POSITIVE).astype(complex)
    q = _leverage(z, gamma)
    bias = rate * q**3 / (1 - rate * q**2) ** 2
    return TraceFluctuation(bias, jnp.real(_covariance(q, jnp.conj(q), rate, _conjugate_gap(q, z, rate))))


def trace_covariance(z: ArrayLike, other: ArrayLike, gamma: ArrayLike) -> Complex[Array, "..."]:
    """Cov(tr R(z₁), tr R(z₂)) = E[(tr R(z₁) − E)(tr R(z₂) − E)] for real Gaussian entries of variance one.

    Setting     Σ̂ = X'X/M of size N, R(z) = (Σ̂ − z)^{-1}, γ = N/M
    Result      2{s̲'(z₁)s̲'(z₂)/(s̲(z₁) − s̲(z₂))² − 1/(z₁ − z₂)²}, which with q = s̲/(1 + s̲) is
                2γq₁²q₂²/[(1 − γq₁²)(1 − γq₂²)(1 − γq₁q₂)²]: no difference of large numbers, and z₁ = z₂ is no exception
    Validity    z₁ and z₂ off the support
    References  bai2004

    >>> round(complex(trace_covariance(-1.0, -2.0, 0.5)).real, 10)
    0.0226979258
    """
    z, other = point("z", z), point("other", other)
    rate = argument("gamma", gamma, POSITIVE).astype(complex)
    one, two = _leverage(z, gamma), _leverage(other, gamma)
    # Beside the bulk q(z)q(z̄) comes close to 1/γ.
    gap = jnp.where(other == jnp.conj(z), _conjugate_gap(one, z, rate).astype(complex), 1 - rate * one * two)
    return _covariance(one, two, rate, gap)


def _leverage(z, gamma):
    """q = s̲/(1 + s̲) = S/(1 + γS), finite also at z = 0."""
    s = marchenko_pastur_formulas.marchenko_pastur_stieltjes(z, gamma)
    return s / (1 + jnp.asarray(gamma, float).astype(complex) * s)


def _conjugate_gap(q, z, rate):
    """1 − γ|q|², in the bulk, where it cancels, by Im z/Im α with α = 1 − 1/q: Im ψ(α) = Im α (1 − γ/|α − 1|²)."""
    direct = 1 - jnp.real(rate) * jnp.abs(q) ** 2
    height = jnp.imag(-1 / q)
    near = (direct < 0.1) & (jnp.imag(z) != 0)
    return jnp.where(near, jnp.imag(z) / jnp.where(near, height, 1.0), direct)


def _covariance(one, two, rate, gap):
    return 2 * rate * (one * two) ** 2 / ((1 - rate * one**2) * (1 - rate * two**2) * gap.astype(complex) ** 2)


def azuma_bound(deviation: ArrayLike, height: ArrayLike, samples: int, dimension: int) -> Floats:
    """P(|S_N(z) − E S_N(z)| > t) ≤ min(1, 4 exp(−N²v²t²/(16M))), v = |Im z|, for independent samples of any law.

    Result      martingale differences 2/(Nv), Azuma's inequality for real and imaginary part
    Validity    v > 0
    References  azuma1967; bai2010 Ch. 3

    >>> round(float(azuma_bound(0.5, 1.0, 800, 400)), 6)
    0.175748
    """
    t, v = argument("deviation", deviation, NOT_NEGATIVE), argument("height", height, POSITIVE, "off the real line")
    m, n = whole("samples", samples, 1), whole("dimension", dimension, 1)
    return jnp.minimum(1.0, 4 * jnp.exp(-((n * v * t) ** 2) / (16 * m)))


def quadratic_form_variance(matrix: ArrayLike, kurtosis: ArrayLike = 3.0) -> Floats:
    """Var ⟨x, Ax⟩ for independent centred entries of variance one: 2‖A_s‖²_F + (κ₄ − 3) Σ A_ii², exactly.

    Setting     x ∈ R^N with independent entries, κ₄ = E x⁴; A real, A_s its symmetric part, independent of x; of a
                complex A, a resolvent for instance, E|⟨x, Ax⟩ − tr A|², real and imaginary part together
    Result      E⟨x, Ax⟩ = tr A and the variance above; hence E|(⟨x, Ax⟩ − tr A)/N|² ≤ (2 + |κ₄ − 3|)‖A‖²/N, which is
                `quadratic_form_bound`
    Validity    κ₄ finite and at least 1
    References  bai2010 App. B

    >>> [float(quadratic_form_variance([[1.0, 2.0], [2.0, 0.0]], kappa)) for kappa in (3.0, 1.0)]
    [18.0, 16.0]
    """
    if jnp.iscomplexobj(jnp.asarray(matrix)):
        real, imaginary = (
            quadratic_form_variance(part(jnp.asarray(matrix)), kurtosis) for part in (jnp.real, jnp.imag)
        )
        return real + imaginary
    a, kappa = jnp.asarray(matrix, float), argument("kurtosis", kurtosis, at_least(1), "E x⁴ of a unit variance")
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ParameterError(f"matrix has shape {a.shape}; a quadratic form ⟨x, Ax⟩ needs a square matrix")
    argument("matrix", matrix, FINITE)
    symmetric = (a + jnp.swapaxes(a, -1, -2)) / 2
    diagonal = jnp.diagonal(a, axis1=-2, axis2=-1)
    return 2 * jnp.sum(symmetric**2, axis=(-2, -1)) + (kappa - 3) * jnp.sum(diagonal**2, axis=-1)


def quadratic_form_bound(matrix: ArrayLike, kurtosis: ArrayLike = 3.0) -> Floats:
    """(2 + |κ₄ − 3|)‖A‖²/N ≥ E|(⟨x, Ax⟩ − tr A)/N|², by the operator norm alone: the trace lemma.

    >>> round(float(quadratic_form_bound([[1.0, 2.0], [2.0, 0.0]])), 6)
    6.561553
    """
    a = jnp.asarray(matrix)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or not a.size:
        raise ParameterError(f"matrix has shape {a.shape}; a quadratic form ⟨x, Ax⟩ needs a square matrix")
    kappa = argument("kurtosis", kurtosis, at_least(1), "E x⁴ of a unit variance")
    parts = (jnp.real(a), jnp.imag(a)) if jnp.iscomplexobj(a) else (a.astype(float),)
    norms = sum(jnp.linalg.norm(argument("matrix", part, FINITE), 2, axis=(-2, -1)) ** 2 for part in parts)
    return (2 + jnp.abs(kappa - 3)) * norms / a.shape[-1]


def rank_one_solve(inverse: ArrayLike, vector: ArrayLike, *, strength: ArrayLike = 1.0) -> Floats:
    """(A + t vv')^{-1} v = A^{-1}v/(1 + t⟨v, A^{-1}v⟩), from A^{-1}.

    Setting     A invertible, v a vector, t a number
    Result      the identity above, of Sherman and Morrison
    Validity    1 + t⟨v, A^{-1}v⟩ ≠ 0; raises where it vanishes
    References  sherman1950

    >>> rank_one_solve([[1.0, 0.0], [0.0, 0.5]], [1.0, 1.0]).tolist()
    [0.4, 0.2]
    """
    a, t = array("inverse", inverse, ("n", "n"), why="a square matrix"), number("strength", strength, FINITE)
    v = array("vector", vector, (a.shape[0],), why="as many entries as rows of inverse")
    solved = a @ v
    denominator = 1 + t * (v @ solved)
    # What is left of the two terms must be more than their rounding.
    regular = jnp.abs(denominator) >= 1e-14 * (1 + jnp.abs(t * (v @ solved)))
    return valid(solved / denominator, regular, "1 + t⟨v, A⁻¹v⟩ vanishes: A + t vv' is singular")


def trace_change(z: ArrayLike, eigenvalues: ArrayLike, components: ArrayLike, *, strength: ArrayLike = 1.0):
    """tr (A + c vv' − z)^{-1} − tr (A − z)^{-1} = −c⟨v, R²v⟩/(1 + c⟨v, Rv⟩), of modulus at most 1/|Im z|.

    `eigenvalues` of A and `components` of v along its eigenvectors.

    >>> complex(trace_change(1j, [0.0], [1.0]))
    (0.5-0.5j)
    """
    z = point("z", z)
    values = array("eigenvalues", eigenvalues, ("n",))
    along = array("components", components, values.shape, why="one along each eigenvector")
    t, at, v = same_rank(values.astype(complex), z[..., None], along.astype(complex))
    resolvent, weight = 1 / (t - at), v**2
    c = argument("strength", strength, FINITE).astype(complex)
    change = -c * jnp.sum(weight * resolvent**2, axis=-1) / (1 + c * jnp.sum(weight * resolvent, axis=-1))
    return valid(change, jnp.isfinite(change), "z is an eigenvalue, with or without the added vector; take another z")


def smoothed_density(x: ArrayLike, height: float, eigenvalues: ArrayLike) -> Floats:
    """(1/π) Im S(x + iε): a spectrum seen through a Cauchy kernel of width ε.

    Setting     the eigenvalues of one matrix, ε > 0; S(z) = (1/N) Σ 1/(λ_i − z)
    Result      (1/π) Im S(x + iε) = (μ ∗ Cauchy_ε)(x), which tends to the density as ε → 0 after N → ∞:
                μ((a, b]) = lim (1/π)∫_a^b Im S(λ + iε)dλ and μ{x} = lim ε Im S(x + iε)
    Validity    ε > 0; bias O(ε) in the bulk, O(√ε) at edges
    References  bai2010 App. B

    >>> round(float(smoothed_density(0.0, 1.0, [0.0])), 10)
    0.3183098862
    """
    argument("height", height, POSITIVE)
    values = np.asarray(array("eigenvalues", eigenvalues, ("n",)))
    x = np.asarray(argument("x", x, FINITE))
    return jnp.asarray(np.mean(height / ((values - x[..., None]) ** 2 + height**2), axis=-1) / np.pi)


def difference_singular_values(count: int) -> Floats:
    """Singular values of the m×(m+1) matrix with rows (1, −1) shifted: 2 sin(kπ/(2(m+1))), k = 1, …, m.

    Setting     the convolution with the difference filter (1, −1), m rows and m + 1 columns
    Result      the values above, increasing; its null space are the constants
    Validity    m ≥ 1
    References  strang1999

    >>> [round(float(value), 6) for value in difference_singular_values(5)]
    [0.517638, 1.0, 1.414214, 1.732051, 1.931852]
    """
    whole("count", count, 1, "rows of the matrix")
    return 2 * jnp.sin(jnp.arange(1.0, count + 1) * (jnp.pi / (2 * (count + 1))))
