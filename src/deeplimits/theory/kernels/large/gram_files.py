"""Gram matrices in a file, made block by block, so that an interrupted run goes on where it was."""

import hashlib
import inspect
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from deeplimits.errors import DeeplimitsError, NotConverged, ParameterError
from deeplimits.numerics.arguments import array, whole

BLOCK = 2048
"""Rows and columns of a block: 34 MB in double precision."""
STRIP = 64e6
"""Bytes of rows that a product reads at once."""
TOGETHER = 512e6
"""Bytes of blocks that are written before the file is made safe and they are noted as done."""
DTYPES = ("float64", "float32")
PROBES = 4

Kernel = Callable[..., Any]


class GramFile:
    """A symmetric matrix (n, n) in an .npy file, of which products read one half, a strip of rows at a time.

    `numpy.load(path, mmap_mode="r")` opens it too.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        if not self.path.is_file():
            raise ParameterError(f"path = {str(path)!r}: there is no such file; `gram_file` makes one")
        try:
            with self.path.open("rb") as file:
                major, _ = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
                shape, fortran, self.dtype = read(file)
                self._offset = file.tell()
        except (ValueError, EOFError, OSError) as error:
            raise ParameterError(f"path = {str(path)!r} is no .npy file ({error})") from None
        square = len(shape) == 2 and shape[0] == shape[1] and shape[0] > 0
        if not square or fortran or str(self.dtype) not in DTYPES:
            raise ParameterError(f"path = {str(path)!r} has shape {shape} and type {self.dtype}; it must be a square "
                                 f"matrix of {' or '.join(DTYPES)} in rows")  # fmt: skip
        if self.path.stat().st_size < self._offset + shape[0] ** 2 * self.dtype.itemsize:
            raise ParameterError(f"path = {str(path)!r} is shorter than its shape {shape} says")
        if _notes(self.path).exists():
            raise ParameterError(f"path = {str(path)!r} is not complete; call `gram_file` again, which goes on with it")
        self.n: int = shape[0]
        self.products = 0
        """How many products with the matrix have been made."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.n, self.n

    def rows(self, indices: np.ndarray) -> Float[np.ndarray, "r n"]:
        """Some rows, in double precision."""
        found = np.empty((len(indices), self.n))
        with self.path.open("rb", buffering=0) as file:
            for place, index in enumerate(indices):
                found[place] = self._row(file.fileno(), int(index), 0)
        return found

    def _row(self, file: int, row: int, first: int) -> np.ndarray:
        size = self.dtype.itemsize
        count = (self.n - first) * size
        raw = os.pread(file, count, self._offset + (row * self.n + first) * size)
        while len(raw) < count:  # a read may end early
            more = os.pread(file, count - len(raw), self._offset + (row * self.n + first) * size + len(raw))
            if not more:
                raise DeeplimitsError(f"{self.path} became shorter while it was read; make it again")
            raw += more
        return np.frombuffer(raw, self.dtype)

    def __matmul__(self, vectors: np.ndarray) -> np.ndarray:
        """K v for v of shape (n,) or (n, k): half of the file is read, the rest is its mirror image."""
        v = np.asarray(vectors, dtype=float)
        if v.ndim not in (1, 2) or v.shape[0] != self.n:
            raise ParameterError(f"vectors has shape {v.shape}; it must have {self.n} rows")
        self.products += 1
        columns = v.reshape(self.n, -1)
        found = np.zeros_like(columns)
        height = max(1, int(STRIP / (8 * self.n)))
        with self.path.open("rb", buffering=0) as file:
            for i in range(0, self.n, height):
                end = min(i + height, self.n)
                strip = np.empty((end - i, self.n - i))
                for row in range(i, end):
                    strip[row - i] = self._row(file.fileno(), row, i)
                own, right = strip[:, : end - i], strip[:, end - i :]
                # (K v)_I = K_II v_I + K_IJ v_J and (K v)_J += K_JI v_I with J right of I
                found[i:end] += own @ columns[i:end] + right @ columns[end:]
                found[end:] += right.T @ columns[i:end]
        return found.reshape(v.shape)


