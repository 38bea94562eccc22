"""A solver that fails is heard through every verb and every transformation, each time with its sentence."""

import ast
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

import deeplimits
from deeplimits.errors import NotConverged, OutsideValidity
from deeplimits.limit import Limit, Run, choice, real
from deeplimits.numerics import flows, roots
from deeplimits.numerics.checks import aloud, converged, valid
from deeplimits.predictions import Identity, Value

# What each solver says where there is nothing to be found.
SENTENCES = {
    "flow": "the solution ends before",
    "stiff": "the stiff solution ends before",
    "dense": "the dense solution ends before",
    "until": "nothing was reached",
    "root": "there is no such zero",
    "iteration": "the iteration did not settle",
}


def square_root_of_rest(x, time):
    return x**2 - (1 - time)


def found(solver: str, time):
    """A number with a derivative for time < 1, by each solver of `numerics`; beyond, every one of them fails."""
    sentence, one = SENTENCES[solver], jnp.ones(())
    if solver == "until":
        # y = 1 − s falls to `time` only above zero, where it waits.
        return flows.solve_until(
            lambda s, y: -jnp.ones(()), one, lambda s, y: y <= 1 - time, latest=1.0, otherwise=sentence, exactly=True
        ).t
    if solver == "root":
        return roots.bracketed(square_root_of_rest, 0.0, 2.0, time, sentence=sentence)
    if solver == "iteration":
        x = jax.lax.fori_loop(0, 200, lambda _, x: time * x + 1, one)
        return converged(x, jnp.abs(x * (1 - time) - 1) < 1e-9, sentence)
    # dy/dt = y² from y(0) = 1 ends at t = 1.
    options = {"stiff": solver == "stiff", "dense": solver == "dense", "most_steps": 2000}
    return flows.solve(lambda t, y: y**2, one, time[None], otherwise=sentence, **options).states[0]


class Fails(Limit):
    """What a solver finds before t = 1, and does not find beyond.

    Setting     time t
    Result      a number
    Validity    size counts nothing
    Finite size exact
    References  vershynin2018
    """

    time: Array = real(0.5, 0.1, 10.0, doc="when")
    solver: str = choice("flow", tuple(SENTENCES), doc="by what")
    usual = Run(sizes=(2, 4), samples=20)

    def theory(self):
        return {"end": Value(found(self.solver, self.time), label="end")}

    def at_size(self, size):
        return {}, self

    def simulate(self, key):
        return {"end": jax.random.normal(key)}


class FailsWhenSimulated(Fails):
    """The same where the simulation is what fails."""

    def theory(self):
        return {"end": Value(1 / (1 - self.time), label="end")}

    def simulate(self, key):
        return {"end": found(self.solver, self.time) + jax.random.normal(key)}


class FailsWhenStated(Fails):
    """The same where the statement about a drawn system is what fails."""

    def theory(self):
        return {}

    def draw(self, key):
        return self.time + 1e-3 * jax.random.uniform(key)

    def stated(self, system):
        return {"end": Identity(found(self.solver, system), label="end", tolerance=1e-6, reason="the solver")}

    def measured(self, system):
        return {"end": found(self.solver, jnp.minimum(system, 0.5))}


class FailsWhenMeasured(FailsWhenStated):
    """The same where the measurement of a drawn system is what fails."""

    def stated(self, system):
        return {"end": Identity(1 / (1 - system), label="end", tolerance=1e-6, reason="the solver")}

    def measured(self, system):
        return {"end": found(self.solver, system)}


@pytest.mark.parametrize("solver", SENTENCES)
def test_predictions(solver):
    early = deeplimits.predict(Fails(solver=solver))["end"]
    assert isinstance(early, Value)
    assert np.isfinite(early.value)
    with pytest.raises(NotConverged, match=rf"^Fails: {SENTENCES[solver]}$"):
        deeplimits.predict(Fails(time=2.0, solver=solver))


@pytest.mark.parametrize("solver", ["flow", "root", "iteration"])
@pytest.mark.parametrize("part", [Fails, FailsWhenSimulated, FailsWhenStated, FailsWhenMeasured])
def test_comparisons(part, solver):
    with pytest.raises(NotConverged, match=rf"^{part.__name__}: {SENTENCES[solver]}$"):
        deeplimits.compare(part(time=2.0, solver=solver), samples=8)


def test_simulations_and_statements():
    with pytest.raises(NotConverged, match=r"^FailsWhenSimulated: the solution ends before$"):
        deeplimits.simulate(FailsWhenSimulated(time=2.0), size=2, samples=2)
    with pytest.raises(NotConverged, match=r"^FailsWhenStated: the solution ends before$"):
        deeplimits.predict(FailsWhenStated(time=2.0))


TRANSFORMATIONS = {
    "plain": lambda f: f,
    "jit": jax.jit,
    "vmap": lambda f: lambda t: jax.vmap(f)(jnp.stack([t / 4, t])),
    "grad": jax.grad,
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "vmap of grad": lambda f: lambda t: jax.vmap(jax.grad(f))(jnp.stack([t / 4, t])),
    "jit of vmap": lambda f: lambda t: jax.jit(jax.vmap(f))(jnp.stack([t / 4, t])),
}


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("solver", ["flow", "stiff", "root", "iteration"])
def test_transformations(solver, transformation):
    program = TRANSFORMATIONS[transformation](lambda time: found(solver, time))
    assert np.all(np.isfinite(program(jnp.asarray(0.5))))
    with pytest.raises(NotConverged, match=SENTENCES[solver]), aloud("test"):
        jax.block_until_ready(program(jnp.asarray(2.0)))


