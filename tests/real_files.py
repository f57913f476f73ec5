"""The published files themselves, where the mirror folder holds them."""

import os
from pathlib import Path

import pytest

from curvote.data import raw_files

MIRROR = os.environ.get(raw_files.MIRROR)
needs_mirror = pytest.mark.skipif(
    not MIRROR, reason=f"needs the real files: {raw_files.MIRROR} is not set"
)


def real(*names: str) -> dict[str, Path]:
    """Return the places of published files by their names."""
    known = raw_files.catalogue()
    return {
        name: next(Path(str(MIRROR)).glob(f"{known[name].file}*")) for name in names
    }
