"""What the limits about regression have in common: the interpolation threshold p = n, and their curves."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.errors import OutsideValidity
from deeplimits.limit import Limit, rounded, whole
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Curve
from deeplimits.theory.spectra.ridge_equation import AT_THRESHOLD

# Closer to p = n than this the risk of a finite sample has too few moments for its mean to be measured.
CLOSEST = 8


def at_threshold(gamma: ArrayLike) -> bool:
    """Whether one of the ratios p/n is 1, up to rounding."""
    return bool(np.any(np.abs(np.asarray(gamma) - 1) < AT_THRESHOLD))


def features_of(limit: Limit, samples: int, gamma: float, least: int = 1, name: str = "gamma") -> int:
    """The whole number of features p of n samples at the ratio gamma, refused too near to n."""
    n, p = samples, whole(gamma * samples, "p", limit, least)
    if abs(p - n) < CLOSEST:
        raise OutsideValidity(
            f"{type(limit).__name__}: at n = {n} {name} = {written(gamma)} means p = {p}, and a finite sample needs "
            f"|p - n| >= {CLOSEST} for its mean risk to be measurable; take sizes from "
            f"{int(np.ceil(round(CLOSEST / max(abs(gamma - 1), 1e-12), 6)))} on, or {name} further from 1"
        )
    return p


def proportional(
    limit: Any, size: int, least: int, names: tuple[str, str] = ("samples", "features")
) -> tuple[Any, Any]:
    """n = `size` samples of p features, and the limit at the ratio p/n that these have."""
    n = whole(size, "n", limit, least=least)
    p = whole(float(limit.gamma) * n, "p", limit)
    return dict(zip(names, (n, p), strict=True)), rounded(limit, gamma=p / n)


def dense_times(times: Array) -> Array:
    """Training times to draw a curve through, denser at the start, where it bends."""
    return jnp.linspace(times[0] ** 0.25, times[-1] ** 0.25, 100) ** 4


def time_curve(
    times: Array, dense: Array, values: Array, *, label: str, symbol: str, resolution: float = 1e-12
) -> Curve:
    """A quantity along training, from its values at the times and then at the dense ones."""
    count = times.shape[0]
    return Curve(
        times, values[:count], axis="training time", axis_symbol="t", label=label, symbol=symbol, rate=1.0,
        resolution=resolution, dense_x=dense, dense_y=values[count:], log_x=True,
    )  # fmt: skip


def risk_curve(gammas: Array, risks: Array, dense: Array, dense_risks: Array, *, log_y: bool = False) -> Curve:
    """The excess risk against features per sample, at the ratios that are simulated and between them."""
    return Curve(
        gammas, risks, axis="features per sample", axis_symbol=r"\gamma", label="excess risk", symbol="R", rate=1.0,
        dense_x=dense, dense_y=dense_risks, log_x=True, log_y=log_y,
    )  # fmt: skip
