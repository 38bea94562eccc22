"""What the limits about initialization have in common."""

from jaxtyping import Array

from deeplimits.predictions import Curve


def layer_curve(layers: Array, y: Array, label: str, symbol: str, log_x: bool = False, log_y: bool = False) -> Curve:
    """What is followed from layer to layer, with a mean that deviates by O(1/width)."""
    return Curve(
        layers, y, axis="layer", axis_symbol="l", label=label, symbol=symbol, rate=1.0, log_x=log_x, log_y=log_y
    )
