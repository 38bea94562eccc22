"""Diagnoses of networks whose state is known: what must be found, what must not be, and that nothing is touched."""

import json

import numpy as np
import pytest
import torch

from deeplimits import diagnose
from deeplimits.diagnosis import changes, gradient_noise, initialization, largest_stable_step, weights
from deeplimits.diagnosis.running import PARTS, budget_of
from deeplimits.diagnosis.subject import Optimizer, Subject, read_optimizer
from deeplimits.errors import ParameterError
from deeplimits.measure.adapters import open_model
from deeplimits.measure.adapters.signals import layer_signals
from specimens import ACTIVATIONS, digits, fully_connected, loss


def network(widths, activation="relu", variances=None, seed=0):
    """A fully connected network with Gaussian weights of variance C_w/fan-in and biases of variance C_b."""
    torch.manual_seed(seed)
    return fully_connected(widths, activation, variances)


def standardized(widths, activation, variances, theory=None, seed=0):
    """(log measured − log predicted)/error in the last hidden layer."""
    net = network(widths, activation, variances, seed)
    chain = layer_signals(open_model(net, loss, digits(64))).chain
    if theory is not None:
        chain = tuple(one._replace(weight_variance=theory * one.weight_variance) for one in chain)
    path = initialization.predicted_path(chain)
    return float(np.log(path.measured[-2] / path.predicted[-2]) / path.error[-2])


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_signals_of_fresh_networks_follow_the_recursion(activation):
    shapes = [(64, 100, 100, 10), (64, 40, 80, 60, 60, 10), (64, *[120] * 8, 10)]
    z = np.array([standardized(one, activation, None, seed=s) for s in range(4) for one in shapes])
    # The error bars are those of one input, so the scores scatter by at most one: a χ² with twelve degrees of freedom.
    assert np.sum(z**2) < 39, z  # exceeded with probability 1e-4
    wrong = np.array([standardized(one, activation, None, 1.5, seed=s) for s in range(4) for one in shapes])
    assert np.sum(wrong**2) > 39, wrong


def test_layers_are_read_off_the_numbers():
    class Functional(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.three = torch.nn.Linear(64, 30), torch.nn.Linear(30, 30), torch.nn.Linear(30, 10)

        def forward(self, x):
            h = torch.tanh(self.one(x))
            h = h + torch.relu(self.two(h))
            return self.three(h)

    found = layer_signals(open_model(Functional(), loss, digits(64)))
    assert [one.before for one in found.layers] == ["data", "tanh", None]
    assert [one.name for one in found.chain] == ["one", "two"]


def test_convolutions_with_padding_are_measured_as_independent_weights():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 200, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(200, 200, 3, padding=1),
        torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(200 * 64, 10),
    )  # fmt: skip
    x, y = digits(40)
    found = layer_signals(open_model(net, loss, (x.reshape(-1, 1, 8, 8), y)))
    assert [one.before for one in found.layers] == ["data", "relu", "relu"]
    for one in found.layers[:2]:
        assert abs(one.ratio.value - 1) < 5 * one.ratio.error


@pytest.mark.parametrize(("name", "momentum"), [("gd", 0.0), ("momentum", 0.9), ("nesterov", 0.9)])
def test_the_largest_stable_step_separates_convergence_from_divergence(name, momentum):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(40, 6)), random.normal(size=40)
    net = torch.nn.Linear(6, 1).double()
    squared = torch.nn.MSELoss()
    report = diagnose(net, squared, (x, y[:, None]), optimizer=(name, 0.01), only=("learning rate",), budget="1h")
    sharpness = report["step-size"].measured.value
    # The Hessian with its bias, by hand.
    rows = np.column_stack([x, np.ones(40)])
    assert np.isclose(sharpness, np.linalg.eigvalsh(2 * rows.T @ rows / 40)[-1], rtol=1e-3)
    largest = largest_stable_step(Optimizer(name, 1.0, momentum), sharpness)
    ends = {}
    for factor in (0.97, 1.03):
        copied = torch.nn.Linear(6, 1).double()
        copied.load_state_dict(net.state_dict())
        options = {} if name == "gd" else {"momentum": momentum, "nesterov": name == "nesterov"}
        descent = torch.optim.SGD(copied.parameters(), lr=factor * largest, **options)
        for _ in range(600):
            descent.zero_grad()
            value = squared(copied(torch.tensor(x)), torch.tensor(y[:, None]))
            value.backward()
            descent.step()
        ends[factor] = value.item()
    best = np.mean((y - rows @ np.linalg.lstsq(rows, y)[0]) ** 2)
    assert ends[0.97] < 1.01 * best
    assert ends[1.03] > 10 * best


