"""Findings about angles, curvature, noise and the catapult beside what is exactly known; and how all are explained."""

import ast
import copy
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from deeplimits import diagnose, diagnosis, references
from deeplimits.diagnosis import angles, catapult, inputs, meanings, spectrum, stationarity
from deeplimits.diagnosis.findings import SEVERITIES, Finding
from deeplimits.diagnosis.subject import Subject, read_optimizer
from deeplimits.errors import ParameterError
from deeplimits.measure.adapters import open_model
from deeplimits.measure.adapters.signals import layer_signals
from specimens import digits, fully_connected, loss


def angles_of(seed, widths, activation, variances=None, wrong=1.0):
    """(measured − predicted)/error of the mean cosine before the output."""
    torch.manual_seed(seed)
    x, y = digits(64)
    chain = layer_signals(open_model(fully_connected(widths, activation, variances), loss, (x, y))).chain
    chain = tuple(one._replace(bias_variance=one.bias_variance + wrong - 1.0) for one in chain)
    found = angles.angles(chain, x.astype(float))
    assert found is not None
    return float((found.measured[-2] - found.predicted[-2]) / found.error[-2])


@pytest.mark.parametrize(("activation", "variances"), [("relu", None), ("gelu", (1.5, 0.1))])
def test_angles_follow_the_recursion_of_pairs(activation, variances):
    shapes = [(64, 100, 100, 100, 10), (64, *[150] * 6, 10)]
    z = np.array([angles_of(seed, one, activation, variances) for seed in range(4) for one in shapes])
    assert np.sum(z**2) < 32, z  # χ² with eight degrees of freedom exceeds it with probability 1e-4
    wrong = np.array([angles_of(seed, (64, 300, 300, 10), activation, variances, 2.0) for seed in range(4)])
    assert np.sum(wrong**2) > 32, wrong


def least_squares(n=40, p=6, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, p)), rng.normal(size=(n, 1))
    net = torch.nn.Linear(p, 1, bias=False).double()
    return net, x, y


def subject(net, data, optimizer=None, criterion=None):
    model = open_model(net, criterion or torch.nn.MSELoss(), data)
    return Subject(model, read_optimizer(optimizer), 0, np.inf)


def test_the_window_of_the_catapult_is_that_of_the_tangent_kernel():
    net, x, y = least_squares()
    (found,) = catapult.examine(subject(net, (x, y), ("gd", 0.01)))
    top = np.linalg.eigvalsh(x @ x.T)[-1] / len(x)
    # The mean of squares, without a half, has twice the curvature.
    assert found.measured.value == pytest.approx(2 * top, rel=1e-3)
    assert found.theory == pytest.approx(2 / (2 * top), rel=1e-3)
    assert f"{top:.3g}" in found.sentence
    assert "below the window" in found.sentence


def test_shares_of_the_spectrum_are_those_of_the_eigenvalues():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(5, 12), torch.nn.Tanh(), torch.nn.Linear(12, 3)).double()
    x = np.random.default_rng(0).normal(size=(50, 5))
    one = subject(net, (x, np.arange(50) % 3), criterion=loss)
    (found,) = spectrum.examine(one)
    values = np.linalg.eigvalsh(np.array([one.model.hessian_product(row) for row in np.eye(one.model.size)]))
    flat = np.mean(np.abs(values) < 0.01 * np.abs(values).max())
    # A point of a quadrature stands for several eigenvalues near it.
    assert abs(float(found.measured.value) - flat) < 5 * float(found.measured.error) + 0.05
    assert found.picture is not None


def test_training_that_falls_and_training_that_stands_still():
    net, x, y = least_squares(80, 4)
    rows = [(x[i : i + 8], y[i : i + 8]) for i in range(0, 80, 8)]
    with torch.no_grad():
        net.weight.copy_(torch.tensor(np.linalg.lstsq(x, y)[0].T + 3.0))
    (falling,) = stationarity.examine(subject(net, rows, ("gd", 0.005)))
    assert "still falls" in falling.sentence
    # At the minimum noise alone moves the weights, until both sides are equal: long after 1/(step × curvature) steps.
    start = torch.tensor(np.linalg.lstsq(x, y)[0].T)
    rng = np.random.default_rng(1)
    for _ in range(200):
        take = rng.choice(80, 8, replace=False)
        a, b = torch.tensor(x[take]), torch.tensor(y[take])
        start = start - 0.1 * 2 / 8 * ((start @ a.T - b.T) @ a)
    with torch.no_grad():
        net.weight.copy_(start)
    (still,) = stationarity.examine(subject(net, rows, ("gd", 0.1)))
    assert "stands still" in still.sentence, still
    assert list(stationarity.examine(subject(net, rows, ("adam", 0.1)))) == []


