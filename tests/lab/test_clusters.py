"""Sweeps on dask clusters and in Slurm's jobs: the same results, and a sentence when the scheduler is gone."""

import contextlib
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import deeplimits as dl
import sweep_limits
from deeplimits.errors import ParameterError
from deeplimits.lab.clusters import Dask, slurm_cluster, slurm_options
from deeplimits.lab.driver import SweepStopped
from house import run_command
from lab.test_sweep import bits, identical
from lab.test_sweep_faults import count, rows, waited_for
from sweep_limits import Coin, Slow

distributed = pytest.importorskip("distributed")
# Connections are closed by the collector of garbage where a cluster ends in a hurry.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
]
RUN = {"level": [0.0, 1.0], "sizes": (4,), "samples": 48, "per_task": 16, "progress": False}


def test_a_cluster_in_this_process():
    """Two workers of dask as threads, each with a process of the house beside it."""
    here = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    found = dl.sweep(Coin, executor=Dask("local", cluster=here), **RUN)
    assert identical(found, dl.sweep(Coin, workers=0, **RUN))


@pytest.mark.slow
def test_a_local_cluster_processes_and_one_after_the_other_give_the_same(tmp_path):
    """600 tasks each way, identical to the last bit."""
    paths = [tmp_path / f"{name}.db" for name in ("dask", "processes", "serial")]
    lanes = Dask("local", 2)
    assert lanes.count() == 2
    sweep_limits.count_of_tasks(paths[0], 600, executor=lanes)
    sweep_limits.count_of_tasks(paths[1], 600, workers=2)
    sweep_limits.count_of_tasks(paths[2], 600, workers=1)
    assert len(rows(paths[0])) == 600
    assert bits(paths[0]) == bits(paths[1]) == bits(paths[2])


@contextlib.contextmanager
def cluster(workers):
    """A scheduler and workers as one starts them on a command line."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
    quiet = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "dask"]
    port = address.rpartition(":")[2]
    scheduler = subprocess.Popen([*command, "scheduler", "--port", port, "--no-dashboard"], **quiet)
    options = ["--nthreads", "1", "--no-dashboard", "--death-timeout", "60"]
    started = [subprocess.Popen([*command, "worker", address, *options], **quiet) for _ in range(workers)]
    try:
        yield address, scheduler, started
    finally:
        for process in (*started, scheduler):
            process.terminate()
        for process in (*started, scheduler):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


@contextlib.contextmanager
def killed(kill, path):
    """Something killed as soon as three results are kept."""

    def wait():
        waited_for(lambda: count(path) >= 3)
        kill()

    killer = threading.Thread(target=wait)
    killer.start()
    yield
    killer.join()


@pytest.mark.slow
def test_a_scheduler_that_is_killed(tmp_path):
    path, levels = tmp_path / "a.db", np.linspace(0.0, 1.0, 60)
    with cluster(1) as (address, scheduler, _):
        lanes = Dask(address)
        waited_for(lambda: lanes.count() == 1)
        gone = r"scheduler at .* is gone; \d+ of 60 results are in .* goes on"
        with killed(scheduler.kill, path), pytest.raises(SweepStopped, match=gone):
            dl.sweep(Slow, level=levels, store=path, executor=lanes, samples=8, progress=False)
    before = rows(path)
    assert 3 <= len(before) < 60
    assert len(dl.sweep(Slow, level=levels, store=path, workers=2, samples=8, progress=False)) == 60
    assert all(rows(path)[key] == row for key, row in before.items())


@pytest.mark.slow
def test_a_worker_of_a_cluster_that_is_killed(tmp_path):
    """Its tasks go to the other one."""
    path, levels = tmp_path / "a.db", np.linspace(0.0, 1.0, 24)
    with cluster(2) as (address, _, _):
        lanes = Dask(address)
        waited_for(lambda: lanes.count() == 2)
        victim = next(iter(lanes._client.run(os.getpid).values()))
        with killed(lambda: os.kill(victim, signal.SIGKILL), path):
            found = dl.sweep(Slow, level=levels, store=path, executor=lanes, samples=8, progress=False)
    assert len(found) == len(rows(path)) == 24


def test_no_scheduler_is_one_sentence(capsys, monkeypatch):
    monkeypatch.setattr("deeplimits.lab.clusters.PATIENCE", 0.5)
    began = time.monotonic()
    with pytest.raises(ParameterError, match="no scheduler answers there"):
        Dask("tcp://127.0.0.1:1")
    with pytest.raises(ParameterError, match="no scheduler answers there"):
        Dask("nonsense://")
    assert time.monotonic() - began < 30


def test_the_script_of_a_slurm_job(capsys):
    if importlib.util.find_spec("dask_jobqueue") is None:
        pytest.skip("dask-jobqueue is not installed")
    usual = signal.getsignal(signal.SIGINT)
    with slurm_cluster("queue=long,walltime=02:30:00,memory=6GB,processes=2,account=theory,jobs=5") as made:
        script = made.job_script()
    assert signal.getsignal(signal.SIGINT) is usual
    for line in (
        "#SBATCH -p long",
        "#SBATCH -A theory",
        "#SBATCH --cpus-per-task=2",
        "#SBATCH -t 02:30:00",
        "export OMP_NUM_THREADS=1",
        "export DEEPLIMITS_THREADS=1",
    ):
        assert line in script
    assert re.search(r"--nworkers 2\b", script)
    assert re.search(r"^#SBATCH --mem=6G", script, re.MULTILINE)
    asked = ("knn-bias-variance", "--neighbours", "3,5", "--slurm", "queue=long,jobs=3")
    code, out, _ = run_command(capsys, "sweep", *asked, "--estimate")
    assert code == 0
    assert "#SBATCH -p long" in out
    assert slurm_options("queue=long, jobs=3,") == {"queue": "long", "jobs": 3}
    for bad in ("queue", "queue=", "jobs=0", "jobs=x", "jobs=1e3", "nodes=3", "queue=$(rm -rf)", "queue=a\nb"):
        with pytest.raises(ParameterError, match="slurm"):
            slurm_options(bad)
