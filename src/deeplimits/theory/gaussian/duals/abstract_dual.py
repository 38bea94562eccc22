"""What a dual activation is."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian.pairs import Pair, coincident


class Features(NamedTuple):
    """K = E σ(u)σ(v), and 1 − ρ and 1 + ρ of the features' correlation, each with its own accuracy."""

    value: Floats
    gap: Floats
    cogap: Floats


class Dual(eqx.Module):
    """The functions K = E σ(u)σ(v) and K̇ = E σ'(u)σ'(v) of a pair of Gaussian variables, for one activation."""

    @abc.abstractmethod
    def value(self, where: Pair) -> Floats:
        """E σ(u)σ(v)"""

    @abc.abstractmethod
    def slope(self, where: Pair) -> Floats:
        """E σ'(u)σ'(v)"""

    def variance(self, a: Floats) -> Floats:
        """E σ(u)² for u of variance a."""
        return self.value(coincident(a))

    def features(self, where: Pair, scale: Floats) -> Features:
        """K, and 1 − ρ and 1 + ρ of the features' correlation ρ = K/scale; `scale` is √(E σ(u)² E σ(v)²).

        Here by subtraction. Duals of kinked activations, for which the digits of 1 − ρ matter, override this.
        """
        value = self.value(where)
        correlation = jnp.where(scale == 0, 0.0, value / jnp.where(scale == 0, 1.0, scale))
        correlation = jnp.clip(correlation, -1.0, 1.0)
        return Features(value, 1 - correlation, 1 + correlation)


class Scaled(Dual):
    """The dual of γσ(βu), from that of σ."""

    base: Dual
    argument: float = eqx.field(static=True)
    factor: float = eqx.field(static=True)

    def value(self, where: Pair) -> Floats:
        return self.factor**2 * self.base.value(self._stretched(where))

    def slope(self, where: Pair) -> Floats:
        return (self.factor * self.argument) ** 2 * self.base.slope(self._stretched(where))

    def variance(self, a: Floats) -> Floats:
        return self.factor**2 * self.base.variance(self.argument**2 * a)

    def features(self, where: Pair, scale: Floats) -> Features:
        value, gap, cogap = self.base.features(self._stretched(where), scale / self.factor**2)
        return Features(self.factor**2 * value, gap, cogap)

    def _stretched(self, where: Pair) -> Pair:
        size = abs(self.argument)
        return Pair(size * where.root_a, size * where.root_b, where.gap, where.cogap)
