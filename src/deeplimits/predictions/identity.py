"""`Identity`: an exact statement about one finite system."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np

from deeplimits.predictions.base import Finding, Kind, Trial, number
from deeplimits.predictions.drawing import THEORY, simulation, size_axis

EPSILON = float(np.finfo(np.float64).eps)


class Identity(Kind):
    """Two quantities that are equal in exact arithmetic.

    A simulation returns both sides, stacked on its first axis: what the finite system did, and what the identity says
    of that very system. Their largest difference, relative to the largest entry of the second side, may be at most
    `constant` times the machine precision; the constant states how rounding errors accumulate.
    """

    kind = "Identity"

    label: str = eqx.field(static=True, kw_only=True)
    constant: float = eqx.field(static=True, default=1e4, kw_only=True)
    symbol: str = eqx.field(static=True, default="", kw_only=True)

    @staticmethod
    def compare(trials: Sequence[Trial]) -> Finding:
        stated = trials[-1].stated
        sizes = [trial.size for trial in trials]
        worst = [float(residuals(trial).max()) for trial in trials]
        threshold = stated.constant * EPSILON
        agrees = max(worst) <= threshold
        word = "agrees" if agrees else "disagrees"
        return Finding(
            kind=Identity.kind,
            agrees=agrees,
            statistic=max(worst),
            threshold=threshold,
            p_value=None,
            verdict=f"{word}: largest residual {max(worst):.2g} (threshold {threshold:.2g})",
            stated=stated.summary(),
            measured=number(max(worst)),
            details={"sizes": sizes, "residuals": worst},
        )

    def draw(self, axes: Any, trials: Sequence[Trial] = ()) -> None:
        threshold = self.constant * EPSILON
        axes.axhline(threshold, label="rounding permitted", **THEORY)
        highest = threshold
        if trials:
            found = [(trial.size, max(residual, EPSILON / 10)) for trial in trials for residual in residuals(trial)]
            axes.plot(*np.array(found).T, label="simulations", **simulation(0))
            # A residual that is too large must be seen.
            highest = max([highest, *(residual for _, residual in found if np.isfinite(residual))])
            size_axis(axes, [trial.size for trial in trials])
        axes.set_yscale("log")
        axes.set_ylim(EPSILON / 20, highest * 10)
        axes.set_ylabel(f"relative residual of\n{self.title}")

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        return {"": ((), np.asarray(0.0))}

    def summary(self) -> str:
        return f"residual ≤ {self.constant:g} machine precisions"


def residuals(trial: Trial) -> np.ndarray:
    """The largest relative difference of the two sides, for each simulation."""
    sides = trial.measured.reshape(len(trial.measured), 2, -1)
    scale = np.maximum(np.abs(sides[:, 1]).max(axis=1), np.finfo(float).tiny)
    difference = np.abs(sides[:, 0] - sides[:, 1]).max(axis=1) / scale
    return np.where(np.isfinite(difference), difference, np.inf)
