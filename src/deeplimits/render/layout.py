"""Where things stand in a figure: words in lines, cells around their middles."""

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deeplimits.predictions.picture import Axis
from deeplimits.render.text import setting

MOST_STEPS = 5
"""Whole numbers, up to which a scale of colours marks each of them and nothing between."""


def lines_of(given: Axis, letters: int) -> list[str]:
    """Label and symbol in lines of at most so many letters."""
    if len(given.label) + len(given.symbol) <= letters:
        return [f"{given.label} ${given.symbol}$" if given.symbol else given.label]
    lines = evenly(given.label, letters - 2)
    return [*lines, f"${given.symbol}$"] if given.symbol else lines


def typeset(label: str) -> str:
    """A label in words, with indices such as C_w set as a formula.

    >>> typeset("ordered, C_w = 1.2"), typeset("risk_curve")
    ('ordered, $C_{w}$ = 1.2', 'risk_curve')
    """
    return label if "$" in label else re.sub(r"(?<![\w^])([^\W\d_])_([\w⊥∥])(?!\w)", r"$\1_{\2}$", label)


def heading(title: str, settings: Sequence[Mapping[str, Any]], letters: int) -> list[str]:
    """The title, and the settings in words, in lines of even length."""
    words = [setting(one) for one in settings]
    lines = math.ceil(len(words) / (3 if letters < 70 else 6))
    per_line = math.ceil(len(words) / lines) if words else 1
    return [*evenly(title, letters), *(", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line))]


def evenly(text: str, letters: int) -> list[str]:
    """A text in as few lines of at most so many letters as can be, of about the same length."""
    lines = textwrap.wrap(text, letters, break_on_hyphens=False) or [""]
    widths = range(max(1, len(text) // len(lines)), letters)
    shorter = (textwrap.wrap(text, width, break_on_hyphens=False) for width in widths)
    return next((found for found in shorter if len(found) == len(lines)), lines)


def cell_edges(middles: np.ndarray, log: bool) -> np.ndarray:
    """The ends of the cells around some places, in the middle between two on the scale of the axis."""
    if len(middles) < 2:
        return np.array([middles[0] * 0.9, middles[0] * 1.1]) if log else np.array([middles[0] - 0.5, middles[0] + 0.5])
    at = np.log(middles) if log else middles
    inner = (at[1:] + at[:-1]) / 2
    found = np.concatenate([[2 * at[0] - inner[0]], inner, [2 * at[-1] - inner[-1]]])
    return np.exp(found) if log else found


def steps_of(values: np.ndarray) -> list[float] | None:
    """The values of a field that tells a few cases apart by whole numbers; None for any other.

    >>> steps_of(np.array([[0.0, 2.0], [2.0, np.nan]]))
    [0.0, 2.0]
    """
    found = np.unique(values[np.isfinite(values)])
    return found.tolist() if 1 < len(found) <= MOST_STEPS and np.all(found == np.round(found)) else None
