"""Making the index: `python -m deeplimits.indexing`, after a docstring or a parameter changed."""

import ast
import builtins
import doctest
import importlib
import json
import pkgutil
import sys
import types
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deeplimits import gallery
from deeplimits.catalogue import FUNCTIONS
from deeplimits.index import Part, PictureOf, Record, class_name
from deeplimits.lab.diagrams import DIAGRAMS
from deeplimits.statement import Statement


def build() -> str:
    """The index made anew, by importing everything."""
    targets = [
        f"deeplimits.limits.{path.parent.name}.{path.stem}:{class_name(path.stem.replace('_', '-'))}"
        for path in sorted(Path(__file__).with_name("limits").glob("*/[!_]*.py"))
    ]
    targets += [f"deeplimits.{target}" for target in FUNCTIONS.values()]
    made = {
        "names": [Record.of_target(target).to_json() for target in targets],
        "doors": [asdict(part) for door in doors() for part in offers(door)],
        "pictures": [asdict(picture) for picture in pictures()],
    }
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def pictures() -> list[PictureOf]:
    """The figures of the gallery, and the ready diagrams of sweeps, each with the limits that it shows."""
    found = [PictureOf(one.command, one.title, one.limits) for one in gallery.entries()]
    diagrams = DIAGRAMS.items()
    return found + [PictureOf(f"deeplimits sweep --diagram {name}", one.title, (one.limit,)) for name, one in diagrams]


def doors() -> list[Any]:
    """The rooms of theory, `measure` and `ensembles`, with the rooms inside them."""
    tops = [importlib.import_module(f"deeplimits.{top}") for top in ("theory", "measure", "ensembles")]
    found = [pkgutil.walk_packages(top.__path__, f"{top.__name__}.") for top in tops]
    names = [info.name for infos in found for info in infos if info.ispkg]
    rooms = [importlib.import_module(name) for name in ("deeplimits.measure", "deeplimits.ensembles", *names)]
    return [room for room in rooms if "__all__" in vars(room)]


def offers(door: Any) -> list[Part]:
    """What a door offers to be called, each with lines that run; not the types of answers, which have none."""
    found = [(name, getattr(door, name)) for name in dir(door)]
    made = [
        Part(name, door.__name__, Statement.of(one).title, (), example(door, name, one))
        for name, one in found
        if callable(one)
    ]
    return [part for part in made if part.example]


def example(door: Any, name: str, documented: Any) -> tuple[str, ...]:
    """The example of a docstring with all that it needs imported; nothing where there is none."""
    lines = [one.source.rstrip() for one in doctest.DocTestParser().get_examples(documented.__doc__ or "")]
    if not lines:
        return ()
    tree = ast.parse("\n".join(lines))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    made = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    made |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    made |= {alias.asname or alias.name for node in ast.walk(tree) for alias in getattr(node, "names", ())
             if isinstance(alias, ast.alias)}  # fmt: skip
    home = vars(sys.modules[documented.__module__])
    wanted = {name} | {one for one in used - made if one not in vars(builtins)}
    modules, from_door, others = [], [], []
    for one in sorted(wanted):
        value = home.get(one, getattr(door, one, None))
        if isinstance(value, types.ModuleType):
            modules.append(f"import {value.__name__}" + ("" if value.__name__ == one else f" as {one}"))
        elif one in dir(door):
            from_door.append(one)
        elif hasattr(value, "__module__"):
            others.append(f"from {value.__module__} import {one}")
    return (*modules, *others, f"from {door.__name__} import {', '.join(from_door)}", *"\n".join(lines).split("\n"))


if __name__ == "__main__":
    Path(__file__).with_name("index.json").write_text(build(), encoding="utf-8")
