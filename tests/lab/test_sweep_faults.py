"""Sweeps that are killed, hang, run out of room: nothing finished is lost, nothing counted twice, and a sentence."""

import functools
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import deeplimits as dl
import sweep_limits
from deeplimits.lab import driver as drivers
from deeplimits.lab.carrying import carry_out
from deeplimits.lab.driver import SweepStopped
from deeplimits.lab.lanes import Processes
from deeplimits.lab.store import Store, StoreError, driven
from lab.test_sweep import bits
from sweep_limits import HARM, Coin, Harmful, Slow, count_of_tasks

SCRIPT = Path(sweep_limits.__file__)
RUN = {"sizes": (4,), "samples": 16, "progress": False}
PATIENCE = 300.0


def rows(path):
    """The rows of results, each with what is different whenever it is computed."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as file:
        found = file.execute("SELECT key, outcome, digest, seconds, attempts FROM results").fetchall()
    file.close()
    return {row[0]: row for row in found}


def waited_for(condition, patience=PATIENCE):
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def started(path, tasks, workers):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SCRIPT.parent), *sys.path])}
    command = [sys.executable, str(SCRIPT), str(path), str(tasks), str(workers)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)


def killed_and_finished(path, tasks, kills, workers, seed=0):
    """Kill a driver with SIGKILL at random moments, then let one finish; what it had kept is never touched again."""
    chance = random.Random(seed)
    # In the first half: on a busy machine a driver that has little left is done before it is killed.
    marks = sorted(chance.sample(range(1, tasks // 2), kills))
    for mark in marks:
        process = started(path, tasks, workers)
        waited_for(functools.partial(reached, path, mark, process))
        time.sleep(chance.uniform(0.0, 0.05))
        process.kill()
        process.communicate()
        before = rows(path)
        assert mark <= len(before) < tasks
        yield before
    process = started(path, tasks, workers)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said


def reached(path, mark, process):
    return count(path) >= mark or process.poll() is not None


def count(path):
    try:
        return len(rows(path))
    except sqlite3.Error:
        return 0


def check_kills(tmp_path, tasks, kills, workers):
    path, whole = tmp_path / "killed.db", tmp_path / "whole.db"
    snapshots = list(killed_and_finished(path, tasks, kills, workers))
    count_of_tasks(whole, tasks, workers=0)
    after = rows(path)
    assert len(after) == len(rows(whole)) == tasks
    assert {row[1] for row in after.values()} == {"done"}
    for before in snapshots:
        assert all(after[key] == row for key, row in before.items())
    assert bits(path) == bits(whole)


def test_a_driver_killed_once(tmp_path):
    check_kills(tmp_path, tasks=400, kills=1, workers=0)


@pytest.mark.slow
def test_two_thousand_tasks_and_five_kills(tmp_path):
    check_kills(tmp_path, tasks=2000, kills=5, workers=2)


# Tasks that go wrong


def harmed(kind, path, **options):
    """A sweep over three levels, of which the middle one does harm."""
    options = {"workers": 1, **RUN, **options}
    return dl.sweep(Harmful, level=[1.0, HARM, 2.0], kind=kind, store=path, **options)


def check_harm(kind, words, tmp_path, **options):
    found = harmed(kind, tmp_path / "a.db", **options)
    assert [float(one.limit.level) for one in found] == [1.0, 2.0]
    (missing,) = found.missing
    assert missing.failed
    assert words in missing.sentence
    with Store(tmp_path / "a.db", reading=True) as store:
        status = store.status()
    assert (status.done, sum(status.failed.values())) == (2, 1)
    assert words in str(status)


def test_a_task_that_raises(tmp_path):
    check_harm("raises", "the sky is falling", tmp_path, workers=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "words", "options"),
    [
        ("raises", "the sky is falling", {}),
        ("hangs", "not done after", {"time_limit": 15.0}),
        ("grows", "GB of memory", {"memory": 1.5e9}),
        ("dies", "ended by signal 9 (out of memory?)", {}),
        ("crashes", "ended by signal 11", {}),
    ],
)
def test_a_task_that_goes_wrong_in_a_process(kind, words, options, tmp_path):
    check_harm(kind, words, tmp_path, **options)


class Fake(drivers.Lanes):
    """Lanes on which things go wrong at once: a cheap stand-in for processes that die."""

    def __init__(self, fault, lanes=2):
        self.fault, self.lanes, self.ran, self.closed = fault, lanes, [], None

    def count(self):
        return self.lanes

    def submit(self, lane, tasks):
        from concurrent.futures import Future

        future = Future()
        self.ran.append([(float(task.limit.level), task.size) for task in tasks])
        try:
            self.fault(self, tasks)
            future.set_result(carry_out(tasks))
        except Exception as error:
            future.set_exception(error)
        return future

    def lost(self):
        return getattr(self, "gone", "")

    def close(self, now):
        self.closed = now


LEVELS = np.linspace(1.0, 2.0, 12)


def test_a_bundle_whose_worker_dies_is_tried_one_by_one(tmp_path):
    """The culprit is found and tried twice; its companions are computed once more, alone, and counted once."""

    def fault(lanes, tasks):
        if any(float(task.limit.level) == 2.0 for task in tasks):
            raise drivers.WorkerDied("its process was ended by signal 9 (out of memory?)")

    lanes = Fake(fault)
    found = dl.sweep(Coin, level=LEVELS, store=tmp_path / "a.db", executor=lanes, **RUN)
    assert len(found) == 11
    assert "signal 9" in found.missing[0].sentence
    assert lanes.closed is False
    with Store(tmp_path / "a.db", reading=True) as store:
        assert store.status().done == 11
    # The next run tries again what failed, and nothing else.
    again = Fake(lambda lanes, tasks: None)
    assert len(dl.sweep(Coin, level=LEVELS, store=tmp_path / "a.db", executor=again, **RUN)) == 12
    assert again.ran == [[(2.0, 4)]]


@pytest.mark.parametrize("error", ["TaskTooLong", "TaskTooLarge"])
def test_a_task_that_is_ended_is_not_tried_again(error, tmp_path):
    def fault(lanes, tasks):
        if any(float(task.limit.level) == 2.0 for task in tasks):
            raise getattr(drivers, error)("not done after 15 seconds, and ended")

    lanes = Fake(fault)
    found = dl.sweep(Coin, level=LEVELS, executor=lanes, **RUN)
    assert len(found.missing) == 1
    alone = [bundle for bundle in lanes.ran if bundle == [(2.0, 4)]]
    assert len(alone) == 1


def test_workers_that_are_gone_end_the_sweep_with_a_sentence(tmp_path):
    def fault(lanes, tasks):
        if len(lanes.ran) > 3:
            lanes.gone = "the dask scheduler at tcp://somewhere is gone"
            raise OSError("no answer")

    with pytest.raises(SweepStopped, match=r"scheduler .* is gone; \d+ of 12 results are in .* goes on from there"):
        dl.sweep(Coin, level=LEVELS, store=tmp_path / "a.db", executor=Fake(fault), **RUN)
    before = rows(tmp_path / "a.db")
    assert 0 < len(before) < 12
    assert len(dl.sweep(Coin, level=LEVELS, store=tmp_path / "a.db", workers=0, **RUN)) == 12
    after = rows(tmp_path / "a.db")
    assert all(after[key] == row for key, row in before.items())


def test_a_full_disk_ends_the_sweep_with_a_sentence(tmp_path, monkeypatch):
    usual, calls = Store.put, []

    def put(self, results):
        calls.append(results)
        if len(calls) == 3:
            self._file.execute(f"PRAGMA max_page_count = {self._file.execute('PRAGMA page_count').fetchone()[0]}")
        usual(self, results)

    monkeypatch.setattr(Store, "put", put)
    monkeypatch.setattr(drivers, "TARGET", 0.0)
    with pytest.raises(StoreError, match="no room left"):
        dl.sweep(Coin, level=np.linspace(1, 2, 60), store=tmp_path / "a.db", executor=Fake(lambda *_: None), **RUN)
    monkeypatch.undo()
    before = rows(tmp_path / "a.db")
    assert 0 < len(before) < 60
    assert len(dl.sweep(Coin, level=np.linspace(1, 2, 60), store=tmp_path / "a.db", workers=0, **RUN)) == 60
    assert all(rows(tmp_path / "a.db")[key] == row for key, row in before.items())


@pytest.mark.slow
def test_a_disk_that_really_takes_no_more(tmp_path):
    """The largest size of a file that the system allows to a process, set in a process of its own."""
    path = tmp_path / "a.db"
    code = f"""
