"""Lazy and rich training told apart, the linearization's curve, and steps by layer."""

import copy

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from deeplimits import diagnose
from deeplimits.diagnosis import layer_rates, learning_rate, regime
from deeplimits.diagnosis.subject import Subject, read_optimizer
from deeplimits.errors import ParameterError
from deeplimits.measure.adapters import open_model
from specimens import digits, fully_connected, loss


def test_a_model_that_is_linear_in_its_parameters_is_lazy():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 6)), rng.normal(size=40)
    model = open_model(lambda w, x: x @ w, lambda z, t: jnp.mean((z - t) ** 2), (x, y), parameters=jnp.zeros(6))
    run = regime.short_run(model, steps=12)
    assert run is not None
    np.testing.assert_allclose(run.losses, run.linear, rtol=1e-9)
    assert run.kernel_change.value < 1e-6
    assert run.linearization_error < 1e-9
    # Least squares by hand: w ← w − η (2/n) Xᵀ(Xw − y)
    w, losses = np.zeros(6), []
    for _ in range(13):
        losses.append(np.mean((x @ w - y) ** 2))
        w = w - run.step * 2 * x.T @ (x @ w - y) / 40
    np.testing.assert_allclose(run.losses, losses, rtol=1e-9)
    np.testing.assert_allclose(run.kernels[0], (x @ x.T)[:24, :24], rtol=1e-5, atol=1e-5)


def test_the_change_of_the_kernel_falls_like_one_over_the_width():
    widths, changes = (128, 512), []
    for width in widths:
        found = []
        for seed in range(3):
            torch.manual_seed(seed)
            net = fully_connected((64, width, 1), "tanh")
            x, y = digits(48)
            model = open_model(net, torch.nn.MSELoss(), (x, np.cos(y)[:, None].astype("float32")))
            run = regime.short_run(model, steps=6)
            assert run is not None
            found.append(float(run.kernel_change.value))
        changes.append(np.mean(found))
    power = np.log(changes[1] / changes[0]) / np.log(widths[1] / widths[0])
    assert -1.5 < power < -0.5, (changes, power)  # −1; −1/2 would be chance alone


def test_a_report_on_the_regime():
    torch.manual_seed(0)
    found = diagnose(fully_connected((64, 30, 10)), loss, digits(), only=("regime",))
    assert "rich" in found["regime"].sentence
    assert found["kernel-regression"].picture is not None
    aligned = found["kernel-alignment"]
    assert aligned.measured.value > aligned.theory  # digits of one class resemble each other
    assert all(one.severity == "note" for one in found.findings)


@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_relative_changes_by_layer_are_those_of_a_step(kind):
    torch.manual_seed(0)
    net, (x, y) = fully_connected((64, 30, 20, 10)), digits(60)
    step = 1e-3
    made = torch.optim.SGD(net.parameters(), lr=step) if kind == "sgd" else torch.optim.Adam(net.parameters(), lr=step)
    subject = Subject(open_model(net, loss, (x, y)), read_optimizer(made), 0, np.inf)
    found = layer_rates.relative_changes(subject)
    seen = {}
    for name in ("0", "2", "4"):

        def hook(_, given, out, name=name):
            seen.setdefault(name, (given[0], out))

        net.get_submodule(name).register_forward_hook(hook)
    before = {name: net.get_submodule(name).weight.detach().clone() for name in ("0", "2", "4")}
    loss(net(torch.tensor(x)), torch.tensor(y)).backward()
    made.step()
    for name, (given, out) in seen.items():
        change = given @ (net.get_submodule(name).weight - before[name]).T
        exact = float((change**2).mean().sqrt() / (out**2).mean().sqrt())
        assert step * found[name] == pytest.approx(exact, rel=2e-3)


