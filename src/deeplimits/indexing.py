"""Making the index: `python -m deeplimits.indexing`, after a docstring or a parameter changed."""

import json
from pathlib import Path

from deeplimits.catalogue import FUNCTIONS
from deeplimits.index import Record, class_name


def build() -> str:
    """The index made anew, by importing everything."""
    targets = [
        f"deeplimits.limits.{path.parent.name}.{path.stem}:{class_name(path.stem.replace('_', '-'))}"
        for path in sorted(Path(__file__).with_name("limits").glob("*/[!_]*.py"))
    ]
    targets += [f"deeplimits.{target}" for target in FUNCTIONS.values()]
    made = [Record.of_target(target).to_json() for target in targets]
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("index.json").write_text(build(), encoding="utf-8")
