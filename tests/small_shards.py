"""Shards of few clients, so that a small cohort has many of them."""

from __future__ import annotations

import pytest

from curvote.chain import stage
from curvote.pipeline.store import tables


def make_small(patch: pytest.MonkeyPatch, rows: int) -> None:
    """Let a shard have ``rows`` rows in this process and its forks."""
    patch.setattr(stage, "CLIENT_BLOCK", rows)
    patch.setattr(tables, "SHARD", rows)
