"""A solver that fails is heard through every verb and every transformation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

import deeplimits
from deeplimits.errors import NotConverged, OutsideValidity
from deeplimits.limit import Limit, Run, real
from deeplimits.numerics import flows
from deeplimits.numerics.checks import converged, valid
from deeplimits.predictions import Value


class BlowsUp(Limit):
    """The solution of dy/dt = y² from y(0) = 1, which ends at t = 1.

    Setting     y(0) = 1
    Result      y = 1/(1 − t)
    Validity    size counts nothing
    Finite size exact
    References  vershynin2018
    """

    time: Array = real(0.5, 0.1, 10.0, doc="when")
    usual = Run(sizes=(2, 4), samples=20)

    def theory(self):
        found = flows.solve(lambda t, y: y**2, jnp.ones(()), self.time[None], otherwise="the solution ends before")
        return {"end": Value(found.states[0], label="end")}

    def at_size(self, size):
        return {}, self

    def simulate(self, key):
        return {"end": 1 / (1 - self.time) + jax.random.normal(key)}


class FailsWhenMeasured(BlowsUp):
    """The same where the simulation is what fails."""

    def theory(self):
        return {"end": Value(1 / (1 - self.time), label="end")}

    def simulate(self, key):
        found = flows.solve(lambda t, y: y**2, jnp.ones(()), self.time[None], otherwise="the simulation ends before")
        return {"end": found.states[0] + jax.random.normal(key)}


def end(time):
    return BlowsUp(time=time).theory()["end"].value


def test_verbs():
    found = deeplimits.predict(BlowsUp())["end"]
    assert isinstance(found, Value)
    assert float(found.value) == pytest.approx(2.0, rel=1e-9)
    late = jnp.asarray(2.0)
    with pytest.raises(NotConverged, match=r"BlowsUp.*the solution ends before"):
        deeplimits.predict(BlowsUp(time=late))
    with pytest.raises(NotConverged, match=r"BlowsUp.*the solution ends before"):
        deeplimits.compare(BlowsUp(time=late))
    with pytest.raises(NotConverged, match=r"FailsWhenMeasured.*the simulation ends before"):
        deeplimits.compare(FailsWhenMeasured(time=late))


@pytest.mark.parametrize("transform", [eqx.filter_jit, jax.grad, lambda f: eqx.filter_jit(jax.grad(f))])
def test_transformations(transform):
    program = transform(end)
    assert np.isfinite(program(jnp.asarray(0.5)))
    with pytest.raises((NotConverged, eqx.EquinoxRuntimeError), match="the solution ends before"):
        jax.block_until_ready(program(jnp.asarray(2.0)))


def test_one_of_many():
    times = jnp.array([0.5, 0.25])
    for program in (eqx.filter_jit(jax.vmap(end)), eqx.filter_jit(jax.vmap(jax.grad(end)))):
        assert np.all(np.isfinite(program(times)))
        with pytest.raises(eqx.EquinoxRuntimeError, match="the solution ends before"):
            program(jnp.array([0.5, 2.0]))


def test_both_kinds_of_failure_have_one_sentence_known_or_not():
    for check, kind in ((converged, NotConverged), (valid, OutsideValidity)):

        def checked(x, check=check):
            return check(x, x > 0, "x must not fall below zero")

        with pytest.raises(kind, match="x must not fall"):
            checked(jnp.asarray(-1.0))
        with pytest.raises(eqx.EquinoxRuntimeError, match=rf"\[{kind.__name__}\] x must not fall"):
            eqx.filter_jit(checked)(jnp.asarray(-1.0))
        assert float(eqx.filter_jit(checked)(jnp.asarray(1.0))) == 1.0
