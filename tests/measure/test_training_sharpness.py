"""Sharpness along training: thresholds against the sheet, recorders of every kind of loop, the edge on digits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from deeplimits.errors import ParameterError
from deeplimits.measure import training
from deeplimits.measure.adapters import open_model

X = np.random.default_rng(0).normal(size=(20, 3))
Y = np.sin(X[:, :1])


def squared(z, y):
    return jnp.mean(jnp.sum((z - y) ** 2, axis=1)) / 2


def net(p, x):
    return jnp.tanh(x @ p["a"] + p["b"][None, :]) @ p["c"]


def start(inputs=3, width=8, outputs=1, seed=0):
    a, c = jax.random.split(jax.random.key(seed))
    return {
        "a": jax.random.normal(a, (inputs, width)) / np.sqrt(inputs),
        "b": jnp.zeros(width),
        "c": jax.random.normal(c, (width, outputs)) / np.sqrt(width),
    }


def test_thresholds_are_those_of_the_sheet_and_of_a_run():
    assert training.stable_curvature("gd", 0.1) == pytest.approx(20)
    assert training.stable_curvature("momentum", 0.1) == pytest.approx(38)
    assert training.stable_curvature("nesterov", 0.1) == pytest.approx(13.571428571429)
    # Adam at fixed preconditioner: (2 + 2β)/((1 − β)η), Cohen et al. 2022.
    assert training.stable_curvature("adam", 1e-3) == pytest.approx(38_000)
    assert training.stable_curvature("momentum", 0.3, momentum=0.0) == pytest.approx(2 / 0.3)
    assert training.stable_curvature("gd", 0.1, ridge=0.5) == pytest.approx(19.5)
    optimizers = {
        "gd": lambda p: torch.optim.SGD(p, lr=0.1),
        "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    }
    for name, make in optimizers.items():
        edge = training.stable_curvature(name, 0.1)
        for factor, bounded in ((0.99, True), (1.01, False)):
            theta = torch.ones(1, dtype=torch.float64, requires_grad=True)
            optimizer = make([theta])
            for _ in range(2000):
                optimizer.zero_grad()
                (factor * edge * theta**2 / 2).sum().backward()
                optimizer.step()
            assert (abs(theta.item()) < 1) == bounded, name


def exact_sharpness(p):
    flat, restore = jax.flatten_util.ravel_pytree(p)
    matrix = jax.hessian(lambda v: squared(net(restore(v), jnp.asarray(X)), jnp.asarray(Y)))(flat)
    return np.linalg.eigvalsh(matrix)[::-1], matrix


def test_a_jax_loop_is_followed():
    p = start()
    model = open_model(net, squared, (X, Y), parameters=p)
    recorder = training.SharpnessRecorder(model, every=2, top=2, optimizer="gd", step=0.3, tolerance=1e-10)
    slope = jax.jit(jax.grad(lambda q: squared(net(q, jnp.asarray(X)), jnp.asarray(Y))))
    seen = []
    for _ in range(9):
        recorder(p)
        seen.append(p)
        p = jax.tree.map(lambda a, g: a - 0.3 * g, p, slope(p))
    record = recorder.record()
    assert record.steps.tolist() == [0, 2, 4, 6, 8]
    exact, matrix = exact_sharpness(seen[-1])
    np.testing.assert_allclose(record.sharpness[-1], exact[:2], rtol=1e-4)
    assert record.products[1:].mean() < record.products[0]
    assert np.isnan(record.overlap[0])
    assert np.all(record.overlap[1:] > 0.5)
    assert record.overlap[-1] > 0.98
    vectors = np.linalg.eigh(matrix)[1][:, -2:]
    gradient = jax.flatten_util.ravel_pytree(slope(seen[-1]))[0]
    np.testing.assert_allclose(record.gradient_share[-1], training.gradient_share(gradient, vectors), atol=1e-4)
    assert record.threshold == pytest.approx(2 / 0.3)
    found = training.edge_of_stability(record)
    assert not found.reached
    assert found.ratio is None


def test_a_pytorch_loop_and_lightnings_hook_are_followed_with_adam():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    x, y = torch.tensor(X), torch.tensor(Y)

    def loss(z, y):
        return ((z - y) ** 2).mean() / 2

    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
    model = open_model(module, loss, (x, y))
    recorder = training.SharpnessRecorder(model, optimizer="adam", step=1e-2, torch_optimizer=optimizer)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        value = loss(module(x), y)
        value.backward()
        optimizer.step()
        held = [one.grad.clone() for one in module.parameters()]
        recorder.on_train_batch_end(None, None, None, None, 0)
        losses.append(loss(module(x), y).item())
        assert all(torch.equal(a, one.grad) for a, one in zip(held, module.parameters(), strict=True))
    record = recorder.record()
    np.testing.assert_allclose(record.losses, losses, rtol=1e-12)
    denominators = training.adam_denominators(optimizer, model)
    named = model.layout.named(denominators)["0.weight"]
    state = optimizer.state[module[0].weight]
    np.testing.assert_allclose(named, (state["exp_avg_sq"] / (1 - 0.999**5)).sqrt() + 1e-8, rtol=1e-12)
    from deeplimits.measure import curvature

    dense = curvature.hessian(model.now()).dense() / np.sqrt(np.outer(denominators, denominators))
    np.testing.assert_allclose(record.sharpness[-1, 0], np.linalg.eigvalsh(dense)[-1], rtol=1e-4)
    with pytest.raises(ParameterError, match="second moments"):
        training.SharpnessRecorder(model, optimizer="adam", step=0.1)()


LIGHTNING = (
    "setup", "on_fit_start", "on_sanity_check_start", "on_sanity_check_end", "on_train_start", "on_train_epoch_start",
)  # fmt: skip


class StandIn:
    """A trainer that calls its callbacks as Lightning's does: every hook of every callback, by name."""

    def __init__(self, callbacks, every):
        self.callbacks, self.every, self.global_step, self.optimizers = callbacks, every, 0, []

    def call(self, hook, *arguments):
        for callback in self.callbacks:
            assert callable(getattr(callback, hook))
            assert isinstance(callback.state_key, str)
            getattr(callback, hook)(self, None, *arguments)

    def fit(self, module, loss, data, batches):
        for hook in LIGHTNING:
            self.call(hook)
        self.optimizers = [torch.optim.Adam(module.parameters(), lr=1e-2)]
        (optimizer,) = self.optimizers
        for index in range(batches):
            self.call("on_train_batch_start", data, index)
            loss(module(data[0]), data[1]).backward()
            self.call("on_after_backward")
            if (index + 1) % self.every == 0:
                self.call("on_before_optimizer_step", optimizer)
                optimizer.step()
                optimizer.zero_grad()
                self.global_step += 1
            self.call("on_train_batch_end", None, data, index)
        self.call("on_train_epoch_end")
        self.call("on_save_checkpoint", {"callbacks": {one.state_key: one.state_dict() for one in self.callbacks}})
        self.call("teardown", "fit")


