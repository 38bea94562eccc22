"""One door for a user's network: the same numbers through PyTorch and JAX, and nothing of the user's changed."""

import random
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from deeplimits.ensembles.wide_networks import WideNetwork
from deeplimits.errors import ParameterError
from deeplimits.measure.adapters import open_model
from deeplimits.measure.adapters.architecture import architecture
from deeplimits.models.architectures import FullyConnected

X = np.random.default_rng(0).normal(size=(11, 3))
Y = np.arange(11) % 4
V = np.random.default_rng(1).normal(size=56)


def cross_entropy(z, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], axis=1))


def module(dtype=torch.float64, *extra):
    torch.manual_seed(3)
    layers = [torch.nn.Linear(3, 7), torch.nn.Tanh(), *extra, torch.nn.Linear(7, 4, bias=False)]
    return torch.nn.Sequential(*layers).to(dtype)


def mlp(parameters, x):
    hidden = jnp.tanh(x @ parameters["0"]["weight"].T + parameters["0"]["bias"][None, :])
    return hidden @ parameters["2"]["weight"].T


def values_of(net):
    return {
        "0": {"weight": jnp.asarray(net[0].weight.detach().numpy()), "bias": jnp.asarray(net[0].bias.detach().numpy())},
        "2": {"weight": jnp.asarray(net[2].weight.detach().numpy())},
    }


LOADER = [(torch.tensor(X[:4]), torch.tensor(Y[:4])), (torch.tensor(X[4:]), torch.tensor(Y[4:]))]


def through_torch(**options):
    return open_model(module(), torch.nn.CrossEntropyLoss(), LOADER, **options)


def through_jax(**options):
    return open_model(mlp, cross_entropy, (X, Y), parameters=values_of(module()), **options)


def everything(model, v):
    order = {"0.weight": 0, "0.bias": 1, "2.weight": 2}
    named = dict(zip(order, np.split(v, [21, 28]), strict=True))
    shapes = {"0.weight": (7, 3), "0.bias": (7,), "2.weight": (4, 7)}
    flat = model.layout.flat({name: part.reshape(shapes[name]) for name, part in named.items()})
    pushed = model.jacobian_product(flat)
    vectors = [
        model.gradient(), model.hessian_product(flat), model.gauss_newton_product(flat),
        model.jacobian_transpose_product(np.cos(pushed)),
    ]  # fmt: skip
    by_name = [np.concatenate([model.layout.named(one)[name].ravel() for name in order]) for one in vectors]
    return np.concatenate([*by_name, pushed.ravel(), model.losses(), model.outputs().ravel(), [model.loss()]])


def test_the_same_numbers_through_both_frameworks_and_by_dense_linear_algebra():
    ours, theirs = everything(through_torch(), V), everything(through_jax(chunk=5), V)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    values = values_of(module())
    flat, restore = jax.flatten_util.ravel_pytree(values)
    dense = jax.hessian(lambda v: cross_entropy(mlp(restore(v), X), Y))(flat)
    model = through_jax()
    np.testing.assert_allclose(model.hessian_product(V), dense @ V, atol=1e-13)
    assert model.names == ("0.bias", "0.weight", "2.weight")
    np.testing.assert_array_equal(model.vector, flat)


def test_reductions_batches_and_weights_count_every_sample_once():
    reference = through_torch().hessian_product(V)
    for loss in (torch.nn.CrossEntropyLoss(reduction="sum"), torch.nn.CrossEntropyLoss(reduction="none")):
        found = open_model(module(), loss, LOADER)
        np.testing.assert_allclose(found.hessian_product(V), reference, atol=1e-13)
    uneven = [(torch.tensor(X[:10]), torch.tensor(Y[:10])), (torch.tensor(X[10:]), torch.tensor(Y[10:]))]
    for data in (
        uneven,
        {"x": X, "labels": Y},
        torch.utils.data.DataLoader(list(zip(X, Y, strict=True)), batch_size=4),
    ):
        found = open_model(module(), torch.nn.functional.cross_entropy, data)
        np.testing.assert_allclose(found.hessian_product(V), reference, atol=1e-13)
    parts = [sum(p.hessian(V) for p in through_torch().pieces((c == Y) / 11)) for c in range(4)]
    np.testing.assert_allclose(sum(parts), reference, atol=1e-13)
    weighted = open_model(module(), torch.nn.CrossEntropyLoss(weight=torch.arange(1.0, 5).double()), LOADER)
    assert "neither the mean nor the sum" in weighted.notes[0]
    with pytest.raises(ParameterError, match="sum over samples"):
        weighted.losses()