def test_decay_of_weights_lowers_the_largest_step():
    plain = largest_stable_step(Optimizer("adam", 1.0, 0.9), 10.0)
    decayed = largest_stable_step(Optimizer("adam", 1.0, 0.9, decay=0.5), 10.0)
    assert np.isclose(plain, 2 * (1 + 0.9) / ((1 - 0.9) * 10.0))
    # θ ← (1 − ηd)θ − ηm: on the unit circle at −1 where η(d + λ(1 − β)/(1 + β)) = 2
    assert np.isclose(decayed, 2 / (0.5 + 10.0 * 0.1 / 1.9))


def test_the_noise_scale_of_least_squares():
    random = np.random.default_rng(1)
    x, y = random.normal(size=(400, 5)), random.normal(size=(400, 1)) + 1.0
    net = torch.nn.Linear(5, 1).double()
    model = open_model(net, torch.nn.MSELoss(), (x, y))
    rows = np.column_stack([x, np.ones(400)]) * 2 * (net(torch.tensor(x)).detach().numpy() - y)
    mean = rows.mean(axis=0)
    trace = np.sum(rows.var(axis=0, ddof=1))
    exact = trace / (mean @ mean - trace / 400)
    found = next(gradient_noise.examine(Subject(model, None, 0, np.inf)))
    # Blocks give tr Σ with 19 times 6 degrees of freedom in place of all samples.
    assert abs(found.measured.value - exact) < 4 * found.measured.error


def test_singular_values_that_stand_out():
    random = np.random.default_rng(2)
    alarms = sum(weights._spikes(random.normal(size=(40, 60)), 0.05)[0] > 0 for _ in range(200))
    assert alarms <= 23  # 5 % of 200; more with probability 1e-4
    u, v = random.normal(size=40), random.normal(size=60)
    planted = random.normal(size=(40, 60)) + 12.0 * np.outer(u, v) / np.linalg.norm(u) / np.linalg.norm(v) * np.sqrt(2)
    assert weights._spikes(planted, 0.01)[0] == 1


@pytest.mark.parametrize("seed", [2, 3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 1))])
def test_well_initialized_networks_are_not_called_critical(seed):
    random = np.random.default_rng(seed)
    activation = random.choice(list(ACTIVATIONS))
    widths = (64, *[int(random.integers(40, 120))] * int(random.integers(1, 12)), 10)
    net = network(widths, activation, seed=seed)
    report = diagnose(net, loss, digits(), only=("data", "initialization", "weights"))
    assert report.worst in ("note", "fine", "warning")
    assert all(one.severity == "fine" for one in report.findings if one.name in ("signal-size", "gradient-size"))


def test_broken_networks_are():
    shrinking = diagnose(network((64, *[60] * 20, 10), "relu", (0.8, 0.0)), loss, digits(), only=("initialization",))
    assert shrinking.worst == "critical"
    assert shrinking.findings[0].name == "signal-size"
    assert "variance 2/fan-in" in shrinking.findings[0].action
    dead = network((64, 60, 60, 10))
    with torch.no_grad():
        dead[2].bias -= 100.0
    found = diagnose(dead, loss, digits(), only=("initialization",))
    assert found["idle-units"].severity == "critical"
    assert "layer 2" in found["idle-units"].sentence
    with torch.no_grad():
        dead[2].weight.zero_()
    assert diagnose(dead, loss, digits(), only=("weights",)).findings[0].name == "zero-weights"


def test_a_step_that_is_too_large_is_critical_and_the_recommended_one_is_fine():
    net, data = network((64, 50, 10)), digits()
    report = diagnose(
        net, loss, data, optimizer=torch.optim.SGD(net.parameters(), lr=100.0), only=("learning rate",), budget="1h"
    )
    assert report.findings[0].severity == "critical"
    largest = largest_stable_step(Optimizer("gd", 1.0), report.findings[0].measured.value)
    again = diagnose(net, loss, data, optimizer=("gd", 0.8 * largest), only=("learning rate",), budget="1h")
    assert again.worst == "fine"
    assert "step-size: critical → fine" in str(changes(report, again)[0])


def test_the_users_network_is_untouched():
    net, data = network((64, 30, 10)).train(), digits()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    state = torch.get_rng_state()
    diagnose(net, loss, data, optimizer=("gd", 0.1), budget="20s")
    assert torch.equal(state, torch.get_rng_state())
    assert net.training
    assert all(value.grad is None for value in net.parameters())
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def without_seconds(report):
    """Everything a report says, but for how long it took."""
    document = report.to_json()
    for one in (document, *document["findings"]):
        one.pop("seconds")
    document["summary"] = document["summary"].split("(")[0]
    return json.dumps(document, sort_keys=True)


