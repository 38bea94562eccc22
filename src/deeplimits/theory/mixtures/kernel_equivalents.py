"""Deterministic equivalents of kernel matrices on a mixture, as matrices and as factors of rank p + 1 + classes."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity
from deeplimits.models.activations import ActivationLike
from deeplimits.numerics import arguments
from deeplimits.numerics.arguments import known
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.gaussian import moments
from deeplimits.theory.mixtures.activation_moments import kernel_coefficients
from deeplimits.theory.mixtures.dual_matrices import dual_matrix
from deeplimits.theory.mixtures.gaussian_mixtures import KernelData
from deeplimits.theory.mixtures.layer_equivalents import DeepKernel, deep_coefficients

ROUNDING = 1e-13
"""Of the largest coefficient: so small a multiple of the identity is what rounding leaves of none."""


class KernelEquivalent(NamedTuple):
    """K̃ = FGF' + δI, F of p + 1 + classes columns: products and solutions without an n×n matrix."""

    factor: Float[Array, "n r"]
    """F = [X/√p, s, J]"""
    core: Float[Array, "r r"]
    """G = diag(k₁I, k₂, k₃T/p)"""
    shift: Scalar
    """δ = k₀ − τ₀²k₁"""

    def matrix(self) -> Float[Array, "n n"]:
        """K̃, all of it."""
        whole = self.factor @ self.core @ self.factor.T
        return (whole + whole.T) / 2 + self.shift * jnp.eye(self.factor.shape[0])

    def product(self, vectors: Float[Array, "n k"]) -> Float[Array, "n k"]:
        """K̃V."""
        return self.factor @ (self.core @ (self.factor.T @ vectors)) + self.shift * vectors

    def solve(self, vectors: Float[Array, "n k"], ridge: ArrayLike) -> Float[Array, "n k"]:
        """(K̃ + λI)^{−1}V by a system of the size of F."""
        scale = self.shift + arguments.number("ridge", ridge, arguments.NOT_NEGATIVE)
        if known(scale, self.core) and not float(scale) > ROUNDING * float(jnp.max(jnp.abs(self.core))):
            raise OutsideValidity(
                f"ridge = {float(jnp.asarray(ridge)):g} leaves K̃ + λI singular; it must exceed "
                f"{abs(float(self.shift)):g}"
            )
        # (δ + FGF')^{−1} = (1 − F(δ + GF'F)^{−1}GF')/δ
        inner = scale * jnp.eye(self.core.shape[0]) + self.core @ (self.factor.T @ self.factor)
        return (vectors - self.factor @ jnp.linalg.solve(inner, self.core @ (self.factor.T @ vectors))) / scale


def equivalent_kernel(coefficients: DeepKernel, data: KernelData) -> KernelEquivalent:
    """The matrix that a kernel of high-dimensional points is equivalent to, in operator norm.

    Setting     points of a mixture as in `kernel_data`; the four numbers of a kernel as in `deep_coefficients`,
                `conjugate_kernel_equivalent` or `equilibrium_coefficients`
    Result      K̃ = k₁X'X/p + k₂ss' + k₃JTJ'/p + (k₀ − τ₀²k₁)I
    Validity    |μ_a| and √p tr(C_a − C°)/p of order one, |C_a| bounded, n/p of order one; |K − K̃| = O(p^(−1/2))
    References  ali2022 Thm 1; gu2022 Thm 1

    >>> import numpy as np
    >>> from deeplimits.theory.mixtures.gaussian_mixtures import gaussian_mixture
    >>> from deeplimits.theory.mixtures.gaussian_mixtures import kernel_data
    >>> points = kernel_data(np.eye(2), [0, 0], mixture=gaussian_mixture(np.zeros((1, 2)), 1.0))
    >>> found = equivalent_kernel(deep_coefficients(["relu"]).conjugate[0], points)
    >>> round(float(found.shift), 10)
    0.0908450569
    """
    arguments.of_kind("coefficients", coefficients, DeepKernel)
    arguments.of_kind("data", data, KernelData)
    p = data.inputs.shape[1]
    k1, k2, k3, k0, _ = coefficients
    if known(k0) and not bool(jnp.isfinite(k0)):
        raise OutsideValidity(
            "the diagonal of this kernel is infinite: an activation jumps, and has no tangent kernel of a point with "
            "itself; take a continuous one, or the conjugate kernel"
        )
    classes = data.overlap.shape[0]
    core = jnp.zeros((p + 1 + classes, p + 1 + classes))
    core = core.at[jnp.arange(p), jnp.arange(p)].set(k1).at[p, p].set(k2)
    core = core.at[p + 1 :, p + 1 :].set(k3 * data.overlap / p)
    factor = jnp.concatenate([data.inputs, data.spread[:, None], data.members], axis=1)
    return KernelEquivalent(factor, core, k0 - data.variance * k1)


