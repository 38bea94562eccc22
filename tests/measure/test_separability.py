"""Whether points can be separated, where the answer is known."""

import jax.numpy as jnp
import numpy as np

from deeplimits.measure.separability import is_separable


def test_separability_of_a_larger_set():
    rng = np.random.default_rng(1)
    points, teacher = rng.standard_normal((600, 200)), rng.standard_normal(200)
    labels = np.sign(points @ teacher)
    assert float(is_separable(jnp.asarray(points * labels[:, None]))) == 1
    labels[:300] = rng.choice([-1.0, 1.0], 300)
    assert float(is_separable(jnp.asarray(points * labels[:, None]))) == 0
