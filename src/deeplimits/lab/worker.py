"""The other end of `Workers`: `python -m deeplimits.lab.worker FD` answers tasks that arrive on a pipe."""

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

from deeplimits.errors import DeeplimitsError


def main() -> None:
    # Ctrl-C reaches the whole group of processes; the one that drives decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    connection = Connection(int(sys.argv[1]))
    sys.path[:] = pickle.loads(connection.recv_bytes())
    while True:
        try:
            payload = connection.recv_bytes()
        except (EOFError, OSError):
            return
        connection.send_bytes(_answer(payload))


def _end_with(parent: int) -> None:
    """End this process when the one that drives it has ended, even if it was killed and a task is running."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _answer(payload: bytes) -> bytes:
    from deeplimits.lab.workers import Growth

    good, answer = _outcome(payload)
    growth = Growth.of_this_process()
    try:
        return pickle.dumps((good, answer, growth))
    except Exception as error:
        said = f"its answer could not be sent back: {error}" if good else f"{type(answer).__name__}: {answer}"
        return pickle.dumps((False, DeeplimitsError(said), growth))


def _outcome(payload: bytes) -> tuple[bool, Any]:
    try:
        function, arguments, keywords = pickle.loads(payload)
        return True, function(*arguments, **keywords)
    except BaseException as error:
        error.add_note("".join(traceback.format_exception(error)))
        return False, error.with_traceback(None)


if __name__ == "__main__":
    main()
