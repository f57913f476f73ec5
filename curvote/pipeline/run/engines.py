"""Engines: joblib backends that compute blocks on this machine or on a cluster.

joblib is the one way to run blocks and its backends are the engines, so that a fourth
is a name here. Which engine runs, and how many workers, never changes a byte: a block
is a function of its name, and its files appear whole or not at all. That is also why a
block whose worker died is simply done again.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Event
from typing import Any, Final

from curvote.base.errors import UserError, did_you_mean
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import Runtime
from curvote.pipeline.plan.step import Step
from curvote.pipeline.run.transit import Transit, describe_places

Function = Callable[[Any], Any]
RESUME_HINT: Final = "Finished blocks are kept: the same command goes on from there."
MEMORY_HINT: Final = "Use fewer --workers or a smaller --block."
# How long word of why a worker of dask ended may take after its end, in seconds.
EVENT_SECONDS: Final = 3


@dataclass(frozen=True)
class WorkerCall:
    """The call of ``function`` on one numbered item inside a worker.

    ``parent`` is the process that the worker ends with. It is given where the run
    itself starts the workers and nobody else watches them, as with loky: a worker of
    dask has a supervisor of its own, perhaps on another machine.
    ``make_version_reader`` are those that the worker must have.
    """

    function: Function
    parent: int | None = None
    versions: tuple[tuple[str, str], ...] = ()

    def __call__(self, number: int, item: Any) -> tuple[int, Any]:
        """Return number and result; UserError: out of memory, other versions."""
        if self.parent is not None:
            exit_with_parent(self.parent)
        if self.versions and self.versions != local_versions():
            raise UserError(
                f"{worker_address()} joined the cluster with other versions, which"
                f" could give other bytes; end it. {RESUME_HINT}"
            )
        return number, within_memory(self.function, item)


def within_memory(function: Function, item: Any) -> Any:
    """Return the result of ``function``; out of memory: UserError."""
    try:
        return function(item)
    except MemoryError as error:
        words = (
            f"there is not enough memory for a block ({error}). {MEMORY_HINT}"
            f" {RESUME_HINT}"
        )
        raise UserError(words.replace(" ()", "")) from None


def worker_address() -> str:
    """Return the address of the worker of dask that calls this."""
    from distributed import get_worker

    return str(get_worker().address)


_watched: set[int] = set()


def exit_with_parent(parent: int) -> None:
    """End this process once its parent is not ``parent`` any more.

    A second call for the same parent does nothing.
    """
    if parent in _watched:
        return
    _watched.add(parent)
    threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def make_version_reader() -> Callable[[], dict[str, str]]:
    """Return a function that reads the versions on which numbers may depend.

    It is pickled with its text: a worker without this module can be asked, too.
    """

    def read_versions() -> dict[str, str]:
        import hashlib
        import os
        from importlib.metadata import PackageNotFoundError, version
        from importlib.util import find_spec
        from pathlib import Path  # this function is sent without its module

        names = ("numpy", "scipy", "scikit-learn", "scikit-fda", "pandas", "pyarrow")
        found_versions = {
            "python": f"{sys.version_info.major}.{sys.version_info.minor}"
        }
        for name in names:
            try:
                found_versions[name] = version(name)
            except PackageNotFoundError:
                found_versions[name] = "missing"
        package = find_spec("curvote")
        code = hashlib.sha256()
        for folder in (package.submodule_search_locations or ()) if package else ():
            # Of a checkout two rooms are links, of a wheel folders.
            walk = os.walk(folder, followlinks=True)
            files = (Path(top, name) for top, _, names in walk for name in names)
            for file in sorted(file for file in files if file.suffix == ".py"):
                code.update(file.relative_to(folder).as_posix().encode())
                code.update(file.read_bytes())
        found_versions["curvote"] = (
            f"of code {code.hexdigest()[:8]}" if package else "missing"
        )
        return found_versions

    return read_versions


@cache
def local_versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of this process, which are read once."""
    return tuple(make_version_reader()().items())


