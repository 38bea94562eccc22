"""What all kinds of prediction have in common."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from deeplimits.errors import DeeplimitsError, ParameterError
from deeplimits.predictions.picture import Axis, Picture
from deeplimits.statistics import BLIND, NEAR, Deviation, Mean, least_noticed, mean_of


@dataclass(frozen=True)
class Trial:
    """What was stated and what was measured at one size."""

    size: int
    stated: Any
    """The prediction at the ratios that a system of this size really has."""
    measured: np.ndarray
    """The simulations' answers, one per row."""

    @cached_property
    def reduced(self) -> Any:
        """What judging and drawing need of the measurements, computed once."""
        return self.stated.reduced(self.measured)

    @cached_property
    def mean(self) -> Mean:
        """The mean over simulations and its error, whatever the kind."""
        return self.reduced if isinstance(self.reduced, Mean) else mean_of(self.measured)

    def beside(self, stated: Any) -> "Trial":
        """The same measurements beside another statement."""
        return Trial(self.size, stated, self.measured)


def as_floats(value: Any) -> Any:
    """Numbers become arrays of floats; None, for what is not given, and JAX's own placeholders pass."""
    return jnp.asarray(value, dtype=float) if isinstance(value, int | float | np.ndarray | np.number) else value


option = partial(eqx.field, static=True)
"""A field for words and settings, which JAX does not trace."""


class Report(NamedTuple):
    """What a kind says of measurements beside its statement, in words and in numbers."""

    gap: str
    """How large the gap is, and how it depends on the size."""
    stated: str
    measured: str
    record: NamedTuple
    """The numbers behind it, for JSON."""


AGREES, DISAGREES, UNDECIDED = "agrees", "disagrees", "undecided"


@dataclass(frozen=True)
class Finding:
    """How one prediction compared with its simulations."""

    kind: str
    outcome: str
    """`agrees`, `disagrees` or `undecided`."""
    deviation: Deviation
    noticed: float | None
    """The smallest relative error of the theory that would have been noticed; None where a factor means nothing."""
    report: Report
    lacks: str = ""
    """What an undecided comparison has too few of: `samples`, or `sizes` where those it has are too small."""
    advice: str = ""
    """What would decide it, in a sentence."""

    def __repr__(self) -> str:
        return f"{self.kind} {self.report.stated}, simulated {self.report.measured}: {self.verdict}"

    @property
    def agrees(self) -> bool:
        return self.outcome == AGREES

    @property
    def verdict(self) -> str:
        """The finding in words and numbers."""
        within = "" if self.noticed is None or not self.agrees else f" to within {percent(self.noticed)}"
        said = f"{self.outcome}{within}: {self.report.gap}"
        return f"{said}; {self.advice}" if self.advice else said

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "outcome": self.outcome,
            "verdict": self.verdict,
            "agrees": self.agrees,
            "statistic": self.deviation.statistic,
            "threshold": self.deviation.threshold,
            "p_value": self.deviation.p_value,
            "noticed": self.noticed if self.noticed is not None and np.isfinite(self.noticed) else None,
            "stated": self.report.stated,
            "measured": self.report.measured,
            "details": self.report.record._asdict(),
        }


