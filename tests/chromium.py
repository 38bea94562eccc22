"""A real Chromium for tests of pages, where one is installed: started without network, every request looked at."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EXECUTABLE = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run",
    "--disable-default-apps", "--disable-sync", "--no-default-browser-check",
)  # fmt: skip


AXE = Path(os.environ.get("DEEPLIMITS_AXE", Path(sys.prefix) / "axe")) / "node_modules" / "axe-core" / "axe.min.js"
"""Where `make test` puts axe-core."""
FAULTS = """axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).slice(0, 3).join(" ")}`))"""


class Watched:
    """A page, and everything that it complained of or asked for elsewhere."""

    def __init__(self, page, allowed: str):
        self.page, self.complaints, self.asked = page, [], []
        page.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._look(request.url, allowed))

    def _look(self, url: str, allowed: str) -> None:
        if not url.startswith((allowed, "data:", "blob:")):
            self.asked.append(url)

    def is_quiet(self) -> None:
        assert not self.complaints
        assert not self.asked, "a request left the page"

    def is_accessible(self) -> None:
        """No serious fault that axe-core finds, with everything unfolded."""
        if not AXE.is_file():
            pytest.skip("axe-core is not installed (npm install --prefix .venv/axe axe-core)")
        self.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        assert self.page.evaluate(FAULTS) == []


def downloads(page, folder: Path) -> dict[str, bytes]:
    """Everything that a limit's page offers to save, opened: figure, data and script."""
    found = {}
    for word in ("SVG", "PNG", "CSV", "JSON", "Python"):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=f"Download {word}").click()
        path = folder / waiting.value.suggested_filename
        waiting.value.save_as(path)
        found[word] = path.read_bytes()
    assert found["PNG"].startswith(b"\x89PNG")
    assert b"var(--" not in found["SVG"]
    assert found["SVG"].startswith(b"<svg")
    assert len(found["CSV"].splitlines()) > 50
    compile(found["Python"], "script", "exec")
    return found


@contextlib.contextmanager
def browser() -> Iterator:
    """The browser; the test is skipped, with a sentence, where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright's Python package is not installed")
    if EXECUTABLE is None:
        pytest.skip("there is no Chromium on this machine (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=EXECUTABLE, args=list(FLAGS))
        try:
            yield found
        finally:
            found.close()
