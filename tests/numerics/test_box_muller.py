"""Gaussian numbers from one hash for two."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from scipy import stats

from deeplimits.numerics.box_muller import _pair, gaussians, threefry

ALARM = 1e-5


def test_the_hash_is_threefry():
    """The published vector of zeros, and JAX's own hash."""
    assert [int(word) for word in threefry(*(jnp.uint32(0),) * 4)] == [0x6B200159, 0x99BA4EFE]
    key = jax.random.key_data(jax.random.key(7))
    counts = jax.random.bits(jax.random.key(1), (16,), jnp.uint32)
    found = threefry(key[0], key[1], counts[:8], counts[8:])
    np.testing.assert_array_equal(jnp.concatenate(found), threefry_2x32(key, counts))


def test_the_transform_against_double_precision():
    radial = jnp.array([0, 1, 77, 1 << 20, 1 << 31, 3 << 30, (1 << 32) - 4096], jnp.uint32)
    angular = jnp.arange(0, 1 << 32, 54_321_987, dtype=jnp.uint32)
    first, second = _pair(*(part.ravel() for part in jnp.meshgrid(radial, angular)))
    r, v = np.meshgrid(np.asarray(radial, np.uint64) >> np.uint64(1), np.asarray(angular) * 2.0**-32)
    radius = np.sqrt(-2 * np.log((r + 0.5) * 2.0**-31))
    np.testing.assert_allclose(first, (radius * np.cos(2 * np.pi * v)).ravel(), atol=2e-6)
    np.testing.assert_allclose(second, (radius * np.sin(2 * np.pi * v)).ravel(), atol=2e-6)


@pytest.mark.parametrize("kind", ["threefry2x32", "rbg"])
def test_they_are_standard_and_independent(kind):
    z = np.asarray(gaussians(jax.random.key(11, impl=kind), (3, 100_001)), float)
    assert z.shape == (3, 100_001)
    assert stats.kstest(z.ravel(), "norm").pvalue > ALARM
    flat, half = z.ravel(), z.size // 2
    for lag in (1, 2, half, half + 1, 100_001):  # the two of a pair lie half of all apart
        for power in (1, 2):
            left, right = flat[:-lag] ** power, flat[lag:] ** power
            assert stats.pearsonr(left, right).pvalue > ALARM
    # Tails: the number beyond 4 is binomial.
    assert stats.binomtest(int(np.sum(np.abs(flat) > 4)), z.size, 2 * stats.norm.sf(4)).pvalue > ALARM


def test_a_key_gives_the_same_numbers_alone_and_beside_others():
    keys = jax.random.split(jax.random.key(2), 5)
    together = jax.jit(jax.vmap(lambda key: gaussians(key, (7,))))(keys)
    for key, row in zip(keys, together, strict=True):
        np.testing.assert_allclose(gaussians(key, (7,)), row, rtol=1e-6)
    assert len(np.unique(np.asarray(together))) == 35
    assert gaussians(keys[0], (0, 3)).shape == (0, 3)
    assert gaussians(keys[0], ()).shape == ()