def test_every_kind_of_network_opens():
    net = WideNetwork(FullyConnected(1, "tanh"), 3, 5, 4)
    parameters = net.init(jax.random.key(0))
    wide = open_model(net, cross_entropy, (X, Y), parameters=parameters)
    assert wide.names == ("0.weights", "0.biases", "1.weights", "1.biases")
    np.testing.assert_allclose(wide.loss(), cross_entropy(net.apply(parameters, jnp.asarray(X)), jnp.asarray(Y)))
    inside = eqx.nn.MLP(3, 4, 5, 1, key=jax.random.key(1))
    found = open_model(inside, cross_entropy, (X, Y))
    np.testing.assert_allclose(found.loss(), cross_entropy(jax.vmap(inside)(jnp.asarray(X)), jnp.asarray(Y)))

    class Flax:
        def apply(self, variables, x):
            return (x - variables["batch_stats"]["mean"][None, :]) @ variables["params"]["kernel"]

    variables = {"params": {"kernel": jnp.ones((3, 4))}, "batch_stats": {"mean": jnp.ones(3)}}
    found = open_model(Flax(), cross_entropy, (X, Y), parameters=variables)
    assert found.names == ("params.kernel",)
    assert "batch_stats.mean is no parameter" in found.notes[0]
    mixed = {"w": jnp.ones((3, 4)), "count": jnp.array(3)}
    found = open_model(lambda p, x: x @ p["w"] * p["count"], cross_entropy, (X, Y), parameters=mixed)
    assert found.names == ("w",)
    assert "count is of type int" in found.notes[0]


FLAX = "flax is not installed here (pip install flax); a stand-in with its form of variables is opened above"


@pytest.mark.filterwarnings("ignore")  # flax's own
def test_networks_of_flax_open():
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # as flax is written
        of_flax()


def of_flax():
    linen = pytest.importorskip("flax.linen", reason=FLAX)
    from flax import nnx

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            h = linen.BatchNorm(use_running_average=True)(linen.Dense(12)(x))
            return linen.Dense(4)(linen.relu(h))

    net = Net()
    variables = net.init(jax.random.key(0), jnp.asarray(X))
    found = open_model(net, cross_entropy, (X, Y), parameters=variables)
    assert found.names[2:] == (
        "params.Dense_0.bias", "params.Dense_0.kernel", "params.Dense_1.bias", "params.Dense_1.kernel"
    )  # fmt: skip
    assert sum("is no parameter but a state" in note for note in found.notes) == 2
    np.testing.assert_allclose(found.loss(), cross_entropy(net.apply(variables, jnp.asarray(X)), jnp.asarray(Y)))
    exact = jax.grad(
        lambda p: cross_entropy(net.apply({**variables, "params": p}, jnp.asarray(X)), jnp.asarray(Y))
    )(variables["params"])  # fmt: skip
    gradient = found.layout.named(found.gradient())
    np.testing.assert_allclose(gradient["params.Dense_0.kernel"], exact["Dense_0"]["kernel"], rtol=1e-4, atol=1e-6)
    assert [one.kind for one in architecture(found).operations if one.kind in ("affine", "activation")] == [
        "affine", "activation", "affine"
    ]  # fmt: skip

    class Second(nnx.Module):
        def __init__(self, rngs):
            self.inside, self.outside = nnx.Linear(3, 12, rngs=rngs), nnx.Linear(12, 4, rngs=rngs)

        def __call__(self, x):
            return self.outside(nnx.relu(self.inside(x)))

    second = Second(nnx.Rngs(0))
    graph, state = nnx.split(second)
    found = open_model(lambda p, x: nnx.merge(graph, p)(x), cross_entropy, (X, Y), parameters=state)
    assert found.names == ("inside.bias", "inside.kernel", "outside.bias", "outside.kernel")
    np.testing.assert_allclose(found.loss(), cross_entropy(second(jnp.asarray(X)), jnp.asarray(Y)))
    assert [one.name for one in architecture(found).of("affine")] == ["inside", "outside"]


