"""Memory instead of the disk, for what audited commands write."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest

MEMORY = "/dev/shm"


@pytest.fixture(scope="module", autouse=True)
def _memory() -> Iterator[None]:
    """Half of the time of a command's call is a wait for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        if os.access(MEMORY, os.W_OK):
            patch.setattr(tempfile, "tempdir", MEMORY)
        yield
