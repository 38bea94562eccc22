"""Variables drawn for long chains: their laws against SciPy's, their independence, and bad input."""

import jax
import numpy as np
import pytest
from scipy import stats

from deeplimits.errors import ParameterError
from deeplimits.numerics import draws
from deeplimits.statistics import LEVEL

COUNT = 20_000


def fits(values, law):
    assert stats.kstest(np.asarray(values, float).ravel(), law.cdf).pvalue > LEVEL


@pytest.mark.parametrize("freedom", [1, 2, 3, 50, 1000])
def test_laws(freedom):
    found = draws.draw(jax.random.key(1), (COUNT,), 2, uniforms=1, freedom=freedom)
    for column in range(2):
        fits(found.gaussians[:, column], stats.norm())
    fits(found.uniforms, stats.uniform())
    fits(found.chi_square, stats.chi2(freedom))
    # Refused proposals take nothing but time: what was drawn beside them stays independent.
    columns = np.concatenate([found.gaussians, found.uniforms, found.chi_square[:, None]], axis=1)
    ranks = stats.spearmanr(columns).pvalue[np.triu_indices(4, 1)]
    assert ranks.min() > LEVEL / len(ranks)


@pytest.mark.parametrize("freedom", [1, 2, 7])
def test_one_at_a_time(freedom):
    keys = jax.random.split(jax.random.key(2), COUNT)
    fits(jax.jit(jax.vmap(lambda key: draws.chi_square(key, freedom)))(keys), stats.chi2(freedom))


def test_a_place_does_not_depend_on_those_beside_it():
    keys = jax.random.split(jax.random.key(3), 40)
    together = jax.vmap(lambda key: draws.draw(key, (5,), 1, freedom=2))(keys)
    # Alike up to the last digits of single precision, in which a compiler may treat a vector and a number differently.
    for index in (0, 17, 39):
        alone = draws.draw(keys[index], (5,), 1, freedom=2)
        np.testing.assert_allclose(together.chi_square[index], alone.chi_square, rtol=1e-5)
        np.testing.assert_allclose(together.gaussians[index], alone.gaussians, rtol=1e-5)


def test_neighbouring_keys_have_unrelated_streams():
    key = jax.random.key(4)
    streams = [
        draws.draw(draws.neighbour(key, index, word), (COUNT,), 1).gaussians[:, 0]
        for word, index in ((0, 0), (0, 1), (1, 1), (0, -1))
    ]
    p_values = stats.spearmanr(np.stack(streams, axis=1)).pvalue[np.triu_indices(4, 1)]
    assert p_values.min() > LEVEL / len(p_values)


def test_nothing_is_drawn_where_nothing_is_asked_for():
    found = draws.draw(jax.random.key(5), (3,), 0)
    assert found.gaussians.shape == found.uniforms.shape == (3, 0)
    assert not np.any(found.chi_square)
    with pytest.raises(ParameterError, match="freedom = -1"):
        draws.draw(jax.random.key(5), (3,), 0, freedom=-1)
