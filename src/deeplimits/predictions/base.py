"""What all kinds of prediction have in common."""

import textwrap
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from deeplimits.errors import DeeplimitsError, ParameterError
from deeplimits.statistics import Deviation


class Trial(NamedTuple):
    """What was stated and what was measured at one size."""

    size: int
    stated: Any
    """The prediction at the ratios that a system of this size really has."""
    measured: np.ndarray
    """The simulations' answers, one per row."""


def as_floats(value: Any) -> Any:
    """Numbers become arrays of floats; None, for what is not given, and JAX's own placeholders pass."""
    return jnp.asarray(value, dtype=float) if isinstance(value, int | float | np.ndarray | np.number) else value


@dataclass(frozen=True)
class Finding:
    """How one prediction compared with its simulations."""

    kind: str
    agrees: bool
    statistic: float
    threshold: float
    p_value: float | None
    verdict: str
    """The finding in words and numbers."""
    stated: str
    measured: str
    details: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "verdict": self.verdict,
            "agrees": self.agrees,
            "statistic": self.statistic,
            "threshold": self.threshold,
            "p_value": self.p_value,
            "stated": self.stated,
            "measured": self.measured,
            **self.details,
        }


class Kind(eqx.Module):
    """One thing a theory predicts. The concrete kinds say how it is compared and how it is drawn."""

    kind: ClassVar[str]

    label: eqx.AbstractVar[str]
    symbol: eqx.AbstractVar[str]

    @staticmethod
    @abstractmethod
    def compare(trials: Sequence[Trial]) -> Finding:
        """Judge simulations at several sizes."""

    @abstractmethod
    def draw(self, axes: Any, trials: Sequence[Trial] = ()) -> None:
        """Draw the prediction, and the simulations where there are any, on matplotlib axes."""

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
    def title(self) -> str:
        """Label and symbol, as they stand on an axis."""
        return f"{self.label} ${self.symbol}$" if self.symbol else self.label

    @property
    def broken_title(self) -> str:
        """The title in lines short enough to stand beside a panel."""
        if len(self.label) + len(self.symbol) <= 36:
            return self.title
        lines = textwrap.wrap(self.label, 32)
        return "\n".join([*lines, f"${self.symbol}$"] if self.symbol else lines)

    def to_json(self) -> dict[str, Any]:
        values = {name or "value": np.asarray(value).tolist() for name, (_, value) in self.arrays().items()}
        return {"kind": self.kind, "label": self.label, "symbol": self.symbol, **values}


def judge(deviation: Deviation, gap: str, *, kind: str, stated: str, measured: str, details: dict[str, Any]) -> Finding:
    """The finding that a deviation leads to, with the verdict in words and numbers; `gap` says how large it is."""
    word = "agrees" if deviation.agrees else "disagrees"
    return Finding(
        kind=kind,
        agrees=deviation.agrees,
        statistic=deviation.statistic,
        threshold=deviation.threshold,
        p_value=deviation.p_value,
        verdict=f"{word}: z = {deviation.statistic:.2g} (threshold {deviation.threshold:.2g}), {gap}",
        stated=stated,
        measured=measured,
        details=details,
    )


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
