"""The second road to the dynamics of classification: contour integrals around the spectrum, in numpy.

It shares no step with the real integrals of `mixture_dynamics` but the problem.
"""

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfc

from deeplimits.errors import OutsideValidity
from deeplimits.theory.regression.mixture_dynamics import Classification, check_mixture

NODES = 8192
LEAST_DEPTH = 0.01
"""Half-width of the strip of analyticity below which that many nodes no longer reach rounding."""


def classification_dynamics_by_contour(
    time: float, gamma: float, strength: float, *, start: float = 0.0, ridge: float = 0.0
) -> Classification:
    r"""As `classification_dynamics`, at one finite time, by integrating along a curve around the spectrum.

    With m(z−λ) the transform of the Marchenko-Pastur law, D = (ρ+γ)m + 1, f = e^{−tz}, φ = (1−f)/z and a curve around
    λ and λ + λ_s, counter-clockwise:
    E = −(1/2πi)∮ φρm/D dz, V = (1/2πi)∮ [φ²/D − σ²f²m] dz,
    E' = (1/2πi)∮ φ/D dz, V' = (1/2πi)∮ (z−λ)[φ²/D − σ²f²m] dz − E'².

    The curve is an ellipse with foci λ and λ + λ_s. It crosses the axis below λ, where f² grows like e^{2t·distance}:
    the distance is kept to 1/t, and times at which the ellipse then lies too close to the spectrum are refused.

    >>> found = classification_dynamics_by_contour(3.0, 0.5, 1.0, start=0.1)
    >>> round(float(found.test_mean), 10), round(float(found.training_variance), 10)
    (0.4654529612, 0.1815750474)
    """
    check_mixture("classification_dynamics_by_contour", time, gamma, strength, start, ridge)
    t, gamma, rho, noise, lam = (float(part) for part in (time, gamma, strength, start, ridge))
    if t == 0 and noise == 0:
        # Nothing is learnt yet: the signs are those of the first step, E = ρt, V = V' = (ρ+γ)t², E' = (ρ+γ)t.
        errors = (_wrong_sign(rho, rho + gamma), _wrong_sign(rho + gamma, rho + gamma))
        return Classification(*(jnp.zeros(()) for _ in range(4)), *(jnp.asarray(error) for error in errors))
    focal = (1 + gamma + rho + gamma / rho) / 2
    # focal·(cosh s − 1) ≤ 1/t
    depth = min(1.0, float(np.arccosh(1 + 1 / (max(t, 1e-12) * focal))))
    if not (np.isfinite(t) and depth >= LEAST_DEPTH):
        raise OutsideValidity(
            f"classification_dynamics_by_contour: time = {t:g} needs a contour too close to the spectrum or overflows; "
            f"take a time up to {1 / (focal * (np.cosh(LEAST_DEPTH) - 1)):g}, or classification_dynamics"
        )
    angles = 2 * np.pi * (np.arange(NODES) + 0.5) / NODES
    x = focal + focal * np.cosh(depth + 1j * angles)
    # dz/(2πi) at each node of the trapezoidal rule
    weight = focal * np.sinh(depth + 1j * angles) / NODES
    z = x + lam
    m = _marchenko_pastur_transform(x, gamma)
    d = (rho + gamma) * m + 1
    f, phi = np.exp(-t * z), _learnt(t, z)
    density = phi**2 / d - noise * f**2 * m

    def around(values):
        return float(np.sum(weight * values).real)

    mean, variance = -around(phi * rho * m / d), around(density)
    training_mean = around(phi / d)
    training_variance = around(x * density) - training_mean**2
    errors = (_wrong_sign(mean, variance), _wrong_sign(training_mean, training_variance))
    return Classification(*(jnp.asarray(part) for part in (mean, variance, training_mean, training_variance, *errors)))


def _marchenko_pastur_transform(z: NDArray, gamma: float) -> NDArray:
    """∫μ(dx)/(x − z): a product of two principal roots is the right branch in the whole cut plane."""
    a = 1 - gamma - z
    b = np.sqrt(z - (1 - np.sqrt(gamma)) ** 2) * np.sqrt(z - (1 + np.sqrt(gamma)) ** 2)
    # m = (a+b)/(2cz) = 2/(a−b), by the form in which nothing cancels
    return np.where(np.abs(a + b) > np.abs(a - b), (a + b) / (2 * gamma * z), 2 / (a - b))


def _learnt(t: float, z: NDArray) -> NDArray:
    """(1 − e^{−tz})/z, which is entire: the ellipse may pass close to zero."""
    return -np.expm1(-t * z) / z


def _wrong_sign(mean: ArrayLike, variance: ArrayLike) -> NDArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return erfc(np.asarray(mean) / np.sqrt(2 * np.asarray(variance))) / 2
