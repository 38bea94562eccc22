"""`Identity`: an exact statement about one finite system."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits.predictions.base import Finding, Kind, Trial, as_floats, number
from deeplimits.predictions.drawing import THEORY, simulation, size_axis

EPSILON = float(np.finfo(np.float64).eps)


class Identity(Kind):
    """What holds of every drawn system in exact arithmetic.

    Given by `stated`: `value` is what the theory says of the drawn system, an array of any shape. What is measured of
    the same system may differ from it, relative to the largest entry of `value`, by `tolerance` at most; `reason` says
    where that much comes from (rounding errors of so many steps, the tolerance of an integrator).
    """

    kind = "Identity"

    value: Float[Array, "..."] = eqx.field(converter=as_floats)
    label: str = eqx.field(static=True, kw_only=True)
    tolerance: float = eqx.field(static=True, kw_only=True)
    reason: str = eqx.field(static=True, kw_only=True)
    symbol: str = eqx.field(static=True, default="", kw_only=True)

    def of_draws(self, measured: np.ndarray) -> tuple["Identity", np.ndarray]:
        return self, measured

    @staticmethod
    def compare(trials: Sequence[Trial]) -> Finding:
        stated = trials[-1].stated
        sizes = [trial.size for trial in trials]
        worst = [float(residuals(trial).max()) for trial in trials]
        threshold = stated.tolerance
        agrees = max(worst) <= threshold
        word = "agrees" if agrees else "disagrees"
        return Finding(
            kind=Identity.kind,
            agrees=agrees,
            statistic=max(worst),
            threshold=threshold,
            p_value=None,
            verdict=f"{word}: largest residual {max(worst):.2g} (tolerance {threshold:.2g}: {stated.reason})",
            stated=stated.summary(),
            measured=number(max(worst)),
            details={"sizes": sizes, "residuals": worst, "reason": stated.reason},
        )

    def draw(self, axes: Any, trials: Sequence[Trial] = ()) -> None:
        threshold = self.tolerance
        axes.axhline(threshold, label="tolerance", **THEORY)
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
        values = np.asarray(self.value)
        return {"": (tuple(f"axis {axis}" for axis in range(values.ndim)), values)}

    def summary(self) -> str:
        values = np.asarray(self.value)
        if values.size == 1:
            return number(float(values.ravel()[0]))
        return f"{values.size} numbers, the largest {number(float(np.abs(values).max()))}"


def residuals(trial: Trial) -> np.ndarray:
    """The largest relative difference of what was measured and what was stated, for each draw."""
    measured = trial.measured.reshape(len(trial.measured), -1)
    stated = np.broadcast_to(np.asarray(trial.stated.value), trial.measured.shape).reshape(measured.shape)
    scale = np.maximum(np.abs(stated).max(axis=1), np.finfo(float).tiny)
    difference = np.abs(measured - stated).max(axis=1) / scale
    return np.where(np.isfinite(difference), difference, np.inf)
