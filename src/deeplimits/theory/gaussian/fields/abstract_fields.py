"""What the integrals of an activation over several Gaussian fields are."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.gaussian.duals.abstract_dual import Dual
from deeplimits.theory.gaussian.duals.abstract_dual import Scaled as ScaledDual
from deeplimits.theory.gaussian.pairs import pair


class PairIntegrals(NamedTuple):
    """I₂ = E σ_i σ_c, J₂ = E σ'_i σ'_c and K₂₀ = E σ''_i σ_c between the students and all fields."""

    i2: Float[Array, "p n"]
    j2: Float[Array, "p n"]
    k20: Float[Array, "p n"]


class Fields(eqx.Module):
    """Integrals over Gaussian fields λ ~ N(0, C) in closed form, for one activation; σ_a = σ(λ_a).

    Functions of pairs take covariance entries that broadcast: `caa`, `cbb` variances, `cab` the covariance.
    """

    @property
    @abc.abstractmethod
    def dual(self) -> Dual:
        """The pair functions E σσ and E σ'σ'."""

    def i2(self, caa: Array, cbb: Array, cab: Array) -> Array:
        """E σ_a σ_b"""
        return self.dual.value(pair(caa, cbb, cab))

    def j2(self, caa: Array, cbb: Array, cab: Array) -> Array:
        """E σ'_a σ'_b"""
        return self.dual.slope(pair(caa, cbb, cab))

    @abc.abstractmethod
    def k20(self, caa: Array, cbb: Array, cab: Array) -> Array:
        """E σ''_a σ_b"""

    def between(self, own: Float[Array, "p d"], every: Float[Array, "n d"]) -> PairIntegrals:
        """E σσ, E σ'σ' and E σ''σ between the fields ⟨w, x⟩ of two lists of vectors w, x ~ N(0, I_d)."""
        rows, columns = jnp.sum(own**2, axis=1)[:, None], jnp.sum(every**2, axis=1)[None, :]
        covariances = own @ every.T
        return PairIntegrals(*(integral(rows, columns, covariances) for integral in (self.i2, self.j2, self.k20)))

    @abc.abstractmethod
    def i4(self, c: Float[Array, "4 4"]) -> Scalar:
        """E σ'_0 σ'_1 σ_2 σ_3"""

    @abc.abstractmethod
    def j4(self, c: Float[Array, "4 4"]) -> Scalar:
        """E σ'_0 σ'_1 σ'_2 σ'_3"""

    @abc.abstractmethod
    def squares(self, c: Float[Array, "n n"], v: Float[Array, " n"], students: int) -> Float[Array, "p p"]:
        """Σ_cd v_c v_d I₄(i, j, c, d) for all pairs (i, j) of the first `students` fields."""


class Scaled(Fields):
    """The integrals of γσ(βu), from those of σ."""

    base: Fields
    argument: float = eqx.field(static=True)
    factor: float = eqx.field(static=True)

    @property
    def dual(self) -> Dual:
        return ScaledDual(self.base.dual, self.argument, self.factor)

    def k20(self, caa: Array, cbb: Array, cab: Array) -> Array:
        b = self.argument**2
        return b * self.factor**2 * self.base.k20(b * caa, b * cbb, b * cab)

    def between(self, own: Float[Array, "p d"], every: Float[Array, "n d"]) -> PairIntegrals:
        i2, j2, k20 = self.base.between(self.argument * own, self.argument * every)
        inner, outer = self.argument**2, self.factor**2
        return PairIntegrals(outer * i2, inner * outer * j2, inner * outer * k20)

    def i4(self, c: Float[Array, "4 4"]) -> Scalar:
        return self.argument**2 * self.factor**4 * self.base.i4(self.argument**2 * c)

    def j4(self, c: Float[Array, "4 4"]) -> Scalar:
        return self.argument**4 * self.factor**4 * self.base.j4(self.argument**2 * c)

    def squares(self, c: Float[Array, "n n"], v: Float[Array, " n"], students: int) -> Float[Array, "p p"]:
        return self.argument**2 * self.factor**4 * self.base.squares(self.argument**2 * c, v, students)
