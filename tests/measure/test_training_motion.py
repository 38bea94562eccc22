"""How far training moves a network, against Jacobians and singular values of a network written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.ensembles.wide_networks import WideNetwork
from deeplimits.errors import ParameterError
from deeplimits.measure import training_motion
from deeplimits.models.architectures import FullyConnected


def test_a_network_written_out():
    net = FullyConnected(1, "tanh", weight_variance=1.5, bias_variance=0.1)
    network = WideNetwork(net, inputs=2, widths=5)
    start, end = (network.init(jax.random.key(seed)) for seed in (0, 1))
    x = np.array([[1.0, 0.3], [-0.4, 0.8], [0.2, 0.2]])
    kernels, entering, weights = [], [], []
    for (w1, b1), (w2, b2) in (start, end):
        w1, b1, w2, b2 = (np.asarray(part) for part in (w1, b1, w2, b2))
        h = np.sqrt(1.5 / 2) * x @ w1.T + np.sqrt(0.1) * b1
        a, slope = np.tanh(h), 1 - np.tanh(h) ** 2
        # Gradients: by W₂, b₂, then by W₁ and b₁ through the slopes.
        back = np.sqrt(1.5 / 5) * w2[0] * slope
        kernel = 1.5 / 5 * a @ a.T + 0.1 + (back @ back.T) * (1.5 / 2 * x @ x.T + 0.1)
        kernels.append(kernel)
        entering.append(a)
        weights.append((w1, w2))
    found = training_motion(network, start, end, jnp.asarray(x))
    moved = np.linalg.norm(kernels[1] - kernels[0]) / np.linalg.norm(kernels[0])
    assert float(found.kernel) == pytest.approx(moved, rel=1e-10)
    for layer, root in enumerate((np.sqrt(2), np.sqrt(5))):
        change = np.linalg.svd(weights[1][layer] - weights[0][layer])[1][0] / root
        assert float(found.weights[layer]) == pytest.approx(change, rel=1e-10)
        assert float(found.start_weights[layer]) == pytest.approx(np.linalg.svd(weights[0][layer])[1][0] / root)
    assert float(found.features[1]) == pytest.approx(np.linalg.norm(entering[1] - entering[0]) / np.sqrt(5), rel=1e-10)
    assert float(found.features[0]) == 0


def test_parameters_of_another_network_are_refused():
    net = FullyConnected(1, "tanh")
    one, other = (WideNetwork(net, inputs=2, widths=width) for width in (4, 5))
    with pytest.raises(ParameterError, match="those of start"):
        training_motion(one, one.init(jax.random.key(0)), other.init(jax.random.key(0)), jnp.ones((1, 2)))
