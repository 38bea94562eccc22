"""Lanes of other machines: dask.distributed, and jobs of Slurm through dask-jobqueue."""

import re
import signal
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from deeplimits.errors import ParameterError, did_you_mean, require
from deeplimits.lab.carrying import ENDED, carry_out_apart
from deeplimits.lab.lanes import Lanes
from deeplimits.lab.outcomes import Outcome
from deeplimits.lab.task import Task
from deeplimits.lab.workers import CEILING, ONE_THREAD, cores

PATIENCE = 20.0
"""Seconds to wait for a scheduler."""
LOOK = 1.0
"""Seconds between two looks at which workers there are."""
SLURM = ("queue", "account", "walltime", "memory", "jobs", "processes", "interface", "python", "extra")
"""What a Slurm job may be told."""
ALLOWED = re.compile(r"[\w./:=@,+ -]+")


class Dask(Lanes):
    """The workers of a dask cluster: `"local"` starts one on this machine, an address finds one that runs.

    Each worker has its tasks done by a process of the house beside it (see `carry_out_apart`).
    """

    def __init__(
        self,
        address: str = "local",
        workers: int | None = None,
        time_limit: float | None = None,
        ceiling: float = CEILING,
        cluster: Any = None,
    ):
        distributed = require("distributed", "sweep")
        self._cluster, self._limits = cluster, (time_limit, ceiling)
        if cluster is None and address == "local":
            self._cluster = distributed.LocalCluster(
                n_workers=workers or cores(), threads_per_worker=1, dashboard_address=None, memory_limit=None
            )
        self._address = address if self._cluster is None else self._cluster.scheduler_address
        try:
            self._client = distributed.Client(self._cluster or address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise ParameterError(
                f"dask = {address!r}: no scheduler answers there ({' '.join(str(error).split())[:200]}); start one "
                "with `dask scheduler` and workers with `dask worker ADDRESS`, or take --dask local"
            ) from None
        self._looked, self._addresses = -LOOK, []
        self._executors: dict[str, Any] = {}

    def count(self) -> int:
        self._look()
        return len(self._addresses)

    def _look(self) -> None:
        if time.monotonic() - self._looked < LOOK or self.lost():
            return
        self._looked = time.monotonic()
        try:
            self._addresses = sorted(self._client.nthreads())
        except Exception:  # `lost` says what it means
            self._addresses = []

    def submit(self, lane: int, tasks: Sequence[Task]) -> Future:
        address = self._addresses[lane % len(self._addresses)]
        if address not in self._executors:
            wish: dict[str, Any] = {"workers": [address], "allow_other_workers": True, "pure": False}
            self._executors[address] = self._client.get_executor(**wish)
        return self._executors[address].submit(carry_out_apart, list(tasks), *self._limits)

    def outcomes(self, future: Future) -> list[Outcome]:
        ended, found = future.result()
        if ended:
            raise ENDED[ended](found)
        return found

    def lost(self) -> str:
        if self._client.status == "running" and getattr(self._client, "scheduler", None) is not None:
            return ""
        return f"the dask scheduler at {self._address} is gone"

    def close(self, now: bool) -> None:
        for one in (self._client, self._cluster):
            if one is not None:
                one.close()


def slurm_options(text: str) -> dict[str, Any]:
    """Options of jobs as `queue=long,walltime=02:00:00,memory=4GB,jobs=20`.

    >>> slurm_options("queue=long,jobs=3")
    {'queue': 'long', 'jobs': 3}
    """
    found: dict[str, Any] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, equal, value = part.partition("=")
        if name not in SLURM or not equal:
            hint = did_you_mean(name, SLURM)
            raise ParameterError(f"slurm = {part!r} is not known; it takes {', '.join(SLURM)}, as queue=long{hint}")
        if not ALLOWED.fullmatch(value):
            raise ParameterError(f"slurm: {name} = {value!r} is not allowed; it must be a word, as in queue=long")
        found[name] = value
    for name in ("jobs", "processes"):
        if name in found:
            if not re.fullmatch("[0-9]{1,6}", found[name]) or not 1 <= int(found[name]) <= 100_000:
                raise ParameterError(
                    f"slurm: {name} = {found[name]!r} is not allowed; it must be a whole number from 1"
                )
            found[name] = int(found[name])
    return found


def slurm_cluster(text: str) -> Any:
    """A cluster that asks Slurm for jobs; none is asked for yet. `.job_script()` is what it will send."""
    # Its import takes the interrupt for itself, to leave without a word; it is given back.
    usual = signal.getsignal(signal.SIGINT)
    jobqueue = require("dask_jobqueue", "slurm")
    if signal.getsignal(signal.SIGINT) is not usual:
        signal.signal(signal.SIGINT, usual)
    given = slurm_options(text)
    processes = given.get("processes", 1)
    settings = {"queue": given.get("queue"), "account": given.get("account"), "interface": given.get("interface")}
    settings |= {"job_extra_directives": [given["extra"]]} if "extra" in given else {}
    settings |= {"python": given["python"]} if "python" in given else {}
    return jobqueue.SLURMCluster(
        cores=processes,
        processes=processes,
        memory=given.get("memory", "4GB"),
        walltime=given.get("walltime", "01:00:00"),
        job_script_prologue=[f"export {name}={count}" for name, count in ONE_THREAD.items()],
        scheduler_options={"dashboard_address": None},
        **settings,
    )


def slurm_lanes(text: str, time_limit: float | None, ceiling: float) -> Dask:
    """Lanes in jobs of Slurm, as many jobs as `jobs` says (1)."""
    cluster = slurm_cluster(text)
    cluster.scale(jobs=slurm_options(text).get("jobs", 1))
    return Dask("slurm", None, time_limit, ceiling, cluster)
