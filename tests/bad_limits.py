"""Limits that misbehave, each in one way, to see that they cost nothing but themselves."""

import os
import signal
import time

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.limit import Limit, Run, real
from deeplimits.predictions import Value


class Good(Limit):
    """The mean of a Gaussian variable.

    Setting     x ~ N(shift, 1)
    Result      E x = shift
    Validity    size counts nothing
    Finite size exact
    References  vershynin2018
    """

    shift: Array = real(1.0, -10.0, 10.0, doc="the mean")
    usual = Run(sizes=(2, 4), samples=100)

    def theory(self):
        return {"mean": Value(self.shift, label="mean")}

    def at_size(self, size):
        return {}, self

    def simulate(self, key):
        return {"mean": self.shift + jax.random.normal(key)}


class Raises(Good):
    """One that raises."""

    def theory(self):
        raise ZeroDivisionError("a slip in the theory")


class Hangs(Good):
    """One that never comes back."""

    def at_size(self, size):
        time.sleep(1000)
        return {}, self


class Aborts(Good):
    """One whose compiled code aborts."""

    def at_size(self, size):
        os.abort()


class IsKilled(Good):
    """One that the system kills, as it does when memory runs out."""

    def at_size(self, size):
        os.kill(os.getpid(), signal.SIGKILL)
        return {}, self


class IsNotANumber(Good):
    """One whose theory is not a number."""

    def theory(self):
        return {"mean": Value(jnp.nan * self.shift, label="mean")}


class IsWrong(Good):
    """One whose theory is wrong."""

    def theory(self):
        return {"mean": Value(self.shift + 1, label="mean")}
