"""Shards of few clients, so that a small cohort has many of them."""

import pytest

from curvote.audit import release
from curvote.chain import stage
from curvote.messages import stages
from curvote.pipeline.store import tables
from tests import memory


def make_small(patch: pytest.MonkeyPatch, rows: int) -> None:
    """Let a shard have ``rows`` rows in this process and its forks."""
    for module in (stage, stages, release, memory):
        patch.setattr(module, "CLIENT_BLOCK", rows)
    patch.setattr(tables, "SHARD", rows)
