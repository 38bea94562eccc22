"""Values that are made once: the same as without, wherever they are used, and once indeed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.numerics.apart import apart
from deeplimits.numerics.box_muller import gaussians
from deeplimits.theory.gaussian.angles import angles, small_arcsine


@pytest.mark.parametrize("first", [0.5, -np.inf, np.inf, np.nan])
def test_the_branch_is_taken_whatever_the_first_number_is(first):
    x = jnp.linspace(-1.0, 1.0, 5000).at[0].set(first)
    found = jax.jit(lambda x: apart(lambda x: 3 * x + 1, x))(x)
    np.testing.assert_array_equal(found, 3 * np.asarray(x) + 1)


def test_mapped_it_is_the_same():
    x = jnp.linspace(-1.0, 1.0, 10_000).reshape(2, 5000).at[0, 0].set(jnp.nan)
    found = jax.jit(jax.vmap(lambda x: apart(lambda x: 3 * x + 1, x)))(x)
    np.testing.assert_array_equal(found, 3 * np.asarray(x) + 1)


@pytest.mark.parametrize("many", [lambda draw: draw, lambda draw: lambda key: jax.vmap(draw)(jax.random.split(key, 2))])
def test_words_are_hashed_once(many):
    """A hash of twenty rounds has as many exclusive ors, and one or two more for its keys."""
    program = jax.jit(many(lambda key: gaussians(key, (20_000,)))).lower(jax.random.key(0)).compile().as_text()
    assert program.count(" xor(") < 40


def test_angles_of_many_pairs_are_those_of_each_and_made_once():
    gap = jnp.geomspace(1e-20, 2.0, 5000)
    few = jnp.concatenate([jnp.stack(angles(part, 2 - part)) for part in gap.reshape(5, 1000)], axis=1)
    np.testing.assert_array_equal(jnp.stack(angles(gap, 2 - gap)), few)
    program = jax.jit(angles).lower(gap, gap).compile().as_text()
    assert program.count("f64[5000]{0} add(") < 20


def test_small_arcsine_and_its_slope():
    x = np.linspace(-0.5, 0.5, 101)
    np.testing.assert_allclose(small_arcsine(jnp.asarray(x)), np.arcsin(x), rtol=5e-16)
    slope = jax.vmap(jax.grad(small_arcsine))(jnp.asarray(x))
    np.testing.assert_allclose(slope, 1 / np.sqrt(1 - x**2), rtol=5e-16)
