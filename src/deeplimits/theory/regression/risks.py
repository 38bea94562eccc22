"""Excess risk, split into what a method misses and what the noise does to it: one answer for the whole room."""

from typing import NamedTuple

from deeplimits.numerics.shapes import Floats


class Risk(NamedTuple):
    """Excess risk, split; the parts with a default are there where a method has them.

    >>> import jax.numpy as jnp
    >>> float(Risk(jnp.array(2.5), jnp.array(1.0)).total)
    3.5
    """

    bias: Floats
    """Squared bias."""
    variance: Floats
    training_error: Floats | None = None
    """Mean squared residual on the training data."""
    effective_ridge: Floats | None = None
    """κ: the estimate shrinks the population's direction of eigenvalue s by s/(s + κ)."""

    @property
    def total(self) -> Floats:
        return self.bias + self.variance
