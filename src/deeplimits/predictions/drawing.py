"""The look of every figure: theory is a line, simulations are markers, and black and white is enough to tell them."""

from typing import Any

import numpy as np

THEORY = {"color": "black", "linewidth": 1.8, "zorder": 2}
MARKERS = "osD^vP"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
SHADE = {"color": "#999999", "alpha": 0.25, "linewidth": 0, "hatch": "//"}


def simulation(index: int, line: str = "none") -> dict[str, Any]:
    """The style of the simulations at the index-th size: open markers of a shape of their own."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "markerfacecolor": "white",
        "markersize": 5.5,
        "linestyle": line,
        "linewidth": 1.2,
        "zorder": 3,
    }


def error_bars(axes: Any, x: Any, mean: Any, error: Any, index: int, label: str | None) -> None:
    axes.errorbar(x, mean, yerror_of(error), capsize=2.5, label=label, **simulation(index))


def yerror_of(error: Any) -> Any:
    """Two standard errors, about a 95 % interval."""
    return 2 * np.asarray(error)


def size_axis(axes: Any, sizes: list[int]) -> None:
    """A logarithmic axis of sizes, ticked at the sizes themselves."""
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    if len(sizes) > 1:
        axes.set_xlim(min(sizes) / 1.4, max(sizes) * 1.4)
    axes.set_xlabel("size $n$")
