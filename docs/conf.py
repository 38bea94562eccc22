"""Sphinx configuration."""

import re
import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import made  # noqa: E402  (it stands beside this file)

project = "deeplimits"
author = "The deeplimits authors"
release = metadata.version("deeplimits")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinxcontrib.bibtex",
]
bibtex_reference_style = "author_year"
bibtex_bibfiles = ["../src/deeplimits/references.bib"]
default_role = "code"
html_theme = "furo"
html_static_path = ["_static"]
html_title = "deeplimits"
html_css_files = ["wide.css"]
exclude_patterns = ["_build", "_names.md", "_rooms.md", "_doors.md", "_kinds.md", "_kind_classes.md", "_slow.md"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": False}
autodoc_class_signature = "separated"


def keep_columns(app, what, name, obj, options, lines):
    """Docstrings are plain text with formulas: bars are bars, and aligned statements stay as they are written."""
    lines[:] = [line if line.lstrip().startswith((">>>", "...")) else line.replace("|", "\\|") for line in lines]
    # m_† is no reference to a target named m.
    lines[:] = [re.sub(r"(?<=\w)_(?=[^\w\s`])", r"\\_", line) if ">>>" not in line else line for line in lines]
    starts = [i for i, line in enumerate(lines) if line[:12].rstrip() in ("Setting", "Limit", "Result")]
    if starts:
        first = starts[0]
        end = next((i for i in range(first, len(lines)) if lines[i].startswith(">>>")), len(lines))
        statement = [line.replace("\\|", "|").replace("\\_", "_") for line in lines[first:end]]
        lines[first:end] = ["::", "", *("    " + line for line in statement), ""]


<<<<<<< HEAD
def write_limits(app):
    """One section per name of the catalogue, from the source."""
    from deeplimits.catalogue import catalogue

    parts = []
    for entry in catalogue():
        statement = entry.about.statement.doc.partition("\n")[2].strip("\n")
        parts.append(f"## {entry.name}\n\n{entry.about.statement.title}.\n")
        if entry.role == "result":
            owner = catalogue.name_of_target(entry.target)
            parts.append(f"The result `{entry.result}` of [{owner}](#{owner}).\n")
            continue
        parts.append(f"```text\n{statement}\n```\n")
        if entry.about.parameters:
            parts.append("| parameter | default | allowed | meaning |\n| --- | --- | --- | --- |")
            for name, parameter in entry.about.parameters.items():
                parts.append(f"| `{name}` | {parameter.default} | {parameter.allowed} | {parameter.doc} |")
            parts.append("")
            parts.append(f"`dl.predict(dl.limits.{entry.about.name}())`, `deeplimits compare {entry.name}`\n")
        if entry.role == "function":
            parts.append(f"`{entry.about.module}.{entry.about.signature}`\n")
    (Path(app.srcdir) / "_limits.md").write_text("\n".join(parts), encoding="utf-8")


DOORS = {
    "deeplimits.theory": "Theory",
    "deeplimits.models": "Definitions",
    "deeplimits.ensembles": "Finite systems",
    "deeplimits.measure": "Measurements",
    "deeplimits.diagnosis": "Diagnosis",
    "deeplimits.numerics": "Numerics",
}


def write_doors(app):
    """What every room offers, from its door: functions, classes, and the rooms inside it."""
    parts = [part for door, title in DOORS.items() for part in (f"## {title}\n", *describe(door))]
    (Path(app.srcdir) / "_doors.md").write_text("\n".join(parts), encoding="utf-8")


def describe(door):
    """The entries of a door, then those of the rooms inside it, each under the path by which it is imported."""
    module = importlib.import_module(door)
    members = {name: getattr(module, name) for name in module.__all__}
    rooms = [name for name, member in members.items() if inspect.ismodule(member)]
    yield f"### {door}\n\n{inspect.getdoc(module)}\n\n```{{eval-rst}}"
    for name, member in members.items():
        if isinstance(member, type):
            yield f".. autoclass:: {door}.{name}\n   :no-members:"
        elif name not in rooms:
            yield f".. autofunction:: {door}.{name}"
    yield "```\n"
    for name in rooms:
        yield from describe(f"{door}.{name}")


def write_kinds(app):
    """The table of prediction kinds, and the documentation of each, from the classes that are registered."""
    from deeplimits.predictions import KINDS

    rows = ["| kind | a simulation returns | compared by | drawn as |", "| --- | --- | --- | --- |"]
    rows += [f"| `{name}` | {kind.returns} | {kind.compared} | {kind.drawn} |" for name, kind in KINDS.items()]
    (Path(app.srcdir) / "_kinds.md").write_text("\n".join(rows) + "\n", encoding="utf-8")
    classes = "".join(f".. autoclass:: deeplimits.predictions.{name}\n   :no-members:\n" for name in KINDS)
    (Path(app.srcdir) / "_kind_classes.md").write_text(f"```{{eval-rst}}\n{classes}```\n", encoding="utf-8")


def write_gallery(app):
    """The page of all figures, with the images and summaries that `make gallery` keeps."""
    from deeplimits import gallery

    gallery.write_page(Path(app.srcdir) / "gallery.md", Path(app.srcdir) / "gallery")


def setup(app):
    app.connect("builder-inited", write_gallery)
    app.connect("builder-inited", write_kinds)
    app.connect("builder-inited", write_doors)
    app.connect("builder-inited", write_limits)
=======
def setup(app):
    app.connect("builder-inited", made.write_kinds)
    app.connect("builder-inited", made.write_rooms)
    app.connect("builder-inited", made.write_doors)
    app.connect("builder-inited", made.write_limits)
    app.connect("doctree-resolved", made.link_names)
>>>>>>> w3-docs
    app.connect("autodoc-process-docstring", keep_columns)
