"""A real Chromium for tests of pages, where one is installed: started without network, every request looked at."""

import contextlib
import shutil
from collections.abc import Iterator

import pytest

EXECUTABLE = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run",
    "--disable-default-apps", "--disable-sync", "--no-default-browser-check",
)  # fmt: skip


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
