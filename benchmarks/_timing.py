"""How long calls take."""

import time
from collections.abc import Callable


def durations(call: Callable[[], object], times: int = 3) -> list[float]:
    """Seconds of several calls, after one that compiles."""
    call()
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return found
