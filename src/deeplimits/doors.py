"""Doors: a room's `__init__.py` is the flat list of what it offers, and nothing is imported before it is asked for.

    with door(__name__):
        from deeplimits.theory.spectra.laws import marchenko_pastur as marchenko_pastur
        ...

reads like any list of imports, to a type checker too. But the files behind it are imported one by one, when one of
their names is first used: `import deeplimits.theory.spectra` costs nothing, a limit imports only what it needs, and
rooms that need each other do not go in circles. `dir(room)` shows the list and nothing else. Python 3.15 has a keyword
for it, `lazy`. Until then the block takes the place of `__import__`, for the room's own file and as long as it lasts:
the other ways write every name twice, or read source files when the program runs.
"""

import builtins
import contextlib
import difflib
import importlib
import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

# Again by the same thread: a finalizer that runs inside a block may import too.
_ONE_AT_A_TIME = threading.RLock()


class Promise(NamedTuple):
    """What stands for a name until it is imported."""

    module: str
    name: str


class _Promised:
    """Stands for a module inside the block: each of its attributes is a promise."""

    def __init__(self, module: str):
        self._module = module

    def __getattr__(self, name: str) -> Promise:
        return Promise(self._module, name)


@contextlib.contextmanager
def door(room: str) -> Iterator[None]:
    """Inside the block `from module import name as name`, in the file of `room`, promises instead of importing.

    >>> from deeplimits.theory import inequalities
    >>> "hoeffding" in dir(inequalities), "basic" in dir(inequalities)
    (True, False)
    """
    here = vars(sys.modules[room])

    def promise(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        # Other threads import meanwhile, and mean it.
        return _Promised(name) if globals is here and fromlist else usual(name, globals, locals, fromlist, level)

    with _ONE_AT_A_TIME:
        usual, builtins.__import__ = builtins.__import__, promise
        try:
            yield
        finally:
            builtins.__import__ = usual
    promised = {name: value for name, value in here.items() if isinstance(value, Promise)}
    for name in promised:
        del here[name]

    def __getattr__(name: str) -> Any:
        if name not in promised:
            near = difflib.get_close_matches(name, promised, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise AttributeError(f"{room} has no {name!r} in its door{hint}", name=name)
        module, inside = promised[name]
        if module == room:  # a room inside this one
            return importlib.import_module(f"{room}.{inside}")
        here[name] = getattr(importlib.import_module(module), inside)
        return here[name]

    here["__all__"] = list(promised)
    here["__getattr__"] = __getattr__
    here["__dir__"] = lambda: list(promised)
