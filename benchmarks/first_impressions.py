"""What a user waits for first, with nothing compiled: every limit's cold `predict` and `compare`, and its parts.

    python -m benchmarks first_impressions                  the whole catalogue, some minutes on a free machine
    python -m benchmarks.first_impressions NAME [NAME...]   some limits

Each command runs in a fresh interpreter without a compilation cache; wall time counts from the start of Python to the
printed answer. The parts are those that JAX reports (tracing, lowering, compiling; with several threads they overlap,
so that they may add up to more than the wall time). Floors in the same run: starting Python, importing JAX and equinox.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

COLD = Path(__file__).with_name("_cold.py")


def seconds(code: str, repeats: int = 3) -> float:
    """Median wall time of a fresh interpreter running `code`."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def cold(verb: str, name: str) -> dict | None:
    """One command on one limit in a fresh interpreter: wall seconds, and the parts it reports of itself; None, with a
    line, where it fails."""
    environment = {**os.environ, "DEEPLIMITS_CACHE": "0"}
    start = time.perf_counter()
    done = subprocess.run([sys.executable, str(COLD), verb, name], env=environment, capture_output=True, text=True)
    wall = time.perf_counter() - start
    if done.returncode:
        print(f"\n{verb} {name} failed: {(done.stderr.strip() or 'no word').splitlines()[-1][:300]}")
        return None
    return {"name": name, "wall": wall, **json.loads(done.stdout.splitlines()[-1])}


def table(verb: str, names: list[str]) -> None:
    found = []
    for number, name in enumerate(names):
        if (one := cold(verb, name)) is not None:
            found.append(one)
        print(f"\r{verb}: {number + 1} of {len(names)}", end="", file=sys.stderr, flush=True)
    if not found:
        return
    walls = sorted(one["wall"] for one in found)
    print(f"\ncold {verb}, {len(found)} limits: median {statistics.median(walls):.1f} s, largest {walls[-1]:.1f} s")
    print(f"{'the slowest':<40} wall   cpu  import  trace  lower  compile  programs")
    for one in sorted(found, key=lambda one: -one["wall"])[:10]:
        print(
            f"{one['name']:<40} {one['wall']:4.1f} {one['cpu']:5.1f} {one['import']:7.1f} {one['trace']:6.1f} "
            f"{one['lower']:6.1f} {one['compile']:8.1f} {one['programs']:9d}"
        )


def main() -> None:
    import deeplimits as dl

    named = [name for name in sys.argv[1:] if name in dl.catalogue]
    bare, jax = seconds("pass"), seconds("import jax, equinox")
    listing = seconds("from deeplimits.cli import main; main(['list'])")
    loaded = seconds("import deeplimits.lab.compare")
    print(f"deeplimits list      {listing:6.3f} s   {listing / bare:5.1f} x starting Python ({bare:.3f} s)")
    print(f"importing the lab    {loaded:6.3f} s   {loaded / jax:5.1f} x importing JAX and equinox ({jax:.3f} s)")
    names = named or [entry.name for entry in dl.catalogue.limits()]
    table("predict", names)
    table("compare", names)


if __name__ == "__main__":
    main()
