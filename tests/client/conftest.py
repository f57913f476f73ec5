"""What tests of a client's side share: its folder, its entropy, another server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curvote.base.entropy import SystemEntropy
from curvote.ledger.book import Ledger
from curvote.wire.signing import ServerKey
from tests.invited import Home
from tests.releasing import Client


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return the folder of a client who was invited to report."""
    return Home(tmp_path / "home", monkeypatch)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the counts of system words that are asked for, while they are."""
    counts: list[int] = []
    words = SystemEntropy.words

    def counting(self: SystemEntropy, n: int) -> Any:
        counts.append(n)
        return words(self, n)

    monkeypatch.setattr(SystemEntropy, "words", counting)
    return counts


@pytest.fixture
def other(tmp_path: Path) -> ServerKey:
    """Return the key of another server."""
    return ServerKey.at(tmp_path / "other.pem")


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """Return whoever has released nothing yet."""
    return Client(tmp_path)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Return a fresh ledger."""
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened
