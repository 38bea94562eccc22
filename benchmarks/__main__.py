"""Run every benchmark of this folder, or those named on the command line: `python -m benchmarks [NAME...]`."""

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    names = sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
    for name in names:
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
