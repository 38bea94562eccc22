"""What the limits about implicit bias have in common."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.predictions.picture import Axis, Line, Picture
from deeplimits.theory.bias import separable_descent, support_vectors


def top_eigenvalue(x: Array | np.ndarray) -> float:
    """The largest eigenvalue of the Hessian X'X/m of least squares."""
    return float(np.linalg.norm(x, ord=2)) ** 2 / len(x)


def too_large_batches(limit: Any) -> tuple[str, ...]:
    """The sentence for batches that cannot be drawn from so few samples, if they cannot."""
    if limit.sampling == "with replacement" or limit.batch_size <= limit.samples:
        return ()
    return (f"batch_size = {limit.batch_size} exceeds samples = {limit.samples}; take smaller batches",)


def nothing_fluctuates(limit: Any) -> tuple[str, ...]:
    """The sentence for batches of a regression that cannot be drawn, or that all have their minimum at one place."""
    if limit.samples > limit.features:
        return too_large_batches(limit)
    return (
        f"samples = {limit.samples} is not above features = {limit.features}; then nothing fluctuates: take more "
        "samples",
    )


def approach(points: int, dimension: int) -> Picture:
    """How far the flow on some separable data is from the hard-margin predictor over the logarithm of time."""
    signed = jnp.asarray(np.random.default_rng(0).standard_normal((points, dimension)))
    signed = signed * jnp.where(signed[:, :1] > 0, 1.0, -1.0)  # labels of a linear teacher, here the first axis
    predictor, multipliers = support_vectors.traced_hard_margin(signed)
    offset = separable_descent.support_offset(signed, multipliers, 1.0)
    logs = np.geomspace(10.0, 1e4, 100)
    widest = separable_descent.normalized_margin(predictor, offset, multipliers, logs, 1.0)
    lines = (
        Line(logs, separable_descent.direction_error(predictor, offset, logs), series=0, label="direction"),
        Line(logs, 1 - jnp.linalg.norm(predictor) * widest, series=1, label="share of the margin that is missing"),
    )
    x = Axis("logarithm of the time", r"\log t", log=True)
    return Picture(x, Axis("distance from the hard-margin predictor", log=True), lines)
