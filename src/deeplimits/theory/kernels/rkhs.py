r"""The Hilbert space of a kernel: norms, evaluation, representers.

H_K = T_K^{1/2} L² = {Σ a_j √λ_j ψ_j : a ∈ ℓ²}, ⟨f, g⟩_H = Σ f_j g_j/λ_j, ⟨f, K(x, ·)⟩_H = f(x).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics.arguments import FINITE, NOT_NEGATIVE, argument, array
from deeplimits.numerics.arguments import function as called
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.kernels import positive


class Representer(NamedTuple):
    """f = Σ_i α_i K(·, x_i): its coefficients and its squared norm αᵀKα."""

    coefficients: Float[Array, " n"]
    squared_norm: Scalar


def rkhs_squared_norm(kernel: ArrayLike, coefficients: ArrayLike) -> Scalar:
    r"""‖Σ_i α_i K(·, x_i)‖² in the Hilbert space of the kernel.

    Setting     a positive semidefinite kernel K with Mercer expansion Σ λ_j ψ_j(x)ψ_j(y)
    Result      H_K = T_K^{1/2}L², ⟨f, g⟩_H = Σ_j f_j g_j/λ_j; ⟨f, K(x, ·)⟩_H = f(x), so |f(x)| ≤ √K(x, x) ‖f‖_H;
                finite sums: ‖Σ α_i K(·, x_i)‖² = αᵀKα (this function); least norm through given values: yᵀK⁺y
                (`least_norm_interpolant`); Fourier side: Σ f_j²/λ_j (`mercer_squared_norm`); inner products are
                `rkhs_inner_product`, the norm of a function that is given as one `rkhs_norm_of_function`
    Validity    K positive semidefinite; evaluation is bounded by definition of such a space, not in every Hilbert space
    References  aronszajn1950; rasmussen2006 Sec 6.1

    >>> float(rkhs_squared_norm([[1.0, 0.5], [0.5, 1.0]], [1.0, -1.0]))
    1.0
    """
    found = positive.modes(kernel)
    alpha, single = positive.column(coefficients, found.eigenvalues.shape[0], "coefficients")
    if not single:
        raise ParameterError(f"coefficients has shape {alpha.shape}; give one coefficient per point")
    return alpha[:, 0] @ jnp.asarray(kernel, float) @ alpha[:, 0]


def rkhs_inner_product(kernel: ArrayLike, first: ArrayLike, second: ArrayLike) -> Scalar:
    """⟨Σ α_i K(·, x_i), Σ β_i K(·, x_i)⟩ = αᵀKβ in the Hilbert space of the kernel, `first` α and `second` β.

    With β_j = 1 and all others 0 it is f(x_j): the kernel reproduces.

    >>> float(rkhs_inner_product([[1.0, 0.5], [0.5, 1.0]], [1.0, -1.0], [0.0, 1.0]))
    -0.5
    """
    size = positive.modes(kernel).eigenvalues.shape[0]
    alpha = array("first", first, (size,), why="one coefficient for each point")
    beta = array("second", second, (size,), why="one coefficient for each point")
    return alpha @ jnp.asarray(kernel, float) @ beta


class NormOfFunction(NamedTuple):
    """What is known of ‖f‖² in the Hilbert space of a kernel from values of f at points."""

    squared_norm: Scalar
    """The least ‖g‖² among functions with these values: at most ‖f‖²."""
    gained: Scalar
    """How much of it every other point alone does not show."""


def rkhs_norm_of_function(kernel: Callable, function: Callable, points: ArrayLike) -> NormOfFunction:
    """‖f‖² from below, for a function f and a kernel that are given as functions.

    Setting     `kernel`(x, y) and `function`(x) of arrays of points, which broadcast; `points` (n,) or (n, d), in the
                order of a line where they lie on one
    Result      yᵀK⁺y with y_i = f(x_i), which rises to ‖f‖² as the points become dense, and without bound where f is
                not in the space; for min(x, y) on [0, 1] it is ∫f'² of the polygon through the values
    Validity    a positive definite kernel whose matrix at the points is not singular to rounding
    References  aronszajn1950; rasmussen2006 Sec 6.1

    >>> found = rkhs_norm_of_function(jnp.minimum, lambda x: x * (1 - x), jnp.arange(1, 65) / 64)
    >>> round(float(found.squared_norm), 6), round(float(found.gained), 6)
    (0.333252, 0.000244)
    """
    x = argument("points", points, FINITE)
    if x.ndim not in (1, 2) or x.shape[0] < 2:
        raise ParameterError(f"points has shape {x.shape}; give at least two points, (n,) or (n, d)")
    matrix = jnp.asarray(called("kernel", kernel)(x[:, None], x[None, :]), float)
    values = jnp.asarray(called("function", function)(x), float)
    if matrix.shape != (x.shape[0],) * 2 or values.shape != x.shape[:1]:
        raise ParameterError(
            f"kernel gives shape {matrix.shape} and function {values.shape} for {x.shape[0]} points; they must give "
            f"{(x.shape[0],) * 2} and {x.shape[:1]}"
        )
    # The last point stays: on a line it is an end.
    some = jnp.arange(x.shape[0] - 1, -1, -2)
    whole = least_norm_interpolant(matrix, values).squared_norm
    return NormOfFunction(whole, whole - least_norm_interpolant(matrix[jnp.ix_(some, some)], values[some]).squared_norm)


def least_norm_interpolant(kernel: ArrayLike, values: ArrayLike, *, tolerance: float = 1e-8) -> Representer:
    """The function of least norm with given values at the points; its squared norm is yᵀK⁺y.

    Values that no function of the space takes (K singular and y outside its range) are refused.

    >>> least_norm_interpolant([[1.0, 1.0], [1.0, 1.0]], [2.0, 2.0]).squared_norm.round(12).tolist()
    4.0
    """
    found = positive.modes(kernel)
    y, single = positive.column(values, found.eigenvalues.shape[0], "values")
    if not single:
        raise ParameterError(f"values has shape {y.shape}; give one value per point")
    modes = found.vectors.T @ y[:, 0]
    outside = float(jnp.linalg.norm(jnp.where(found.null, modes, 0.0)))
    if outside > tolerance * float(jnp.linalg.norm(modes)):
        raise OutsideValidity(
            f"no function of this space takes these values: the kernel matrix is singular and {outside:.3g} of the "
            "values lies outside its range; remove coinciding points or use ridge regression"
        )
    inverse = jnp.where(found.null, 0.0, 1 / jnp.where(found.null, 1.0, found.eigenvalues))
    return Representer(found.vectors @ (inverse * modes), jnp.sum(inverse * modes**2))


def mercer_squared_norm(coefficients: ArrayLike, eigenvalues: ArrayLike) -> Scalar:
    """Σ f_j²/λ_j from the coefficients f_j = ⟨f, ψ_j⟩ in L²; infinite where f has a part that the kernel lacks.

    >>> float(mercer_squared_norm([1.0, 1.0], [1.0, 0.5]))
    3.0
    """
    f, lam = np.asarray(coefficients, float), np.asarray(eigenvalues, float)
    if f.shape != lam.shape or f.ndim != 1:
        raise ParameterError(f"coefficients {f.shape} and eigenvalues {lam.shape} must be lists of one length")
    argument("coefficients", f, FINITE)
    if np.any(lam < 0) or not np.all(np.isfinite(lam)):
        raise ParameterError(f"eigenvalues contain {lam.min():g}; those of a kernel are finite and not negative")
    with np.errstate(divide="ignore"):
        parts = np.where(f == 0, 0.0, f**2 / np.where(f == 0, 1.0, lam))
    return jnp.asarray(parts.sum())


def evaluation_bound(diagonal: ArrayLike, norm: ArrayLike) -> Floats:
    """|f(x)| ≤ √K(x, x) ‖f‖_H, attained by f ∝ K(x, ·).

    >>> float(evaluation_bound(4.0, 3.0))
    6.0
    """
    return jnp.sqrt(argument("diagonal", diagonal, NOT_NEGATIVE)) * argument("norm", norm, NOT_NEGATIVE)
