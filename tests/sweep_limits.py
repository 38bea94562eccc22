"""Limits that cost nothing, and some that fail as programs do; and a driver of a sweep that tests can kill.

python sweep_limits.py STORE TASKS WORKERS
"""

import ctypes
import os
import signal
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.limit import Limit, Run, choice, integer, real, whole
from deeplimits.predictions import Curve, Probability, Value


class Cheap(Limit):
    """The mean of some normal numbers.

    Setting     n numbers N(level, noise²)
    Limit       none
    Result      their mean is the level in the mean
    Validity    level not above 1000; size counts the numbers n
    Finite size exact
    References  vershynin2018
    """

    level: Array = real(1.0, -1e6, 1e6, symbol="l", doc="level")
    noise: Array = real(0.1, 0.0, 10.0, symbol=r"\sigma", doc="noise")
    copies: int = integer(1, 1, 50, symbol="c", doc="how many times the same")
    word: str = choice("plain", ("plain", "fancy"), doc="a word")

    usual = Run(sizes=(4, 8), samples=16, batch=16)

    def validity(self):
        return ("level is above 1000; take a smaller one",) if float(self.level) > 1000 else ()

    def theory(self):
        places = jnp.array([1.0, 2.0, 3.0, 4.0, 5.0])
        return {
            "mean": Value(self.level, label="mean", symbol="m"),
            "positive": Probability(jax.scipy.stats.norm.cdf(0.0) + 0 * self.level, label="above the level"),
            "line": Curve(places, self.level * places, label="multiples", axis="multiple"),
        }

    def at_size(self, size):
        return {"count": whole(size, "n", self)}, self

    def simulate(self, key, *, count: int):
        noise = jax.random.normal(key, (count, self.copies))
        found = self.level + self.noise * jnp.mean(noise)
        above = (jnp.mean(noise) > 0).astype(float)
        return {"mean": found, "positive": above, "line": found * jnp.array([1.0, 2.0, 3.0, 4.0, 5.0])}


HARM = -5.0
"""At this level some of what follows goes wrong."""


def _harm(kind: str, level: float) -> None:
    if level != HARM:
        return
    if kind == "raises":
        raise RuntimeError("the sky is falling")
    if kind == "hangs":
        time.sleep(1000)
    if kind == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "crashes":
        ctypes.string_at(0)
    if kind == "grows":
        kept = []
        while True:
            kept.append(np.ones(4_000_000))
            time.sleep(0.002)


class Harmful(Cheap):
    """A limit whose simulation goes wrong at one level.

    Setting     as in Cheap
    Limit       none
    Result      their mean is the level
    Validity    always; size counts the numbers n
    Finite size exact
    References  vershynin2018
    """

    kind: str = choice("raises", ("raises", "hangs", "dies", "crashes", "grows", "slow"), doc="what goes wrong")

    def simulate(self, key, *, count: int):
        found = Cheap.simulate(self, key, count=count)

        def on_the_host(mean, level):
            _harm(self.kind, float(level))
            return np.asarray(mean)

        shape = jax.ShapeDtypeStruct((), found["mean"].dtype)
        mean = jax.pure_callback(on_the_host, shape, found["mean"], self.level, vmap_method="sequential")
        return {**found, "mean": mean}


class Drawn(Limit):
    """A statement about the draw.

    Setting     n normal numbers
    Limit       none
    Result      their mean is their sum divided by n
    Validity    always; size counts the numbers n
    Finite size exact
    References  vershynin2018
    """

    scale: Array = real(1.0, 0.1, 10.0, symbol="s", doc="scale")

    usual = Run(sizes=(4, 8), samples=16, batch=16)

    def at_size(self, size):
        return {"count": whole(size, "n", self)}, self

    def draw(self, key, *, count: int):
        return 3.0 + self.scale * jax.random.normal(key, (count,)) / 10

    def stated(self, system):
        return {"mean": Value(jnp.sum(system) / system.shape[0], label="mean")}

    def measured(self, system):
        return {"mean": jnp.mean(system)}


class Slow(Cheap):
    """As Cheap, with a tenth of a second a system.

    Setting     as in Cheap, each system late
    Limit       none
    Result      their mean is the level
    Validity    always; size counts the numbers n
    Finite size exact
    References  vershynin2018
    """

    usual = Run(sizes=(4,), samples=8)

    def simulate(self, key, *, count: int):
        found = Cheap.simulate(self, key, count=count)

        def on_the_host(mean):
            time.sleep(0.1)
            return np.asarray(mean)

        shape = jax.ShapeDtypeStruct((), found["mean"].dtype)
        return {**found, "mean": jax.pure_callback(on_the_host, shape, found["mean"], vmap_method="sequential")}


class Coin(Limit):
    """As Cheap, with one result.

    Setting     n numbers N(level, 1)
    Limit       none
    Result      their mean is the level in the mean
    Validity    always; size counts the numbers n
    Finite size exact
    References  vershynin2018
    """

    level: Array = real(1.0, -1e6, 1e6, symbol="l", doc="level")

    usual = Run(sizes=(4,), samples=16, batch=16)

    def theory(self):
        return {"mean": Value(self.level, label="mean", symbol="m")}

    def at_size(self, size):
        return {"count": whole(size, "n", self)}, self

    def simulate(self, key, *, count: int):
        return {"mean": self.level + jnp.mean(jax.random.normal(key, (count,)))}


BLOCKS = 50


def count_of_tasks(path, count, **options):
    """A sweep of so many tasks."""
    import deeplimits as dl
    import sweep_limits

    levels = np.linspace(0.0, 1.0, count // BLOCKS)
    run = {"sizes": (4,), "samples": 16 * BLOCKS, "per_task": 16, "progress": False}
    return dl.sweep(sweep_limits.Coin, level=levels, store=path, **run, **options)


if __name__ == "__main__":
    count_of_tasks(sys.argv[1], int(sys.argv[2]), workers=int(sys.argv[3]))