def test_optimizers_are_read_with_all_that_matters_to_stability():
    net = torch.nn.Linear(6, 1).double()
    weights = list(net.parameters())
    assert read_optimizer(("adamw", 1e-3, 0.9, 0.01)).decay == 0.01
    assert read_optimizer(torch.optim.SGD(weights, lr=0.1, weight_decay=0.3)).coupled == 0.3
    assert read_optimizer(torch.optim.SGD(weights, lr=0.1, momentum=0.9, dampening=0.5)).step == pytest.approx(0.05)
    with pytest.raises(ParameterError, match="NAdam"):
        read_optimizer(torch.optim.NAdam(weights, lr=0.1))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 6)), rng.normal(size=(40, 1))
    rows = np.column_stack([x, np.ones(40)])
    plain = 2 * rows.T @ rows / 40

    def sharpness(optimizer):
        model = open_model(net, torch.nn.MSELoss(), (x, y))
        return float(learning_rate.sharpness(Subject(model, read_optimizer(optimizer), 0, np.inf)).values[0])

    decayed = torch.optim.SGD(weights, lr=0.1, weight_decay=0.3)
    assert sharpness(decayed) == pytest.approx(np.linalg.eigvalsh(plain)[-1] + 0.3, rel=1e-3)
    groups = torch.optim.SGD([{"params": [net.weight]}, {"params": [net.bias], "lr": 0.4}], lr=0.1)
    scale = np.diag([0.25] * 6 + [1.0]) ** 0.5
    assert sharpness(groups) == pytest.approx(np.linalg.eigvalsh(scale @ plain @ scale)[-1], rel=1e-3)
    alone = torch.optim.SGD([net.weight], lr=0.1)
    assert sharpness(alone) == pytest.approx(np.linalg.eigvalsh(plain[:6, :6])[-1], rel=1e-3)


def trained(net, data, optimizer, steps):
    values = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(net(torch.tensor(data[0])), torch.tensor(data[1]))
        value.backward()
        optimizer.step()
        values.append(float(value.detach()))
    return np.array(values)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gd", "momentum", "adam"])
def test_the_recommended_step_on_digits(name):
    """Full batch: stable at 0.9 times the largest step, unstable at 1.1, at the same point of training."""
    data = digits(200)
    torch.manual_seed(0)
    net = fully_connected((64, 40, 10), "tanh").double()
    data = data[0].astype(float), data[1]

    def optimizer_of(net, step):
        if name == "adam":
            return torch.optim.Adam(net.parameters(), lr=step, eps=1e-3)
        return torch.optim.SGD(net.parameters(), lr=step, momentum=0.9 if name == "momentum" else 0.0)

    # Until the curvature hardly changes from step to step.
    first = optimizer_of(net, 1e-3 if name == "adam" else 0.05)
    trained(net, data, first, 400)
    found = diagnose(net, loss, data, optimizer=first, only=("learning rate",))["step-size"]
    largest = learning_rate.largest_stable_step(read_optimizer(first), float(found.measured.value))
    away = {}
    for factor in (0.9, 1.1):
        copied = fully_connected((64, 40, 10), "tanh").double()
        copied.load_state_dict(net.state_dict())
        again = optimizer_of(copied, factor * largest)
        if name == "adam":
            state = first.state_dict()
            state["param_groups"][0]["lr"] = factor * largest
            again.load_state_dict(state)
            for held in again.state.values():
                held["exp_avg"].zero_()
                held["step"].fill_(1e9)
            # Second moments stand still, as the bound says.
            again.param_groups[0]["betas"] = (0.9, 1 - 1e-12)
        away[factor] = growth(copied, data, again)
    assert away[0.9] < 1, away
    assert away[1.1] > 10, away


def growth(net, data, optimizer):
    """By how much a small displacement in a random direction grows in 60 steps."""
    other = copy.deepcopy(net)
    state = copy.deepcopy(optimizer.state_dict())
    mate = type(optimizer)(other.parameters(), lr=1.0)
    mate.load_state_dict(state)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for value in other.parameters():
            value += 1e-9 * torch.randn(value.shape, generator=generator, dtype=value.dtype)

    def gap():
        pairs = zip(net.parameters(), other.parameters(), strict=True)
        return float(sum(((a - b) ** 2).sum() for a, b in pairs)) ** 0.5

    start = gap()
    trained(net, data, optimizer, 60)
    trained(other, data, mate, 60)
    return gap() / start
