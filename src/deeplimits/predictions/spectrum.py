"""`Spectrum`: a limiting law of eigenvalues."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.predictions.base import Finding, Kind, Trial, as_floats, judge
from deeplimits.predictions.drawing import COLOURS, THEORY

EDGE_RATE = 2 / 3  # Tracy-Widom fluctuations of the extreme eigenvalues
MOST_POINTS = 33


class Spectrum(Kind):
    """A law of eigenvalues: its density and distribution function on a grid, atoms, edges and outliers.

    A simulation returns the eigenvalues of one matrix. Eigenvalues repel each other, so they are no independent draws
    and Kolmogorov's law does not apply; the empirical distribution function of one matrix is one draw of a curve, and
    the mean of these curves over matrices is compared with the stated one. The extreme eigenvalues are compared with
    the edges at the rate size**(-2/3), and predicted outliers with the eigenvalues beyond the edges.
    """

    kind = "Spectrum"

    x: Float[Array, "... points"] = eqx.field(converter=as_floats)
    density: Float[Array, "... points"] = eqx.field(converter=as_floats)
    cdf: Float[Array, "... points"] = eqx.field(converter=as_floats)
    edges: Float[Array, "... ends"] = eqx.field(converter=as_floats)
    atoms: Float[Array, "... atoms"] = eqx.field(converter=as_floats, default_factory=lambda: jnp.zeros(0))
    atom_weights: Float[Array, "... atoms"] = eqx.field(converter=as_floats, default_factory=lambda: jnp.zeros(0))
    outliers: Float[Array, "... outliers"] = eqx.field(converter=as_floats, default_factory=lambda: jnp.zeros(0))
    label: str = eqx.field(static=True, default="eigenvalue", kw_only=True)
    symbol: str = eqx.field(static=True, default=r"\lambda", kw_only=True)
    rate: float | None = eqx.field(static=True, default=1.0, kw_only=True)
    outlier_rate: float = eqx.field(static=True, default=1.0, kw_only=True)

    @staticmethod
    def compare(trials: Sequence[Trial]) -> Finding:
        stated = trials[-1].stated
        sizes = [trial.size for trial in trials]
        points = _test_points(stated)
        bulk = statistics.extrapolate(
            sizes,
            [statistics.mean_of(_empirical_cdf(trial, points)) for trial in trials],
            [np.asarray(trial.stated.cdf)[points] for trial in trials],
            stated.rate,
        )
        parts = [bulk]
        edges, outliers = [_extremes(trial) for trial in trials], np.asarray(stated.outliers)
        if edges[0] is not None:
            parts.append(
                statistics.extrapolate(
                    sizes,
                    [statistics.mean_of(measured) for measured, _ in edges],  # pyright: ignore[reportGeneralTypeIssues]
                    [stated_edge for _, stated_edge in edges],  # pyright: ignore[reportGeneralTypeIssues]
                    EDGE_RATE,
                )
            )
        if len(outliers):
            parts.append(
                statistics.extrapolate(
                    sizes,
                    [statistics.mean_of(_beyond_edges(trial)) for trial in trials],
                    [np.asarray(trial.stated.outliers) for trial in trials],
                    stated.outlier_rate,
                )
            )
        fit = statistics.Extrapolation(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        deviation = statistics.largest_deviation(fit)
        distances = [kolmogorov_distance(trial) for trial in trials]
        where = "in the bulk" if deviation.worst < len(points) else "at the edges or outliers"
        scaled = sizes[-1] * distances[-1]
        law = f"Kolmogorov distance {distances[-1]:.2g} at n = {sizes[-1]} ({scaled:.2g}/n), worst {where}"
        return judge(
            deviation,
            law,
            kind=Spectrum.kind,
            stated=stated.summary(),
            measured=f"extremes {_span(trials[-1])}",
            details={"sizes": sizes, "kolmogorov_distances": distances, "rate": stated.rate},
        )

    def draw(self, axes: Any, trials: Sequence[Trial] = ()) -> None:
        if trials:
            trial = trials[-1]
            atoms = np.asarray(trial.stated.atoms)
            eigenvalues = _away_from(trial.measured.ravel(), atoms)
            share = len(eigenvalues) / trial.measured.size
            counts, bins = np.histogram(
                eigenvalues, bins=min(80, max(12, int(np.sqrt(len(eigenvalues))))), density=True
            )
            axes.stairs(
                counts * share, bins, fill=True, color=COLOURS[0], alpha=0.3, label=f"simulation, n = {trial.size}"
            )
            axes.stairs(counts * share, bins, color=COLOURS[0], linewidth=0.8)
        axes.plot(self.x, self.density, label="theory", **THEORY)
        heights = np.asarray(self.density)
        top = float(np.quantile(heights[np.isfinite(heights)], 0.98)) * 1.25
        for place, weight in zip(np.asarray(self.atoms), np.asarray(self.atom_weights), strict=True):
            if weight > 0:
                axes.plot([place, place], [0, 0.9 * top], color="black", linestyle="--", linewidth=1.2)
                axes.plot([place], [0.9 * top], color="black", marker="^", label=f"atom of mass {weight:.3g}")
        for place in np.asarray(self.outliers):
            axes.axvline(place, linestyle=":", color="black")
        axes.set_ylim(0, top)
        axes.set_xlabel(self.title)
        axes.set_ylabel("density")

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        return {
            "": (("x",), self.density),
            "x": (("x",), self.x),
            "cdf": (("x",), self.cdf),
            "edges": (("edge",), self.edges),
            "atoms": (("atom",), self.atoms),
            "atom_weights": (("atom",), self.atom_weights),
            "outliers": (("outlier",), self.outliers),
        }

    def summary(self) -> str:
        bulks = " and ".join(f"[{low:.4g}, {high:.4g}]" for low, high in np.asarray(self.edges).reshape(-1, 2))
        atoms = [
            f"atom {weight:.3g} at {place:.3g}"
            for place, weight in zip(np.asarray(self.atoms), np.asarray(self.atom_weights), strict=True)
            if weight > 0
        ]
        return ", ".join([bulks, *atoms])


def kolmogorov_distance(trial: Trial) -> float:
    """Mean over matrices of the Kolmogorov distance, on the grid of the stated law."""
    everywhere = np.arange(len(trial.stated.x))
    return float(np.abs(_empirical_cdf(trial, everywhere) - np.asarray(trial.stated.cdf)).max(axis=1).mean())


def _test_points(stated: Spectrum) -> np.ndarray:
    """Grid points between the 2 % and 98 % quantiles of the continuous part, evenly spread in probability."""
    cdf = np.asarray(stated.cdf)
    low, high = cdf[0], cdf[-1]
    wanted = np.linspace(low + 0.02 * (high - low), low + 0.98 * (high - low), MOST_POINTS)
    return np.unique(np.clip(np.searchsorted(cdf, wanted), 0, len(cdf) - 1))


def _empirical_cdf(trial: Trial, points: np.ndarray) -> np.ndarray:
    x = np.asarray(trial.stated.x)[points]
    ordered = np.sort(trial.measured, axis=1)
    return np.stack([np.searchsorted(row, x, side="right") for row in ordered]) / ordered.shape[1]


def _away_from(eigenvalues: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """The eigenvalues that do not sit on an atom."""
    scale = np.abs(eigenvalues).max()
    on_atom = np.zeros(eigenvalues.shape, bool)
    for atom in atoms:
        on_atom |= np.abs(eigenvalues - atom) < 1e-9 * scale
    return eigenvalues[~on_atom]


def _beyond_edges(trial: Trial) -> np.ndarray:
    """As many extreme eigenvalues of each matrix, on each side, as the theory states outliers there."""
    outliers, (low, high) = np.asarray(trial.stated.outliers), np.asarray(trial.stated.edges)[[0, -1]]
    below, above = int((outliers < low).sum()), int((outliers > high).sum())
    ordered = np.sort(trial.measured, axis=1)
    return np.concatenate([ordered[:, :below], ordered[:, ordered.shape[1] - above :]], axis=1)


def _extremes(trial: Trial) -> tuple[np.ndarray, np.ndarray] | None:
    """The extreme eigenvalues of each bulk matrix beside the edges they should approach.

    An edge at zero is hard: eigenvalues pile up there at another rate, and it is left out.
    """
    outliers, (low, high) = np.asarray(trial.stated.outliers), np.asarray(trial.stated.edges)[[0, -1]]
    below, above = int((outliers < low).sum()), int((outliers > high).sum())
    measured, stated = [], []
    rows = [np.sort(_away_from(row, np.asarray(trial.stated.atoms))) for row in trial.measured]
    rows = [row[below : len(row) - above] for row in rows]
    for edge, pick in ((low, 0), (high, -1)):
        if abs(edge) > 1e-9 * abs(high):
            measured.append([row[pick] for row in rows])
            stated.append(edge)
    return (np.array(measured).T, np.array(stated)) if stated else None


def _span(trial: Trial) -> str:
    rows = [_away_from(row, np.asarray(trial.stated.atoms)) for row in trial.measured]
    return f"[{np.mean([row.min() for row in rows]):.4g}, {np.mean([row.max() for row in rows]):.4g}]"