class Words(torch.nn.Module):
    """A user's transformer: dictionaries in, named results out."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(9, 8)
        self.mix = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1)
        self.last = torch.nn.Linear(8, 3)

    def forward(self, tokens, scale):
        return {"logits": self.last(self.mix(self.embed(tokens)).mean(dim=1)) * scale[:, None]}


def test_dictionaries_attention_and_names():
    torch.manual_seed(0)
    net = Words().double()
    batch = {"tokens": torch.randint(0, 9, (6, 5)), "scale": torch.ones(6).double(), "labels": torch.arange(6) % 3}
    model = open_model(net, torch.nn.functional.cross_entropy, batch, select=["last", "embed.*"])
    assert model.names == ("embed.weight", "last.weight", "last.bias")
    v = np.cos(np.arange(model.size))
    step = 1e-5
    slope = (model.at(model.vector + step * v).gradient() - model.at(model.vector - step * v).gradient()) / (2 * step)
    np.testing.assert_allclose(model.hessian_product(v), slope, atol=1e-8)
    assert "dropout" in model.notes[0]
    assert net.training


def snapshot(net):
    return {
        "values": {name: value.clone() for name, value in net.state_dict().items()},
        "grads": [None if one.grad is None else one.grad.clone() for one in net.parameters()],
        "modes": [one.training for one in net.modules()],
        "hooks": [list(one._forward_hooks.values()) + list(one._backward_hooks.values()) for one in net.modules()],
        "flags": [one.requires_grad for one in net.parameters()],
        "random": (random.getstate(), torch.get_rng_state().tolist(), np.random.get_state()[1].tolist()),  # noqa: NPY002
        "grad mode": torch.is_grad_enabled(),
    }


def same(one, other):
    for name in one:
        if name == "values":
            assert all(torch.equal(one[name][key], other[name][key]) for key in one[name])
        elif name == "grads":
            assert all(
                (a is None and b is None) or torch.equal(a, b) for a, b in zip(one[name], other[name], strict=True)
            )
        else:
            assert one[name] == other[name], name


@pytest.mark.parametrize("error", [None, RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_nothing_of_the_users_is_changed(error, mode):
    net = module(torch.float32, torch.nn.BatchNorm1d(7), torch.nn.Dropout(0.4))
    net(torch.randn(5, 3)).sum().backward()
    seen = []
    net[0].register_forward_hook(lambda *_: seen.append(1))
    calls = []

    def loss(z, y):
        calls.append(1)
        if error is not None and len(calls) > 6:
            raise error("stop")
        return torch.nn.functional.cross_entropy(z, y)

    generator = torch.Generator().manual_seed(5)
    samples = [(torch.tensor(x, dtype=torch.float32), int(y)) for x, y in zip(X, Y, strict=True)]
    loader = torch.utils.data.DataLoader(samples, batch_size=4, shuffle=True, generator=generator)
    state = generator.get_state().tolist()
    before = snapshot(net)
    with torch.no_grad():
        try:
            model = open_model(net, loss, loader, mode=mode)
            model.hessian_product(np.ones(model.size))
            model.gauss_newton_product(np.ones(model.size))
        except (ParameterError, RuntimeError, KeyboardInterrupt):
            assert error is not None
        else:
            assert error is None
            words = " ".join(model.notes)
            assert "shuffles" in words
            assert "dropout" in words
            assert "batch norm" in words
            assert model.separable == (mode == "eval")
    same(before, snapshot(net))
    assert generator.get_state().tolist() == state


def test_data_that_change_are_noticed():
    class Augmented:
        def __iter__(self):
            yield X + 0.1 * np.random.standard_normal(X.shape), Y  # noqa: NPY002  as users write it

    model = open_model(mlp, cross_entropy, Augmented(), parameters=values_of(module()))
    assert "other data on a second pass" in model.notes[0]
    np.testing.assert_array_equal(model.gradient(), model.gradient())

    class Counting:
        passes = 0

        def __iter__(self):
            Counting.passes += 1
            yield X + Counting.passes, Y

    with pytest.raises(ParameterError, match="other data on a later pass"):
        open_model(mlp, cross_entropy, Counting(), parameters=values_of(module()), memory=10).gradient()
    torch_data = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y))
    loader = torch.utils.data.DataLoader(torch_data, batch_size=3, shuffle=True)
    streamed = open_model(module(), torch.nn.functional.cross_entropy, loader, memory=10)
    np.testing.assert_allclose(streamed.hessian_product(V), through_torch().hessian_product(V), atol=1e-13)


def test_a_product_goes_to_the_device_in_one_piece(monkeypatch):
    """However many parameters there are: each copy makes a GPU wait."""
    model, copies, make = through_torch(), [], torch.tensor
    first = model.hessian_product(V)
    monkeypatch.setattr(torch, "tensor", lambda *given, **how: copies.append(1) or make(*given, **how))
    piece = next(model.pieces())
    whole = piece.hessian(V)
    copies.clear()
    np.testing.assert_array_equal(piece.hessian(V), whole)
    assert len(copies) == 1
    np.testing.assert_allclose(sum(one.hessian(V) for one in model.pieces()), first, atol=1e-15)


class TwoPrecisions(torch.nn.Module):
    """A user's network whose head computes in single precision."""

    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(3, 5, bias=False).double(), torch.nn.Linear(5, 4, bias=False)

    def forward(self, x):
        return self.head(self.body(x).tanh().float())


