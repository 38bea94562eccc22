"""How fast the explorer's theory follows a slider: what its worker takes for one move, once warm.

    python -m benchmarks explorer                    the whole catalogue
    python -m benchmarks.explorer NAME [NAME...]     some limits

A move asks for the theory at a fresh value of a slider, dense along every axis, as the page draws it. The first moves
of each limit compile and are not counted. Wall time is what a reader waits for on a free machine; CPU time says the
same on a busy one. What takes longer than 100 ms makes the page say that it is working.
"""

import json
import statistics
import sys
import time

WARM, TIMED = 2, 7
SOON = 100.0
"""Milliseconds within which a line follows a move as if it were held."""


def moves(limit, sliders: list) -> list[tuple[str, float]]:
    """Values along the sliders in turn, none of them twice."""
    found = []
    for index in range(WARM + TIMED):
        slider = sliders[index % len(sliders)]
        value = slider.values(2 * (WARM + TIMED) + 3, slider.low)[2 * index + 1]
        found.append((slider.name, value))
    return found


def of_limit(entry) -> tuple[float, float] | None:
    """Median milliseconds of a move: wall and CPU; None where a limit has no slider, or no move was answered."""
    from deeplimits.errors import DeeplimitsError
    from deeplimits.explorer import work
    from deeplimits.explorer.requests import Asked
    from deeplimits.lab import scan

    limit = scan.shown_at(entry.load())
    sliders = [one for one in scan.sliders(limit).values() if not one.whole]
    if not sliders:
        return None
    work.theory(Asked(entry, ()))
    wall, cpu = [], []
    for index, (name, value) in enumerate(moves(limit, sliders)):
        began = time.perf_counter(), time.process_time()
        try:
            json.dumps(work.theory(Asked(entry, ((name, value),))))
        except DeeplimitsError:
            continue  # the theorem does not reach there
        if index >= WARM:
            wall.append(1000 * (time.perf_counter() - began[0]))
            cpu.append(1000 * (time.process_time() - began[1]))
    return (statistics.median(wall), statistics.median(cpu)) if wall else None


def main() -> None:
    import deeplimits as dl

    entries = list(dl.catalogue.limits())
    named = [entry for entry in entries if entry.name in sys.argv[1:]]
    found = {}
    for entry in named or entries:
        took = of_limit(entry)
        if took is not None:
            found[entry.name] = took
            # At once, so that a run that is cut short has said what it found.
            print(f"  {entry.name:<45} wall {took[0]:8.1f} ms, CPU {took[1]:8.1f} ms", file=sys.stderr, flush=True)
    if not found:
        sys.exit("no limit that was asked for has a slider")
    for number, kind in enumerate(("wall", "CPU")):
        times = sorted(took[number] for took in found.values())
        late = sum(one > SOON for one in times)
        median = statistics.median(times)
        print(f"\n{kind} time of a move, {len(times)} limits: median {median:.1f} ms; {late} above {SOON:.0f} ms")
        for name, took in sorted(found.items(), key=lambda one: -one[1][number])[:10]:
            print(f"  {name:<45} {took[number]:8.1f} ms")


if __name__ == "__main__":
    main()
