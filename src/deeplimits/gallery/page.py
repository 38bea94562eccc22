"""The page of all figures, in Markdown: image, caption, numbers, command.

`make gallery` makes the figures at full size and keeps in `docs/gallery` what the page needs, a small image and a
summary for each; the page itself is written from those when the documentation is built.
"""

import argparse
import io
import json
import re
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deeplimits.gallery.listing import Entry, entries, find

HEAD = """\
# Gallery

The figures of lecture notes on deep-learning theory, made again: theory as lines, finite systems as points and
histograms, and under each the numbers that show the phenomenon. Every figure is one command, which writes PNG, SVG and
JSON and says whether its checks hold (`--size small` takes seconds); every one is one short file in
`deeplimits.gallery`.

"""
DPI, COLOURS = 80, 256
"""Of the images that are kept with the documentation."""


def publish(names: Sequence[str], docs: Path, out: Path, size: str = "full", computed: Path | None = None) -> bool:
    """Make figures, all without names, and keep in `docs` what their page needs. Whether all checks hold."""
    from deeplimits.gallery.making import make

    docs.mkdir(parents=True, exist_ok=True)
    good = True
    for entry in [find(name) for name in names] or entries():
        made = make(entry, size, out, computed=computed)
        (docs / f"{entry.stem}.png").write_bytes(small_image(made.plot()))
        summary = json.dumps(made.summary(), ensure_ascii=False, indent=1) + "\n"
        (docs / f"{entry.stem}.json").write_text(summary, encoding="utf-8")
        print(made, end="\n\n", flush=True)
        good &= made.holds
    return good


def small_image(drawn: Any) -> bytes:
    """A figure as PNG with a palette of its own, which takes a third of the room."""
    from PIL import Image

    whole, small = io.BytesIO(), io.BytesIO()
    drawn.savefig(whole, format="png", dpi=DPI)
    with Image.open(whole) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(small, format="png", optimize=True)
    return small.getvalue()


def write_page(page: Path, kept: Path) -> None:
    """Write the page about all figures, with what `publish` kept in a folder beside it."""
    parts = [_part(entry, page, kept) for entry in entries()]
    page.write_text(HEAD + "\n".join(parts), encoding="utf-8")


def _part(entry: Entry, page: Path, kept: Path) -> str:
    image, summary = kept / f"{entry.stem}.png", kept / f"{entry.stem}.json"
    lines = [f"({entry.stem})=", f"## {entry.label}: {entry.title}", ""]
    found = json.loads(summary.read_text(encoding="utf-8")) if summary.exists() else None
    if found is not None and image.exists():
        lines += [f"![{entry.title}]({image.relative_to(page.parent).as_posix()})", ""]
    lines += [_plain(entry.about), ""]
    if found is not None:
        lines += [*_captions(found["captions"]), "", *_table(found["checks"]), ""]
    # Names of the catalogue, written as code, are links in the documentation.
    names = ", ".join(f"`{name}`" for name in entry.limits)
    if found is not None and found["size"] == "small":
        lines += ["What is shown is the small size; the command makes the full one.", ""]
    lines += [f"`{entry.command}` · lecture notes {entry.notes} · {names}", ""]
    return "\n".join(lines)


def _captions(captions: Sequence[str]) -> list[str]:
    if len(captions) == 1:
        return [_plain(captions[0])]
    return [f"- ({letter}) {_plain(said)}" for letter, said in zip(string.ascii_lowercase, captions, strict=False)]


def _plain(text: str) -> str:
    """Words that mean nothing to Markdown."""
    return re.sub(r"([*$<\\])", r"\\\1", text)


def _table(checks: Sequence[dict[str, Any]]) -> list[str]:
    rows = ["| number | measured | theory | allowed difference |", "| --- | --- | --- | --- |"]
    for check in checks:
        spread = f" ± {check['error']:.2g}" if check["error"] > 0 else ""
        allowed = check["threshold"] * check["error"] if check["error"] > 0 else check["threshold"]
        label = _plain(check["label"]).replace("|", "\\|")
        rows.append(f"| {label} | {check['measured']:.4g}{spread} | {check['theory']:.4g} | {allowed:.2g} |")
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m deeplimits.gallery.page [NAME ...]`: make figures and keep what the page needs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", help="figures (default: all)")
    parser.add_argument("--docs", type=Path, default=Path("docs/gallery"), help="folder of what is kept")
    parser.add_argument("--out", type=Path, default=Path("runs/gallery"), help="folder of the work")
    parser.add_argument("--size", choices=("full", "small"), default="full")
    parser.add_argument("--computed", type=Path, help="folder in which `figure --compute-only` left the numbers")
    chosen = parser.parse_args(arguments)
    return 0 if publish(chosen.names, chosen.docs, chosen.out, chosen.size, chosen.computed) else 2


if __name__ == "__main__":
    raise SystemExit(main())
