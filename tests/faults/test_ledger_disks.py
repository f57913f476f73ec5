"""A ledger on a disk that is really full: nothing is written, with room it goes on."""

from pathlib import Path

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.ledger.book import Ledger, back_up_ledger
from tests.ledgers import filled, reserve, says
from tests.small_disks import MARKS, Disk, again, disk

__all__ = ["disk"]
pytestmark = MARKS


@pytest.fixture
def small(tmp_path: Path, disk: Disk) -> Path:
    """Return a disk on which a ledger of a few clients has room, and no large one."""
    return disk(tmp_path / "disk", "3m")


def test_a_full_disk_under_the_ledger(small: Path) -> None:
    """In the middle of a reservation: one line; what was said before stays."""
    path = filled(small / "ledger.sqlite")
    before = says(path)
    ids = np.arange(10_000, 110_000)
    for _ in range(2):
        with Ledger(path) as ledger, pytest.raises(UserError) as raised:
            reserve(ledger, "large", ids)
        assert "no space is left on its disk" in str(raised.value)
        assert len(str(raised.value).splitlines()) == 1
        assert says(path) == before
    again(small, "size=100m")
    with Ledger(path) as ledger:
        reserve(ledger, "large", ids)
    assert len(says(path)[1]) == len(before[1]) + len(ids)


def test_a_full_disk_under_a_backup(small: Path, tmp_path: Path) -> None:
    """The file appears whole or not at all, an earlier one stays."""
    path, copy = filled(tmp_path / "ledger.sqlite"), small / "backup.sqlite"
    back_up_ledger(path, copy)
    before = copy.read_bytes()
    with Ledger(path) as ledger:
        reserve(ledger, "large", np.arange(10_000, 110_000))
    with pytest.raises(UserError, match="no space is left"):
        back_up_ledger(path, copy)
    assert copy.read_bytes() == before
    assert [file.name for file in small.iterdir()] == [copy.name]
    again(small, "size=100m")
    back_up_ledger(path, copy)
    assert says(copy)[2] == []
