"""Records anew what the pins compare: `python -m tests.pins.make [KIND ...]`.

It is right where behaviour is meant to change, and the commit says why.
"""

import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.pins import pinned

KINDS = sorted(
    path.stem.removeprefix("test_")
    for path in Path(pinned.__file__).parent.glob("test_*.py")
)


def main(*kinds: str) -> None:
    """Write the files of some kinds, or of all."""
    for kind in kinds or KINDS:
        module = import_module(f"tests.pins.test_{kind}")
        with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", f"{folder}/state")
            pinned.write(kind, dict(module.every(Path(folder), patch)))


if __name__ == "__main__":
    main(*sys.argv[1:])
