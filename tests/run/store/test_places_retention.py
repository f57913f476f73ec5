"""What may go from an object store, and what never does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyarrow import fs

from curvote.flows.serving.retention import collect_garbage
from curvote.pipeline.store import garbage
from curvote.pipeline.store.garbage import RetentionLimits
from tests import object_store, plain, production


def test_old_artifacts_go_and_released_ones_stay(
    store: fs.S3FileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all that is kept for ever; a dry run says how much, and takes nothing.

    Minutes later: records hold whole seconds, and so do object stores, so that what
    began in this one is as young as the limit.
    """
    later = datetime.now(UTC) + timedelta(minutes=5)
    monkeypatch.setattr(garbage, "_time_before", lambda seconds: later)
    made = {"tiny": plain.FEW, "real": production.REAL}
    project = object_store.project(tmp_path, **made)
    production.run(project)
    made_of_it = set(object_store.files(store))
    released = {n for n in made_of_it if not n.startswith("aggregate")}
    plain.run(project)
    early = set(object_store.files(store)) - made_of_it
    last = plain.run(project, "tiny", "aggregate.cutoff=0.6")
    before = set(object_store.files(store))
    (pile,) = collect_garbage(
        project, dry_run=True, limits=RetentionLimits(artifacts=0)
    )
    assert pile.bytes > 0
    assert set(object_store.files(store)) == before
    collect_garbage(project, limits=RetentionLimits(artifacts=0))
    after = set(object_store.files(store))
    assert released <= after
    assert not early <= after
    keys = {name.split("/")[1] for name in after - released}
    assert keys < {step["key"] for step in last.steps}
