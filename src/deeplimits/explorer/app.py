"""The application: which address is answered with what. It computes nothing itself and opens no file that is asked for.

/  /index.html  /limits/NAME.html  /assets/FILE  /data/NAME.js     the page
/api/NAME/theory   /api/NAME/sweep      GET    what the theory says at the parameters of the address
/api/NAME/simulate                      POST   finite systems, a line of JSON for each piece; ends with the request
"""

import asyncio
import contextlib
import json
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import deeplimits
from deeplimits import references
from deeplimits.catalogue import catalogue
from deeplimits.errors import DeeplimitsError, NotConverged, UnknownName
from deeplimits.explorer import requests, work_names
from deeplimits.explorer.requests import Asked
from deeplimits.lab.workers import TaskTooLarge, TaskTooLong, WorkerDied, Workers
from deeplimits.render.web import pages, site

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
WAITING = 24
"""So many questions may wait for an answer; more are told to come again."""
SIMULATING = 4
"""So many simulations may be under way or wait."""
THEORY_SECONDS, SIMULATION_SECONDS = 60.0, 120.0
"""What a worker may take for one answer, and for one piece of a simulation."""
CEILING = 4e9
"""Bytes that a worker may take."""
PATIENT = 1.5
"""Seconds that a simulation which was stopped gets to end its piece, before its process is ended."""


class Explorer:
    """The application, and the workers that compute for it."""

    def __init__(self, hosts: Sequence[str] = (), thumbs: str = "deeplimits.thumbs={};\n", theorists: int = 2):
        # A limit always goes to the same worker, which has its programs compiled.
        self._theory = [Workers(1, time_limit=THEORY_SECONDS, ceiling=CEILING) for _ in range(theorists)]
        self._simulation = Workers(1, time_limit=SIMULATION_SECONDS, ceiling=CEILING)
        self._hosts = {"localhost", "127.0.0.1", "[::1]", *hosts, *(f"[{host}]" for host in hosts if ":" in host)}
        self._thumbs = thumbs
        self._pages: dict[str, dict[str, Any]] = {}
        self.waiting, self.simulating = 0, 0
        self.app = Starlette(
            routes=[
                Route("/", self._overview),
                Route("/index.html", self._overview),
                Route("/limits/{file}", self._limit),
                Route("/assets/{file}", self._asset),
                Route("/data/{file}", self._data),
                Route("/api/{name}/theory", self._answer("theory")),
                Route("/api/{name}/sweep", self._answer("sweep")),
                Route("/api/{name}/simulate", self._simulate, methods=["POST"]),
            ],
            exception_handlers={HTTPException: _refused, Exception: _failed, DeeplimitsError: _said},
        )
        self.app.router.redirect_slashes = False  # what is not a page is no way to one
        self.app.add_middleware(Guarded, hosts=self._hosts)

    def stop(self) -> None:
        """End all workers."""
        for workers in (*self._theory, self._simulation):
            workers.stop()

    def processes(self) -> list[Workers]:
        return [*self._theory, self._simulation]

    # ---- pages ----

    async def _overview(self, _: Request) -> Response:
        return HTMLResponse(pages.overview(_cards(), len(catalogue.limits()), deeplimits.__version__, live=True))

    async def _limit(self, request: Request) -> Response:
        name = requests.entry_of(request.path_params["file"].removesuffix(".html")).name
        return HTMLResponse(pages.limit(await self._page(name), live=True))

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["file"]
        if name == "style.css":
            return Response(pages.style(), media_type="text/css")
        if name in pages.SCRIPTS:
            return Response(pages.script(name), media_type="text/javascript")
        raise HTTPException(404, "there is no such file")

    async def _data(self, request: Request) -> Response:
        file = request.path_params["file"]
        if file == "index.js":
            return Response(self._thumbs, media_type="text/javascript")
        page = await self._page(requests.entry_of(file.removesuffix(".js")).name)
        drawn = {key: page[key] for key in site.DRAWN if key in page}
        return Response(site.script_of(page["name"], drawn), media_type="text/javascript")

    async def _page(self, name: str) -> dict[str, Any]:
        if name not in self._pages:
            self._pages[name] = await self._asked(self._theorist(name), work_names.PAGE, name)
        return self._pages[name]

    # ---- answers ----

    def _theorist(self, name: str) -> Workers:
        return self._theory[zlib.crc32(name.encode()) % len(self._theory)]

    async def _asked(self, workers: Workers, function: str, *arguments: Any) -> Any:
        """What a worker answers, unless too many wait already."""
        if self.waiting >= WAITING:
            raise HTTPException(503, "too many questions are waiting; come again in a moment")
        self.waiting += 1
        try:
            return await asyncio.wrap_future(workers.submit(work_names.call, function, *arguments))
        finally:
            self.waiting -= 1

    def _answer(self, function: str) -> Callable:
        async def answer(request: Request) -> Response:
            asked = requests.read(request.path_params["name"], request.query_params.multi_items())
            return _json(await self._asked(self._theorist(asked.name), function, asked))

        return answer

    async def _simulate(self, request: Request) -> Response:
        asked = requests.read(request.path_params["name"], request.query_params.multi_items())
        if not asked.size or not asked.samples:
            raise HTTPException(422, "size and samples must be given, as whole numbers of at least 1")
        if self.simulating >= SIMULATING:
            raise HTTPException(503, "other simulations are running; come again when one has ended")
        return StreamingResponse(self._pieces(request, asked), media_type="application/x-ndjson")

    async def _pieces(self, request: Request, asked: Asked) -> AsyncIterator[str]:
        """One line for each piece of a simulation, and one twice a second that says that it goes on."""
        self.simulating += 1
        future: Future | None = None
        try:
            future = self._simulation.submit(work_names.call, "planned", asked)
            async for line in _watched(request, future, "preparing"):
                yield line
            piece, total = future.result()
            before, done = None, 0
            while done < total:
                count = min(piece, total - done)
                future = self._simulation.submit(work_names.call, "add", asked, done, count, before)
                async for line in _watched(request, future, "compiling and simulating" if not done else "simulating"):
                    yield line
                before, found = future.result()
                done += count
                yield _line({**found, "total": total})
        except (_Gone, asyncio.CancelledError):
            return
        except DeeplimitsError as error:
            yield _line({"sentence": _sentence(error)})
        finally:
            self.simulating -= 1
            if future is not None and not future.done():
                asyncio.get_running_loop().call_later(PATIENT, self._simulation.end, future)


