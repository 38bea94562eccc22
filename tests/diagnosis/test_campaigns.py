"""False alarms on networks that are well initialized, faults that must be named first: a sample, and all of them."""

import numpy as np
import pytest
import torch

from deeplimits import diagnose
from specimens import FAULTS, broken, convolutional_residual, digits, fully_connected, healthy, loss, named_first

QUICK = ("data", "initialization", "weights", "learning rate")
"""The parts that can raise more than a note."""


@pytest.mark.parametrize("seed", [3, 7])
def test_well_initialized_networks_raise_no_alarm(seed):
    one = healthy(seed)
    report = diagnose(one.net, loss, one.data, optimizer=one.optimizer, only=QUICK, budget="1h")
    assert report.worst in ("note", "fine"), report


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_first(fault):
    one = broken(fault, 0)
    report = diagnose(one.net, loss, one.data, optimizer=one.optimizer, only=QUICK, budget="1h")
    assert named_first(one, report), report


@pytest.mark.slow
def test_fifty_well_initialized_networks():
    worst = []
    for seed in range(50):
        one = healthy(seed)
        worst.append(diagnose(one.net, loss, one.data, optimizer=one.optimizer, only=QUICK, budget="1h").worst)
    assert worst.count("critical") == 0
    assert worst.count("warning") <= 3


@pytest.mark.slow
def test_fifty_broken_networks():
    missed = []
    for seed in range(5):
        for fault in FAULTS:
            one = broken(fault, seed)
            report = diagnose(one.net, loss, one.data, optimizer=one.optimizer, only=QUICK, budget="1h")
            if not named_first(one, report):
                missed.append((fault, seed, str(report.findings[0])))
    assert len(missed) <= 2, missed


@pytest.mark.slow
def test_all_parts_of_a_few():
    for seed in range(3):
        one = healthy(seed)
        report = diagnose(one.net, loss, one.data, optimizer=one.optimizer, budget="5m")
        assert report.worst in ("note", "fine"), report
        assert not report.left_out


def trains(net, data, steps=60):
    """The loss after gradient descent at a third of the step that the report recommends."""
    from specimens import largest_step

    descent = torch.optim.SGD(net.parameters(), lr=largest_step(net, data) / 3)
    value = torch.tensor(float("nan"))
    for _ in range(steps):
        descent.zero_grad()
        value = loss(net(torch.tensor(data[0])), torch.tensor(data[1]))
        value.backward()
        descent.step()
    return float(value.detach())


@pytest.mark.slow
def test_the_recommended_initialization_trains_where_the_old_one_did_not():
    torch.manual_seed(0)
    data, widths = digits(), (64, *[60] * 14, 10)
    net = fully_connected(widths, "relu", (0.5, 0.0))
    report = diagnose(net, loss, data, only=("initialization",))
    assert report.worst == "critical"
    factor = float(report["weight-scale"].measured.value) ** -0.5
    old = trains(net, data)
    with torch.no_grad():
        for layer in net:
            if isinstance(layer, torch.nn.Linear):
                torch.nn.init.normal_(layer.weight, std=(0.5 / layer.in_features) ** 0.5 * factor)
                layer.bias.zero_()
    mended = diagnose(net, loss, data, only=("initialization",))
    assert mended.worst in ("fine", "note")
    new = trains(net, data)
    assert old > 0.95 * np.log(10)
    assert new < 0.5 * old, (old, new)


@pytest.mark.slow
def test_a_residual_network_of_a_million_parameters():
    torch.manual_seed(0)
    net = convolutional_residual(90, 7)
    assert 9e5 < sum(value.numel() for value in net.parameters()) < 1.2e6
    x, y = digits(128)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    report = diagnose(net, loss, (x.reshape(-1, 1, 8, 8), y), optimizer=optimizer)
    assert report.worst in ("fine", "note", "warning"), report
    assert {"signal-size", "residual-branches", "architecture"} <= {one.name for one in report.findings}
