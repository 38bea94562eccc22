"""Quadrature of a density between known edges."""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from deeplimits.errors import NotConverged

Floats = NDArray[np.floating]
MASS_TOLERANCE = 1e-10
PIECE_TOLERANCE = 1e-13
MOST_PIECES = 2**14
NODES = 129
FINEST = 1e-12
# Nodes come within 1e-68 of the bulk's width of a lower edge, which matters where that is zero and the density grows
# like a power up to x^{−3/4}; within 1e-24 of an upper one, which no double-precision number resolves.
FIRST, LAST = -4.6, 3.6


class Rule(NamedTuple):
    """Quadrature in pieces of the bulks: nodes in t, points x(t) and weights that contain the density."""

    pieces: Floats
    nodes: Floats
    points: Floats
    weights: Floats


def quadrature_rule(density: Callable, edges: Floats, cuts: Floats, in_atoms: float) -> Rule:
    """Points and weights with ∫ f ρ ≈ Σ w f(x): pieces are cut until halving the step changes nothing in any."""
    pieces = []
    for low, high in edges:
        ends = [low, *(cut for cut in np.sort(cuts) if low < cut < high), high]
        pieces += list(itertools.pairwise(ends))
    pieces = np.array(pieces).reshape(-1, 2)
    t = np.linspace(FIRST, LAST, NODES)
    # x = low + width s, s = 1/(1 + exp(−π sinh t))
    s = special.expit(np.pi * np.sinh(t))
    slope = (t[1] - t[0]) * np.pi * np.cosh(t) * s * special.expit(-np.pi * np.sinh(t))
    done: list[tuple[Floats, Floats, Floats]] = []
    unresolved = 0.0
    while len(pieces):
        widths = pieces[:, 1:] - pieces[:, :1]
        points = pieces[:, :1] + widths * s
        weights = widths * slope * np.asarray(density(points))
        coarse = 2 * weights[:, ::2].sum(axis=1)
        # Beside an edge away from zero floating point does not resolve a density that grows like distance^{−1/2}.
        tiny = widths[:, 0] < FINEST * np.abs(pieces).max(axis=1)
        settled = tiny | (np.abs(weights.sum(axis=1) - coarse) < PIECE_TOLERANCE)
        done.append((pieces[settled], points[settled], weights[settled]))
        unresolved += float(np.sum(weights[tiny]))
        pieces = pieces[~settled]
        if sum(len(part[0]) for part in done) + 4 * len(pieces) > MOST_PIECES:
            raise NotConverged(
                f"the density on [{pieces[0, 0]:g}, {pieces[0, 1]:g}] could not be integrated with {MOST_PIECES} pieces"
            )
        fractions = np.linspace(0, 1, 5)
        marks = pieces[:, :1] + (pieces[:, 1:] - pieces[:, :1]) * fractions
        pieces = np.stack([marks[:, :-1].ravel(), marks[:, 1:].ravel()], axis=1)
    if not done:
        return Rule(np.zeros((0, 2)), t, np.zeros((0, NODES)), np.zeros((0, NODES)))
    joined = [np.concatenate(column) for column in zip(*done, strict=True)]
    order = np.argsort(joined[0][:, 0])
    total = joined[2].sum() + in_atoms
    if abs(total - 1) > MASS_TOLERANCE + unresolved:
        raise NotConverged(
            f"the density between the edges and the atoms have total mass {total:.12g} instead of 1; the edges or the "
            "atoms are wrong"
        )
    return Rule(joined[0][order], t, joined[1][order], joined[2][order])