def conjugate_kernel_equivalent(
    activation: ActivationLike, data: KernelData, *, kurtosis: ArrayLike = 3.0, diagonals: ArrayLike | None = None
) -> KernelEquivalent:
    """The conjugate kernel of one layer on a mixture, for any activation and for weights of any law.

    Setting     K_ij = E σ̃(w·x_i/√p)σ̃(w·x_j/√p), σ̃ = σ − E σ(τ₀ξ), w of independent entries of variance one and
                `kurtosis` E w⁴; `diagonals` the diagonals of the C_a as rows, isotropic classes unless given
    Result      K̃ = d₁X'X/p + d₂ss' + 2d₂JTJ'/p + d₀I + (E w⁴ − 3)d₂J[Σ_k C_a,kk C_b,kk/p]J'/p
    Validity    as `equivalent_kernel`; for sparse weights the mean number of nonzero ones large
    References  ali2022 Thm 1

    >>> import numpy as np
    >>> from deeplimits.theory.mixtures.gaussian_mixtures import gaussian_mixture, kernel_data
    >>> points = kernel_data(np.ones((2, 4)), [0, 0], mixture=gaussian_mixture(np.zeros((1, 4)), 1.0))
    >>> conjugate_kernel_equivalent("square", points, kurtosis=1.0).matrix().round(12).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    arguments.of_kind("data", data, KernelData)
    d0, d1, d2, energy = kernel_coefficients(activation, data.variance)
    excess = arguments.number("kurtosis", kurtosis, arguments.at_least(1), "E w⁴ of unit variance") - 3
    k, p = data.overlap.shape[0], data.inputs.shape[1]
    if diagonals is None:
        # Isotropic classes: C_a,kk = √T_aa
        roots = jnp.sqrt(jnp.einsum("ii->i", data.overlap))
        aligned = roots[:, None] * roots[None, :]
    else:
        rows = arguments.array("diagonals", diagonals, (k, p), allowed=arguments.NOT_NEGATIVE, why="a row a class")
        aligned = rows @ rows.T / p
    found = equivalent_kernel(DeepKernel(d1, d2, 2 * d2, d0 + data.variance * d1, energy), data)
    return found._replace(core=found.core.at[p + 1 :, p + 1 :].add(excess * d2 * aligned / p))


def centred_kernel(
    activations: Sequence[ActivationLike], x: ArrayLike, variance: ArrayLike, *, tangent: bool = False
) -> Float[Array, "n n"]:
    """The exact kernel of an infinitely wide network with centred activations: what the equivalents approximate.

    Setting     as in `deep_coefficients`, at the points that are the rows of x
    Result      K_l = E σ̃(u)σ̃(v), (u, v) of covariance K_{l−1}, σ̃ = σ_l − E σ_l(τ_{l−1}ξ); with `tangent`
                Θ_l = K_l + Θ_{l−1} ∘ E σ'(u)σ'(v)
    References  gu2022 Eq. 3

    Activations with kinks and no closed form are integrated pair by pair, which takes minutes beyond a hundred points.

    >>> import numpy as np
    >>> centred_kernel(["square"], np.array([[1.0, 1.0], [1.0, -1.0]]), 1.0).round(12).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    points = arguments.array("x", x, ("n", "p"), why="one point in each row")
    means = deep_coefficients(activations, variance).means
    kernel = points @ points.T / points.shape[1]
    theta = kernel
    for activation, mean in zip(activations, means, strict=True):
        of_points = moments.mean(activation, jnp.einsum("ii->i", kernel))
        slopes = dual_matrix(activation, kernel, slope=True) if tangent else 0.0
        kernel = dual_matrix(activation, kernel) - mean * (of_points[:, None] + of_points[None, :]) + mean**2
        kernel = (kernel + kernel.T) / 2
        theta = kernel + theta * slopes if tangent else theta
    return theta if tangent else kernel