def test_every_finding_is_explained():
    assert set(SEVERITIES) == {"critical", "warning", "note", "fine"}
    for name, meaning in meanings.MEANINGS.items():
        assert meaning.title, name
        assert meaning.what.endswith("."), name
    found = Finding("signal-size", "initialization", "fine", "all is well.")
    assert found.title == "The size of signals through the depth"
    assert found.caption == ""  # without a picture there is nothing to read
    assert Finding("my-own", "x", "note", "y").title == "My own"


PLACES = ("name", "room", "severity", "sentence", "action", "measured", "what", "theory", "assumptions", "references")


def written():
    """Every place in the diagnosis that makes a finding: its file and line, its name, and what it gives."""
    for path in sorted(Path(diagnosis.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding":
                given = dict(zip(PLACES, node.args, strict=False))
                given |= {one.arg: one.value for one in node.keywords}
                yield f"{path.name}:{node.lineno}", given


def keys_in(node):
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def test_every_kind_of_finding_has_a_reference_an_action_and_assumptions():
    names = set()
    for place, given in written():
        name = given["name"]
        names |= {name.value} if isinstance(name, ast.Constant) else {"idle-units", "saturated-units"}
        cited = keys_in(given["references"]) - {"Linear", "sum", "idle"} if "references" in given else set()
        assert cited, f"{place} makes a finding without a reference"
        assert cited <= set(references.entries()), place
        theory = given.get("theory")
        if theory is not None and not (isinstance(theory, ast.Constant) and theory.value is None):
            assert "assumptions" in given, f"{place} gives a value of theory without what it rests on"
        severity = given["severity"]
        if not keys_in(severity) or keys_in(severity) & {"critical", "warning"}:
            assert "action" in given, f"{place} may be urgent and says nothing of what to do"
    assert names == set(meanings.MEANINGS)


def complete(report):
    """Whatever a finding of a report lacks."""
    for one in report.findings:
        yield from (f"{one.name}: no reference" for _ in "1" if not one.references)
        yield from (f"{one.name}: {key} is not in the bibliography" for key in one.references if key not in KEYS)
        if one.severity in ("critical", "warning") and not one.action:
            yield f"{one.name}: no action"
        if one.theory is not None and not (one.assumptions and one.theory_what and one.measured is not None):
            yield f"{one.name}: theory without assumptions, or without a measurement"
        if one.name not in meanings.MEANINGS or not one.room or not one.sentence.endswith("."):
            yield f"{one.name}: not explained"
    assert report.cite().count("@") == len({key for one in report.findings for key in one.references})


def test_the_error_of_the_effective_dimension_is_its_scatter():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(30):
        rows = rng.normal(size=(200, 12)) * np.arange(1, 13) ** -0.5
        one = inputs._spectrum(rows).measured
        found.append((one.value, one.error))
    values, errors = np.array(found).T
    assert 0.6 < errors.mean() / values.std(ddof=1) < 1.6


KEYS = set(references.entries())


def test_faults_of_data_and_weights_are_complete_findings():
    x, y = digits(120)
    crowded = np.concatenate([x, x[:60], x[:1]]), np.concatenate([y, y[:60], (y[:1] + 1) % 10])
    torch.manual_seed(0)
    net = fully_connected((64, 30, 10))
    quick = ("data", "initialization", "weights")
    same = diagnose(net, loss, (np.ones((40, 64), "float32"), np.arange(40) % 10), only=quick)
    zero, nan, rare = (copy.deepcopy(net) for _ in range(3))
    with torch.no_grad():
        zero[2].weight.zero_()
        nan[0].weight[0, 0] = float("nan")
    few = np.maximum(np.arange(120) - 110, 0)
    reports = [
        diagnose(net, loss, crowded, only=quick), same, diagnose(zero, loss, (x, y), only=quick),
        diagnose(nan, loss, (x, y), only=quick), diagnose(rare, loss, (x, few), only=quick),
    ]  # fmt: skip
    assert not [said for report in reports for said in complete(report)]
    names = {one.name: one.severity for report in reports[::-1] for one in report.findings}
    for name in ("contradictions", "repeats", "balance", "inputs", "zero-weights", "broken-parameters"):
        assert name in names
    assert reports[0]["repeats"].severity == "warning"
    assert same["inputs"].severity == "critical"
    assert reports[4]["balance"].severity == "warning"
    assert "northcutt2021" in reports[0].cite()


def test_all_findings_of_a_report_are_explained_and_the_page_of_the_docs_has_them():
    torch.manual_seed(0)
    net = fully_connected((64, 30, 30, 30, 10))
    report = diagnose(net, loss, digits(), optimizer=("gd", 0.05), budget="10m")
    assert not report.left_out
    assert not list(complete(report))
    assert {one.name for one in report.findings} <= set(meanings.MEANINGS)
    text = str(report)
    assert all(len(line) <= 120 for line in text.splitlines())
    assert len(text.splitlines()) <= 45
    assert all(one.name in text for one in report.findings)
    page = report.to_html()
    for one in report.findings:
        assert f"id='{one.name}'" in page
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r"(src|href)=.http|url\(.?http|<script|<link", page)  # it stands by itself
    docs = (Path(__file__).parents[2] / "docs/rooms/reading_a_report.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in docs for name in meanings.MEANINGS)


def test_memory_and_progress(capsys):
    net, x, y = least_squares()
    criterion = torch.nn.MSELoss()
    report = diagnose(net, criterion, (x, y), memory=100.0, only=("learning rate", "data"), progress=True)
    assert "learning rate: would hold about" in report.left_out[-1]
    assert "diagnosis" in capsys.readouterr().err
    costs = diagnose(net, criterion, (x, y), dry_run=True, memory="2GB")
    assert all(" s and " in said for said in costs.left_out)
    with pytest.raises(ParameterError, match="'500MB', '2GB'"):
        diagnose(net, criterion, (x, y), memory="much")


class Interrupting:
    """A loss that is interrupted in the middle."""

    def __init__(self, after):
        self.after = after

    def __call__(self, z, y):
        self.after -= 1
        if self.after == 0:
            raise KeyboardInterrupt
        return torch.nn.functional.cross_entropy(z, y)


@pytest.mark.parametrize("after", [2, 6])
def test_an_interrupted_diagnosis_leaves_the_network_as_it_was(after):
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(64, 20), torch.nn.BatchNorm1d(20), torch.nn.ReLU(), torch.nn.Linear(20, 10)
    )
    before, state = copy.deepcopy(net.state_dict()), torch.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        diagnose(net, Interrupting(after), digits(), optimizer=("gd", 0.1))
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())
    assert net.training
    assert all(value.grad is None for value in net.parameters())
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in net.modules())
    net(torch.tensor(digits(8)[0])).sum().backward()  # and it can be used


