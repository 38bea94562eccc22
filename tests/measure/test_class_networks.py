"""Decompositions of networks, streamed, against dense ones from their definition, through both frameworks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from deeplimits.ensembles.wide_networks import WideNetwork
from deeplimits.errors import ParameterError
from deeplimits.measure import classes, curvature
from deeplimits.measure.adapters import open_model
from deeplimits.models.architectures import FullyConnected

RNG = np.random.default_rng(0)
LABELS = np.concatenate([np.arange(3), RNG.integers(0, 3, 14)])
X = RNG.normal(size=(17, 4)) + np.eye(3, 4)[LABELS]
NET = WideNetwork(FullyConnected(1, "tanh", bias_variance=0.2, parametrization="standard"), 4, 5, 3)
PARAMETERS = NET.init(jax.random.key(0))


def cross_entropy(z, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], axis=1))


def squared(z, y):
    return jnp.mean((z - jax.nn.one_hot(y, 3)) ** 2)


def through_jax():
    return open_model(NET, cross_entropy, (X, LABELS), parameters=PARAMETERS, chunk=6)


def through_torch():
    module = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)).double()
    with torch.no_grad():
        for place, layer, scale in zip((0, 2), PARAMETERS, NET.scales(), strict=True):
            module[place].weight.copy_(torch.tensor(np.asarray(layer.weights * scale.weights)))
            module[place].bias.copy_(torch.tensor(np.asarray(layer.biases * scale.biases)))
    return open_model(module, torch.nn.CrossEntropyLoss(), [(X[:9], LABELS[:9]), (X[9:], LABELS[9:])])


def test_gradient_parts_are_those_of_the_definition_and_sum_to_gauss_newton():
    model = through_jax()
    found = classes.gradient_decomposition(model, size=4)
    z = model.outputs()
    p = np.asarray(jax.nn.softmax(z))
    jacobians = np.concatenate([piece.sample_jacobians() for piece in model.pieces()])
    vectors = np.einsum("nck,nkp->ncp", p[:, None, :] - np.eye(3)[None], jacobians)
    exact = classes.parts(jnp.asarray(vectors), jnp.asarray(p / 17), jnp.asarray(LABELS))
    matrices = exact.matrices()
    np.testing.assert_allclose(found.classes.T @ found.classes, matrices.classes, atol=1e-15)
    np.testing.assert_allclose(found.cross.T @ found.cross, matrices.cross, atol=1e-15)
    np.testing.assert_allclose(found.within.dense(), matrices.within, atol=1e-15)
    np.testing.assert_allclose(found.same.dense(), matrices.same, atol=1e-15)
    g = curvature.gauss_newton(model)
    v = RNG.normal(size=model.size)
    whole = g @ v
    assert np.abs(found @ v - whole).max() < 1e-12 * np.abs(whole).max()
    traces = found.traces()
    np.testing.assert_allclose([one.value for one in traces], exact.traces(), rtol=1e-12)
    np.testing.assert_allclose(sum(one.value for one in traces), np.trace(g.dense()), rtol=1e-12)
    np.testing.assert_allclose(traces.shares.sum(), 1.0)
    spectra = found.spectra()
    np.testing.assert_allclose(spectra.classes[0], np.linalg.eigvalsh(matrices.classes)[-1], rtol=1e-12)
    assert np.sum(spectra.cross > 1e-14) <= 3
    estimated = curvature.trace(found.within, products=27)
    assert abs(estimated.value - traces.within.value) < 5 * estimated.error


def test_pytorch_has_the_same_parts():
    ours, theirs = classes.gradient_decomposition(through_jax()), classes.gradient_decomposition(through_torch())
    np.testing.assert_allclose(theirs.groups.weights, ours.groups.weights, rtol=1e-10)
    sizes = [[float(one.value) for one in found.traces()] for found in (ours, theirs)]
    np.testing.assert_allclose(*sizes, rtol=1e-10)
    for layer in (0, 1):
        one = classes.backprop_decomposition(through_jax(), layer=layer)
        other = classes.backprop_decomposition(through_torch(), layer=str(2 * layer))
        np.testing.assert_allclose(other.traces, one.traces, rtol=1e-10)
        np.testing.assert_allclose(other.whole, one.whole, atol=1e-13)
        np.testing.assert_allclose(jnp.sum(jnp.stack(one.traces)), np.trace(one.whole), rtol=1e-12)
    p = np.asarray(jax.nn.softmax(through_jax().outputs()))
    last = classes.backprop_decomposition(through_jax())
    np.testing.assert_allclose(np.trace(last.whole), np.mean(1 - np.sum(p**2, axis=1)), rtol=1e-12)
    np.testing.assert_allclose(
        classes.measure_collapse(through_torch())[:8], classes.measure_collapse(through_jax())[:8], rtol=1e-9
    )


def test_collapse_of_a_network_is_that_of_its_features():
    found = classes.measure_collapse(through_jax())
    features = NET.forward(PARAMETERS, jnp.asarray(X)).entering[-1]
    exact = classes.neural_collapse(
        features, jnp.asarray(LABELS), 3, weights=PARAMETERS[-1].weights, outputs=NET.apply(PARAMETERS, jnp.asarray(X))
    )
    np.testing.assert_allclose(jnp.stack(found[:8]), jnp.stack(exact[:8]), rtol=1e-11)


def test_two_classes_with_one_output():
    net = WideNetwork(FullyConnected(1, "tanh"), 4, 5, 1)

    def logistic(z, y):
        return jnp.mean(jnp.logaddexp(0.0, z[:, 0]) - y * z[:, 0])

    y = (LABELS > 0).astype(float)
    model = open_model(net, logistic, (X, y), parameters=net.init(jax.random.key(1)))
    found = classes.gradient_decomposition(model)
    v = RNG.normal(size=model.size)
    np.testing.assert_allclose(found @ v, curvature.gauss_newton(model) @ v, atol=1e-14)


def test_a_convolutional_network_with_batch_norm():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3, padding=1), torch.nn.BatchNorm2d(3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(), torch.nn.Dropout(0.3), torch.nn.Linear(3, 3),
    ).double()  # fmt: skip
    x = torch.randn(17, 1, 5, 5, dtype=torch.float64)
    model = open_model(net, torch.nn.CrossEntropyLoss(), (x, torch.tensor(LABELS)), chunk=6)
    piece = next(model.pieces())
    jacobians = piece.sample_jacobians()
    np.testing.assert_allclose(jacobians, piece._jacobians_of_the_batch().detach().numpy(), atol=1e-14)
    v = RNG.normal(size=model.size)
    np.testing.assert_allclose(jacobians @ v, piece.push(v), atol=1e-13)
    found, whole = classes.gradient_decomposition(model), curvature.gauss_newton(model)
    assert np.abs(found @ v - whole @ v).max() < 1e-12 * np.abs(whole @ v).max()
    np.testing.assert_allclose(sum(one.value for one in found.traces()), np.trace(whole.dense()), rtol=1e-12)
    mixed = open_model(net, torch.nn.CrossEntropyLoss(), (x, torch.tensor(LABELS)), mode="train")
    with pytest.raises(ParameterError, match="sum over samples"):
        classes.gradient_decomposition(mixed)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: classes.gradient_decomposition(through_jax().on((X[:2], LABELS[:2]))), "no sample has the label"),
    (lambda: classes.gradient_decomposition(open_model(NET, squared, (X, LABELS), parameters=PARAMETERS)),
     "no cross-entropy"),
    (lambda: classes.measure_collapse(open_model(
        lambda p, x: x[:, :3] * p[None, :], cross_entropy, (X, LABELS), parameters=jnp.ones(3))), "no affine layer"),
    (lambda: classes.measure_collapse(through_torch(), layer="head"), "no layer called"),
    (lambda: classes.measure_collapse(through_jax(), layer=5), "layers 0 … 1"),
])  # fmt: skip
def test_bad_input_is_answered_in_a_sentence(call, words):
    with pytest.raises(ParameterError, match=words):
        call()
