"""The explorer in a notebook's cell: the same page in a frame, computed by the notebook's own kernel.

The page asks through the cell's widget (anywidget carries the messages), so that no server is started and a kernel far
away works too. Threads compute, one for theory and one for simulations; the kernel stays free for other cells.
"""

import functools
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from deeplimits import index
from deeplimits.catalogue import Entry, catalogue
from deeplimits.errors import DeeplimitsError, ParameterError, require
from deeplimits.explorer import work
from deeplimits.explorer.requests import Asked, read_for
from deeplimits.lab import scan
from deeplimits.limit import Limit, replace, values_of
from deeplimits.render.web import pages, site

ANSWERS: Mapping[str, Callable[[Asked], dict[str, Any]]] = {"theory": work.theory, "sweep": work.sweep}


def explore(limit: Limit | type[Limit] | str, /, **parameters: Any) -> Any:
    """Show a limit in a notebook's cell, live: theory follows the sliders, finite systems fall on it on demand.

    `limit` is a limit, its class or its name in the catalogue; limits written in the notebook work like all others.
    Parameters that are not given are those at which the limit is shown best. Needs the extra `notebook`.

        import deeplimits as dl

        dl.explore("saad-solla-ode", teachers=2)
    """
    entry, shown = _shown(limit, parameters)
    session = Session(entry, shown)
    return session.widget(_widget_class())


def _shown(limit: Limit | type[Limit] | str, parameters: Mapping[str, Any]) -> tuple[Entry, Limit]:
    if isinstance(limit, str):
        entry = catalogue.entry(limit)
        if entry.role != "limit":
            raise ParameterError(f"{limit} is a {entry.role}, not a limit of its own; explore shows limits")
        return entry, scan.shown_at(entry.load(), **parameters)
    shown = replace(limit, **parameters) if isinstance(limit, Limit) else None
    cls = limit if shown is None else type(shown)
    if not (isinstance(cls, type) and issubclass(cls, Limit)):
        raise ParameterError(f"limit = {limit!r} is not a limit; give a limit, its class or its name in the catalogue")
    return _entry_of(cls), scan.shown_at(cls, **parameters) if shown is None else shown


def _entry_of(cls: type[Limit]) -> Entry:
    """The entry of a class: the catalogue's, or one of its own."""
    target = f"{cls.__module__}:{cls.__qualname__}"
    for entry in catalogue.limits():
        if entry.target == target:
            return entry
    if "." in cls.__qualname__:
        raise ParameterError(
            f"{cls.__name__} is defined inside a function or a class; define it at the top of its module"
        )
    index.record.cache_clear()  # a notebook's class may have been written anew under its old name
    return Entry(cls.__name__, "limit", target)


class Session:
    """What one widget shows, and what answers it."""

    def __init__(self, entry: Entry, shown: Limit):
        self.entry, self.shown = entry, shown
        self._base = values_of(shown)
        self._theory, self._simulation = (ThreadPoolExecutor(1, "deeplimits") for _ in range(2))
        self._stopped: dict[int, Event] = {}

    def widget(self, widget_class: type) -> Any:
        """The widget, which this session answers."""
        page = work.page_of(self.entry, self.shown)
        if self.entry.name not in catalogue:
            page["made"] = self.entry.about.name
        drawn = {key: page[key] for key in site.DRAWN if key in page}
        made = widget_class(title=page["title"], page=pages.alone(page, site.script_of(self.entry.name, drawn)))
        made.on_msg(lambda _, message, __: self.receive(message, made.send))
        return made

    def receive(self, message: Mapping[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
        """Begin to answer a message of the page, or end what another one began."""
        number = message.get("id")
        if not isinstance(number, int):
            return
        if message.get("stop"):
            if number in self._stopped:
                self._stopped[number].set()
            return
        what, words = str(message.get("what")), [(str(key), str(text)) for key, text in message.get("words", ())]
        if what == "simulate":
            self._stopped[number] = Event()
            self._simulation.submit(self._answer, number, self._simulate, words, send)
        elif what in ANSWERS:
            self._theory.submit(self._answer, number, functools.partial(self._ask, ANSWERS[what]), words, send)

    def _answer(self, number: int, act: Callable, words: list[tuple[str, str]], send: Callable) -> None:
        def found(answer: Mapping[str, Any]) -> None:
            send({"id": number, "found": answer})

        try:
            # What is not given keeps the value that is shown first.
            asked = read_for(self.entry, words)
            asked = Asked(self.entry, tuple({**self._base, **asked.parameters}.items()), asked.over, asked.size,
                          asked.samples, asked.seed)  # fmt: skip
            act(asked, found, self._stopped.get(number))
        except DeeplimitsError as error:
            found({"sentence": " ".join(str(error).split())})
        except Exception as error:  # a limit that is being written may raise anything; the page says so
            found({"sentence": f"{type(error).__name__}: {error}"})
        finally:
            self._stopped.pop(number, None)
            send({"id": number, "end": True})

    def _ask(self, answer: Callable[[Asked], dict[str, Any]], asked: Asked, found: Callable, _: Any) -> None:
        found(_plain(answer(asked)))

    def _simulate(self, asked: Asked, found: Callable, stopped: Event) -> None:
        if not asked.size or not asked.samples:
            raise ParameterError("size and samples must be given, as whole numbers of at least 1")
        found({"working": "compiling and simulating"})
        piece, total = work.planned(asked)
        before, done = None, 0
        while done < total and not stopped.is_set():
            count = min(piece, total - done)
            before, drawn = work.add(asked, done, count, before)
            done += count
            found(_plain({**drawn, "total": total}))


def _plain(found: Mapping[str, Any]) -> dict[str, Any]:
    """What a message may hold; what is not a number must not come to stand in it."""
    return json.loads(json.dumps(found, allow_nan=False))


@functools.cache
def _widget_class() -> type:
    anywidget = require("anywidget", "notebook")
    traitlets = require("traitlets", "notebook")

    class Explorer(anywidget.AnyWidget):
        _esm = pages.script("widget.js")
        title = traitlets.Unicode("").tag(sync=True)
        page = traitlets.Unicode("").tag(sync=True)

    return Explorer
