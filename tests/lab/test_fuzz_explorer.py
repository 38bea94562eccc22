"""Whatever is asked of the explorer is answered, or refused in a sentence; nothing is computed here.

DEEPLIMITS_FUZZ=20000 pytest tests/lab/test_fuzz_explorer.py
"""

import asyncio
import json
from concurrent.futures import Future
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deeplimits as dl
from deeplimits.errors import DeeplimitsError
from lab.test_fuzz import NAMES, SOME, examples, imported, plain, refused, typed  # noqa: F401

pytest.importorskip("starlette", reason="the explorer's extra is not installed: pip install 'deeplimits[explore]'")
pytest.importorskip("uvicorn", reason="the explorer's extra is not installed: pip install 'deeplimits[explore]'")

from deeplimits.explorer import app, requests, work

STATUSES = {200, 400, 403, 404, 405, 413, 422, 503}


class Nobody:
    """Workers that answer at once, with what they were asked."""

    def __init__(self, *_, **__):
        self.asked = []

    def submit(self, function, *arguments):
        future = Future()
        self.asked.append(arguments)
        asked = arguments[1]
        # A page is not wanted here; the parameters of everything else make a limit, or a sentence.
        try:
            if isinstance(asked, requests.Asked):
                repr(work.limit_of(asked))
            future.set_exception(DeeplimitsError("nobody computes"))
        except Exception as error:
            future.set_exception(error)
        return future

    def end(self, future):
        future.cancel()

    def stop(self):
        pass


@pytest.fixture(scope="module")
def explorer():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "Workers", Nobody)
        yield app.Explorer()


def answered(explorer, path, query=b"", method="GET", headers=()):
    """Status, headers and body that the application sends for a request, as a server hands it over."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path, "raw_path": quote(path).encode(), "query_string": query, "root_path": "",
        "headers": list(headers) or [(b"host", b"localhost:1")], "client": ("127.0.0.1", 1), "server": ("localhost", 1),
    }  # fmt: skip
    asyncio.run(explorer.app(scope, receive, send))
    (start,) = [one for one in sent if one["type"] == "http.response.start"]
    body = b"".join(one.get("body", b"") for one in sent if one["type"] == "http.response.body")
    return start["status"], dict(start["headers"]), body


def check(answer):
    status, headers, body = answer
    assert status in STATUSES, body
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert b"Traceback" not in body
    if status >= 400 and body.startswith(b"{"):
        assert "\n" not in json.loads(body)["sentence"]


keys = st.one_of(
    st.sampled_from(["-size", "-samples", "-seed", "-over", "gamma", "noise", "times", "activation", "__class__"]),
    st.sampled_from(sorted({one for name in SOME for one in dl.catalogue.entry(name).about.parameters})),
    st.text(max_size=10),
)
pairs = st.lists(st.tuples(keys, st.one_of(typed, plain.map(str))), max_size=5)
names = st.one_of(st.sampled_from(SOME), st.text(max_size=20), st.sampled_from(["../../etc/passwd", "os:system", "\0"]))


@examples(150)
@given(names, pairs)
def test_addresses(name, given_pairs):
    """Read, or refused; what was read makes a limit or a sentence."""
    said = refused(lambda: work.limit_of(requests.read(name, given_pairs)))
    assert said is None or len(said) < 20_000


@examples(100)
@given(
    st.one_of(
        st.builds("/api/{}/{}".format, names, st.sampled_from(["theory", "sweep", "simulate", "x"])),
        st.builds("/limits/{}.html".format, names),
        st.builds("/{}/{}".format, st.sampled_from(["assets", "data", "limits"]), names),
        st.text(max_size=40).map("/".__add__),
    ),
    st.one_of(
        pairs.map(
            lambda found: "&".join(
                f"{quote(a, errors='replace')}={quote(b, errors='replace')}" for a, b in found
            ).encode()
        ),
        st.binary(max_size=80),
    ),
    st.sampled_from(["GET", "GET", "POST", "HEAD", "PUT", "OPTIONS"]),
    st.lists(
        st.tuples(
            st.sampled_from([b"host", b"content-length", b"sec-fetch-site", b"transfer-encoding", b"cookie"]),
            st.one_of(
                st.binary(max_size=20), st.sampled_from([b"localhost", b"[::1]:80", b"-1", b"cross-site", b"1e3"])
            ),
        ),
        max_size=3,
    ),
)
def test_requests(explorer, path, query, method, headers):
    check(answered(explorer, path, query, method, [(b"host", b"localhost:1"), *headers]))


def test_a_length_that_is_no_number_is_refused(explorer):
    for length in (b"-1", b"1e3", b"", b"\xff", b"9" * 5000):
        status, _, _ = answered(explorer, "/", headers=[(b"host", b"localhost:1"), (b"content-length", length)])
        assert status in (200, 413)
