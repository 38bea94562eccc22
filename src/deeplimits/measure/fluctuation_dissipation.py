r"""Fluctuation-dissipation relations as an instrument for any run of stochastic gradient descent.

At stationarity the mean of every observable is the same before and after a step θ ← θ − η∇L_B. With ⟨·⟩ the average
over the run,

    ⟨(θ − c)·∇L⟩ = (η/2) ⟨‖∇L_B‖²⟩               exactly, at every step size and for every fixed centre c,
    ⟨‖∇L‖²⟩ = (η/2) ⟨∇L_B·H∇L_B⟩ + O(η²)         exactly for a quadratic loss; the next term, from
                                                 ⟨L(θ − η∇L_B)⟩ = ⟨L(θ)⟩, is −(η²/6) ⟨D³L[∇L_B, ∇L_B, ∇L_B]⟩.

`observe` is pure and belongs inside a JAX loop; `Recorder` takes what any other framework's loop hands it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.measure.estimates import Estimate
from deeplimits.numerics.shapes import Scalar

BLOCKS = 32


class Observation(NamedTuple):
    """The four averages' integrands at one step; stacked over a run, arrays of shape (steps,)."""

    position_side: Any
    """(θ − c)·∇L"""
    noise_side: Any
    """(η/2)‖∇L_B‖²"""
    gradient_side: Any
    """‖∇L‖²"""
    curvature_side: Any
    """(η/2)∇L_B·H∇L_B, zero where no Hessian-vector product is given"""


class Relation(NamedTuple):
    """Both sides of a relation, averaged, and whether they differ by more than chance."""

    left: float
    right: float
    difference: Estimate
    """left − right, averaged over the run; its standard error from the means of blocks, since steps are correlated."""

    @property
    def z(self) -> float:
        """The difference in units of its standard error."""
        return float(self.difference.z)

    @property
    def ratio(self) -> float:
        """left/right: above one while the run still descends or drifts outward, one at stationarity."""
        return self.left / self.right


class Report(NamedTuple):
    """The two relations; `second` is None where no curvature was recorded."""

    first: Relation
    second: Relation | None


def observe(
    theta: Any, gradient: Any, batch_gradient: Any, step: Any, centre: Any, *, hessian_times_batch_gradient: Any = None
) -> Observation:
    """The four numbers of one step, from pytrees of one structure; pure, so it can be called inside `jax.lax.scan`.

    `gradient` is that of the full loss at `theta`; `centre` any fixed point near the run's mean, which removes the
    variance of c·∇L; `hessian_times_batch_gradient` the full loss's Hessian times the batch gradient.

    >>> theta, full, batch = jnp.array([1.0, 0.0]), jnp.array([2.0, 0.0]), jnp.array([2.0, 2.0])
    >>> observe(theta, full, batch, 0.5, jnp.zeros(2)).noise_side
    Array(2., dtype=float64)
    """
    moved = jax.tree.map(jnp.subtract, theta, centre)
    half = jnp.asarray(step, float) / 2
    zero = jnp.zeros(())
    bent = zero if hessian_times_batch_gradient is None else half * _dot(batch_gradient, hessian_times_batch_gradient)
    return Observation(
        _dot(moved, gradient), half * _dot(batch_gradient, batch_gradient), _dot(gradient, gradient), bent
    )


def report(observations: Observation, *, blocks: int = BLOCKS) -> Report:
    """Average the observations of a stationary run and set the two sides of each relation beside each other.

    Each field has shape (steps,) or (chains, steps). Standard errors come from the means of `blocks` consecutive parts
    of every chain, which must be longer than the run's memory.

    >>> steady = Observation(np.ones(64), np.ones(64), np.zeros(64), np.zeros(64))
    >>> report(steady).first.difference.value
    0.0
    """
    series = [np.atleast_2d(np.asarray(part, float)) for part in observations]
    steps = series[0].shape[1]
    if steps < 2 * blocks:
        raise ParameterError(
            f"{steps} steps were recorded, too few for {blocks} blocks; record at least {2 * blocks} stationary steps"
        )
    first = _relation(series[0], series[1], blocks)
    return Report(first, _relation(series[2], series[3], blocks) if np.any(series[3]) else None)


class Recorder:
    """A callback for a training loop of any framework: call it once a step, ask for `report()` at the end.

    `step` is the learning rate. Parameters and gradients may be arrays, or nested lists, tuples and dictionaries of
    arrays or tensors: whatever NumPy can read, and PyTorch tensors through `detach().cpu()`. The centre is the first
    position recorded unless one is given, so start recording when the run is stationary.

    >>> recorder = Recorder(step=0.5)
    >>> for side in (1.0, -1.0) * 50:
    ...     recorder([side, 0.0], gradient=[side, 0.0], batch_gradient=[2 * side, 0.0])
    >>> round(recorder.report().first.right, 12)
    1.0
    """

    def __init__(self, step: float, centre: Any = None):
        if not step > 0:
            raise ParameterError(f"step = {step:g} is not allowed; the learning rate must be positive")
        self.step = step
        self.centre = None if centre is None else _flat(centre)
        self.rows: list[Observation] = []

    def __call__(
        self, theta: Any, gradient: Any, batch_gradient: Any, hessian_times_batch_gradient: Any = None
    ) -> None:
        """Record one step: the position before it, the full gradient there, and the batch gradient that was used."""
        position = _flat(theta)
        if self.centre is None:
            self.centre = position.copy()
        full, batch = _flat(gradient), _flat(batch_gradient)
        if not position.shape == self.centre.shape == full.shape == batch.shape:
            raise ParameterError(
                f"theta, gradient and batch_gradient have {position.size}, {full.size} and {batch.size} entries; "
                "they must have the same structure at every step"
            )
        bent = (
            0.0 if hessian_times_batch_gradient is None else self.step / 2 * batch @ _flat(hessian_times_batch_gradient)
        )
        self.rows.append(
            Observation((position - self.centre) @ full, self.step / 2 * batch @ batch, full @ full, float(bent))
        )

    @property
    def observations(self) -> Observation:
        """Everything recorded, stacked."""
        return (
            Observation(*(np.array(part) for part in zip(*self.rows, strict=True)))
            if self.rows
            else Observation(*(np.zeros(0) for _ in range(4)))
        )

    def report(self, blocks: int = BLOCKS) -> Report:
        """Both relations, with standard errors."""
        return report(self.observations, blocks=blocks)


def _dot(left: Any, right: Any) -> Scalar:
    products = jax.tree.map(lambda a, b: jnp.sum(a * b), left, right)
    return sum(jax.tree.leaves(products), jnp.zeros(()))


def _relation(left: np.ndarray, right: np.ndarray, blocks: int) -> Relation:
    size = left.shape[1] // blocks
    gaps = (left - right)[:, : size * blocks].reshape(len(left) * blocks, size).mean(axis=1)
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    difference = Estimate(float((left - right).mean()), float(error), len(gaps))
    return Relation(float(left.mean()), float(right.mean()), difference)


def _flat(tree: Any) -> np.ndarray:
    if hasattr(tree, "detach"):
        tree = tree.detach().cpu()
    if isinstance(tree, Mapping):
        return _flat([tree[name] for name in sorted(tree)])
    if isinstance(tree, list | tuple):
        return np.concatenate([_flat(part) for part in tree]) if tree else np.zeros(0)
    return np.asarray(tree, dtype=float).ravel()
