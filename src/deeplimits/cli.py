"""The command line: `deeplimits list`, `show`, `predict`, `simulate`, `compare`, `cite`, `atlas`, `campaign`.

Flags come from the parameter fields, which stand in the index, so that no help text waits for JAX.
"""

import argparse
import itertools
import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from deeplimits import references
from deeplimits.catalogue import Entry, Listing, catalogue
from deeplimits.errors import DeeplimitsError, ParameterError
from deeplimits.parameters import Parameter, read_list

BAD_INPUT, DISAGREES, NOT_RUN, UNDECIDED, INTERRUPTED = 1, 2, 3, 4, 130

DESCRIPTION = """\
Compute the limit, simulate the network, see whether they agree.

  deeplimits list                                    every name, one line each
  deeplimits show marchenko-pastur-law               what it states, its parameters, how to call it
  deeplimits predict marchenko-pastur-law --gamma 2  what the theory says
  deeplimits compare marchenko-pastur-law --gamma 2  theory against simulation, with a verdict
  deeplimits atlas --out site/                       every limit, compared and drawn, as one page
"""

PARAMETERS = """\
A parameter takes a value, a list 0,0.5,1 or a range 0.1:10:20 (20 points; 0.1:10:20log for equal ratios).
Lists and ranges are run one value after the other.
"""


