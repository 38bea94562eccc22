"""Networks read off one pass, and the line of wide layers along them: residual, convolutional, attentive."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from deeplimits import diagnose
from deeplimits.diagnosis.backward import expected_slopes, scatter, shared_out
from deeplimits.diagnosis.blocks import stream
from deeplimits.diagnosis.initialization import log_scatter
from deeplimits.diagnosis.propagation import expected
from deeplimits.measure.adapters import open_model
from deeplimits.measure.adapters.architecture import Architecture, architecture, multiplier
from deeplimits.measure.adapters.signals import layer_signals
from specimens import LABELS, TOKENS, Sequences, convolutional, digits, fully_connected, loss, residual


def read(net, data, **options) -> Architecture:
    return architecture(open_model(net, loss, data, **options))


def scores(found: Architecture, wrong=1.0):
    """(log measured − log predicted)/error of residual sums and affine layers that the law reaches."""
    if wrong != 1:
        scaled = [
            one._replace(constants={**one.constants, "weight_variance": wrong * one.constants["weight_variance"]})
            if one.kind == "affine"
            else one
            for one in found.operations
        ]
        lines = expected(found._replace(operations=tuple(scaled)))
    else:
        lines = expected(found)
    kept = [(o, e) for o, e in zip(found.operations, lines, strict=True) if o.kind in ("affine", "sum")]
    return np.array([np.log(o.moment.mean() / e.mean) / np.sqrt(e.spread) for o, e in kept if not e.restarted])


def drawn(kind, seed):
    torch.manual_seed(seed)
    if kind == "attention":
        return read(Sequences(64), (TOKENS, LABELS))
    return read(residual(100, 4, kind == "normalized") if kind != "convolutional" else convolutional(30, 3), digits(64))


@pytest.mark.parametrize("kind", ["residual", "normalized", "convolutional", "attention"])
def test_measured_signals_follow_the_line(kind):
    found = [drawn(kind, seed) for seed in range(3)]
    # One number for each network, so that the scores of one do not have to be independent: its largest.
    assert max(np.abs(scores(one)).max() for one in found) < 4.5, [scores(one) for one in found]
    assert max(np.abs(scores(one, 1.5)).max() for one in found) > 4.5, [scores(one, 1.5) for one in found]


def gradients(kind, seed, wrong=1.0):
    """Squared gradient at the beginning of the stream over that at its end: measured, over the line."""
    torch.manual_seed(seed)
    net = residual(120, 4, kind == "normalized") if kind != "convolutional" else convolutional(60, 4)
    found = read(net, digits(64))
    scaled = [
        one._replace(constants={**one.constants, "weight_variance": wrong * one.constants["weight_variance"]})
        if one.kind == "affine"
        else one
        for one in found.operations
    ]
    lines = expected(found)
    places = stream(found)
    line = expected_slopes(found._replace(operations=tuple(scaled)), lines)
    return places[0].slope / places[-1].slope * line[places[-1].place] / line[places[0].place]


@pytest.mark.parametrize("kind", ["residual", "normalized", "convolutional"])
def test_measured_gradients_follow_the_line(kind):
    ratios = np.array([gradients(kind, seed) for seed in range(8)])
    # Finite widths bend the mean by their order; that the forward pass knows the weights, too.
    assert abs(ratios.mean() - 1) < 4 * ratios.std(ddof=1) / 8**0.5 + 0.05, ratios
    off = np.array([gradients(kind, seed, 1.5) for seed in range(8)])
    assert abs(off.mean() - 1) > 4 * off.std(ddof=1) / 8**0.5 + 0.05, off
    # How far they scatter is stated for one sample; the mean over 64 scatters less.
    torch.manual_seed(0)
    found = read(
        residual(120, 4, kind == "normalized") if kind != "convolutional" else convolutional(60, 4), digits(64)
    )
    places, lines = stream(found), expected(found)
    stated = scatter(found, lines, expected_slopes(found, lines), places[0], places[-1]) ** 0.5
    assert 0.1 * stated < np.log(ratios).std(ddof=1) < 1.8 * stated, (ratios, stated)


def test_the_scatter_of_gradients_is_that_of_a_chain():
    torch.manual_seed(0)
    net = fully_connected((64, 50, 70, 40, 10))
    found = read(net, digits(64))
    lines = expected(found)
    first, _, last = found.of("affine")[:-1]
    stated = scatter(found, lines, expected_slopes(found, lines), first, last)
    # From what enters the second hidden layer's activation back: two layers of ReLU, 5/n each.
    assert stated == pytest.approx(5 / 50 + 5 / 70, rel=1e-6)
    chain = layer_signals(open_model(net, loss, digits(64))).chain
    assert stated == pytest.approx(log_scatter(chain), rel=1e-6)


@pytest.mark.parametrize(("pool", "share"), [(torch.nn.AvgPool2d(2), 1 / 16), (torch.nn.MaxPool2d(2), 1.0)])
def test_gradients_shared_out_by_a_pooling_are_no_fault(pool, share):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 5, 1), pool, pool, torch.nn.Flatten(), torch.nn.Linear(20, 10))
    x, y = digits(40)
    found = read(net, (x.reshape(-1, 1, 8, 8), y))
    first, last = found.of("affine")
    assert shared_out(found, first, last) == pytest.approx(share)
    line = expected_slopes(found, expected(found))[first.place]
    entering = last.slope * float((net[4].weight.detach() ** 2).mean()) * 20
    assert line == pytest.approx(entering * share, rel=1e-6)


def test_a_well_started_network_with_a_mean_over_positions_raises_no_alarm():
    torch.manual_seed(0)
    report = diagnose(convolutional(9, 1), loss, digits(), only=("initialization",))
    assert report.worst in ("note", "fine"), report
    deep = torch.nn.Sequential(*[
        part
        for before in (1, *[12] * 4)
        for part in (torch.nn.Conv2d(before, 12, 3, padding=1), torch.nn.ReLU(), torch.nn.AvgPool2d(2))
    ], torch.nn.Flatten(), torch.nn.Linear(12, 10))  # fmt: skip
    for one in deep:
        if isinstance(one, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(one.weight, nonlinearity="relu")
    x = np.random.default_rng(0).normal(size=(40, 1, 32, 32)).astype("float32")
    found = diagnose(deep, loss, (x, LABELS), only=("initialization",))["gradient-size"]
    assert found.measured.value < 0.01  # four poolings of four positions
    assert found.severity == "fine", found
    assert found.theory is not None
    assert abs(np.log(found.theory / found.measured.value)) < np.log(3)


def test_operations_of_a_transformer():
    found = read(Sequences(), (TOKENS, LABELS))
    count = {kind: len(found.of(kind)) for kind in ("embedding", "attention", "sum", "layer norm", "pooling", "affine")}
    assert count == {"embedding": 1, "attention": 2, "sum": 4, "layer norm": 4, "pooling": 1, "affine": 9}
    assert [one.place for one in found.trunk] == [one.place for one in found.of("sum")]
    assert [one.what for one in found.of("activation")] == ["gelu", "gelu"]
    assert len(found.idle) == 6  # dropout
    names = {one.name for one in found.of("affine")}
    assert {"blocks.layers.0.self_attn.in_proj", "blocks.layers.1.linear2", "head"} <= names
    lines = expected(found)
    again = {found.operations[i].kind for i, line in enumerate(lines) if line.restarted}
    assert again == {"product", "unread", "attention", "pooling"}
    # What follows a restart is predicted again.
    after = next(one for one in found.of("affine") if "out_proj" in one.name)
    assert not lines[after.place].restarted
    assert all(np.isfinite(one.slope) for one in found.trunk)
    assert "self_attn" in str(found)


def test_modes_and_functions_are_read():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 6, 3), torch.nn.BatchNorm2d(6), torch.nn.ReLU(inplace=True), torch.nn.Dropout(0.25),
        torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(54, 5),
    )  # fmt: skip
    x = np.random.default_rng(0).normal(size=(40, 1, 8, 8)).astype("float32")
    plain = [one.kind for one in read(net, (x, LABELS)).operations]
    assert plain == ["input", "affine", "batch norm", "activation", "pooling", "affine"]
    trained = read(net, (x, LABELS), mode="train")
    assert [one.kind for one in trained.operations] == [*plain[:4], "dropout", *plain[4:]]
    norm = trained.of("batch norm")[0]
    assert np.isclose(expected(trained)[norm.place].mean, norm.moment.mean(), rtol=1e-3)

    class Written(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(64, 30), torch.nn.Parameter(torch.randn(30, 30) / 30**0.5)
            self.c = torch.nn.Linear(60, 5)

        def forward(self, x):
            h = self.a(x)
            h = h * torch.sigmoid(h)  # swish, written out
            h = 2 * (h @ self.b)
            h = h - h.mean(dim=1, keepdim=True)
            return self.c(torch.cat([h, torch.sin(h)], dim=1))

    found = read(Written(), (x.reshape(40, 64), LABELS))
    assert [one.what for one in found.of("activation")] == ["sigmoid", "swish", "sin"]
    assert not found.of("sum")  # a mean taken off is no residual
    assert [one.name for one in found.of("affine")] == ["a", "b", "c"]
    assert multiplier(found, found.of("affine")[1].place) == pytest.approx(2.0)


def of_jax(blocks=2, width=60):
    rng = np.random.default_rng(1)

    def draw(*shape):
        return jnp.asarray(rng.normal(size=shape) / np.sqrt(shape[0]))

    parameters = {
        "stem": {"w": draw(64, width), "b": jnp.zeros(width)},
        "blocks": [{"w": draw(width, width) * 2**0.5, "v": draw(width, width) / 2} for _ in range(blocks)],
        "head": draw(width, 10),
    }

    def apply(p, x):
        h = x @ p["stem"]["w"] + p["stem"]["b"][None]
        for block in p["blocks"]:
            h = h + jax.nn.relu(h @ block["w"]) @ block["v"]
        return jax.nn.gelu(h) @ p["head"]

    def cross_entropy(z, y):
        return -jnp.mean(jax.nn.log_softmax(z)[jnp.arange(len(y)), y])

    return apply, cross_entropy, parameters


def test_a_jax_function_is_read_like_a_module():
    apply, cross_entropy, parameters = of_jax()
    model = open_model(apply, cross_entropy, digits(64), parameters=parameters)
    found = architecture(model)
    assert [one.name for one in found.of("affine")] == [
        "stem.w", "blocks.0.w", "blocks.0.v", "blocks.1.w", "blocks.1.v", "head"
    ]  # fmt: skip
    assert len(found.trunk) == 2
    assert np.abs(scores(found)).max() < 4.5
    assert all(one.slope > 0 for one in found.of("affine"))
    # The layers that are measured are the same as by hand.
    layers = layer_signals(model).layers
    x = digits(64)[0].astype(float)
    h = x @ np.asarray(parameters["stem"]["w"])
    assert np.allclose(layers[0].leaving, (h**2).mean(axis=1), rtol=1e-5)
    assert layers[0].before == "data"
    assert layers[2].before == "relu"
    report = diagnose(model, only=("initialization",))
    assert report["residual-branches"].severity == "fine"
    ids = jnp.asarray(np.random.default_rng(0).normal(size=(50, 8)))
    embedded = open_model(
        lambda p, x: p["e"][x].mean(axis=1) @ p["w"], cross_entropy, (TOKENS, LABELS),
        parameters={"e": ids, "w": jnp.ones((8, 5))},
    )  # fmt: skip
    kinds = [one.kind for one in architecture(embedded).operations]
    assert kinds[0] == "input"
    assert "embedding" in kinds
    assert "pooling" in kinds


def test_gradients_of_operations_are_those_of_finite_differences():
    torch.manual_seed(0)
    net = residual(20, 2, True).double()
    x, y = digits(8)
    found = read(net, (x.astype(float), y))
    place = found.trunk[0]
    h = net[1](net[0](torch.tensor(x.astype(float)))).detach()

    def total(value):
        return torch.nn.functional.cross_entropy(net[3](net[2](value)), torch.tensor(y), reduction="sum")

    h.requires_grad_()
    (exact,) = torch.autograd.grad(total(h), [h])
    assert place.slope == pytest.approx(float((exact**2).sum() / 8), rel=1e-9)


def test_layers_alone_shared_or_computed_are_no_obstacle():
    x, y = digits(40)
    alone = layer_signals(open_model(torch.nn.Linear(64, 10), loss, (x, y))).layers
    assert [one.name for one in alone] == ["weight"]

    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)
            self.two.weight = self.one.weight
            self.head = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(64, 10))

        def forward(self, x):
            return self.head(torch.relu(self.two(torch.relu(self.one(x)))))

    net = Tied()
    model = open_model(net, loss, (x, y))
    tied = layer_signals(model).layers
    assert [one.name for one in tied] == ["one", "two"]
    assert tied[0].weight_variance == tied[1].weight_variance
    report = diagnose(model, optimizer=("gd", 0.1), only=("initialization", "weights", "learning rate"))
    assert not report.left_out, report


def test_tokens_beside_the_flow_of_equal_angles():
    torch.manual_seed(0)
    report = diagnose(Sequences(), loss, (TOKENS, LABELS), only=("representations",), budget="1h")
    assert not report.left_out, report
    found = report["token-clustering"]
    assert found.picture is not None
    line, measured = found.picture.marks
    # Feed-forward sums take no time, attention brings tokens together.
    assert len(line.y) == len(measured.y) == 5
    assert line.y[1] == line.y[2]
    assert line.y[0] < line.y[1] < line.y[3] <= 1
