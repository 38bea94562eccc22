"""Run every benchmark of this folder, or those named on the command line: `python -m benchmarks [NAME...]`.

What they find goes to benchmarks/results.json, docs/benchmarks.md and the table of the README; each benchmark that is
run takes the place of its former rows. `python -m benchmarks --page` writes the page again and runs nothing.
"""

import importlib
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

from benchmarks import _page, _report

HERE = Path(__file__).parent


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--page"]
    every = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
    if unknown := [word for word in words if word not in every]:
        sys.exit(f"there is no benchmark {unknown[0]!r}; there are {', '.join(every)}")
    names = words or ([] if "--page" in sys.argv else every)
    failed = [name for name in names if not run(name)]
    _page.write()
    results = _report.read()
    for device, found in results.items():
        shown = {name: one for name, one in found.items() if not words or name in words}
        if shown:
            print(f"\n{device}: {_report.machines(shown)}\n\n{_report.table(shown)}")
    if failed:
        sys.exit(f"not finished: {', '.join(failed)}; their former rows stand")


def run(name: str) -> bool:
    """Run one benchmark and keep what it finds; one that fails does not stop the others."""
    print(f"== {name}", flush=True)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "found.jsonl"
        os.environ[_report.LOG] = str(log)
        given, sys.argv = sys.argv, sys.argv[:1]
        try:
            importlib.import_module(f"benchmarks.{name}").main()
        except (Exception, SystemExit):
            traceback.print_exc()
            return False
        finally:
            sys.argv = given
            del os.environ[_report.LOG]
        _report.merge(name, log, time.perf_counter() - began)
    return True


if __name__ == "__main__":
    main()