def test_every_parameter_keeps_its_precision():
    model = open_model(TwoPrecisions(), torch.nn.CrossEntropyLoss(), LOADER)
    moved = model.at(model.vector)
    np.testing.assert_array_equal(moved.vector, model.vector)
    assert [moved.network.values[name].dtype for name in moved.names] == [torch.float64, torch.float32]
    v = np.cos(np.arange(35.0))
    slope = (model.at(model.vector + 1e-3 * v).gradient() - model.at(model.vector - 1e-3 * v).gradient()) / 2e-3
    np.testing.assert_allclose(model.hessian_product(v), slope, atol=1e-3)


def test_a_model_is_a_snapshot():
    net = module()
    model = open_model(net, torch.nn.functional.cross_entropy, LOADER)
    before = model.gradient()
    with torch.no_grad():
        net[0].weight.add_(0.5)
    np.testing.assert_array_equal(model.gradient(), before)
    moved = model.now()
    assert np.abs(moved.gradient() - before).max() > 1e-3
    np.testing.assert_allclose(moved.parameters["0.weight"] - model.parameters["0.weight"], 0.5)
    np.testing.assert_allclose(model.at(moved.parameters).gradient(), moved.gradient(), atol=1e-15)


def frozen(net=None):
    net = module() if net is None else net
    for one in net.parameters():
        one.requires_grad_(False)
    return net


def broken():
    net = module()
    with torch.no_grad():
        net[0].weight[0, 0] = float("nan")
    return net


def root(z, y):
    return torch.sqrt(torch.sum((z - z.detach()) ** 2, dim=1))


W = {"w": jnp.zeros((3, 4))}


def linear(p, x):
    return x @ p["w"]


