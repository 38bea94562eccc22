"""Whom a linear regression learns from: the covariance of the features, and how the coefficients lie in it."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.models.atoms import Atoms
from deeplimits.models.shown import shown
from deeplimits.numerics.arguments import NOT_NEGATIVE, PART, POSITIVE, argument, array, probabilities
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure


class Population(NamedTuple):
    """The law of the covariance's eigenvalues, and where among them the coefficients lie."""

    eigenvalues: Atoms
    """H, the law of the eigenvalues."""
    alignment: Float[Array, " k"]
    """G weighs the same eigenvalues by the squared coordinates of β/‖β‖."""

    def __repr__(self) -> str:
        return f"Population(eigenvalues={self.eigenvalues}, alignment={shown(self.alignment)})"


def population(
    values: ArrayLike | Atoms | SpectralMeasure,
    weights: ArrayLike | None = None,
    *,
    alignment: ArrayLike | Callable[[Float[Array, " k"]], ArrayLike] | None = None,
) -> Population:
    """A population from eigenvalues (k,) with weights, from `Atoms`, or from a `SpectralMeasure`.

    `alignment` is a list of weights (k,), or a function of the eigenvalue that gives the weight of a direction relative
    to the others. Without it the coefficients have no preferred direction, G = H.

    >>> population([1.0, 4.0], alignment=[0.3, 0.7]).eigenvalues.weights.tolist()
    [0.5, 0.5]
    >>> from deeplimits.theory.spectra import laws
    >>> smooth = population(laws.marchenko_pastur(0.5), alignment=lambda s: s)
    >>> round(float(jnp.sum(smooth.alignment * smooth.eigenvalues.values)), 10)
    1.5
    """
    if isinstance(values, SpectralMeasure | Atoms):
        if weights is not None:
            raise ParameterError("weights is given together with a law, which has its own; leave it out")
        law = values.quadrature() if isinstance(values, SpectralMeasure) else values
        points, masses = (np.asarray(part) for part in law)
    else:
        places = array("values", np.atleast_1d(values), ("k",), allowed=NOT_NEGATIVE, why="at least one eigenvalue")
        points = np.asarray(places)
        masses = np.full(points.shape, 1 / points.size)
        masses = masses if weights is None else np.asarray(probabilities("weights", weights, points.size))
    if callable(alignment):
        relative = np.asarray(alignment(jnp.asarray(points)), float) * masses
        if not (np.all(np.isfinite(relative)) and np.all(relative >= 0) and relative.sum() > 0):
            raise ParameterError("alignment returns values that are negative, not finite or all zero")
        share = relative / relative.sum()
    else:
        share = masses if alignment is None else np.asarray(probabilities("alignment", alignment, points.size))
    if not points @ masses > 0:
        raise ParameterError("values are all zero; the features must vary in some direction")
    return Population(Atoms(jnp.asarray(points), jnp.asarray(masses)), jnp.asarray(share))


PopulationLike = Population | Atoms | SpectralMeasure | ArrayLike


def as_population(law: PopulationLike) -> Population:
    """A `Population` as it is; from anything else that of `population(law)`, without a preferred direction.

    >>> as_population([1.0, 4.0]).alignment.tolist()
    [0.5, 0.5]
    """
    return law if isinstance(law, Population) else population(law)


class Aligned(NamedTuple):
    """A population with the coefficients' direction in it, and ‖β‖²."""

    population: Population
    signal: float


def from_covariance(covariance: ArrayLike, coefficients: ArrayLike) -> Aligned:
    """The population of a given covariance matrix (p, p) and coefficient vector (p,), and ‖β‖².

    >>> found, signal = from_covariance([[2.0, 1.0], [1.0, 2.0]], [1.0, 1.0])
    >>> found.eigenvalues.values.round(6).tolist(), found.alignment.round(6).tolist(), round(signal, 6)
    ([1.0, 3.0], [0.0, 1.0], 2.0)
    """
    sigma = np.asarray(array("covariance", covariance, ("p", "p")))
    beta = np.asarray(array("coefficients", coefficients, (len(sigma),), why="covariance is (p, p)"))
    if np.max(np.abs(sigma - sigma.T)) > 1e-10 * np.max(np.abs(sigma), initial=1e-300):
        raise ParameterError("covariance is not symmetric")
    values, vectors = np.linalg.eigh(sigma)
    if values[0] < -1e-10 * abs(values[-1]):
        raise ParameterError(f"covariance has the eigenvalue {values[0]:g}; a covariance has no negative one")
    signal = float(beta @ beta)
    if signal == 0:
        raise ParameterError("coefficients are all zero; there is no direction to align")
    share = (vectors.T @ beta) ** 2 / signal
    return Aligned(population(np.maximum(values, 0.0), alignment=share / share.sum()), signal)


class LatentRegression(NamedTuple):
    """The linear regression that a latent-space model is."""

    population: Population
    signal: Scalar
    """‖β‖²."""
    noise_variance: Scalar


def latent_features(
    strength: ArrayLike, share: ArrayLike, signal: ArrayLike, noise_variance: ArrayLike
) -> LatentRegression:
    """The latent-space model as a linear regression: its population, ‖β‖² and effective noise variance.

    Setting     z ~ N(0, I_q) latent, features x = Wz + u in R^p, u ~ N(0, I_p), W'W = μI_q, q/p = ψ; labels
                y = ⟨θ, z⟩ + ξ, ‖θ‖² = `signal`, Var ξ = `noise_variance`; μ = `strength`, ψ = `share`
    Result      Σ = I + WW' has law ψδ(1+μ) + (1−ψ)δ(1), β = Wθ/(1+μ), ‖β‖² = μ‖θ‖²/(1+μ)², all of it in the eigenspace
                of 1+μ, noise variance Var ξ + ‖θ‖²/(1+μ)
    Validity    μ > 0, 0 < ψ ≤ 1
    References  hastie2022 Sec 5

    >>> found, signal, noise = latent_features(4.0, 0.5, signal=1.0, noise_variance=0.1)
    >>> found.eigenvalues.values.tolist(), round(float(signal), 12), round(float(noise), 12)
    ([1.0, 5.0], 0.16, 0.3)
    """
    strength, share = argument("strength", strength, POSITIVE), argument("share", share, PART)
    signal, noise = argument("signal", signal, NOT_NEGATIVE), argument("noise_variance", noise_variance, NOT_NEGATIVE)
    eigenvalues = Atoms(jnp.stack([jnp.ones(()), 1 + strength]), jnp.stack([1 - share, share]))
    found = Population(eigenvalues, jnp.array([0.0, 1.0]))
    return LatentRegression(found, strength * signal / (1 + strength) ** 2, noise + signal / (1 + strength))
