"""How descriptions print: their values, as one would type them, long arrays in brief."""

from typing import Any

import numpy as np

from deeplimits.models.activations import Activation
from deeplimits.numerics.arguments import known

FEW = 9
"""Arrays of at most so many entries are printed whole."""


def shown(value: Any) -> str:
    """A value as one would type it.

    >>> shown(np.array([1.0, 0.1])), shown(np.linspace(0, 1, 50))
    ('[1, 0.1]', '<50 numbers from 0 to 1>')
    """
    if isinstance(value, Activation):
        return repr(value.name)
    if isinstance(value, str | bool) or value is None or not (hasattr(value, "shape") or isinstance(value, float)):
        return repr(value)
    if not known(value):
        return f"<traced {np.shape(value)}>"
    entries = np.asarray(value)
    if entries.dtype == object or entries.dtype.kind not in "fiu":
        return repr(value)
    if entries.size > FEW:
        count = "×".join(map(str, entries.shape))
        return f"<{count} numbers from {entries.min():.4g} to {entries.max():.4g}>"
    return _nested(entries.tolist())


def _nested(value: Any) -> str:
    return f"[{', '.join(map(_nested, value))}]" if isinstance(value, list) else f"{value:.6g}"


def call(owner: Any, **values: Any) -> str:
    """The call that makes a description, on one line.

    >>> call(np.zeros(1), gamma=2.0, activation="tanh")
    "ndarray(gamma=2, activation='tanh')"
    """
    return f"{type(owner).__name__}({', '.join(f'{name}={shown(value)}' for name, value in values.items())})"


def one_or_all(values: Any) -> Any:
    """One number where all entries are the same, as it may have been given."""
    if known(values) and np.size(values) and np.all(np.asarray(values) == np.asarray(values).flat[0]):
        return np.asarray(values).flat[0]
    return values
