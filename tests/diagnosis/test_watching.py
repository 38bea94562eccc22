"""Diagnoses along training, in plain loops of PyTorch and JAX and as trainers call them, Lightning's where it is."""

import importlib
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from deeplimits.diagnosis import Watch
from deeplimits.errors import ParameterError
from deeplimits.measure import training
from deeplimits.measure.adapters import open_model

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(24, 6)).astype("float32"), np.arange(24) % 3


def trained(watch=None, steps=6):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(12, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    made = watch(net, optimizer) if watch else None
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(torch.tensor(X)), torch.tensor(Y)).backward()
        optimizer.step()
        if made is not None:
            made()
    return net, made


def test_watching_does_not_change_what_is_trained():
    loss = torch.nn.CrossEntropyLoss()
    alone, _ = trained()
    watched, watch = trained(
        lambda net, optimizer: Watch(net, loss, (X, Y), every=2, budget="1h", torch_optimizer=optimizer)
    )
    assert all(torch.equal(a, b) for a, b in zip(alone.parameters(), watched.parameters(), strict=True))
    assert [step for step, _ in watch.reports] == [2, 4, 6]
    frame = watch.to_frame()
    assert list(frame.index) == [2, 4, 6]
    assert frame["neural-collapse"].nunique() == 3  # each report sees the network as it was then
    assert watch.worst() in [report for _, report in watch.reports]


def test_trainers_call_it():
    net, _ = trained(steps=0)
    watch = Watch(net, torch.nn.CrossEntropyLoss(), (X, Y), every=1, parts=("representations",))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    watch.on_train_start()
    watch.on_train_batch_end(SimpleNamespace(global_step=1, optimizers=[optimizer]))
    watch.on_train_batch_end(SimpleNamespace(global_step=1, optimizers=[optimizer]))  # a gradient that is accumulated
    assert len(watch.reports) == 1
    assert watch.torch_optimizer is optimizer


def lightning():
    """PyTorch Lightning, as either of its packages."""
    for name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return pytest.skip(
        "Lightning is not installed here (pip install pytorch-lightning); stand-ins call the hooks above"
    )


@pytest.mark.filterwarnings("ignore")  # Lightning's own
def test_a_trainer_of_lightning_itself(tmp_path):
    pl, loss = lightning(), torch.nn.CrossEntropyLoss()

    class Lit(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, _ = trained(steps=0)

        def forward(self, x):
            return self.net(x)

        def training_step(self, batch, _):
            return loss(self(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)

    def fitted(every=None, accumulate=1):
        made, lit, seen = [], Lit(), (X, Y)
        if every is not None:
            made = [
                Watch(lit, loss, seen, every=every, budget="1h", parts=("gradient noise", "representations")),
                training.SharpnessRecorder(open_model(lit.net, loss, seen), optimizer="adam", step=0.01),
            ]
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y)), batch_size=8, shuffle=True
        )
        trainer = pl.Trainer(
            max_steps=6, callbacks=made, accumulate_grad_batches=accumulate, accelerator="cpu", logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
            default_root_dir=tmp_path,
        )  # fmt: skip
        torch.manual_seed(1)
        trainer.fit(lit, loader)
        trainer.save_checkpoint(tmp_path / "run.ckpt")  # which asks every callback for its state
        return lit, made

    alone, _ = fitted()
    lit, (watch, recorder) = fitted(every=2)
    assert all(torch.equal(a, b) for a, b in zip(alone.parameters(), lit.parameters(), strict=True))
    assert [step for step, _ in watch.reports] == [2, 4, 6]
    assert isinstance(watch.torch_optimizer, torch.optim.Adam)
    assert watch.to_frame()["neural-collapse"].nunique() == 3
    assert len(recorder.record().losses) == 6
    _, (watch, _) = fitted(every=3, accumulate=3)  # six steps of the optimizer are eighteen batches
    assert [step for step, _ in watch.reports] == [3, 6]


def test_new_parameters_of_jax():
    def apply(parameters, x):
        return jnp.tanh(x @ parameters["in"]) @ parameters["out"]

    def loss(z, y):
        return -jnp.mean(jax.nn.log_softmax(z)[jnp.arange(len(y)), y])

    first = {"in": rng.normal(size=(6, 8)), "out": rng.normal(size=(8, 3))}
    watch = Watch(apply, loss, (X, Y), every=1, parts=("gradient noise",), budget="1h", parameters=first)
    watch(first)
    watch({name: 3 * value for name, value in first.items()})
    (_, one), (_, other) = watch.reports
    assert one.findings[0].measured.value != other.findings[0].measured.value


def test_what_is_wrong_is_said_before_training():
    net, _ = trained(steps=0)
    loss = torch.nn.CrossEntropyLoss()
    for words, options in (("every", {"every": 0}), ("only", {"parts": ("noise",)}), ("budget", {"budget": "soon"})):
        with pytest.raises(ParameterError, match=words):
            Watch(net, loss, (X, Y), **options)
    with pytest.raises(ParameterError, match="every = 100"):
        Watch(net, loss, (X, Y)).worst()
