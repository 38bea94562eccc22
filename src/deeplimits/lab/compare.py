"""`compare`: theory against simulation, with a verdict."""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, overload

import numpy as np

from deeplimits import statistics
from deeplimits.errors import DeeplimitsError, ParameterError, require
from deeplimits.lab import export
from deeplimits.lab.budget import large_enough, within_budget
from deeplimits.lab.compilation import few_threads, threads, use_cache
from deeplimits.lab.predict import MOST_SEED, Prediction, check_count, limit_of, theory
from deeplimits.lab.results import Drawn, named
from deeplimits.lab.simulate import Simulation, check, run
from deeplimits.lab.sweep import Sweep, each, listed
from deeplimits.lab.task import Task
from deeplimits.limit import Limit, require_valid, to_json
from deeplimits.predictions import Finding, Kind, Picture, Trial
from deeplimits.predictions.base import AGREES, DISAGREES, UNDECIDED
from deeplimits.render import bars, notebook, text, with_matplotlib
from deeplimits.render import page as pages
from deeplimits.statement import Statement


@dataclass(frozen=True, repr=False)
class Comparison(Drawn):
    """A limit's predictions beside simulations at several sizes, and what was found."""

    limit: Limit
    sizes: tuple[int, ...]
    samples: int
    seed: int
    predictions: dict[str, Kind]
    """What the theory says at the parameters asked for."""
    trials: dict[str, list[Trial]]
    """For each result, what was stated and measured at each size."""
    findings: dict[str, Finding]
    realised: tuple[Limit, ...] = ()
    """The limit at the ratios that the systems of each size really have."""

    def __getitem__(self, name: str) -> Finding:
        return named(name, self.findings)

    def __iter__(self) -> Iterator[str]:
        return iter(self.findings)

    @property
    def outcome(self) -> str:
        """`disagrees` if any prediction does, else `undecided` if any is, else `agrees`."""
        found = {finding.outcome for finding in self.findings.values()}
        return next(one for one in (DISAGREES, UNDECIDED, AGREES) if one in found)

    @property
    def agrees(self) -> bool:
        """Whether every prediction agrees with its simulations."""
        return self.outcome == AGREES

    @property
    def decisive(self) -> str:
        """The result that decides the outcome: of those with the worst one, the nearest to its threshold or beyond."""
        worst = [name for name, finding in self.findings.items() if finding.outcome == self.outcome]
        return min(worst, key=lambda name: (self.findings[name].deviation.p_value, -(self.findings[name].noticed or 0)))

    @property
    def verdict(self) -> str:
        """The verdict on the decisive result, in words and numbers."""
        return f"{self.decisive} {self.findings[self.decisive].verdict}"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        rows = [
            (name, finding.kind, finding.report.stated, finding.report.measured, finding.verdict)
            for name, finding in self.findings.items()
        ]
        return ("result", "kind", "theory", f"simulation, n = {self.sizes[-1]}", "verdict"), rows

    def _summary(self) -> tuple[str, str]:
        """What was run, and what came out, a line each."""
        sizes = ", ".join(map(str, self.sizes))
        counts = Counter(finding.outcome for finding in self.findings.values())
        total = len(self.findings)
        share = f"{counts[self.outcome]} of {total}" if counts[self.outcome] < total else f"all {total}"
        rest = f", {counts[UNDECIDED]} undecided" if self.outcome == DISAGREES and counts[UNDECIDED] else ""
        which = {DISAGREES: "worst", UNDECIDED: "first"}.get(self.outcome, "closest to its threshold")
        closing = f"{self.outcome.upper()}: {share} prediction{'s'[: total != 1]}{rest}; {which}: {self.verdict}"
        return f"n = {sizes}, {self.samples} samples each, seed {self.seed}", closing

    def __repr__(self) -> str:
        runs, closing = self._summary()
        return f"{export.heading(self.limit)}\n{runs}\n{text.table(*self._table())}\n{closing}"

    def _repr_html_(self) -> str:
        said = ". ".join((export.heading(self.limit), *self._summary()))
        return notebook.fragment(said, *self._table(), with_matplotlib.svg_or_nothing(self.plot))

    def pictures(self) -> dict[str, Picture]:
        """What is to be seen of each result, as data: theory and simulations."""
        return {name: kind.picture(self.trials[name]) for name, kind in self.predictions.items()}

    def _caption(self) -> tuple[str, list[dict[str, Any]]]:
        return Statement.of(type(self.limit)).title, export.settings(self.limit, self.realised)

    def to_json(self) -> dict[str, Any]:
        """Everything found, ready for `json.dumps`."""
        decisive = self.findings[self.decisive]
        return {
            **to_json(self.limit),
            "sizes": list(self.sizes),
            "samples": self.samples,
            "seed": self.seed,
            "statistic": decisive.deviation.statistic,
            "threshold": decisive.deviation.threshold,
            "outcome": self.outcome,
            "verdict": self.verdict,
            "agrees": self.agrees,
            "findings": {name: finding.to_json() for name, finding in self.findings.items()},
        }

    def to_file(self, path: str | Path) -> None:
        """Write `to_json()` to a file."""
        Path(path).write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")

    def to_xarray(self):
        """An `xarray.Dataset`: each prediction, and the mean and standard error of its simulations by size.

        Both have the same axes with their values as coordinates: `data.risk_curve_measured - data.risk_curve`.
        """
        xarray = require("xarray", "data")
        found = export.labelled(self.predictions)
        variables = found.variables
        for name, trials in self.trials.items():
            if len({trial.measured.shape for trial in trials}) > 1:
                continue  # eigenvalues of matrices of different sizes do not stack
            means = [trial.mean for trial in trials]
            dims = ("size", *found.of(name, means[0].value.shape))
            variables[f"{name}_measured"] = (dims, np.stack([mean.value for mean in means]))
            variables[f"{name}_error"] = (dims, np.sqrt(np.stack([mean.variance for mean in means])))
        attributes = export.attributes(self.limit, verdict=self.verdict, agrees=int(self.agrees))
        return xarray.Dataset(variables, {"size": list(self.sizes), **found.coordinates}, attributes)

    def document(self) -> dict[str, Any]:
        """Everything a page says and shows, as data: statement, findings, parameters, pictures."""
        return export.document(self.limit, self.realised, self.pictures(), self.to_json())

    def to_html(self, path: str | Path | None = None) -> str:
        """A page that stands by itself: statement, figure, table, verdict, references."""
        document = self.document()
        page = pages.page(pages.card(document, with_matplotlib.svg(with_matplotlib.figure_of(document))))
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def cite(self) -> str:
        """BibTeX of the results used."""
        return export.cite(self.limit)


