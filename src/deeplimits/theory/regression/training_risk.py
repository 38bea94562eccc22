"""Regression by any spectral filter, for any covariance: gradient flow and descent stopped at any time, with ridge.

A filter learns w = φ(Σ̂)X'y/n and misses (1 − Σ̂φ(Σ̂))β. Where test points are not isotropic its risk is not a sum over
the eigenvalues of Σ̂; it is a double integral, along a contour around the spectrum, of the deterministic equivalent of
two resolvents. Conventions as in `ridge`.
"""

import math

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deeplimits.errors import NotConverged, OutsideValidity
from deeplimits.numerics.arguments import COUNT, NOT_NEGATIVE, POSITIVE, UNTIL_THE_END, argument
from deeplimits.theory.regression.populations import PopulationLike, as_population
from deeplimits.theory.regression.ridge import check_model, ridge_risk
from deeplimits.theory.regression.risks import Risk
from deeplimits.theory.spectra import laws

# Points of the contour: the first try, and the most.
FEWEST, MOST = 128, 2048
CIRCLE = 48
# Doubling the points must not change a result by more than this.
ACCURACY = 1e-9


def flow_risk(
    time: float, population: PopulationLike, gamma: float, signal: float, noise_variance: float, *, ridge: float = 0.0
) -> Risk:
    """Risk of ridge regression trained by gradient flow from zero for a time t, for a general covariance.

    Setting     y = ⟨x, β⟩ + ε as in `ridge_risk`; dw/dt = −∇L, L(w) = (1/2n)‖y − Xw‖² + (λ/2)‖w‖², w(0) = 0
    Result      with φ(z) = (1 − e^{−t(z+λ)})/(z+λ), g(z) = 1 − zφ(z) and s̲ the companion transform of the sample
                covariance, contours around its spectrum:
                B = r²(2πi)^{−2}∮∮ g(z₁)g(z₂)/(z₁z₂) · N(z₁, z₂)/(1 − D(z₁, z₂)) dz₁dz₂,
                N = ∫ s dG/((1 + s s̲₁)(1 + s s̲₂)), D = γ∫ s² s̲₁s̲₂ dH/((1 + s s̲₁)(1 + s s̲₂))
                V = σ²(2πi)^{−1}∮ φ²/s̲ dz
                training error (2πi)^{−1}∮ g²(r²∫ dG/(1 + s s̲) − σ² s̲) dz
    Validity    0 ≤ t ≤ ∞; near γ = 1 without ridge late times are refused
    References  ali2019; hastie2022; rubio2011

    The accuracy is checked by doubling the number of points of the contour.

    >>> from deeplimits.theory.regression.populations import population
    >>> risk = flow_risk(1.3, population([1.0]), 1.5, signal=1.0, noise_variance=1.0)
    >>> round(float(risk.bias), 10), round(float(risk.variance), 10)
    (0.4549144064, 0.3891978246)
    """
    argument("flow_risk: time", time, UNTIL_THE_END)
    if math.isinf(time):
        ended = ridge_risk(ridge, population, gamma, signal, noise_variance)
        return Risk(ended.bias, ended.variance, ended.training_error)

    def learnt(z):
        rate = z + ridge
        small = np.abs(time * rate) < 1e-8
        safe = np.where(small, 1.0, rate)
        return np.where(small, time, -np.expm1(-time * safe) / safe)

    return _filtered(learnt, time, population, gamma, signal, noise_variance, ridge)


def descent_risk(
    step: float,
    steps: int,
    population: PopulationLike,
    gamma: float,
    signal: float,
    noise_variance: float,
    *,
    ridge: float = 0.0,
) -> Risk:
    """As `flow_risk` for k = `steps` steps of gradient descent of size η: φ(z) = (1 − (1 − η(z+λ))^k)/(z+λ).

    Steps of 2/(λ₊ + λ) or more diverge, λ₊ the largest eigenvalue of the sample covariance, and are refused.

    >>> from deeplimits.theory.regression.populations import population
    >>> risk = descent_risk(0.25, 2, population([1.0]), 2.0, signal=1.0, noise_variance=1.0)
    >>> round(float(risk.bias), 10), round(float(risk.variance), 10)
    (0.61328125, 0.2109375)
    """
    argument("descent_risk: step", step, POSITIVE)
    argument("descent_risk: steps", steps, COUNT)

    def learnt(z):
        rate = z + ridge
        small = np.abs(step * steps * rate) < 1e-8
        safe = np.where(small, 1.0, rate)
        return np.where(small, step * steps, (1 - (1 - step * safe) ** steps) / safe)

    return _filtered(learnt, step * steps, population, gamma, signal, noise_variance, ridge, step)


