"""Parametrizations told apart by the powers of the width in their first updates."""

import itertools

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from deeplimits.diagnosis import coordinate_check, rate_transfer
from deeplimits.errors import DeeplimitsError, ParameterError

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


def mended(said, rule, rate):
    """Standard networks by width, with the factors that were said, and what trains them."""

    def make(width):
        net = standard(width)
        groups = []
        for name, factor in said.factors(width, 64).items():
            layer = net.get_submodule(name)
            with torch.no_grad():
                layer.weight.mul_(factor.weights)
            groups.append({"params": layer.parameters(), "lr": rate * factor.learning_rate})
        return net, (torch.optim.SGD(groups) if rule == "sgd" else torch.optim.Adam(groups, eps=1e-12))

    return make


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


def test_multipliers_belong_to_the_layer_that_they_follow():
    found = coordinate_check(tangent, WIDTHS, digits(), loss=loss)
    assert found.parametrization == "ntk"
    assert not found.broken
    assert [one.role for one in found.layers] == ["input", "hidden", "hidden", "output"]
    assert all(abs(float(one.start.value)) < 0.15 for one in found.layers)


def test_a_wrong_multiplier_is_named():
    def slipped(width):
        net = tangent(width)
        net[4].factor *= (width / 64) ** 0.5
        return net

    found = coordinate_check(slipped, WIDTHS, digits(), loss=loss)
    assert (found.parametrization, found.broken) == ("ntk", ("4.linear",)), found
    assert found.fault == "the multiplier of 4.linear is off by n^0.5"


def test_jax_networks_are_told_apart():
    import jax
    import jax.numpy as jnp

    def make(width, scale):
        sizes = (64, width, width, 10)
        drawn = {
            f"w{i}": np.random.normal(size=(m, n)) * (1.0 if scale else m**-0.5)  # noqa: NPY002
            for i, (m, n) in enumerate(itertools.pairwise(sizes))
        }

        def apply(p, x):
            for i, m in enumerate(sizes[:-1]):
                x = (x @ p[f"w{i}"]) * (m**-0.5 if scale else 1.0)
                x = jax.nn.relu(x) if i < 2 else x
            return x

        return apply, {name: jnp.asarray(value) for name, value in drawn.items()}

    def cross_entropy(z, y):
        return -jnp.mean(jax.nn.log_softmax(z)[jnp.arange(len(y)), y])

    for scale, name in ((False, "standard"), (True, "ntk")):
        found = coordinate_check(
            lambda width, scale=scale: make(width, scale), (64, 128, 256), digits(), loss=cross_entropy, seeds=3
        )
        assert found.parametrization == name
        assert not found.broken
        assert [one.name for one in found.layers] == ["w0", "w1", "w2"]


@pytest.mark.parametrize("slip", [None, "w1"])
def test_maximal_update_and_a_wrong_rate_in_jax(slip):
    import jax
    import jax.numpy as jnp

    def make(width):
        grown, sizes = width / 64, (64, width, width, 10)
        rates = {"w0": grown, "w1": grown if slip == "w1" else 1.0, "w2": 1 / grown}
        parameters = {
            f"w{i}": jnp.asarray(np.random.normal(size=(m, n)) * m**-0.5)  # noqa: NPY002
            for i, (m, n) in enumerate(itertools.pairwise(sizes))
        }
        parameters["w2"] = parameters["w2"] * grown**-0.5

        def apply(p, x):
            return jnp.tanh(jnp.tanh(x @ p["w0"]) @ p["w1"]) @ p["w2"]

        def step(p, gradients):
            return {name: p[name] - 1e-2 * rates[name] * gradients[name] for name in p}

        return apply, parameters, step

    def cross_entropy(z, y):
        return -jnp.mean(jax.nn.log_softmax(z)[jnp.arange(len(y)), y])

    found = coordinate_check(make, (64, 128, 256), digits(), loss=cross_entropy, seeds=3)
    assert (found.parametrization, found.rule) == ("maximal update", "sgd")
    assert found.broken == (() if slip is None else (slip,)), found
    assert found.fault == ("" if slip is None else "the learning rate of w1 is off by n^1")


def of_parametrization(name, rule):
    """A network of this parametrization, and the optimizer that coordinate_check is to be given."""
    usual = {} if rule == "sgd" else {"optimizer": adam}
    return {
        "standard": (standard, usual),
        "ntk": (tangent, usual),
        "maximal update": (lambda width: maximal(width, rule), {}),
    }[name]


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["sgd", "adam"])
@pytest.mark.parametrize("name", ["standard", "ntk", "maximal update"])
def test_all_powers_are_those_of_the_theory(name, rule):
    make, usual = of_parametrization(name, rule)
    found = coordinate_check(make, (128, 256, 512, 1024), digits(), loss=loss, samples=1, **usual)
    assert found.parametrization == name
    stated = found.predicted(name)
    # What lower layers pass on is of the same order as a layer's own update, or less: both bend the power of the sum.
    far = [
        (one.name, part, float(getattr(one, part).value), getattr(powers, part))
        for one, powers in zip(found.layers, stated, strict=True)
        for part, room in (("start", 0.1), ("own", 0.1), ("change", 0.25))
        if abs(float(getattr(one, part).value) - getattr(powers, part)) > 4 * float(getattr(one, part).error) + room
    ]
    assert not far, found
    with pytest.raises(ParameterError, match="parametrization"):
        found.predicted("muP")


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_mended_networks_carry_their_learning_rate_over(rule):
    widths = (64, 256, 1024)
    usual = {} if rule == "sgd" else {"optimizer": adam}
    said = coordinate_check(standard, WIDTHS, digits(), loss=loss, **usual)
    base = 0.05 if rule == "sgd" else 2e-3

    def plain(width):
        net = standard(width)
        return net, (torch.optim.SGD(net.parameters(), lr=base) if rule == "sgd" else adam(net))

    factors = [2.0**power for power in range(-7, 8)]
    kept = rate_transfer(mended(said, rule, base), widths, digits(), loss=loss, factors=factors, steps=20)
    lost = rate_transfer(plain, widths, digits(), loss=loss, factors=factors, steps=20)
    assert abs(float(kept.power.value)) < 0.2 + 4 * float(kept.power.error)
    assert kept.transfers, kept
    assert float(lost.power.value) < float(kept.power.value) - 0.15, (kept, lost)


