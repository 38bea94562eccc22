"""Instruments for committee machines: risk on fresh samples, averages over fields, gradients, laziness."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.ensembles.committees import Network, Record, residual
from deeplimits.measure.estimates import Estimate, sample_mean
from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.models.committees import Task
from deeplimits.numerics import draws


def risk_on_fresh_inputs(key: PRNGKeyArray, task: Task, record: Record, inputs: int) -> Estimate:
    """Mean of (f* − f)²/2 over fresh inputs at each mark, drawn through their fields: unbiased for the risk.

    Half of the inputs are drawn, each used with both signs of its fields.

    >>> one = jnp.ones((1, 1, 1))
    >>> learnt = Record(one, one, jnp.ones((1, 1)), jnp.zeros(1))
    >>> float(risk_on_fresh_inputs(jax.random.key(0), Task(teacher=[[1.0]]), learnt, 100).value[0].round(12))
    0.0
    """
    times, p, k = record.m.shape
    teacher = jnp.broadcast_to(task.teacher, (times, k, k))
    omega = jnp.block([[record.q, record.m], [jnp.swapaxes(record.m, 1, 2), teacher]])
    values, vectors = jnp.linalg.eigh(omega)
    drawn = draws.draw(key, (times, inputs // 2), p + k).gaussians
    lam = drawn @ jnp.swapaxes(vectors * jnp.sqrt(jnp.maximum(values, 0.0))[:, None], 1, 2)
    lam = jnp.stack([lam, -lam], axis=2)
    student = jnp.einsum("tnsp,tp->tns", task.activation.value(lam[..., :p]), record.a) / p
    answer = task.teacher_activation.value(lam[..., p:]) @ task.teacher_output / k
    # An input and its mirror image are one draw.
    return sample_mean(jnp.mean((answer - student) ** 2 / 2, axis=2).T)


def batch_gradient(task: Task, network: Network, x: Float[Array, "b d"], z: Float[Array, " b"]) -> Float[Array, "p d"]:
    """Gradient in the first layer of the mean loss on a batch, by automatic differentiation.

    >>> network = Network(jnp.ones((1, 4)), jnp.ones(1), jnp.ones((1, 4)))
    >>> learnt = batch_gradient(Task(teacher=[[1.0]], noise=0.0), network, jnp.ones((2, 4)), jnp.ones(2))
    >>> float(jnp.max(jnp.abs(learnt)))
    0.0
    """

    def loss(w):
        clean = residual(task, Network(w, network.a, network.teacher), x).clean
        return jnp.mean((clean + task.noise * z) ** 2) / 2

    return jax.grad(loss)(network.w)


def laziness(
    activation: ActivationLike,
    scale: Float[Array, ""],
    w: Float[Array, "p d"],
    a: Float[Array, " p"],
    x: Float[Array, " d"],
    label: Float[Array, "..."],
) -> Float[Array, "..."]:
    """κ = |h − y| ‖D²h‖/‖Dh‖² of h(a, w) = α Σ_i a_i σ(⟨w_i, x⟩) at one input, for every label given.

    D²h is block diagonal over neurons, so its operator norm is the largest of the blocks'.

    >>> one, two = jnp.ones(1), jnp.full((1, 1), 2.0)
    >>> float(laziness("identity", jnp.asarray(1.0), two, one, one, jnp.zeros(())))  # |h| ‖D²h‖/‖Dh‖² = 2·1/5
    0.4
    """
    sigma = named(activation)

    def one(parameters: Array) -> Array:
        return parameters[0] * sigma.value(parameters[1:] @ x)

    neurons = jnp.concatenate([a[:, None], w], axis=1)
    output = scale * jnp.sum(jax.vmap(one)(neurons))
    gradients = scale * jax.vmap(jax.grad(one))(neurons)
    hessians: Callable = jax.vmap(jax.hessian(one))
    curvature = scale * jnp.max(jnp.abs(jnp.linalg.eigvalsh(hessians(neurons))))
    return jnp.abs(output - label) * curvature / jnp.sum(gradients**2)
