"""Long campaigns of tests: in shards, resumed where they were interrupted, failures told as they happen.

`make test-slow` passes `--slowly` and, where given, `--shard 2/4`. What passed is noted in `.slow/`, under a digest of
all sources, so that a second run does only what is missing; a change of any source begins anew. At its end

    python tests/slowly.py

says what is left, and where nothing is writes the record of this complete run, docs/_slow.md.
"""

import collections
import hashlib
import json
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTES = ROOT / ".slow"
RECORD = ROOT / "docs" / "_slow.md"


def pytest_addoption(parser):
    group = parser.getgroup("long campaigns")
    group.addoption("--slowly", action="store_true", help="note what passed, and skip what has passed before")
    group.addoption("--shard", default="1/1", help="run part K of N, as 2/4")


def pytest_configure(config):
    if config.getoption("slowly") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Notebook(config), "notebook")


@pytest.hookimpl(trylast=True)  # what -m leaves is all there is
def pytest_collection_modifyitems(config, items):
    part, parts = (int(number) for number in config.getoption("shard").split("/"))
    if not 1 <= part <= parts:
        raise pytest.UsageError(f"--shard {part}/{parts} is not allowed; it must be K/N with 1 <= K <= N")
    done = passed() if config.getoption("slowly") else {}
    if config.getoption("slowly") and not (config.option.keyword or config.option.file_or_dir):
        NOTES.mkdir(exist_ok=True)
        everything().write_text("\n".join(sorted(bare(item.nodeid) for item in items)), encoding="utf-8")
    chosen = [
        item for item in items if zlib.crc32(group(item).encode()) % parts == part - 1 and bare(item.nodeid) not in done
    ]
    left = set(items) - set(chosen)
    if left:
        config.hook.pytest_deselected(items=list(left))
        items[:] = chosen


def bare(nodeid: str) -> str:
    """The name of a test without the group that pytest-xdist adds to it."""
    return nodeid.rpartition("]@")[0] + "]" if "]@" in nodeid else nodeid.partition("@")[0]


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
        self.seconds = collections.Counter()

    def pytest_runtest_logreport(self, report):
        nodeid = bare(report.nodeid)
        self.seconds[nodeid] += report.duration  # what tests share is made in the setup of the first
        if report.failed:
            reporter = self.config.pluginmanager.get_plugin("terminalreporter")
            if reporter is not None:
                reporter.write_line(f"\nFAILED {nodeid} ({report.duration:.0f} s)\n{report.longreprtext[-1500:]}")
        elif report.when == "call" or report.skipped:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"passed": nodeid, "seconds": round(self.seconds[nodeid], 2)}) + "\n")


def passed() -> dict[str, float]:
    """What has passed, or was skipped, and in how many seconds."""
    path = notes()
    lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {line["passed"]: line["seconds"] for line in lines}


def everything() -> Path:
    """The list of all slow tests, whatever the shard."""
    return NOTES / f"{digest()}.tests"


def notes() -> Path:
    return NOTES / f"{digest()}.jsonl"


def digest() -> str:
    """A digest of everything that a test's outcome may depend on in this folder."""
    found = hashlib.sha256((ROOT / "pyproject.toml").read_bytes())
    for folder in ("src", "tests", "docs"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path != RECORD and path.suffix in (".py", ".md", ".bib", ".css") and path.is_file():
                found.update(str(path.relative_to(ROOT)).encode())
                found.update(path.read_bytes())
    return found.hexdigest()[:16]


def record() -> int:
    """Say what is left; write the record where nothing is."""
    done, names = passed(), everything()
    wanted = names.read_text(encoding="utf-8").splitlines() if names.exists() else []
    left = [name for name in wanted if name not in done]
    if left or not wanted:
        some = "".join(f"\n   {name}" for name in left[:20])
        print(f"== {len(wanted) - len(left)} of {len(wanted)} slow tests have passed on these sources; left:{some}")  # noqa: T201
        return 0
    seconds = sum(done[name] for name in wanted)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "src", "tests"], cwd=ROOT, check=False).returncode
    RECORD.write_text(
        f"The last complete run of `make test-slow`: {time.strftime('%d %B %Y')}, commit {commit.strip() or 'unknown'}"
        f"{' with changes' if changed else ''}; all {len(wanted)} tests passed, in {seconds:.0f} s of one core.\n",
        encoding="utf-8",
    )
    print(f"== all {len(wanted)} slow tests have passed; the record is in {RECORD.relative_to(ROOT)}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(record())
