"""What passes through an affine layer, whatever framework it is of."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Passage(NamedTuple):
    """One affine layer on one batch; the first axis of each array counts samples."""

    name: str
    kind: str
    """'Linear', 'Conv2d', …"""
    entering: np.ndarray
    leaving: np.ndarray
    slopes: np.ndarray | None
    """∂l_i/∂(what leaves it), of each sample's own loss; None where the loss does not depend on it"""
    weight: np.ndarray
    """The matrix, one row for each output (a channel of a convolution)."""
    bias: np.ndarray | None
    power: np.ndarray
    """What a row of independent weights of variance 1/fan-in turns this input into: Σ x² over its taps/fan-in, averaged
    over positions, for each sample."""
    repeated: bool
    """Whether the layer is called several times in one pass; the first call is shown."""
    times: Callable[[np.ndarray], np.ndarray] | None = None
    """What leaves it with other weights, of the parameter's own shape, in place of these, and without biases."""
