"""Means over the taps of a convolution of JAX, for maps of products of two samples."""

from typing import Any

import jax.numpy as jnp
import numpy as np


def means_over_taps(equation: Any, shape: tuple[int, ...], numbers: Any) -> Any:
    """Means over the taps of a convolution; None where not all inputs enter all outputs."""
    params = equation.params
    if params["feature_group_count"] != 1 or params["batch_group_count"] != 1:
        return None
    places = [shape[axis] for axis in numbers.lhs_spec[2:]]
    taps = [equation.invars[1].aval.shape[axis] for axis in numbers.rhs_spec[2:]]

    def spread(maps: np.ndarray) -> np.ndarray | None:
        if maps.shape[1] != int(np.prod(places)):
            return None
        x = np.transpose(maps.reshape(-1, 1, *places), np.argsort(numbers.lhs_spec))
        ones = np.transpose(np.full((1, 1, *taps), 1 / np.prod(taps)), np.argsort(numbers.rhs_spec))
        made = equation.primitive.bind(jnp.asarray(x), jnp.asarray(ones, x.dtype), **params)
        return np.transpose(np.asarray(made, float), numbers.out_spec).reshape(len(maps), -1)

    return spread
