r"""Where labels are random, no learner does better than another off the sample."""

import jax
import jax.numpy as jnp

from deeplimits.limit import Limit, Run, choice, integer, sized
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.expressivity import widths_and_entropy


class NoFreeLunch(Limit):
    r"""The error of every learner that memorizes its sample is half of what it has not seen.

    Setting     N cells on a circle with labels ±1, all labellings alike; m of them seen and memorized; elsewhere the
                learner says what the nearest seen cell, the majority, or always +1 says
    Limit       none: exact
    Result      E error = (N − m)/(2N) over all cells, whatever the learner
    Validity    0 ≤ m ≤ N − 1; size counts the cells N
    Finite size exact
    Computed by expressivity.no_free_lunch_error
    References  wolpert1996
    """

    learner: str = choice("nearest", ("nearest", "majority", "constant"), doc="what the learner does off its sample")
    seen: int = integer(4, 1, 1000, symbol="m", doc="number of cells that are seen")
    cells: int = integer(10, 2, 100_000, log=True, symbol="N", doc="number of cells")

    usual = Run(sizes=(10, 40), samples=8000, batch=200)
    showcase = Showcase(
        parameters={"cells": 40},
        size=40,
        over="seen",
        ranges={"seen": (1, 39)},
        see="On random labels a learner is right where it has looked and like a coin elsewhere: half a cell "
        "is won by each that is seen, whatever the learner.",
    )

    def theory(self):
        error = widths_and_entropy.no_free_lunch_error(self.cells, self.seen)
        return {"error": Value(error, label="error over all cells", symbol=r"E\,\mathrm{err}")}

    def validity(self):
        if self.seen < self.cells:
            return ()
        return (f"seen = {self.seen} is not below cells = {self.cells}: all are seen, and the error is zero",)

    def validity_at(self, size):
        if size > self.seen:
            return ()
        return (f"of {size} cells seen = {self.seen} leaves none over; take sizes of at least {self.seen + 1}",)

    def at_size(self, size):
        return sized(self, cells=size, least=2)

    def simulate(self, key, *, cells: int):
        both = jax.random.uniform(key, (2, cells))
        labels = jnp.where(both[0] < 0.5, 1.0, -1.0)
        sample = jnp.argsort(both[1])[: self.seen]
        if self.learner == "nearest":
            gaps = jnp.abs(jnp.arange(cells)[:, None] - sample[None, :])
            said = labels[sample[jnp.argmin(jnp.minimum(gaps, cells - gaps), axis=1)]]
        elif self.learner == "majority":
            said = jnp.where(jnp.sum(labels[sample]) >= 0, jnp.ones(cells), -1.0)
        else:
            said = jnp.ones(cells)
        said = said.at[sample].set(labels[sample])
        return {"error": jnp.mean(jnp.where(said == labels, 0.0, 1.0))}
