"""What the limits about population losses state in common."""

from typing import Any

from jaxtyping import Array

from deeplimits.predictions import Curve
from deeplimits.theory.dynamics.single_index import Landscape


def moment_curves(landscape: Landscape, overlaps: Array) -> dict[str, Curve]:
    """Loss, drift and second moments of one sample's gradient, over the correlation."""
    drift = (1 - overlaps**2) * landscape.slope(overlaps)
    shared: dict[str, Any] = {"axis": "correlation", "axis_symbol": "m"}
    return {
        "loss": Curve(overlaps, landscape.loss(overlaps), label="population loss", symbol=r"\varphi", **shared),
        "slope": Curve(overlaps, drift, label="gradient along the signal", symbol=r"(1-m^2)\varphi'", **shared),
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
            label="squared gradient along the signal",
            symbol=r"E\langle\nabla L,\theta\rangle^2",
            **shared,
        ),
    }
