"""Limits broken in one place each, as by a slip of the hand, and the two whole ones that they come from."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.limit import Limit, Run, real, whole
from deeplimits.parameters import Real
from deeplimits.predictions import Value


class Simulated(Limit):
    """Mean and second moment of a Gaussian variable.

    Setting     x_i ~ N(shift, 1), i = 1, ..., n
    Result      E x = shift, E x² = 1 + shift²
    Validity    size counts the variables n
    Finite size exact
    References  vershynin2018
    """

    shift: Array = real(1.5, 0.5, 3.0, doc="the mean")
    usual = Run(sizes=(20, 40), samples=100)

    def theory(self):
        return {"mean": Value(self.shift, label="mean"), "square": Value(1 + self.shift**2, label="second moment")}

    def at_size(self, size):
        return {"count": whole(size, "n", self)}, self

    def simulate(self, key, *, count):
        x = self.shift + jax.random.normal(key, (count,))
        return {"mean": jnp.mean(x), "square": jnp.mean(x**2)}


class Drawn(Limit):
    """Correlation of noisy labels with their inputs, for the inputs that were drawn.

    Setting     y = shift·x + e, e ~ N(0, I_n), x in R^n as drawn
    Result      E⟨x, y⟩ = shift |x|², E|y|² = n + shift²|x|²
    Validity    size counts the labels n
    Finite size exact
    References  vershynin2018
    """

    shift: Array = real(1.5, 0.5, 3.0, doc="the slope")
    usual = Run(sizes=(20, 40), samples=100)

    def at_size(self, size):
        return {"count": whole(size, "n", self)}, self

    def draw(self, key, *, count):
        return jax.random.normal(key, (2, count))

    def stated(self, system):
        square = jnp.sum(system[0] ** 2)
        return {
            "product": Value(self.shift * square, label="product"),
            "square": Value(system.shape[1] + self.shift**2 * square, label="squared length"),
        }

    def measured(self, system):
        x, noise = system
        y = self.shift * x + noise
        return {"product": x @ y, "square": y @ y}


class SimulatedSign(Simulated):
    def theory(self):
        return {**super().theory(), "square": Value(1 - self.shift**2, label="second moment")}


class DrawnSign(Drawn):
    def stated(self, system):
        square = jnp.sum(system[0] ** 2)
        return {**super().stated(system), "square": Value(system.shape[1] - self.shift**2 * square, label="length")}


class SimulatedTwice(Simulated):
    def simulate(self, key, *, count):
        x = self.shift + jax.random.normal(key, (count,))
        return {"mean": jnp.mean(x), "square": 2 * jnp.mean(x**2)}


class DrawnTwice(Drawn):
    def measured(self, system):
        return {**super().measured(system), "product": 2 * system[0] @ (self.shift * system[0] + system[1])}


class SimulatedLess(Simulated):
    def simulate(self, key, *, count):
        return {"mean": jnp.mean(self.shift + jax.random.normal(key, (count,)))}


class DrawnLess(Drawn):
    def measured(self, system):
        return {"product": system[0] @ (self.shift * system[0] + system[1])}


class SimulatedMore(Simulated):
    def theory(self):
        return {"mean": Value(self.shift, label="mean")}


class DrawnMore(Drawn):
    def stated(self, system):
        return {"product": Value(self.shift * jnp.sum(system[0] ** 2), label="product")}


def frozen(default: float, low: float, high: float, doc: str):
    """A continuous parameter that is compiled into the program."""
    parameter = Real(default=default, low=low, high=high, doc=doc)
    return eqx.field(default=default, static=True, metadata={"parameter": parameter})


class SimulatedFrozen(Simulated):
    shift: float = frozen(1.5, 0.5, 3.0, doc="the mean")


class DrawnFrozen(Drawn):
    shift: float = frozen(1.5, 0.5, 3.0, doc="the slope")


class SimulatedForced(Simulated):
    def theory(self):
        shift = float(self.shift)
        return {"mean": Value(jnp.asarray(shift), label="mean"), "square": Value(1 + self.shift**2, label="square")}


class DrawnForced(Drawn):
    def measured(self, system):
        x, noise = system
        y = float(self.shift) * x + noise
        return {"product": x @ y, "square": y @ y}
