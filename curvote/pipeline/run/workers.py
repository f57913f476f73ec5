"""Work inside a worker process: its end, its single thread, memory and versions.

It ends with the run that started it, computes on one thread, and says in words that it
has not enough memory.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

from threadpoolctl import ThreadpoolController

from curvote.base.errors import UserError

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
                "a worker that joined the cluster has other versions, which could give"
                f" other bytes; end it. {RESUME_HINT}"
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


_changing = threading.Lock()
_inside: list[Any] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread, as reductions depend on it.

    Several threads of a process may be inside at once. BLAS has one limit for all of
    them, so that the last to leave restores it; OpenMP has one for each.
    """
    with _changing:
        _inside.append(_thread_pools(len(sys.modules)).limit(limits=1))
    try:
        yield
    finally:
        with _changing:
            limits = _inside.pop()  # the limits that were found last are restored first
            limits.restore_original_limits()


@lru_cache(maxsize=1)
def _thread_pools(_modules: int) -> ThreadpoolController:
    """Return the controller of the loaded libraries that have threads.

    To look for them takes longer than a small block.
    """
    return ThreadpoolController()


def make_version_reader() -> Callable[[], dict[str, str]]:
    """Return a function that reads the versions on which numbers may depend.

    It is pickled with its text: a worker without this module can be asked, too.
    """

    def read_versions() -> dict[str, str]:
        import hashlib
        import sys
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
            for file in sorted(Path(folder).rglob("*.py")):
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


def check_workers(client: Any, address: str, root: Path | None) -> None:
    """Refuse workers with other versions, or without the project's folder."""
    expected = local_versions()
    versions_by_worker = sorted(client.run(make_version_reader()).items())
    empty = [
        w
        for w, worker_versions in versions_by_worker
        if worker_versions.get("curvote") == "missing"
    ]
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
    if root is not None:
        with NamedTemporaryFile(dir=root, prefix=".curvote-") as probe:
            visible = client.run(os.path.isfile, probe.name)
        blind = sorted(worker for worker, sees in visible.items() if not sees)
        if blind:
            raise UserError(
                f"{', '.join(blind[:3])} of the cluster {address} do not see {root}."
                " Mount the project's folder there, under the same path."
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
