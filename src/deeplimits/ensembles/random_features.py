"""Random features, drawn."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.ensembles import estimators
from deeplimits.models.activations import Activation


def neurons(key: PRNGKeyArray, x: Float[Array, "n d"], count: int, activation: Activation) -> Float[Array, "n count"]:
    """σ(⟨w_l, x⟩) for independent w_l ~ N(0, I)."""
    return activation.value(x @ jax.random.normal(key, (x.shape[1], count)))


def fourier(key: PRNGKeyArray, x: Float[Array, "n d"], count: int, scale: float = 1.0) -> Float[Array, "n count"]:
    """√2 cos(⟨w_l, x⟩ + b_l), w_l ~ N(0, I/scale²), b_l uniform on the circle: features of the Gaussian kernel."""
    w_key, b_key = jax.random.split(key)
    phase = jax.random.uniform(b_key, (count,), maxval=2 * jnp.pi)
    return jnp.sqrt(2.0) * jnp.cos(x @ jax.random.normal(w_key, (x.shape[1], count)) / scale + phase)


def ridge_errors(
    features: Float[Array, "n N"],
    y: Float[Array, " n"],
    test_features: Float[Array, "m N"],
    y_test: Float[Array, " m"],
    ridge: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Mean squared training and test error of argmin (1/n)‖y − Φβ‖² + γ‖β‖²."""
    beta = estimators.ridge_fit(features, y, ridge)
    return jnp.mean((y - features @ beta) ** 2), jnp.mean((y_test - test_features @ beta) ** 2)
