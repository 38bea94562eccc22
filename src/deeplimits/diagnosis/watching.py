"""Diagnoses along training: the cheap parts of one, every so many steps."""

from collections.abc import Callable, Sequence
from typing import Any

from deeplimits.diagnosis.report import Report
from deeplimits.diagnosis.running import diagnose
from deeplimits.errors import ParameterError, require
from deeplimits.measure.training.hooks import TrainerHooks
from deeplimits.numerics import arguments

CHEAP = ("initialization", "weights", "gradient noise", "representations")


class Watch(TrainerHooks):
    """A diagnosis every `every` steps of a training loop; the network that is trained is not changed by it.

    Call it after each step: `watch()` where a PyTorch module is trained, `watch(parameters)` where JAX's parameters
    are new arrays after each step; or give it to Lightning's or transformers' trainer as a callback. `parts` are those
    of `diagnose` (its `only`), `budget` the seconds of each report.

    >>> import numpy as np, torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    >>> x, y = torch.eye(4), torch.tensor([0, 1, 0, 1])
    >>> optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> watch = Watch(net, torch.nn.CrossEntropyLoss(), (x, y), every=5, parts=("weights",), torch_optimizer=optimizer)
    >>> for _ in range(10):
    ...     optimizer.zero_grad()
    ...     torch.nn.functional.cross_entropy(net(x), y).backward()
    ...     _ = optimizer.step()
    ...     watch()
    >>> [step for step, report in watch.reports]
    [5, 10]
    """

    state_key = "Watch"

    def __init__(
        self,
        model: Any,
        loss: Callable[[Any, Any], Any],
        data: Any,
        *,
        every: int = 100,
        parts: Sequence[str] = CHEAP,
        budget: float | str = "5s",
        seed: int = 0,
        torch_optimizer: Any = None,
        **options: Any,
    ):
        self.every = arguments.whole("every", every, 1)
        self.torch_optimizer = torch_optimizer
        self.reports: list[tuple[int, Report]] = []
        """The step after which a report was made, and the report."""
        self.steps = 0
        self._given, self._options = (
            (model, loss, data),
            {"only": tuple(parts), "budget": budget, "seed": seed, "progress": False, **options},
        )
        diagnose(model, loss, data, dry_run=True, **self._options)  # what is wrong is said before training

    def __call__(self, parameters: Any = None) -> None:
        """A step has been made."""
        self.steps += 1
        if self.steps % self.every == 0:
            given = self._options if parameters is None else {**self._options, "parameters": parameters}
            self.reports.append((self.steps, diagnose(*self._given, optimizer=self.torch_optimizer, **given)))

    def to_frame(self) -> Any:
        """A pandas.DataFrame: a row for each step, a column for the measured value of each finding."""
        pandas = require("pandas", "data")
        rows = {
            step: {one.name: float(one.measured.value) for one in report.findings if one.measured is not None}
            for step, report in self.reports
        }
        frame = pandas.DataFrame.from_dict(rows, orient="index")
        frame.index.name = "step"
        return frame

    def worst(self) -> Report:
        """The report with the worst finding; of equals the first."""
        if not self.reports:
            raise ParameterError(f"nothing was looked at: {self.steps} steps were made, and every = {self.every}")
        return min((report for _, report in self.reports), key=lambda one: one.findings[0].rank if one.findings else 9)
