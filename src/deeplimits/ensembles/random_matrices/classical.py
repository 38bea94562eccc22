"""Gaussian and Wishart ensembles: as matrices, and by tridiagonal matrices that have the same eigenvalues in law."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments


def gaussian_matrix(key: PRNGKeyArray, size: int, beta: int = 1) -> Array:
    """A matrix of the Gaussian orthogonal (GOE, β = 1), unitary (GUE, 2) or symplectic (GSE, 4) ensemble, on [−2, 2].

    Setting     Hermitian (n, n), E|H_ij|² = 1/n off the diagonal; β = 4: the complex (2n, 2n) matrix of one of
                quaternions, each of whose n eigenvalues occurs twice
    Result      the law of its eigenvalues tends to `theory.spectra.semicircle(1.0)`; n^{2/3}(λ_max − 2) to the
                Tracy-Widom law of this β
    References  anderson2010

    >>> h = gaussian_matrix(jax.random.key(0), 3, beta=2)
    >>> bool(jnp.all(h == h.conj().T))
    True
    """
    n = arguments.whole("size", size, 1)
    if beta not in (1, 2, 4):
        raise ParameterError(f"beta = {beta!r} is not allowed; it must be 1, 2 or 4 (gaussian_eigenvalues takes any)")
    if beta == 1:
        drawn = jax.random.normal(key, (n, n))
    elif beta == 2:
        drawn = jax.random.normal(key, (n, n), dtype=complex)
    else:
        one, two = jax.random.normal(key, (2, n, n), dtype=complex) / jnp.sqrt(2.0)
        drawn = jnp.block([[one, two], [-two.conj(), one.conj()]])
    return (drawn + drawn.conj().T) / jnp.sqrt(2.0 * n)


def gaussian_eigenvalues(key: PRNGKeyArray, size: int, beta: float = 1.0) -> Float[Array, " n"]:
    """Eigenvalues of the Gaussian β ensemble (GOE, GUE, ...) in increasing order, for any β > 0, scaled to [−2, 2].

    Setting     density ∝ Π_{i<j}|λ_i − λ_j|^β exp(−(βn/4) Σ λ_i²); β = 1, 2, 4: those of `gaussian_matrix`
    Result      eigenvalues of the tridiagonal matrix with N(0, 2/βn) on its diagonal and χ_{kβ}/√(βn), k = n − 1 … 1,
                beside it: the same law, in O(n²) operations and O(n) numbers
    References  dumitriu2002

    >>> gaussian_eigenvalues(jax.random.key(0), 1000, beta=2.0)[jnp.array([0, -1])].round(1).tolist()
    [-2.0, 2.0]
    """
    n = arguments.whole("size", size, 1)
    strength = arguments.number("beta", beta, arguments.POSITIVE)
    centre, beside = jax.random.split(key)
    diagonal = jnp.sqrt(2 / (strength * n)) * jax.random.normal(centre, (n,))
    chi = _chi(beside, strength * jnp.arange(n - 1.0, 0.0, -1.0))
    return _tridiagonal(diagonal, chi / jnp.sqrt(strength * n))


def wishart_eigenvalues(key: PRNGKeyArray, samples: int, dimension: int, beta: float = 1.0) -> Float[Array, " p"]:
    """Eigenvalues of a Wishart matrix X*X/n in increasing order, X (n, p) of standard Gaussian entries; for any β > 0.

    Setting     n `samples`, p = `dimension`; entries real (β = 1), complex (2), quaternions (4); any other β: the
                Laguerre ensemble
    Result      eigenvalues of BBᵀ/(βn), B bidiagonal with χ_{β(n−i+1)} on and χ_{β(p−i)} below the diagonal, i = 1 …:
                the same law without the matrix X; p − n zeros, and n and p change places, where p > n
    References  dumitriu2002

    Their law tends to `theory.spectra.marchenko_pastur(p/n)`.

    >>> found = wishart_eigenvalues(jax.random.key(0), 400, 100)
    >>> [f"{float(end):.1f}" for end in (found[0], found[-1])]
    ['0.3', '2.2']
    """
    n = arguments.whole("samples", samples, 1)
    p = arguments.whole("dimension", dimension, 1)
    strength = arguments.number("beta", beta, arguments.POSITIVE)
    few, many = min(n, p), max(n, p)
    on, below = jax.random.split(key)
    d = _chi(on, strength * jnp.arange(many * 1.0, many * 1.0 - few, -1.0))
    s = _chi(below, strength * jnp.arange(few - 1.0, 0.0, -1.0))
    diagonal = d**2 + jnp.concatenate([jnp.zeros(1), s**2])
    found = _tridiagonal(diagonal / (strength * n), d[:-1] * s / (strength * n))
    return jnp.concatenate([jnp.zeros(p - few), jnp.maximum(found, 0.0)])


def _chi(key: PRNGKeyArray, freedom: Float[Array, " k"]) -> Float[Array, " k"]:
    """Independent χ variables; a degree of freedom need not be whole."""
    return jnp.sqrt(2 * jax.random.gamma(key, freedom / 2))


@jax.jit
def _tridiagonal(diagonal: Float[Array, " n"], beside: Float[Array, " m"]) -> Float[Array, " n"]:
    if diagonal.shape[0] == 1:
        return diagonal
    return jax.scipy.linalg.eigh_tridiagonal(diagonal, beside, eigvals_only=True)
