"""What is known whatever the noise, as one file: of each way to send a record."""

from __future__ import annotations

from collections.abc import Mapping

from curvote.chain.stage import Here
from curvote.protocols.utility.packing import Arrays, unpacked
from curvote.utility.known import Known, restored
from curvote.utility.setting import Setting


def arrays_of(found: Mapping[str, Known]) -> Arrays:
    """Return the arrays of each, what is sent before their names."""
    return {
        f"{sent}/{name}": array
        for sent, each in found.items()
        for name, array in each.arrays().items()
    }


def known_of(here: Here, sent: str, setting: Setting) -> Known:
    """Return what stage ``surface`` found out about one way to send a record."""
    kept = unpacked(here.rows("surface", "known")["known"][0])
    start = f"{sent}/"
    mine = {name: a for name, a in kept.items() if name.startswith(start)}
    arrays = {name.removeprefix(start): array for name, array in mine.items()}
    return restored(setting, arrays)
