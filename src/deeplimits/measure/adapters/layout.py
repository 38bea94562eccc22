"""Named parameters as one flat vector: which entries belong to which name, and which names a pattern means."""

import fnmatch
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from deeplimits.errors import ParameterError

Patterns = str | Sequence[str]
"""Names or shell patterns of parameters; the name of a layer means all parameters in it."""


class Layout(NamedTuple):
    """Names and shapes of parameters in the order in which a flat vector holds them.

    >>> layout = Layout(("first.weight", "first.bias", "last.weight"), ((2, 3), (2,), (1, 2)))
    >>> layout.size, layout.slices["first.bias"]
    (10, slice(6, 8, None))
    >>> list(layout.layers), layout.chosen("first")
    (['first', 'last'], ('first.weight', 'first.bias'))
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many entries each parameter has."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def size(self) -> int:
        """How many entries there are in all."""
        return sum(self.sizes)

    @property
    def slices(self) -> dict[str, slice]:
        """Where each parameter stands in the flat vector."""
        ends = np.cumsum((0, *self.sizes)).tolist()
        return {name: slice(ends[i], ends[i + 1]) for i, name in enumerate(self.names)}

    @property
    def layers(self) -> dict[str, tuple[str, ...]]:
        """Parameters by layer: what their names begin with, before the last dot."""
        found: dict[str, list[str]] = {}
        for name in self.names:
            found.setdefault(name.rpartition(".")[0] or name, []).append(name)
        return {layer: tuple(names) for layer, names in found.items()}

    def chosen(self, patterns: Patterns) -> tuple[str, ...]:
        """The names that patterns mean, in order; an error that lists the names where one means nothing."""
        wanted = (patterns,) if isinstance(patterns, str) else tuple(patterns)
        for pattern in wanted:
            if not any(self._means(pattern, name) for name in self.names):
                raise ParameterError(
                    f"no parameter is called {pattern!r}; there are {', '.join(self.names[:12])}"
                    + (" …" if len(self.names) > 12 else "")
                )
        return tuple(name for name in self.names if any(self._means(pattern, name) for pattern in wanted))

    @staticmethod
    def _means(pattern: str, name: str) -> bool:
        return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, f"{pattern}.*")

    def named(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """A flat vector as arrays by name."""
        return {
            name: vector[place].reshape(shape)
            for (name, place), shape in zip(self.slices.items(), self.shapes, strict=True)
        }

    def flat(self, values: Any) -> np.ndarray:
        """A flat float64 vector from arrays by name, or from a vector of the right length."""
        if isinstance(values, Mapping):
            missing = [name for name in self.names if name not in values]
            if missing:
                raise ParameterError(f"values for {', '.join(missing)} are missing")
            parts = [np.asarray(values[name], float) for name in self.names]
            for name, part, shape in zip(self.names, parts, self.shapes, strict=True):
                if part.shape != shape:
                    raise ParameterError(f"{name} has shape {part.shape}; it must have shape {shape}")
            return np.concatenate([part.ravel() for part in parts])
        found = np.asarray(values, float)
        if found.shape != (self.size,):
            raise ParameterError(f"the vector has shape {found.shape}; it must have shape ({self.size},)")
        return found
