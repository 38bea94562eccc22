"""docs/benchmarks.md, its figure, and the table of the README, from benchmarks/results.json."""

import importlib.util
import itertools
import re
from pathlib import Path
from typing import Any

from benchmarks import _report

ROOT = Path(__file__).resolve().parent.parent
PAGE, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
FIGURE = ROOT / "docs" / "_static" / "cost-growth.png"
UNITS = (("seconds", "time", "seconds"), ("GB", "memory", "GB at the peak of the process"))
BEGIN, END = "<!-- benchmarks: written by `make bench` -->", "<!-- end of benchmarks -->"

HEAD = """# Benchmarks

`make bench` runs everything here beside the libraries that people use otherwise, each of them in an environment of its
own, and writes this page; `python -m benchmarks NAME` runs one part and renews its rows. A peer that cannot be
installed is skipped. Ratios are the peer's seconds to those of deeplimits in the same turn, so that above one
deeplimits is faster; the ratio is the median over turns and the spread the smallest and the largest.
"""


def write() -> None:
    """Write all three; nothing where nothing was measured."""
    results = _report.read()
    if not results:
        return
    parts = [HEAD]
    for device, found in sorted(results.items(), key=lambda one: one[0] != "CPU"):
        parts.append(f"## On {'a processor' if device == 'CPU' else device}\n\n{_report.machines(found)}\n")
        for name in sorted(found):
            if found[name]["rows"]:
                parts.append(f"### {_title(name)}\n\n{_report.table({name: found[name]})}\n")
        if device == "CPU" and (pictures := growth(found)):
            _draw(pictures)
            parts.append(
                "### Growth of the cost\n\n"
                "```{image} _static/cost-growth.png\n:alt: Seconds and gigabytes against size, for each task\n"
                ":width: 100%\n```\n"
            )
    PAGE.write_text("\n".join(parts))
    if "CPU" in results:
        cpu = results["CPU"]
        text = f"{BEGIN}\n\n{_report.machines(cpu)}\n\n{_report.table(cpu, short=True)}\n\n{END}"
        place = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
        README.write_text(place.sub(lambda _: text, README.read_text()))


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize().replace(" ode", " equations").replace(" sgd", " SGD")


def growth(found: dict[str, Any]) -> dict[str, Any]:
    """A picture of seconds, and one of memory where it was measured, of every task with at least three sizes.

    Costs over different things, such as parameters and samples, are different pictures.
    """
    from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points

    pictures = {}
    for name in sorted(found):
        over = dict.fromkeys(one["of"] for one in found[name]["points"])
        for of, (unit, word, label) in itertools.product(over, UNITS):
            series: dict[str, list[tuple[float, float]]] = {}
            for one in found[name]["points"]:
                if one["of"] == of and one[unit] is not None:
                    series.setdefault(one["what"], []).append((one["size"], one[unit]))
            series = {what: sorted(pairs) for what, pairs in series.items() if len(pairs) > 2}
            if not series:
                continue
            marks: list[Any] = []
            for index, (what, pairs) in enumerate(series.items()):
                x, y = zip(*pairs, strict=True)
                marks.append(Points(x, y, label=what, role=SIMULATION, series=index))
                marks.append(Line(x, y, role=SIMULATION, series=index))
            title = f"{_title(name)}: {word}" + (f" over {of}" if len(over) > 1 else "")
            pictures[title] = Picture(Axis(of, log=True), Axis(label, log=True), tuple(marks))
    return pictures


def _draw(pictures: dict[str, Any]) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        print(f"matplotlib is not installed: {FIGURE.relative_to(ROOT)} stays as it was")
        return
    from deeplimits.render import with_matplotlib

    FIGURE.parent.mkdir(exist_ok=True)
    with_matplotlib.figure("Cost against size", [], pictures, FIGURE)