class Kind(eqx.Module):
    """One thing a theory predicts. The concrete kinds say how it is compared and what picture it makes.

    A new kind is one file that implements this class and one line in `predictions/__init__.py`; the tests and the
    documentation find it there.
    """

    kind: ClassVar[str]
    """The name of the class, which is what a reader and a document know the kind by."""
    returns: ClassVar[str]
    """What a simulation returns, how it is compared, and what is drawn: a few words each, for the documentation."""
    compared: ClassVar[str]
    drawn: ClassVar[str]

    _: KW_ONLY
    label: str = option()
    symbol: str = option(default="")

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        cls.kind = cls.__name__

    def __repr__(self) -> str:
        try:
            return f"{self.kind}({self.label}: {self.summary()})"
        except TypeError:  # what is traced, or a batch, has no single number to say
            return super().__repr__()

    @abstractmethod
    def reduced(self, measured: np.ndarray) -> Any:
        """What judging and drawing need of the measurements at one size, whatever is stated."""

    @staticmethod
    @abstractmethod
    def deviation(sizes: Sequence[int], stated: Sequence[Any], reduced: Sequence[Any]) -> Deviation:
        """How far the statements at several sizes are from the measurements there."""

    @staticmethod
    @abstractmethod
    def report(trials: Sequence[Trial], reduced: Sequence[Any], deviation: Deviation) -> Report:
        """What is said of that."""

    @abstractmethod
    def wrong_by(self, factor: float) -> "Kind | None":
        """The same statement wrong by a factor; None where there is nothing to multiply."""

    @property
    def shape_of_one(self) -> tuple[int, ...] | None:
        """The shape of what one simulation must return; None where several will do."""
        return None

    @property
    def exact(self) -> bool:
        """Whether this is stated of systems of every size, and not only of the limit."""
        return getattr(self, "rate", None) is None

    @classmethod
    def judge(cls, trials: Sequence[Trial]) -> Finding:
        """Judge simulations at several sizes, and find out what this comparison would have noticed."""
        sizes = [trial.size for trial in trials]
        stated = [trial.stated for trial in trials]
        reduced = [trial.reduced for trial in trials]
        deviation = cls.deviation(sizes, stated, reduced)

        def beside_wrong(factor: float) -> Deviation:
            # At some sizes nothing but zero may be stated, which no factor changes.
            return cls.deviation(sizes, [one.wrong_by(factor) or one for one in stated], reduced)

        noticed = cls.noticed(stated, deviation, beside_wrong)
        outcome = UNDECIDED
        if deviation.disagrees:
            outcome = DISAGREES
        elif deviation.agrees and (noticed is None or noticed <= BLIND):
            outcome = AGREES
        report = cls.report(trials, reduced, deviation)
        wanted = _advice(deviation, noticed, sizes, len(trials[0].measured)) if outcome == UNDECIDED else ("", "")
        return Finding(cls.kind, outcome, deviation, noticed, report, *wanted)

    @classmethod
    def noticed(
        cls, stated: Sequence[Any], deviation: Deviation, beside_wrong: Callable[[float], Deviation]
    ) -> float | None:
        """The smallest relative error that would have been noticed; None where the statement is zero."""
        return None if stated[-1].wrong_by(2.0) is None else least_noticed(beside_wrong)

    @abstractmethod
    def picture(self, trials: Sequence[Trial] = ()) -> Picture:
        """The prediction, and the simulations where there are any, as they should be seen."""

    @classmethod
    @abstractmethod
    def example(cls, rng: np.random.Generator) -> list[Trial]:
        """A true statement beside simulations of it at three sizes, made up: what every kind is tested on."""

    @abstractmethod
    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """The prediction as named arrays: name -> (dimension names, values). The entry '' is the prediction itself."""

    @abstractmethod
    def summary(self) -> str:
        """The prediction in a few characters."""

    def trial(self, size: int, measured: np.ndarray, *, drawn: bool = False) -> Trial:
        """The statement beside measurements at one size; with `drawn`, each draw has a statement of its own.

        A kind that compares something other than what a simulation returns (a distance from a path, a squared
        deviation) turns the measurements into that here.
        """
        if drawn:
            stated, measured = self.of_draws(measured)
            return Trial(size, stated, stated.seen(size, measured))
        return Trial(size, self, self.seen(size, measured))

    def seen(self, size: int, measured: np.ndarray) -> np.ndarray:
        """What is compared, made from what simulations returned."""
        return measured

    def of_draws(self, measured: np.ndarray) -> tuple["Kind", np.ndarray]:
        """Statements about single draws, stacked on the first axis, as one statement, and measurements beside that."""
        raise DeeplimitsError(f"{self.label}: a {self.kind} cannot be stated about a single draw; give it in theory()")

    def on_one_scale(self, trials: "Sequence[Trial]") -> "list[Trial]":
        """Trials of statements about single draws, where those are compared by ratios, in the units of the last size.

        Statements may be larger at one size than at another; a gap that closes like size**-rate is a relative one.
        """
        return list(trials)

    @property
    def axis_of_values(self) -> Axis:
        """An axis with this prediction's label and symbol."""
        return Axis(self.label, self.symbol)

    def to_json(self) -> dict[str, Any]:
        values = {name or "value": np.asarray(value).tolist() for name, (_, value) in self.arrays().items()}
        return {"kind": self.kind, "label": self.label, "symbol": self.symbol, **values}


