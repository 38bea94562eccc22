"""Compiled programs: several are compiled at once, in threads; they are run one at a time."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from deeplimits.lab import cost
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
        self._traced: OrderedDict[Hashable, Any] = OrderedDict()
        self._compiled: OrderedDict[Hashable, Any] = OrderedDict()
        programs.append(self)

    def prepare(self, *arguments: Any) -> tuple[Callable, Any]:
        """The compiled program for arguments of this shape, from arrays to arrays, and what it returns besides."""
        key = _key(arguments)
        found = self._compiled.get(key)
        if found is None:
            traced, rest = self._trace(key, arguments)
            found = _keep(self._compiled, key, (traced.lower().compile(), rest))
            self._traced.pop(key, None)
        return found

    def seconds(self, *arguments: Any, rounds: float | None = None) -> float:
        """About how long the program will run, before it is compiled; see `cost`."""
        return cost.seconds(self._trace(_key(arguments), arguments)[0].jaxpr, (), rounds or cost.UNKNOWN)

    def _trace(self, key: Hashable, arguments: Any) -> tuple[Any, Any]:
        found = self._traced.get(key)
        if found is None:
            arrays, given = eqx.partition(arguments, _is_array)
            besides = []

            def function(arrays):
                returned, rest = eqx.partition(self._function(*eqx.combine(arrays, given)), _is_array)
                besides.append(rest)
                return returned

            traced = jax.jit(function, compiler_options=options(self._level)).trace(arrays)
            found = _keep(self._traced, key, (traced, besides[0]))
        return found

    def __call__(self, *arguments: Any) -> Any:
        program, rest = self.prepare(*arguments)
        with _running:
            returned = jax.block_until_ready(program(eqx.filter(arguments, _is_array)))
        return eqx.combine(returned, rest)

    def clear(self) -> None:
        """Forget what was traced and compiled."""
        self._traced.clear()
        self._compiled.clear()


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)


def _key(arguments: Any) -> Hashable:
    """What a program depends on: shapes of arrays, values of the rest."""
    leaves, structure = jax.tree.flatten(arguments)
    shapes = ((leaf.shape, str(leaf.dtype)) if _is_array(leaf) else leaf for leaf in leaves)
    return (structure, *shapes)


def _keep(kept: OrderedDict, key: Hashable, value: Any) -> Any:
    kept[key] = value
    if len(kept) > MOST:
        kept.popitem(last=False)
    return value


programs: list[Program] = []
"""Every program of the laboratory."""


def clear() -> None:
    """Forget every compiled program."""
    for program in programs:
        program.clear()
    jax.clear_caches()