import resource, signal, sys
sys.path.insert(0, {str(SCRIPT.parent)!r})
import deeplimits as dl, numpy as np
from sweep_limits import Coin
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
dl.sweep(Coin, level=np.linspace(1, 2, 400), store={str(path)!r}, workers=0, sizes=(4,), samples=16, progress=False)
"""
    environment = {**os.environ, "DEEPLIMITS_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "what it holds is safe" in done.stderr
    before = rows(path)
    assert 0 < len(before) < 400
    assert len(dl.sweep(Coin, level=np.linspace(1, 2, 400), store=path, workers=0, **RUN)) == 400
    assert all(rows(path)[key] == row for key, row in before.items())
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 300_000


def test_a_clock_that_jumps_changes_nothing(tmp_path, monkeypatch):
    usual, jumps = time.time, iter(range(10**9))
    expected = dl.sweep(Coin, level=LEVELS, workers=0, **RUN)
    monkeypatch.setattr(time, "time", lambda: usual() + 4e8 * (-1) ** next(jumps))
    found = dl.sweep(Coin, level=LEVELS, store=tmp_path / "a.db", executor=Fake(lambda *_: None), **RUN)
    assert [one.outcome for one in found] == [one.outcome for one in expected]
    assert len(rows(tmp_path / "a.db")) == 12


def test_a_result_that_the_disk_has_damaged_is_computed_again(tmp_path):
    path = tmp_path / "a.db"
    dl.sweep(Coin, level=LEVELS, store=path, workers=0, **RUN)
    whole = bits(path)
    with sqlite3.connect(path) as file:
        file.execute("UPDATE arrays SET data = zeroblob(128) WHERE key = (SELECT min(key) FROM results) AND place = 0")
    file.close()
    assert bits(path) != whole
    dl.sweep(Coin, level=LEVELS, store=path, workers=0, **RUN)
    assert bits(path) == whole


def test_two_drivers_at_once(tmp_path):
    with Store(tmp_path / "a.db"), pytest.raises(StoreError, match="another sweep is writing"):
        dl.sweep(Coin, level=LEVELS, store=tmp_path / "a.db", workers=0, **RUN)


def test_an_interrupt_keeps_what_is_done(tmp_path):
    """As Ctrl-C does it; the second run does what is missing."""
    path = tmp_path / "a.db"

    def fault(lanes, tasks):
        if len(lanes.ran) == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(SweepStopped, match=r"interrupted; .* goes on from there") as raised:
        dl.sweep(Coin, level=LEVELS, store=path, executor=(lanes := Fake(fault)), **RUN)
    assert raised.value.interrupted
    assert lanes.closed is True
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert 0 < len(rows(path)) < 12
    assert len(dl.sweep(Coin, level=LEVELS, store=path, workers=0, **RUN)) == 12
    assert not driven(path)


@pytest.mark.slow
def test_an_interrupt_ends_processes_at_once(tmp_path):
    """Tasks of seconds are not waited for."""
    threading.Timer(20.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(SweepStopped, match="interrupted"):
        dl.sweep(Slow, level=np.linspace(1, 2, 400), store=tmp_path / "a.db", workers=2, progress=False, samples=40)
    assert time.monotonic() - began < 60


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_what_was_in_flight(tmp_path):
    """Any process of a worker, at any moment: all tasks are done in the end, each once."""
    path = tmp_path / "a.db"
    lanes = Processes(2)
    stop = threading.Event()

    def kill_now_and_then():
        chance = random.Random(1)
        while not stop.wait(chance.uniform(4.0, 8.0)):
            found = subprocess.run(
                ["pgrep", "-P", str(os.getpid()), "-f", "lab.worker"], capture_output=True, text=True
            )
            for process in found.stdout.split()[:1]:
                os.kill(int(process), signal.SIGKILL)

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        levels = np.linspace(1, 2, 40)
        found = dl.sweep(Slow, level=levels, store=path, executor=lanes, progress=False, samples=8)
    finally:
        stop.set()
        killer.join()
    # A task whose worker is killed twice in a row is given up, and the next run does it.
    found = dl.sweep(Slow, level=levels, store=path, workers=0, progress=False, samples=8)
    assert len(found) == len(rows(path)) == 40


@pytest.mark.slow
def test_workers_end_when_their_driver_is_killed(tmp_path):
    process = started(tmp_path / "a.db", 2000, 2)
    waited_for(lambda: count(tmp_path / "a.db") > 10)
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True)
    process.kill()
    process.communicate()
    left = [int(one) for one in children.stdout.split()]
    assert len(left) == 2
    waited_for(lambda: not any(Path(f"/proc/{one}").exists() for one in left), 30.0)
