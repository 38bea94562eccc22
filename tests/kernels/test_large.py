"""Kernel matrices on disk and regression with them, against the same in memory."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.errors import NotConverged, ParameterError
from deeplimits.models.architectures import FullyConnected
from deeplimits.theory.kernels import InfiniteWidth, kernel_ridge
from deeplimits.theory.kernels.large import GramFile, gram_file, gram_files, iterative_ridge, predict_by_blocks

WIDE = InfiniteWidth(FullyConnected(2, "relu", bias_variance=0.1))
X = np.random.default_rng(0).normal(size=(110, 4))
Y = np.sin(X[:, 0])


def bell(left, right):
    return np.exp(-((left[:, None] - right[None]) ** 2).sum(-1) / 4)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "gram.npy"


@pytest.mark.parametrize("block", [1, 32, 110, 1000])
def test_blocks_make_the_matrix(path, block):
    kernel = bell if block == 1 else WIDE.ntk
    found = gram_file(kernel, X[:40] if block == 1 else X, path, block=block)
    values = np.load(found.path)
    wanted = bell(X[:40], X[:40]) if block == 1 else np.asarray(WIDE.ntk(jnp.asarray(X)))
    np.testing.assert_allclose(values, wanted, rtol=1e-13)
    assert np.array_equal(values, values.T)
    v = np.random.default_rng(1).normal(size=(found.n, 3))
    np.testing.assert_allclose(found @ v, wanted @ v, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found @ v[:, 0], wanted @ v[:, 0], rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(found.rows(np.array([3, 1])), values[[3, 1]])


def test_strips_of_any_height(path, monkeypatch):
    found = gram_file(bell, X, path, block=32)
    v = np.random.default_rng(1).normal(size=110)
    for bytes_ in (1.0, 8 * 110 * 7, 1e9):
        monkeypatch.setattr(gram_files, "STRIP", bytes_)
        np.testing.assert_allclose(found @ v, bell(X, X) @ v, rtol=1e-11, atol=1e-12)


def test_an_executor_computes_the_same(path, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        found = gram_file(WIDE.nngp, X, path, block=32, executor=pool, in_flight=3)
    alone = gram_file(WIDE.nngp, X, tmp_path / "b.npy", block=32)
    assert np.array_equal(np.load(found.path), np.load(alone.path))


def test_the_kernel_of_a_network_goes_to_workers_of_dask():
    cloudpickle = pytest.importorskip("cloudpickle")
    assert pickle.loads(cloudpickle.dumps(WIDE.nngp))(X[:2], X[:2]).shape == (2, 2)
    # Without it too; and it is the same network, so that nothing is compiled anew for each block.
    again = pickle.loads(pickle.dumps(WIDE))
    assert jax.tree.structure(again) == jax.tree.structure(WIDE)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_blocks_are_tasks_of_dask(path, tmp_path):
    distributed = pytest.importorskip("distributed")
    alone = gram_file(WIDE.ntk, X, tmp_path / "b.npy", block=32)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        found = gram_file(WIDE.ntk, X, path, block=32, executor=client.get_executor(pure=False), in_flight=4)
        counts = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert np.array_equal(np.load(found.path), np.load(alone.path))
    assert len([count for count in counts.values() if count]) == 2


def test_what_was_interrupted_goes_on(path, monkeypatch):
    monkeypatch.setattr(gram_files, "TOGETHER", 2 * 32 * 32 * 8)
    calls = []

    def failing(left, right):
        calls.append(len(left))
        if len(calls) == 8:
            raise KeyboardInterrupt
        return bell(left, right)

    with pytest.raises(KeyboardInterrupt):
        gram_file(failing, X, path, block=32)
    with pytest.raises(ParameterError, match="is not complete"):
        GramFile(path)
    counted = []

    def counting(left, right):
        counted.append(len(left))
        return bell(left, right)

    steps = []
    found = gram_file(counting, X, path, block=32, told=lambda done, total: steps.append((done, total)))
    assert np.array_equal(np.load(found.path), bell(X, X))
    # One more call is the probe of the kernel.
    assert 4 <= len(counted) - 1 < 10
    assert steps[-1] == (10, 10)
    before = len(counted)
    gram_file(counting, X, path, block=32)
    assert len(counted) == before + 1


def test_a_process_that_is_killed_goes_on(path):
    code = f"""
import os, signal, numpy as np
from deeplimits.theory.kernels.large import gram_file, gram_files
gram_files.TOGETHER = 1.0
x = np.random.default_rng(0).normal(size=(110, 4))
def bell(left, right):
    return np.exp(-((left[:, None] - right[None]) ** 2).sum(-1) / 4)
