"""What a statistical instrument answers: a value, how far chance may have moved it, and how it was found."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float


@runtime_checkable
class Measured(Protocol):
    """What every instrument that looks at a user's network says of its answer, under one set of names.

    An `Estimate` has them, and so has every named result of `measure.curvature`, `measure.classes` and
    `measure.training`; None where an instrument has no such thing, as a standard error where nothing was drawn.

    >>> isinstance(Estimate(1.0, 0.1), Measured)
    True
    """

    @property
    def value(self) -> Any:
        """What was measured."""
        ...

    @property
    def standard_error(self) -> Any:
        """How far chance may have moved it."""
        ...

    @property
    def residual(self) -> Any:
        """How well its equation is solved."""
        ...

    @property
    def products(self) -> Any:
        """How many products with a matrix, or passes through the network, it took."""
        ...

    @property
    def seed(self) -> int | None:
        """What its draws started from."""
        ...

    @property
    def seconds(self) -> Any:
        """How long it took."""
        ...


class Estimate(NamedTuple):
    """A measured value and its standard error, arrays (or numbers) of one shape, and what stands behind them.

    Every instrument that draws, or averages over what was drawn, answers with it, by itself or as a part of a named
    result. An instrument that is exact on what it is given answers with its numbers: it has no error to report, and
    where it solves something, what is left over is a part of its result.

    >>> found = sample_mean(jnp.array([1.0, 2.0, 3.0]))
    >>> float(found.value), round(float(found.error), 6), found.draws
    (2.0, 0.57735, 3)
    """

    value: Any
    error: Any
    """Standard error."""
    draws: int | None = None
    """How many independent draws, or blocks of correlated ones, the value is a mean of."""
    iterations: int | None = None
    """How many steps a solver took, where there was one."""
    residual: float | None = None
    """How well its equation is solved."""
    products: int | None = None
    """How many products with a matrix it took."""
    seed: int | None = None
    """What its draws started from."""
    seconds: float | None = None
    """How long it took."""

    @property
    def standard_error(self) -> Any:
        """The error, under the name by which all instruments have it."""
        return self.error

    @property
    def z(self) -> Any:
        """The value in units of its standard error; 0 where nothing varied."""
        certain = jnp.asarray(self.error) == 0
        return jnp.where(certain, 0.0, jnp.asarray(self.value) / jnp.where(certain, 1.0, self.error))


def sample_mean(draws: Float[Array, "draws *shape"]) -> Estimate:
    """The mean over the first axis, of independent draws."""
    count = draws.shape[0]
    return Estimate(draws.mean(axis=0), draws.std(axis=0, ddof=1) / jnp.sqrt(1.0 * count), count)
