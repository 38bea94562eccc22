"""What a user waits for first: `deeplimits list`, the import, the first prediction, the next one.

Each is compared with its floor in the same run: starting Python, importing JAX, running a compiled program.
"""

import statistics
import subprocess
import sys
import time


def seconds(code: str, repeats: int = 5) -> float:
    """Median wall time of a fresh interpreter running `code`."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    bare, jax = seconds("pass"), seconds("import jax, equinox")
    listing = seconds("from deeplimits.cli import main; main(['list'])")
    load = "import deeplimits as dl; limit = dl.limits.MarchenkoPastur()"
    loaded, first = seconds(load), seconds(f"{load}; dl.predict(limit)")
    print(f"deeplimits list      {listing:6.3f} s   {listing / bare:5.1f} x starting Python ({bare:.3f} s)")
    print(f"a limit, constructed {loaded:6.3f} s   {loaded / jax:5.1f} x importing JAX and equinox ({jax:.3f} s)")
    print(f"first prediction     {first:6.3f} s   {first / jax:5.1f} x importing JAX and equinox")

    import deeplimits as dl

    limit = dl.limits.MarchenkoPastur()
    dl.predict(limit)
    start = time.perf_counter()
    for gamma in (0.3, 0.4, 0.6, 0.7, 0.8):
        dl.predict(limit.replace(gamma=gamma))
    again = (time.perf_counter() - start) / 5
    print(f"next prediction      {again:6.4f} s   {again / (first - loaded):5.3f} x the first one")


if __name__ == "__main__":
    main()
