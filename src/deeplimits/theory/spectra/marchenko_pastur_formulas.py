"""The Marchenko-Pastur law: eigenvalues of a sample covariance matrix of independent entries.

Conventions: an (M, N) data matrix X with independent centred entries of the given variance, rows are samples, sample
covariance X'X/M of size N, aspect ratio gamma = N/M (dimension per sample).
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Complex, Float


class Edges(NamedTuple):
    """The two ends of a bulk."""

    lower: Float[Array, "..."]
    upper: Float[Array, "..."]


def marchenko_pastur_edges(gamma: ArrayLike, variance: ArrayLike = 1.0) -> Edges:
    """Lower and upper end of the continuous part, variance (1 ∓ √γ)².

    >>> [float(end) for end in marchenko_pastur_edges(0.25)]
    [0.25, 2.25]
    """
    root, variance = jnp.sqrt(jnp.asarray(gamma, float)), jnp.asarray(variance, float)
    return Edges(variance * (1 - root) ** 2, variance * (1 + root) ** 2)


def marchenko_pastur_atom(gamma: ArrayLike) -> Float[Array, "..."]:
    """Mass at zero, (1 − 1/γ)₊: more dimensions than samples leave that share of directions unseen."""
    return jnp.maximum(1 - 1 / jnp.asarray(gamma, float), 0.0)


def marchenko_pastur_density(x: ArrayLike, gamma: ArrayLike, variance: ArrayLike = 1.0) -> Float[Array, "..."]:
    """Density of the continuous part at x; zero outside the edges.

    >>> round(float(marchenko_pastur_density(1.0, 0.5)), 13)
    0.4210843993478
    """
    x, gamma, variance = (jnp.asarray(a, float) for a in (x, gamma, variance))
    low, high = marchenko_pastur_edges(gamma, variance)
    inside = (x > low) & (x < high)
    safe = jnp.where(inside, x, (low + high) / 2)
    # ρ(x) = √((λ₊ − x)(x − λ₋)) / (2π σ² γ x)
    value = jnp.sqrt((high - safe) * (safe - low)) / (2 * jnp.pi * variance * gamma * safe)
    return jnp.where(inside, value, 0.0)


def marchenko_pastur_cdf(x: ArrayLike, gamma: ArrayLike, variance: ArrayLike = 1.0) -> Float[Array, "..."]:
    """Distribution function at x, the atom at zero included.

    >>> round(float(marchenko_pastur_cdf(1.0, 0.5)), 13)
    0.5760042151039
    """
    gamma = jnp.asarray(gamma, float)
    u = jnp.asarray(x, float) / jnp.asarray(variance, float)
    low, high = marchenko_pastur_edges(gamma)
    inside = (u > low) & (u < high)
    safe = jnp.where(inside, u, (low + high) / 2)
    # F(x) = (1−1/γ)₊ + {√((λ₊−x)(x−λ₋)) + (1+γ) asin((x−1−γ)/2√γ) − |1−γ| asin(((1+γ)x−(1−γ)²)/2√γ x)
    #                     + (π/2)(1+γ−|1−γ|)} / 2πγ.   Each asin is an atan2 with the same square root: no clipping.
    half = jnp.sqrt((high - safe) * (safe - low))
    first = jnp.arctan2(safe - 1 - gamma, half)
    second = jnp.arctan2((1 + gamma) * safe - (1 - gamma) ** 2, jnp.abs(1 - gamma) * half)
    away = jnp.abs(1 - gamma)
    total = half + (1 + gamma) * first - away * second + jnp.pi / 2 * (1 + gamma - away)
    continuous = total / (2 * jnp.pi * gamma)
    mass = marchenko_pastur_atom(gamma)
    above = jnp.where(u >= high, 1.0, jnp.where(u < 0, 0.0, mass))
    return jnp.where(inside, mass + continuous, above)


def marchenko_pastur_moment(order: int, gamma: ArrayLike, variance: ArrayLike = 1.0) -> Float[Array, "..."]:
    """The moment ∫ x^order dμ (order ≥ 0), the Narayana polynomial in γ.

    >>> float(marchenko_pastur_moment(2, 0.5))
    1.5
    """
    gamma, variance = jnp.asarray(gamma, float), jnp.asarray(variance, float)
    if order == 0:
        return jnp.ones_like(gamma)
    # ∫x^k = σ^{2k} Σ_{j<k} γ^j C(k,j) C(k−1,j) / (j+1)
    terms = [gamma**j * (math.comb(order, j) * math.comb(order - 1, j) / (j + 1)) for j in range(order)]
    return variance**order * sum(terms[1:], terms[0])


def marchenko_pastur_stieltjes(z: ArrayLike, gamma: ArrayLike, variance: ArrayLike = 1.0) -> Complex[Array, "..."]:
    """Stieltjes transform S(z) = ∫ dμ(x)/(x − z), for z off the support.

    Solves the self-consistent equation 1 + zS = σ²S/(1 + γσ²S), that is γσ²zS² + (z − σ²(1−γ))S + 1 = 0, on the branch
    with Im S · Im z > 0. On the support itself the value depends on the side; give z a small imaginary part.

    Setting     X is (M, N) with independent centred entries of variance σ², γ = N/M, μ the limiting law of X'X/M
    Result      S(z) = [σ²(1−γ) − z + √(z−λ₋) √(z−λ₊)] / (2γσ²z), principal roots of the two factors separately
    Validity    z not on the support; z = 0 only for γ < 1, where S(0) = 1/(σ²(1−γ))
    References  marchenko1967; bai2010 Ch. 3

    >>> complex(marchenko_pastur_stieltjes(1 + 0.5j, 0.5)).real.__round__(13)
    -0.1703243954755
    """
    z = jnp.asarray(z, complex)
    gamma, variance = jnp.asarray(gamma, float), jnp.asarray(variance, float)
    low, high, centre, scale = (
        real.astype(complex)
        for real in (*marchenko_pastur_edges(gamma, variance), variance * (1 - gamma), 2 * gamma * variance)
    )
    b = z - centre
    root = jnp.sqrt(z - low) * jnp.sqrt(z - high)
    # Of the two equal forms (−b + root)/(2γσ²z) and −2/(b + root) take the one without cancellation.
    stable = -2 / (b + root)
    direct = (root - b) / jnp.where(z == 0, 1.0, scale * z)
    aligned = jnp.real(b * jnp.conj(root)) >= 0
    return jnp.where(aligned, stable, direct)