def test_a_diagnosis_is_made_again_by_its_seed():
    random = np.random.default_rng(3)
    data = random.normal(size=(60, 6)).astype("float32"), np.arange(60) % 3
    net = network((6, 10, 9, 3))

    def made(seed):
        return diagnose(net, loss, data, optimizer=("momentum", 0.05), seed=seed, budget="1h")

    first, again, other = (without_seconds(made(seed)) for seed in (5, 5, 6))
    assert first == again
    first, other = ({one["name"]: one for one in json.loads(said)["findings"]} for said in (first, other))
    assert first.keys() == other.keys()
    # Blocks of samples, batches, probes and directions are drawn from the seed; the network's own numbers are not.
    for name in ("noise-scale", "stationarity", "hessian-spectrum", "kernel-alignment", "regime"):
        assert first[name]["measured"] != other[name]["measured"], name
    for name in ("signal-size", "inputs", "spectra-of-weights", "linear-probe"):
        assert first[name] == other[name], name


def test_what_cannot_be_measured_is_said_and_the_rest_is_still_made():
    net, (x, y) = network((64, 30, 10)), digits()
    with torch.no_grad():
        net[0].weight[3, 5] = float("nan")
    report = diagnose(net, loss, (x, y))
    assert report.findings[0].sentence == "1 of the 1,920 entries of 0.weight are NaN or infinite."
    assert "0.weight" in report["cannot-be-measured"].sentence
    assert report["balance"].measured is not None  # the data are looked at all the same
    assert report["spectra-of-weights"].measured is not None
    whole = diagnose(network((64, 30, 10)), lambda z, t: z[:, :3], (x, y))
    assert "loss" in whole.findings[0].sentence
    sliced = diagnose(network((63, 30, 10)), loss, (x, y))
    assert "failed on the first batch" in sliced.findings[0].sentence
    regression = diagnose(network((64, 30, 1)), torch.nn.MSELoss(), (x, y[:, None].astype("float32")), budget="20s")
    assert "neural-collapse" not in [one.name for one in regression.findings]


def test_bad_arguments():
    net, data = network((64, 30, 10)), digits()
    for options, words in (
        ({"budget": "soon"}, "'30s', '2m', '1h'"),
        ({"budget": -1}, "positive"),
        ({"only": ("luck",)}, "learning rate"),
        ({"optimizer": ("adagrad", 0.1)}, "adam"),
        ({"optimizer": ("gd",)}, r"\(name, step\)"),
        ({"optimizer": 3}, "torch.optim"),
        ({"optimiser": ("gd", 0.1)}, "takes no optimiser; did you mean optimizer"),
        ({"params": 3}, "takes no params; did you mean parameters"),
    ):
        with pytest.raises(ParameterError, match=words):
            diagnose(net, loss, data, **options)
    with pytest.raises(ParameterError, match="loss is a str; it must be a function"):
        diagnose(net, "mse", data)
    # Not the network is at fault here, but the call.
    with pytest.raises(ParameterError, match="needs its parameters; give them, as parameters="):
        diagnose(lambda p, z: z @ p, loss, data)
    with pytest.raises(ParameterError, match="data is missing"):
        diagnose(net, loss)
    assert budget_of("1h") == 3600
    parameters = list(net.parameters())
    assert read_optimizer(torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True)).name == "nesterov"
    assert read_optimizer(torch.optim.AdamW(parameters, lr=0.1, weight_decay=0.2)).decay == 0.2


def test_the_report(tmp_path):
    x, y = digits()
    y[1], x[1] = (y[0] + 1) % 10, x[0]
    report = diagnose(network((64, 30, 10)), loss, (x + 3, y), only=("data", "weights"))
    assert report["inputs"].severity == "warning"
    assert report["contradictions"].measured.value == 2 / 200
    assert [one.rank for one in report.findings] == sorted(one.rank for one in report.findings)
    document = json.loads(json.dumps(report.to_json()))
    assert document["findings"][0]["severity"] == "warning"
    assert len(report.to_frame()) == len(report.findings)
    page = report.to_html(tmp_path / "report.html")
    assert "<svg" in page
    assert "subtract the mean" in page
    report.plot("spectra-of-weights", tmp_path / "weights.png")
    assert (tmp_path / "weights.png").stat().st_size > 1000
    with pytest.raises(ParameterError, match="has no picture"):
        report.plot("contradictions")
    costs = diagnose(network((64, 30, 10)), loss, (x, y), dry_run=True)
    assert not costs.findings
    assert len(costs.left_out) == len(PARTS)