def gram_file(
    kernel: Kernel,
    x: Float[np.ndarray, "n d"],
    path: str | Path,
    *,
    block: int = BLOCK,
    dtype: str = "float64",
    executor: Executor | None = None,
    in_flight: int = 4,
    told: Callable[[int, int], None] | None = None,
) -> GramFile:
    r"""The matrix K(x_i, x_j) in a file, block by block; called again, it does only the blocks that are missing.

    Setting     `kernel(a, b)` gives the block of the rows a and b; called with a alone, where it can be, that of a with
                itself. x (n, d); block (i, j) and its mirror image are written together, so that K is symmetric to the
                last bit
    Memory      a few blocks, whatever n; n² numbers on disk
    References  rasmussen2006 Sec 2.2

    Blocks are computed here, or as tasks of any `executor` (processes, threads, `client.get_executor()` of dask), of
    which `in_flight` are out at once; this process writes. Which blocks are safe on disk stands in a file beside it,
    with what tells this matrix from another: the inputs, and a few values of the kernel. `told(done, all)` is called
    after each block.

    >>> import tempfile
    >>> from deeplimits.models.architectures import FullyConnected
    >>> from deeplimits.theory.kernels import InfiniteWidth
    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> found = gram_file(InfiniteWidth(FullyConnected(1, "relu")).nngp, x, tempfile.mkdtemp() + "/gram.npy", block=20)
    >>> found.shape, np.load(found.path).shape
    ((50, 50), (50, 50))
    """
    path = Path(path)
    x = np.asarray(array("x", x, ("n", "d"), why="one input in each row"))
    whole("block", block, 1)
    whole("in_flight", in_flight, 1)
    if dtype not in DTYPES:
        raise ParameterError(f"dtype = {dtype!r} is not allowed; it must be {' or '.join(DTYPES)}")
    if not path.parent.is_dir():
        raise ParameterError(f"path = {str(path)!r} cannot be made: there is no folder {path.parent}")
    about = _about(kernel, x, block, dtype)
    done = _begun(path, about)
    corners = range(0, x.shape[0], block)
    everything = [(i, j) for i in corners for j in corners if j >= i]
    missing = [corner for corner in everything if corner not in done]
    if missing:
        _require_room(path, x.shape[0], dtype)
        matrix = np.lib.format.open_memmap(path, "r+")
        count = len(everything) - len(missing)
        size, since = 0, []
        for (i, j), values in _computed(kernel, x, block, missing, executor, in_flight):
            values = _checked(values, i, j, block, x.shape[0])
            if i == j:
                # The upper half is copied to the lower: the matrix is symmetric to the last bit.
                values = np.triu(values) + np.triu(values, 1).T
            matrix[i : i + block, j : j + block] = values
            if i != j:
                matrix[j : j + block, i : i + block] = values.T
            count, size = count + 1, size + 2 * values.nbytes
            since.append((i, j))
            if size > TOGETHER or count == len(everything):
                # What is noted as done must be on the disk before.
                matrix.flush()
                _note(path, since)
                size, since = 0, []
            if told is not None:
                told(count, len(everything))
        del matrix
    _notes(path).unlink(missing_ok=True)
    _mark(path).write_text(json.dumps(about))
    return GramFile(path)


def _computed(
    kernel: Kernel,
    x: np.ndarray,
    block: int,
    corners: list[tuple[int, int]],
    executor: Executor | None,
    in_flight: int,
) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
    """Blocks as they come, never more than a few of them in memory."""
    if executor is None:
        for i, j in corners:
            yield (i, j), _block(kernel, x[i : i + block], None if i == j else x[j : j + block])
        return
    waiting = iter(corners)
    flying: dict[Future, tuple[int, int]] = {}
    try:
        while True:
            while len(flying) < in_flight and (corner := next(waiting, None)) is not None:
                i, j = corner
                other = None if i == j else x[j : j + block]
                flying[executor.submit(_block, kernel, x[i : i + block], other)] = corner
            if not flying:
                return
            ready, _ = wait(flying, return_when=FIRST_COMPLETED)
            for future in ready:
                yield flying.pop(future), future.result()
    finally:
        for future in flying:
            future.cancel()


def _block(kernel: Kernel, left: np.ndarray, right: np.ndarray | None) -> np.ndarray:
    """What a worker does."""
    if right is None:
        return np.asarray(kernel(left) if _takes_one(kernel) else kernel(left, left))
    return np.asarray(kernel(left, right))