def late(z, y):
    if len(z) < 50:
        raise RuntimeError("the last batch is short")
    return torch.nn.functional.cross_entropy(z, y)


def test_bad_input_is_said_and_the_rest_is_still_made():
    x, y = digits(120)
    net = fully_connected((64, 20, 10))
    quick = ("data", "initialization", "weights")
    cases = [
        ((net, loss, []), "empty"),
        ((net, loss, iter([])), "empty|iterator"),
        ((net, lambda z, t: z, (x, y)), "loss"),
        ((net, lambda z, t: float("nan") * z.sum(), (x, y)), "finite|NaN|nan"),
        ((torch.nn.Linear(64, 10, dtype=torch.complex64), loss, (x, y)), "complex"),
        ((net, loss, (x.astype(complex), y)), "complex|failed"),
        ((fully_connected((63, 20, 10)), loss, (x, y)), "failed on the first batch"),
    ]
    for given, words in cases:
        report = diagnose(*given, only=quick)
        first = report.findings[0]
        assert first.severity == "critical", (words, report)
        assert any(word in str(report) for word in words.split("|")), (words, report)
        assert "Traceback" not in str(report)
    # No class has a sample of the label 9: classes are left aside, everything else is looked at.
    kept = y != 9
    some = diagnose(net, loss, (x[kept], y[kept]), only=(*quick, "representations", "linear probe"))
    names = {one.name for one in some.findings}
    assert "spectra-of-weights" in names
    assert "architecture" in names
    # A loss that fails in the middle of the data.
    batches = [(x[:60], y[:60]), (x[60:110], y[60:110]), (x[110:], y[110:])]
    broken = diagnose(net, late, batches, only=(*quick, "learning rate"))
    assert "the last batch is short" in " ".join(str(broken).split())  # however narrow the terminal
    assert any(one.name == "spectra-of-weights" for one in broken.findings)
