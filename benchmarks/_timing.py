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


def in_turns(
    ours: Callable[[], object], theirs: Callable[[], object], times: int = 3
) -> tuple[list[float], list[float]]:
    """Seconds of two calls, one after the other, after one of each that compiles."""
    now = clock()

    def taken(call: Callable[[], object]) -> float:
        begin = now()
        call()
        return now() - begin

    ours(), theirs()
    pairs = [(taken(ours), taken(theirs)) for _ in range(times)]
    return [one for one, _ in pairs], [other for _, other in pairs]
