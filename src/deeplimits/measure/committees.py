"""Instruments for committee machines: risk on fresh samples, averages over fields, gradients, laziness."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.ensembles.committees import Network, Record, residual
from deeplimits.errors import ParameterError
from deeplimits.measure.estimates import Estimate, sample_mean
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.models.committees import Task
from deeplimits.numerics import arguments, draws
from deeplimits.numerics.shapes import Floats, Scalar


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
    scale: Scalar,
    w: Float[Array, "p d"],
    a: Float[Array, " p"],
    x: Float[Array, " d"],
    label: Floats,
) -> Floats:
    """κ = |h − y| ‖D²h‖/‖Dh‖² of h(a, w) = α Σ_i a_i σ(⟨w_i, x⟩) at one input, for every label given.

    D²h is block diagonal over neurons, so its operator norm is the largest of the blocks'.

    >>> one, two = jnp.ones(1), jnp.full((1, 1), 2.0)
    >>> float(laziness("identity", jnp.asarray(1.0), two, one, one, jnp.zeros(())))  # |h| ‖D²h‖/‖Dh‖² = 2·1/5
    0.4
    """
    sigma = _smooth(scale, activation)

    def one(parameters: Array) -> Array:
        return parameters[0] * sigma.value(parameters[1:] @ x)

    neurons = jnp.concatenate([a[:, None], w], axis=1)
    output = scale * jnp.sum(jax.vmap(one)(neurons))
    gradients = scale * jax.vmap(jax.grad(one))(neurons)
    hessians: Callable = jax.vmap(jax.hessian(one))
    curvature = scale * jnp.max(jnp.abs(jnp.linalg.eigvalsh(hessians(neurons))))
    return jnp.abs(output - label) * curvature / jnp.sum(gradients**2)


def laziness_on_data(
    activation: ActivationLike,
    scale: Scalar,
    w: Float[Array, "p d"],
    a: Float[Array, " p"],
    x: Float[Array, "n d"],
    labels: Float[Array, " n"],
    *,
    iterations: int = 200,
) -> Scalar:
    """κ = ‖h − y‖ ‖D²h‖/‖Dh‖² of h(a, w) = α Σ_i a_i σ(⟨w_i, x⟩) over a data set, with norms in L²(data).

    ‖Dh‖² is the largest eigenvalue of the tangent kernel over n. D²h is block diagonal over neurons, so its norm is the
    largest of theirs, sup_u (mean over x of (uᵀH_x u)²)^{1/2} over unit u: found by powers of this form of degree four,
    which only rise, from the leading axes of mean H_x².

    >>> one = laziness_on_data("tanh", 0.1, jnp.zeros((20, 1)), jnp.ones(20), jnp.ones((1, 1)), jnp.ones(1))
    >>> round(float(one), 12)  # of identical neurons at one input
    0.5
    """
    sigma = _smooth(scale, activation)
    points, answers = arguments.samples(x, labels)
    weights = arguments.array("w", w, ("p", points.shape[1]))
    outer = arguments.array("a", a, weights.shape[:1])
    arguments.whole("iterations", iterations, 1)
    neurons = jnp.concatenate([outer[:, None], weights], axis=1)

    def one(parameters, at):
        return parameters[0] * sigma.value(parameters[1:] @ at)

    def over_data(function):
        return jax.vmap(jax.vmap(function, in_axes=(None, 0)), in_axes=(0, None))(neurons, points)

    count = len(points)
    output = scale * jnp.sum(over_data(one), axis=0)
    slopes = jnp.swapaxes(over_data(jax.grad(one)), 0, 1).reshape(count, -1)
    kernel = scale**2 * jnp.linalg.eigvalsh(slopes @ slopes.T)[-1] / count

    def norm(blocks):
        # One neuron: blocks (n, d+1, d+1). u ← mean (uᵀHu) Hu, normalized, from every axis of mean H².
        axes = jnp.linalg.eigh(jnp.mean(blocks @ blocks, axis=0))[1].T

        def power(_, u):
            forms = jnp.einsum("nij,ui,uj->nu", blocks, u, u)
            following = jnp.einsum("nu,nij,uj->ui", forms, blocks, u)
            size = jnp.linalg.norm(following, axis=1, keepdims=True)
            return jnp.where(size > 0, following / jnp.where(size > 0, size, 1.0), u)

        u = jax.lax.fori_loop(0, iterations, power, jnp.concatenate([axes, _mixed(axes)]))
        return jnp.sqrt(jnp.max(jnp.mean(jnp.einsum("nij,ui,uj->nu", blocks, u, u) ** 2, axis=0)))

    curvature = scale * jnp.max(jax.lax.map(norm, over_data(jax.hessian(one))))
    return jnp.sqrt(jnp.mean((output - answers) ** 2)) * curvature / kernel


def _mixed(axes: Array) -> Array:
    """Sums of the last axis with each: an axis may be where the form is flat."""
    mixed = axes + axes[-1:]
    return mixed / jnp.linalg.norm(mixed, axis=1, keepdims=True)


def _smooth(scale: Array, activation: ActivationLike) -> Activation:
    arguments.argument("scale", scale, arguments.POSITIVE, "the output scale α")
    sigma = named(activation)
    if not sigma.smooth:
        raise ParameterError(f"activation = {sigma.name} has no second derivative; laziness needs a smooth one")
    return sigma
