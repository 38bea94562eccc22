"""What benchmarks find, in one place: ratios with their spread, growth with size, as JSON, a table and a page.

A benchmark calls `compare` for every pair of times and `grow` for every point of a cost over a size. Both say a line
and keep it; `python -m benchmarks` writes all of them to benchmarks/results.json, and from there docs/benchmarks.md,
its figure and the table of the README.
"""

import datetime
import json
import os
import platform
import statistics
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
LOG = "DEEPLIMITS_BENCHMARK_LOG"
"""Names the file that keeps what is found, also by processes that a benchmark starts."""


def compare(
    benchmark: str, what: str, peer: str, ours: Sequence[float], theirs: Sequence[float], *,
    size: float | None = None, of: str = "", note: str = "",
) -> None:  # fmt: skip
    """Seconds of deeplimits and of a peer, turn by turn: the ratio is theirs to ours, above one where we are faster."""
    ratios = [one / own for own, one in zip(ours, theirs, strict=True)]
    row = {
        "benchmark": benchmark, "what": what, "size": size, "of": of, "peer": peer, "note": note,
        "seconds": statistics.median(ours), "ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios),
        "turns": len(ratios),
    }  # fmt: skip
    _keep("rows", row)
    print(f"  -> {_named(row)}: {_ratio(row)} of {peer}", flush=True)


def grow(benchmark: str, what: str, of: str, size: float, *, seconds: float, memory: float | None = None) -> None:
    """A point of the cost over a size: seconds, and where it was measured the peak of memory in GB."""
    _keep("points", {"benchmark": benchmark, "what": what, "of": of, "size": size, "seconds": seconds, "GB": memory})


def _keep(kind: str, found: dict[str, Any]) -> None:
    if LOG in os.environ:
        with open(os.environ[LOG], "a") as file:
            file.write(json.dumps({"kind": kind, **found}) + "\n")


def machine() -> dict[str, Any]:
    """Where and when this was measured, and how busy the machine was."""
    import jax

    device = jax.devices()[0]
    cores = os.cpu_count()
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        processor = names[0] if names else processor
    return {
        "device": "CPU" if device.platform == "cpu" else device.device_kind,
        "machine": f"{processor}, {cores} cores",
        "load": round(os.getloadavg()[0], 1),
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "jax": jax.__version__,
    }


def read() -> dict[str, Any]:
    """All results: by device, by benchmark."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def merge(benchmark: str, log: Path, seconds: float) -> None:
    """Put what one benchmark has found in the place of what it had found before."""
    where = machine()
    found: dict[str, Any] = {"rows": [], "points": []}
    for line in log.read_text().splitlines() if log.exists() else ():
        entry = json.loads(line)
        found[entry.pop("kind")].append(entry)
    if not any(found.values()):
        return
    everything = read()
    everything.setdefault(where["device"], {})[benchmark] = {**where, "seconds": round(seconds), **found}
    RESULTS.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")


def table(results: dict[str, Any], *, short: bool = False) -> str:
    """Ratios as a table in Markdown; the short one has, of each task and peer, the largest size."""
    lines = ["| task | peer | ratio | spread |", "|---|---|---|---|"]
    for name in sorted(results):
        rows = results[name]["rows"]
        if short:
            largest = {(row["what"], row["peer"]): row for row in sorted(rows, key=lambda row: row["size"] or 0)}
            rows = list(largest.values())
        for row in rows:
            spread = f"{row['low']:.2g} to {row['high']:.2g}" if row["turns"] > 1 else "one turn"
            note = f" ({row['note']})" if row["note"] else ""
            lines.append(f"| {_named(row)}{note} | {row['peer']} | {_ratio(row)} | {spread} |")
    return "\n".join(lines)


def _named(row: dict[str, Any]) -> str:
    size = "" if row["size"] is None else f", {row['of'] or 'n'} = {row['size']:,.6g}"
    return f"{row['what']}{size}"


def _ratio(row: dict[str, Any]) -> str:
    return f"{row['ratio']:.2f}" if row["ratio"] < 10 else f"{row['ratio']:,.0f}"


def machines(results: dict[str, Any]) -> str:
    """Where the rows were measured, in a sentence."""
    found = list(results.values())
    load = max(one["load"] for one in found)
    busy = (
        f" The machine had other work at the time (a load of up to {load:g}); times are those of the processor and not "
        "of the clock on the wall, and the two sides of a ratio ran in turns."
        if load > 1.5
        else ""
    )
    if found[0]["device"] != "CPU":
        busy = " Times are those of the clock on the wall."
    dates = sorted({one["date"] for one in found})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    said = f"{found[0]['machine']}, JAX {found[0]['jax']}, {when}.{busy}"
    return textwrap.fill(said, 120)
