"""How the command line ends: one line for what went wrong and the exit code that says so, never a traceback.

An interrupt ends the process from a thread that waits for it. Raised as `KeyboardInterrupt` it would arrive wherever
the main thread happens to be: in a callback of the garbage collector it is lost, and in one that compilation calls from
C++ nothing catches it and the process ends with a segmentation fault. Threads that compile must not be running, either,
while the interpreter takes itself apart.
"""

import codecs
import contextlib
import errno
import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from deeplimits.errors import DeeplimitsError, ParameterError
from deeplimits.render.letters import ascii_of

BAD_INPUT, INTERRUPTED = 1, 130


def guarded(command: Callable[[], int], debug: bool = False) -> int:
    """The exit code of a command; what goes wrong is said on standard error in one line."""
    _write_what_can_be_written()
    try:
        code = command()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        _discard_output()
        return 0
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            _discard_output()
        return _say(sentence(error), BAD_INPUT)


def sentence(error: Exception) -> str:
    """What went wrong, in one line.

    >>> sentence(FileNotFoundError(2, "No such file or directory", "cases.jsonl"))
    'cases.jsonl: no such file or directory'
    """
    if isinstance(error, DeeplimitsError):
        text = str(error)
    elif isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        text = f"{where}{error.strerror[0].lower()}{error.strerror[1:]}"
    elif isinstance(error, MemoryError):
        text = "there is not enough memory for this; take a smaller size"
    else:
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        text = f"{type(error).__name__}: {first}; --debug shows where"
    return " ".join(text.split())


def _say(text: str, code: int) -> int:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"deeplimits: {text}\n")
        sys.stderr.flush()
    return code


def _write_what_can_be_written() -> None:
    """On a terminal or in a pipe whose encoding has no Greek, no rules and no arrows, these are spelt out."""
    codecs.register_error("deeplimits.spelt", _spelt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "backslashreplace"):
            stream.reconfigure(errors="deeplimits.spelt")


def _spelt(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return ascii_of(error.object[error.start : error.end]), error.end


def _discard_output() -> None:
    """Nothing more can be written: what still waits in the buffer must not raise again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def ended_by_interrupts() -> Iterator[None]:
    """Inside, the first interrupt ends the process, at once and with exit code 130."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    usual = signal.signal(signal.SIGINT, lambda *_: None)
    # The signal's number is written here by the handler in C, whatever the interpreter is doing.
    before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=_end_when_told, args=(reading,), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGINT, usual)
        writing.close()
        watcher.join()
        reading.close()


def _end_when_told(told: socket.socket) -> None:
    if told.recv(1):
        with contextlib.suppress(OSError):
            os.write(2, b"\ndeeplimits: interrupted\n")
        os._exit(INTERRUPTED)


def check_output(path: str | Path, flag: str, folder: bool = False) -> None:
    """Refuse, before anything is computed, a file or folder that could not be written afterwards."""
    place = Path(path)
    why = ""
    above = next((one for one in place.absolute().parents if one.exists()), Path("/"))
    if folder and place.exists() and not place.is_dir():
        why = "it is a file; give a folder"
    elif not folder and place.is_dir():
        why = "it is a folder; give a file"
    elif not above.is_dir():
        why = f"{above} is a file"
    elif not folder and not place.parent.is_dir():
        why = f"there is no folder {place.parent}"
    elif not os.access(place if place.exists() else above, os.W_OK):
        why = "permission denied"
    if why:
        raise ParameterError(f"{flag} = {str(path)!r} cannot be written: {why}")
