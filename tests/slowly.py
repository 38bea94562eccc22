"""Long campaigns of tests: in shards, resumed where they were interrupted, failures told as they happen.

`make test-slow` passes `--slowly` and, where given, `--shard 2/4`. What passed is noted in `.slow/`, under a digest of
all sources, so that a second run does only what is missing; a change of any source begins anew.
"""

import hashlib
import json
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTES = ROOT / ".slow"


def pytest_addoption(parser):
    group = parser.getgroup("long campaigns")
    group.addoption("--slowly", action="store_true", help="note what passed, and skip what has passed before")
    group.addoption("--shard", default="1/1", help="run part K of N, as 2/4")


def pytest_configure(config):
    if config.getoption("slowly") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Notebook(config), "notebook")


def pytest_collection_modifyitems(config, items):
    part, parts = (int(number) for number in config.getoption("shard").split("/"))
    if not 1 <= part <= parts:
        raise pytest.UsageError(f"--shard {part}/{parts} is not allowed; it must be K/N with 1 <= K <= N")
    done = passed() if config.getoption("slowly") else set()
    chosen = [
        item for item in items if zlib.crc32(group(item).encode()) % parts == part - 1 and item.nodeid not in done
    ]
    left = set(items) - set(chosen)
    if left:
        config.hook.pytest_deselected(items=list(left))
        items[:] = chosen


def group(item) -> str:
    """What is run together, because it shares simulations: the tests of one limit, or else of one file."""
    mark = item.get_closest_marker("xdist_group")
    return mark.args[0] if mark else str(item.path.relative_to(ROOT))


class Notebook:
    """Writes down what passed, as it passes, and tells failures at once."""

    def __init__(self, config):
        self.config = config
        self.path = notes()
        self.path.parent.mkdir(exist_ok=True)

    def pytest_runtest_logreport(self, report):
        nodeid = report.nodeid.rsplit("@", 1)[0] if "@" in report.nodeid else report.nodeid
        if report.failed:
            reporter = self.config.pluginmanager.get_plugin("terminalreporter")
            if reporter is not None:
                reporter.write_line(f"\nFAILED {nodeid} ({report.duration:.0f} s)\n{report.longreprtext[-1500:]}")
        elif report.when == "call":
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"passed": nodeid, "seconds": report.duration}) + "\n")


def passed() -> set[str]:
    path = notes()
    return {json.loads(line)["passed"] for line in path.read_text().splitlines()} if path.exists() else set()


def notes() -> Path:
    return NOTES / f"{digest()}.jsonl"


def digest() -> str:
    """A digest of everything that a test's outcome may depend on in this folder."""
    found = hashlib.sha256((ROOT / "pyproject.toml").read_bytes())
    for folder in ("src", "tests", "docs"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".md", ".bib", ".css") and path.is_file():
                found.update(str(path.relative_to(ROOT)).encode())
                found.update(path.read_bytes())
    return found.hexdigest()[:16]