@overload
def compare(
    limit: Limit | str,
    sizes: Sequence[int] | None = None,
    samples: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
    **parameters: float | str,
) -> Comparison: ...


@overload
def compare(
    limit: Limit | str,
    sizes: Sequence[int] | None = None,
    samples: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
    **parameters: Any,
) -> Comparison | Sweep: ...


def compare(
    limit: Limit | str,
    sizes: Sequence[int] | None = None,
    samples: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
    **parameters: Any,
) -> Comparison | Sweep:
    """Simulate at several sizes and judge every prediction of the limit.

    The limit may be given by its name in the catalogue, with values of its parameters. A list of values of one
    parameter makes a comparison for each, with one table and one figure over the parameter.
    At each size the theory is evaluated at the ratios the finite system really has. What is left of the gap at
    infinite size is tested against a threshold from the false-alarm budget of the whole catalogue; see
    `deeplimits.statistics`.

    >>> import deeplimits as dl
    >>> dl.compare(dl.limits.KnnBiasVariance(neighbours=5), samples=2000).agrees
    True
    """
    if varying := listed(limit, parameters):
        limits = [limit_of(limit, {**parameters, **one}) for one in each(varying)]
        for one in limits:
            tasks_of(one, sizes, samples, seed)  # a value that is refused is refused before the first is run
        return Sweep(tuple(compare(one, sizes, samples, seed, progress) for one in limits), varying)
    limit = limit_of(limit, parameters)
    return compared(limit, tasks_of(limit, sizes, samples, seed), progress, sizes is not None or samples is not None)


def tasks_of(limit: Limit, sizes: Sequence[int] | None = None, samples: int | None = None, seed: int = 0) -> list[Task]:
    """The simulations of a comparison, as asked for; refused in a sentence where they cannot be made."""
    sizes = check_sizes(limit.usual.sizes if sizes is None else sizes)
    samples = check_count(limit.usual.samples if samples is None else samples, "samples", statistics.FEWEST_SAMPLES)
    seed = check_count(seed, "seed", 0, MOST_SEED)
    require_valid(limit)
    return [Task(limit, size, samples, seed) for size in sizes]


def check_sizes(sizes: Any) -> tuple[int, ...]:
    """Sizes in increasing order, or a sentence about them."""
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise ParameterError(
            f"sizes = {sizes!r} is not allowed; it must be a list of whole numbers, as (100, 200, 400)"
        )
    found = sorted(check_count(size, "sizes") for size in sizes)
    if not found:
        raise ParameterError("sizes = [] is not allowed; it must have at least one whole number")
    return tuple(found)