def check_workers(
    client: Any, address: str, root: Path | None, transit: Transit | None = None
) -> None:
    """Refuse workers with other versions, or without a way to get at tables.

    That is the object store, where tables pass through one; else the project's folder.
    """
    expected = local_versions()
    versions_by_worker = sorted(client.run(make_version_reader()).items())
    named = [(worker, names.get("curvote")) for worker, names in versions_by_worker]
    empty = [worker for worker, version in named if version == "missing"]
    if empty:
        raise UserError(
            f"{', '.join(empty[:3])} of the cluster {address}: curvote is not installed"
            " in the environment in which `dask worker` was started. Install the same"
            " versions as here there, then run again."
        )
    differ = [
        f"{worker}: {name} {worker_versions.get(name, 'missing')} (here"
        f" {expected_version})"
        for worker, worker_versions in versions_by_worker
        for name, expected_version in expected
        if worker_versions.get(name, "missing") != expected_version
    ]
    if differ:
        raise UserError(
            f"workers of the cluster {address} have other versions, which could give"
            f" other bytes: {'; '.join(differ[:3])}. Install the same there, then run"
            " again."
        )
    if transit is not None:
        transit.open()
        problems = sorted(client.run(transit.problem).items())
        refusals = [f"{worker}: {why.rstrip('.')}" for worker, why in problems if why]
        if refusals:
            raise UserError(
                f"workers of the cluster {address} cannot use the object store:"
                f" {'; '.join(refusals[:3])}. Keys and endpoint are those of the"
                " environment in which `dask worker` was started."
            )
    elif root is not None:
        with NamedTemporaryFile(dir=root, prefix=".curvote-") as probe:
            visible = client.run(os.path.isfile, probe.name)
        blind = sorted(worker for worker, sees in visible.items() if not sees)
        if blind:
            raise UserError(
                f"{', '.join(blind[:3])} of the cluster {address} do not see {root}."
                " Mount the project's folder there, under the same path, or name an"
                " object store: runtime.artifacts."
            )


def exceeded_memory(client: Any, worker: str) -> bool:
    """Return whether dask ended a worker for its memory."""
    end = time.monotonic() + EVENT_SECONDS
    while time.monotonic() < end:
        events = client.get_events("worker-restart-memory")
        if any(event["worker"] == worker for _, event in events):
            return True
        time.sleep(0.1)
    return False


BACKENDS: Final = {"local": "loky", "threads": "threading", "dask": "dask"}
# How often a block is begun before its stage is given up.
MAX_TRIES: Final = 5
_KILLED_OUTSIDE: Final = (
    "something ended them, most often the system for want of memory"
)
# How long a cluster may take to answer, and be without any worker, in seconds.
ANSWER_SECONDS: Final = 10
EMPTY_SECONDS: Final = 60
# How often it is asked who is there.
_WATCH_SECONDS: Final = 2
# A worker of ours keeps no results, so there is nothing to spill and no use in a pause.
_DASK_CONFIG: Final = {
    "distributed.scheduler.allowed-failures": MAX_TRIES - 1,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
}


