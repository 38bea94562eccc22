"""What the verbs return has in common: results by name, and a figure of some of them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from deeplimits.errors import ParameterError, did_you_mean
from deeplimits.predictions import Picture
from deeplimits.render import with_matplotlib

T = TypeVar("T")


class _Results(Mapping[str, T]):
    """A mapping of names to what is in `results`; a name that is not there is answered with those that are."""

    results: dict[str, T]

    def __getitem__(self, name: str) -> T:
        return named(name, self.results)

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


class Drawn(ABC):
    """What has pictures, and can be seen as a figure with a title and the parameters it is made at."""

    @abstractmethod
    def pictures(self) -> dict[str, Picture]:
        """What is to be seen of each result, as data."""

    @abstractmethod
    def _caption(self) -> tuple[str, list[dict[str, Any]]]:
        """The title, and the parameters (see `export.settings`)."""

    def plot(
        self,
        path: str | Path | None = None,
        *,
        only: Sequence[str] | str | None = None,
        ax: Any = None,
        size: tuple[float, float] | None = None,
        dpi: float | None = None,
    ) -> Any:
        """A figure with a panel for each result, or for `only` some; written to `path` where one is given.

        One result can be drawn on your own axes, `ax`. `size` is width and height in inches, `dpi` dots an inch.
        """
        pictures = chosen(self.pictures(), only)
        title, settings = self._caption()
        # What is an axis of everything that is drawn has no single value in the figure.
        along = {one.x.symbol for one in pictures.values()}
        settings = [one for one in settings if not one["symbol"] or along != {one["symbol"]}]
        return with_matplotlib.figure(title, settings, pictures, path, ax=ax, size=size, dpi=dpi)


def named(name: str, results: Mapping[str, Any]) -> Any:
    """The result of that name, or a sentence with those there are."""
    if name not in results:
        hint = did_you_mean(str(name), results)
        raise ParameterError(f"there is no result {name!r}; there are {', '.join(results)}{hint}")
    return results[name]


def chosen(results: Mapping[str, Any], only: Sequence[str] | str | None) -> dict[str, Any]:
    """The results to be drawn: all, or `only` one or some, in the order they are named."""
    if only is None:
        return dict(results)
    names = [only] if isinstance(only, str) else list(only)
    if not names:
        raise ParameterError(f"only = {only!r} names no result; there are {', '.join(results)}")
    return {name: named(name, results) for name in names}
