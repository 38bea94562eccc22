"""The hooks by which trainers call a recorder: Lightning's and transformers', without either being imported."""

import abc
from typing import Any


class TrainerHooks(abc.ABC):
    """A callback of Lightning's and transformers' trainers that looks at the module after each step of the optimizer.

    Trainers call every hook of theirs on every callback; those that have nothing to measure do nothing.
    """

    torch_optimizer: Any = None
    state_key = "SharpnessRecorder"
    """The name under which Lightning would keep a callback's state in checkpoints."""
    _last: Any = 0

    @abc.abstractmethod
    def __call__(self) -> None:
        """Look at the user's module as it is now."""

    def on_train_batch_end(self, trainer: Any = None, *_: Any, **__: Any) -> None:
        """Lightning's hook after each batch; a batch whose gradient is only accumulated is no step."""
        step = getattr(trainer, "global_step", None)
        if step is not None and step == self._last:
            return
        self._last = step
        self._look(next(iter(getattr(trainer, "optimizers", None) or ()), None))

    def on_step_end(self, *_: Any, optimizer: Any = None, **__: Any) -> None:
        """transformers' hook after each step."""
        self._look(optimizer)

    def state_dict(self) -> dict[str, Any]:
        """Nothing that a checkpoint would keep: a record is of one run."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:  # noqa: B027  nothing is kept
        """Nothing to take up."""

    def __getattr__(self, name: str) -> Any:
        if name in ("setup", "teardown") or name.startswith("on_"):
            return _nothing
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def _look(self, optimizer: Any) -> None:
        # Trainers make their optimizer after their callbacks.
        if self.torch_optimizer is None:
            self.torch_optimizer = optimizer
        self()


def _nothing(*_: Any, **__: Any) -> None:
    """Where there is nothing to do."""