def compared(limit: Limit, tasks: list[Task], progress: bool | None, chosen: bool) -> Comparison:
    """The comparison that these tasks make; enlarged, unless `chosen` by the user, until it decides."""
    use_cache()
    done: _Done = {}
    if not chosen:
        tasks = large_enough(tasks)
    check(tasks)
    found = _compared(tasks, progress, done)
    for _ in range(0 if chosen else MOST_ROUNDS):
        if found.agrees or (larger := enlarged(found, tasks)) is None:
            break
        tasks = larger
        found = _compared(tasks, progress, done)
    return found


_Done = dict[tuple[int, int], Simulation]
"""Simulations by size and number of systems."""


def _compared(tasks: Sequence[Task], progress: bool | None, done: _Done) -> Comparison:
    """The tasks run and judged; what is `done` is not run again, what is run is added to it."""
    missing = {(task.size, task.samples): task for task in tasks if (task.size, task.samples) not in done}
    with (
        bars.progress(sum(task.samples for task in missing.values()), "comparing", progress) as bar,
        few_threads(max(task.size for task in tasks)),
        ThreadPoolExecutor(min(threads(), len(tasks)) + 1) as pool,
    ):
        # Programs are compiled side by side, the largest size's first, and the theory beside them. This thread only
        # waits: an interrupt that arrived in the middle of a compilation would end the process.
        stop = Event()
        first = pool.submit(theory, tasks[0].limit)
        running = {place: pool.submit(run, missing[place], bar, stop) for place in reversed(missing)}
        try:
            prediction = first.result()
            done |= {place: running[place].result() for place in missing}
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return judge(prediction, tasks, [done[task.size, task.samples] for task in tasks])


MOST_ROUNDS = 3
"""How often a comparison that decided nothing is made again, larger."""


def enlarged(found: Comparison, tasks: Sequence[Task]) -> list[Task] | None:
    """What may decide a comparison that did not: four times the samples, a third size, or sizes twice as large.

    A limit is refuted by what stays as the size grows. So a disagreement with what is stated of the limit only is
    looked at again at sizes twice as large, with no fewer samples. None where nothing of this fits the time, or the
    limit has no such sizes.
    """
    disagreeing = [found.predictions[name] for name, one in found.findings.items() if one.outcome == DISAGREES]
    if any(kind.exact for kind in disagreeing):
        return None
    lacks = {"sizes"} if disagreeing else {finding.lacks for finding in found.findings.values()}
    samples = tasks[0].samples * (4 if "samples" in lacks else 1)
    sizes = [task.size for task in tasks]
    if "sizes" in lacks:
        sizes = _three(sizes) if len(set(sizes)) < 3 and not disagreeing else [2 * size for size in sizes]
    larger = [dataclasses.replace(tasks[0], size=size, samples=samples) for size in sizes]
    try:
        larger = within_budget(larger)
    except DeeplimitsError:
        return None
    least = tasks[0].samples + ("samples" in lacks) if disagreeing or "samples" in lacks else 0
    return larger if larger[0].samples >= least else None


def _three(sizes: Sequence[int]) -> list[int]:
    """Two sizes, and their geometric mean between them."""
    low, high = min(sizes), max(sizes)
    return sorted({low, round((low * high) ** 0.5), high})


def judge(prediction: Prediction, tasks: Sequence[Task], simulations: Sequence[Simulation]) -> Comparison:
    """What the simulations of these tasks, wherever they were run, say of a prediction."""
    limit = prediction.limit
    predictions: dict[str, Kind] = dict(prediction)
    trials: dict[str, list[Trial]] = {}
    for task, simulation in zip(tasks, simulations, strict=True):
        stated = theory(simulation.limit)
        if set(stated) | set(simulation.stated) != set(simulation):
            raise DeeplimitsError(
                f"{type(limit).__name__} predicts {sorted({*stated, *simulation.stated})} "
                f"but simulates {sorted(simulation)}"
            )
        for name in stated:
            trials.setdefault(name, []).append(stated[name].trial(task.size, simulation[name]))
        for name, kind in simulation.stated.items():
            trials.setdefault(name, []).append(kind.trial(task.size, simulation[name], drawn=True))
            predictions[name] = trials[name][-1].stated
    for name in set(predictions) - set(prediction):
        trials[name] = predictions[name].on_one_scale(trials[name])
    findings = {name: predictions[name].judge(found) for name, found in trials.items()}
    sizes = tuple(task.size for task in tasks)
    realised = tuple(simulation.limit for simulation in simulations)
    return Comparison(limit, sizes, tasks[0].samples, tasks[0].seed, predictions, trials, findings, realised)
