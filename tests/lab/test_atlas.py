"""The atlas: complete whatever its limits do, offline, and not run again without need."""

import html
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor

import pytest

import bad_limits
import deeplimits.atlas
from deeplimits.atlas import build
from deeplimits.catalogue import Entry
from deeplimits.cli import main
from deeplimits.lab import task as tasks
from deeplimits.lab.task import Task
from deeplimits.lab.workers import Workers

PLANTED = {
    "raises": ("Raises", "a slip in the theory"),
    "hangs": ("Hangs", "not done after"),
    "aborts": ("Aborts", "signal 6"),
    "is-killed": ("IsKilled", "signal 9"),
    "is-not-a-number": ("IsNotANumber", "not a number"),
}


def planted(name, cls):
    return Entry(name, "limit", f"bad_limits:{cls}")


def test_bad_limits_cost_nothing_but_themselves(tmp_path):
    entries = [planted(name, cls) for name, (cls, _) in PLANTED.items()]
    entries = [planted("good", "Good"), *entries, planted("is-wrong", "IsWrong"), planted("good-too", "Good")]
    with Workers(2, time_limit=20.0) as workers:
        found = build(tmp_path, entries=entries, executor=workers)
    assert found.disagreeing == ["is-wrong"]
    assert found.failed == list(PLANTED)
    text = found.page.read_text()
    for name, (_, words) in PLANTED.items():
        document = json.loads((tmp_path / "data" / f"{name}.json").read_text())
        assert words in document["failure"]
        card = text[text.index(f'id="{name}"') :].split("</li>")[0]
        for place in (card, (tmp_path / "limits" / f"{name}.html").read_text()):
            assert "Could not be run" in place
            assert words in html.unescape(place)
    for name in ("good", "good-too", "is-wrong"):
        assert (tmp_path / "data" / f"{name}.js").read_text().startswith(f'deeplimits.limits["{name}"]={{')
        assert f'id="{name}"' in text
    # Opens from disk: nothing is fetched from anywhere.
    for page in tmp_path.rglob("*.html"):
        assert not re.findall(r'(?:src|href)="(?:https?:|/)', page.read_text())

    # A second run does what is missing: here, what failed.
    asked = []

    class Recorder(Executor):
        def submit(self, function, entry, size):
            asked.append(entry.name)
            return workers_again.submit(function, planted(entry.name, "Good"), size)

    with Workers(1) as workers_again:
        again = build(tmp_path, entries=entries, executor=Recorder())
    assert asked == list(PLANTED)
    assert again.failed == []


@pytest.mark.parametrize(
    ("found", "code"), [({}, 0), ({"disagreeing": ["a"], "failed": ["b"]}, 2), ({"failed": ["b"]}, 3)]
)
def test_the_exit_code_tells(monkeypatch, tmp_path, found, code, capsys):
    built = deeplimits.atlas.Atlas(tmp_path / "index.html", **found)
    monkeypatch.setattr(deeplimits.atlas, "build", lambda *_: built)
    assert main(["atlas", "--out", str(tmp_path)]) == code
    said = capsys.readouterr().out
    assert all(name in said for names in found.values() for name in names)


# A process that a shell started in the background ignores Ctrl-C, and so do its children unless they are told.
INTERRUPTED = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path[:0] = {path!r}
from deeplimits.atlas import build
from deeplimits.catalogue import Entry
entries = [Entry("good", "limit", "bad_limits:Good"), Entry("hangs", "limit", "bad_limits:Hangs")]
print(build({out!r}, entries=entries))
"""


def test_ctrl_c_stops_soon_and_leaves_a_page(tmp_path):
    code = INTERRUPTED.format(path=sys.path, out=str(tmp_path))
    running = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    while not (tmp_path / "data" / "good.json").exists():
        assert running.poll() is None
        time.sleep(0.05)
    os.kill(running.pid, signal.SIGINT)
    try:
        said, _ = running.communicate(timeout=30)
    finally:
        running.kill()
    assert "interrupted=True" in said
    text = (tmp_path / "index.html").read_text()
    assert 'id="good"' in text
    assert "1 are still to be run" in text


KILLED = """
import sys
sys.path[:0] = {path!r}
from deeplimits.atlas import build
from deeplimits.catalogue import Entry
build({out!r}, entries=[Entry("good", "limit", "bad_limits:Good"), Entry("hangs", "limit", "bad_limits:Hangs")])
"""


def test_killed_half_way_it_goes_on_with_what_is_missing(tmp_path):
    running = subprocess.Popen([sys.executable, "-c", KILLED.format(path=sys.path, out=str(tmp_path))])
    while not (tmp_path / "data" / "good.json").exists():
        assert running.poll() is None
        time.sleep(0.05)
    running.kill()
    running.wait()
    asked = []

    class Recorder(Executor):
        def submit(self, function, entry, size):
            asked.append(entry.name)
            return workers.submit(function, planted(entry.name, "Good"), size)

    with Workers(1) as workers:
        entries = [planted("good", "Good"), planted("hangs", "Hangs")]
        found = build(tmp_path, entries=entries, executor=Recorder())
    assert asked == ["hangs"]
    assert not found.failed
    assert not list(tmp_path.rglob(".*"))  # nothing half written is left


def test_keys_follow_code_parameters_size_seeds_and_versions(monkeypatch):
    base = Task(bad_limits.Good(), 4, 100)
    variants = [
        Task(bad_limits.Good(shift=2.0), 4, 100),
        Task(bad_limits.IsWrong(), 4, 100),
        Task(bad_limits.Good(), 8, 100),
        Task(bad_limits.Good(), 4, 50),
        Task(bad_limits.Good(), 4, 100, seed=1),
        Task(bad_limits.Good(), 4, 100, first=100),
    ]
    assert Task(bad_limits.Good(), 4, 100).key == base.key
    assert len({task.key for task in (base, *variants)}) == 1 + len(variants)
    before = base.key
    monkeypatch.setattr(tasks, "surroundings", lambda: {"jax": "another"})
    assert base.key != before


def test_keys_follow_everything_a_limit_imports(monkeypatch):
    from deeplimits.limits.bias.hard_margin_predictor import HardMarginPredictor

    before = Task(HardMarginPredictor(), 4, 100).key
    original = tasks._source
    changed = "deeplimits.theory.bias.cover_count"
    monkeypatch.setattr(tasks, "_source", lambda name: original(name) + (b"#" if name == changed else b""))
    tasks.code_of.cache_clear()
    assert Task(HardMarginPredictor(), 4, 100).key != before
    tasks.code_of.cache_clear()


def test_blocks_of_seeds_are_the_same_systems():
    whole = Task(bad_limits.Good(), 4, 20, seed=3)
    blocks = whole.blocks(8)
    assert [(block.first, block.samples) for block in blocks] == [(0, 8), (8, 8), (16, 4)]
