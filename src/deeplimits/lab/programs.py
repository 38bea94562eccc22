"""Compiled programs: several are compiled at once, in threads; they are run one at a time."""

import sysconfig
import threading
import traceback
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from deeplimits.errors import DeeplimitsError
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
        self._shapes: OrderedDict[Hashable, Any] = OrderedDict()
        self._bytes: OrderedDict[Hashable, float] = OrderedDict()
        self._seconds: OrderedDict[Hashable, float] = OrderedDict()
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
        key = (_key(arguments), rounds)
        if key not in self._seconds:
            traced = self._trace(key[0], arguments)[0]
            _keep(self._seconds, key, cost.seconds(traced.jaxpr, (), rounds or cost.UNKNOWN))
        return self._seconds[key]

    def memory(self, *arguments: Any) -> float:
        """About how many bytes the program needs at least, before it is compiled; see `cost`."""
        key = _key(arguments)
        if key not in self._bytes:
            _keep(self._bytes, key, cost.memory(self._trace(key, arguments)[0].jaxpr))
        return self._bytes[key]

    def shapes(self, *arguments: Any) -> Any:
        """What a call returns, with `jax.ShapeDtypeStruct` for each array; nothing is compiled."""
        key = _key(arguments)
        if key not in self._shapes:
            self._trace(key, arguments)
        return self._shapes[key]

    def _trace(self, key: Hashable, arguments: Any) -> tuple[Any, Any]:
        found = self._traced.get(key)
        if found is None:
            arrays, given = eqx.partition(arguments, _is_array)
            besides = []

            def function(arrays):
                returned, rest = eqx.partition(self._function(*eqx.combine(arrays, given)), _is_array)
                besides.append(rest)
                return returned

            try:
                traced = jax.jit(function, compiler_options=options(self._level)).trace(arrays)
            except UNKNOWN_YET as error:
                raise DeeplimitsError(_too_early(error)) from error
            found = _keep(self._traced, key, (traced, besides[0]))
            _keep(self._shapes, key, eqx.combine(traced.out_info, besides[0]))
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
        self._shapes.clear()
        self._bytes.clear()
        self._seconds.clear()


UNKNOWN_YET = (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError,
               jax.errors.TracerIntegerConversionError)  # fmt: skip


def _too_early(error: Exception) -> str:
    """Which line of whose code asks for a number that is known only when the program runs, and what to write there."""
    libraries = [Path(place) for place in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"))]
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) != Path(__file__)
        and not any(Path(frame.filename).is_relative_to(library) for library in libraries)
    ]
    where = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}: `{frames[-1].line}`" if frames else "it"
    if isinstance(error, jax.errors.TracerArrayConversionError):
        remedy = "write it with jax.numpy in place of NumPy"
    elif isinstance(error, jax.errors.TracerBoolConversionError):
        remedy = "write jnp.where(condition, a, b), or declare the parameter as integer(...) or choice(...)"
    else:
        remedy = "keep it an array, or declare the parameter as integer(...), which is known"
    return f"{where} asks for a number that is known only when the compiled program runs; {remedy}"


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
