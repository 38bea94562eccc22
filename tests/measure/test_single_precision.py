"""Networks in float32: what is computed in float64 all the same, and when that cannot be."""

import functools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from deeplimits.measure import curvature
from deeplimits.measure.adapters import open_model

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 5)).astype(np.float32), np.arange(30) % 3


def module(*more, width=7):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, width), torch.nn.Tanh(), *more, torch.nn.Linear(width, 3))


def mlp(p, x):
    for layer in sorted({int(name[0]) for name in p})[:-1]:
        x = jnp.tanh(x @ p[f"{layer}.weight"].T + p[f"{layer}.bias"][None])
    last = max(p)[0]
    return x @ p[f"{last}.weight"].T + p[f"{last}.bias"][None]


def cross_entropy(z, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], axis=1))


def through(framework, net, data, **options):
    if framework == "torch":
        return open_model(net, torch.nn.CrossEntropyLoss(), data, **options)
    leaves = {name: jnp.asarray(value.detach().numpy()) for name, value in net.named_parameters()}
    return open_model(mlp, cross_entropy, data, parameters=leaves, **options)


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_outputs_and_loss_have_the_digits_of_float64(framework):
    net = module()
    narrow, wide, plain = (
        through(framework, net, (X, Y), precision=precision, chunk=13) for precision in (None, "float64", "float32")
    )
    np.testing.assert_allclose(narrow.outputs(), wide.outputs(), rtol=1e-13, atol=1e-14)
    assert abs(narrow.loss() - wide.loss()) < 1e-14
    assert abs(plain.loss() - wide.loss()) > 1e-11
    # The Jacobian stays in float32, and everything else that is asked of a model works.
    v = np.cos(np.arange(wide.size))
    others = ("gauss_newton", "residual_part", "gradient_moment", "fisher") if framework == "torch" else ()
    for one in ("hessian", *others):
        exact = getattr(curvature, one)(wide) @ v
        np.testing.assert_allclose(getattr(curvature, one)(narrow) @ v, exact, atol=1e-6 * np.abs(exact).max())
    np.testing.assert_allclose(narrow.losses(), wide.losses(), rtol=1e-12)
    weights = RNG.random(30)
    first, second = (sum(piece.loss() for piece in one.pieces(weights)) for one in (narrow, wide))
    assert abs(first - second) < 1e-13


@functools.cache
def trained():
    """64-16-16-10 on 500 digits, nearly all of which it knows."""
    digits = load_digits()
    x, y = torch.tensor(digits.data[:500] / 16, dtype=torch.float32), torch.tensor(digits.target[:500])
    torch.manual_seed(0)
    layers = [torch.nn.Linear(64, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16), torch.nn.Tanh()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(16, 10))
    optimizer, loss = torch.optim.Adam(net.parameters(), lr=1e-2), torch.nn.CrossEntropyLoss()
    for _ in range(1000):
        optimizer.zero_grad()
        value = loss(net(x), y)
        if value.item() <= 0.0207:
            break
        value.backward()
        optimizer.step()
    return net, (x.numpy(), y.numpy())


@pytest.mark.parametrize("framework", ["torch", pytest.param("jax", marks=pytest.mark.slow)])
def test_five_eigenvalues_of_a_network_in_float32_to_1e_7(framework):
    net, data = trained()
    exact = curvature.eigenpairs(curvature.hessian(through("torch", net, data, precision="float64")), count=5)
    found = curvature.eigenpairs(curvature.hessian(through(framework, net, data)), count=5)
    assert np.abs(found.values / exact.values - 1).max() < 1e-7
    assert found.products <= 21


class Insists(torch.nn.Module):
    """Multiplies by a matrix of its own, in float32."""

    def forward(self, x):
        return x @ torch.full((3, 3), 0.5, dtype=torch.float32)


def insisting(z, y):
    return torch.mean((z @ torch.full((3, 3), 0.5, dtype=torch.float32) - torch.nn.functional.one_hot(y, 3)) ** 2)


def test_what_insists_on_float32_has_it():
    data = (torch.tensor(X), torch.tensor(Y))
    plain = module()
    for net, loss in [(torch.nn.Sequential(plain, Insists()), torch.nn.CrossEntropyLoss()), (plain, insisting)]:
        model = open_model(net, loss, data)
        with torch.no_grad():
            np.testing.assert_array_equal(model.outputs().astype(np.float32), net(data[0]).numpy())
        assert np.all(np.isfinite(curvature.hessian(model) @ np.ones(model.size)))


def test_random_layers_keep_the_masks_that_they_have_in_float32():
    data = (torch.tensor(X), torch.tensor(Y))
    dropping = module(torch.nn.Dropout(0.5), width=40)
    narrow = open_model(dropping, torch.nn.CrossEntropyLoss(), data, mode="train", precision="float32")
    model = open_model(dropping, torch.nn.CrossEntropyLoss(), data, mode="train")
    np.testing.assert_allclose(model.outputs(), narrow.outputs(), rtol=1e-5, atol=1e-6)


def test_weights_of_classes_are_taken_along_and_left_alone():
    weights = torch.tensor([1.0, 2.0, 0.5])
    loss = torch.nn.CrossEntropyLoss(weight=weights, reduction="none")
    before = weights.clone()
    model = open_model(module(), loss, (torch.tensor(X), torch.tensor(Y)))
    wide = open_model(module().double(), lambda z, y: torch.nn.functional.cross_entropy(
        z, y, weight=before.double(), reduction="none"), (torch.tensor(X).double(), torch.tensor(Y)))  # fmt: skip
    assert abs(model.loss() - wide.loss()) < 1e-13
    assert loss.weight is weights
    assert torch.equal(weights, before)


@pytest.mark.slow
def test_measuring_a_module_does_not_load_the_compiler():
    code = """
import sys, numpy as np, torch
from deeplimits.measure import curvature
from deeplimits.measure.adapters import open_model
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
model = open_model(net, torch.nn.CrossEntropyLoss(), (np.ones((5, 3), np.float32), np.arange(5) % 2))
curvature.eigenpairs(curvature.hessian(model))
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