def test_trainers_take_a_recorder_as_a_callback():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    data, loss = (torch.tensor(X), torch.tensor(Y)), torch.nn.MSELoss()
    model = open_model(module, loss, data)
    recorder = training.SharpnessRecorder(model, optimizer="adam", step=1e-2)
    StandIn([recorder], every=2).fit(module, loss, data, 8)
    record = recorder.record()
    # Eight batches are four steps, and Adam's moments are those of the trainer's own optimizer.
    assert record.steps.tolist() == [0, 1, 2, 3]
    assert record.losses[-1] == pytest.approx(loss(module(data[0]), data[1]).item(), rel=1e-12)
    assert np.all(record.sharpness > 0)
    # transformers' trainer: every event by name, the optimizer as a keyword
    plain = training.SharpnessRecorder(model, optimizer="gd", step=0.1)
    for event in ("on_init_end", "on_train_begin", "on_step_begin", "on_step_end", "on_log", "on_train_end"):
        assert getattr(plain, event)(None, None, None, model=module, optimizer=None) is None
    assert len(plain.record().steps) == 1
    assert not hasattr(recorder, "fit")


def test_catapults_are_those_of_the_recursion():
    # F3 with y = 0: a = ηλ, b = η²wz²: b' = b(1 − a + b)², a' = a + b(a − 4)
    a, b, path = 3.0, 1e-4, []
    for _ in range(60):
        path.append((a, b))
        a, b = a + b * (a - 4), b * (1 - a + b) ** 2
    a, b = np.array(path).T
    (found,) = training.catapults(b, sharpness=a)
    assert found.begin == 0
    assert found.peak == int(np.argmax(b))
    assert found.flattening < 2 / 3
    assert not training.catapults(0.9 ** np.arange(30.0))
    assert not training.catapults(1.1 ** np.arange(30.0))
    with pytest.raises(ParameterError, match="one list"):
        training.catapults(np.ones((2, 2)))