class Engine:
    """A named backend with its workers; a context that ends what it started.

    ``workers`` are started here; at ``cluster``, the address of dask's scheduler, they
    are found, as many as there are. These must see the project at ``root`` under the
    same path, or else the object store at the address ``store``. ``memory`` is what a
    worker of dask may take, in bytes; None: the machine's memory divided by its
    processors. Where no number was ``workers_stated`` for, what is done sooner than
    workers start needs none. ``tell`` is told which workers leave a cluster. UserError:
    the engine is not known or not installed.
    """

    def __init__(
        self,
        name: str = "local",
        workers: int = 1,
        *,
        cluster: str | None = None,
        root: Path | None = None,
        store: str | None = None,
        memory: int | None = None,
        workers_stated: bool = True,
        tell: Callable[[str], object] = print,
    ) -> None:
        if name not in BACKENDS:
            hint = did_you_mean(name, BACKENDS)
            raise UserError(f"there is no engine {name!r}.{hint}")
        if name == "dask" and find_spec("distributed") is None:
            raise UserError(
                "engine dask is not installed: `pip install 'curvote[dask]'`, or use"
                " --engine local."
            )
        self.name, self.workers, self.workers_stated = name, workers, workers_stated
        self.cluster, self.root, self.memory = cluster, root, memory
        self.tell, self.is_empty = tell, False
        self._transit = Transit.below(store) if cluster and store else None
        self._ending = ExitStack()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def run(self, function: Function, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the result of ``function`` for each item, as they finish.

        ``function`` and the items are pickled. An item whose worker died is done again
        by another one; one that was begun `MAX_TRIES` times, or has not enough memory,
        is a UserError.
        """
        waiting = dict(enumerate(items))
        if self.name != "dask" and min(self.workers, len(waiting)) <= 1:
            yield from map(partial(within_memory, function), waiting.values())
            return
        starts: Counter[int] = Counter()
        while waiting:
            handed = _count_starts(list(waiting.items()), starts)
            try:
                with closing(self._parallel(function, handed)) as done:
                    for number, result in done:
                        del waiting[number]
                        yield result
            except BrokenProcessPool:
                if max((starts[number] for number in waiting), default=0) >= MAX_TRIES:
                    raise _worker_deaths(_KILLED_OUTSIDE) from None

    @property
    def transit(self) -> Transit | None:
        """The way of tables to the workers, which were checked; None: files are."""
        return self._transit and self._client and self._transit

    def local_engine(self) -> Engine:
        """Return an engine for what no cluster may compute that shares no folder."""
        if self._transit is None:
            return self
        return Engine("local", self.workers, root=self.root, workers_stated=False)

    def describe_places(self, steps: Iterable[Step]) -> Iterator[str]:
        """Yield which stages run where, if workers share nothing with this machine."""
        if self._transit:
            yield from describe_places(steps, f"the cluster {self.cluster}")

    def _parallel(self, function: Function, handed: Iterator[Any]) -> Any:
        """Yield (number of an item, its result) pairs."""
        if self.name != "dask":
            work = WorkerCall(function, os.getpid() if self.name == "local" else None)
            yield from _run_parallel(work, handed, self.workers, BACKENDS[self.name])
            return
        client = self._client
        expected = () if self.cluster is None else local_versions()
        work = WorkerCall(function, versions=expected)
        with _cluster_errors(client, self):
            yield from _run_parallel(work, handed, self.workers, _dask_backend(client))

    @cached_property
    def _client(self) -> Any:
        """The client of dask's workers: of those started here or of a cluster."""
        if self.cluster is None:
            return self._ending.enter_context(_start_cluster(self))
        if self._transit:
            self._ending.callback(self._transit.close)
        client = self._ending.enter_context(closing(_open_client(self.cluster)))
        check_workers(client, self.cluster, self.root, self._transit)
        ended = Event()
        watched = client, ended
        watch = threading.Thread(target=self._watch_workers, args=watched, daemon=True)
        watch.start()
        self._ending.callback(watch.join)
        self._ending.callback(ended.set)
        return client

    def _watch_workers(self, client: Any, ended: Event) -> None:
        """Name workers that leave; without any for long, close the client.

        Nothing would end a stage whose blocks nobody is there to compute.
        """
        present, since = set(client.nthreads()), time.monotonic()
        last = False
        while not last:
            last = ended.wait(_WATCH_SECONDS)
            try:
                now = set(client.nthreads())
            except (OSError, CancelledError):
                return  # the cluster itself went away, which the stage says
            for worker in sorted(present - now):
                self.tell(f"{worker} left the cluster; others do its blocks again")
            present, since = now, time.monotonic() if now else since
            if time.monotonic() - since > EMPTY_SECONDS:
                self.is_empty = True
                client.close()
                return


def choose_engine(
    project: Project,
    runtime: Runtime,
    name: str | None,
    workers: int | None,
    **further: Any,
) -> Engine:
    """Return the engine of the command line, or else of ``runtime``.

    Without a number of workers: one for each processor. ``further`` are Engine's.
    """
    name = name or runtime.engine
    stated_workers = workers or runtime.workers
    number = stated_workers or os.cpu_count() or 1
    cluster = runtime.cluster if name == "dask" else None
    workers_stated = stated_workers is not None or name != "local"
    return Engine(
        name,
        number,
        cluster=cluster,
        root=project.root,
        store=runtime.artifacts,
        workers_stated=workers_stated,
        **further,
    )


def _count_starts(items: Iterable[Any], starts: Counter[int]) -> Iterator[Any]:
    """Yield numbered items; count how often each was handed to a worker."""
    for number, item in items:
        starts[number] += 1
        yield number, item


def _run_parallel(
    work: WorkerCall, handed: Iterable[Any], workers: int, backend: Any
) -> Any:
    from joblib import Parallel, delayed

    # A block is large enough to be sent alone, and a dead worker loses no more.
    pool = Parallel(workers, backend, "generator_unordered", batch_size=1)
    return pool(delayed(work)(*pair) for pair in handed)


def _worker_deaths(why: str, count: int | None = None, last: str = "") -> UserError:
    named = f", the last one {last}" if last else ""
    return UserError(
        f"{count or MAX_TRIES} workers died at one block{named}: {why}. {MEMORY_HINT}"
        f" {RESUME_HINT}"
    )


# ------------------------------------------------------------------------------- dask
@contextmanager
def _start_cluster(engine: Engine) -> Iterator[Any]:
    """Start dask's workers as processes of this machine; end them afterwards."""
    import dask
    from distributed import Client, LocalCluster

    _silence_dask()
    scratch = engine.root and str(engine.root / "data" / "state" / "dask")
    with (
        dask.config.set(_DASK_CONFIG),
        LocalCluster(
            n_workers=engine.workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=engine.memory or "auto",
            host="127.0.0.1",
            protocol="tls",  # or others of this machine could give it work as us
            security=True,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
            local_directory=scratch,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _silence_dask() -> None:
    """Silence dask's log: worker failures are reported as errors."""
    for name in (*logging.root.manager.loggerDict, "distributed"):
        if name.partition(".")[0] == "distributed":  # each has a level of its own
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _open_client(address: str) -> Any:
    from distributed import Client

    _silence_dask()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions are compared below
            client = Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
    except OSError as error:  # a TimeoutError is one
        raise UserError(
            f"the cluster {address} does not answer within {ANSWER_SECONDS} s. Start"
            " it (`dask scheduler`), correct runtime.cluster in pipelines.yaml, or use"
            " --engine local."
        ) from error
    try:
        client.wait_for_workers(1, timeout=ANSWER_SECONDS)
    except TimeoutError:
        client.close()
        raise UserError(
            f"the cluster {address} has no worker. Start some: `dask worker {address}`."
        ) from None
    return client


@contextmanager
def _cluster_errors(client: Any, engine: Engine) -> Iterator[None]:
    from distributed import KilledWorker

    try:
        yield
    except KilledWorker as error:
        count, last = error.allowed_failures + 1, error.last_worker.address
        named = (count, last if engine.cluster else "")
        if exceeded_memory(client, last):
            most = f" of {engine.memory >> 20} MiB" if engine.memory else ""
            why = f"it takes more than their memory limit{most}"
            raise _worker_deaths(why, *named) from None
        raise _worker_deaths(_KILLED_OUTSIDE, *named) from None
    except (CancelledError, OSError) as error:
        if client.status == "running":
            raise
        words = "has had no worker for a while" if engine.is_empty else "went away"
        message = f"the cluster {engine.cluster} {words}. {RESUME_HINT}"
        raise UserError(message) from error


def _dask_backend(client: Any) -> Any:
    from joblib._dask import DaskDistributedBackend

    class BlockBackend(DaskDistributedBackend):
        def effective_n_jobs(self, n_jobs: int) -> int:
            """Let joblib send work to a single worker, too."""
            n_workers: int = super().effective_n_jobs(n_jobs)
            return max(2, n_workers)

        def submit(self, func: Any, callback: Any = None) -> Any:
            """Tell joblib of a task that dask gives up; it would wait for ever."""
            future = super().submit(func, callback)
            future.add_done_callback(partial(_report_failure, callback))
            return future

        async def _to_func_args(self, func: Any) -> Any:
            """Do the work and no more: no client of its own in each worker."""
            _, tasks = await super()._to_func_args(func)
            return _call_tasks, tasks

    return BlockBackend(client=client)


def _report_failure(callback: Any, future: Any) -> None:
    if future.exception() is not None:
        callback(future.exception())


def _call_tasks(tasks: Any) -> list[Any]:
    return [work(*args, **named) for work, args, named in tasks]
