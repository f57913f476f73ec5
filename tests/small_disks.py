"""Small disks of their own, for tests of what is full; only root may mount them."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

Disk = Callable[[Path, str], Path]
MARKS = [
    pytest.mark.faults,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk"),
]


def mount(*words: str | Path) -> None:
    """Mount, or say why not."""
    done = subprocess.run(
        ["mount", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")


@pytest.fixture
def disk() -> Iterator[Disk]:
    """Return what mounts an empty disk of a size; all are gone at the end."""
    with ExitStack() as undo:

        def made(folder: Path, size: str) -> Path:
            folder.mkdir(parents=True, exist_ok=True)
            mount("-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", folder)
            undo.callback(subprocess.run, ["umount", "-l", folder], check=False)
            return folder

        yield made


def again(folder: Path, how: str) -> None:
    """Change a mounted disk: its size, or whether it can be written."""
    mount("-o", f"remount,{how}", folder)
