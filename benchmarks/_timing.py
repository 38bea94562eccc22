"""How long calls take."""

import time
from collections.abc import Callable


def clock() -> Callable[[], float]:
    """Seconds of the processor on a CPU, which other work on the machine changes little; else those on the wall."""
    import jax

    return time.process_time if jax.default_backend() == "cpu" else time.perf_counter


def durations(call: Callable[[], object], times: int = 3) -> list[float]:
    """Seconds of several calls, after one that compiles."""
    now = clock()
    call()
    found = []
    for _ in range(times):
        begin = now()
        call()
        found.append(now() - begin)
    return found
