"""The command line: `deeplimits list`, `show`, `predict`, `simulate`, `compare`, `cite`, `atlas`, `campaign`.

What each takes is said in `flags`; here is what each does.
"""

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from deeplimits import flags, references, showing
from deeplimits.catalogue import Listing, catalogue
from deeplimits.errors import DeeplimitsError, ParameterError

DISAGREES, NOT_RUN, UNDECIDED, INTERRUPTED = 2, 3, 4, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    The exit code is 0, 1 for bad input, 2 when a comparison disagrees, 3 when a limit of the atlas could not be run,
    4 when a comparison decides nothing.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = flags.read(arguments or ["--help"], COMMANDS)
        return options.run(options)
    except DeeplimitsError as error:
        if "--debug" in arguments:
            raise
        print(f"deeplimits: {error}", file=sys.stderr)
        return flags.BAD_INPUT
    except BrokenPipeError:
        return 0


def _list(options: argparse.Namespace) -> int:
    found = catalogue.search(" ".join(options.words)) if options.words else catalogue()
    if options.json:
        print(json.dumps([entry.to_json() for entry in found], indent=1, ensure_ascii=False))
    else:
        print(Listing(found))
    return 0


def _show(options: argparse.Namespace) -> int:
    print(showing.page(catalogue.entry(options.name)))
    return 0


def _cite(options: argparse.Namespace) -> int:
    print(references.bibtex(catalogue.entry(options.name).about.statement.references))
    return 0


def _limits(options: argparse.Namespace) -> Iterator[Any]:
    """The limits a command line asks for: one, or one for each value of a list or range."""
    entry = catalogue.entry(options.name)
    values = dict(flags.values(entry, options))
    cls = entry.load()
    for combination in itertools.product(*values.values()):
        yield cls(**dict(zip(values, combination, strict=True)))


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
    from deeplimits.limit import values_of
    from deeplimits.render import text

    values = [values_of(prediction.limit) for prediction in found]
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

    found = []
    for limit in _limits(options):
        found.append(compare(limit, options.sizes, options.samples, options.seed))
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


COMMANDS = {
    "list": _list,
    "show": _show,
    "cite": _cite,
    "predict": _predict,
    "simulate": _simulate,
    "compare": _compare,
    "atlas": _atlas,
    "campaign": _campaign,
}


if __name__ == "__main__":
    sys.exit(main())
