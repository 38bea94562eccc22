r"""The risk of students that have nearly learnt the teacher, where risk(Ω) would be a difference of equal numbers."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.committees import Task
from deeplimits.numerics.arguments import array, of_kind
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.gaussian.fields import trapezoid
from deeplimits.theory.two_layer.overlaps.integrals import check_covariance


def risk_near_teacher(
    task: Task, changes: ArrayLike, with_teacher: ArrayLike, *, output_changes: ArrayLike | None = None
) -> Scalar:
    r"""R to leading order in what is left to learn, with all its digits however small it is.

    Setting     p = k students, the i-th beside the i-th teacher: λ_i = λ*_i + ε_i, a_i = a*_i + α_i; E εε' = `changes`
                and E ελ*' = `with_teacher`, both (k, k), in the units of Ω (ε = (W − W*)x/√d has E εε' = (W − W*)(W −
                W*)'/d); α = `output_changes` (k,), zero unless given
    Result      R = (1/2k²) E[Σ_i a*_iσ'(λ*_i)ε_i + α_iσ(λ*_i)]², with a relative error of the order of ε and α; the
                mean over ε given the λ* is a polynomial, that over two λ* at a time by the trapezoid rule
    Validity    smooth σ, the same for students and teachers; Ω with sixteen digits knows R to 1e-16 only, so what is
                given are the differences themselves
    References  saad1995; goldt2019

    >>> task = Task([[1.0]], activation="identity")
    >>> f"{float(risk_near_teacher(task, [[1e-20]], [[3e-11]])):.12g}"  # (P − 2M + Q)/2
    '5e-21'
    """
    of_kind("task", task, Task)
    k, sigma = task.teachers, task.activation
    if sigma != task.teacher_activation:
        raise ParameterError(
            f"activation = {sigma.name} and teacher_activation = {task.teacher_activation.name} differ; near the "
            "teacher the student has the same one"
        )
    if not sigma.smooth:
        raise OutsideValidity(f"activation = {sigma.name} is not smooth; the expansion needs σ'")
    own = array("changes", changes, (k, k), why="one row for each teacher unit")
    shared = array("with_teacher", with_teacher, (k, k), why="one row for each teacher unit")
    alpha = jnp.zeros(k) if output_changes is None else array("output_changes", output_changes, (k,))
    check_covariance(task.teacher, "teacher")
    # In units of its size, so that the check sees it whatever the size.
    size = jnp.sqrt(jnp.maximum(jnp.max(jnp.abs(own)), 1e-300))
    check_covariance(jnp.block([[task.teacher, shared.T / size], [shared / size, own / size**2]]), "the covariance")
    trapezoid.check_variance(sigma, float(jnp.max(jnp.diag(task.teacher))), min(k, 2))
    return _risk(task, own, shared, alpha)


@jax.jit
def _risk(task: Task, own: Array, shared: Array, alpha: Array) -> Array:
    k, sigma, teacher, a = task.teachers, task.activation, task.teacher, task.teacher_output

    def entry(i: int, j: int) -> Array:
        fields = [i] if i == j else [i, j]
        index = jnp.array(fields)
        gram = teacher[index][:, index]
        # E[ε_i, ε_j | λ*] = Bλ*, and what is left of their covariance
        pair = jnp.array([i, j])
        slope = shared[pair][:, index] @ jnp.linalg.pinv(gram)
        left = own[i, j] - slope[0] @ gram @ slope[1]

        def product(*at):
            first, second = at[0], at[-1]
            mean_i, mean_j = (sum(row[place] * field for place, field in enumerate(at)) for row in slope)
            one, two = a[i] * sigma.derivative(first), a[j] * sigma.derivative(second)
            fixed_i, fixed_j = alpha[i] * sigma.value(first), alpha[j] * sigma.value(second)
            return (one * mean_i + fixed_i) * (two * mean_j + fixed_j) + left * one * two

        return trapezoid.expectation(product, teacher, fields)

    total = sum(entry(i, j) * (1 if i == j else 2) for i in range(k) for j in range(i, k))
    return jnp.asarray(total) / (2 * k**2)
