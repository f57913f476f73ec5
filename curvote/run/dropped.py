"""Which servers the others could not use, and why, over a whole run."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.store.artifacts import sound


def dropped(project: Project, record: RunRecord) -> list[str]:
    """Return a line for each server that was left out, in words; most often none."""
    keys = dict.fromkeys(key for _, key in record.keys("exchange"))
    found = [_left_out(sound(project, "exchange", key).table("offers")) for key in keys]
    pairs = {pair for out in found for pair in out}
    return [
        f"server {server} was dropped: {reason}" for server, reason in sorted(pairs)
    ]


def _left_out(offers: pa.Table) -> set[tuple[int, str]]:
    out = offers.filter(pc.invert(offers["accepted"]))
    return set(zip(out["server"].to_pylist(), out["reason"].to_pylist(), strict=True))
