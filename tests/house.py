"""The plan of the house, every module of the package; and its command line."""

from pathlib import Path

import deeplimits
from deeplimits.cli import main

ROOT = Path(deeplimits.__file__).parent


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__")


def run_command(capsys, *arguments):
    """A command in this process: its exit code, and what it wrote to either stream."""
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    shown = capsys.readouterr()
    return code, shown.out, shown.err
