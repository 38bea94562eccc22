"""Worker processes: they answer, grow, hang and die, one task at a time."""

import os
import signal
import threading
import time

import pytest

from deeplimits.errors import DeeplimitsError, ParameterError
from deeplimits.lab.workers import TaskTooLarge, TaskTooLong, WorkerDied, Workers

SOON = 60.0


@pytest.fixture(scope="module")
def workers():
    with Workers(1) as found:
        yield found


def test_they_answer_and_pass_errors_on(workers):
    assert workers.submit(sum, [1, 2, 3]).result(SOON) == 6
    with pytest.raises(ZeroDivisionError):
        workers.submit(divmod, 1, 0).result(SOON)
    with pytest.raises(DeeplimitsError, match="could not be sent back"):
        workers.submit(threading.Lock).result(SOON)


def test_a_process_is_kept_while_it_is_small(workers):
    assert workers.submit(os.getpid).result(SOON) == workers.submit(os.getpid).result(SOON) != os.getpid()


def test_each_uses_one_thread(workers):
    assert workers.submit(os.getenv, "OPENBLAS_NUM_THREADS").result(SOON) == "1"
    assert "multi_thread_eigen=false" in workers.submit(os.getenv, "XLA_FLAGS").result(SOON)


@pytest.mark.parametrize("limits", [{"mappings": 1}, {"memory": 1.0}])
def test_a_process_that_has_grown_is_replaced(limits):
    with Workers(1, **limits) as workers:
        assert workers.submit(os.getpid).result(SOON) != workers.submit(os.getpid).result(SOON)
        assert workers.largest.memory > 1e6


@pytest.mark.parametrize(("call", "words"), [((os.abort,), "signal 6"), ((os._exit, 7), "exit code 7")])
def test_a_process_that_dies_costs_one_task(workers, call, words):
    with pytest.raises(WorkerDied, match=words):
        workers.submit(*call).result(SOON)
    assert workers.submit(abs, -1).result(SOON) == 1


def test_a_process_killed_from_outside_costs_one_task(workers):
    pid = workers.submit(os.getpid).result(SOON)
    waiting = workers.submit(time.sleep, 100)
    while not waiting.running():
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkerDied, match="signal 9"):
        waiting.result(SOON)
    assert workers.submit(abs, -1).result(SOON) == 1


def test_a_task_that_hangs_is_ended():
    with Workers(1, time_limit=1.0) as workers:
        with pytest.raises(TaskTooLong, match="not done after 1 seconds"):
            workers.submit(time.sleep, 100).result(SOON)
        assert workers.submit(abs, -1).result(SOON) == 1


def test_a_task_that_takes_too_much_memory_is_ended():
    with Workers(1, ceiling=1e6) as workers, pytest.raises(TaskTooLarge, match="GB of memory"):
        workers.submit(time.sleep, 100).result(SOON)


def test_stopping_ends_what_runs_and_cancels_what_waits():
    workers = Workers(1)
    running, waiting = workers.submit(time.sleep, 100), workers.submit(abs, -1)
    while not running.running():
        time.sleep(0.01)
    workers.stop()
    assert waiting.cancelled()
    with pytest.raises(WorkerDied, match="stopped"):
        running.result(SOON)


def test_no_workers_are_refused():
    with pytest.raises(ParameterError, match="workers = 0"):
        Workers(0)


def test_the_folder_of_compiled_programs_is_bounded(tmp_path):
    from deeplimits.lab import compilation

    folder = tmp_path / "jax"
    folder.mkdir()
    for number in range(6):
        (folder / f"program{number}").write_bytes(bytes(100))
        os.utime(folder / f"program{number}", (1000 + number, 1000 + number))
    os.utime(folder / "program0", (5000, 1000))  # made first, used last
    compilation.bound(folder, 250)
    assert sorted(path.name for path in folder.glob("program*")) == ["program0", "program5"]
    (folder / "program6").write_bytes(bytes(1000))
    compilation.bound(folder, 250)  # looked at a moment ago
    assert (folder / "program6").exists()
    os.utime(folder / ".looked-after", (0, 0))
    compilation.bound(folder, 250)
    assert not list(folder.glob("program*"))
    compilation.bound(tmp_path / "nowhere" / "jax", 250)
    assert (tmp_path / "nowhere" / "jax").is_dir()