class _Gone(Exception):
    """Nobody listens any more."""


async def _watched(request: Request, future: Future, what: str) -> AsyncIterator[str]:
    """Until a piece is done, a line twice a second; it ends where nobody listens."""
    done = asyncio.wrap_future(future)
    while True:
        with contextlib.suppress(asyncio.TimeoutError, DeeplimitsError):
            await asyncio.wait_for(asyncio.shield(done), 0.5)
        if done.done():
            return
        if await request.is_disconnected():
            raise _Gone
        yield _line({"working": what})


class Guarded:
    """Refuses requests that come from elsewhere: for another host's name, or sent by another site's page."""

    def __init__(self, app: Any, hosts: set[str]):
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        host = headers.get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        answer = None
        if "0.0.0.0" not in self.hosts and name not in self.hosts:
            answer = _json({"sentence": "this server answers to its own name only"}, 400)
        elif headers.get("sec-fetch-site") == "cross-site" and scope["path"].startswith("/api/"):
            answer = _json({"sentence": "pages of other sites may not ask"}, 403)
        elif headers.get("content-length", "").strip() not in ("", "0") or "transfer-encoding" in headers:
            answer = _json({"sentence": "requests have no body; parameters stand in the address"}, 413)

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = [(key.lower().encode(), value.encode()) for key, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        await (answer or self.app)(scope, receive, with_headers)


def _cards() -> list[dict[str, Any]]:
    """What the overview says of each limit."""
    return [
        {
            "name": entry.name,
            "room": entry.room,
            "title": entry.title,
            "statement": entry.about.statement.sections,
            "references": references.lines(entry.about.statement.references, entry.about.module),
        }
        for entry in catalogue.limits()
    ]


def _json(found: Any, status: int = 200) -> Response:
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(text, status, media_type="application/json")


def _line(found: Any) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split())


async def _said(_: Request, error: Exception) -> Response:
    """Bad input is answered with its sentence."""
    status = 404 if isinstance(error, UnknownName) else 422
    if isinstance(error, TaskTooLong | TaskTooLarge | WorkerDied | NotConverged):
        status = 503 if not isinstance(error, NotConverged) else 422
    return _json({"sentence": _sentence(error)}, status)


async def _refused(_: Request, error: Exception) -> Response:
    status, detail = getattr(error, "status_code", 400), getattr(error, "detail", "")
    return JSONResponse({"sentence": str(detail)}, status, headers=getattr(error, "headers", None))


async def _failed(_: Request, error: Exception) -> Response:
    return _json({"sentence": f"{type(error).__name__}: the explorer could not answer this"}, 500)