@pytest.mark.parametrize(("call", "words"), [
    (lambda: open_model(module(), lambda z, y: (z.argmax(1) != y).double().mean(), LOADER), "derivative|cannot be"),
    (lambda: open_model(linear, lambda z, y: jnp.mean(jnp.argmax(z, 1) != y), (X, Y), parameters=W), "derivative"),
    (lambda: open_model(module(), root, LOADER), "NaN"),
    (lambda: open_model(linear, lambda z, y: jnp.sqrt(jnp.sum(z**2)), (X, Y), parameters=W), "NaN"),
    (lambda: open_model(module(), torch.nn.CrossEntropyLoss(), []), "empty"),
    (lambda: open_model(module(), torch.nn.CrossEntropyLoss(), iter(LOADER)), "only once"),
    (lambda: open_model(module(), torch.nn.CrossEntropyLoss(), 3), "give a batch"),
    (lambda: open_model(module(), torch.nn.CrossEntropyLoss(), {"a": X, "b": Y}), "none is called labels"),
    (lambda: open_model(module(), torch.nn.CrossEntropyLoss(), (X * np.nan, Y)), "NaN"),
    (lambda: open_model(module(), torch.nn.CrossEntropyLoss(), (X[:, :2], Y)), "failed on the first batch"),
    (lambda: open_model(module(), torch.nn.MSELoss(reduction="none"), (X, np.zeros((11, 4)))), "one number"),
    (lambda: open_model(module(), "mse", LOADER), "function of outputs"),
    (lambda: open_model(frozen(), torch.nn.CrossEntropyLoss(), LOADER), "frozen"),
    (lambda: open_model(broken(), torch.nn.CrossEntropyLoss(), LOADER), "0.weight"),
    (lambda: open_model(module(), torch.nn.CrossEntropyLoss(), LOADER, select="head"), "no parameter is called"),
    (lambda: open_model(module(), torch.nn.CrossEntropyLoss(), LOADER, mode="test"), "mode"),
    (lambda: open_model(linear, cross_entropy, (X, Y)), "needs its parameters"),
    (lambda: open_model(linear, cross_entropy, (X, Y), parameters={"w": jnp.ones((3, 4), int)}), "integers"),
    (lambda: open_model(linear, cross_entropy, (X, Y), parameters={"w": jnp.ones((3, 4), complex)}), "complex"),
    (lambda: open_model(linear, cross_entropy, (X[:3], Y[:3]), parameters=W).classes(), "no sample has the label 3"),
    (lambda: open_model(linear, lambda z, y: jnp.mean((z - y) ** 2), (X, X @ np.ones((3, 4))), parameters=W).classes(),
     "no classes"),
])  # fmt: skip
def test_bad_input_is_answered_in_a_sentence(call, words):
    with pytest.raises(ParameterError, match=words):
        call()


@pytest.mark.parametrize("loss", [lambda z, y: (z.argmax(1) != y).double().mean(), root, torch.nn.MSELoss()])
@pytest.mark.parametrize("data", [LOADER, [], (X * np.nan, Y)])
@pytest.mark.parametrize("prepare", [lambda net: net, frozen])
def test_what_is_refused_is_left_as_it_was(prepare, loss, data):
    """A loss without derivatives, with NaN ones, that does not fit; no data, data that are NaN; nothing to vary."""
    net = prepare(module(torch.float64, torch.nn.BatchNorm1d(7), torch.nn.Dropout(0.4)))
    before = snapshot(net)
    with pytest.raises(ParameterError):
        open_model(net, loss, data)
    same(before, snapshot(net))


def test_pytorch_is_imported_by_its_users_alone():
    code = (
        "import sys, numpy as np, jax.numpy as jnp\n"
        "from deeplimits.measure import adapters, classes, curvature, training\n"
        "model = adapters.open_model(lambda w, x: x @ w, lambda z, y: (z - y) ** 2, (np.eye(2), np.ones(2)),"
        " parameters=jnp.zeros(2))\n"
        "curvature.eigenpairs(curvature.hessian(model)), training.SharpnessRecorder(model)()\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
