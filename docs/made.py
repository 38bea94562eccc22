"""Pages that are made from the catalogue and from the doors when the documentation is built: a page of limits and a
page of the API for each room, the index of all names, the tables of prediction kinds; and links from names to them.

Rooms stand in the README's order, under the README's titles.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = {
    "models": "Definitions",
    "ensembles": "Finite systems",
    "numerics": "Numerics",
    "measure": "Measuring a network",
    "diagnosis": "Diagnosing a network",
    "gallery": "The gallery",
}
"""What is no room of theory, under its title."""
PAGES = {"measure": "measuring_a_network", "diagnosis": "diagnosing_a_network"}
"""The pages in docs/rooms that are not called like their room."""


def rooms() -> dict[str, str]:
    """The rooms of theory, name -> title, as the README lists them."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[([^\]]+)\]\(docs/rooms/(\w+)\.md\)", text, re.MULTILINE)
    return {name: title for title, name in listed}


def titles() -> dict[str, str]:
    """Every part of the house that has a page, name -> title."""
    return rooms() | PARTS


def write_rooms(app) -> None:
    """The list of the rooms' pages, for index.md."""
    pages = [f"rooms/{PAGES.get(room, room)}" for room in (*rooms(), *PAGES)]
    here = Path(__file__).parent
    there = [page for page in pages if (here / f"{page}.md").exists()]
    # Further pages, such as the one on reading a report.
    there += [
        page for page in sorted(f"rooms/{file.stem}" for file in (here / "rooms").glob("*.md")) if page not in there
    ]
    write(Path(app.srcdir), "_rooms.md", iter(["```{toctree}\n:caption: Rooms\n:maxdepth: 1\n", *there, "```"]))


def home(entry) -> str:
    """The room on whose page a name of the catalogue stands."""
    return entry.room if entry.room in titles() else "numerics"


def write(srcdir: Path, name: str, lines: Iterator[str]) -> None:
    """A page, untouched where it is as it was: what has not changed is not read again."""
    path, text = srcdir / name, "\n".join(lines) + "\n"
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_limits(app) -> None:
    """A page of limits for each room, and the table of all names."""
    from deeplimits.catalogue import catalogue

    found = {room: [entry for entry in catalogue() if home(entry) == room] for room in titles()}
    for room, entries in found.items():
        if entries:
            write(Path(app.srcdir), f"limits/{room}.md", page_of_limits(room, entries))
    write(Path(app.srcdir), "_names.md", table_of_names(found))


def table_of_names(found) -> Iterator[str]:
    """What limits.md includes."""
    for room, entries in found.items():
        if entries:
            yield f"## {titles()[room]}\n\n| name | leads to a | states |\n| --- | --- | --- |"
            for entry in entries:
                yield f"| [{entry.name}](limits/{room}.md#{entry.name}) | {entry.role} | {cell(entry.title)} |"
            yield ""
    yield "```{toctree}\n:hidden:\n"
    yield from (f"{titles()[room]} <limits/{room}>" for room, entries in found.items() if entries)
    yield "```"


def page_of_limits(room, entries) -> Iterator[str]:
    """Everything that the names of a room state, with how each is called and what computes it in general."""
    from deeplimits.catalogue import ROOMS

    guide = Path(__file__).parent / "rooms" / f"{PAGES.get(room, room)}.md"
    also = f"[The room, with examples](../rooms/{guide.stem}.md), " if guide.exists() else ""
    yield f"# {titles()[room]}: the catalogue\n"
    yield f"{ROOMS.get(room, titles()[room])[0].upper()}{ROOMS.get(room, titles()[room])[1:]}."
    yield f"\n{also}[{'its' if also else 'Its'} functions](../api/{room}.md).\n"
    for entry in entries:
        yield from section(entry)


def section(entry) -> Iterator[str]:
    from deeplimits.catalogue import catalogue

    about = entry.about
    yield f"## {entry.name}\n\n{entry.about.statement.title}.\n"
    owner = catalogue.name_of_target(entry.target)
    if entry.role == "result":
        yield f'The result `{entry.result}` of `{owner}`: `dl.predict(dl.limits.{about.name}())["{entry.result}"]`.\n'
        yield from computed_by(about, entry.result)
        return
    statement = about.statement.without("Computed by").partition("\n>>>")[0].strip("\n")
    if statement:
        yield f"```text\n{statement}\n```\n"
    if about.parameters:
        yield "| parameter | default | allowed | meaning |\n| --- | --- | --- | --- |"
        for name, parameter in about.parameters.items():
            yield f"| `{name}` | {parameter.default} | {cell(parameter.allowed)} | {cell(parameter.doc)} |"
        yield ""
    if entry.role == "function":
        yield f"{reference(f'{about.module}.{about.name}')}`{about.signature.removeprefix(about.name)}`\n"
        return
    yield f"```python\nimport deeplimits as dl\n\ndl.compare(dl.limits.{about.name}())\n```\n"
    yield f"```sh\ndeeplimits compare {entry.name} --plot figure.png\n```\n"
    yield from computed_by(about, "")
    yield from figures_of(entry.name)


