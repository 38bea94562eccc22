"""The plan of the house: every module of the package."""

from pathlib import Path

import deeplimits

ROOT = Path(deeplimits.__file__).parent


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__")
