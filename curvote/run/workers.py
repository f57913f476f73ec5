"""What holds inside a worker, whichever engine it belongs to.

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

from curvote.errors import UserError

Function = Callable[[Any], Any]
GOES_ON: Final = "Finished blocks are kept: the same command goes on from there."
LESS: Final = "Use fewer --workers or a smaller --block."
# How long word of why a worker of dask ended may take after its end, in seconds.
TOLD: Final = 3


@dataclass(frozen=True)
class Work:
    """What a worker does with one item: ``function``, beside its number.

    ``parent`` is the process that the worker ends with. It is given where the run
    itself starts the workers and nobody else watches them, as with loky: a worker of
    dask has a supervisor of its own, perhaps on another machine. ``versions`` are those
    that the worker must have.
    """

    function: Function
    parent: int | None = None
    versions: tuple[tuple[str, str], ...] = ()

    def __call__(self, number: int, item: Any) -> tuple[int, Any]:
        """Return the number and the result. UserError: memory, or other versions."""
        if self.parent is not None:
            end_with(self.parent)
        if self.versions and self.versions != own_versions():
            raise UserError(
                "a worker that joined the cluster has other versions, which could give"
                f" other bytes; end it. {GOES_ON}"
            )
        return number, within_memory(self.function, item)


def within_memory(function: Function, item: Any) -> Any:
    """Return what ``function`` gives; without enough memory, a UserError."""
    try:
        return function(item)
    except MemoryError as error:
        words = f"there is not enough memory for a block ({error}). {LESS} {GOES_ON}"
        raise UserError(words.replace(" ()", "")) from None


_watched: set[int] = set()


def end_with(parent: int) -> None:
    """End this process when its parent is not ``parent`` any more, even by kill -9.

    A second call for the same parent does nothing.
    """
    if parent in _watched:
        return
    _watched.add(parent)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


_changing = threading.Lock()
_inside: list[Any] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS and OpenMP use one thread: reductions must not depend on their number.

    Several threads of a process may be inside at once. BLAS has one limit for all of
    them, so that the last to leave restores it; OpenMP has one for each.
    """
    with _changing:
        _inside.append(_libraries(len(sys.modules)).limit(limits=1))
    try:
        yield
    finally:
        with _changing:
            own = _inside.pop()  # the limits that were found last are restored first
            own.restore_original_limits()


@lru_cache(maxsize=1)
def _libraries(_modules: int) -> ThreadpoolController:
    """Return the libraries that have threads; only an import can bring another one.

    To look for them takes longer than a small block.
    """
    return ThreadpoolController()


def versions() -> Callable[[], dict[str, str]]:
    """Return a function that tells the versions which numbers may depend on.

    It is pickled with its text: a worker without this module can be asked, too.
    """

    def told() -> dict[str, str]:
        import hashlib
        import sys
        from importlib.metadata import PackageNotFoundError, version
        from importlib.util import find_spec
        from pathlib import Path  # this function is sent without its module

        names = ("numpy", "scipy", "scikit-learn", "scikit-fda", "pandas", "pyarrow")
        found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
        for name in names:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = "missing"
        package = find_spec("curvote")
        code = hashlib.sha256()
        for folder in (package.submodule_search_locations or ()) if package else ():
            for file in sorted(Path(folder).rglob("*.py")):
                code.update(file.relative_to(folder).as_posix().encode())
                code.update(file.read_bytes())
        found["curvote"] = f"of code {code.hexdigest()[:8]}" if package else "missing"
        return found

    return told


@cache
def own_versions() -> tuple[tuple[str, str], ...]:
    """Return those of this process, which are read once."""
    return tuple(versions()().items())


def refuse_others(client: Any, address: str, root: Path | None) -> None:
    """Refuse workers that might give other bytes, or that do not see the project."""
    here = own_versions()
    every = sorted(client.run(versions()).items())
    empty = [w for w, there in every if there.get("curvote") == "missing"]
    if empty:
        raise UserError(
            f"{', '.join(empty[:3])} of the cluster {address}: curvote is not installed"
            " in the environment in which `dask worker` was started. Install the same"
            " versions as here there, then run again."
        )
    differ = [
        f"{worker}: {name} {there.get(name, 'missing')} (here {own})"
        for worker, there in every
        for name, own in here
        if there.get(name, "missing") != own
    ]
    if differ:
        raise UserError(
            f"workers of the cluster {address} have other versions, which could give"
            f" other bytes: {'; '.join(differ[:3])}. Install the same there, then run"
            " again."
        )
    if root is not None:
        with NamedTemporaryFile(dir=root, prefix=".curvote-") as seen:
            found = client.run(os.path.isfile, seen.name)
        blind = sorted(worker for worker, sees in found.items() if not sees)
        if blind:
            raise UserError(
                f"{', '.join(blind[:3])} of the cluster {address} do not see {root}."
                " Mount the project's folder there, under the same path."
            )


def took_too_much(client: Any, worker: str) -> bool:
    """Say whether dask ended a worker for its memory: that is told beside its end."""
    end = time.monotonic() + TOLD
    while time.monotonic() < end:
        told = client.get_events("worker-restart-memory")
        if any(event["worker"] == worker for _, event in told):
            return True
        time.sleep(0.1)
    return False