@pytest.mark.parametrize("solver", ["dense", "until"])
def test_transformations_forwards(solver):
    def tangent(time):
        return jax.jvp(lambda t: found(solver, t), (time,), (1.0,))

    for program in (jax.jit(lambda time: found(solver, time)), tangent, jax.jit(tangent)):
        assert np.all(np.isfinite(program(jnp.asarray(0.5))))
        with pytest.raises(NotConverged, match=SENTENCES[solver]), aloud("test"):
            jax.block_until_ready(program(jnp.asarray(2.0)))


def test_both_kinds_of_failure_have_one_sentence_known_or_not():
    for check, kind in ((converged, NotConverged), (valid, OutsideValidity)):

        def checked(x, check=check):
            return check(x, x > 0, "x must not fall below zero")

        with pytest.raises(kind, match="x must not fall"):
            checked(jnp.asarray(-1.0))
        with pytest.raises(eqx.EquinoxRuntimeError, match=rf"\[{kind.__name__}\] x must not fall"):
            eqx.filter_jit(checked)(jnp.asarray(-1.0))
        with pytest.raises(kind, match=r"^somebody: x must not fall below zero$"), aloud("somebody"):
            eqx.filter_jit(checked)(jnp.asarray(-1.0))
        assert float(eqx.filter_jit(checked)(jnp.asarray(1.0))) == 1.0


def test_checks_leave_values_and_derivatives_alone():
    def checked(x):
        return converged({"square": x**2, "name": "a"}, x > 0, "never")["square"]

    for transform in (lambda f: f, jax.jit):
        assert float(transform(checked)(3.0)) == 9.0
        assert float(transform(jax.grad(checked))(3.0)) == 6.0
        assert float(transform(jax.grad(jax.grad(checked)))(3.0)) == 2.0
    np.testing.assert_allclose(jax.vmap(jax.grad(checked))(jnp.array([1.0, 2.0])), [2.0, 4.0])
    # Every kind of array, to the last bit.
    values = (
        jnp.array([jnp.inf, -0.0, jnp.nan, 1e-300]),
        jnp.array([complex(np.inf, 1.0), complex(-0.0, 2.0)]),
        jnp.array([1, -2]),
        jnp.array([True, False]),
        jnp.ones(2, np.float32),
    )
    found = jax.jit(lambda *values: converged(values, values[2][0] > 0, "never"))(*values)
    for before, after in zip(values, found, strict=True):
        assert before.dtype == after.dtype
        assert np.array_equal(before, after, equal_nan=before.dtype == float)
    key = jax.jit(lambda x: converged(jax.random.key(3), x > 0, "never"))(1.0)
    assert jax.random.key_data(key).tolist() == [0, 3]
    # A program that wants nothing but the derivative by one of several leaves hears of the failure too.
    both = jax.jit(jax.grad(lambda x: converged((x, 3 * x), x > 0, "x fell")[1]))
    assert float(both(1.0)) == 3.0
    with pytest.raises(NotConverged, match="x fell"), aloud("test"):
        jax.block_until_ready(both(-1.0))
    # Numbers that end the sentence are given where they are known.
    with pytest.raises(OutsideValidity, match=r"^too small: x = -1$"):
        valid(jnp.ones(()), False, "too small", lambda: ": x = -1")


def test_other_errors_of_compiled_programs_pass_as_they_are():
    for error in (ZeroDivisionError, ValueError):
        with pytest.raises(error, match="as it is"), aloud("somebody"):
            raise error("as it is")

    def refuse(x):
        raise KeyError("from the host")

    with pytest.raises(jax.errors.JaxRuntimeError, match="from the host"), aloud("somebody"):
        jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(refuse, x, x))(jnp.ones(())))


LOOPS = {"while_loop", "fori_loop", "throw"}
PLAIN = {
    "attention/equiangular.py",
    "attention/staircase.py",
    "expressivity/tangent_moments.py",
    "gaussian/duals/numerical.py",
    "inequalities/growth.py",
    "kernels/recursion.py",
    "kernels/tiling.py",
    "landscape/stability_edge.py",
    "online_sgd/xor_sliding.py",
}
"""Loops that add up so many terms, or go so many steps, and have nothing to converge to."""
REFUSED = {"online_sgd/deviations/hamiltonian.py"}
"""A loop that ends elsewhere has shown that there is no answer; `valid` says so."""


def test_no_loop_of_the_theory_goes_unwatched():
    """Whatever iterates, or leaves a failure to its caller, is looked at by `converged` in the same file."""
    theory = Path(deeplimits.__file__).parent / "theory"
    unwatched = set()
    for path in sorted(theory.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}
        called = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        if names & LOOPS and "converged" not in called:
            unwatched.add(path.relative_to(theory).as_posix())
    assert unwatched == PLAIN | REFUSED


def test_a_failed_check_in_a_program_logs_no_traceback(caplog):
    @jax.jit
    def failing(x):
        return converged(x, x < 0, "it did not converge")

    with pytest.raises(NotConverged, match="owner: it did not converge"), aloud("owner"):
        failing(jnp.ones(())).block_until_ready()
    assert not caplog.records
