"""Layers of the house's own networks: features and sensitivities."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.ensembles.wide_networks import WideNetwork
from deeplimits.errors import ParameterError
from deeplimits.measure.adapters.network import Inside


def of_wide_network(
    network: WideNetwork, parameters: Any, x: Any, layer: str | int | None, directions: np.ndarray
) -> Inside:
    """What enters affine layer `layer`, counted from 0 (the last by default), and sensitivities to what leaves it."""
    count = network.net.hidden_layers + 1
    place = count - 1 if layer is None else int(layer)
    if not 0 <= place < count:
        raise ParameterError(f"layer = {layer} is not allowed; the network has layers 0 … {count - 1}")
    shifts = [jnp.zeros((x.shape[0], size)) for size in network.sizes[1:]]

    def outputs(added):
        return network.forward(parameters, x, [*shifts[:place], added, *shifts[place + 1 :]]).outputs

    z, pull = jax.vjp(outputs, shifts[place])
    u = jnp.asarray(directions).reshape(len(z), directions.shape[1], z.shape[1])
    wanted = u.shape[1] > 0
    found = jax.vmap(lambda one: pull(one)[0], in_axes=1, out_axes=1)(u) if wanted else shifts[place][:, None][:, :0]
    entering = network.forward(parameters, x).entering[place]
    weights = parameters[place].weights * network.scales()[place].weights
    return Inside(np.asarray(entering, float), np.asarray(found, float), np.asarray(weights, float))
