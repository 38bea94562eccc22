"""The code on the pages of the documentation runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


ROOMS = [f"docs/rooms/{path.name}" for path in sorted((ROOT / "docs/rooms").glob("*.md"))]


@pytest.mark.parametrize("page", ["docs/tour.md", "docs/sweeps.md", "CONTRIBUTING.md", *ROOMS])
def test_code_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Written to a file and imported, as a reader would do it.
    text = "\n".join(blocks(ROOT / page))
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
