r"""The output scale of a two-layer network: from the kernel regime to the mean-field regime."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import trainers, two_layer_networks
from deeplimits.limit import Limit, Run, activation_choice, integer, real, whole
from deeplimits.models.activations import activation
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Exponent, Value
from deeplimits.showcase import Showcase
from deeplimits.theory import gaussian

POINTS = ((1.0, 0.0, 0.0), (0.0, 0.8, 0.6), (-0.6, 0.0, 0.8), (0.0, -0.8, 0.6))
LABELS = (1.0, -1.0, 1.0, 1.0)

SMALLEST_SCALE = 20.0
"""Of α²: the smallest eigenvalue of the kernel at these inputs is a tenth or so, which corrections are divided by."""
FAST_STEPS = 50
"""In so many steps the slow directions of the kernel are not fitted yet; later neurons go far for them."""


class NtkVsMeanFieldScaling(Limit):
    r"""How far neurons move in training depends on the output scale alone.

    Setting     f = (α/m) Σ_j a_j σ(⟨w_j, x⟩), α = m^p; N = 4 unit inputs in R³ with labels ±1, loss (1/N)Σ(y − f)²,
                both layers trained by k steps of gradient descent η = η₀m/α²; a_j = ±1, w_j ~ N(0, I), second half of
                the neurons antisymmetric to the first, so that f = 0 at the start
    Limit       m → ∞
    Result      without the antisymmetry Var f₀(x) = (α²/m) E a² E σ(⟨w, x⟩)² exactly
                the function changes by O(1) in a time m/α²; in it each neuron moves by Θ(1/α): displacement ∝ m^(−p)
                p = 1/2: ntk scaling, lazy, displacements m^(−1/2); p = 0: mean-field scaling, neurons move by O(1)
    Validity    p = 0, or α² large beside the inverse of the kernel's smallest eigenvalue; size counts the neurons m
    Finite size relative O(m^(−2p)) for the displacement, by the antisymmetry, O(1/m) at p = 0; the variance is exact
    Computed by two_layer.output_scaling, gaussian.dual (start)
    References  chizat2019; mei2018; bartlett2021
    """

    activation: str = activation_choice("tanh", lambda a: a.odd and a.smooth and a.bounded)
    exponent: Array = real(0.5, 0.0, 0.5, symbol="p", doc="power of the width in the output scale α = m^p")
    steps: int = integer(30, 1, 1000, log=True, symbol="k", doc="steps of gradient descent")

    usual = Run(sizes=(32, 128, 512), samples=240)
    showcase = Showcase(
        first="displacement",
        see="Neurons move by m^(−p) in training: the output scale alone decides between lazy and feature learning.",
    )

    # Step size in units of m/α².
    rate = 0.5
    # Independent outputs at the start in one simulation.
    starts = 40

    def theory(self):
        sigma = activation(self.activation)
        # At p = 0 neurons follow their mean-field flow up to O(1/m).
        correction = jnp.where(self.exponent > 0, 2 * self.exponent, 1.0)
        return {
            "displacement": Exponent(0.0 - self.exponent, label="displacement of a neuron", correction=correction),
            "start": Value(
                gaussian.dual(sigma, 1.0, 1.0, 1.0),
                label="variance at the start, times m/α²",
                symbol=r"(m/\alpha^2)\,E f_0^2",
            ),
        }

    def validity_at(self, size):
        if not known(self.exponent):
            return ()
        exponent = float(self.exponent)
        if exponent == 0:
            return ()
        # The power 2p of the width is what the corrections are small in.
        smallest = SMALLEST_SCALE * max(1.0, self.steps / FAST_STEPS)
        if size ** (2 * exponent) >= smallest:
            return ()
        least = math.ceil(smallest ** (1 / (2 * exponent)))
        return (
            f"exponent = {written(exponent)} gives m = {size} neurons a scale α = {size**exponent:.2g}, "
            "and neurons that move "
            f"far in fitting the labels; take sizes of at least {least}, an exponent of 0 or nearer to 1/2, or fewer "
            "steps",
        )

    def at_size(self, size):
        return {"half": whole(size / 2, "m/2", self)}, self

    def simulate(self, key, *, half: int):
        width, d = 2 * half, 3
        noise = jax.random.normal(key, (half + self.starts * width, d + 1))
        # Columns: the output weight, ±1, then the input weights of each neuron.
        neurons = noise.at[:, 0].set(jnp.sign(noise[:, 0]))
        first, fresh = neurons[:half], neurons[half:].reshape(self.starts, width, d + 1)
        sigma = activation(self.activation)
        alpha = width**self.exponent
        x, y = jnp.array(POINTS), jnp.array(LABELS)

        def outputs(neurons):
            """(1/√m) Σ_j a_j σ(⟨w_j, x⟩) at the four inputs."""
            return jax.vmap(lambda at: two_layer_networks.two_layer(sigma, neurons[:, 1:], neurons[:, 0], at))(x)

        def loss(theta):
            return jnp.mean((y - alpha / jnp.sqrt(1.0 * width) * outputs(theta.reshape(width, d + 1))) ** 2)

        antisymmetric = jnp.concatenate([first, first.at[:, 0].multiply(-1.0)])
        path = trainers.gradient_descent(loss, antisymmetric.ravel(), self.rate * width / alpha**2, (0, self.steps))
        moved = (path[-1] - path[0]).reshape(width, d + 1)
        return {
            "displacement": jnp.sqrt(jnp.mean(jnp.sum(moved**2, axis=1))),
            "start": jnp.mean(jax.vmap(outputs)(fresh) ** 2),
        }
