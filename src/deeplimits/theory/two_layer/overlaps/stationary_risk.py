r"""Around perfect learning: the largest stable learning rate, and the risk at which label noise stops the descent.

p = k and the student equals the teacher, w_i = w*_i + δ_i with small δ_i orthogonal to all teachers and
q_ij = ⟨δ_i, δ_j⟩/d. With B_ij = a_i a_j E σ'_i σ'_j and T[q]_ij = Σ_lm a_i a_j a_l a_m E[σ'_i σ'_j σ'_l σ'_m] q_lm,

    dq/dt = −(1/p)(Bq + qB) + (γ/p³) T[q] + (γ/p) Δ B,        R = (1/2p²) Σ_ij B_ij q_ij
"""

import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits.models.committees import Task
from deeplimits.numerics.arguments import FINITE, argument, of_kind
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.two_layer.overlaps.equations import moments
from deeplimits.theory.two_layer.overlaps.integrals import check_covariance


class _Linearization(NamedTuple):
    damping: Float[Array, "s s"]
    amplification: Float[Array, "s s"]
    forcing: Float[Array, " s"]
    risk: Float[Array, " s"]


def critical_learning_rate(task: Task) -> Scalar:
    """γ_c, the learning rate above which a student that has learnt everything is thrown out again.

    The smallest γ at which −(1/p)(Bq + qB) + (γ/p³)T[q], on symmetric q, has a zero eigenvalue. Its value for
    p = 1 is 2 E σ'²/E σ'⁴, π√(5/3) for erf. The step in `task` plays no part.

    >>> round(float(critical_learning_rate(Task(teacher=[[1.0]]))), 9)
    4.055778676
    """
    of_kind("task", task, Task)
    _check(task)
    _, critical, isolation = _around_the_teacher(task)
    return _isolated(task, critical, isolation)


def _check(task: Task) -> None:
    check_covariance(task.teacher, "teacher")
    argument("teacher_output", task.teacher_output, FINITE)


def _isolated(task: Task, critical: Scalar, isolation: Scalar) -> Scalar:
    return valid(
        critical,
        isolation >= 1e-12,
        f"teacher of {task.teachers} {task.activation.name} units is degenerate: some of its motions do not change the "
        "output, so perfect learning is not isolated and has no critical rate",
    )


def noise_floor(task: Task) -> Scalar:
    r"""Risk at which one-pass SGD with label noise stays: exact in γ, first order in Δ.

    Setting     p = k students started at or led to the teacher, a = a*, second layer fixed; learning rate γ, noise of
                variance Δ
    Limit       d → ∞, then t → ∞, then Δ → 0 at fixed R/Δ
    Result      −(1/p)(Bq + qB) + (γ/p³)T[q] + (γ/p)ΔB = 0, R = (1/2p²) Σ B_ij q_ij
                γ → 0: R = γΔ/(4p²) Σ_i a_i² E σ'_i², that is γΔ/(2√3πp) for erf
    Validity    0 < γ < γ_c (`critical_learning_rate`); no stationary state exists above
    References  saad1995b; goldt2019

    >>> task = Task(teacher=[[1.0]], step=0.5, noise=1.0)
    >>> round(float(noise_floor(task)), 12)
    0.0524045547
    """
    of_kind("task", task, Task)
    _check(task)
    floor, critical, isolation = _around_the_teacher(task)
    critical = _isolated(task, critical, isolation)
    return valid(
        floor,
        task.step < critical,
        f"step is not below the critical learning rate γ_c of {task.teachers} {task.activation.name} neurons; no "
        "stationary state exists, so take a smaller step",
        lambda: f" (step = {float(task.step):.6g}, γ_c = {float(critical):.6g})",
    )


@eqx.filter_jit
def _around_the_teacher(task: Task) -> tuple[Scalar, Scalar, Scalar]:
    """The floor, γ_c, and the smallest damping over the largest."""
    parts = _linearize(task)
    p = task.teachers
    # γ_c = p² / λ_max(L^{−1/2} T L^{−1/2}), L[q] = Bq + qB
    values, vectors = jnp.linalg.eigh(parts.damping)
    root = vectors * jax.lax.rsqrt(values)[None, :]
    critical = p**2 / jnp.linalg.eigvalsh(root.T @ parts.amplification @ root)[-1]
    operator = -parts.damping / p + task.step / p**3 * parts.amplification
    q = jnp.linalg.solve(operator, -task.step / p * task.noise_variance * parts.forcing)
    return parts.risk @ q / (2 * p**2), critical, values[0] / values[-1]


def _linearize(task: Task) -> _Linearization:
    """The operators on symmetric matrices, in an orthonormal basis of these."""
    p, a = task.teachers, task.teacher_output
    integrals = moments(task)
    _, second, _ = integrals.pairs(task.teacher, p)
    b = a[:, None] * a[None, :] * second
    # Each integral of four slopes once, then put at all its places.
    indices: list[tuple[int, ...]] = list(itertools.combinations_with_replacement(range(p), 4))
    places = np.array([indices.index(tuple(sorted(index))) for index in itertools.product(range(p), repeat=4)])
    t = integrals.fourth(task.teacher, np.array(indices))[places].reshape((p,) * 4)
    t = t * jnp.einsum("i,j,k,l->ijkl", a, a, a, a)

    basis = _symmetric_basis(p)
    applied = jnp.einsum("ij,sjk->sik", b, basis)
    damping = jnp.einsum("rik,sik->rs", basis, applied + jnp.swapaxes(applied, 1, 2))
    amplification = jnp.einsum("rij,ijlm,slm->rs", basis, t, basis)
    along = jnp.einsum("sij,ij->s", basis, b)
    return _Linearization(damping, amplification, along, along)


def _symmetric_basis(p: int) -> Float[Array, "s p p"]:
    basis = []
    for i in range(p):
        for j in range(i, p):
            matrix = np.zeros((p, p))
            matrix[i, j] = matrix[j, i] = 1.0 if i == j else np.sqrt(0.5)
            basis.append(matrix)
    return jnp.asarray(np.stack(basis))
