"""The explorer: live theory equals `predict`, simulations come and stop, and no request does harm."""

import contextlib
import http.client
import json
import random
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

import deeplimits as dl
from chromium import Watched, browser, downloads
from deeplimits.errors import DeeplimitsError
from deeplimits.explorer import requests
from deeplimits.limit import values_of
from house import run_command

pytest.importorskip("starlette", reason="the explorer's extra is not installed: pip install 'deeplimits[explore]'")
pytest.importorskip("uvicorn", reason="the explorer's extra is not installed: pip install 'deeplimits[explore]'")

NAME = "spiked-covariance-bbp"


def children(pid):
    """The processes that a process started, and theirs."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            fields = place.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid and fields[0] != "Z":
                own = int(place.parent.name)
                found += [own, *children(own)]
    return found


class Served:
    """An explorer in a process of its own."""

    def __init__(self):
        code = f"import sys; sys.path[:0] = {sys.path!r}; import signal; "
        code += "signal.signal(signal.SIGINT, signal.default_int_handler); "
        code += "from deeplimits.cli import main; main(['explore', '--port', '0', '--no-browser'])"
        self.process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        said = self.process.stdout.readline()
        self.address = re.search(r"http://\S+", said)[0]
        self.port = int(re.search(r":(\d+)/", self.address)[1])

    def ask(self, path, method="GET", timeout=120, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def theory(self, **parameters):
        words = "&".join(f"{key}={quote(str(value))}" for key, value in parameters.items())
        status, text = self.ask(f"/api/{NAME}/theory?{words}")
        return status, json.loads(text)


@pytest.fixture(scope="module")
def served():
    found = Served()
    try:
        yield found
    finally:
        workers = children(found.process.pid)
        found.process.send_signal(signal.SIGINT)
        try:
            found.process.wait(20)
        finally:
            found.process.kill()
            found.process.stdout.close()
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{one}").exists() for one in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [one for one in workers if Path(f"/proc/{one}").exists()], "workers were left behind"


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


def opened(served, chromium, place, **options):
    watched = Watched(chromium.new_page(**options), served.address)
    watched.page.goto(served.address + place)
    watched.page.wait_for_selector("body[data-settled]", timeout=120_000)
    return watched


# ---- what may be asked ----


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([("gamma", "much")], "cannot be read"),
        ([("gamma", "nan")], "not allowed"),
        ([("gamma", "1e999")], "not allowed"),
        ([("gamma", "-1")], "not allowed"),
        ([("gamma", "1"), ("gamma", "2")], "twice"),
        ([("gama", "1")], "did you mean gamma"),
        ([("__class__", "1")], "no parameter"),
        ([("gamma", "1" * 5000)], "characters"),
        ([("-size", "0")], "whole number"),
        ([("-size", "1e3")], "whole number"),
        ([("-size", "99999999999")], "whole number"),
        ([("-samples", "-5")], "whole number"),
        ([("-seed", "x")], "whole number"),
        ([("-over", "entries")], "cannot be drawn over"),
    ],
)
def test_what_may_not_be_asked_is_refused_in_a_sentence(pairs, words):
    with pytest.raises(DeeplimitsError, match=words):
        requests.read("marchenko-pastur-law", pairs)


def test_long_axes_are_refused_before_they_are_made():
    with pytest.raises(DeeplimitsError, match="points"):
        requests.read("saad-solla-ode", [("times", "0.1:1:1000000000")])
    with pytest.raises(DeeplimitsError, match="points"):
        requests.read("saad-solla-ode", [("times", ",".join(["1"] * 500))])


@pytest.mark.parametrize("name", ["nonsense", "../../etc/passwd", "ridgeless-finite-sample", "__init__"])
def test_only_limits_of_the_catalogue_can_be_asked_for(name):
    with pytest.raises(DeeplimitsError, match="no limit"):
        requests.read(name, [])


# ---- the server ----


def test_theory_is_what_predict_says(served):
    for gamma in (0.3, 0.7):
        status, found = served.theory(gamma=gamma, strength=2.5)
        assert status == 200
        stated = dl.predict(NAME, gamma=gamma, strength=2.5)
        for panel in found["panels"]:
            (number,) = [mark["value"] for mark in panel["picture"]["marks"] if mark["mark"] == "number"]
            assert number == pytest.approx(float(stated[panel["name"]].value), rel=1e-4)


def test_outside_the_theorem_is_said(served):
    status, found = served.theory(strength=0.1)
    assert status == 422
    assert "threshold" in found["sentence"]


ELSEWHERE = (
    "/limits/../../pyproject.toml",
    "/assets/..%2fpages.py",
    "/assets/pages.py",
    "/data/x.js",
    "/limits/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/api/nonsense/theory",
    "/favicon.ico",
)


@pytest.mark.parametrize("path", ELSEWHERE)
def test_no_file_is_opened_that_is_asked_for(served, path):
    status, text = served.ask(path)
    assert status == 404
    assert "deeplimits" not in text or "sentence" in text


def test_pages_of_other_sites_are_refused(served):
    assert served.ask("/", Host="evil.example")[0] == 400
    assert served.ask(f"/api/{NAME}/theory", **{"Sec-Fetch-Site": "cross-site"})[0] == 403


def test_huge_systems_are_refused_in_a_sentence(served):
    status, text = served.ask(f"/api/{NAME}/simulate?-size=5000000&-samples=10", "POST")
    assert status == 200
    assert "memory" in json.loads(text.splitlines()[-1])["sentence"]


def test_simulations_are_what_simulate_says(served):
    _, text = served.ask(f"/api/{NAME}/simulate?-size=40&-samples=70&-seed=3", "POST")
    last = json.loads(text.splitlines()[-1])
    assert last["done"] == last["total"] == 70
    draws = dl.simulate(NAME, size=40, samples=70, seed=3)["eigenvalue"]
    assert last["measured"]["eigenvalue"]["y"] == pytest.approx(float(draws.mean()), rel=1e-4)


ODD = (
    "/api/{n}/theory?gamma=%00",
    "/api/{n}/theory?gamma=<script>",
    "/api/{n}/theory?%ff=1",
    "/api/{n}/simulate?-size=-1",
    "/api/{n}/simulate?-size=9999999&-samples=99999",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/api//theory",
    "/api/{n}/nothing",
    "/api/{n}/theory?" + "gamma=1&" * 200,
)


def test_under_load_it_keeps_answering(served):
    """A thousand requests at once, a third of them malformed, some for huge systems, some hung up on."""
    served.theory(gamma=0.5)  # the worker is there
    draws = random.Random(0)

    def one(index):
        kind = index % 6
        if kind in (0, 1):
            path = draws.choice(ODD).format(n=NAME)
            return "odd", served.ask(path, "POST" if "simulate" in path else "GET")[0]
        if kind == 2 and index % 60 == 2:  # hangs up in the middle
            with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
                connection.sendall(
                    f"POST /api/{NAME}/simulate?-size=60&-samples=5000 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
                )
                connection.recv(10)
            return "hung up", 0
        if kind == 2:
            with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
                connection.sendall(b"\x16\x03\x01 not HTTP at all\r\n\r\n")
                return "odd", int((connection.recv(200).split() or [b"", b"400"])[1])
        return "good", served.ask(f"/api/{NAME}/theory?gamma={0.2 + 0.0005 * index:.4f}")[0]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(1000)))
    assert {status for kind, status in answers if kind == "good"} <= {200, 503}
    assert sum(status == 200 for kind, status in answers if kind == "good") > 400
    # A stream begins with 200 and says in its first lines what is wrong; all else is refused at once.
    assert all(400 <= status < 500 or status in (200, 503) for kind, status in answers if kind == "odd")
    status, found = served.theory(gamma=0.5)
    assert status == 200, found
    memory = 0
    for pid in (served.process.pid, *children(served.process.pid)):
        with contextlib.suppress(OSError):
            memory += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    assert memory < 4e9


# ---- the page ----


def test_the_page_follows_its_slider_exactly(served, chromium):
    watched = opened(served, chromium, f"limits/{NAME}.html#-show=overlap")
    page = watched.page
    page.focus("#p-gamma")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)
    value = float(page.input_value("#p-gamma-box"))
    stated = float(dl.predict(NAME, gamma=value)["overlap"].value)
    said = page.locator("#said")
    deadline = time.monotonic() + 30
    while abs(float(said.text_content().rpartition("= ")[2]) - stated) > 1e-4 * stated and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    assert float(said.text_content().rpartition("= ")[2]) == pytest.approx(stated, rel=1e-4)
    watched.is_quiet()
    page.close()


def test_the_command_opens_at_the_parameters_that_it_is_given(capsys, monkeypatch):
    import uvicorn

    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: [one.close() for one in sockets])
    given = ("--gamma", "3", "--gammas", "1.5:3:4", "--port", "0", "--no-browser")
    code, out, _ = run_command(capsys, "explore", "ridgeless-double-descent", *given)
    assert code == 0
    assert "/limits/ridgeless-double-descent.html#gamma=3.0&gammas=1.5%2C2.0%2C2.5%2C3.0 (Ctrl-C" in out


def test_what_stands_in_the_address_is_on_the_page_and_in_its_script(served, chromium):
    """A range as it is typed into a box runs as a script, too."""
    watched = opened(served, chromium, "limits/ridgeless-double-descent.html#gamma=3.0&gammas=1.5:3:4")
    page = watched.page
    assert float(page.input_value("#p-gamma-box")) == 3
    script = page.text_content("#python").partition("print")[0]
    names = {}
    exec(script, names)
    assert values_of(names["limit"])["gammas"] == [1.5, 2.0, 2.5, 3.0]
    page.close()


def test_simulate_adds_points_and_stop_stops(served, chromium):
    from playwright.sync_api import expect

    watched = opened(served, chromium, f"limits/{NAME}.html#-show=overlap")
    page = watched.page
    before = page.locator("#stage .simulation circle").count()
    page.fill("#size", "60")
    page.fill("#samples", "100")
    page.click("#go")
    expect(page.locator("#progress")).to_contain_text("100 of 100", timeout=120_000)
    assert page.locator("#stage .simulation circle").count() > before
    page.fill("#samples", "50000")
    page.click("#go")
    page.wait_for_timeout(700)
    page.click("#stop")
    expect(page.locator("#progress")).to_contain_text("stopped", timeout=20_000)
    expect(page.locator("#go")).to_be_enabled()
    # The page is not blocked meanwhile, and simulates again.
    page.fill("#samples", "20")
    page.click("#go")
    expect(page.locator("#progress")).to_contain_text("20 of 20", timeout=120_000)
    watched.is_quiet()
    page.close()


def test_a_bad_address_gives_a_message_and_no_blank_page(served, chromium):
    watched = Watched(chromium.new_page(), served.address)
    page = watched.page
    page.goto(served.address + f"limits/{NAME}.html#gamma=much&strength=3")
    page.wait_for_selector("body[data-settled]", timeout=120_000)
    assert "gamma" in page.text_content("#message")
    assert page.locator("#controls input").count() > 2
    assert page.locator("#stage svg .mark").count() > 0
    page.close()


def test_until_the_theory_is_there_the_page_says_so(served, chromium):
    page = chromium.new_page()
    page.route("**/api/*/theory*", lambda route: None)  # never answered
    page.goto(served.address + f"limits/{NAME}.html")
    page.wait_for_selector("#stage .note")
    assert page.text_content("#stage") == "The theory is being computed."
    page.close()


def test_two_tabs_do_not_mix(served, chromium):
    first = opened(served, chromium, f"limits/{NAME}.html#gamma=0.2&-show=overlap")
    second = opened(served, chromium, f"limits/{NAME}.html#gamma=0.9&-show=overlap")
    for watched, gamma in ((first, 0.2), (second, 0.9)):
        stated = float(dl.predict(NAME, gamma=gamma)["overlap"].value)
        assert float(watched.page.text_content("#said").rpartition("= ")[2]) == pytest.approx(stated, rel=1e-4)
        watched.is_quiet()
        watched.page.close()


def test_downloads_open(served, chromium, tmp_path):
    watched = opened(served, chromium, f"limits/{NAME}.html#gamma=0.7&-show=overlap")
    found = downloads(watched.page, tmp_path)
    assert json.loads(found["JSON"])["name"] == NAME
    # The script is about what the page shows, and not about the defaults.
    assert b"gamma=0.7" in found["Python"]
    watched.is_quiet()
    watched.page.close()


@pytest.mark.parametrize("place", ["", f"limits/{NAME}.html"])
def test_axe_finds_no_serious_fault(served, chromium, place):
    watched = Watched(chromium.new_page(), served.address)
    watched.page.goto(served.address + place)
    watched.page.wait_for_selector("body[data-settled]" if place else "body[data-ready='1']", timeout=120_000)
    watched.is_accessible()
    watched.page.close()
