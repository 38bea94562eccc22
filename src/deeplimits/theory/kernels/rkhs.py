r"""The Hilbert space of a kernel: norms, evaluation, representers.

H_K = T_K^{1/2} L² = {Σ a_j √λ_j ψ_j : a ∈ ℓ²}, ⟨f, g⟩_H = Σ f_j g_j/λ_j, ⟨f, K(x, ·)⟩_H = f(x).
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.theory.kernels import positive


class Representer(NamedTuple):
    """f = Σ_i α_i K(·, x_i): its coefficients and its squared norm αᵀKα."""

    coefficients: Float[Array, " n"]
    squared_norm: Float[Array, ""]


def rkhs_squared_norm(kernel: ArrayLike, coefficients: ArrayLike) -> Float[Array, ""]:
    r"""‖Σ_i α_i K(·, x_i)‖² in the Hilbert space of the kernel.

    Setting     a positive semidefinite kernel K with Mercer expansion Σ λ_j ψ_j(x)ψ_j(y)
    Result      H_K = T_K^{1/2}L², ⟨f, g⟩_H = Σ_j f_j g_j/λ_j; ⟨f, K(x, ·)⟩_H = f(x), so |f(x)| ≤ √K(x, x) ‖f‖_H;
                finite sums: ‖Σ α_i K(·, x_i)‖² = αᵀKα (this function); least norm through given values: yᵀK⁺y
                (`least_norm_interpolant`); Fourier side: Σ f_j²/λ_j (`mercer_squared_norm`)
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


def mercer_squared_norm(coefficients: ArrayLike, eigenvalues: ArrayLike) -> Float[Array, ""]:
    """Σ f_j²/λ_j from the coefficients f_j = ⟨f, ψ_j⟩ in L²; infinite where f has a part that the kernel lacks.

    >>> float(mercer_squared_norm([1.0, 1.0], [1.0, 0.5]))
    3.0
    """
    f, lam = np.asarray(coefficients, float), np.asarray(eigenvalues, float)
    if f.shape != lam.shape or f.ndim != 1:
        raise ParameterError(f"coefficients {f.shape} and eigenvalues {lam.shape} must be lists of one length")
    if np.any(lam < 0) or not np.all(np.isfinite(lam)):
        raise ParameterError(f"eigenvalues contain {lam.min():g}; those of a kernel are finite and not negative")
    with np.errstate(divide="ignore"):
        parts = np.where(f == 0, 0.0, f**2 / np.where(f == 0, 1.0, lam))
    return jnp.asarray(parts.sum())


def evaluation_bound(diagonal: ArrayLike, norm: ArrayLike) -> Float[Array, "..."]:
    """|f(x)| ≤ √K(x, x) ‖f‖_H, attained by f ∝ K(x, ·).

    >>> float(evaluation_bound(4.0, 3.0))
    6.0
    """
    return jnp.sqrt(jnp.asarray(diagonal, float)) * jnp.asarray(norm, float)
