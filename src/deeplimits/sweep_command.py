"""`deeplimits sweep`: a grid of comparisons from the command line, its file, its figure."""

import argparse
import json
import sys
from typing import Any

from deeplimits import flags, guard
from deeplimits.catalogue import catalogue
from deeplimits.errors import ParameterError, did_you_mean

DISAGREES, FAILED, UNDECIDED = 2, 3, 4
GIGABYTE = 1e9


def run(options: argparse.Namespace) -> int:
    """The exit code is 0, 1 for bad input, 2 where a comparison disagrees, 3 where one could not be run, 4 where one
    decides nothing, 130 when it was interrupted."""
    _one_thing(options)
    if options.status:
        return _status(options)
    if options.salvage:
        return _salvage(options)
    if options.diagram == "list":
        from deeplimits.lab.diagrams import listing

        print(listing())
        return 0
    return _sweep(options)


def _one_thing(options: argparse.Namespace) -> None:
    """Refuse words that ask for two things at once, or for nothing."""
    given = [word for word in ("name", "diagram", "status", "resume", "salvage") if getattr(options, word)]
    if len(given) > 1:
        words = " and ".join("NAME" if word == "name" else f"--{word}" for word in given)
        raise ParameterError(f"{words} ask for different things; give one of them")
    if not given:
        raise ParameterError(
            "a sweep needs the NAME of a limit, standing before its parameters, as in `deeplimits sweep "
            "ridgeless-double-descent --gamma 0.1:10:20log`; or --diagram, --resume or --status"
        )
    if options.dask and options.slurm:
        raise ParameterError("--dask and --slurm are two places to run at; give one of them")
    if options.resume and options.store:
        raise ParameterError("--resume FILE goes on with FILE; leave --store out")


def _status(options: argparse.Namespace) -> int:
    from deeplimits.lab.store import Store

    with Store(options.status, reading=True) as store:
        found = store.status()
    if options.json:
        print(json.dumps(vars(found), indent=1))
    else:
        print(found)
    return 0


def _salvage(options: argparse.Namespace) -> int:
    from deeplimits.lab.salvage import salvage

    count, aside = salvage(options.salvage)
    print(f"{count} results were read and stand in {options.salvage} again; the damaged file is {aside}")
    return 0


def _plan(options: argparse.Namespace) -> tuple[Any, str | None]:
    """What is to be computed, and where it is kept."""
    from deeplimits.lab.plans import Plan
    from deeplimits.lab.store import Store

    if options.resume:
        with Store(options.resume, reading=True) as store:
            plans = store.plans()
        if not plans:
            raise ParameterError(f"{options.resume} has no plan of a sweep; give the limit and its parameters")
        return Plan.from_document(plans[-1]), options.resume
    given = {"sizes": options.sizes, "samples": options.samples, "seed": options.seed}
    name, ready = options.name, {}
    if options.diagram:
        from deeplimits.lab.diagrams import diagram

        found = diagram(options.diagram)
        name, ready = found.limit, found.values
        given["sizes"] = given["sizes"] or found.sizes
        given["samples"] = given["samples"] or found.samples
        options.only = options.only or list(found.results)
    entry = catalogue.entry(name)
    values: dict[str, Any] = dict(ready)
    for parameter, found in flags.values(entry, options):
        values[parameter] = found if len(found) > 1 else found[0]
    return Plan.of(entry.name, values, until=options.until, per_task=options.per_task, **given), options.store


def _sweep(options: argparse.Namespace) -> int:
    from deeplimits.lab import tables
    from deeplimits.lab.driver import SweepStopped
    from deeplimits.lab.predict import check_results
    from deeplimits.lab.sweeping import TIME_LIMIT, check_bounds, swept

    _check_outputs(options)
    asked = _only(options)
    plan, path = _plan(options)
    if asked:
        check_results(plan.cls(), asked)
    limit = options.time_limit or TIME_LIMIT
    memory = (options.memory or 8.0) * GIGABYTE
    check_bounds(limit, memory, options.workers)
    if options.estimate:
        return _estimate(plan, options)
    try:
        found = swept(plan, path, lambda: _lanes(options, plan, limit, memory), True)
    except SweepStopped as stopped:
        print(f"deeplimits: {stopped}", file=sys.stderr)
        return guard.INTERRUPTED if stopped.interrupted else FAILED
    if options.json:
        print(json.dumps(found.to_json(), indent=1, ensure_ascii=False))
    else:
        print(found)
    for name in options.export or ():
        tables.write(found, name)
    if options.plot:
        found.plot(options.plot, only=_only(options))
    if found.outcome == "disagrees":
        return DISAGREES
    if any(one.failed for one in found.missing):
        return FAILED
    return UNDECIDED if found.outcome == "undecided" else 0


def _lanes(options: argparse.Namespace, plan: Any, time_limit: float, memory: float) -> Any:
    from deeplimits.lab import clusters, lanes

    if options.slurm:
        return clusters.slurm_lanes(options.slurm, time_limit, memory)
    if options.dask:
        return clusters.Dask(options.dask, options.workers, time_limit, memory)
    return lanes.usual_lanes(options.workers, time_limit, memory, plan.cls)


def _estimate(plan: Any, options: argparse.Namespace) -> int:
    from deeplimits.lab.plans import estimate

    points, refused = plan.points()
    found = estimate([point for _, point in points], len(refused))
    print(json.dumps(found._asdict()) if options.json else found)
    if options.slurm:
        from deeplimits.lab.clusters import slurm_cluster

        with slurm_cluster(options.slurm) as cluster:
            print(cluster.job_script())
    return 0


def _check_outputs(options: argparse.Namespace) -> None:
    """Refuse before the work what could not be written after it."""
    from deeplimits.lab import tables

    for path in options.export or ():
        guard.check_output(path, "export")
        tables.check_format(path)
    if options.plot:
        from deeplimits.render import with_matplotlib

        guard.check_output(options.plot, "plot")
        with_matplotlib.check_format(options.plot)
    elif options.only:
        raise ParameterError("only = ... chooses what is drawn; give --plot FILE with it")
    if options.diagram and options.diagram != "list":
        from deeplimits.lab.diagrams import diagram

        diagram(options.diagram)
    if options.name and options.name not in catalogue:
        raise ParameterError(f"the catalogue has no entry {options.name!r}{did_you_mean(options.name, catalogue)}")


def _only(options: argparse.Namespace) -> list[str] | None:
    return [name.replace("-", "_") for name in options.only] if options.only else None
