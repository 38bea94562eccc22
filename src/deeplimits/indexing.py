"""Making the index: `python -m deeplimits.indexing`, after a docstring or a parameter changed."""

import importlib
import json
from pathlib import Path

from deeplimits.catalogue import FUNCTIONS
from deeplimits.index import Record
from deeplimits.limit import Limit


def build() -> str:
    """The index made anew, by importing everything."""
    targets = []
    for path in sorted(Path(__file__).with_name("limits").glob("*/*.py")):
        module = importlib.import_module(f"deeplimits.limits.{path.parent.name}.{path.stem}")
        own = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]
        targets += [f"{module.__name__}:{one.__qualname__}" for one in own if issubclass(one, Limit)]
    targets += [f"deeplimits.{target}" for target in FUNCTIONS.values()]
    made = [Record.of_target(target).to_json() for target in targets]
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("index.json").write_text(build(), encoding="utf-8")