class _Parser(argparse.ArgumentParser):
    """argparse, but bad input is one line and exit code 1."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}", file=sys.stderr)
        raise SystemExit(BAD_INPUT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    The exit code is 0, 1 for bad input, 2 when a comparison disagrees, 3 when a limit of the atlas could not be run,
    4 when a comparison decides nothing.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    try:
        options = _parser(arguments).parse_args([word for word in arguments if word != "--debug"])
        return options.run(options)
    except DeeplimitsError as error:
        if debug:
            raise
        print(f"deeplimits: {error}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        return 0


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="deeplimits", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=_version())
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    listing = commands.add_parser("list", help="every name in the catalogue")
    listing.add_argument("words", nargs="*", help="show only entries that contain all these words")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(run=_list)

    show = commands.add_parser("show", help="what a name states, its parameters, how to call it")
    show.add_argument("name", metavar="NAME")
    show.set_defaults(run=_show)

    cite = commands.add_parser("cite", help="BibTeX of what a name rests on")
    cite.add_argument("name", metavar="NAME")
    cite.set_defaults(run=_cite)

    for word, run, sentence in (
        ("predict", _predict, "what the theory says"),
        ("simulate", _simulate, "finite systems, drawn and measured"),
        ("compare", _compare, "theory against simulation, with a verdict"),
    ):
        command = commands.add_parser(
            word,
            help=sentence,
            epilog=f"`deeplimits {word} NAME --help` lists the parameters of that limit.\n{PARAMETERS}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_argument("name", metavar="NAME", help="a limit, see `deeplimits list`")
        _add_run_options(command, word)
        entry = _limit_named_in(arguments, word)
        if entry is not None:
            command.description = f"{entry.about.title}.\n`deeplimits show {entry.name}` gives the full statement."
            command.epilog = PARAMETERS
            _add_parameters(command, entry)
        command.set_defaults(run=run)

    atlas = commands.add_parser(
        "atlas", help="every limit predicted, simulated, compared and drawn, as one static page"
    )
    atlas.add_argument("--out", default="site", help="folder to write to (default: site)")
    atlas.add_argument("--only", nargs="+", metavar="NAME", help="just these limits")
    atlas.add_argument("--size", choices=("small", "medium", "large"), default="medium", help="how much to simulate")
    atlas.set_defaults(run=_atlas)

    campaign = commands.add_parser("campaign", help="do the verdicts hold at random parameters inside the ranges?")
    campaign.add_argument("--draws", type=int, default=2, help="how many of each limit (default: 2)")
    campaign.add_argument("--seed", type=int, help="seed of the draws (default: a fresh one, printed)")
    campaign.add_argument("--only", nargs="+", metavar="NAME", help="just these limits")
    campaign.add_argument("--cases", metavar="FILE", help="instead of draws, the cases in a file that --out wrote")
    campaign.add_argument(
        "--out",
        default="campaign.jsonl",
        help="file for the outcomes; what stands there is kept (default: campaign.jsonl)",
    )
    campaign.add_argument("--time-limit", type=float, metavar="SECONDS", help="how long a case may take (default: 300)")
    campaign.add_argument("--page", metavar="FILE", help="write what was found, with all that --out holds, as a page")
    campaign.add_argument("--workers", type=int, help="how many processes (default: one for each core)")
    campaign.set_defaults(run=_campaign)
    return parser


def _add_run_options(command: argparse.ArgumentParser, word: str) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")
    if word != "predict":
        command.add_argument("--samples", type=int, help="how many systems to draw at each size")
        command.add_argument("--seed", type=int, default=0, help="seed of the random numbers (default: 0)")
    if word == "simulate":
        command.add_argument("--size", type=int, help="size of the system")
    if word == "compare":
        command.add_argument("--sizes", help="sizes to simulate, as 100,200,400")
    if word != "simulate":
        command.add_argument("--plot", metavar="FILE", help="write the figure to FILE (png, svg, pdf)")
    if word == "compare":
        command.add_argument("--html", metavar="FILE", help="write a page with statement, figure and verdict to FILE")


def _limit_named_in(arguments: Sequence[str], word: str) -> Entry | None:
    """The limit a command line speaks of, so that its parameters can become flags before parsing."""
    if not arguments or word not in arguments:
        return None
    known = [name for name in arguments if name in catalogue and catalogue.entry(name).role != "function"]
    return catalogue.entry(known[0]) if known else None


def _add_parameters(command: argparse.ArgumentParser, entry: Entry) -> None:
    group = command.add_argument_group("parameters of the limit")
    for name, parameter in entry.about.parameters.items():
        group.add_argument(
            f"--{name.replace('_', '-')}",
            dest=f"parameter_{name}",
            metavar=name.upper() if parameter.kind != "choice" else "WORD",
            help=f"{parameter.doc}; {parameter.allowed} (default: {_default(parameter)})".replace("%", "%%"),
        )


def _default(parameter: Parameter) -> str:
    if isinstance(parameter.default, tuple):
        return ",".join(f"{value:g}" for value in parameter.default)
    return f"{parameter.default:g}" if isinstance(parameter.default, float) else str(parameter.default)


def _version() -> str:
    import deeplimits

    return f"deeplimits {deeplimits.__version__}"


def _list(options: argparse.Namespace) -> int:
    found = catalogue.search(" ".join(options.words)) if options.words else catalogue()
    if options.json:
        print(json.dumps([entry.to_json() for entry in found], indent=1, ensure_ascii=False))
    else:
        print(Listing(found))
    return 0


def _show(options: argparse.Namespace) -> int:
    entry = catalogue.entry(options.name)
    about = entry.about
    print(f"{entry.name}\n{about.title}.\n")
    if entry.role == "result":
        print(f"This is the result `{entry.result}` of the limit {catalogue.name_of_target(entry.target)}.\n")
    rest = about.doc.partition("\n")[2].strip("\n")
    print(rest)
    if about.parameters:
        print("\nParameters")
        for name, parameter in about.parameters.items():
            text = f"{parameter.doc}; {parameter.allowed} (default {_default(parameter)})"
            print(textwrap.fill(text, 100, initial_indent=f"  {name:<14}", subsequent_indent=" " * 16))
    if about.references:
        print("\nCited")
        for key in about.references:
            print(textwrap.fill(references.short(key), 100, initial_indent="  ", subsequent_indent="    "))
    print(f"\nSource\n  {about.module}")
    print("\nTo call it")
    if entry.role == "function":
        print(f"  from {about.module} import {about.name}\n  {about.signature}")
        return 0
    name = catalogue.name_of_target(entry.target)
    suffix = f'["{entry.result}"]' if entry.result else ""
    print(f"  import deeplimits as dl\n  dl.predict(dl.limits.{about.name}()){suffix}")
    print(f"  deeplimits compare {name}")
    return 0


def _cite(options: argparse.Namespace) -> int:
    print(references.bibtex(catalogue.entry(options.name).about.references))
    return 0


def _limits(options: argparse.Namespace) -> Iterator[Any]:
    """The limits a command line asks for: one, or one for each value of a list or range."""
    entry = catalogue.entry(options.name)
    if entry.role == "function":
        raise ParameterError(f"{entry.name} is a function; `deeplimits show {entry.name}` says how to call it")
    values: dict[str, list[Any]] = {}
    for name, parameter in entry.about.parameters.items():
        text = getattr(options, f"parameter_{name}", None)
        if text is not None:
            values[name] = _read(entry, name, parameter, text)
    cls = entry.load()
    for combination in itertools.product(*values.values()):
        yield cls(**dict(zip(values, combination, strict=True)))


def _read(entry: Entry, name: str, parameter: Parameter, text: str) -> list[Any]:
    owner = entry.about.name
    try:
        if parameter.kind == "real":
            return list(read_list(text))
        if parameter.kind == "integer":
            return [parameter.read(part) for part in text.split(",")]
        if parameter.kind == "choice":
            return text.split(",")
        return [parameter.read(text)]
    except ValueError as error:
        raise ParameterError(
            f"{owner}: {name} = {text!r} cannot be read ({error}); it must be {parameter.allowed}"
        ) from None


def _predict(options: argparse.Namespace) -> int:
    from deeplimits.lab.predict import predict

    found = [predict(limit) for limit in _limits(options)]
    if options.json:
        _print_json([prediction.to_json() for prediction in found])
    elif len(found) == 1:
        print(found[0])
    else:
        print(_swept(found))
    if options.plot:
        _plot(found, options.plot)
    return 0


def _swept(found: Sequence[Any]) -> str:
    """Predictions along a list or range, one row each, of the parameters that vary and every result."""
    from deeplimits.render import text

    values = [prediction.limit.values() for prediction in found]
    varying = [name for name in values[0] if any(row[name] != values[0][name] for row in values)]
    rows = [
        [*(f"{row[name]:.6g}" if isinstance(row[name], float) else str(row[name]) for name in varying)]
        + [kind.summary() for kind in prediction.values()]
        for row, prediction in zip(values, found, strict=True)
    ]
    return text.table([*varying, *found[0]], rows)


def _simulate(options: argparse.Namespace) -> int:
    from deeplimits.lab.simulate import simulate

    found = [simulate(limit, options.size, options.samples, options.seed) for limit in _limits(options)]
    if options.json:
        _print_json([simulation.to_json() for simulation in found])
    else:
        print("\n\n".join(map(str, found)))
    return 0


def _compare(options: argparse.Namespace) -> int:
    from deeplimits.lab.compare import compare

    try:
        sizes = None if options.sizes is None else [int(size) for size in options.sizes.split(",")]
    except ValueError:
        raise ParameterError(f"sizes = {options.sizes!r} cannot be read; give whole numbers as 100,200,400") from None
    found = []
    for limit in _limits(options):
        found.append(compare(limit, sizes, options.samples, options.seed))
        if not options.json:
            print(found[-1], flush=True)
    if options.json:
        _print_json([comparison.to_json() for comparison in found])
    if options.plot:
        _plot(found, options.plot)
    if options.html:
        for path, comparison in _numbered(options.html, found):
            comparison.to_html(path)
    outcomes = {comparison.outcome for comparison in found}
    return DISAGREES if "disagrees" in outcomes else UNDECIDED if "undecided" in outcomes else 0


def _print_json(documents: list[Any]) -> None:
    print(json.dumps(documents[0] if len(documents) == 1 else documents, indent=1, ensure_ascii=False))


def _plot(found: Sequence[Any], path: str) -> None:
    for name, result in _numbered(path, found):
        try:
            result.plot(name)
        except (ValueError, OSError) as error:
            raise ParameterError(f"plot = {name!r} cannot be written: {error}") from None


def _numbered(path: str, found: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """`figure.png` for one result, `figure-1.png`, `figure-2.png`, ... for several."""
    stem, dot, ending = path.rpartition(".")
    for index, result in enumerate(found, start=1):
        yield (path if len(found) == 1 else f"{stem}-{index}{dot}{ending}"), result


def _atlas(options: argparse.Namespace) -> int:
    from deeplimits.atlas import build

    found = build(options.out, options.only, options.size)
    print(f"wrote {found.page}")
    for name in found.disagreeing:
        print(f"disagrees: {name}")
    for name in found.undecided:
        print(f"undecided: {name}")
    for name in found.failed:
        print(f"could not be run: {name}")
    if found.interrupted:
        print("interrupted; the next run does what is missing")
        return INTERRUPTED
    if found.disagreeing:
        return DISAGREES
    if found.failed:
        return NOT_RUN
    return UNDECIDED if found.undecided else 0


def _campaign(options: argparse.Namespace) -> int:
    import secrets

    from deeplimits.lab import campaign
    from deeplimits.lab.workers import Workers
    from deeplimits.render import bars, campaign_page, text

    entries = list(catalogue.limits()) if options.only is None else [catalogue.entry(name) for name in options.only]
    if options.cases:
        cases = campaign.load(Path(options.cases).read_text(encoding="utf-8"))
    else:
        seed = secrets.randbelow(10**6) if options.seed is None else options.seed
        print(f"{options.draws} draws of each of {len(entries)} limits, seed {seed}", flush=True)
        cases = [campaign.draw(entry, seed, number) for number in range(options.draws) for entry in entries]
    out = Path(options.out)
    lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    rows = [campaign.Row.from_json(json.loads(line)) for line in lines]
    done = [row.case for row in rows]
    missing = [case for case in cases if case not in done]
    limit = campaign.TIME_LIMIT if options.time_limit is None else options.time_limit
    with (
        Workers(options.workers, time_limit=limit) as workers,
        out.open("a", encoding="utf-8") as file,
        bars.progress(len(missing), "campaign", None) as bar,
    ):
        for row in campaign.run(missing, workers):
            rows.append(row)
            file.write(json.dumps(row.to_json()) + "\n")
            file.flush()
            bar.update(1)
            if row.outcome in campaign.FAULTS:
                print(f"{row.outcome}: {row.case.name} {row.case.values} seed {row.case.seed}: {row.what}", flush=True)
    print(text.table(*campaign.table(rows)))
    complaints = campaign.complaints(rows)
    for sentence in complaints:
        print(sentence)
    print(f"wrote {out}")
    if options.page:
        campaign_page.write(rows, campaign.table(rows), campaign.shares(), Path(options.page))
        print(f"wrote {options.page}")
    return DISAGREES if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
