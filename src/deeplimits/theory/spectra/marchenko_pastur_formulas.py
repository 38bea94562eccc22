"""The Marchenko-Pastur law: eigenvalues of a sample covariance matrix of independent entries.

Conventions: an (M, N) data matrix X with independent centred entries of the given variance, rows are samples, sample
covariance X'X/M of size N, aspect ratio gamma = N/M (dimension per sample).
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Complex

from deeplimits.errors import ParameterError
from deeplimits.numerics.arguments import POSITIVE, argument, known, point, whole
from deeplimits.numerics.shapes import Floats

SMALL, TERMS = 0.05, 16
"""Below SMALL power series are summed to TERMS terms, which is rounding, where the closed forms cancel."""


class Edges(NamedTuple):
    """The two ends of a bulk."""

    lower: Floats
    upper: Floats


def marchenko_pastur_edges(gamma: ArrayLike, variance: ArrayLike = 1.0) -> Edges:
    """Lower and upper end of the continuous part, variance (1 ∓ √γ)².

    >>> [float(end) for end in marchenko_pastur_edges(0.25)]
    [0.25, 2.25]
    """
    root, variance = jnp.sqrt(argument("gamma", gamma, POSITIVE)), argument("variance", variance, POSITIVE)
    return Edges(variance * (1 - root) ** 2, variance * (1 + root) ** 2)


def marchenko_pastur_atom(gamma: ArrayLike) -> Floats:
    """Mass at zero, (1 − 1/γ)₊: more dimensions than samples leave that share of directions unseen."""
    return jnp.maximum(1 - 1 / argument("gamma", gamma, POSITIVE), 0.0)


def marchenko_pastur_density(x: ArrayLike, gamma: ArrayLike, variance: ArrayLike = 1.0) -> Floats:
    """Density of the continuous part at x; zero outside the edges.

    >>> round(float(marchenko_pastur_density(1.0, 0.5)), 13)
    0.4210843993478
    """
    x = jnp.asarray(x, float)
    gamma, variance = argument("gamma", gamma, POSITIVE), argument("variance", variance, POSITIVE)
    below, above = _distances(x / variance, gamma)
    inside = (below > 0) & (above > 0)
    # ρ(x) = √((λ₊ − x)(x − λ₋)) / (2π σ² γ x)
    root = jnp.sqrt(jnp.where(inside, below * above, 1.0))
    return jnp.where(inside, root / (2 * jnp.pi * gamma * jnp.where(inside, x, 1.0)), 0.0)


def marchenko_pastur_cdf(x: ArrayLike, gamma: ArrayLike, variance: ArrayLike = 1.0) -> Floats:
    """Distribution function at x, the atom at zero included.

    >>> round(float(marchenko_pastur_cdf(1.0, 0.5)), 13)
    0.5760042151039
    >>> round(float(marchenko_pastur_cdf(1.0, 1e-12)), 13)
    0.5000001061033
    """
    gamma = argument("gamma", gamma, POSITIVE)
    u = jnp.asarray(x, float) / argument("variance", variance, POSITIVE)
    below, above = _distances(u, gamma)
    inside = (below > 0) & (above > 0)
    half = jnp.sqrt(jnp.where(inside, below * above, 1.0))
    # x = 1 + γ − 2√γ cos θ, and with r = min(√γ, 1/√γ) the mass min(1, 1/γ) of the density is spread as
    # (2/π)∫₀^θ sin²/(1 + r² − 2r cos) = (θ + δ + (r sin θ − δ)/r²)/π, δ = arg(1 − re^{−iθ}) = Σ r^k sin(kθ)/k.
    theta = jnp.arctan2(half, jnp.where(inside, (1 - u) + gamma, 0.0))
    r = jnp.minimum(jnp.sqrt(gamma), 1 / jnp.sqrt(gamma))
    sine, cosine = jnp.sin(theta), jnp.cos(theta)
    lag = jnp.arctan2(r * sine, 1 - r * cosine)
    few = r < SMALL
    safe = jnp.where(few, 1.0, r)
    series = -sum(r ** (k - 2) * jnp.sin(k * theta) / k for k in range(2, TERMS))
    rest = jnp.where(few, series, (safe * sine - lag) / safe**2)
    mass = marchenko_pastur_atom(gamma)
    share = jnp.clip((theta + lag + rest) / jnp.pi, 0.0, 1.0)
    # By the middle and not by an edge: a compiler may round u differently here and above, and an edge would be neither
    # inside nor beyond.
    outside = jnp.where(u > 1 + gamma, 1.0, jnp.where(u < 0, 0.0, mass))
    return jnp.where(inside, mass + (1 - mass) * share, outside)


def _distances(u, gamma):
    """u − λ₋ and λ₊ − u for σ = 1, to rounding also where γ is small and both edges are close to one."""
    root = jnp.sqrt(gamma)
    below = jnp.where(gamma < 0.25, (u - 1) + root * (2 - root), u - (1 - root) ** 2)
    above = jnp.where(gamma < 0.25, (1 - u) + root * (2 + root), (1 + root) ** 2 - u)
    return below, above


def marchenko_pastur_moment(order: int, gamma: ArrayLike, variance: ArrayLike = 1.0) -> Floats:
    """The moment ∫ x^order dμ, the Narayana polynomial in γ; of negative order where γ < 1, and infinite beyond.

    ∫x^{−k−1} = (1 − γ)^{−2k−1} σ^{−4k−2} ∫x^k.

    >>> [float(marchenko_pastur_moment(order, 0.5)) for order in (2, -2)], float(marchenko_pastur_moment(-1, 1.0))
    ([1.5, 8.0], inf)
    """
    gamma, variance = argument("gamma", gamma, POSITIVE), argument("variance", variance, POSITIVE)
    whole("order", order, -1000)
    if order == 0:
        return jnp.ones_like(gamma * variance)
    if order < 0:
        room = jnp.where(gamma < 1, 1 - gamma, 1.0)
        reflected = marchenko_pastur_moment(-order - 1, gamma, 1.0) / room ** (-2 * order - 1)
        return jnp.where(gamma < 1, reflected, jnp.inf) * variance**order
    # ∫x^k = σ^{2k} Σ_{j<k} γ^j C(k,j) C(k−1,j) / (j+1)
    terms = [gamma**j * (math.comb(order, j) * math.comb(order - 1, j) / (j + 1)) for j in range(order)]
    return variance**order * sum(terms[1:], terms[0])


def marchenko_pastur_log_moment(gamma: ArrayLike, variance: ArrayLike = 1.0) -> Floats:
    """∫ log x dμ = log σ² − 1 − ((1 − γ)/γ) log(1 − γ) for γ ≤ 1, and −∞ beyond, where there is an atom at zero.

    It is the limit of (1/N) log det X'X/M.

    >>> round(float(marchenko_pastur_log_moment(0.5)), 12)
    -0.30685281944
    """
    gamma, variance = argument("gamma", gamma, POSITIVE), argument("variance", variance, POSITIVE)
    few = gamma < SMALL
    inside = jnp.where((gamma < 1) & ~few, gamma, 0.5)
    closed = jnp.where(gamma < 1, -1 - (1 - inside) / inside * jnp.log1p(-inside), -1.0)
    # −Σ γ^k/(k(k + 1)) where the two terms cancel.
    series = -sum(gamma**k / (k * (k + 1)) for k in range(1, TERMS))
    return jnp.log(variance) + jnp.where(few, series, jnp.where(gamma <= 1, closed, -jnp.inf))


def marchenko_pastur_stieltjes(z: ArrayLike, gamma: ArrayLike, variance: ArrayLike = 1.0) -> Complex[Array, "..."]:
    """Stieltjes transform S(z) = ∫ dμ(x)/(x − z), for z off the support.

    Solves the self-consistent equation 1 + zS = σ²S/(1 + γσ²S), that is γσ²zS² + (z − σ²(1−γ))S + 1 = 0, on the branch
    with Im S · Im z > 0. On the support itself the value depends on the side, and a real z there is refused;
    `laws.marchenko_pastur(gamma).boundary(x)` is the limit from above.

    Setting     X is (M, N) with independent centred entries of variance σ², γ = N/M, μ the limiting law of X'X/M
    Result      S(z) = [σ²(1−γ) − z + √(z−λ₋) √(z−λ₊)] / (2γσ²z), principal roots of the two factors separately
    Validity    z not on the support; z = 0 only for γ < 1, where S(0) = 1/(σ²(1−γ))
    References  marchenko1967; bai2010 Ch. 3

    Beside it stand S' (`marchenko_pastur_stieltjes_slope`), s̲ (`marchenko_pastur_companion`) and one step of the
    fixed-point iteration (`marchenko_pastur_self_consistent_step`).

    >>> complex(marchenko_pastur_stieltjes(1 + 0.5j, 0.5)).real.__round__(13)
    -0.1703243954755
    """
    z = point("z", z)
    gamma, variance = argument("gamma", gamma, POSITIVE), argument("variance", variance, POSITIVE)
    _off_the_support(z, gamma, variance)
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


def marchenko_pastur_stieltjes_slope(
    z: ArrayLike, gamma: ArrayLike, variance: ArrayLike = 1.0
) -> Complex[Array, "..."]:
    """S'(z) = ∫ dμ(x)/(x − z)², by differentiating the self-consistent equation; infinite at the edges alone.

    S' = −(γσ²S² + S)/(2γσ²zS + z − σ²(1 − γ)), whose denominator is √(z − λ₋) √(z − λ₊).

    >>> round(complex(marchenko_pastur_stieltjes_slope(-1.0, 0.5)).real, 12)
    0.348874687627
    """
    s = marchenko_pastur_stieltjes(z, gamma, variance)
    z, gamma, variance = jnp.asarray(z, complex), jnp.asarray(gamma, float), jnp.asarray(variance, float)
    low, high = (end.astype(complex) for end in marchenko_pastur_edges(gamma, variance))
    strength = (gamma * variance).astype(complex)
    return -(strength * s**2 + s) / (jnp.sqrt(z - low) * jnp.sqrt(z - high))


def marchenko_pastur_companion(z: ArrayLike, gamma: ArrayLike, variance: ArrayLike = 1.0) -> Complex[Array, "..."]:
    """s̲(z) = γS(z) − (1 − γ)/z, the transform of the Gram matrix XX'/M, without that subtraction.

    XX'/M is a sample covariance matrix of N samples in M dimensions with entries of variance γσ².

    >>> round(complex(marchenko_pastur_companion(-1e-12, 2.0)).real, 9)
    1.0
    """
    gamma, variance = argument("gamma", gamma, POSITIVE), argument("variance", variance, POSITIVE)
    return marchenko_pastur_stieltjes(z, 1 / gamma, gamma * variance)


def marchenko_pastur_self_consistent_step(
    s: ArrayLike, z: ArrayLike, gamma: ArrayLike, variance: ArrayLike = 1.0
) -> Complex[Array, "..."]:
    """One step S ← 1/(σ²/(1 + γσ²S) − z) of the fixed-point iteration, which converges from any Im S ≥ 0 for Im z > 0.

    >>> s, z = 1j, 1 + 0.5j
    >>> for _ in range(200):
    ...     s = marchenko_pastur_self_consistent_step(s, z, 0.5)
    >>> bool(abs(s - marchenko_pastur_stieltjes(z, 0.5)) < 1e-12)
    True
    """
    s, z = point("s", s), point("z", z)
    gamma, variance = argument("gamma", gamma, POSITIVE), argument("variance", variance, POSITIVE)
    strength = (gamma * variance).astype(complex)
    return 1 / (variance.astype(complex) / (1 + strength * s) - z)


def _off_the_support(z, gamma, variance) -> None:
    """Refuse points that are known to lie on the support: inside the edges, or on the atom at zero."""
    if not known(z, gamma, variance):
        return
    low, high = (np.asarray(end) for end in marchenko_pastur_edges(gamma, variance))
    x, height, gamma = np.real(np.asarray(z)), np.imag(np.asarray(z)), np.asarray(gamma)
    on = (height == 0) & (((x > low) & (x < high)) | ((x == 0) & (gamma >= 1)))
    if np.any(on):
        wrong = np.broadcast_to(x, on.shape)[on][0]
        raise ParameterError(
            f"z = {wrong:g} lies on the support, where the transform has two values or a pole; add an imaginary part"
        )
