r"""The integrals for any smooth activation, by the trapezoid rule in independent normal variables.

The rule converges like exp(−2π/h × distance of the nearest pole): spectrally, where Gauss-Hermite is slow for tanh. The
number of dimensions is the number of distinct fields, four at most. The teacher may have an activation of its own.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits.errors import NotConverged
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.shapes import Scalar
from deeplimits.numerics.symmetric import diagonal
from deeplimits.theory.gaussian.fields.abstract_fields import PairIntegrals

# Nodes on [−reach, reach] by number of dimensions: rounding decides in one to three, the cost in four.
_REACH = {1: 9.0, 2: 9.0, 3: 7.8, 4: 7.5}
_STEP = {1: 0.05, 2: 0.1, 3: 0.26, 4: 0.35}
WIDE, FINER = 9.0, 4
"""In one and two dimensions fields of a variance above the first are integrated with a step that is so much shorter."""
RESOLVED = 1e-4
"""Relative error of E σ² and E σ'², whose poles are sharper than the integrals', above which a field is too wide."""


class Quadrature(eqx.Module):
    """Integrals for a smooth student activation and a smooth teacher activation."""

    student: Activation = eqx.field(static=True)
    teacher: Activation = eqx.field(static=True)

    def _value(self, index: int, students: int):
        return (self.student if index < students else self.teacher).value

    def pairs(self, c: Float[Array, "n n"], students: int) -> PairIntegrals:
        """I₂, J₂ and K₂₀ = E σ''_i σ_c between the students and all fields."""
        return by_width(c, lambda finer: self._pairs(c, students, finer))

    def _pairs(self, c: Float[Array, "n n"], students: int, finer: int) -> PairIntegrals:
        first, second = nodes(2, finer=finer)
        weight = jnp.exp(-(first**2 + second**2) / 2)
        weight = weight / jnp.sum(weight)

        def column(index, activation):
            def row(i):
                cii, ccc, cic = c[i, i], c[index, index], c[i, index]
                x = jnp.sqrt(jnp.maximum(cii, 0.0)) * first
                slope = cic / jnp.where(cii > 0, jnp.sqrt(jnp.where(cii > 0, cii, 1.0)), 1.0)
                left = ccc - slope**2
                y = (
                    slope * first
                    + jnp.where(left > 1e-15 * ccc, jnp.sqrt(jnp.where(left > 1e-15 * ccc, left, 1.0)), 0.0) * second
                )
                value, derivative = activation.value(y), activation.derivative(y)
                return (
                    jnp.sum(weight * self.student.value(x) * value),
                    jnp.sum(weight * self.student.derivative(x) * derivative),
                    jnp.sum(weight * self.student.second_derivative(x) * value),
                )

            return jax.lax.map(row, jnp.arange(students))

        count = c.shape[0]
        parts = [jax.lax.map(lambda index: column(index, self.student), jnp.arange(students))]
        if count > students:
            parts.append(jax.lax.map(lambda index: column(index, self.teacher), jnp.arange(students, count)))
        i2, j2, k20 = (jnp.concatenate(found).T for found in zip(*parts, strict=True))
        return PairIntegrals(i2, j2, k20)

    def second_moments(self, c: Float[Array, "n n"], students: int) -> Float[Array, "n n"]:
        """I₂ between all fields."""
        return by_width(c, lambda finer: self._second_moments(c, students, finer))

    def _second_moments(self, c: Float[Array, "n n"], students: int, finer: int) -> Float[Array, "n n"]:
        count = c.shape[0]
        first, second = nodes(2, finer=finer)
        weight = jnp.exp(-(first**2 + second**2) / 2)
        weight = weight / jnp.sum(weight)

        def entry(i, j):
            factor = semidefinite_factor(c[jnp.ix_(jnp.array([i, j]), jnp.array([i, j]))])
            x, y = factor[0, 0] * first, factor[1, 0] * first + factor[1, 1] * second
            return jnp.sum(weight * self._value(i, students)(x) * self._value(j, students)(y))

        found = {(i, j): entry(i, j) for i in range(count) for j in range(i, count)}
        return jnp.stack([jnp.stack([found[min(i, j), max(i, j)] for j in range(count)]) for i in range(count)])

    def squares(self, c: Float[Array, "n n"], v: Float[Array, " n"], students: int) -> Float[Array, "p p"]:
        """E[σ'_i σ'_j (Σ_c v_c σ_c)²]: the square is split so that no integral has more than four dimensions."""
        count = c.shape[0]

        def one(i: int, j: int) -> Array:
            distinct = [i] if i == j else [i, j]
            others = [index for index in range(count) if index not in distinct]
            power = 2 if i == j else 1

            def slopes(fields):
                product = self.student.derivative(fields[0]) ** power
                return product if i == j else product * self.student.derivative(fields[1])

            def own(fields):
                return sum(
                    v[index] * self._value(index, students)(fields[place]) for place, index in enumerate(distinct)
                )

            total = expectation(lambda *f: slopes(f) * own(f) ** 2, c, distinct)
            place = len(distinct)
            for position, index in enumerate(others):
                value = self._value(index, students)

                def with_one(*f, index=index, value=value):
                    other = v[index] * value(f[place])
                    return slopes(f) * other * (2 * own(f) + other)

                total = total + expectation(with_one, c, [*distinct, index])
                for second in others[position + 1 :]:
                    last = self._value(second, students)

                    def with_two(*f, value=value, last=last):
                        return slopes(f) * value(f[place]) * last(f[place + 1])

                    total = total + 2 * v[index] * v[second] * expectation(with_two, c, [*distinct, index, second])
            return total

        found = {(i, j): one(i, j) for i in range(students) for j in range(i, students)}
        return jnp.stack([jnp.stack([found[min(i, j), max(i, j)] for j in range(students)]) for i in range(students)])


@functools.lru_cache(maxsize=1000)
def check_variance(activation: ActivationLike, variance: float, dimensions: int) -> None:
    """Raise unless the rule's step resolves σ of a field of this variance: E σ² and E σ'² against panels.

    >>> check_variance("tanh", 1.0, 4)
    """
    from deeplimits.theory.gaussian.moments import second_moment, slope_moment  # they know the closed forms of here

    sigma = named(activation)
    line = jnp.asarray(_line(dimensions, FINER if dimensions <= 2 and variance > WIDE else 1))
    weight = jnp.exp(-(line**2) / 2)
    fields = math.sqrt(max(variance, 0.0)) * line
    for function, exact in ((sigma.value, second_moment), (sigma.derivative, slope_moment)):
        found = float(jnp.sum(weight * function(fields) ** 2) / jnp.sum(weight))
        right = float(exact(sigma, variance))
        if not abs(found - right) <= RESOLVED * right:
            raise NotConverged(
                f"a field of variance {variance:g} is too wide for the grid of the integrals of {sigma.name} over "
                f"{dimensions} fields: E σ² or E σ'² is off by {abs(found / right - 1):.1g}; take smaller overlaps, "
                "or an activation with closed forms"
            )


def by_width(c: Float[Array, "n n"], rule: Callable[[int], Any]) -> Any:
    """`rule` at the usual step, or at a finer one where a field is wide: σ varies on the scale one, not on its own."""
    return jax.lax.cond(jnp.max(diagonal(c)) > WIDE, lambda: rule(FINER), lambda: rule(1))


def _line(dimensions: int, finer: int = 1) -> np.ndarray:
    reach, step = _REACH[dimensions], _STEP[dimensions] / finer
    return np.arange(-math.floor(reach / step), math.floor(reach / step) + 1) * step


def nodes(dimensions: int, *, finer: int = 1) -> list[Array]:
    """The grid, one broadcastable array for each dimension."""
    line = _line(dimensions, finer)
    return [
        jnp.asarray(line.reshape([-1 if axis == own else 1 for axis in range(dimensions)])) for own in range(dimensions)
    ]


def expectation(function, c: Float[Array, "n n"], indices: list[int]) -> Scalar:
    """E f(λ_{i₁}, λ_{i₂}, ...) over Gaussian fields of covariance c; the first axis is looped over, to save memory."""
    index = jnp.asarray(indices)
    chosen = c[index][:, index]
    if len(indices) > 2:
        return _expectation(function, chosen, 1)
    return by_width(chosen, lambda finer: _expectation(function, chosen, finer))


def _expectation(function, c: Float[Array, "n n"], finer: int) -> Scalar:
    dimensions = c.shape[0]
    factor = semidefinite_factor(c)
    axes = nodes(dimensions, finer=finer)
    log_weight = -sum(axis**2 for axis in axes[1:]) / 2 if dimensions > 1 else jnp.zeros(1)
    weight = jnp.exp(log_weight)
    # The rule is normalized by its own sum, which is √(2π)/h per dimension to machine precision.
    norm = jnp.sum(jnp.exp(-(axes[0] ** 2) / 2)) * jnp.sum(weight)

    def slab(first):
        fields = [factor[row, 0] * first for row in range(dimensions)]
        for row in range(dimensions):
            for axis in range(1, row + 1):
                fields[row] = fields[row] + factor[row, axis] * axes[axis].reshape(axes[axis].shape[1:])
        values = function(*fields)
        shaped = weight.reshape(weight.shape[1:]) if dimensions > 1 else weight[0]
        return jnp.exp(-(first**2) / 2) * jnp.sum(values * shaped)

    if dimensions <= 2:
        return jnp.sum(jax.vmap(slab)(jnp.ravel(axes[0]))) / norm
    return jnp.sum(jax.lax.map(slab, jnp.ravel(axes[0]))) / norm


def semidefinite_factor(c: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """Lower triangular L with LLᵀ = c for a covariance that may be singular: a vanishing pivot gives a zero column."""
    count = c.shape[0]
    rest, columns = c, []
    scale = jnp.maximum(jnp.max(diagonal(c)), 1e-300)
    for index in range(count):
        pivot = rest[index, index]
        alive = pivot > 1e-15 * scale
        root = jnp.sqrt(jnp.where(alive, pivot, 1.0))
        column = jnp.where(alive & (jnp.arange(count) >= index), rest[:, index] / root, 0.0)
        columns.append(column)
        rest = rest - column[:, None] * column[None, :]
    return jnp.stack(columns, axis=1)
