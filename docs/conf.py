"""Sphinx configuration."""

import re
import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import made

project = "deeplimits"
author = "The deeplimits authors"
release = metadata.version("deeplimits")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinxcontrib.bibtex",
    "formulas",
]
html_math_renderer = "mathml"
myst_update_mathjax = False
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
autodoc_class_signature = "mixed"


def keep_columns(app, what, name, obj, options, lines):
    """Docstrings are plain text with formulas: bars are bars, and aligned statements stay as they are written."""
    lines[:] = [line if line.lstrip().startswith((">>>", "...")) else line.replace("|", "\\|") for line in lines]
    # Arguments written *names are no emphasis that begins there.
    lines[:] = [line.replace("*", "\\*") if line.count("*") == 1 and ">>>" not in line else line for line in lines]
    # m_† is no reference to a target named m.
    lines[:] = [re.sub(r"(?<=\w)_(?=[^\w\s`])", r"\\_", line) if ">>>" not in line else line for line in lines]
    starts = [i for i, line in enumerate(lines) if line[:12].rstrip() in ("Setting", "Limit", "Result")]
    if starts:
        first = starts[0]
        end = next((i for i in range(first, len(lines)) if lines[i].startswith(">>>")), len(lines))
        statement = [line.replace("\\|", "|").replace("\\_", "_").replace("\\*", "*") for line in lines[first:end]]
        lines[first:end] = ["::", "", *("    " + line for line in statement), ""]


def write_gallery(app):
    """The page of all figures, with the images and summaries that `make gallery` keeps."""
    from deeplimits import gallery

    gallery.write_page(Path(app.srcdir) / "gallery.md", Path(app.srcdir) / "gallery")


def setup(app):
    app.connect("builder-inited", write_gallery)
    app.connect("builder-inited", made.write_kinds)
    app.connect("builder-inited", made.write_rooms)
    app.connect("builder-inited", made.write_doors)
    app.connect("builder-inited", made.write_limits)
    app.connect("doctree-resolved", made.link_names)
    app.connect("autodoc-process-docstring", keep_columns)
