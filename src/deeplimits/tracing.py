"""Telling values that are known now from those that JAX will know later."""

from typing import Any

import jax
from jax.core import Tracer


def is_traced(value: Any) -> bool:
    """Whether a value is an abstract one inside `jit`, `grad` or `vmap`, so that its range cannot be checked."""
    return isinstance(value, Tracer | jax.ShapeDtypeStruct)
