"""Idle and saturated units beside what Gaussian units of independent weights have, and the integrals behind that."""

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from scipy.special import erfc

from deeplimits import diagnose
from deeplimits.diagnosis import units
from deeplimits.diagnosis.subject import Subject
from deeplimits.measure.adapters import open_model
from specimens import convolutional, digits, fully_connected, loss, residual


@pytest.mark.parametrize(("n", "rho"), [(2, -0.4), (5, 0.3), (64, 0.5), (64, 0.95), (64, 0.0)])
def test_orthants_of_equal_correlations(n, rho):
    def inside(z):
        return stats.norm.pdf(z) * stats.norm.cdf(np.sqrt(rho / (1 - rho)) * z) ** n

    exact = 0.25 + np.arcsin(rho) / (2 * np.pi) if n == 2 else integrate.quad(inside, -10, 10)[0]
    found = units.orthant(3.0 * ((1 - rho) * np.eye(n) + rho * np.ones((n, n))))
    assert abs(found.value - exact) < 5 * found.error + 1e-9 * exact
    assert found.error < 0.05 * exact
    if rho == 0.5:
        assert exact == pytest.approx(1 / (n + 1))


def test_orthants_of_equal_samples_and_of_a_line():
    assert float(units.orthant(np.ones((30, 30))).value) == pytest.approx(0.5, abs=1e-3)
    # Points x and −x have never the same sign.
    assert float(units.orthant(np.array([[1.0, -1.0], [-1.0, 1.0]])).value) < 1e-3


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "erf"])
def test_flat_shares_are_those_of_the_tail(name):
    edge = {
        "tanh": np.arccosh(10.0),  # 1/cosh² = 0.01
        "sigmoid": 2 * np.arccosh(10.0),
        "erf": None,
    }[name]
    variances = np.array([0.5, 2.0, 20.0])
    found = units.flat_share(name, variances)
    if edge is None:
        from deeplimits.models.activations import activation

        u = np.linspace(0, 8, 100001)
        slope = np.asarray(activation(name).derivative(u))
        edge = u[np.argmax(slope < 0.01 * slope[0])]
    exact = np.mean(erfc(edge / np.sqrt(2 * variances)))
    assert found == pytest.approx(exact, abs=3e-5)


def shares(kind, seed, wrong=0.0):
    """(measured − expected)/error in the last hidden layer, weights taken to have other biases where that is wrong."""
    torch.manual_seed(seed)
    if kind == "idle":
        net = fully_connected((64, *[120] * 4, 10))
    elif kind == "residual":
        net = residual(120, 3, True)
    else:
        net = fully_connected((64, *[120] * 3, 10), "tanh", (9.0, 0.1))
    subject = Subject(open_model(net, loss, digits(64)), None, 0, np.inf)
    if wrong:
        off = [one._replace(bias_variance=one.bias_variance + wrong) for one in subject.signals.layers]
        subject.__dict__["signals"] = subject.signals._replace(layers=tuple(off))
        read = subject.architecture
        changed = [
            one._replace(constants={**one.constants, "bias_variance": one.constants["bias_variance"] + wrong})
            if one.kind == "affine"
            else one
            for one in read.operations
        ]
        subject.__dict__["architecture"] = read._replace(operations=tuple(changed))
    some = [one for one in subject.signals.layers if one.after is not None]
    last, idle = some[-1], kind != "saturated"
    lines = units.expected_idle(subject, some, last) if idle else units.expected_saturated(subject, some)
    line = lines[last.name]
    return ((last.idle if idle else last.saturated) - line.value) / line.error


@pytest.mark.parametrize("kind", ["idle", "residual", "saturated"])
def test_measured_shares_are_the_expected_ones(kind):
    z = np.array([shares(kind, seed) for seed in range(6)])
    assert np.sum(z**2) < 28, z  # χ² with six degrees of freedom exceeds it with probability 1e-4
    off = np.array([shares(kind, seed, 30.0 if kind == "saturated" else 3.0) for seed in range(6)])
    assert np.sum(off**2) > 28, off


def test_findings_have_both_values_or_say_why_not():
    torch.manual_seed(0)
    found = diagnose(fully_connected((64, 60, 60, 60, 10)), loss, digits(), only=("initialization",))["idle-units"]
    assert found.severity == "fine"
    assert 0 < found.theory < 0.3
    assert found.measured.error is not None
    assert "theory expects" in found.sentence
    assert len(found.picture.marks) == 3
    images = diagnose(convolutional(9, 2), loss, digits(), only=("initialization",))["idle-units"]
    assert images.theory is None
    assert "theory has no line here" in images.sentence
    wild = fully_connected((64, 60, 60, 10), "tanh", (60.0, 0.0))
    flat = diagnose(wild, loss, digits(), only=("initialization",))["saturated-units"]
    assert flat.severity in ("warning", "critical")
    assert flat.theory == pytest.approx(flat.measured.value, abs=0.1)
    assert "No gradient goes through them" in flat.sentence