def _takes_one(kernel: Kernel) -> bool:
    """Whether a kernel of one argument is that of the inputs with themselves, whose diagonal may be exact."""
    try:
        second = list(inspect.signature(kernel).parameters.values())[1]
    except (TypeError, ValueError, IndexError):
        return False
    return second.default is None


def _checked(values: np.ndarray, i: int, j: int, block: int, n: int) -> np.ndarray:
    wanted = (min(block, n - i), min(block, n - j))
    if values.shape != wanted:
        raise ParameterError(f"kernel returned shape {values.shape} for {wanted[0]} and {wanted[1]} inputs; it must be "
                             f"{wanted}, a row for each of the first")  # fmt: skip
    if not np.all(np.isfinite(values)):
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise NotConverged(f"the kernel of inputs {i + row} and {j + column} is not finite; look at these inputs")
    return values


def _about(kernel: Kernel, x: np.ndarray, block: int, dtype: str) -> dict[str, Any]:
    """What tells one matrix from another: inputs, form, and a few values."""
    few = x[np.unique(np.linspace(0, x.shape[0] - 1, PROBES).astype(int))]
    values = _block(kernel, few, None)
    digest = hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()
    return {"inputs": digest, "shape": list(x.shape), "block": block, "dtype": dtype, "values": values.tolist()}


def _begun(path: Path, about: dict[str, Any]) -> set[tuple[int, int]]:
    """The blocks that are there; an empty file of the right size where nothing is."""
    n = about["shape"][0]
    notes = _notes(path)
    if path.exists() and _mark(path).exists() and not notes.exists():
        _require_same(path, _mark(path).read_text(), about)
        return {(i, j) for i in range(0, n, about["block"]) for j in range(i, n, about["block"])}
    if path.exists() and not notes.exists():
        raise ParameterError(f"path = {str(path)!r} is there already and was not made here; give another path")
    if notes.exists() and path.exists():
        first, *lines = notes.read_text().splitlines() or [""]
        _require_same(path, first, about)
        # The last line may have been cut off in the middle.
        pairs = [line.split() for line in lines if line.endswith(".")]
        return {(int(i), int(j)) for i, j, _ in (pair for pair in pairs if len(pair) == 3)}
    _require_room(path, n, about["dtype"])
    np.lib.format.open_memmap(path, "w+", np.dtype(about["dtype"]), (n, n)).flush()
    notes.write_text(json.dumps(about) + "\n")
    return set()


def _require_same(path: Path, text: str, about: dict[str, Any]) -> None:
    try:
        found = json.loads(text)
        values = np.asarray(found.pop("values"), dtype=float)
        wanted = np.asarray(about["values"])
        same = found == {key: about[key] for key in about if key != "values"}
        same = same and values.shape == wanted.shape and bool(np.allclose(values, wanted, rtol=1e-9, atol=1e-12))
    except (ValueError, AttributeError, KeyError, TypeError):
        same = False
    if not same:
        raise ParameterError(
            f"path = {str(path)!r} holds the matrix of another kernel, other inputs, or other blocks; give another "
            f"path, or delete it with {_notes(path).name} and {_mark(path).name}"
        )


def _require_room(path: Path, n: int, dtype: str) -> None:
    """Refuse what the disk cannot hold; a file of holes would fail in the middle, with a signal and no sentence."""
    there = path.stat().st_blocks * 512 if path.exists() else 0
    needed = n * n * np.dtype(dtype).itemsize - there
    free = os.statvfs(path.parent).f_bavail * os.statvfs(path.parent).f_frsize
    if needed > 0.98 * free:
        raise ParameterError(
            f"{n} inputs need {needed / 1e9:.3g} GB on disk, and {free / 1e9:.3g} are free at {path.parent}; take "
            "dtype='float32', fewer inputs, or another disk"
        )


def _notes(path: Path) -> Path:
    """Which blocks are done, while some are missing."""
    return path.with_name(path.name + ".progress")


def _mark(path: Path) -> Path:
    """What a complete matrix is of."""
    return path.with_name(path.name + ".about.json")


def _note(path: Path, corners: list[tuple[int, int]]) -> None:
    with _notes(path).open("a") as file:
        file.writelines(f"{i} {j} .\n" for i, j in corners)
        file.flush()
        os.fsync(file.fileno())