def multiplied(kind: Any, field: str, factor: float) -> Any:
    """The same kind with the array `field` multiplied; None where that is zero, which stays what it is."""
    values = np.asarray(getattr(kind, field))
    return replace(kind, **{field: values * factor}) if np.any(values) else None


def _advice(deviation: Deviation, noticed: float | None, sizes: Sequence[int], samples: int) -> tuple[str, str]:
    """What a comparison that decided nothing lacks, and a sentence about it."""
    distinct = sorted(set(sizes))
    still = f"the finite-size correction is still {percent(deviation.correction)} at n = {distinct[0]}"
    if deviation.correction > NEAR and len(distinct) < 3:
        return "sizes", f"{still}, and two sizes cannot tell how it closes: take three sizes, or larger ones"
    if not deviation.asymptotic or deviation.noise < 0.5:
        return "sizes", f"{still}, too much for the stated rate: take sizes of {4 * distinct[0]} and more"
    if noticed is None or not np.isfinite(noticed):
        return "samples", f"not even an error of 80 % would be noticed: take {16 * samples} samples or more"
    more = max(2, int(np.ceil(1.2 * (noticed / BLIND) ** 2)))
    return "samples", f"only an error of {percent(noticed)} would be noticed: take {more * samples} samples or more"


def percent(share: float) -> str:
    """A relative error to two digits: 3.1 %, 0.02 %."""
    if not np.isfinite(share):
        return "more than 80 %"
    return f"{100 * share:.2g} %" if share < 1 else f"{100 * share:.0f} %"


def standardized(deviation: Deviation) -> str:
    """The statistic and its threshold; with its p-value where it is not a normal deviation."""
    if deviation.normal:
        return f"z = {deviation.statistic:.2g} (threshold {deviation.threshold:.2g})"
    return f"statistic {deviation.statistic:.2g} (threshold {deviation.threshold:.2g}, p = {deviation.p_value:.2g})"


def number(value: float, error: float | None = None) -> str:
    """A number to six digits, or to two digits of its error: 0.5012(34)."""
    if error is None or not np.isfinite(error) or error <= 0:
        return f"{value:.6g}"
    places = max(0, 1 - int(np.floor(np.log10(error))))
    if places > 8 or error >= 100:
        return f"{value:.3g} ± {error:.1g}"
    return f"{value:.{places}f}({error * 10**places:.0f})"


def gap_law(coefficient: float, error: float, rate: float | None, exact_gap: float) -> str:
    """How the gap depends on the size: '0.9(1)/n', or 'gap 1e-4' for a theory exact at every size."""
    if rate is None:
        return f"exact at every size, gap {exact_gap:.2g}"
    power = "n" if rate == 1 else f"n^{rate:.3g}"
    return f"gap {number(coefficient, error)}/{power}"


PER_DRAW = ("ratio", "difference")


def beside_mean(stated: Any, measured: np.ndarray, per_draw: str) -> tuple[np.ndarray, np.ndarray]:
    """The mean of statements about single draws, and the measurements as if each draw had had that mean stated.

    With `ratio` a measurement keeps its ratio to what was stated of its own draw, with `difference` its difference.
    """
    stated = np.asarray(stated, dtype=float)
    middle = np.asarray(stated.mean(axis=0))
    if per_draw == "difference":
        return middle, measured - stated + middle
    if np.any(stated == 0):
        raise ParameterError("a statement about single draws is zero for some of them: state it per_draw='difference'")
    return middle, measured / stated * middle


def rescaled(trials: Sequence[Trial], field: str) -> list[Trial]:
    """Every trial with its statement, the array `field`, replaced by the last one's, and measurements in proportion."""
    goal = np.asarray(getattr(trials[-1].stated, field))
    found = []
    for trial in trials:
        own = np.asarray(getattr(trial.stated, field))
        found.append(Trial(trial.size, replace(trial.stated, **{field: goal}), trial.measured * (goal / own)))
    return found