def figures_of(name: str) -> Iterator[str]:
    """The figures of the gallery that show a limit: links, and the picture of the first that was made for the page."""
    from deeplimits import gallery

    figures = [figure for figure in gallery.entries() if name in figure.limits]
    if figures:
        yield "In the gallery: " + ", ".join(f"[{figure.title}](#{figure.stem})" for figure in figures) + ".\n"
    drawn = [one for one in figures if (Path(__file__).parent / "gallery" / f"{one.stem}.png").exists()]
    for figure in drawn[:1]:
        yield f"![{figure.title}](../gallery/{figure.stem}.png)\n"


def computed_by(about, result: str) -> Iterator[str]:
    """The functions that compute it in general."""
    from deeplimits import index

    parts = about.parts_of(result)
    if parts:
        yield "Computed by\n"
    for part in parts:
        full = f"{part.module}.{part.name}"
        said = reference(full) if part.called in index.offered() else f"`{part.called}`"
        yield f"- {said}: {part.title}"
    yield "" if parts else f"Computed by a formula of one line, in `{about.module}`.\n"
    if about.statement.references:
        keys = ", ".join(about.statement.references)
        yield f"{{cite:p}}`{keys.replace(' ', '')}`\n"


def reference(full: str) -> str:
    """A link to a function's place in the API, under the short name that one calls it by."""
    short = full.removeprefix("deeplimits.").removeprefix("theory.")
    return f"{{py:func}}`{short} <{full}>`"


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def write_doors(app) -> None:
    """A page for each room: what its door offers, functions, classes, and the rooms inside it."""
    seen: set[type] = set()
    for room, title in titles().items():
        door = f"deeplimits.{room}" if room in PARTS else f"deeplimits.theory.{room}"
        write(Path(app.srcdir), f"api/{room}.md", (f"# {title}: the API\n", *describe(door, seen)))
    links = (f"{title} <api/{room}>" for room, title in titles().items())
    write(Path(app.srcdir), "_doors.md", ("```{toctree}\n:maxdepth: 1\n", *links, "```"))


def describe(door: str, seen: set[type]) -> Iterator[str]:
    """The entries of a door, then those of the rooms inside it, each under the path by which it is imported."""
    module = importlib.import_module(door)
    members = {name: getattr(module, name) for name in module.__all__}
    inside = [name for name, member in members.items() if inspect.ismodule(member)]
    yield f"## {door}\n\n{inspect.getdoc(module)}\n\n```{{eval-rst}}"
    for name, member in members.items():
        if isinstance(member, type):
            # A type that several doors offer is in the index once.
            yield f".. autoclass:: {door}.{name}\n   :no-members:" + "\n   :no-index:" * (member in seen) + "\n"
            seen.add(member)
        elif name not in inside:
            yield f".. autofunction:: {door}.{name}\n"
    yield "```\n"
    below = {part.name for part in pkgutil.iter_modules(module.__path__) if part.ispkg}
    beside = [name for name in sorted(below - set(inside)) if offers(f"{door}.{name}")]
    for name in (*inside, *beside):
        yield from describe(f"{door}.{name}", seen)


def offers(package: str) -> bool:
    """Whether a package is a room, with a door of its own."""
    return hasattr(importlib.import_module(package), "__all__")


def write_kinds(app) -> None:
    """The table of prediction kinds, and the documentation of each, from the classes that are registered."""
    from deeplimits.predictions import KINDS as registered

    rows = ["| kind | a simulation returns | compared by | drawn as |", "| --- | --- | --- | --- |"]
    rows += [f"| `{name}` | {kind.returns} | {kind.compared} | {kind.drawn} |" for name, kind in registered.items()]
    write(Path(app.srcdir), "_kinds.md", iter(rows))
    classes = "".join(f".. autoclass:: deeplimits.predictions.{name}\n   :no-members:\n" for name in registered)
    write(Path(app.srcdir), "_kind_classes.md", iter([f"```{{eval-rst}}\n{classes}```"]))


def link_names(app, doctree, docname: str) -> None:
    """A name of the catalogue, or `room.function`, written as code in a sentence, leads to where it is explained."""
    from docutils import nodes

    from deeplimits import index
    from deeplimits.catalogue import catalogue

    offered = index.offered()
    for literal in list(doctree.findall(nodes.literal)):
        said = literal.astext()
        if isinstance(literal.parent, nodes.reference) or next_of_kin(literal, nodes.title):
            continue
        if said in catalogue:
            where, anchor = f"limits/{home(catalogue.entry(said))}", said
        elif said in offered and said.count(".") == 1:
            part = offered[said]
            room = part.module.removeprefix("deeplimits.").removeprefix("theory.").partition(".")[0]
            where, anchor = f"api/{room}", f"{part.module}.{part.name}"
        else:
            continue
        link = nodes.reference("", "", internal=True, refuri=f"{app.builder.get_relative_uri(docname, where)}#{anchor}")
        literal.replace_self(link)
        link += literal


def next_of_kin(node, kind) -> bool:
    """Whether a node stands inside one of this kind."""
    while node is not None and not isinstance(node, kind):
        node = node.parent
    return node is not None
