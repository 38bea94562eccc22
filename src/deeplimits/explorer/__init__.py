"""The explorer: the atlas's page of a limit, live. Theory follows the sliders, finite systems are added on demand.

One process serves the page and only passes requests on, checked against the parameter fields; worker processes
compute, and are ended where they take too long or too much. Nothing that a request says is run or opened as a file.
"""

import contextlib
import socket
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from deeplimits.catalogue import catalogue
from deeplimits.errors import ParameterError, require

LOOPBACK = "127.0.0.1"
PORT = 8765


def serve(
    name: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    host: str = LOOPBACK,
    port: int = PORT,
    site: str | Path | None = None,
    browser: bool = True,
) -> None:
    """Serve the page until interrupted; `name` is the limit that the browser opens at, with the parameters `at`.

    `site` is a folder that `deeplimits atlas` wrote: its thumbnails are shown on the overview. With `port` 0 a free
    port is taken.
    """
    require("starlette", "explore")
    uvicorn = require("uvicorn", "explore")
    from deeplimits.explorer.app import Explorer

    if name is not None and catalogue.entry(name).role != "limit":
        raise ParameterError(
            f"{name} is a {catalogue.entry(name).role}, not a limit of its own; the explorer shows limits"
        )
    place = "" if name is None else f"limits/{catalogue.entry(name).name}.html{_parameters(name, at or {})}"
    thumbs = _thumbs(site)
    listening = listen(host, port)
    address = f"http://{_in_address(host)}:{listening.getsockname()[1]}/"
    explorer = Explorer(hosts=(host,), thumbs=thumbs)
    config = uvicorn.Config(explorer.app, log_level="warning", access_log=False, server_header=False,
                            limit_concurrency=200, timeout_keep_alive=10, h11_max_incomplete_event_size=16_384,
                            timeout_graceful_shutdown=2, lifespan="off")  # fmt: skip
    place = address + place
    sys.stdout.write(f"deeplimits explorer: {place} (Ctrl-C ends it)\n")
    sys.stdout.flush()
    if browser:
        with contextlib.suppress(Exception):
            webbrowser.open(place)
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        explorer.stop()


def _parameters(name: str, values: Mapping[str, Any]) -> str:
    """Parameters as the page's address has them, checked."""
    about = catalogue.entry(name).about
    for key, value in values.items():
        about.parameters[key].check(about.name, key, value)
    text = {key: ",".join(map(repr, value)) if isinstance(value, list) else value for key, value in values.items()}
    return f"#{urlencode(text)}" if text else ""


def listen(host: str, port: int) -> Any:
    """A socket that listens there, or a sentence why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except (OSError, OverflowError) as error:
        found.close()
        why = getattr(error, "strerror", None) or str(error)
        raise ParameterError(
            f"port = {port} of host = {host!r} cannot be used: {why}; give another --port, or 0 for a free one"
        ) from None
    found.listen(128)
    return found


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _thumbs(site: str | Path | None) -> str:
    """The thumbnails of an atlas, as its script says them."""
    place = None if site is None else Path(site) / "data" / "index.js"
    if place is None:
        return "deeplimits.thumbs={};\n"
    if not place.is_file():
        raise ParameterError(f"site = {str(site)!r} holds no atlas; give a folder that `deeplimits atlas` wrote")
    return place.read_text(encoding="utf-8")
