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
        exact = float(((change**2).mean().sqrt() / (out**2).mean().sqrt()).detach())
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


def test_adam_of_jax_is_judged_by_its_second_moments():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 6)), rng.normal(size=40)
    second = {"w": rng.uniform(0.5, 2.0, 6) ** 2, "b": np.array(4.0)}

    def model():
        first = {"w": jnp.zeros(6), "b": jnp.zeros(())}
        return open_model(
            lambda p, z: z @ p["w"] + p["b"], lambda z, t: jnp.mean((z - t) ** 2), (x, y), parameters=first
        )

    given = learning_rate.Optimizer("adam", 0.1, 0.9, moments=second)
    found = diagnose(model(), optimizer=given, only=("learning rate",), budget="1h")["step-size"]
    # Leaves of a dictionary go by name: the bias is first.
    rows = np.column_stack([np.ones(40), x]) / (np.concatenate([[4.0], second["w"]]) ** 0.5 + 1e-8) ** 0.5
    assert found.measured.value == pytest.approx(np.linalg.eigvalsh(2 * rows.T @ rows / 40)[-1], rel=1e-3)
    assert "first step" not in found.sentence
    for wrong in ({"w": second["w"]}, {**second, "b": np.array(-1.0)}, {**second, "b": np.zeros(2)}):
        report = diagnose(model(), optimizer=given._replace(moments=wrong), only=("learning rate",), budget="1h")
        assert "moments are" in report.left_out[0]
    with pytest.raises(ParameterError, match="step"):
        read_optimizer(given._replace(step=-1.0))


def trained(net, data, optimizer, steps):
    x, y = (torch.tensor(part) for part in data)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(net(x), y).backward()
        optimizer.step()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ["gd", "momentum", "adam"])
def test_the_recommended_step_on_digits(name, seed):
    """Full batch, near a minimum that a penalty makes sharp: stable at 0.9 times the largest step, unstable at 1.1.

    Away from a minimum large steps change the curvature that they were chosen by: the cross-entropy of a network that
    fits its data has ever less of it.
    """
    data = digits(200)
    data = data[0].astype(float), data[1]
    torch.manual_seed(seed)
    net = fully_connected((64, 16, 10), "tanh").double()
    if name == "adam":
        first = torch.optim.Adam(net.parameters(), lr=5e-3, eps=1e-3, weight_decay=1e-2)
        trained(net, data, first, 800)
        first.param_groups[0]["lr"] = 5e-4
        trained(net, data, first, 300)
    else:
        first = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9, weight_decay=1e-2)
        trained(net, data, first, 1200)
        if name == "gd":
            first = torch.optim.SGD(net.parameters(), lr=0.3, weight_decay=1e-2)
    found = diagnose(net, loss, data, optimizer=first, only=("learning rate",), budget="10m")["step-size"]
    largest = learning_rate.largest_stable_step(read_optimizer(first), float(found.measured.value))
    away = {factor: growth(net, data, first, factor * largest) for factor in (0.9, 1.1)}
    assert away[0.9] < 1, away
    assert away[1.1] > 5, away


def growth(net, data, optimizer, step):
    """By how much a small displacement in a random direction grows in 60 steps of this size."""
    pair = copy.deepcopy(net), copy.deepcopy(net)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for value in pair[1].parameters():
            value += 1e-8 * torch.randn(value.shape, generator=generator, dtype=value.dtype)

    def gap():
        both = zip(*(one.parameters() for one in pair), strict=True)
        return sum(float(((a - b) ** 2).sum().detach()) for a, b in both) ** 0.5

    start = gap()
    for one in pair:
        again = type(optimizer)(one.parameters(), lr=1.0)
        again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        again.param_groups[0]["lr"] = step
        trained(one, data, again, 60)
    return gap() / start
