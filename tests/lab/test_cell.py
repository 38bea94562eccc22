"""The explorer in a notebook's cell: the widget's own script in a browser, answered by the kernel's side of it."""

import queue
import time

import jax
import jax.numpy as jnp
import pytest
from jaxtyping import Array

import deeplimits as dl
from chromium import Watched, browser
from deeplimits.errors import DeeplimitsError
from deeplimits.explorer import notebook
from deeplimits.limit import Limit, Run, real, whole
from deeplimits.predictions import Value
from deeplimits.render.web import pages

NAME = "spiked-covariance-bbp"

HOST = """<div id="cell"></div><script type="module">
const { default: widget } = await import("data:text/javascript;charset=utf-8," + encodeURIComponent(window.esm));
let hear = () => {};
window.heard = (message) => hear(message);
widget.render({ el: document.getElementById("cell"), model: { get: (key) => window.traits[key], send: window.kernel,
  on: (_, callback) => { hear = callback; }, off: () => {} } });
</script>"""


class MeanOfSquares(Limit):
    r"""The mean of squares, a limit that no catalogue has.

    Setting     n Gaussians of standard deviation σ
    Limit       n → ∞
    Result      the mean of their squares is σ²
    Validity    always; size counts n
    Finite size exact in mean
    References
    """

    scale: Array = real(1.0, 0.1, 10.0, log=True, symbol=r"\sigma", doc="standard deviation")
    usual = Run(sizes=(10, 20, 40), samples=100)

    def theory(self):
        return {"square": Value(self.scale**2, label="mean of squares", symbol=r"\overline{x^2}")}

    def at_size(self, size):
        return {"n": whole(size, "n", self)}, self

    def simulate(self, key, *, n: int):
        return {"square": jnp.mean((self.scale * jax.random.normal(key, (n,))) ** 2)}


class Cell:
    """What stands for a widget of ipywidgets: it keeps what it is given, and a queue of what is sent to the page."""

    def __init__(self, title, page):
        self.traits = {"title": title, "page": page}
        self.sent = queue.Queue()

    def on_msg(self, callback):
        self.callback = callback

    def send(self, message):
        self.sent.put(message)

    def answer(self, message, wait=60.0):
        """Everything that is sent in answer to one message."""
        self.callback(self, message, [])
        found = []
        while not (found and found[-1].get("end")):
            found.append(self.sent.get(timeout=wait))
        return [one["found"] for one in found if "found" in one]


def cell(limit, **parameters):
    return notebook.Session(*notebook._shown(limit, parameters)).widget(Cell)


def test_the_kernel_answers_as_predict_and_simulate_do():
    made = cell(NAME, gamma=0.3)
    (found,) = made.answer({"id": 1, "what": "theory", "words": [["strength", "2.5"]]})
    stated = dl.predict(NAME, gamma=0.3, strength=2.5)
    for panel in found["panels"]:
        (number,) = [mark["value"] for mark in panel["picture"]["marks"] if mark["mark"] == "number"]
        assert number == pytest.approx(float(stated[panel["name"]].value), rel=1e-4)
    words = [["-size", "40"], ["-samples", "70"], ["-seed", "3"]]
    last = made.answer({"id": 2, "what": "simulate", "words": words})[-1]
    assert last["done"] == last["total"] == 70
    draws = dl.simulate(NAME, size=40, samples=70, seed=3, gamma=0.3)["eigenvalue"]
    assert last["measured"]["eigenvalue"]["y"] == pytest.approx(float(draws.mean()), rel=1e-4)


@pytest.mark.parametrize("words", [[["gamma", "much"]], [["gama", "1"]], [["-size", "-1"]], [["-size", "4"]]])
def test_what_cannot_be_answered_is_answered_with_a_sentence(words):
    made = cell(NAME)
    (found,) = made.answer({"id": 1, "what": "theory" if "size" not in words[0][0] else "simulate", "words": words})[
        -1:
    ]
    assert len(found["sentence"]) > 20


def test_a_limit_of_ones_own_is_a_citizen():
    made = cell(MeanOfSquares(scale=2.0))
    (found,) = made.answer({"id": 1, "what": "theory", "words": []})
    assert found["panels"][0]["picture"]["marks"][0]["value"] == 4
    assert '"made":"MeanOfSquares"' in made.traits["page"]
    last = made.answer({"id": 2, "what": "simulate", "words": [["-size", "10"], ["-samples", "60"]]})[-1]
    assert last["measured"]["square"]["low"] < 4 < last["measured"]["square"]["high"] + 1


@pytest.mark.parametrize(
    ("limit", "words"),
    [("nonsense", "nonsense"), ("trace-lemma", "not a limit"), (int, "not a limit"), (3, "not a limit")],
)
def test_only_limits_can_be_explored(limit, words):
    with pytest.raises(DeeplimitsError, match=words):
        dl.explore(limit)


def test_the_widget_is_made_of_anywidget():
    pytest.importorskip("anywidget", reason="the extra is not installed: pip install 'deeplimits[notebook]'")
    made = dl.explore(NAME, gamma=0.3)
    assert "iframe" in made._esm
    assert 'data-live="1"' in made.page


def test_a_cell_shows_the_controls_and_follows_them():
    made = cell(NAME)
    with browser() as chromium:
        watched = Watched(chromium.new_page(), "about:")
        page = watched.page
        page.expose_function("kernel", lambda message: made.callback(made, message, []))
        page.evaluate(
            "given => Object.assign(window, given)", {"esm": pages.script("widget.js"), "traits": made.traits}
        )
        page.evaluate("text => { document.open(); document.write(text); document.close(); }", HOST)
        page.wait_for_selector("iframe")
        frame = page.frame_locator("iframe")

        def until(condition):
            deadline = time.monotonic() + 60
            while not condition():
                assert time.monotonic() < deadline
                while not made.sent.empty():
                    page.evaluate("message => window.heard(message)", made.sent.get())
                page.wait_for_timeout(50)

        until(lambda: frame.locator("#others button").count() > 0)
        frame.locator("#others button", has_text="overlap").click()
        said = frame.locator("#said")
        number = lambda: float((said.text_content() or "").rpartition("= ")[2] or "nan")  # noqa: E731
        until(lambda: number() > 0)
        frame.locator("#p-gamma").focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        gamma = float(frame.locator("#p-gamma-box").input_value())
        stated = float(dl.predict(NAME, gamma=gamma)["overlap"].value)
        until(lambda: number() == pytest.approx(stated, rel=1e-4))
        before = frame.locator("#stage .simulation circle").count()
        frame.locator("#size").fill("40")
        frame.locator("#go").click()
        until(lambda: "40 of 40" in frame.locator("#progress").text_content())
        assert frame.locator("#stage .simulation circle").count() > before
        assert page.evaluate("document.querySelector('iframe').clientHeight") > 300
        watched.is_quiet()
