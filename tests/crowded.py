"""A limit whose parameters are called like the words of the framework."""

import jax
from jaxtyping import Array

from deeplimits.limit import Limit, Run, choice, integer, real, replace, whole
from deeplimits.predictions import Value


class Crowded(Limit):
    """The mean of Gaussian variables, in the words of the framework.

    Setting     x_i ~ N(values, 1), i = 1, ..., samples
    Result      E (x_1 + ... + x_n)/n = values
    Validity    size counts the samples
    Finite size exact
    References  vershynin2018
    """

    samples: int = integer(30, 1, 1000, doc="numbers in a mean")
    sizes: Array = real(0.5, 0.0, 2.0, doc="a number that changes nothing")
    seed: Array = real(0.25, 0.0, 1.0, doc="another")
    batch: int = integer(2, 1, 9, doc="another")
    parameters: Array = real(1.0, -5.0, 5.0, doc="a half of the mean")
    values: Array = real(2.0, -5.0, 5.0, doc="the other half")
    size: Array = real(3.0, 0.0, 5.0, doc="another")
    plot: str = choice("yes", ("yes", "no"), doc="another")
    json: int = integer(1, 0, 3, doc="another")
    html: int = integer(1, 0, 3, doc="another")
    name: Array = real(0.0, -1.0, 1.0, doc="another")
    limit: Array = real(0.0, -1.0, 1.0, doc="another")
    run: Array = real(0.0, -1.0, 1.0, doc="another")
    command: Array = real(0.0, -1.0, 1.0, doc="another")
    replace: int = integer(1, 0, 3, doc="another")
    rounded: int = integer(1, 0, 3, doc="another")
    help: int = integer(1, 0, 3, doc="another")
    debug: int = integer(1, 0, 3, doc="another")
    verdict: Array = real(0.0, -1.0, 1.0, doc="another")

    usual = Run(sizes=(10, 20), samples=200)

    def theory(self):
        return {"mean": Value(self.parameters + self.values, label="mean")}

    def at_size(self, size):
        n = whole(size, "samples", self)
        return {"samples": n}, replace(self, samples=n)

    def simulate(self, key, *, samples):
        return {"mean": self.parameters + self.values + jax.random.normal(key, (samples,)).mean()}
