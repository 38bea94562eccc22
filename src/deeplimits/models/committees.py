r"""Committee machines: a two-layer student that learns from a two-layer teacher, one fresh sample per step.

The convention of the whole subject, fixed here once for theory and simulation:

- input x ~ N(0, I_d); student weights w_i (i = 1..p), teacher weights w*_r (r = 1..k), of norm O(√d);
- fields λ_i = ⟨w_i, x⟩/√d, λ*_r = ⟨w*_r, x⟩/√d;
- student f = (1/p) Σ_i a_i σ(λ_i), label y = (1/k) Σ_r a*_r σ*(λ*_r) + √Δ z, residual E = y − f, loss E²/2;
- one step: w_i ← w_i + (γ/p) E a_i σ'(λ_i) x/√d,  a_i ← a_i + (ρ_a γ/(d p)) E σ(λ_i);
- time t = ν γ/(d p) after ν steps; a batch of b samples replaces each increment by its mean over the batch;
- overlaps M = W W*ᵀ/d (p × k), Q = W Wᵀ/d, P = W* W*ᵀ/d; risk R = E(f* − f)²/2, without the label noise.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import jax.typing
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from deeplimits.errors import ParameterError
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.models.shown import call
from deeplimits.numerics.arguments import NOT_NEGATIVE, argument, at_least, known, whole
from deeplimits.numerics.shapes import Scalar


class Overlaps(eqx.Module):
    """The state that closes on itself: teacher overlaps M (p × k), student overlaps Q (p × p), second layer a (p)."""

    m: Float[Array, "p k"]
    q: Float[Array, "p p"]
    a: Float[Array, " p"]

    def __init__(self, m: ArrayLike, q: ArrayLike, a: ArrayLike | None = None):
        self.m = jnp.asarray(m, float)
        self.q = jnp.asarray(q, float)
        if self.m.ndim != 2 or self.q.ndim != 2 or self.q.shape != (self.m.shape[0],) * 2 or 0 in self.m.shape:
            raise ParameterError(
                f"m has shape {self.m.shape} and q has shape {self.q.shape}; they must be (p, k) and (p, p), p, k ≥ 1"
            )
        self.a = jnp.ones(self.m.shape[0]) if a is None else jnp.asarray(a, float)
        if self.a.shape != self.m.shape[:1]:
            raise ParameterError(
                f"a has shape {self.a.shape}; with p = {self.m.shape[0]} students it must be ({self.m.shape[0]},)"
            )

    @property
    def students(self) -> int:
        return self.m.shape[0]

    def __repr__(self) -> str:
        return call(self, m=self.m, q=self.q, a=self.a)

    @property
    def teachers(self) -> int:
        return self.m.shape[1]


class Task(eqx.Module):
    """What is learnt and how: teacher overlaps P, teacher outputs a*, label noise, learning rates, batch, activation.

    `step` is the learning rate γ; `schedule`, where given, multiplies it by a function of t. `output_rate` is ρ_a, the
    second layer's learning rate in units of γ: 0 freezes it. `step=0` is gradient flow. `noise` is the standard
    deviation √Δ of the label noise, `noise_variance` is Δ. The usual activation of the subject is erf(u/√2), named
    "erf_saad"; `teacher_activation` is σ* where it differs from σ.

    >>> task = Task(teacher=[[1.0, 0.2], [0.2, 1.0]], step=1.0, noise=0.1)
    >>> task.teachers
    2
    """

    teacher: Float[Array, "k k"]
    teacher_output: Float[Array, " k"]
    step: Scalar
    noise: Scalar
    output_rate: Scalar
    batch: Scalar
    activation: Activation = eqx.field(static=True)
    teacher_activation: Activation = eqx.field(static=True)
    schedule: Callable[[Array], Array] | None = eqx.field(static=True)
    frozen: bool = eqx.field(static=True)
    """Whether the second layer is known to be at rest, so that it may be left out of the state."""
    samples: int | None = eqx.field(static=True)
    """The number b of samples in a batch, where it is known: a simulation draws so many."""

    def __init__(
        self,
        teacher: ArrayLike,
        step: jax.typing.ArrayLike = 1.0,
        noise: jax.typing.ArrayLike = 0.0,
        activation: ActivationLike = "erf_saad",
        *,
        teacher_output: ArrayLike | None = None,
        output_rate: jax.typing.ArrayLike = 0.0,
        batch: jax.typing.ArrayLike = 1.0,
        teacher_activation: ActivationLike | None = None,
        schedule: Callable[[Array], Array] | None = None,
    ):
        self.teacher = jnp.asarray(teacher, float)
        if self.teacher.ndim != 2 or self.teacher.shape[0] != self.teacher.shape[1] or self.teacher.size == 0:
            raise ParameterError(
                f"teacher has shape {self.teacher.shape}; it must be a square matrix (k, k), the overlaps P"
            )
        count = self.teacher.shape[0]
        self.teacher_output = jnp.ones(count) if teacher_output is None else jnp.asarray(teacher_output, float)
        if self.teacher_output.shape != (count,):
            raise ParameterError(f"teacher_output has shape {self.teacher_output.shape}; it must be ({count},)")
        self.step = argument("step", step, NOT_NEGATIVE)
        self.noise = argument("noise", noise, NOT_NEGATIVE)
        # Asked before it becomes an array: inside `jit` every array is traced.
        self.frozen = known(output_rate) and bool(np.all(np.asarray(output_rate) == 0))
        self.output_rate = argument("output_rate", output_rate, NOT_NEGATIVE)
        self.samples = whole("batch", int(np.asarray(batch)), 1) if known(batch) and np.ndim(batch) == 0 else None
        if self.samples is not None and self.samples != float(np.asarray(batch)):
            raise ParameterError(f"batch = {batch} is not allowed; it counts the samples of a step")
        self.batch = argument("batch", batch, at_least(1))
        self.activation = named(activation)
        self.teacher_activation = self.activation if teacher_activation is None else named(teacher_activation)
        self.schedule = schedule

    def __repr__(self) -> str:
        names = ("teacher", "step", "noise", "activation", "teacher_output", "output_rate", "batch")
        rest = {"teacher_activation": self.teacher_activation} if self.teacher_activation != self.activation else {}
        rest |= {"schedule": self.schedule} if self.schedule is not None else {}
        return call(self, **{name: getattr(self, name) for name in names}, **rest)

    @property
    def teachers(self) -> int:
        return self.teacher.shape[0]

    @property
    def noise_variance(self) -> Scalar:
        return self.noise**2

    def learning_rate(self, time: ArrayLike) -> Scalar:
        """γ at a time."""
        return self.step if self.schedule is None else self.step * self.schedule(jnp.asarray(time, float))
