"""Compiled programs: several are compiled at once, in threads; they are run one at a time."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from deeplimits.lab.compilation import options

MOST = 128
"""How many compiled programs of one function are kept."""

_running = threading.Lock()


class Program:
    """A function of arrays and static values, compiled once for each shape of the ones and value of the others,
    at the compiler's optimization `level`.

    `prepare` compiles without running, and may be called from several threads; a call runs.
    """

    def __init__(self, function: Callable, level: int):
        self._function, self._level = function, level
        self._compiled: OrderedDict[Hashable, Any] = OrderedDict()
        programs.append(self)

    def prepare(self, *arguments: Any) -> Callable:
        """The compiled program for arguments of this shape."""
        leaves, structure = jax.tree.flatten(arguments)
        shapes = (
            (leaf.shape, str(leaf.dtype)) if isinstance(leaf, jax.Array | np.ndarray) else leaf for leaf in leaves
        )
        key = (structure, *shapes)
        found = self._compiled.get(key)
        if found is None:
            jitted: Any = eqx.filter_jit(self._function, compiler_options=options(self._level))  # pyright: ignore
            found = self._compiled[key] = jitted.lower(*arguments).compile()
            if len(self._compiled) > MOST:
                self._compiled.popitem(last=False)
        return found

    def __call__(self, *arguments: Any) -> Any:
        program = self.prepare(*arguments)
        with _running:
            return jax.block_until_ready(program(*arguments))

    def clear(self) -> None:
        """Forget what was compiled."""
        self._compiled.clear()


def _shape(leaf: Any) -> Hashable:
    return (leaf.shape, str(leaf.dtype)) if isinstance(leaf, jax.Array | np.ndarray) else leaf


programs: list[Program] = []
"""Every program of the laboratory."""


def clear() -> None:
    """Forget every compiled program."""
    for program in programs:
        program.clear()
    jax.clear_caches()
