"""The command line: `deeplimits list`, `show`, `predict`, `simulate`, `compare`, `sweep`, `cite`, `diagnose`, `atlas`,
`explore`, `figure`, `campaign`.

What each takes is said in `flags`; here is what each does.
"""

import argparse
import contextlib
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from deeplimits import figure_command, flags, guard, index, searching, showing, sweep_command
from deeplimits.catalogue import Listing, catalogue
from deeplimits.errors import ParameterError, did_you_mean

DISAGREES, NOT_RUN, UNDECIDED = 2, 3, 4
CRITICAL = 2
"""A diagnosis found something critical."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    The exit code is 0, 1 for bad input, 2 when a comparison disagrees or a figure's check fails, 3 when a limit of the
    atlas could not be run, 4 when a comparison decides nothing, 130 when it was interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)

    def command() -> int:
        options = flags.read(given or ["--help"], COMMANDS)
        # Atlas and campaign end an interrupt's work themselves: what is done is kept.
        at_once = options.command in (*flags.RUNS, "sweep", "figure")
        with guard.ended_by_interrupts() if at_once else contextlib.nullcontext():
            return options.run(options)

    return guard.guarded(command, debug="--debug" in given)


def _list(options: argparse.Namespace) -> int:
    found = catalogue.search(" ".join(options.words)) if options.words else catalogue()
    if options.json:
        print(json.dumps([entry.to_json() for entry in found], indent=1, ensure_ascii=False))
    else:
        print(Listing(found))
        drawn = _drawn(" ".join(options.words)) if options.words else []
        for command, title in drawn:
            print(f"{command}  {title}")
        if not found and not drawn:
            words = " ".join(options.words)
            hint = did_you_mean(words.replace(" ", "-"), [*catalogue, *index.offered()])
            hint = hint or "; `deeplimits list` shows all names"
            print(f"nothing has all of the words {words!r}{hint}", file=sys.stderr)
    return 0


def _drawn(words: str) -> list[tuple[str, str]]:
    """The commands that draw what words speak of, and what they draw."""
    wanted = searching.meant(words)
    found = [
        one for one in index.pictures() if searching.matches(searching.plain(f"{one.command} {one.title}"), wanted)
    ]
    wide = max((len(one.command) for one in found), default=0)
    return [(f"{one.command:<{wide}}", one.title) for one in found]


def _show(options: argparse.Namespace) -> int:
    print(showing.page(catalogue.entry(options.name)))
    return 0


def _cite(options: argparse.Namespace) -> int:
    print(showing.cite(options.name))
    return 0


def _limits(options: argparse.Namespace) -> Iterator[Any]:
    """The limits a command line asks for: one, or one for each value of a list or range."""
    entry = catalogue.entry(options.name)
    values = dict(flags.values(entry, options))
    cls = entry.load()
    for combination in itertools.product(*values.values()):
        yield cls(**dict(zip(values, combination, strict=True)))


def _predict(options: argparse.Namespace) -> int:
    _check_outputs(options)
    from deeplimits.lab.predict import check_results, predict
    from deeplimits.limit import require_valid

    limits, only = list(_limits(options)), _only(options)
    for limit in limits:
        require_valid(limit)
    for limit in limits[:1] if only else []:
        check_results(limit, only)
    found = [predict(limit) for limit in limits]
    if options.json:
        _print_json([prediction.to_json() for prediction in found])
    elif len(found) == 1:
        print(found[0])
    else:
        print(_swept(found))
    if options.plot:
        _plot(_predicted_as_one_figure(found, _varying(options)), options.plot, only)
    return 0


def _check_outputs(options: argparse.Namespace) -> None:
    """Refuse before the work what could not be written, or drawn, after it."""
    for flag in ("plot", "html"):
        path = getattr(options, flag, None)
        if path:
            from deeplimits.render import with_matplotlib

            guard.check_output(path, flag)
            with_matplotlib.check_format(path if flag == "plot" else "page.svg")
    if getattr(options, "only", None) and not options.plot:
        raise ParameterError("only = ... chooses what is drawn; give --plot FILE with it")


def _only(options: argparse.Namespace) -> list[str] | None:
    return [name.replace("-", "_") for name in options.only] if options.only else None


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
    _check_outputs(options)
    from deeplimits.lab.compare import compare
    from deeplimits.lab.predict import check_results

    found, limits, only = [], list(_limits(options)), _only(options)
    varying = _varying(options)
    if len(limits) > 1:
        _announce(limits, varying, options)
    for limit in limits[:1] if only else []:
        check_results(limit, only)
    for limit in limits:
        found.append(compare(limit, options.sizes, options.samples, options.seed))
        if not options.json:
            print(found[-1], flush=True)
    if options.json:
        _print_json([comparison.to_json() for comparison in found])
    if options.plot:
        _plot(_as_one_figure(found, varying), options.plot, only)
    if options.html:
        for path, comparison in _numbered(options.html, found):
            comparison.to_html(path)
    outcomes = {comparison.outcome for comparison in found}
    return DISAGREES if "disagrees" in outcomes else UNDECIDED if "undecided" in outcomes else 0


def _varying(options: argparse.Namespace) -> dict[str, list[Any]]:
    given = flags.values(catalogue.entry(options.name), options)
    return {name: values for name, values in given if len(values) > 1}


def _announce(limits: Sequence[Any], varying: dict[str, list[Any]], options: argparse.Namespace) -> None:
    """Say beforehand how much is run, with every value checked."""
    from deeplimits.lab.compare import tasks_of
    from deeplimits.lab.simulate import seconds
    from deeplimits.lab.sweep import announced

    tasks = [tasks_of(limit, options.sizes, options.samples, options.seed) for limit in limits]
    print(announced(limits, varying, sum(map(seconds, tasks[0]))), file=sys.stderr, flush=True)


def _as_one_figure(found: Sequence[Any], varying: dict[str, list[Any]]) -> Sequence[Any]:
    """Comparisons along one parameter as one thing to draw, where there is a number to draw over it."""
    from deeplimits.lab.sweep import Sweep

    if len(found) > 1 and len(varying) == 1:
        sweep = Sweep(tuple(found), varying)
        if sweep.drawn:
            return [sweep]
    return found


def _predicted_as_one_figure(found: Sequence[Any], varying: dict[str, list[Any]]) -> Sequence[Any]:
    """Predictions along one parameter as the theory's lines over it, where there is a number to draw."""
    from deeplimits.lab.sweep import PredictedAlong

    if len(found) > 1 and len(varying) == 1:
        along = PredictedAlong(tuple(found), *varying)
        if along.pictures():
            return [along]
    return found