told = lambda done, total: os.kill(os.getpid(), signal.SIGKILL) if done == 6 else None
gram_file(bell, x, {str(path)!r}, block=32, told=told)
"""
    done = subprocess.run([sys.executable, "-c", code], env=os.environ, check=False)
    assert done.returncode == -9
    counted = []
    found = gram_file(lambda a, b: counted.append(1) or bell(a, b), X, path, block=32)
    assert np.array_equal(np.load(found.path), bell(X, X))
    assert len(counted) - 1 == 10 - 6


def test_another_matrix_is_not_gone_on_with(path, tmp_path):
    gram_file(bell, X, path, block=32)
    for kernel, x, block in ((bell, X + 1e-9, 32), (bell, X, 16), (lambda a, b: 2 * bell(a, b), X, 32)):
        with pytest.raises(ParameterError, match="another kernel, other inputs, or other blocks"):
            gram_file(kernel, x, path, block=block)
    other = tmp_path / "mine.npy"
    np.save(other, np.eye(3))
    with pytest.raises(ParameterError, match="was not made here"):
        gram_file(bell, X, other)
    assert np.array_equal(np.load(other), np.eye(3))
    assert (GramFile(other) @ np.ones(3)).tolist() == [1.0, 1.0, 1.0]
    (tmp_path / "x.npy").write_bytes(b"nonsense")
    with pytest.raises(ParameterError, match=r"no \.npy file"):
        GramFile(tmp_path / "x.npy")
    np.save(tmp_path / "y.npy", np.ones((2, 3)))
    with pytest.raises(ParameterError, match="square matrix"):
        GramFile(tmp_path / "y.npy")
    with pytest.raises(ParameterError, match="no such file"):
        GramFile(tmp_path / "z.npy")


def test_bad_kernels_and_full_disks(path, tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match="kernel returned shape"):
        gram_file(lambda a, b: np.ones((2, 2)), X, tmp_path / "a.npy", block=32)
    with pytest.raises(NotConverged, match="inputs 0 and 0 is not finite"):
        gram_file(lambda a, b: np.nan * bell(a, b), X, tmp_path / "b.npy", block=32)
    for options, words in (({"block": 0}, "block = 0"), ({"dtype": "int8"}, "dtype"), ({"in_flight": 0}, "in_flight")):
        with pytest.raises(ParameterError, match=words):
            gram_file(bell, X, path, **options)
    with pytest.raises(ParameterError, match="no folder"):
        gram_file(bell, X, tmp_path / "no" / "x.npy")
    usual = os.statvfs(tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda _: type("Full", (), {"f_bavail": 1, "f_frsize": usual.f_frsize})())
    with pytest.raises(ParameterError, match=r"GB on disk, and .* are free"):
        gram_file(bell, X, path)


@pytest.mark.parametrize("rank", [0, 20, None])
@pytest.mark.parametrize("ridge", [1e-3, 0.1, 100.0])
def test_regression_against_a_factorization(path, ridge, rank):
    gram = gram_file(WIDE.ntk, X, path, block=50)
    targets = np.stack([Y, np.cos(X[:, 1]), np.zeros(110)], axis=1)
    found = iterative_ridge(gram, targets, ridge, rank=rank, tolerance=1e-9)
    kernel = np.load(path)
    exact = np.linalg.solve(kernel + ridge * np.eye(110), targets)
    off = np.linalg.norm(found.coefficients - exact, axis=0)
    assert np.all(off <= found.coefficient_error * 1.001 + 1e-11 * np.linalg.norm(exact))
    assert np.all(np.linalg.norm(kernel @ (found.coefficients - exact), axis=0) <= found.fitted_error * 1.001 + 1e-10)
    new = np.random.default_rng(2).normal(size=(30, 4))
    seen = predict_by_blocks(WIDE.ntk, new, X, found.coefficients, block=17)
    wanted = np.asarray(kernel_ridge(kernel, targets, ridge, cross=WIDE.ntk(new, X)))
    reach = np.sqrt(np.asarray(WIDE.ntk(new, diagonal=True)))[:, None] * found.prediction_error
    assert np.all(np.abs(seen - wanted) <= reach * 1.001 + 1e-9)
    assert found.products <= found.iterations + 1
    assert found.coefficients[:, 2].tolist() == [0.0] * 110


def test_half_of_the_digits_on_disk(path):
    gram = gram_file(bell, X, path, block=50, dtype="float32")
    assert path.stat().st_size < 4 * 110 * 110 + 1000
    found = iterative_ridge(gram, Y, 0.1)
    np.testing.assert_allclose(found.coefficients, np.linalg.solve(bell(X, X) + 0.1 * np.eye(110), Y), atol=1e-4)


def test_what_cannot_be_solved_is_said():
    kernel = bell(X, X)
    for arguments, words in (
        ((kernel, Y, 0.0), "ridge = 0"),
        ((kernel, Y, -1.0), "ridge = -1"),
        ((kernel, Y[:5], 1.0), r"targets has shape \(5,\)"),
        ((kernel, Y * np.nan, 1.0), "finite numbers"),
        ((kernel[:5], Y, 1.0), "matrix"),
    ):
        with pytest.raises(ParameterError, match=words):
            iterative_ridge(*arguments)
    with pytest.raises(NotConverged, match=r"residual is .* take a larger rank"):
        iterative_ridge(kernel, Y, 1e-8, rank=0, most=3)
    with pytest.raises(NotConverged, match="positive semidefinite"):
        iterative_ridge(-np.eye(5), np.ones(5), 0.1, rank=0)
