"""Angles between inputs along networks that are no chains, and the rates at which near inputs part or come together."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from deeplimits import diagnose, theory
from deeplimits.diagnosis import correlations
from deeplimits.diagnosis.blocks import stream
from deeplimits.diagnosis.propagation import expected
from deeplimits.measure.adapters import open_model
from deeplimits.measure.adapters.architecture import architecture
from deeplimits.measure.adapters.pairs import pairs
from specimens import LABELS, TOKENS, Sequences, convolutional, convolutional_residual, digits, loss, residual


def networks(kind, seed):
    torch.manual_seed(seed)
    x, y = digits(64)
    if kind == "attention":
        net = Sequences(64)
        for value in net.blocks.parameters():  # PyTorch makes its blocks as copies of one
            if value.ndim > 1:
                torch.nn.init.normal_(value, std=value.shape[1] ** -0.5)
        return net, (TOKENS, LABELS)
    if kind == "normalized convolutions":
        return convolutional_residual(30, 4), (x.reshape(-1, 1, 8, 8), y)
    return residual(100, 4, kind == "normalized") if kind != "convolutional" else convolutional(30, 4), (x, y)


def score(kind, seed, wrong=0.0):
    """(measured − predicted)/error of the mean cosine at the end of the stream."""
    net, data = networks(kind, seed)
    read = architecture(open_model(net, loss, data))
    last = stream(read)[-1]
    changed = [
        one._replace(constants={**one.constants, "bias_variance": one.constants["bias_variance"] + wrong})
        if one.kind == "affine"
        else one
        for one in read.operations
    ]
    read = read._replace(operations=tuple(changed))
    line = correlations.alike(read, expected(read))[last.place]
    assert not line.restarted
    return (last.pairs.of(correlations.followed_pairs(read)).cosine - line.cosine) / line.error


@pytest.mark.parametrize("kind", ["residual", "normalized", "convolutional", "normalized convolutions", "attention"])
def test_measured_angles_follow_the_recursion_of_pairs(kind):
    z = np.array([score(kind, seed) for seed in range(4)])
    assert np.sum(z**2) < 24, z  # χ² with four degrees of freedom exceeds it with probability 1e-4
    off = np.array([score(kind, seed, 1.0) for seed in range(4)])
    assert np.sum(off**2) > 24, off


def tanh_images(variances, layers=5, channels=60, pooled=False):
    parts, before = [torch.nn.Unflatten(1, (1, 8, 8))], 1
    for _ in range(layers):
        one = torch.nn.Conv2d(before, channels, 1)
        with torch.no_grad():
            for value, variance in ((one.weight, variances[0] / before), (one.bias, variances[1])):
                value.normal_()
                value.mul_((variance / value.square().mean()) ** 0.5)
        parts += [one, torch.nn.Tanh()]
        before = channels
    if pooled:
        return torch.nn.Sequential(*parts, torch.nn.AvgPool2d(8), torch.nn.Flatten(), torch.nn.Linear(channels, 10))
    return torch.nn.Sequential(*parts, torch.nn.Flatten(), torch.nn.Linear(64 * channels, 10))


@pytest.mark.parametrize("variances", [(0.8, 0.3), pytest.param((1.5, 0.5), marks=pytest.mark.slow)])
def test_convolutions_have_the_depth_scale_of_fully_connected_layers(variances):
    torch.manual_seed(0)
    start = float(theory.initialization.fixed_point("tanh", *variances))
    chi = float(theory.initialization.susceptibilities("tanh", start, weight_variance=variances[0]).perpendicular)
    if chi < 1:  # in the chaotic phase the scale of the theory is that at the fixed point below 1
        scale = float(theory.initialization.depth_scales("tanh", *variances).correlation_scale)
        assert scale == pytest.approx(-1 / np.log(chi), rel=1e-3)
    x, y = digits(16)
    # One place of an image has one number: its square is as at the fixed point.
    x = np.sign(x + 1e-3) * ((start - variances[1]) / variances[0]) ** 0.5
    read = architecture(open_model(tanh_images(variances), loss, (x.astype("float32"), y)))
    stated, places = expected(read), read.of("affine")[:-1]
    rate = correlations.near(read, stated, places[0], places[-1])
    assert np.log(rate) / (len(places) - 1) == pytest.approx(np.log(chi), abs=0.02)
    (found,) = correlations.examine(read, stated, correlations.alike(read, stated), places, True, "")
    assert "a depth scale of" in found.sentence
    assert found.references[0] == "xiao2018"


@pytest.mark.parametrize("norm", [False, True])
def test_near_inputs_part_as_stated(norm):
    torch.manual_seed(0)
    net = residual(300, 4, norm).double()
    x, y = digits(48)
    read = architecture(open_model(net, loss, (x.astype(float), y)))
    places = read.trunk
    with torch.no_grad():
        h = net[1](net[0](torch.tensor(x.astype(float))))
        one, other = h, h + 1e-5 * torch.randn_like(h)
        sizes = [float(((a - b) ** 2).mean() / (a**2).mean()) for a, b in [(one, other)]]
        for block in net[2:5]:
            one, other = block(one), block(other)
        sizes.append(float(((one - other) ** 2).mean() / (one**2).mean()))
    rate = correlations.near(read, expected(read), places[0], places[-1])
    assert sizes[1] / sizes[0] == pytest.approx(rate, rel=0.1)
    if not norm:
        assert rate == pytest.approx(1.0, rel=0.02)  # ReLU branches keep near inputs as they are: no depth scale


@pytest.mark.slow
def test_what_is_said_of_the_depth_scale():
    torch.manual_seed(0)
    plain = diagnose(residual(60, 4, False), loss, digits(), only=("initialization",))["depth-scale"]
    assert "like a power of the depth" in plain.sentence
    assert plain.references[0] == "yang2017"
    assert plain.theory is not None
    assert plain.measured.error > 0
    tokens = diagnose(Sequences(), loss, (TOKENS, LABELS), only=("initialization",))["depth-scale"]
    assert "theory has no depth scale here" in tokens.sentence
    assert not next(one.holds for one in tokens.assumptions if "law for pairs" in one.what)
    chaotic = diagnose(tanh_images((25.0, 0.0), 6, 40, True), loss, digits(40), only=("initialization",))["depth-scale"]
    assert "driven apart" in chaotic.sentence
    ordered = diagnose(tanh_images((0.3, 0.5), 6, 40, True), loss, digits(40), only=("initialization",))["depth-scale"]
    assert "come together" in ordered.sentence
    assert ordered.severity == "critical"


def test_pairs_of_jax_are_those_of_pytorch():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 8, 8)), torch.nn.Conv2d(1, 8, 3, padding=1, stride=2), torch.nn.ReLU(),
        torch.nn.Conv2d(8, 12, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(48, 10),
    ).double()  # fmt: skip
    x, y = digits(20)
    parameters = {name: jnp.asarray(value.detach().numpy()) for name, value in net.named_parameters()}

    def convolved(h, p, layer, **options):
        made = jax.lax.conv_general_dilated(
            h, p[f"{layer}.weight"], dimension_numbers=("NCHW", "OIHW", "NCHW"), **options
        )
        return jax.nn.relu(made + p[f"{layer}.bias"][None, :, None, None])

    def apply(p, x):
        h = convolved(x.reshape(-1, 1, 8, 8), p, 1, window_strides=(2, 2), padding=((1, 1), (1, 1)))
        h = convolved(h, p, 3, window_strides=(1, 1), padding="VALID")
        return h.reshape(len(h), -1) @ p["6.weight"].T + p["6.bias"][None]

    def cross_entropy(z, y):
        return -jnp.mean(jax.nn.log_softmax(z)[jnp.arange(len(y)), y])

    cosines = []
    for model in (
        open_model(net, loss, (x.astype(float), y)),
        open_model(apply, cross_entropy, (x.astype(float), y), parameters=parameters),
    ):
        read = architecture(model)
        made = correlations.alike(read, expected(read))
        places = [one.place for one in read.of("activation")]
        cosines.append([(read.operations[i].pairs.cosine, made[i].cosine) for i in places])
        assert not any(made[i].restarted for i in places)
    # PyTorch adds the bias within the convolution, JAX behind it: both know the variance of all biases.
    np.testing.assert_allclose(cosines[0], cosines[1], rtol=1e-9)


def test_pairs_by_hand():
    values = np.random.default_rng(0).normal(size=(3, 2, 4, 5))
    found = pairs(values, 3, 1, True)
    assert found.first.shape == (3, 20)
    rows = values.reshape(3, -1)
    gram = rows @ rows.T
    cosines = gram / np.sqrt(np.outer(np.diag(gram), np.diag(gram)))
    assert found.cosine == pytest.approx(np.mean(cosines[np.triu_indices(3, 1)]))
    assert pairs(values, 4, 1, True) is None