def _print_json(documents: list[Any]) -> None:
    print(json.dumps(documents[0] if len(documents) == 1 else documents, indent=1, ensure_ascii=False))


def _plot(found: Sequence[Any], path: str, only: Sequence[str] | None) -> None:
    for name, result in _numbered(path, found):
        result.plot(name, only=only)


def _numbered(path: str, found: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """`figure.png` for one result, `figure-1.png`, `figure-2.png`, ... for several."""
    stem, dot, ending = path.rpartition(".")
    for number, result in enumerate(found, start=1):
        yield (path if len(found) == 1 else f"{stem}-{number}{dot}{ending}"), result


def _diagnose(options: argparse.Namespace) -> int:
    from deeplimits.diagnosis.loading import loaded
    from deeplimits.diagnosis.running import diagnose

    if options.html:
        guard.check_output(options.html, "html")
    given = loaded(options.model, options.data)
    report = diagnose(
        given.model,
        given.loss,
        given.data,
        optimizer=given.optimizer,
        budget=options.budget,
        memory=options.most_memory,
        seed=options.seed,
        only=options.only,
        dry_run=options.dry_run,
        **given.others,
    )
    if options.json:
        _print_json([report.to_json()])
    else:
        print(report)
    if options.html:
        report.to_html(options.html)
    return CRITICAL if report.worst == "critical" else 0


def _atlas(options: argparse.Namespace) -> int:
    guard.check_output(options.out, "out", folder=True)
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
        return guard.INTERRUPTED
    if found.disagreeing:
        return DISAGREES
    if found.failed:
        return NOT_RUN
    return UNDECIDED if found.undecided else 0


def _explore(options: argparse.Namespace) -> int:
    from deeplimits import explorer

    at = {} if options.name is None else dict(flags.values(catalogue.entry(options.name), options))
    for name, values in at.items():
        if len(values) > 1:
            raise ParameterError(f"{name} = {values} is more than one number; the page opens at one, and moves it")
    at = {name: value for name, (value,) in at.items()}
    browser = not options.no_browser
    explorer.serve(options.name, at=at, host=options.host, port=options.port, site=options.site, browser=browser)
    return 0


def _campaign(options: argparse.Namespace) -> int:
    import secrets

    from deeplimits.lab import campaign
    from deeplimits.lab.workers import Workers
    from deeplimits.render import bars, campaign_page, text

    entries = list(catalogue.limits()) if options.only is None else [catalogue.entry(name) for name in options.only]
    guard.check_output(options.out, "out")
    if options.page:
        guard.check_output(options.page, "page")
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
        try:
            for row in campaign.run(missing, workers):
                rows.append(row)
                file.write(json.dumps(row.to_json()) + "\n")
                file.flush()
                bar.update(1)
                if row.outcome in campaign.FAULTS:
                    about = f"{row.case.name} {row.case.values} seed {row.case.seed}"
                    print(f"{row.outcome}: {about}: {row.what}", flush=True)
        except KeyboardInterrupt:
            workers.stop()
            raise
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
    "sweep": sweep_command.run,
    "diagnose": _diagnose,
    "atlas": _atlas,
    "explore": _explore,
    "figure": figure_command.run,
    "campaign": _campaign,
}


if __name__ == "__main__":
    sys.exit(main())
