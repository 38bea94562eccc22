"""What the limits about online SGD have in common: their clocks, and what those about population losses state."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.limit import rounded, whole
from deeplimits.predictions import Curve
from deeplimits.theory.online_sgd.landscapes import Landscape


def even_times(horizon: Array, count: int) -> Array:
    """That many times at equal distances, the last of them the horizon."""
    return horizon * jnp.arange(1.0, count + 1) / count


def correlation_curve(times: Array, correlations: Array) -> Curve:
    """The mean path of the correlation."""
    return Curve(
        times,
        correlations,
        axis="samples per dimension",
        axis_symbol=r"\tau",
        label="correlation",
        symbol="m",
        rate=1.0,
    )


def paced(limit: Any, size: int, points: int, least: int) -> tuple[dict[str, Any], Any]:
    """Dimension and steps between `points` marks up to the horizon τ = steps/N; the limit at the horizon they have."""
    n = whole(size, "N", limit, least=least)
    every = whole(float(limit.horizon) * n / points, "steps between records", limit)
    return {"dimension": n, "every": every}, rounded(limit, horizon=every * points / n)


def moment_curves(landscape: Landscape, overlaps: Array) -> dict[str, Curve]:
    """Loss, drift and second moments of one sample's gradient, over the correlation."""
    drift = (1 - overlaps**2) * landscape.slope(overlaps)
    shared: dict[str, Any] = {"axis": "correlation", "axis_symbol": "m"}
    return {
        "loss": Curve(overlaps, landscape.loss(overlaps), label="population loss", symbol=r"\varphi", **shared),
        "slope": Curve(overlaps, drift, label="gradient along θ", symbol=r"(1-m^2)\varphi'", **shared),
        "squared_gradient": Curve(
            overlaps,
            landscape.squared_gradient(overlaps),
            label="squared gradient per dimension",
            symbol="s",
            rate=1.0,
            **shared,
        ),
        "directional_moment": Curve(
            overlaps,
            landscape.directional_variance(overlaps) + drift**2,
            label="second moment along θ",
            symbol=r"E\langle\nabla L,\theta\rangle^2",
            **shared,
        ),
    }
