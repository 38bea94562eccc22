"""`simulate`: finite systems, drawn and measured."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.errors import DeeplimitsError, require
from deeplimits.lab import beforehand, export
from deeplimits.lab.compilation import few_threads, use_cache
from deeplimits.lab.predict import MOST_SEED, check_count, limit_of, stated_shapes, theory
from deeplimits.lab.programs import Program
from deeplimits.lab.results import _Results
from deeplimits.lab.task import Task
from deeplimits.limit import Limit, speaks_of_draws, to_json, values_of
from deeplimits.numerics.checks import aloud
from deeplimits.predictions import Kind
from deeplimits.render import bars, notebook, text

CHUNKS = 10  # a usual run is cut into that many pieces, so that its progress can be shown


@dataclass(frozen=True, repr=False)
class Simulation(_Results[np.ndarray]):
    """Measurements of independent finite systems, by name; the first axis of each array counts the systems."""

    limit: Limit
    """The limit at the ratios that the simulated systems have."""
    sizes: dict[str, Any]
    seed: int
    results: dict[str, np.ndarray]
    stated: dict[str, Kind]
    """What the theory says of each of these very systems, stacked on the first axis; empty for most limits."""

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        rows = []
        for name, draws in self.results.items():
            error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws)) if len(draws) > 1 else np.nan
            said = f"{draws.mean():.6g} ± {error:.2g}" if draws.ndim == 1 else f"array of shape {draws.shape}"
            rows.append((name, said))
        return ("result", "mean ± standard error"), rows

    def _summary(self) -> str:
        sizes = ", ".join(f"{name} = {value}" for name, value in self.sizes.items())
        samples = len(next(iter(self.results.values())))
        return f"{samples} systems with {sizes}, seed {self.seed}"

    def __repr__(self) -> str:
        return f"{export.heading(self.limit)}\n{self._summary()}\n{text.table(*self._table())}"

    def _repr_html_(self) -> str:
        return notebook.fragment(f"{export.heading(self.limit)}. {self._summary()}", *self._table())

    def to_xarray(self):
        """An `xarray.Dataset` of the raw draws."""
        xarray = require("xarray", "data")
        # Curves lie over the axis on which the theory states them.
        curves = any(draws.ndim > 1 for draws in self.results.values()) and not speaks_of_draws(self.limit)
        said = export.labelled(theory(self.limit) if curves else {})
        variables: dict[str, Any] = {}
        for name, draws in self.results.items():
            variables[name] = (("sample", *said.of(name, draws.shape[1:])), draws)
        used = {dim for dims, _ in variables.values() for dim in dims}
        coordinates = {dim: grid for dim, grid in said.coordinates.items() if dim in used}
        sizes = {f"size.{name}": str(value) for name, value in self.sizes.items()}
        return xarray.Dataset(variables, coordinates, export.attributes(self.limit, seed=self.seed, **sizes))

    def to_json(self) -> dict[str, Any]:
        """Name, parameters, sizes, seed and every draw, ready for `json.dumps`."""
        draws = {name: values.tolist() for name, values in self.results.items()}
        return {**to_json(self.limit), "sizes": self.sizes, "seed": self.seed, "draws": draws}

    def cite(self) -> str:
        """BibTeX of the results used."""
        return export.cite(self.limit)


def _many(limit: Limit, place: Any, count: int, sizes: dict[str, Any]) -> tuple[dict[str, Array], dict[str, Kind]]:
    """Measurements of a block of systems, and what the theory says of each of them.

    They are number first, ..., first + count - 1 of a seed at a size, where place = (seed, size, first). A system
    depends on these three only, whatever the block it is computed in.
    """
    seed, size, first = place
    stream = jax.random.fold_in(jax.random.key(seed), size)

    def one(index):
        key = jax.random.fold_in(stream, index)
        if not speaks_of_draws(limit):
            return beforehand.measured(limit, "simulate", limit.simulate(key, **sizes)), {}
        system = limit.draw(key, **sizes)
        found = beforehand.measured(limit, "measured", limit.measured(system))
        return found, beforehand.stated(limit, "stated", limit.stated(system))

    indices = first + jnp.arange(count)
    # On a GPU many systems at once are nearly free. On a CPU that only spoils the cache, unless they are tiny.
    if jax.default_backend() != "cpu":
        return jax.vmap(one)(indices)
    batch = min(limit.usual.batch, count)
    return jax.lax.map(one, indices, batch_size=batch if batch > 1 else None)


systems = Program(_many, level=1)


def simulate(
    limit: Limit | str,
    size: int | float | None = None,
    samples: int | float | None = None,
    seed: int = 0,
    progress: bool | None = None,
    **parameters: Any,
) -> Simulation:
    """Draw and measure `samples` independent finite systems of a given size.

    The limit may be given by its name in the catalogue, with values of its parameters.
    `size` is the largest of the limit's usual sizes unless given; what it counts is said in the limit's documentation.
    The same seed gives the same systems, whatever the number of samples. `progress` shows a bar: by default where
    standard error is a terminal and the run takes more than a second.

    >>> import deeplimits as dl
    >>> simulation = dl.simulate(dl.limits.MarchenkoPasturLaw(gamma=0.5), size=20, samples=8)
    >>> simulation["eigenvalues"].shape
    (8, 20)
    """
    limit = limit_of(limit, parameters)
    size = check_count(max(limit.usual.sizes) if size is None else size, "size")
    samples = check_count(limit.usual.samples if samples is None else samples, "samples")
    task = Task(limit, size, samples, check_count(seed, "seed", 0, MOST_SEED))
    check([task], compared=False)
    with bars.progress(samples, "simulating", progress) as bar, few_threads(size):
        return run(task, bar)


def check(tasks: Sequence[Task], compared: bool = True) -> None:
    """Refuse, before anything runs, what would end in an error: what does not fit into memory or to what is stated."""
    for task in tasks:
        realised = task.realised.limit
        with aloud(type(task.limit).__name__):
            found, own = systems.shapes(*_block(task))
            needed = systems.memory(*_block(task))
        if compared:
            said = {**stated_shapes(realised), **{name: _of_one(kind) for name, kind in own.items()}}
            beforehand.fitting(task.limit, said, found)
            beforehand.several_sizes(said, [one.size for one in tasks])
        if needed > beforehand.SHARE * beforehand.free_memory():
            beforehand.enough_memory(task.limit, task.size, needed, _at_a_smaller_size(task))


def stated_structure(task: Task) -> Any:
    """The tree of what is stated of the drawn systems of a task, whose leaves are arrays."""
    with aloud(type(task.limit).__name__):
        _, stated = systems.shapes(*_block(task))
    return jax.tree.structure(stated)


def _of_one(kind: Kind) -> Kind:
    """What is stated of one system, from the shapes of statements about many."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), kind)


