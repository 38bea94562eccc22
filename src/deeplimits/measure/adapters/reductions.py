"""What a user's loss does with a batch: a mean, a sum, one number for each sample, or something that does not split."""

from typing import Any, NamedTuple

from deeplimits.measure.adapters.data import mapped

REDUCTIONS = ("mean", "sum", "none", "batch")
"""'batch' is a number that is neither the mean nor the sum of the samples' losses."""


class Single(NamedTuple):
    """One sample as a batch of one."""

    output: Any
    target: Any


def single(output: Any, target: Any) -> Single:
    """One sample's output and target with a first axis of length one."""
    return Single(output[None], mapped(lambda array: array[None], target))


def reduced(value: Any, reduction: str, count: int, mean: Any) -> Any:
    """The mean loss of a batch, from what the user's loss gives."""
    if reduction == "none":
        return mean(value)
    return value / count if reduction == "sum" else value
