"""Eigenvalues that leave the bulk, and what their eigenvectors know of the signal."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.atoms import Atoms
from deeplimits.numerics.arguments import FINITE, NOT_NEGATIVE, POSITIVE, above, argument
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.spectra import laws, preimages
from deeplimits.theory.spectra.sample_covariance_law import SampleCovariance


class Spike(NamedTuple):
    """An outlier: all overlaps are squared inner products of unit vectors."""

    eigenvalue: Floats
    """Where the eigenvalue of the spike sits; the edge of the bulk below the threshold."""
    overlap: Floats
    """Of the eigenvector with the direction of the spike; zero below the threshold."""
    threshold: Floats
    """The strength above which there is an outlier."""
    deviation: Floats
    """Standard deviation of √n (λ̂ − λ) for real Gaussian data above the threshold, n the samples; zero below it."""


def spiked_covariance(strength: ArrayLike, gamma: ArrayLike, variance: ArrayLike = 1.0) -> Spike:
    """The outlier of a sample covariance matrix whose population is σ²(I + ℓuu').

    Setting     n samples of dimension p with covariance σ²(I + ℓuu'), ‖u‖ = 1; γ = p/n
    Result      ℓ > √γ: λ = σ²(1 + ℓ)(1 + γ/ℓ), |⟨u, û⟩|² = (1 − γ/ℓ²)/(1 + γ/ℓ), √n(λ̂ − λ) has variance
                2σ⁴(1 + ℓ)²(1 − γ/ℓ²); else the upper edge and 0. For γ < 1 a spike −1 < ℓ < −√γ leaves below, by the
                same formulas; between −√γ and √γ a negative ℓ stays at the lower edge
    Validity    ℓ > −1, γ > 0; Gaussian data for the variance
    References  baik2005; baik2006; paul2007

    >>> [round(float(part), 6) for part in spiked_covariance(2.0, 0.5)]
    [3.75, 0.7, 0.707107, 3.968627]
    """
    ell = argument("strength", strength, above(-1), "I + ℓuu' is a covariance matrix")
    gamma, variance = argument("gamma", gamma, POSITIVE), argument("variance", variance, POSITIVE)
    root = jnp.sqrt(gamma)
    out = (ell > root) | ((ell < -root) & (gamma < 1))
    safe = jnp.where(out, ell, 2 * root)
    gain = 1 - gamma / safe**2
    edge = jnp.where(ell >= 0, (1 + root) ** 2, (1 - root) ** 2)
    return Spike(
        variance * jnp.where(out, (1 + safe) * (1 + gamma / safe), edge),
        jnp.where(out, gain / (1 + gamma / safe), 0.0),
        root,
        variance * jnp.where(out, jnp.sqrt(2 * gain) * (1 + safe), 0.0),
    )


def population_spike(value: ArrayLike, population: Atoms, gamma: ArrayLike) -> Spike:
    """The outlier that a population eigenvalue α outside the rest of the population makes.

    Setting     population Σ w_k δ(t_k) and, apart from it, finitely many eigenvalues α; γ = p/n; `law_spike` is the
                same for any population
    Result      ψ(α) = α(1 + γ Σ w t/(α − t)) if ψ'(α) = 1 − γ Σ w t²/(α − t)² > 0, with overlap αψ'(α)/ψ(α) and
                √n(λ̂ − λ) of variance 2α²ψ'(α); else the edge of the bulk and 0
    Validity    α > 0 none of the t_k; `threshold` is the α beyond which there is an outlier, on the side of α
    References  bai2012; benaych2011

    >>> from deeplimits.models.atoms import atoms
    >>> [round(float(part), 8) for part in population_spike(8.0, atoms([1.0, 3.0]), 0.3)[:3]]
    [8.89142857, 0.8484025, 4.17066142]
    >>> round(float(population_spike(3.5, atoms([1.0, 3.0]), 0.3).eigenvalue), 8)
    5.9711644
    """
    return law_spike(value, laws.sample_covariance(laws.from_atoms(population), gamma))


def law_spike(value: ArrayLike, law: SampleCovariance) -> Spike:
    """The outlier beside a sample covariance law that a population eigenvalue α makes, for any population H.

    Setting     `law` from `laws.sample_covariance`, H atoms or with a density; α > 0 outside the support of H
    Result      as `population_spike`, ψ(α) = α(1 + γ∫ t dH/(α − t)), ψ'(α) = 1 − γ∫ t² dH/(α − t)²
    Validity    an α that is no outlier and lies between parts of H that one bulk has swallowed has no edge to stick to:
                its eigenvalue and its threshold are nan, its overlap 0
    References  bai2012; benaych2011

    >>> from deeplimits.theory.spectra import laws
    >>> law = laws.sample_covariance(laws.marchenko_pastur(0.5), 0.3)
    >>> [round(float(part), 6) for part in law_spike(6.0, law)[:3]]
    [6.410397, 0.910084, 3.057601]
    """
    if not isinstance(law, SampleCovariance):
        raise ParameterError(f"law is a {type(law).__name__}; give the law of sample_covariance(population, gamma)")
    alpha = np.asarray(argument("value", value, POSITIVE))
    flat = alpha.ravel()
    if np.any(law.population.contains(flat)):
        wrong = flat[law.population.contains(flat)][0]
        raise OutsideValidity(f"value is one of the population's: {wrong:g} lies in its support; a spike lies outside")
    first, second = preimages.first_and_second(law.population, flat)
    place, slope = flat * (1 + law.gamma * first), 1 - law.gamma * second
    out = slope > 0
    edge, threshold = np.array([_next_edge(law, point) for point in flat]).reshape(-1, 2).T
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = (
            np.where(out, place, edge),
            np.where(out, flat * slope / place, 0.0),
            threshold,
            np.where(out, flat * np.sqrt(2 * np.abs(slope)), 0.0),
        )
    return Spike(*(jnp.asarray(part.reshape(alpha.shape)) for part in parts))


def _next_edge(law: SampleCovariance, alpha: float) -> tuple[float, float]:
    """The edge of the law next to which α leaves the population, and the α of that edge; nan where a bulk lies on."""
    places, masses = (np.asarray(part) for part in law.population.atoms)
    blocks = np.concatenate([np.asarray(law.population.edges).ravel(), places[masses > 0]])
    left, right = blocks[blocks < alpha].max(initial=-np.inf), blocks[blocks > alpha].min(initial=np.inf)
    # Ends of bulks between the two neighbours of α in the population: a bulk closes after the left, one opens before
    # the right.
    closing = law.ends[:, 1][(law.ends[:, 1] > left) & (law.ends[:, 1] < right)]
    opening = law.ends[:, 0][(law.ends[:, 0] > left) & (law.ends[:, 0] < right)]
    nearest = np.concatenate([closing, opening])
    if not nearest.size:
        return np.nan, np.nan
    found = nearest[np.argmin(np.abs(nearest - alpha))]
    return float(law.bulks.ravel()[np.flatnonzero(law.ends.ravel() == found)[0]]), float(found)


class SingularSpike(NamedTuple):
    """An outlier of XX'/n for a rectangular X = signal + noise."""

    eigenvalue: Floats
    left: Floats
    """Squared overlap of the left singular vector."""
    right: Floats
    threshold: Floats


def signal_plus_noise(strength: ArrayLike, gamma: ArrayLike) -> SingularSpike:
    """The outlier of XX'/n for X = θ√n uv' + Z, Z p×n with independent unit entries.

    Setting     ‖u‖ = ‖v‖ = 1, u ∈ R^p, v ∈ R^n, γ = p/n, ρ = θ²
    Result      ρ > √γ: λ = (1 + ρ)(γ + ρ)/ρ, left overlap (ρ² − γ)/(ρ(ρ + γ)), right overlap (ρ² − γ)/(ρ(ρ + 1));
                else the edge (1 + √γ)² and zero
    Validity    θ ≥ 0, γ > 0; `threshold` is γ^{1/4}
    References  benaych2012

    >>> [round(float(part), 6) for part in signal_plus_noise(1.5, 0.5)]
    [3.972222, 0.737374, 0.623932, 0.840896]
    """
    theta, gamma = argument("strength", strength, NOT_NEGATIVE), argument("gamma", gamma, POSITIVE)
    rho, root = theta**2, jnp.sqrt(gamma)
    out = rho > root
    safe = jnp.where(out, rho, 2 * root)
    gain = safe**2 - gamma
    return SingularSpike(
        jnp.where(out, (1 + safe) * (gamma + safe) / safe, (1 + root) ** 2),
        jnp.where(out, gain / (safe * (safe + gamma)), 0.0),
        jnp.where(out, gain / (safe * (safe + 1)), 0.0),
        jnp.sqrt(root),
    )


def spiked_wigner(strength: ArrayLike) -> Spike:
    """The outlier of θuu' + W, W symmetric with Gaussian entries of variance 1/N (2/N on the diagonal).

    Setting     ‖u‖ = 1, the bulk is the semicircle on [−2, 2]
    Result      |θ| > 1: λ = θ + 1/θ, overlap 1 − 1/θ², √N(λ̂ − λ) of variance 2(1 − 1/θ²); else ±2, the edge on the
                side of θ, and 0
    Validity    any real θ; `threshold` is 1, on |θ|
    References  peche2006; benaych2011

    >>> [float(part) for part in spiked_wigner(2.0)[:3]], float(spiked_wigner(-2.0).eigenvalue)
    ([2.5, 0.75, 1.0], -2.5)
    """
    theta = argument("strength", strength, FINITE)
    out = jnp.abs(theta) > 1
    safe = jnp.where(out, theta, 2.0)
    gain = 1 - 1 / safe**2
    return Spike(
        jnp.where(out, safe + 1 / safe, jnp.where(theta < 0, -2.0, 2.0)),
        jnp.where(out, gain, 0.0),
        jnp.ones_like(theta),
        jnp.where(out, jnp.sqrt(2 * gain), 0.0),
    )
