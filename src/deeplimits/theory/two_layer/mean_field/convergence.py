"""What the theorem of Chizat and Bach asks of a start, so that a wide network reaches a global minimum."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import arguments
from deeplimits.numerics.quasi_random import gaussian_points
from deeplimits.theory.two_layer.mean_field.particles import Particles


class Convergence(NamedTuple):
    """The hypotheses one by one, as far as finitely many neurons show them."""

    homogeneous: bool
    """Whether a σ(⟨w, x⟩) is positively homogeneous of degree two in (a, w), as for ReLU."""
    both_signs: bool
    """Whether output weights of both signs carry weight."""
    largest_gap: float
    """The largest angle, over directions of w and both signs of a, to the nearest neuron; 0 if all are charged."""
    imbalance: float
    """The largest a² − |w|², which the flow of a homogeneous network conserves; at most 0 keeps signs of a."""

    @property
    def applies(self) -> bool:
        """Whether nothing speaks against the theorem: its directions are charged by infinitely many neurons only."""
        return self.homogeneous and self.both_signs and self.imbalance <= 1e-12


def convergence_conditions(start: Particles, activation: ActivationLike, *, points: int = 512) -> Convergence:
    """Whether a start satisfies what global convergence asks: homogeneity, both signs, every direction, |a| ≤ |w|.

    Setting     f_ρ(x) = ∫ a σ(⟨w, x⟩) dρ(a, w), both layers trained by `wasserstein_flow` from `start`
    Result      if σ is positively homogeneous of degree one, ρ_0 charges every direction with both signs of a,
                |a| ≤ |w|, and the flow converges, its limit is a global minimizer
    Validity    the theorem is for infinitely many neurons; of finitely many the largest angle to a direction is told,
                over 2·`points` quasi-random directions and each sign
    References  chizat2018

    >>> start = Particles([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [1.0, -1.0, 0.5])
    >>> found = convergence_conditions(start, "relu")
    >>> found.applies, convergence_conditions(start, "tanh").homogeneous
    (True, False)
    """
    arguments.of_kind("start", start, Particles)
    count = arguments.whole("points", points, 1)
    w, a = np.asarray(start.w), np.asarray(start.a)
    arguments.array("w", w, w.shape)
    arguments.array("a", a, a.shape)
    charged = np.asarray(start.weights) > 0
    lengths = np.linalg.norm(w, axis=1)
    directions = np.asarray(gaussian_points(w.shape[1], count))
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    gaps = []
    for side in (1.0, -1.0):
        there = charged & (side * a > 0) & (lengths > 0)
        if not there.any():
            gaps.append(np.pi)
            continue
        cosines = directions @ (w[there] / lengths[there, None]).T
        gaps.append(float(np.max(np.arccos(np.clip(cosines.max(axis=1), -1, 1)))))
    return Convergence(
        named(activation).homogeneous == 1,
        bool(np.any(charged & (a > 0)) and np.any(charged & (a < 0))),
        max(gaps),
        float(jnp.max(jnp.asarray(np.where(charged, a**2 - lengths**2, -np.inf)))),
    )
