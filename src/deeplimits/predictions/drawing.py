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


def error_bars(axes: Any, x: Any, mean: Any, error: Any, index: int = 0, label: str = "simulation ± 2 s.e.") -> None:
    """Means with bars of two standard errors, about a 95 % interval."""
    axes.errorbar(x, mean, 2 * np.asarray(error), capsize=2.5, label=label, **simulation(index))


def log_axis(axis: Any) -> None:
    """A logarithmic axis ticked at 1, 2, 5, 10, ... in plain numbers, where those are few enough to be read."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    if high / low < 300:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def size_axis(axes: Any, sizes: list[int]) -> None:
    """A logarithmic axis of sizes, ticked at the sizes themselves."""
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    if len(sizes) > 1:
        axes.set_xlim(min(sizes) / 1.4, max(sizes) * 1.4)
    axes.set_xlabel("size $n$")


def at_least(axes: Any, centre: float, half_height: float) -> None:
    """Keep rounding errors from filling the panel: show at least centre ± half_height."""
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, centre - half_height), max(high, centre + half_height))
