"""A steward that has asked, and one hospital that was."""

from pathlib import Path

import pytest

from tests.exchange import Server
from tests.hospitals import Hospital, steward


@pytest.fixture
def server(tmp_path: Path) -> Server:
    """Return a steward that has published its task."""
    made = steward(tmp_path / "steward")
    made.run()
    return made


@pytest.fixture
def home(tmp_path: Path, server: Server) -> Hospital:
    """Return the folder of one hospital that was invited."""
    made = Hospital.at(tmp_path, "cleveland")
    made.init("--cap", "2", "--cap-delta", "1e-3")
    made.receive(server)
    return made
