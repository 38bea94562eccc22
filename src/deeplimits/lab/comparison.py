"""`Comparison`: a limit's predictions beside simulations, and what was found."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deeplimits.errors import DeeplimitsError, require
from deeplimits.lab import export
from deeplimits.lab.predict import Prediction, theory
from deeplimits.lab.results import Drawn, named
from deeplimits.lab.simulate import Simulation
from deeplimits.lab.task import Task
from deeplimits.limit import Limit, to_json
from deeplimits.predictions import Finding, Kind, Picture, Trial
from deeplimits.predictions.base import AGREES, DISAGREES, UNDECIDED
from deeplimits.render import notebook, text, with_matplotlib
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
