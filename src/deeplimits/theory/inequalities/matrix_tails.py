r"""How close a sum of independent random matrices stays to its mean."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from deeplimits.numerics.arguments import NOT_NEGATIVE, PART, argument, whole
from deeplimits.numerics.shapes import Floats


class Bernstein(NamedTuple):
    """Matrix Bernstein: the tail bound as a function of t, and its inverse."""

    variance: Floats
    radius: Floats
    dimensions: Floats

    def tail(self, deviation: ArrayLike) -> Floats:
        """(d₁ + d₂) exp(−(t²/2)/(v + Rt/3)), a bound on P(‖Z‖ ≥ t); above 1 it says nothing."""
        t = argument("deviation", deviation, NOT_NEGATIVE, "a norm")
        # At t = 0 the bound is d₁ + d₂, also where nothing is random.
        scale = self.variance + self.radius * t / 3
        return self.dimensions * jnp.exp(-jnp.where(t > 0, (t**2 / 2) / jnp.where(t > 0, scale, 1.0), 0.0))

    def deviation(self, probability: ArrayLike) -> Floats:
        """The t at which the bound equals `probability`: Rl/3 + √((Rl/3)² + 2vl), l = ln((d₁ + d₂)/δ)."""
        log = jnp.log(self.dimensions / argument("probability", probability, PART))
        third = self.radius * log / 3
        return third + jnp.sqrt(third**2 + 2 * self.variance * log)


def matrix_bernstein(variance: ArrayLike, radius: ArrayLike, rows: int, columns: int | None = None) -> Bernstein:
    r"""Bernstein's inequality for sums of independent random matrices.

    Setting     Z = Σ_j S_j, independent centred S_j (d₁, d₂), ‖S_j‖ ≤ R, v = max(‖Σ E SSᵀ‖, ‖Σ E SᵀS‖)
    Result      P(‖Z‖ ≥ t) ≤ (d₁ + d₂) exp(−(t²/2)/(v + Rt/3)); with probability 1 − δ,
                ‖Z‖ ≤ Rl/3 + √((Rl/3)² + 2vl), l = ln((d₁ + d₂)/δ)
    Validity    bounded independent summands. The Gram matrix of n features at m points with |σ| ≤ 1: `gram_bernstein`;
                usually 3 to 10 times above what happens
    References  tropp2012

    >>> bound = matrix_bernstein(0.05, 0.02, 10)
    >>> round(float(bound.tail(1.0)), 12), round(float(bound.deviation(0.01)), 12)
    (0.002944556292, 0.923975589713)
    """
    v, r = argument("variance", variance, NOT_NEGATIVE), argument("radius", radius, NOT_NEGATIVE)
    both = whole("rows", rows, 1) + whole("columns", rows if columns is None else columns, 1)
    return Bernstein(v, r, jnp.asarray(float(both)))


def gram_bernstein(mean_norm: ArrayLike, points: int, features: int) -> Bernstein:
    """For K_n = (1/n) Σ φ_j φ_jᵀ − E, |φ| ≤ 1, m points: R = m/n and v = (m/n)‖E K‖ ≤ m²/n.

    >>> round(float(gram_bernstein(1.0, 5, 2000).deviation(0.05)), 3)
    0.167
    """
    size = whole("points", points, 1) / whole("features", features, 1)
    return matrix_bernstein(size * jnp.asarray(mean_norm, float), size, points)
