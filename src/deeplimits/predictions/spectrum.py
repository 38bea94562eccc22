"""`Spectrum`: a limiting law of eigenvalues."""

import dataclasses
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.predictions.base import Report, Trial, as_floats, option
from deeplimits.predictions.distributions import Distribution, distance_report, histogram, judged_points
from deeplimits.predictions.picture import Axis, Line, Mark, Picture, Rule, Stem

EDGE_RATE = 2 / 3  # Tracy-Widom fluctuations of the extreme eigenvalues


class Spectrum(Distribution):
    """A law of eigenvalues: its density and distribution function on a grid, atoms, edges and outliers.

    A simulation returns the eigenvalues of one matrix. Eigenvalues repel each other, so they are no independent draws
    and Kolmogorov's law does not apply; the empirical distribution function of one matrix is one draw of a curve, and
    the mean of these curves over matrices is compared with the stated one. The extreme eigenvalues are compared with
    the edges at the rate size**(-2/3), and predicted outliers with the eigenvalues beyond the edges.
    """

    returns = "eigenvalues"
    compared = "mean empirical distribution function, edges, outliers"

    edges: Float[Array, "... ends"] = eqx.field(converter=as_floats)
    atoms: Float[Array, "... atoms"] = eqx.field(converter=as_floats, default_factory=lambda: jnp.zeros(0))
    atom_weights: Float[Array, "... atoms"] = eqx.field(converter=as_floats, default_factory=lambda: jnp.zeros(0))
    outliers: Float[Array, "... outliers"] = eqx.field(converter=as_floats, default_factory=lambda: jnp.zeros(0))
    _: KW_ONLY
    label: str = option(default="eigenvalue")
    symbol: str = option(default=r"\lambda")
    rate: float | None = option(default=1.0)
    outlier_rate: float = option(default=1.0)

    def reduced(self, measured: np.ndarray) -> "_Ordered":
        rows = np.sort(measured, axis=1)
        return _Ordered(rows, [_away_from(row, np.asarray(self.atoms)) for row in rows])

    @staticmethod
    def deviation(sizes, stated, reduced) -> statistics.Deviation:
        fits = [_bulk(sizes, stated, reduced), _edges(sizes, stated, reduced), _outliers(sizes, stated, reduced)]
        parts = zip(*(fit for fit in fits if fit is not None), strict=True)
        return statistics.largest_deviation(statistics.Extrapolation(*(np.concatenate(part) for part in parts)))

    @staticmethod
    def report(trials, reduced, deviation) -> Report:
        distances = [
            kolmogorov_distance(trial.stated, ordered.rows) for trial, ordered in zip(trials, reduced, strict=True)
        ]
        where = "in the bulk" if deviation.worst < len(_test_points(trials[-1].stated)) else "at the edges or outliers"
        scaled = trials[-1].size * distances[-1]
        remark = f"({scaled:.2g}/n), worst {where}"
        return distance_report(trials, distances, deviation, remark, f"extremes {_span(reduced[-1])}")

    def wrong_by(self, factor: float) -> "Spectrum":
        return dataclasses.replace(
            self,
            x=self.x * factor,
            density=self.density / factor,
            edges=self.edges * factor,
            outliers=self.outliers * factor,
        )

    def picture(self, trials: Sequence[Trial] = ()) -> Picture:
        # Beside simulations stands what was stated at their size.
        stated = trials[-1].stated if trials else self
        heights = np.asarray(stated.density)
        top = float(np.quantile(heights[np.isfinite(heights)], 0.98)) * 1.25
        marks: list[Mark] = []
        if trials:
            bulk, everything = np.concatenate(trials[-1].reduced.bulk), trials[-1].measured.size
            bins = min(80, max(12, int(np.sqrt(len(bulk)))))
            marks.append(histogram(bulk, len(bulk) / everything, bins, trials[-1].size))
        marks.append(Line(stated.x, heights, label="theory"))
        for place, weight in zip(np.asarray(stated.atoms), np.asarray(stated.atom_weights), strict=True):
            if weight > 0:
                marks.append(Stem(float(place), 0.9 * top, label=f"atom of mass {weight:.3g}"))
        for index, place in enumerate(np.asarray(stated.outliers)):
            marks.append(Rule(float(place), upright=True, label="" if index else "outlier"))
        return Picture(self.axis_of_values, Axis("density", low=0.0, high=top), tuple(marks))

    @classmethod
    def example(cls, rng: np.random.Generator) -> list[Trial]:
        # Wigner's semicircle, with x = −2 cos a.
        x = -2 * np.cos(np.arange(0.5, 200) * (np.pi / 200))
        density = np.sqrt(4 - x**2) / (2 * np.pi)
        stated = cls(x, density, 0.5 + x * density / 2 + np.arcsin(x / 2) / np.pi, np.array([-2.0, 2.0]))
        trials = []
        for n in (40, 80, 160):
            noise = rng.standard_normal((150, n, n))
            trials.append(Trial(n, stated, np.linalg.eigvalsh((noise + noise.transpose(0, 2, 1)) / np.sqrt(2 * n))))
        return trials

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