def _filtered(learnt, time, population, gamma, signal, noise_variance, ridge, step=None) -> Risk:
    check_model(gamma, signal, noise_variance)
    argument("ridge", ridge, NOT_NEGATIVE)
    population = as_population(population)
    (t, w), g = (np.asarray(part) for part in population.eigenvalues), np.asarray(population.alignment)
    law = laws.sample_covariance(laws.from_atoms(population.eigenvalues), gamma)
    low, high = (float(edge) for edge in np.asarray(law.edges).ravel()[[0, -1]])
    if step is not None and step * (high + ridge) >= 2:
        raise OutsideValidity(
            f"descent_risk: step = {step:g} diverges; it must be below 2/(λ₊ + ridge) = {2 / (high + ridge):g}"
        )
    found = None
    points = FEWEST
    while points <= MOST:
        z, weight, outside = _contour(points, low, high, time)
        transform = np.asarray(law.companion(z))
        previous = found
        found = _integrals(learnt(z), z, weight, outside, transform, (t, w, g), gamma, signal, noise_variance)
        if previous is not None and np.all(np.abs(found - previous) <= ACCURACY * (1 + np.abs(found))):
            return Risk(*(jnp.asarray(max(float(part), 0.0)) for part in found))
        points *= 2
    raise NotConverged(
        f"the contour at time {time:g} needs more than {MOST} points: it is squeezed between the spectrum and zero; "
        "take an earlier time, more ridge, or gamma further from 1"
    )


def _contour(points: int, low: float, high: float, time: float) -> tuple[NDArray, NDArray, NDArray]:
    """Points z and weights dz/2πi of a contour around zero and the bulks between `low` and `high`, counter-clockwise.

    And weights without those of a circle around zero, for integrands that are analytic there.

    One ellipse around everything, which passes zero at a distance of 1/t, because e^{−tz} grows there; or, if that
    leaves more room, one around the bulks and a circle around zero.
    """
    distance = high if time == 0 else min(1 / time, high)
    around_all = math.acosh(1 + 2 * distance / high)
    around_bulks = math.acosh(1 + low / (high - low))
    if around_all >= around_bulks:
        z, weight = _ellipse(points, 0.0, high, around_all)
        return z, weight, weight
    z, weight = _ellipse(points, low, high, around_bulks)
    angle = 2 * np.pi * (np.arange(CIRCLE) + 0.5) / CIRCLE
    circle = min(low / 4, distance) * np.exp(1j * angle)
    z, both = np.concatenate([z, circle]), np.concatenate([weight, circle / CIRCLE])
    return z, both, np.concatenate([weight, np.zeros(CIRCLE)])


def _ellipse(points: int, first: float, last: float, depth: float) -> tuple[NDArray, NDArray]:
    """The ellipse with these foci, of which `depth` is the eccentric parameter, by the trapezoidal rule."""
    angle = depth + 2j * np.pi * (np.arange(points) + 0.5) / points
    half = (last - first) / 2
    return (first + last) / 2 + half * np.cosh(angle), half * np.sinh(angle) / points


def _integrals(learnt, z, weight, outside, transform, population, gamma, signal, noise_variance) -> NDArray:
    """Bias, variance and training error by the sums of `flow_risk`."""
    t, w, g = population
    missed = 1 - z * learnt
    # 1/(1 + s s̲), and s s̲/(1 + s s̲)
    kept = 1 / (1 + t * transform[:, None])
    taken = t * transform[:, None] * kept
    along = weight * missed / z
    pairs = along[:, None] * along
    bias = np.sum(pairs * ((kept * (g * t)) @ kept.T) / (1 - gamma * (taken * w) @ taken.T))
    # φ² γ∫s/(1 + s s̲) dH is analytic at zero, where φ may be large.
    variance = np.sum(outside * learnt**2 * gamma * (kept @ (w * t)))
    training = np.sum(weight * missed**2 * (signal * (kept @ g) - noise_variance * transform))
    return np.array([signal * bias.real, noise_variance * variance.real, training.real])
