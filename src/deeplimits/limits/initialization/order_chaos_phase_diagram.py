r"""Order and chaos in deep random networks."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import deep_networks
from deeplimits.limit import Limit, Run, activation_choice, integer, real, whole
from deeplimits.limits.initialization._shared import layer_curve
from deeplimits.models.activations import activation
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Picture, Value
from deeplimits.predictions.picture import Axis, Field, Line, Points
from deeplimits.showcase import Showcase
from deeplimits.theory.initialization import correlations, layer_maps, phases

# A pair of inputs this close lies in the linear range of the map of correlations.
_CLOSE = 1e-6


class OrderChaosPhaseDiagram(Limit):
    r"""Deep random networks forget the difference of two inputs, or amplify it.

    Setting     a random network with weights N(0, C_w/n), biases N(0, C_b); two inputs whose preactivations have
                variance K and correlation c in the first layer;
                K* = C_b + C_w E_K* σ², χ_⊥ = C_w E_K* σ'², χ_∥ = F'(K*)
    Limit       n → ∞
    Result      χ_⊥ < 1: c → 1 (ordered), χ_⊥ > 1: c → c* < 1 (chaotic); the edge is C_w = 1/E_q σ'²,
                C_b = q − C_w E_q σ² over q = K*
                near its fixed point the correlation moves by e^(−l/ξ_c), ξ_c = −1/ln χ_⊥ in the ordered phase and
                −1/ln(C_w E σ'(z₁)σ'(z₂)) at c* in the chaotic one, infinite at the edge; the variance by e^(−l/ξ_q),
                ξ_q = −1/ln χ_∥
    Validity    σ with bounded derivative, C_b > 0; the first weight variance in the ordered, the second in the chaotic
                phase; size counts the neurons n of a layer
    Finite size O(l/n) for means, O((l/n)^(1/2)) for one network
    Computed by initialization.correlation_path (ordered_path, chaotic_path), initialization.susceptibilities
                (distance_left, variance_left), initialization.depth_scales (distance_left), initialization.fixed_point,
                initialization.phase, initialization.correlation_fixed_point; the edge itself by
                initialization.edge_of_chaos, initialization.critical_weight_variance
    References  poole2016; schoenholz2017
    """

    activation: str = activation_choice("tanh", lambda a: a.odd and a.smooth and a.increasing and a.bounded)
    bias_variance: Array = real(0.05, 0.0, 1.0, symbol="C_b", doc="bias variance")
    ordered: Array = real(1.5, 0.2, 10.0, log=True, symbol="C_w", doc="weight variance of the ordered networks")
    chaotic: Array = real(2.5, 0.2, 10.0, log=True, symbol="C_w'", doc="weight variance of the chaotic networks")
    kernel: Array = real(1.0, 0.05, 5.0, log=True, symbol="K^{(1)}", doc="variance of first-layer neurons")
    correlation: Array = real(0.9, -0.9, 0.99, symbol="c", doc="correlation in the first layer")
    layers: int = integer(12, 5, 60, symbol="L", doc="number of layers looked at")

    usual = Run(sizes=(100, 300), samples=1500, batch=5)
    showcase = Showcase(
        see="Left of the white line χ⊥ is below one and inputs become alike; right of it they part, however "
        "close they were.",
    )

    # Layers over which the decay rates are measured.
    decay_layers = 4
    response_layers = 2

    def validity(self):
        if float(self.bias_variance) == 0:
            return ("bias variance 0: in the ordered phase the variance then goes to K* = 0, where nothing is left",)
        found = []
        for field, wanted in (("ordered", "ordered"), ("chaotic", "chaotic")):
            phase = phases.phase(self.activation, float(getattr(self, field)), float(self.bias_variance))
            if phase.name != wanted:
                found.append(
                    f"{field} = {written(getattr(self, field))} is in the {phase.name} phase (χ_⊥ = "
                    f"{phase.perpendicular:.4g}) at bias variance {written(self.bias_variance)}"
                )
        return tuple(found)

    def theory(self):
        variances = jnp.stack([self.ordered, self.chaotic])
        same = jnp.ones(2)
        gaps, _ = correlations.correlation_path(
            self.activation,
            (1 - self.correlation) * same,
            self.kernel * same,
            variances,
            self.bias_variance,
            self.layers - 1,
        )
        layer = jnp.arange(2.0, self.layers + 1.0)

        sigma = activation(self.activation)
        fixed = phases.fixed_point(sigma, self.ordered, self.bias_variance)
        chi = layer_maps.susceptibilities(sigma, fixed, weight_variance=self.ordered)
        return {
            "ordered_path": layer_curve(layer, gaps[1:, 0], "distance, ordered phase", "1-c_l", log_y=True),
            "chaotic_path": layer_curve(layer, gaps[1:, 1], "distance, chaotic phase", "1-c_l", log_y=True),
            "distance_left": Value(
                chi.perpendicular**self.decay_layers,
                label="distance left after 4 layers",
                symbol=r"e^{-4/\xi_c}",
                rate=1.0,
            ),
            "variance_left": Value(
                chi.parallel**self.response_layers,
                label="variance left after 2 layers",
                symbol=r"e^{-2/\xi_q}",
                rate=1.0,
            ),
        }

    def charts(self):
        weights, biases = np.linspace(0.2, 5.0, 61), np.linspace(0.0, 0.6, 41)
        # A fixed point K* belongs to C_b = K* − C_w E σ²: the largest such K* is where networks settle.
        kernels = np.geomspace(1e-5, 30.0, 400)
        second = np.asarray(layer_maps.second_moment(self.activation, kernels))
        slope = np.asarray(layer_maps.slope_moment(self.activation, kernels))
        chi = np.empty((len(biases), len(weights)))
        for column, weight in enumerate(weights):
            belonging = np.minimum.accumulate((kernels - weight * second)[::-1])[::-1]
            chi[:, column] = weight * np.interp(np.interp(biases, belonging, kernels), kernels, slope)
        edge = phases.edge_of_chaos(self.activation, jnp.geomspace(1e-3, 3.0, 120))
        seen = (edge.bias_variance >= 0) & (edge.bias_variance <= biases[-1]) & (edge.weight_variance <= weights[-1])
        here = Points(
            jnp.stack([self.ordered, self.chaotic]), jnp.stack([self.bias_variance] * 2), label="ordered and chaotic"
        )
        marks = (
            Field(weights, biases, np.log10(chi), label="log₁₀ χ⊥"),
            Line(edge.weight_variance[seen], edge.bias_variance[seen], label="edge of chaos, χ⊥ = 1"),
            here,
        )
        return {"phases": Picture(Axis("weight variance", "C_w"), Axis("bias variance", "C_b"), marks)}

    def at_size(self, size):
        n = whole(size, "n", self, least=2)
        return {"width": n}, self

    def simulate(self, key, *, width: int):
        sigma = activation(self.activation)
        noise = jax.random.normal(key, (2, self.layers, 2, width))
        start = self.kernel * jnp.stack([1.0, self.correlation, 1.0])
        # The networks that measure rates start at the fixed point, with inputs close to each other.
        fixed = deep_networks.settled_variance(sigma, self.ordered, self.bias_variance)
        near = fixed * jnp.array([1.0, 1 - _CLOSE, 1.0])

        def gaps(noise, start, weight_variance):
            given = deep_networks.pair_chain(noise, sigma, start, weight_variance, self.bias_variance).given
            return deep_networks.correlation_gap(given)

        # The same numbers twice: each result is judged by itself.
        found = jax.vmap(gaps)(
            jnp.concatenate([noise, noise]),
            jnp.stack([start, start, near, near]),
            jnp.stack([self.ordered, self.chaotic, self.ordered, self.ordered]),
        )
        close = found[2:]

        def variance(kernel):
            for part in range(self.response_layers):
                z = jnp.sqrt(kernel) * noise[0, part, 0]
                kernel = self.bias_variance + self.ordered * jnp.mean(sigma.value(z) ** 2)
            return kernel

        return {
            "ordered_path": found[0, 1:],
            "chaotic_path": found[1, 1:],
            "distance_left": jnp.mean(close[:, self.decay_layers :] / close[:, : -self.decay_layers]),
            "variance_left": jax.jvp(variance, (fixed,), (jnp.ones(()),))[1],
        }
