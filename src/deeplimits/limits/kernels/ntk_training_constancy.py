r"""Training wide networks: the kernel stands still, and the ensemble of networks stays Gaussian."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import trainers
from deeplimits.ensembles.wide_networks import WideNetwork, squared_loss
from deeplimits.limit import Limit, Run, activation_choice, integer, real, too_small, whole
from deeplimits.measure import training_motion
from deeplimits.models.activations import Activation
from deeplimits.models.architectures import FullyConnected
from deeplimits.predictions import Exponent, Value
from deeplimits.showcase import Showcase
from deeplimits.theory import kernels
from deeplimits.theory.gaussian.closed_forms import has_dual
from deeplimits.theory.kernels import training

POINTS = ((1.0, 0.5, -0.3), (0.2, -1.0, 0.7), (-0.6, 0.4, 1.1))
TARGETS = (1.0, -1.0, 0.5)
NEW_POINTS = ((0.5, 0.5, 0.5), (1.2, -0.6, -0.6), (-0.8, -1.0, -0.2), (0.1, 0.9, -1.1))


def _offered(a: Activation) -> bool:
    # A dual in closed form: by quadrature the kernel of trained networks takes minutes.
    nonlinear = a.through_origin and a.lipschitz and a.smooth and not a.even and a.homogeneous is None
    return nonlinear and has_dual(a)


class NtkTrainingConstancy(Limit):
    r"""Trained wide networks form a Gaussian process, because their tangent kernel hardly moves.

    Setting     L hidden layers of width n, parametrization ntk with C_w = 1, k outputs, trained by T steps of gradient
                descent with step η on (1/2N)Σ|y − f|² over N = 3 points in R³; outputs at four new points
    Limit       n → ∞
    Result      the tangent kernel moves by ‖Θ_T − Θ_0‖/‖Θ_0‖ = O(1/n) (proved: O(n^(−1/2))), the weights by
                ‖W_T − W_0‖_op/√n = O(n^(−1/2)), while Θ_0 fluctuates around its limit by n^(−1/2); outputs stay within
                O(1/n) of kernel regression with the network's own Θ_0
                each output is Gaussian over networks, with mean Θ_xX A y and variance
                Σ_xx + Θ_xX AΣ_XX AΘ_Xx − 2Θ_xX AΣ_Xx, A = Θ_XX⁻¹(I − (I − ηΘ_XX/N)^T); Σ covariance of the outputs at
                the start, Θ tangent kernel of infinite width (mean at the first new point, variance averaged over four)
    Validity    σ smooth, η < 2N/λ_max(Θ_XX) (below 3 for these data and activations); n ≥ 4kL, as the k outputs move
                the features of each of L layers together; size counts the neurons n
    Finite size O(1/n); what moves is measured by `measure.training_motion`
    Computed by kernels.InfiniteWidth, kernels.trained_ensemble (mean, variance)
    References  jacot2018; lee2019; dyer2020
    """

    activation: str = activation_choice("erf", _offered)
    hidden_layers: int = integer(1, 1, 4, symbol="L", doc="hidden layers")
    outputs: int = integer(12, 1, 100, log=True, symbol="k", doc="outputs, nearly independent")
    steps: int = integer(8, 1, 2000, log=True, symbol="T", doc="steps of gradient descent")
    step: Array = real(1.0, 0.01, 1.5, log=True, symbol=r"\eta", doc="step size")
    bias_variance: Array = real(0.09, 0.0, 0.5, symbol="C_b", doc="bias variance")

    usual = Run(sizes=(48, 144, 432), samples=1100)
    showcase = Showcase(
        first="kernel_motion", see="Kernel and weights move less the wider the network: training stays near its start."
    )

    # Independent networks in one simulation, from which an unbiased variance is formed.
    networks = 6

    def _network(self):
        return FullyConnected(self.hidden_layers, self.activation, 1.0, self.bias_variance)

    def theory(self):
        net = kernels.InfiniteWidth(self._network())
        x, new = jnp.array(POINTS), jnp.array(NEW_POINTS)
        # All points together: one matrix of each kernel, cut into its blocks.
        both: Any = net.kernels(jnp.concatenate([x, new]))
        n = len(POINTS)
        nngp, ntk = (training.Blocks(whole[:n, :n], whole[n:, :n], whole[n:, n:]) for whole in (both.nngp, both.ntk))
        found = training.trained_ensemble(nngp, ntk, jnp.array(TARGETS), self.steps, step=self.step)
        return {
            "mean": Value(found.mean[0], label="mean of the trained output", symbol=r"E f_T", rate=1.0),
            "variance": Value(
                jnp.mean(jnp.diagonal(found.covariance)),
                label="variance of the trained output",
                symbol=r"\mathrm{Var} f_T",
                rate=1.0,
            ),
            "kernel_motion": Exponent(-1.0, label="relative motion of the tangent kernel", correction=1.0),
            "weight_motion": Exponent(-0.5, label="motion of the last weights, over √n", correction=1.0),
        }

    def validity_at(self, size):
        least = 4 * self.outputs * self.hidden_layers
        return too_small(
            size,
            least,
            f"the {self.outputs} outputs move the same features in each of {self.hidden_layers} hidden layers, and n = "
            f"{size} neurons with them; take sizes of at least {least}, or fewer outputs",
        )

    def at_size(self, size):
        return {"width": whole(size, "n", self, least=2)}, self

    def simulate(self, key, *, width: int):
        network = WideNetwork(self._network(), inputs=3, widths=width, outputs=self.outputs)
        x, new = jnp.array(POINTS), jnp.array(NEW_POINTS)
        y = jnp.broadcast_to(jnp.array(TARGETS)[:, None], (len(TARGETS), self.outputs))

        def trained(key):
            flat = network.flat(network.init(key))
            loss = squared_loss(lambda vector: network.apply(flat.restore(vector), x), y)
            end = trainers.gradient_descent(loss, flat.start, self.step, (self.steps,))[0]
            start, end = flat.restore(flat.start), flat.restore(end)
            moved = training_motion(network, start, end, x)
            return network.apply(end, new), moved.kernel, moved.weights[-1]

        found, kernel, weights = jax.vmap(trained)(jax.random.split(key, self.networks))
        return {
            "kernel_motion": jnp.mean(kernel),
            "weight_motion": jnp.mean(weights),
            "mean": jnp.mean(found[:, 0]),
            "variance": jnp.mean(jnp.var(found, axis=0, ddof=1)),
        }