def test_bad_factors_are_answered_in_a_sentence():
    for options, words in (
        ({"factors": [1.0, 2.0]}, "three or more"),
        ({"factors": [1e9, 2e9, 4e9]}, "diverges at width 8|factors is the best"),
        ({"factors": [1e-3, 2e-3, 4e-3]}, "largest of the factors is the best"),
        ({"seeds": 1}, "seeds"),
    ):
        with pytest.raises(DeeplimitsError, match=words):
            rate_transfer(standard, (8, 16), digits(), loss=loss, **{"steps": 2, "seeds": 2, **options})


def plain_linear(inside, outside):
    layer = torch.nn.Linear(inside, outside, bias=False)
    torch.nn.init.normal_(layer.weight, std=inside**-0.5)
    return layer


def scaled_linear(inside, outside):
    return Scaled(inside, outside, inside**-0.5)


class Attention(torch.nn.Module):
    """One block of a small transformer, with a width, and heads of size 16."""

    def __init__(self, width, linear):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (linear(width, width) for _ in range(4))
        self.first, self.second = linear(width, width), linear(width, width)

    def forward(self, x):
        shape = (*x.shape[:2], -1, 16)
        h = self.norm(x)
        q, k, v = (part(h).reshape(shape).transpose(1, 2) for part in (self.query, self.key, self.value))
        weights = (q @ k.transpose(2, 3) / 4).softmax(dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(x.shape))
        return x + self.second(torch.relu(self.first(self.norm(x))))


class Transformer(torch.nn.Module):
    def __init__(self, width, linear=plain_linear):
        super().__init__()
        self.stem, self.block, self.head = linear(8, width), Attention(width, linear), linear(width, 10)

    def forward(self, x):
        return self.head(self.block(self.stem(x.reshape(-1, 8, 8))).mean(dim=1))


def grouped(net, width, wrong=None):
    """Maximal update for Adam: inner and last rates as 1/n, the last layer's start as 1/n."""
    grown = width / 64
    with torch.no_grad():
        net.head.weight.mul_(grown**-0.5)
    groups = []
    for name, value in net.named_parameters():
        rate = 1.0 if name.startswith("stem") or value.ndim < 2 else 1 / grown
        groups.append({"params": [value], "lr": 1e-3 * rate * (grown if wrong and wrong in name else 1.0)})
    return torch.optim.Adam(groups, eps=1e-12)


@pytest.mark.slow
def test_small_transformers_are_told_apart():
    found = coordinate_check(Transformer, WIDTHS, digits(), loss=loss, optimizer=adam)
    assert found.parametrization == "standard", found
    assert not found.broken, found

    def maximal_one(width, wrong=None):
        net = Transformer(width)
        return net, grouped(net, width, wrong)

    tangents = coordinate_check(
        lambda width: Transformer(width, scaled_linear), WIDTHS, digits(), loss=loss, optimizer=adam
    )
    assert tangents.parametrization == "ntk", tangents
    assert not tangents.broken, tangents
    assert coordinate_check(maximal_one, WIDTHS, digits(), loss=loss).transfers
    named = coordinate_check(lambda width: maximal_one(width, "value"), WIDTHS, digits(), loss=loss)
    assert named.broken == ("block.value",), named


@pytest.mark.parametrize(("rule", "slip", "name"), [("sgd", 0, "0"), ("sgd", 2, "4"), ("adam", 1, "2")])
def test_a_layer_with_a_wrong_rate_is_named(rule, slip, name):
    found = coordinate_check(lambda width: maximal(width, rule, slip), WIDTHS, digits(), loss=loss)
    assert found.parametrization == "maximal update"
    assert found.broken == (name,)
    assert "← broken" in str(found)
    assert "maximal update" in str(found).splitlines()[2]  # all three are shown, below the fault
    assert str(found).count(" | ") == 1 + 3 * len(found.layers)  # beside every power that was measured
    # What is off by the first power of the width is to be divided by it.
    assert found.factors(512, 64)[name].learning_rate == pytest.approx(1 / 8)


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_the_factors_make_a_standard_network_one_of_maximal_update(rule):
    usual = {} if rule == "sgd" else {"optimizer": adam}
    said = coordinate_check(standard, WIDTHS, digits(), loss=loss, **usual)

    assert coordinate_check(mended(said, rule, 1e-2), WIDTHS, digits(), loss=loss).transfers


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
