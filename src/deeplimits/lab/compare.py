"""`compare`: theory against simulation, with a verdict."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deeplimits import cells, statistics
from deeplimits.errors import DeeplimitsError, require
from deeplimits.lab import export
from deeplimits.lab.compilation import few_threads, threads, use_cache
from deeplimits.lab.predict import Prediction, check_limit, theory
from deeplimits.lab.simulate import Simulation, check_count, run
from deeplimits.lab.task import Task
from deeplimits.limit import Limit
from deeplimits.predictions import Finding, Kind, Trial
from deeplimits.render import bars, figure, text
from deeplimits.render import page as pages


@dataclass(frozen=True, repr=False)
class Comparison:
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

    @property
    def agrees(self) -> bool:
        """Whether every prediction agrees with its simulations."""
        return all(finding.agrees for finding in self.findings.values())

    @property
    def decisive(self) -> str:
        """The result that stands worst in relation to its threshold."""

        def severity(name: str) -> tuple[bool, float]:
            finding = self.findings[name]
            return not finding.agrees, finding.statistic / finding.threshold

        return max(self.findings, key=severity)

    @property
    def verdict(self) -> str:
        """The verdict on the decisive result, in words and numbers."""
        return f"{self.decisive} {self.findings[self.decisive].verdict}"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        rows = [
            (name, finding.kind, finding.stated, finding.measured, finding.verdict)
            for name, finding in self.findings.items()
        ]
        return ("result", "kind", "theory", f"simulation, n = {self.sizes[-1]}", "verdict"), rows

    def _summary(self) -> tuple[str, str]:
        """What was run, and what came out, a line each."""
        sizes = ", ".join(map(str, self.sizes))
        agreeing = sum(finding.agrees for finding in self.findings.values())
        word = "AGREES" if self.agrees else "DISAGREES"
        closing = f"{word}: {agreeing} of {len(self.findings)} predictions; closest to its threshold: {self.verdict}"
        return f"n = {sizes}, {self.samples} samples each, seed {self.seed}", closing

    def __repr__(self) -> str:
        runs, closing = self._summary()
        return f"{text.heading(self.limit)}\n{runs}\n{text.table(*self._table())}\n{closing}"

    def _repr_html_(self) -> str:
        said = ". ".join((text.heading(self.limit), *self._summary()))
        return cells.fragment(said, *self._table(), figure.svg_or_nothing(self.plot))

    def plot(self, path: str | Path | None = None):
        """A figure with a panel for each result; written to `path` where one is given."""
        return figure.figure(self.limit, self.predictions, self.trials, path)

    def to_json(self) -> dict[str, Any]:
        """Everything found, ready for `json.dumps`."""
        decisive = self.findings[self.decisive]
        return {
            **self.limit.to_json(),
            "sizes": list(self.sizes),
            "samples": self.samples,
            "seed": self.seed,
            "statistic": decisive.statistic,
            "threshold": decisive.threshold,
            "verdict": self.verdict,
            "agrees": self.agrees,
            "findings": {name: finding.to_json() for name, finding in self.findings.items()},
        }

    def to_file(self, path: str | Path) -> None:
        """Write `to_json()` to a file."""
        Path(path).write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")

    def to_xarray(self):
        """An `xarray.Dataset`: each prediction, and the mean and standard error of its simulations by size."""
        xarray = require("xarray", "data")
        variables = export.variables(self.predictions)
        for name, trials in self.trials.items():
            if len({trial.measured.shape for trial in trials}) > 1:
                continue  # eigenvalues of matrices of different sizes do not stack
            means = [statistics.mean_of(trial.measured) for trial in trials]
            dims = ("size", *(f"{name}_{axis}" for axis in range(means[0].value.ndim)))
            variables[f"{name}_measured"] = (dims, np.stack([mean.value for mean in means]))
            variables[f"{name}_error"] = (dims, np.sqrt(np.stack([mean.variance for mean in means])))
        attributes = {**export.attributes(self.limit), "verdict": self.verdict, "agrees": int(self.agrees)}
        return xarray.Dataset(variables, coords={"size": list(self.sizes)}, attrs=attributes)

    def document(self) -> dict[str, Any]:
        """Everything a page says: statement, findings, parameters, predictions, references."""
        return pages.document(self.limit, self.predictions, self.to_json())

    def to_html(self, path: str | Path | None = None) -> str:
        """A page that stands by itself: statement, figure, table, verdict, references."""
        page = pages.page(pages.card(self.document(), figure.svg(self.plot())))
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def cite(self) -> str:
        """BibTeX of the results used."""
        return export.cite(self.limit)


def compare(
    limit: Limit,
    sizes: Sequence[int] | None = None,
    samples: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Comparison:
    """Simulate at several sizes and judge every prediction of the limit.

    At each size the theory is evaluated at the ratios the finite system really has. What is left of the gap at
    infinite size is tested against a threshold from the false-alarm budget of the whole catalogue; see
    `deeplimits.statistics`.

    >>> import deeplimits as dl
    >>> dl.compare(dl.limits.NearestNeighbours(neighbours=5), samples=2000).agrees
    True
    """
    check_limit(limit)
    sizes = tuple(check_count(size, "sizes") for size in sorted(limit.usual.sizes if sizes is None else sizes))
    samples = check_count(limit.usual.samples if samples is None else samples, "samples", statistics.FEWEST_SAMPLES)
    seed = check_count(seed, "seed", 0)
    limit.require_valid()
    use_cache()
    tasks = [Task(limit, size, samples, seed) for size in sizes]
    with (
        bars.progress(samples * len(sizes), "comparing", progress) as bar,
        few_threads(max(sizes)),
        ThreadPoolExecutor(min(threads(), len(sizes))) as pool,
    ):
        # Programs are compiled side by side, the largest size's first; meanwhile this thread computes the theory.
        running = [pool.submit(run, task, bar) for task in reversed(tasks)]
        prediction = theory(limit)
        simulations = [found.result() for found in reversed(running)]
    return judge(prediction, tasks, simulations)


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
    findings = {name: predictions[name].compare(found) for name, found in trials.items()}
    sizes = tuple(task.size for task in tasks)
    return Comparison(limit, sizes, tasks[0].samples, tasks[0].seed, predictions, trials, findings)
