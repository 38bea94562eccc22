"""Ready sweeps: the phase diagrams of the field, each one command.

deeplimits sweep --diagram catapult --plot catapult.png
"""

from dataclasses import dataclass
from typing import Any

from deeplimits.errors import UnknownName, did_you_mean


@dataclass(frozen=True)
class Diagram:
    """A limit, the values that its parameters take, how much is simulated, and the results that are drawn."""

    title: str
    limit: str
    values: dict[str, Any]
    results: tuple[str, ...]
    sizes: tuple[int, ...]
    samples: int


DIAGRAMS = {
    "attention": Diagram(
        "Self-attention clusters: the cosine of two tokens over time and inverse temperature",
        "equiangular-reduction",
        {"beta": [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0], "times": "0.1:18:16log", "tokens": 8},
        ("uniform",),
        (500, 1000),
        40,
    ),
    "clustering-time": Diagram(
        "When half of all pairs of tokens are one: over inverse temperature and number of tokens",
        "clustering-phase-diagram",
        {"beta": "0:5:9", "tokens": [2, 4, 8, 16, 32]},
        ("transition",),
        (1000, 2000),
        60,
    ),
    "xor-success": Diagram(
        "How often a network of given width learns XOR, at three ridges",
        "xor-success-probability",
        {"width": [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24], "ridge": [0.005, 0.02, 0.05]},
        ("success",),
        (6, 12),
        1000,
    ),
    "catapult": Diagram(
        "Lazy, catapult, divergent: gradient descent over the learning rate",
        "catapult-phase-diagram",
        {"multiples": "0.3:7.7:38"},
        ("bounded", "growth"),
        (100, 200, 400),
        200,
    ),
    "order-chaos": Diagram(
        "Deep networks in the plane of weight and bias variance: the distance of two inputs; ordered where it is blank",
        "order-chaos-phase-diagram",
        {"chaotic": "1:5:13", "bias_variance": "0.01:0.8:7", "ordered": 0.3, "layers": 20},
        ("chaotic_path",),
        (100, 200),
        60,
    ),
    "sgd-regimes": Diagram(
        "Where one-pass SGD stops, over learning rate and label noise, up to the learning rate that it cannot bear",
        "noise-floor-and-critical-learning-rate",
        {"step": "0.25:3.75:8", "noise": "0.002:0.06:7log"},
        ("floor",),
        (20, 80),
        100,
    ),
}
"""By name."""


def diagram(name: str) -> Diagram:
    """The diagram of that name."""
    if name not in DIAGRAMS:
        raise UnknownName(
            f"there is no diagram {name!r}; there are {', '.join(DIAGRAMS)}{did_you_mean(name, DIAGRAMS)}"
        )
    return DIAGRAMS[name]


def listing() -> str:
    """A line for each."""
    width = max(map(len, DIAGRAMS))
    return "\n".join(f"{name.ljust(width)}  {one.title} ({one.limit})" for name, one in DIAGRAMS.items())
