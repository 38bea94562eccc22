r"""Sums and products of matrices in general position."""

import math

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import matrices
from deeplimits.limit import Limit, Run, axis, real, rounded, whole
from deeplimits.models.atoms import Atoms
from deeplimits.predictions import Curve, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.spectra import subordination


class FreeAdditiveConvolution(Limit):
    r"""Eigenvalues of A + UBU' and of A^{1/2} UBU' A^{1/2}, U a uniform orthogonal matrix.

    Setting     A and B are N×N with eigenvalues 1 and a, 1 and b, the larger with multiplicities qN and rN; U uniform
    Limit       N → ∞
    Result      sum: m(z) = m_A(ω), ω = z + h_B(z + h_A(ω)), h = −1/m − id; free cumulants add
                product: z m(z) = y m_A(y), y = z/k_B(z/k_A(y)), k = id + 1/m; S-transforms multiply
    Validity    bounded laws; size counts the dimension N
    Finite size both sides deviate by O(1/N)
    Computed by spectra.sum_transform (sum_transform), spectra.product_transform (product_transform); as laws
                spectra.free_sum (sum_transform), spectra.free_product (product_transform)
    References  voiculescu1986; voiculescu1987; mingo2017
    """

    first: Array = real(4.0, 1.1, 50.0, log=True, symbol="a", doc="larger eigenvalue of A")
    second: Array = real(6.0, 1.1, 50.0, log=True, symbol="b", doc="larger eigenvalue of B")
    first_share: Array = real(0.5, 0.1, 0.9, symbol="q", doc="share of the larger eigenvalue of A")
    second_share: Array = real(0.25, 0.1, 0.9, symbol="r", doc="share of the larger eigenvalue of B")
    heights: Array = axis(
        (1.0, 2.0, 4.0, 8.0), 0.5, 1000.0, log=True, symbol="y", doc="where the transforms are compared"
    )

    usual = Run(sizes=(16, 32, 64), samples=300)
    showcase = Showcase(
        see="Transforms of sums and products of matrices in general position, from the two spectra alone."
    )

    def _laws(self):
        one = Atoms(jnp.stack([1.0, self.first]), jnp.stack([1 - self.first_share, self.first_share]))
        two = Atoms(jnp.stack([1.0, self.second]), jnp.stack([1 - self.second_share, self.second_share]))
        return one, two

    def theory(self):
        one, two = self._laws()
        y = self.heights.astype(complex)
        of_sum = jnp.imag(subordination.sum_transform(1j * y, one, two)) * self.heights
        of_product = jnp.real(subordination.product_transform(-y, one, two)) * self.heights
        # κ₂ of a free product: m_A² Var_B + m_B² Var_A (free variables lose the product of the variances).
        mean_one, mean_two = jnp.sum(one.weights * one.values), jnp.sum(two.weights * two.values)
        spread_one = jnp.sum(one.weights * (one.values - mean_one) ** 2)
        spread_two = jnp.sum(two.weights * (two.values - mean_two) ** 2)

        def resolvent(values, of, symbol):
            label, symbol = f"resolvent of the {of}", r"\frac{1}{N}{\rm tr}\," + symbol
            return Curve(self.heights, values, axis="height", axis_symbol="y", label=label, symbol=symbol, rate=1.0)

        return {
            "sum_transform": resolvent(of_sum, "sum", "y^2(y^2+S^2)^{-1}"),
            "product_transform": resolvent(of_product, "product", "y(y+P)^{-1}"),
            "product_variance": Value(
                mean_one**2 * spread_two + mean_two**2 * spread_one,
                label="variance of the product's eigenvalues",
                symbol=r"{\rm Var}\,\lambda(P)",
                rate=1.0,
            ),
        }

    def at_size(self, size):
        n = whole(size, "N", self, least=4)
        # Shares that are whole numbers of N, and allowed ones: rounding must not lead out of the range.
        one, two = (
            min(max(round(n * float(share)), math.ceil(0.1 * n)), math.floor(0.9 * n))
            for share in (self.first_share, self.second_share)
        )
        sizes = {"dimension": n, "first_count": one, "second_count": two}
        return sizes, rounded(self, first_share=one / n, second_share=two / n)

    def simulate(self, key, *, dimension: int, first_count: int, second_count: int):
        place = jnp.arange(dimension)
        one = jnp.where(place < first_count, self.first, 1.0)
        two = jnp.where(place < second_count, self.second, 1.0)
        u = matrices.uniform_orthogonal(key, dimension)
        turned = (u * two[None, :]) @ u.T
        root = jnp.sqrt(one)
        of_sum = jnp.linalg.eigvalsh(jnp.diag(one) + turned)
        of_product = jnp.linalg.eigvalsh(root[:, None] * turned * root[None, :])
        y = self.heights[:, None]
        return {
            "sum_transform": jnp.mean(y**2 / (y**2 + of_sum[None, :] ** 2), axis=1),
            "product_transform": jnp.mean(y / (y + of_product[None, :]), axis=1),
            "product_variance": jnp.mean(of_product**2) - jnp.mean(of_product) ** 2,
        }