def test_bad_input_is_answered_in_a_sentence():
    model = open_model(net, squared, (X, Y), parameters=start())
    with pytest.raises(ParameterError, match="step is missing"):
        training.SharpnessRecorder(model, optimizer="gd")
    with pytest.raises(ParameterError, match="optimizer"):
        training.SharpnessRecorder(model, optimizer="lion", step=0.1)
    with pytest.raises(ParameterError, match="nothing has been recorded"):
        training.SharpnessRecorder(model).record()
    with pytest.raises(ParameterError, match="shapes"):
        training.SharpnessRecorder(model)({"a": jnp.ones(3)})
    recorder = training.SharpnessRecorder(model)
    recorder(start())
    with pytest.raises(ParameterError, match="no threshold"):
        training.edge_of_stability(recorder.record())


def descend(optimizer, step, steps, every=20):
    """Full-batch training on 300 digits; the record of its sharpness."""
    digits = load_digits()
    x = jnp.asarray((digits.data[:300] - digits.data[:300].mean(axis=0)) / 8)
    y = jnp.eye(10)[digits.target[:300]]
    p = start(64, 24, 10)
    model = open_model(net, squared, (x, y), parameters=p)
    recorder = training.SharpnessRecorder(model, optimizer=optimizer, step=step)
    slope = jax.grad(lambda q: squared(net(q, x), y))

    def advance(state, _):
        p, m, v, time = state
        g, time = slope(p), time + 1
        if optimizer == "adam":
            m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
            v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b**2, v, g)
            grow, spread = 1 - 0.9**time, 1 - 0.999**time
            p = jax.tree.map(lambda a, b, c: a - step * (b / grow) / (jnp.sqrt(c / spread) + 1e-7), p, m, v)
            return (p, m, v, time), None
        beta = 0.0 if optimizer == "gd" else 0.9
        m = jax.tree.map(lambda a, b: beta * a + b, m, g)
        ahead = jax.tree.map(lambda a, b: b + beta * a, m, g) if optimizer == "nesterov" else m
        return (jax.tree.map(lambda a, b: a - step * b, p, ahead), m, v, time), None

    many = jax.jit(lambda state: jax.lax.scan(advance, state, None, length=every)[0])
    zero = jax.tree.map(jnp.zeros_like, p)
    state = (p, zero, zero, jnp.zeros(()))
    for _ in range(steps // every):
        state = many(state)
        p, _, v, time = state
        moments = jax.tree.map(lambda c, t=time: jnp.sqrt(c / (1 - 0.999**t)) + 1e-7, v)
        recorder(p, second_moments=moments if optimizer == "adam" else None)
    return recorder.record()


def test_sharpness_of_descent_on_digits_settles_at_two_over_the_step():
    record = descend("gd", 0.5, 1600)
    found = training.edge_of_stability(record)
    assert found.reached
    assert abs(found.ratio.value - 1) < 0.03
    assert found.growth > 1.1
    assert training.edge_of_stability(descend("gd", 0.1, 400)).reached is False


@pytest.mark.slow
@pytest.mark.parametrize(("optimizer", "step", "steps"), [("gd", 0.5, 4000), ("momentum", 0.8, 4000),
                                                          ("nesterov", 0.35, 4000), ("adam", 0.01, 4000)])  # fmt: skip
def test_every_optimizer_settles_at_its_own_edge(optimizer, step, steps):
    record = descend(optimizer, step, steps)
    found = training.edge_of_stability(record)
    assert found.reached
    assert abs(found.ratio.value - 1) < 0.05
    assert found.growth > 1.1
    assert training.progressive_sharpening(record).slope.value > 0