def kolmogorov_distance(stated: Spectrum, rows: np.ndarray) -> float:
    """Mean over matrices, whose eigenvalues are in order, of the Kolmogorov distance, on the grid of the stated law."""
    return float(np.abs(_empirical_cdf(rows, stated.x) - np.asarray(stated.cdf)).max(axis=1).mean())


class _Ordered(NamedTuple):
    """The eigenvalues of each matrix in ascending order, and those of them that sit on no atom."""

    rows: np.ndarray
    bulk: list[np.ndarray]


def _bulk(sizes, stated, reduced) -> statistics.Extrapolation:
    points = _test_points(stated[-1])
    means = [
        statistics.mean_of(_empirical_cdf(ordered.rows, np.asarray(one.x)[points]))
        for one, ordered in zip(stated, reduced, strict=True)
    ]
    return statistics.extrapolate(sizes, means, [np.asarray(one.cdf)[points] for one in stated], stated[-1].rate)


def _edges(sizes, stated, reduced) -> statistics.Extrapolation | None:
    """The extreme eigenvalues of each bulk beside the edges they should approach.

    An edge at zero is hard: eigenvalues pile up there at another rate, and it is left out.
    """
    soft = [edge for edge in (0, -1) if abs(stated[-1].edges[edge]) > 1e-9 * abs(stated[-1].edges[-1])]
    if not soft:
        return None
    means = []
    for one, ordered in zip(stated, reduced, strict=True):
        below, above = _outliers_beyond(one)
        kept = [row[below : len(row) - above] for row in ordered.bulk]
        means.append(statistics.mean_of(np.array([[row[edge] for edge in soft] for row in kept])))
    return statistics.extrapolate(sizes, means, [np.asarray(one.edges)[soft] for one in stated], EDGE_RATE)


def _outliers(sizes, stated, reduced) -> statistics.Extrapolation | None:
    """As many extreme eigenvalues of each matrix, on each side, as the theory states outliers there."""
    if not len(stated[-1].outliers):
        return None
    means = []
    for one, ordered in zip(stated, reduced, strict=True):
        below, above = _outliers_beyond(one)
        beyond = [ordered.rows[:, :below], ordered.rows[:, ordered.rows.shape[1] - above :]]
        means.append(statistics.mean_of(np.concatenate(beyond, axis=1)))
    return statistics.extrapolate(sizes, means, [np.asarray(one.outliers) for one in stated], stated[-1].outlier_rate)


def _outliers_beyond(stated: Spectrum) -> tuple[int, int]:
    outliers, (low, high) = np.asarray(stated.outliers), np.asarray(stated.edges)[[0, -1]]
    return int((outliers < low).sum()), int((outliers > high).sum())


def _test_points(stated: Spectrum) -> np.ndarray:
    """Where the distribution functions are compared: quantiles of the continuous part."""
    cdf = np.asarray(stated.cdf)
    return judged_points(cdf, cdf[0], cdf[-1])


def _empirical_cdf(rows: np.ndarray, x: Any) -> np.ndarray:
    return np.stack([np.searchsorted(row, np.asarray(x), side="right") for row in rows]) / rows.shape[1]


def _away_from(eigenvalues: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """The eigenvalues that do not sit on an atom."""
    scale = np.abs(eigenvalues).max()
    on_atom = np.zeros(eigenvalues.shape, bool)
    for atom in atoms:
        on_atom |= np.abs(eigenvalues - atom) < 1e-9 * scale
    return eigenvalues[~on_atom]


def _span(ordered: _Ordered) -> str:
    return f"[{np.mean([row[0] for row in ordered.bulk]):.4g}, {np.mean([row[-1] for row in ordered.bulk]):.4g}]"
