"""Parametrizations told apart by the powers of the width in their first updates."""

import itertools

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from deeplimits.diagnosis import coordinate_check
from deeplimits.errors import ParameterError

WIDTHS = (64, 128, 256, 512)
loss = torch.nn.CrossEntropyLoss()


def digits():
    data = load_digits()
    return ((data.data - data.data.mean(axis=0)) / data.data.std()).astype("float32")[:128], data.target[:128]


class Scaled(torch.nn.Module):
    """A linear layer whose weights are multiplied on the way, as in the tangent-kernel parametrization."""

    def __init__(self, inside, outside, factor):
        super().__init__()
        self.linear, self.factor = torch.nn.Linear(inside, outside, bias=False), factor
        torch.nn.init.normal_(self.linear.weight)

    def forward(self, x):
        return self.factor * self.linear(x)


def standard(width):
    layers = []
    for inside, outside in itertools.pairwise((64, width, width, width, 10)):
        layer = torch.nn.Linear(inside, outside, bias=False)
        torch.nn.init.normal_(layer.weight, std=((1.0 if outside == 10 else 2.0) / inside) ** 0.5)
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def tangent(width):
    sizes = (64, width, width, width, 10)
    parts = [[Scaled(m, n, (2 / m) ** 0.5), torch.nn.ReLU()] for m, n in itertools.pairwise(sizes)]
    return torch.nn.Sequential(*itertools.chain(*parts))[:-1]


def maximal(width, rule="sgd", slip=None):
    """The standard network with output and learning rates scaled; one layer's rate wrong by a power of the width."""
    net = standard(width)
    linear = [one for one in net if isinstance(one, torch.nn.Linear)]
    grown = width / 64
    with torch.no_grad():
        linear[-1].weight.mul_(grown**-0.5)
    rates = [grown, 1.0, 1.0, 1 / grown] if rule == "sgd" else [1.0, 1 / grown, 1 / grown, 1 / grown]
    if slip is not None:
        rates[slip] *= grown
    groups = [{"params": one.parameters(), "lr": 1e-2 * rate} for one, rate in zip(linear, rates, strict=True)]
    return net, (torch.optim.SGD(groups) if rule == "sgd" else torch.optim.Adam(groups, eps=1e-12))


def adam(module):
    return torch.optim.Adam(module.parameters(), lr=1e-3, eps=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("make", "options", "expected"),
    [
        (standard, {}, "standard"),
        (standard, {"optimizer": adam}, "standard"),
        (maximal, {}, "maximal update"),
        (lambda width: maximal(width, "adam"), {}, "maximal update"),
    ],
    ids=["standard", "standard with Adam", "maximal", "maximal with Adam"],
)
def test_parametrizations_are_told_apart(make, options, expected, seed):
    found = coordinate_check(make, WIDTHS, digits(), loss=loss, seed=seed, **options)
    assert found.parametrization == expected
    assert not found.broken
    assert found.transfers == (expected == "maximal update")


def test_multipliers_are_seen_in_what_leaves_the_inner_layer():
    # The linear layer inside has weights of order one: its own outputs grow like the root of the fan-in.
    found = coordinate_check(tangent, WIDTHS, digits(), loss=loss)
    assert [one.role for one in found.layers] == ["input", "hidden", "hidden", "output"]
    starts = [float(one.start.value) for one in found.layers]
    np.testing.assert_allclose(starts, [0.0, 0.5, 0.5, 0.5], atol=0.15)


@pytest.mark.parametrize(("rule", "slip", "name"), [("sgd", 0, "0"), ("sgd", 2, "4"), ("adam", 1, "2")])
def test_a_layer_with_a_wrong_rate_is_named(rule, slip, name):
    found = coordinate_check(lambda width: maximal(width, rule, slip), WIDTHS, digits(), loss=loss)
    assert found.parametrization == "maximal update"
    assert found.broken == (name,)
    assert "← broken" in str(found)
    # What is off by the first power of the width is to be divided by it.
    assert found.factors(512, 64)[name].learning_rate == pytest.approx(1 / 8)


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_the_factors_make_a_standard_network_one_of_maximal_update(rule):
    usual = {} if rule == "sgd" else {"optimizer": adam}
    said = coordinate_check(standard, WIDTHS, digits(), loss=loss, **usual)

    def mended(width):
        net = standard(width)
        groups = []
        for name, factor in said.factors(width, 64).items():
            layer = net.get_submodule(name)
            with torch.no_grad():
                layer.weight.mul_(factor.weights)
            groups.append({"params": layer.parameters(), "lr": 1e-2 * factor.learning_rate})
        return net, (torch.optim.SGD(groups) if rule == "sgd" else torch.optim.Adam(groups, eps=1e-12))

    assert coordinate_check(mended, WIDTHS, digits(), loss=loss).transfers


def test_powers_are_those_of_the_theory():
    found = coordinate_check(standard, (128, 256, 512, 1024), digits(), loss=loss, samples=1)
    for one, power in zip(found.layers, (-0.5, 0.5, 0.5, 1.0), strict=True):
        # Relative corrections of order 1/n bend a power by less than 0.05 at these widths.
        assert abs(float(one.own.value) - power) < 4 * float(one.own.error) + 0.05
    assert found.picture().to_json()["x"]["log"]


def test_bad_input_is_answered_in_a_sentence():
    data = digits()
    state = torch.get_rng_state()
    for make, widths, options, words in (
        (standard, (64, 128), {}, "three or more"),
        (standard, (128, 64, 32), {}, "increasing"),
        (lambda width: width, WIDTHS, {}, "must give a torch.nn.Module"),
        (lambda width: standard(64), WIDTHS, {}, "make"),
        (standard, WIDTHS, {"seeds": 1}, "seeds = 1"),
        (standard, WIDTHS, {"steps": 0}, "steps = 0"),
    ):
        with pytest.raises(ParameterError, match=words):
            coordinate_check(make, widths, data, loss=loss, **options)
    for given, words in (
        (data[0], "a pair"),
        ((data[0][:0], data[1][:0]), "0 inputs"),
        ((data[0], data[1][:3]), "3 t"),
    ):
        with pytest.raises(ParameterError, match=words):
            coordinate_check(standard, WIDTHS, given, loss=loss)

    def frozen(width):
        net = standard(width)
        net[2].weight.requires_grad_(False)
        return net

    with pytest.raises(ParameterError, match="does not move"):
        coordinate_check(frozen, WIDTHS, data, loss=loss)
    assert torch.equal(state, torch.get_rng_state())
