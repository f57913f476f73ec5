"""A cluster of dask on this machine, whose workers may see no folder of a project."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.processes import until

PATHS = os.pathsep.join(sys.path)
_APART = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "-r", "--mount"]
_HIDE = 'mount -t tmpfs -o mode=700 none "$0" && exec "$@"'


@contextmanager
def started(
    *words: str, before: Sequence[str] = (), **env: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program of dask's, through ``before``; end it and what it started."""
    process = subprocess.Popen(
        [
            *before,
            *[sys.executable, "-m", f"distributed.cli.dask_{words[0]}", *words[1:]],
        ],
        cwd="/",  # or this folder's curvote would come first
        env=os.environ | env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        number: int = probe.getsockname()[1]
        return number


@contextmanager
def scheduler(
    host: str = "127.0.0.1", **env: str
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a scheduler without workers; yield its address and process."""
    port = free_port(host)
    words = ("--host", host, "--port", str(port), "--no-dashboard")
    with started("scheduler", *words, **env) as process:
        assert until(lambda: _listens(host, port), 60)
        yield f"tcp://{host}:{port}", process


def _listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


@contextmanager
def worker(
    address: str, nanny: str = "--no-nanny", before: Sequence[str] = (), **env: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker, which may have a nanny; two threads, as dask starts them."""
    words = ("worker", address, "--nthreads", "2", "--no-dashboard", nanny)
    with started(*words, before=before, **env) as made:
        yield made


@cache
def can_hide() -> bool:
    """Say whether a process may have mounts of its own here."""
    done = subprocess.run([*_APART, "true"], capture_output=True, check=False)
    return done.returncode == 0


def without(folder: Path) -> list[str]:
    """Return what starts a command that finds ``folder`` empty, if that can be."""
    return [*_APART, "sh", "-c", _HIDE, str(folder)] if can_hide() else []
