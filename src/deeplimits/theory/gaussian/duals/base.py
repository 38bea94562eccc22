"""What a dual activation is."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.theory.gaussian.pairs import Pair, coincident

Floats = Float[Array, "..."]


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

    def gaps(self, where: Pair) -> tuple[Floats, Floats]:
        """1 − ρ and 1 + ρ of the activations' correlation ρ = K/√(E σ(u)² E σ(v)²), by subtraction.

        Duals of kinked activations override this: for them the digits of 1 − ρ matter.
        """
        scale = jnp.sqrt(self.variance(where.a) * self.variance(where.b))
        correlation = jnp.where(scale > 0, self.value(where) / jnp.where(scale > 0, scale, 1.0), 0.0)
        correlation = jnp.clip(correlation, -1.0, 1.0)
        return 1 - correlation, 1 + correlation