def test_a_jax_function_is_diagnosed_as_far_as_it_can_be_seen():
    import jax
    import jax.numpy as jnp

    x, y = digits(100)
    parameters = {"w": jnp.asarray(np.random.default_rng(0).normal(size=(64, 10)) / 8, jnp.float32)}
    report = diagnose(
        lambda p, z: z @ p["w"],
        lambda z, t: -jax.nn.log_softmax(z)[jnp.arange(len(t)), t],
        (x, y),
        parameters=parameters,
        optimizer=("gd", 0.1),
        only=("initialization", "learning rate"),
    )
    assert report["step-size"].severity in ("fine", "note")
    assert report["output-size"].measured is not None  # the layer is read off the function
    assert "1 affine layer" in report["architecture"].sentence


WITH_JAX = """
import numpy as np
def make(**others):
    x, w = np.random.default_rng(0).normal(size=(60, 10)), np.ones((10, 1)) / 10
    given = {"model": lambda p, z: z @ p["w"], "loss": lambda z, y: ((z - y) ** 2).mean(), "data": (x, x @ w)}
    return {**given, "parameters": {"w": 0 * w}, "optimizer": ("gd", 100.0), **others}
def seeded():
    return make(seed=3)
def odd():
    return make(weights=3)
def less():
    return {"model": 1}
"""


def test_the_command_with_a_jax_function(tmp_path, capsys):
    from deeplimits.cli import main

    path = tmp_path / "with_jax.py"
    path.write_text(WITH_JAX)
    assert main(["diagnose", f"{path}:make", "--only", "learning rate"]) == 2
    assert "critical  step-size" in capsys.readouterr().out
    for name, words in (
        ("seeded", "as --seed"),
        ("odd", "takes no weights"),
        ("less", "without 'loss'"),
    ):
        assert main(["diagnose", f"{path}:{name}"]) == 1
        assert words in capsys.readouterr().err


SCRIPT = """
import numpy as np, torch
def make():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(10, 40), torch.nn.ReLU(), torch.nn.Linear(40, 3))
    x = np.random.default_rng(0).normal(size=(60, 10)).astype("float32")
    return net, torch.nn.CrossEntropyLoss(), (x, np.arange(60) % 3), torch.optim.SGD(net.parameters(), lr=LR)
def wrong():
    return 3
def broken():
    raise RuntimeError("no data here")
"""


def test_the_command(tmp_path, capsys):
    from deeplimits.cli import main

    for name, lr, code in (("gentle", 0.1, 0), ("wild", 500.0, 2)):
        path = tmp_path / f"{name}.py"
        path.write_text(SCRIPT.replace("LR", str(lr)))
        page = tmp_path / f"{name}.html"
        assert main(["diagnose", f"{path}:make", "--only", "learning rate", "data", "--html", str(page)]) == code
        assert "step-size" in capsys.readouterr().out
        assert "<svg" in page.read_text()
    assert main(["diagnose", f"{path}:make", "--dry-run", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["left_out"]) == len(PARTS)
    # Data from elsewhere: a file of arrays, or a name.
    path.write_text(SCRIPT.replace("LR", "0.1") + "def pair():\n    return make()[:2]\n")
    given = np.random.default_rng(1).normal(size=(30, 10)).astype("float32"), np.arange(30) % 3
    np.savez(tmp_path / "data.npz", y=given[1], x=given[0])
    (tmp_path / "samples.py").write_text("def make():\n    import wild\n    return wild.make()[2]\n")
    for where, count in ((tmp_path / "data.npz", 30), (f"{tmp_path}/samples.py:make", 60)):
        assert main(["diagnose", f"{path}:pair", "--data", str(where), "--only", "data"]) == 0
        assert f"{count} samples of 10 features" in " ".join(capsys.readouterr().out.split())
    np.savez(tmp_path / "one.npz", given[0])
    for where, words in (
        ("one.npz", "two arrays, inputs and targets"),
        ("none.npz", "there is no file"),
        ("samples.py:no", "has no function 'no'"),
    ):
        assert main(["diagnose", f"{path}:pair", "--data", f"{tmp_path}/{where}"]) == 1
        assert words in capsys.readouterr().err
    for place, words in (
        (f"{path}:pair", "it must return"),
        (f"{path}:nothing", "has no function 'nothing'"),
        (f"{path}:wrong", "returned a int; it must return"),
        (f"{path}:broken", "no data here"),
        (f"{tmp_path}/no.py:make", "there is no file"),
        ("no_such_module:make", "cannot be imported"),
        ("make", "as my_model.py:make"),
    ):
        assert main(["diagnose", place]) == 1
        assert words in capsys.readouterr().err
