r"""What a mini-batch changes beyond the variance: the product of mean gradients, small unless steps are giant.

dQ_ij/dt = Ψ^GF_ij + (γ/(pb)) Ψ^var_ij + (γ/(pd))(1 − 1/b) a_i a_j ⟨g_i, g_j⟩, g_i = E[E σ'_i x] of norm O(1).
"""

import warnings
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from deeplimits.errors import OutsideValidityWarning
from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics import arguments, quasi_random
from deeplimits.theory.two_layer.overlaps import equations
from deeplimits.theory.two_layer.overlaps.fluctuations import covariance_flow

GIANT = 0.05
"""γ/(pd) from which on the product of mean gradients is felt."""


class Batch(NamedTuple):
    """The parts of dQ/dt."""

    flow: Float[Array, "p p"]
    """Ψ^GF: full-batch gradient flow on the population risk has this alone."""
    variance: Float[Array, "p p"]
    """(γ/(pb)) Ψ^var: what fresh samples add, the less the more there are in a batch."""
    crossed: Float[Array, "p p"]
    """(γ/(pd))(1 − 1/b) a_i a_j ⟨g_i, g_j⟩: what distinct samples of one batch add together."""


def batch_terms(task: Task, state: Overlaps, dimension: ArrayLike) -> Batch:
    """One-pass SGD, mini-batches and gradient flow side by side: the parts of dQ/dt at one state in dimension d.

    Setting     a batch of b fresh samples a step (`task.batch`), γ = `task.step`, time t = νγ/(dp)
    Result      b = 1 is one-pass SGD; b → ∞ at fixed γ leaves Ψ^GF, gradient flow on the population risk, and the
                crossed term. On n fixed samples the noise of a batch is frozen and gradient flow descends R_n instead
    Validity    γ/(pd) small; above 0.05, giant steps, the crossed term is felt, and a warning is given
    References  veiga2022; arnaboldi2023

    >>> parts = batch_terms(Task([[1.0]], 2.0, activation="identity", batch=4), Overlaps([[0.5]], [[0.7]]), 100)
    >>> [round(float(part[0, 0]), 6) for part in parts]  # e = P − 2M + Q = 0.7 and g² = e
    [-0.4, 0.35, 0.0105]
    """
    arguments.of_kind("task", task, Task)
    arguments.of_kind("state", state, Overlaps)
    fields = state.students + state.teachers
    d = arguments.number("dimension", dimension, arguments.at_least(fields), f"there are {fields} weight vectors")
    p = state.students
    share = task.step / (p * d)
    if arguments.known(share) and float(share) > GIANT:
        warnings.warn(
            f"γ/(pd) = {float(share):.3g} is a giant step: samples of one batch act together; see Batch.crossed",
            OutsideValidityWarning,
            stacklevel=2,
        )
    parts = equations.drift(task, state)
    weights = state.a[:, None] * equations.gradient(task, state).weights
    crossed = weights @ equations.covariance(task, state) @ weights.T
    return Batch(parts.q_flow, task.step / (p * task.batch) * parts.q_variance, share * (1 - 1 / task.batch) * crossed)


def concentration(
    task: Task, start: Overlaps, times: ArrayLike, dimension: ArrayLike, *, points: int = 2048
) -> Float[Array, " times"]:
    """E max|Ω^ν − Ω(t)| in dimension d: √(γ/(dp)) times the mean largest entry of a Gaussian with the covariance Σ(t).

    Setting     one-pass SGD from overlaps that are exactly `start`
    Limit       d → ∞; the exponents −1/2 of d and p and 1/2 of γ, and the constant in front
    Result      E max over (M, Q, a) of √(γ/(dp)) |N(0, Σ)|, Σ from `covariance_flow`
    Validity    p + k ≤ 40 and smooth σ; not within d^{−1/2} of a saddle; by 2·`points` quasi-random points
    References  veiga2022

    >>> task = Task(teacher=[[1.0]], step=0.4, noise=0.3**0.5, activation="identity")
    >>> one, four = (concentration(task, Overlaps([[0.2]], [[0.7]]), [1.5], d)[0] for d in (100, 400))
    >>> round(float(one / four), 6)
    2.0
    """
    arguments.of_kind("task", task, Task)
    arguments.of_kind("start", start, Overlaps)
    d = arguments.number("dimension", dimension, arguments.at_least(start.students + start.teachers))
    arguments.whole("points", points, 1)
    found = covariance_flow(task, start, times)
    size = found.covariance.shape[-1]
    z = jnp.asarray(np.asarray(quasi_random.gaussian_points(size, points)))
    values, vectors = jnp.linalg.eigh(found.covariance)
    roots = vectors * jnp.sqrt(jnp.maximum(values, 0.0))[:, None, :]
    largest = jnp.mean(jnp.max(jnp.abs(jnp.einsum("tij,nj->tni", roots, z)), axis=2), axis=1)
    return jnp.sqrt(task.step / (d * start.students)) * largest
