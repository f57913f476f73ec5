"""The store: whole artifacts or none, the same from any workers and block sizes."""

import errno
import os
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from curvote.base.errors import InternalError, UserError
from curvote.chain.stage import SHARED
from curvote.pipeline.config.project import Project
from curvote.pipeline.run import execution
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.history import project_status
from curvote.pipeline.store import artifacts as store
from curvote.pipeline.store.arrow import to_arrow, to_columns
from curvote.pipeline.store.artifacts import artifact
from tests import declared, plain


def test_a_killed_step_goes_on_from_its_finished_blocks(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks that were written are not computed again; the result is the same."""
    step = plain.plan(project).steps[0]
    real, computed = execution.compute_block, []

    def dies_at_the_third(job: execution.Job, part: execution.Part) -> None:
        computed.append(part)
        if len(computed) == 3:
            raise KeyboardInterrupt
        real(job, part)

    monkeypatch.setattr(execution, "compute_block", dies_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        execute_step(project, step, block=1)
    assert not artifact(project, "ingest", step.key).path.exists()
    execute_step(project, step, block=1)
    assert computed == [((r,),) for r in (0, 1, 2, 2, 3, 4)]
    assert artifact(project, "ingest", step.key).problem(content=True) is None


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "no space left"),
        (errno.EACCES, "no permission to write"),
        (errno.EIO, "nothing was stored"),
    ],
)
@pytest.mark.parametrize("function", ["fsync", "rename"])
def test_a_failing_disk_at_commit_leaves_old_artifacts_readable(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    said: str,
    function: str,
) -> None:
    """In the middle of a commit: a clear error, nothing under a final name."""
    first, second = plain.plan(project).steps[:2]
    execute_step(project, first)

    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    if function == "fsync":
        monkeypatch.setattr(os, "fsync", fails)
    else:
        monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(UserError, match=said):
        execute_step(project, second)
    monkeypatch.undo()
    assert not artifact(project, "project", second.key).path.exists()
    assert artifact(project, "ingest", first.key).problem(content=True) is None
    execute_step(project, second)
    assert artifact(project, "project", second.key).problem(content=True) is None


def test_a_truncated_or_missing_manifest_is_an_altered_artifact(
    project: Project,
) -> None:
    """Never a traceback, never a use."""
    step = plain.plan(project).steps[0]
    execute_step(project, step)
    manifest = artifact(project, "ingest", step.key).path / store.MANIFEST
    manifest.write_text(manifest.read_text()[:50])
    assert artifact(project, "ingest", step.key).problem(content=False)
    with pytest.raises(UserError, match="manifest"):
        _ = artifact(project, "ingest", step.key).metadata
    manifest.unlink()
    assert artifact(project, "ingest", step.key).problem(content=False)
    (again, *_) = plain.plan(project).steps
    assert again.reason.startswith("artifact altered")
    execute_step(project, again)
    assert artifact(project, "ingest", step.key).problem(content=True) is None


def test_pandas_reads_every_table_as_it_is(finished: Project) -> None:
    """Plain Parquet: vectors are lists, categories are text, one replicate column."""
    for path in (f for root in finished.stores for f in root.glob("*/*/*.parquet")):
        frame = pd.read_parquet(path)
        assert set(frame) == {"replicate", *declared.TABLES[path.stem].columns}


def test_a_table_that_breaks_its_contract_is_our_bug(finished: Project) -> None:
    """A missing column, a NaN and a replicate that is not named are all refused."""
    path = next(finished.artifacts.glob("train/*/weak.parquet"))
    good = to_columns("weak", pq.read_table(path))
    made = partial(to_arrow, declared.TABLES["weak"], ("replicate",))
    assert made((0,), good).num_rows == len(good["n"])
    with pytest.raises(InternalError, match="columns"):
        made((0,), {k: v for k, v in good.items() if k != "n"})
    with pytest.raises(InternalError, match="NaN"):
        made((0,), good | {"intercept": good["intercept"] * float("nan")})
    with pytest.raises(InternalError, match="replicate"):
        made(SHARED, good)


@pytest.mark.parametrize("stage", ["ingest", "privatize"])
def test_status_checks_both_roots(done: Project, stage: str) -> None:
    """By size and date at once, by content when asked to verify."""
    place = next(f for f in store.all_folders(done) if f.parent.name == stage)
    table = next(place.glob("*.parquet"))
    assert not project_status(done, content=True)[0]["altered"]
    date = table.stat().st_mtime_ns
    table.write_bytes(table.read_bytes()[:-1] + b"?")
    assert project_status(done, content=False)[0]["altered"]
    os.utime(table, ns=(date, date))
    assert not project_status(done, content=False)[0]["altered"]
    (said,) = project_status(done, content=True)[0]["altered"]
    assert said == f"{stage}/{place.name}: altered ({table.name})"


def test_gc_keeps_what_the_latest_run_needs(project: Project) -> None:
    """An older run's artifacts and left-over folders go, nothing else."""
    from curvote.flows.serving.retention import collect_garbage
    from curvote.pipeline.store.garbage import RetentionLimits

    plain.run(project)
    record = plain.run(project, "tiny", "aggregate.cutoff=0.6")
    (project.artifacts / "train" / ".tmp-left").mkdir()
    (project.clients / "ingest" / ".tmp-left").mkdir()
    (left,) = collect_garbage(project, keep=2, limits=RetentionLimits(), dry_run=True)
    assert len(left.paths) == 2
    (freed,) = collect_garbage(project, limits=RetentionLimits())
    assert len(freed.paths) == 4 + 4 + 2
    assert freed.bytes > 0
    assert all(
        artifact(project, step["stage"], step["key"]).problem(content=True) is None
        for step in record.steps
    )
    assert not plain.to_run(plain.plan(project, "tiny", "aggregate.cutoff=0.6"))
