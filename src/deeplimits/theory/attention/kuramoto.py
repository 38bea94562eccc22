"""β = 0: every token moves towards the mean. On the circle this is Kuramoto's model with equal frequencies."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.arguments import known
from deeplimits.numerics.shapes import Floats, Scalar

BALANCED = 1e-9
"""Tokens balance each other where their mean is no longer than this."""


def poisson_order(start: ArrayLike, times: ArrayLike) -> Floats:
    """|E e^{iθ}| at time t for infinitely many tokens on the circle with a Poisson kernel of modulus `start`.

    ṙ = r(1 − r²)/2 on the manifold of Ott and Antonsen: r(t) = r₀/√(r₀² + (1 − r₀²)e^{−t}).

    >>> [round(float(r), 12) for r in poisson_order(0.2, jnp.array([1.0, 3.0]))]
    [0.318964961149, 0.674984275546]
    """
    t = arguments.argument("times", times, arguments.NOT_NEGATIVE)
    r = arguments.argument("start", start, arguments.SHARE)
    return r / jnp.sqrt(jnp.where(r > 0, r**2 + (1 - r**2) * jnp.exp(-t), 1.0))


def uniform_growth(dimension: ArrayLike) -> Floats:
    """The rate (d − 1)/d at which a mean grows out of the uniform distribution on the sphere of R^d.

    >>> uniform_growth(2).item()
    0.5
    """
    d = arguments.argument("dimension", dimension, arguments.at_least(2))
    return (d - 1) / d


def antipodal_spectrum(tokens: int, flipped: int, dimension: int) -> Float[Array, "eigenvalues"]:
    """The n(d−1) eigenvalues, increasing, of the Hessian of E₀ where n − m tokens are at x* and m at −x*, m < n/2.

    s = n − 2m. For each of the d − 1 directions: −s/n (n − m − 1 times), +s/n (m − 1 times), 0 and, unless m = 0, 1;
    at consensus (m = 0) −1 (n − 1 times) and 0. A positive one makes the point a saddle: the only attractor is
    consensus, with rate 1.

    >>> antipodal_spectrum(6, 2, 2).round(3).tolist()
    [-0.333, -0.333, -0.333, 0.0, 0.333, 1.0]
    """
    n = arguments.whole("tokens", tokens, 2)
    m = arguments.whole("flipped", flipped)
    d = arguments.whole("dimension", dimension, 2)
    if 2 * m >= n:
        raise ParameterError(f"flipped = {m} of {n} tokens is not allowed; fewer than half of them may be opposite")
    share = (n - 2 * m) / n
    once = [-share] * (n - m - 1) + ([share] * (m - 1) + [0.0, 1.0] if m else [0.0])
    return jnp.sort(jnp.repeat(jnp.array(once), d - 1))


def balanced_curvature(tokens: ArrayLike) -> Scalar:
    """The largest eigenvalue 1 − λ_min(Σ x xᵀ)/n of the Hessian of E₀ where the mean of the tokens is zero.

    Positive: tokens that balance each other are a saddle.

    >>> round(float(balanced_curvature([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]])), 12)
    0.5
    """
    x = arguments.unit_rows("tokens", tokens)
    off = jnp.linalg.norm(jnp.mean(x, axis=0))
    if known(off) and float(off) > BALANCED:
        raise ParameterError(f"tokens has a mean of length {float(off):.3g}; this is stated where the mean is zero")
    return 1 - jnp.linalg.eigvalsh(x.T @ x)[0] / x.shape[0]