def _at_a_smaller_size(task: Task) -> tuple[int, float] | None:
    smaller = dataclasses.replace(task, size=max(1, task.size // 4))
    try:
        return smaller.size, systems.memory(*_block(smaller))
    except DeeplimitsError:
        return None


def seconds(task: Task) -> float:
    """About how long the simulations of a task will take on one core; see `lab.cost`."""
    realised, place, chunk, sizes = _block(task)
    rounds = realised.rounds(**sizes)
    return systems.seconds(realised, place, chunk, sizes, rounds=rounds) * math.ceil(task.samples / chunk)


def memory(task: Task) -> float:
    """About how many bytes the program of a task needs at least; see `lab.cost`."""
    return systems.memory(*_block(task))


def numbers(task: Task) -> float:
    """How many bytes of results a task has."""
    *_, chunk, _ = _block(task)
    leaves = jax.tree.leaves(systems.shapes(*_block(task)))
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves) * task.samples / chunk


def _block(task: Task) -> tuple[Limit, np.ndarray, int, dict[str, Any]]:
    """What the compiled program is called with for the first systems of a task."""
    sizes, realised = task.realised
    return realised, np.array([task.seed, task.size, task.first]), chunk_size(task.limit, task.samples), sizes


def run(task: Task, bar: Any, stop: Event | None = None) -> Simulation:
    """Carry out a task, reporting to a progress bar, until `stop` is set."""
    limit, size, samples, seed = task.limit, task.size, task.samples, task.seed
    use_cache()
    realised, _, chunk, sizes = _block(task)
    pieces = []
    for first in range(0, samples, chunk):
        if stop is not None and stop.is_set():
            raise DeeplimitsError("interrupted")
        # All pieces have one shape and compile once; what the last one has too many is cut off.
        with aloud(type(limit).__name__), beforehand.in_memory(limit, size):
            piece = systems(realised, np.array([seed, size, task.first + first]), chunk, sizes)
            pieces.append(jax.tree.map(np.asarray, piece))
        bar.update(min(chunk, samples - first))
    results, stated = jax.tree.map(lambda *parts: np.concatenate(parts)[:samples], *pieces)
    for name, draws in results.items():
        if not np.all(np.isfinite(draws)):
            raise DeeplimitsError(
                f"{type(limit).__name__}: {name} is not finite in a system of size {size} at {values_of(realised)}; "
                "the system diverged, so take milder parameters or another size"
            )
    return Simulation(realised, sizes, seed, results, stated)


def chunk_size(limit: Limit, samples: int) -> int:
    """How many systems are simulated between two marks of the progress bar.

    A tenth of the usual number, so that other numbers of samples reuse the compiled program; a multiple of those that
    run side by side, because a remainder would be compiled as a second loop.
    """
    batch = limit.usual.batch
    chunk = min(samples, max(math.ceil(limit.usual.samples / CHUNKS), batch))
    return chunk if chunk <= batch else math.ceil(chunk / batch) * batch
