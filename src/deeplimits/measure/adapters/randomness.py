"""The random generators that belong to the user: Python's, NumPy's, PyTorch's and those inside a loader.

Reading a loader moves them, even one that does not shuffle. So each batch is read between saving and restoring them,
and every pass starts from the same state: a loader that shuffles gives the same order again.
"""

import contextlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np


class State:
    """The state of all generators that a source of data may use, now."""

    def __init__(self, source: Any = None):
        self.owned = list(_generators(source))
        self.python = random.getstate()
        self.numpy = np.random.get_state()  # noqa: NPY002  the user's own
        torch = sys.modules.get("torch")
        self.torch = None if torch is None else torch.get_rng_state()
        self.cuda = torch.cuda.get_rng_state_all() if torch is not None and torch.cuda.is_initialized() else None
        self.inside = [_state_of(one) for one in self.owned]

    def restore(self) -> None:
        """Set all generators back to this state."""
        random.setstate(self.python)
        np.random.set_state(self.numpy)  # noqa: NPY002
        torch = sys.modules.get("torch")
        if torch is not None and self.torch is not None:
            torch.set_rng_state(self.torch)
            if self.cuda is not None:
                torch.cuda.set_rng_state_all(self.cuda)
        for one, state in zip(self.owned, self.inside, strict=True):
            _set_state(one, state)


@contextlib.contextmanager
def guarded(*, source: Any = None) -> Iterator[None]:
    """Inside, random numbers may be drawn; afterwards all generators are as before, whatever happened.

    >>> import random
    >>> state = random.getstate()
    >>> with guarded():
    ...     drawn = random.random()
    >>> random.getstate() == state
    True
    """
    before = State(source)
    try:
        yield
    finally:
        before.restore()


def disturb(seed: int, *, source: Any = None) -> None:
    """Put all generators elsewhere, to see whether a source depends on them; call it inside `guarded`."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
    for one in _generators(source):
        if isinstance(one, np.random.Generator):
            one.random(7)
        elif isinstance(one, random.Random | np.random.RandomState):
            one.seed(seed)
        else:
            one.manual_seed(seed)


def _generators(source: Any) -> Iterator[Any]:
    """Generators that a loader, its samplers or its data set own."""
    seen: set[int] = set()
    waiting = [source]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        held = getattr(one, "__dict__", None)
        if not isinstance(held, dict):
            continue
        for name in ("sampler", "batch_sampler", "dataset", "loader"):
            waiting.append(held.get(name))
        for value in held.values():
            if _is_generator(value) and id(value) not in seen:
                seen.add(id(value))
                yield value


def _is_generator(value: Any) -> bool:
    if isinstance(value, np.random.Generator | np.random.RandomState | random.Random):
        return True
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Generator)


def _state_of(one: Any) -> Any:
    if isinstance(one, np.random.Generator):
        return one.bit_generator.state
    if isinstance(one, random.Random):
        return one.getstate()
    return one.get_state()


def _set_state(one: Any, state: Any) -> None:
    if isinstance(one, np.random.Generator):
        one.bit_generator.state = state
    elif isinstance(one, random.Random):
        one.setstate(state)
    else:
        one.set_state(state)
