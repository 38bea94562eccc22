"""The singular values of each layer beside Marchenko and Pastur's law: what training has written into the weights."""

import math
from collections.abc import Iterator

import numpy as np

from deeplimits.diagnosis.findings import Assumption, Finding
from deeplimits.diagnosis.subject import Subject
from deeplimits.measure.estimates import Estimate
from deeplimits.predictions.picture import Axis, Histogram, Line, Picture, Rule
from deeplimits.theory import spectra

LEAST, LARGEST = 8, 2048
"""Layers with a smaller side below the first have no law to speak of; above the second they take too long."""
MOST = 40
"""Singular values of a layer that are tested for standing out."""
SHOWN = 5
"""Layers that are named beside the first."""
LEVEL = 0.01
"""The chance that any layer of pure noise is told to hold something."""


def matrices(subject: Subject) -> dict[str, np.ndarray]:
    """The weights of each layer as a matrix, one row for each output."""
    found = {}
    for name, value in subject.model.parameters.items():
        if value.ndim >= 2:
            rows = value.reshape(value.shape[0], -1)
            if LEAST <= min(rows.shape) <= LARGEST:
                found[name] = rows
    return found


def examine(subject: Subject) -> Iterator[Finding]:
    """One finding for weights that are zero, one for the layer in which most stands out of the noise."""
    zero = [
        name
        for name, value in subject.model.parameters.items()
        if value.ndim >= 2 and value.size > 1 and not np.any(value)
    ]
    if zero:
        yield Finding(
            "zero-weights",
            "weights",
            "critical",
            f"all weights of {', '.join(zero[:4])} are zero: no signal passes, and no gradient reaches below.",
            "initialize them at random; only the last layer of a residual branch may start at zero.",
            Estimate(len(zero), None),
            "layers of zeros",
            0.0,
            (Assumption("weights were drawn at random", False),),
            ("goodfellow2016",),
            urgency=5.0,
            theory_what="of layers drawn at random",
        )
    layers = {name: rows for name, rows in matrices(subject).items() if name not in zero}
    if not layers:
        return
    found = {name: _spikes(rows, LEVEL / len(layers)) for name, rows in layers.items()}
    count = sum(one[0] for one in found.values())
    name = max(found, key=lambda key: (found[key][0], -found[key][1]))
    own, p = found[name]
    told = str(own) if own <= MOST else f"more than {MOST}"
    if count:
        sentence = (
            f"{count} singular values in {sum(one[0] > 0 for one in found.values())} of {len(layers)} layers stand out "
            f"of what independent weights would have; most in {name}: {told} (p = {p:.1g} for the first)"
            f"{_others(found, name)}."
        )
    else:
        sentence = (
            f"the singular values of all {len(layers)} layers are those of independent weights (the smallest p-value "
            f"is {p:.2g}, in {name}): nothing has been learned in them yet, or it is below the noise."
        )
    yield Finding(
        "spectra-of-weights",
        "weights",
        "note" if count else "fine",
        sentence,
        measured=Estimate(count, None),
        what="singular values that stand out",
        theory=0.0,
        assumptions=(Assumption("weights began independent, of one variance in each layer", None),),
        references=("marchenko1967", "johnstone2001"),
        picture=_picture(layers[name], name),
        urgency=-1.0,
        brief=f"{count} singular values stand out of independent weights, most ({told}) in {name}." if count else "",
        theory_what="of independent random weights",
    )


def _others(found: dict[str, tuple[int, float]], first: str) -> str:
    """The other layers in which something stands out, the ones with most first."""
    rest = sorted((key for key in found if key != first and found[key][0]), key=lambda key: -found[key][0])
    if not rest:
        return ""
    shown = ", ".join(f"{key} {found[key][0]} (p = {found[key][1]:.1g})" for key in rest[:SHOWN])
    return f"; then {shown}" + (f", and {len(rest) - SHOWN} more" if len(rest) > SHOWN else "")


def _scaled(rows: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Eigenvalues of X'X/n, largest first, for the longer side n and the shorter p, and n, p."""
    n, p = max(rows.shape), min(rows.shape)
    return np.linalg.svd(rows, compute_uv=False) ** 2 / n, n, p


def _spikes(rows: np.ndarray, level: float) -> tuple[int, float]:
    """How many singular values stand out one after another, and the p-value of the first that was tested.

    Each is tested against noise of the variance that is left without those before it.
    """
    values, n, p = _scaled(rows)
    first = 1.0
    most = min(p - LEAST, MOST)
    for count in range(most + 1):
        variance = float(values[count:].sum()) / (p - count)
        if variance <= 0:
            return count, first
        found = float(spectra.largest_eigenvalue_pvalue(values[count], n, p - count, variance=variance))
        first = found if count == 0 else first
        if found >= level:
            return count, first
    return most + 1, first


def _picture(rows: np.ndarray, name: str) -> Picture:
    values, n, p = _scaled(rows)
    scale = float(np.median(values)) / float(spectra.marchenko_pastur(p / n).ppf(0.5))
    law = spectra.marchenko_pastur(p / n)
    low, high = (float(edge) * scale for edge in spectra.marchenko_pastur_edges(p / n))
    grid = np.linspace(low, high, 200)
    heights, edges = np.histogram(values, bins=max(10, int(math.sqrt(p) * 2)), density=True)
    return Picture(
        Axis(f"squared singular values of {name}, over {n}"),
        Axis("density"),
        (
            Histogram(edges, heights, label="measured", role="simulation", series=0),
            Line(grid, np.asarray(law.pdf(grid / scale)) / scale, label="independent weights"),
            Rule(high, upright=True, label="edge of the law"),
        ),
    )
