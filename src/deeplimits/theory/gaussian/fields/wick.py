r"""Closed forms for σ(x) = x² and σ(x) = x, by Wick's theorem."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.gaussian.duals.abstract_dual import Dual
from deeplimits.theory.gaussian.duals.analytic import Polynomial
from deeplimits.theory.gaussian.duals.kinked import PiecewiseLinear
from deeplimits.theory.gaussian.fields.abstract_fields import Fields


class Square(Fields):
    """σ(x) = x²."""

    @property
    def dual(self) -> Dual:
        return Polynomial((0.0, 0.0, 1.0))

    def k20(self, caa: Array, cbb: Array, cab: Array) -> Array:
        # E σ''_a σ_b = 2 C_bb
        return 2 * cbb + 0 * cab

    def i4(self, c: Float[Array, "4 4"]) -> Scalar:
        # The 15 pairings of E λ_a λ_b λ_c² λ_d², times 4.
        ab, ac, ad, bc, bd, cd = c[0, 1], c[0, 2], c[0, 3], c[1, 2], c[1, 3], c[2, 3]
        cc, dd = c[2, 2], c[3, 3]
        return 4 * (
            ab * (cc * dd + 2 * cd**2) + 2 * ac * bc * dd + 2 * ad * bd * cc + 4 * ac * bd * cd + 4 * ad * bc * cd
        )

    def j4(self, c: Float[Array, "4 4"]) -> Scalar:
        return 16 * (c[0, 1] * c[2, 3] + c[0, 2] * c[1, 3] + c[0, 3] * c[1, 2])

    def squares(self, c: Float[Array, "n n"], v: Float[Array, " n"], students: int) -> Float[Array, "p p"]:
        """4 E[λ_i λ_j (λᵀVλ)²] = 4 [(τ² + 2s) C + 4τ CVC + 8 CVCVC], τ = tr VC, s = tr VCVC: time O(n³)."""
        vc = v[:, None] * c
        once = c @ vc
        tau = jnp.trace(vc)
        # s = Σ_cd v_c v_d C_cd²
        s = v @ c**2 @ v
        full = 4 * ((tau**2 + 2 * s) * c + 4 * tau * once + 8 * once @ vc)
        return full[:students, :students]


class Identity(Fields):
    """σ(x) = x."""

    @property
    def dual(self) -> Dual:
        return PiecewiseLinear(1.0, 1.0)

    def k20(self, caa: Array, cbb: Array, cab: Array) -> Array:
        return jnp.zeros_like(cab)

    def i4(self, c: Float[Array, "4 4"]) -> Scalar:
        return c[2, 3]

    def j4(self, c: Float[Array, "4 4"]) -> Scalar:
        return jnp.ones(())

    def squares(self, c: Float[Array, "n n"], v: Float[Array, " n"], students: int) -> Float[Array, "p p"]:
        # E E² = vᵀCv for every pair
        return jnp.full((students, students), v @ c @ v)
