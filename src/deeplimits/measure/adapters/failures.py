"""What goes wrong in a user's code, said in one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

from deeplimits.errors import DeeplimitsError, ParameterError


@contextmanager
def told(what: str, *, passes: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Errors of what runs inside as a `ParameterError`: what failed, the error's type and its first line.

    Those of this house, and those of the types that `passes` names, stay what they are.

    >>> with told("the loss failed on the first batch"):
    ...     1 / 0
    Traceback (most recent call last):
        ...
    deeplimits.errors.ParameterError: the loss failed on the first batch: ZeroDivisionError: division by zero
    """
    try:
        yield
    except (DeeplimitsError, *passes):
        raise
    except Exception as error:
        line = str(error).strip().splitlines()
        raise ParameterError(f"{what}: {type(error).__name__}: {line[0] if line else ''}") from error
