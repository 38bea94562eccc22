r"""Gaussian integrals of activations, from which the overlap equations are made: one face for all activations.

Fields λ ~ N(0, C); σ_a = σ(λ_a). With indices a, b, c, d that may coincide in any way:

    I₂(a,b) = E σ_a σ_b,  J₂(a,b) = E σ'_a σ'_b,  I₃(a,b,c) = E σ'_a λ_b σ_c,  I₄(a,b,c,d) = E σ'_a σ'_b σ_c σ_d

The integrals themselves are those of `theory.gaussian.fields`: closed forms for erf, ReLU, u² and u, and the trapezoid
rule for any other smooth activation. Single integrals are for a user, contracted ones for the equations.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike

from deeplimits.errors import ParameterError
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import arguments
from deeplimits.numerics.arguments import FINITE, argument, known
from deeplimits.numerics.shapes import Scalar
from deeplimits.numerics.symmetric import diagonal
from deeplimits.theory.gaussian.closed_forms import closed_forms
from deeplimits.theory.gaussian.fields import Fields, trapezoid
from deeplimits.theory.gaussian.fields.abstract_fields import PairIntegrals


class Moments(eqx.Module):
    """The integrals of one activation, or of a student's and a teacher's where these differ."""

    activation: Activation = eqx.field(static=True)
    teacher_activation: Activation = eqx.field(static=True)

    def __check_init__(self):
        smooth = self.activation.smooth and self.teacher_activation.smooth
        if not smooth and self._closed is None:
            raise ParameterError(
                f"activation = {self.activation.name} with teacher_activation = {self.teacher_activation.name} is not "
                "covered: integrals of a kinked activation are known in closed form only if both are relu"
            )

    @property
    def _closed(self) -> Fields | None:
        same = self.activation == self.teacher_activation
        return closed_forms(self.activation).fields if same else None

    def check_variance(self, c: Float[Array, "n n"]) -> None:
        """Refuse, where they are known, variances at which the trapezoid rule does not resolve the activations."""
        if self._closed is not None or not known(c):
            return
        largest = float(jnp.max(diagonal(c)))
        for sigma in {self.activation, self.teacher_activation}:
            trapezoid.check_variance(sigma, largest, min(c.shape[0], 4))

    def pairs(self, c: Float[Array, "n n"], students: int) -> PairIntegrals:
        """I₂, J₂ and K₂₀ = E σ''_i σ_c for every student i and every field c: all that the gradient needs."""
        if self._closed is None:
            return trapezoid.Quadrature(self.activation, self.teacher_activation).pairs(c, students)
        variances = diagonal(c)
        rows, columns, covariances = variances[:students, None], variances[None, :], c[:students]
        return PairIntegrals(
            self._closed.i2(rows, columns, covariances),
            self._closed.j2(rows, columns, covariances),
            self._closed.k20(rows, columns, covariances),
        )

    def between(self, w: Float[Array, "n d"], students: int) -> PairIntegrals:
        """`pairs` of the fields ⟨w_i, x⟩, x ~ N(0, I)."""
        if self._closed is None:
            return self.pairs(w @ w.T, students)
        return self._closed.between(w[:students], w)

    def second_moments(self, c: Float[Array, "n n"], students: int) -> Float[Array, "n n"]:
        """I₂ between all fields."""
        if self._closed is None:
            return trapezoid.Quadrature(self.activation, self.teacher_activation).second_moments(c, students)
        variances = diagonal(c)
        return self._closed.i2(variances[:, None], variances[None, :], c)

    def squares(self, c: Float[Array, "n n"], v: Float[Array, " n"], students: int) -> Float[Array, "p p"]:
        """Σ_cd v_c v_d I₄(i, j, c, d) = E[σ'_i σ'_j (Σ_c v_c σ_c)²] for all pairs of students, without the tensor."""
        if self._closed is None:
            return trapezoid.Quadrature(self.activation, self.teacher_activation).squares(c, v, students)
        return self._closed.squares(c, v, students)

    def i2(self, c: ArrayLike, a: int, b: int) -> Scalar:
        """E σ_a σ_b."""
        c = _checked(c, a, b)
        if self._closed is None:
            value = self.activation.value
            return _on_distinct(self.activation, c, (a, b), lambda x, y: value(x) * value(y))
        return self._closed.i2(c[a, a], c[b, b], c[a, b])

    def j2(self, c: ArrayLike, a: int, b: int) -> Scalar:
        """E σ'_a σ'_b."""
        c = _checked(c, a, b)
        if self._closed is None:
            slope = self.activation.derivative
            return _on_distinct(self.activation, c, (a, b), lambda x, y: slope(x) * slope(y))
        return self._closed.j2(c[a, a], c[b, b], c[a, b])

    def i3(self, c: ArrayLike, a: int, b: int, d: int) -> Scalar:
        """E σ'_a λ_b σ_d = C_ab E σ''_a σ_d + C_bd E σ'_a σ'_d, by Stein's lemma."""
        c = _checked(c, a, b, d)
        if self._closed is None:
            second, value = self.activation.second_derivative, self.activation.value
            curvature = _on_distinct(self.activation, c, (a, d), lambda x, y: second(x) * value(y))
        else:
            curvature = self._closed.k20(c[a, a], c[d, d], c[a, d])
        return c[a, b] * curvature + c[b, d] * self.j2(c, a, d)

    def i4(self, c: ArrayLike, a: int, b: int, d: int, e: int) -> Scalar:
        """E σ'_a σ'_b σ_d σ_e."""
        c = _checked(c, a, b, d, e)
        if self._closed is None:
            value, slope = self.activation.value, self.activation.derivative
            return _on_distinct(
                self.activation, c, (a, b, d, e), lambda w, x, y, z: slope(w) * slope(x) * value(y) * value(z)
            )
        index = jnp.array([a, b, d, e])
        return jax.jit(self._closed.i4)(c[index][:, index])

    def j4(self, c: ArrayLike, a: int, b: int, d: int, e: int) -> Scalar:
        """E σ'_a σ'_b σ'_d σ'_e."""
        c = _checked(c, a, b, d, e)
        if self._closed is None:
            slope = self.activation.derivative
            return _on_distinct(
                self.activation, c, (a, b, d, e), lambda w, x, y, z: slope(w) * slope(x) * slope(y) * slope(z)
            )
        index = jnp.array([a, b, d, e])
        return jax.jit(self._closed.j4)(c[index][:, index])

    def fourth(self, c: Float[Array, "n n"], indices: Int[np.ndarray, "many 4"]) -> Float[Array, " many"]:
        """E σ'_a σ'_b σ'_d σ'_e for many quadruples of fields."""
        closed = self._closed
        if closed is None:
            return jnp.stack([self.j4(c, *map(int, quadruple)) for quadruple in indices])
        return jax.vmap(lambda index: closed.j4(c[index][:, index]))(jnp.asarray(indices))


def activation_integrals(activation: ActivationLike) -> Moments:
    r"""Gaussian integrals I₂, J₂, I₃, I₄ of an activation, for indices that coincide in any pattern.

    Setting     λ ~ N(0, C), C positive semidefinite, possibly singular; σ_a = σ(λ_a)
    Result      I₂(a,b) = E σ_a σ_b, J₂(a,b) = E σ'_a σ'_b, I₃(a,b,c) = E σ'_a λ_b σ_c,
                I₄(a,b,c,d) = E σ'_a σ'_b σ_c σ_d
                "erf_saad", erf(x/√2): I₂ = (2/π) arcsin(C_ab/√((1+C_aa)(1+C_bb))), I₄ an arcsine of a Schur complement
                ReLU: arc-cosine kernels, orthant probabilities, and one integral over the unit interval in I₄
                "square", "identity": Wick's theorem; any other smooth σ: trapezoid rule, a dimension per distinct index
    Validity    C symmetric positive semidefinite; ReLU with σ'(0) = 0; other kinked activations are not covered
                the trapezoid rule over one or two fields is right to rounding, over three (four) to 1e-14 (1e-9) at
                variance 1 and 1e-6 (1e-6) at 4 (2) for tanh; an activation whose E σ² it misses by 1e-4 is refused
    References  saad1995; goldt2019; cho2009

    >>> c = [[1, 0.3, 0.2, 0.1], [0.3, 0.8, -0.1, 0.4], [0.2, -0.1, 1.2, 0.5], [0.1, 0.4, 0.5, 0.9]]
    >>> round(float(activation_integrals("erf_saad").i4(c, 0, 1, 2, 3)), 12)
    0.057250779726
    >>> round(float(activation_integrals("relu").i4(c, 0, 1, 2, 3)), 12)
    0.140010361283
    """
    sigma = named(activation)
    return Moments(sigma, sigma)


def _on_distinct(sigma: Activation, c: Float[Array, "n n"], indices: tuple[int, ...], function) -> Scalar:
    """Integrate over the distinct fields only: equal indices share a variable."""
    distinct = list(dict.fromkeys(indices))
    places = [distinct.index(index) for index in indices]
    if known(c):
        trapezoid.check_variance(sigma, max(float(c[index, index]) for index in distinct), len(distinct))
    return trapezoid.expectation(lambda *fields: function(*(fields[place] for place in places)), c, distinct)


def _checked(c: ArrayLike, *indices: int) -> Float[Array, "n n"]:
    """The covariance as an array, refused if it is not one or if an index is outside it."""
    c = jnp.asarray(c, float)
    check_covariance(c, "c")
    for index in indices:
        arguments.whole("index", index, why="a field of the covariance")
        if not 0 <= index < c.shape[0]:
            raise ParameterError(f"index = {index} is not allowed; the covariance has fields 0 to {c.shape[0] - 1}")
    return c


def check_covariance(c: Array, name: str) -> None:
    """Raise unless c is square, finite, symmetric and positive semidefinite up to rounding; traced arrays pass."""
    if c.ndim != 2 or c.shape[0] != c.shape[1] or c.size == 0:
        raise ParameterError(f"{name} has shape {c.shape}; a covariance must be a square matrix")
    argument(name, c, FINITE, "a covariance")
    if not known(c):
        return
    values = np.asarray(c)
    scale = max(float(np.abs(values).max()), 1e-300)
    if np.abs(values - values.T).max() > 1e-10 * scale:
        raise ParameterError(f"{name} is not symmetric; replace it by its symmetric part if that is what is meant")
    smallest = float(np.linalg.eigvalsh(values)[0])
    if smallest < -1e-10 * scale:
        raise ParameterError(
            f"{name} is not positive semidefinite: its smallest eigenvalue is {smallest:.3g}; no fields have this "
            "covariance, so check the overlaps (Q − M P⁻¹ Mᵀ must be positive semidefinite)"
        )
