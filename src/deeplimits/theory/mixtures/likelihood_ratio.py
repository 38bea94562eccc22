"""How well two Gaussian classes can be told apart at all, when everything about them is known."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.arguments import known
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.kernels import positive


def limiting_error(distance: ArrayLike, shape: ArrayLike) -> Floats:
    """The smallest error for two balanced Gaussian classes whose difference is of these sizes, in the limit.

    Setting     `distance` |C^{−1/2}(μ₁ − μ₂)|, `shape` |C^{−1/2}(C₁ − C₂)C^{−1/2}|_F, both of order one as p → ∞
    Result      Q(½√(distance² + shape²/2))
    Validity    no single direction carries the difference of the covariances
    References  couillet2022

    >>> round(float(limiting_error(1.5, 2.0)), 10), round(float(limiting_error(0.0, 3.0)), 10)
    (0.1513228424, 0.1444221832)
    """
    d = arguments.argument("distance", distance, arguments.NOT_NEGATIVE)
    s = arguments.argument("shape", shape, arguments.NOT_NEGATIVE)
    return ndtr(-jnp.sqrt(d**2 + s**2 / 2) / 2)


def oracle_error(difference: ArrayLike, first: ArrayLike, second: ArrayLike) -> Scalar:
    """The smallest error with which two balanced Gaussian classes can be told apart in high dimension.

    Setting     N(μ₁, C₁) and N(μ₂, C₂) of equal weight, all known; `difference` Δ = μ₁ − μ₂ in R^p; covariances as
                matrices, or as p variances
    Result      Q(½√(Δ'C^{−1}Δ + ½|C^{−1/2}(C₁ − C₂)C^{−1/2}|_F²)), C = (C₁ + C₂)/2, Q the upper tail of N(0, 1): the
                rates |Δ| = O(1) and |C₁ − C₂| = O(p^{−1/2}) are where it is neither 0 nor ½
    Validity    p → ∞ at these rates (the log likelihood ratio is then Gaussian, up to O(p^{−1/2})); exact for C₁ = C₂
    References  couillet2022

    >>> import numpy as np
    >>> round(float(oracle_error([1.5] + [0.0] * 399, np.ones(400), np.full(400, 1 + 2 / 20))), 4)
    0.16
    """
    gap = arguments.array("difference", difference, ("p",), why="μ₁ − μ₂")
    p = gap.shape[0]
    one, two = _covariance("first", first, p), _covariance("second", second, p)
    if one.ndim != two.ndim:
        one, two = (c if c.ndim == 2 else jnp.diag(c) for c in (one, two))
    c = (one + two) / 2
    if c.ndim == 1:
        mean, shape = jnp.sum(gap**2 / c), jnp.sum(((one - two) / c) ** 2)
    else:
        root = jnp.linalg.cholesky(c)
        whitened = jnp.linalg.solve(root, jnp.linalg.solve(root, one - two).T)
        mean, shape = jnp.sum(jnp.linalg.solve(root, gap) ** 2), jnp.sum(whitened**2)
    return limiting_error(jnp.sqrt(mean), jnp.sqrt(shape))


def _covariance(name: str, value: ArrayLike, p: int) -> Array:
    c = arguments.array(name, value, (p,), (p, p), why="a covariance matrix, or its diagonal")
    if not known(c):
        return c
    if c.ndim == 2:
        positive.matrix(c, name=name)
    least = float(np.min(np.asarray(c)) if c.ndim == 1 else np.linalg.eigvalsh(np.asarray(c))[0])
    if not least > 1e-13 * float(np.max(np.abs(np.asarray(c)))):
        raise ParameterError(
            f"{name} is no invertible covariance: its smallest eigenvalue is {least:.6g}; it must be positive (classes "
            "that differ in a direction without variance are told apart without error)"
        )
    return c
