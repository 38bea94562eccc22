"""`Workers`: an executor of processes that may hang, grow or die without taking anything else along.

`concurrent.futures.ProcessPoolExecutor` gives up every waiting task when one process dies, and cannot end a task that
hangs. Here each process serves one task at a time, over a pipe of its own:

- one that dies costs its task, whose future gets `WorkerDied`, and is replaced;
- one that exceeds the time or the memory allowed to a task is ended, and its future gets `TaskTooLong` or
  `TaskTooLarge`;
- one that has grown is replaced before its next task. Compiled programs stay in memory, about 850 mappings for a limit,
  and Linux gives a process 65,530.

Processes are plain interpreters (`python -m deeplimits.lab.worker`), so that a script needs no `__main__` guard. Each
uses one thread: the parallelism is in the number of processes.
"""

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

from deeplimits.errors import DeeplimitsError, ParameterError

MAPPINGS = 8_000
"""Memory mappings beyond which a process is replaced after its task."""
MEMORY = 1.2e9
"""Bytes beyond which a process is replaced after its task."""
CEILING = 8e9
"""Bytes beyond which a process is ended in the middle of its task."""
WATCH = 0.2  # seconds between two looks at a running process

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "DEEPLIMITS_THREADS": "1",
}


class WorkerDied(DeeplimitsError):
    """The process that ran a task ended without an answer."""


class TaskTooLong(DeeplimitsError):
    """A task ran past its time limit and was ended."""


class TaskTooLarge(DeeplimitsError):
    """A task took more memory than it may and was ended."""


class Workers(Executor):
    """As many processes as there are cores, or `count` of them; `time_limit` is in seconds a task.

    >>> import math
    >>> with Workers(1) as workers:
    ...     workers.submit(math.factorial, 5).result()
    120
    """

    def __init__(
        self,
        count: int | None = None,
        *,
        time_limit: float | None = None,
        mappings: float = MAPPINGS,
        memory: float = MEMORY,
        ceiling: float = CEILING,
    ):
        if os.name != "posix":
            raise DeeplimitsError("worker processes need Linux or macOS; run the limits one by one with `compare`")
        count = cores() if count is None else count
        if count < 1:
            raise ParameterError(f"workers = {count} is not allowed; it must be a whole number of at least 1")
        self.time_limit, self.mappings, self.memory, self.ceiling = time_limit, mappings, memory, ceiling
        self.largest = Growth(0, 0.0)
        """The most mappings that any process had at the end of a task, and the most bytes it was seen with."""
        self._queue: queue.SimpleQueue[tuple[Future, bytes] | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._closed = False
        self._ended: set[Future] = set()
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable, /, *args: Any, **kwargs: Any) -> Future:
        if self._closed:
            raise RuntimeError("these workers were shut down")
        future: Future = Future()
        self._queue.put((future, pickle.dumps((fn, args, kwargs))))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            with contextlib.suppress(queue.Empty):
                while True:
                    waiting = self._queue.get_nowait()
                    if waiting is not None:
                        waiting[0].cancel()
        if not self._closed:
            self._closed = True
            for _ in self._threads:
                self._queue.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def end(self, future: Future) -> None:
        """Give up one task: if it waits it is not begun, if it runs its process is ended and replaced."""
        if not future.cancel() and not future.done():
            self._ended.add(future)

    def stop(self) -> None:
        """End all processes now, with whatever they are doing."""
        self._stopped.set()
        self.shutdown(wait=True, cancel_futures=True)

    def _serve(self) -> None:
        """One thread of this process looks after one worker process at a time."""
        worker = None
        while (waiting := self._queue.get()) is not None:
            future, payload = waiting
            if self._stopped.is_set() or not future.set_running_or_notify_cancel():
                future.cancel()
                continue
            try:
                worker = worker or _Process()
                good, answer, growth = self._answer(worker, payload, future)
            except DeeplimitsError as error:
                worker.end() if worker else None
                worker = None
                future.set_exception(error)
                continue
            self.largest = self.largest.largest(growth)
            if growth.mappings > self.mappings or growth.memory > self.memory:
                worker.end()
                worker = None
            self._ended.discard(future)
            if good:
                future.set_result(answer)
            else:
                future.set_exception(answer)
        if worker:
            worker.end()

    def _answer(self, worker: "_Process", payload: bytes, future: Future) -> tuple[bool, Any, "Growth"]:
        """Have a process run a task, and watch it meanwhile."""
        began = time.monotonic()
        worker.send(payload)
        while not worker.connection.poll(WATCH):
            if self._stopped.is_set():
                raise WorkerDied("stopped before it was done")
            if future in self._ended:
                self._ended.discard(future)
                raise WorkerDied("given up before it was done")
            if not worker.alive():
                raise WorkerDied(worker.epitaph())
            if self.time_limit is not None and time.monotonic() - began > self.time_limit:
                raise TaskTooLong(f"not done after {self.time_limit:g} seconds, and ended")
            memory = resident(worker.process.pid)
            self.largest = self.largest.largest(Growth(0, memory))
            if memory > self.ceiling:
                raise TaskTooLarge(
                    f"took {memory / 1e9:.1f} GB of memory, more than {self.ceiling / 1e9:g}, and was ended"
                )
        return worker.receive()


class _Process:
    """One interpreter at the other end of a pipe."""

    def __init__(self):
        self.connection, theirs = Pipe()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "deeplimits.lab.worker", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                env={**os.environ, **ONE_THREAD, "XLA_FLAGS": _one_thread_flags()},
                stdin=subprocess.DEVNULL,
            )
        self.send(pickle.dumps(sys.path))

    def send(self, payload: bytes) -> None:
        try:
            self.connection.send_bytes(payload)
        except OSError:
            raise WorkerDied(self.epitaph()) from None

    def receive(self) -> tuple[bool, Any, "Growth"]:
        try:
            return pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            raise WorkerDied(self.epitaph()) from None

    def alive(self) -> bool:
        return self.process.poll() is None

    def epitaph(self) -> str:
        """How the process ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        code = self.process.returncode
        if code is None or code >= 0:
            return f"its process ended with exit code {code}"
        hint = " (out of memory?)" if code == -9 else ""
        return f"its process was ended by signal {-code}{hint}"

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()


class Growth:
    """How large a process has become."""

    def __init__(self, mappings: int, memory: float):
        self.mappings, self.memory = mappings, memory

    @classmethod
    def of_this_process(cls) -> "Growth":
        try:
            with open("/proc/self/maps", "rb") as maps:
                return cls(sum(1 for _ in maps), resident(os.getpid()))
        except OSError:  # no /proc: the peak must do
            import resource

            unit = 1 if sys.platform == "darwin" else 1024
            return cls(0, float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit))

    def __str__(self) -> str:
        return f"{self.memory / 1e9:.2f} GB, {self.mappings:,} mappings"

    def largest(self, other: "Growth") -> "Growth":
        return Growth(max(self.mappings, other.mappings), max(self.memory, other.memory))


def resident(process: int) -> float:
    """Bytes of memory that a process holds; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * float(os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, IndexError):
        return 0.0


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _one_thread_flags() -> str:
    flag = "--xla_cpu_multi_thread_eigen=false"
    given = os.environ.get("XLA_FLAGS", "")
    return given if "xla_cpu_multi_thread_eigen" in given else f"{given} {flag}".strip()
