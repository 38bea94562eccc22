"""What the limits about implicit bias have in common."""

from typing import Any

import numpy as np
from jaxtyping import Array


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
