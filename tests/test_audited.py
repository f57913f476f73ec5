"""What an audit is asked about a pipeline, and what the report says of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from curvote.audit import of_task
from curvote.errors import UserError
from curvote.reporting.report import report
from curvote.run import audited, history
from curvote.run.config import PipelinesFile
from curvote.run.project import Project
from tests import plain


def test_every_epsilon_and_message_of_a_pipeline_is_a_task(project: Project) -> None:
    """Also of one that never ran: an audit reads no client."""
    tasks = audited.tasks(project, "tiny")
    assert [(task.epsilon, task.asks) for task in tasks] == [
        (1.0, "report"),
        (1.0, "vote"),
        (4.0, "report"),
        (4.0, "vote"),
    ]
    assert {task.encoding.d for task in tasks} == {4}
    assert not any(root.exists() for root in project.stores)


def test_exact_losses_are_within_the_claims(project: Project) -> None:
    """Each message loses what it claims, and nearly all of it."""
    config = PipelinesFile(project).configured("tiny").values()
    (first, *_) = audited.tasks(project, "tiny")
    public = {"classes": first.classes}
    losses = audited.exact_losses(first.encoding, public, config)
    assert [loss.claimed for loss in losses] == [1, 1, 4, 4]
    assert all(loss.holds for loss in losses)
    assert [loss.exact for loss in losses] == pytest.approx([1, 1, 4, 4], abs=1e-6)
    assert not replace(losses[0], exact=1.0000001).holds


def test_the_report_carries_the_verdict_until_what_is_sent_changes(
    done: Project,
) -> None:
    """The audit of other messages is no verdict on these."""
    record = history.completed(done, "tiny")
    assert "not done yet" in report(done, record).read_text()
    rows = [row for task in audited.tasks(done, "tiny") for row in of_task(task, 2000)]
    audited.save(done, "tiny", [row.to_json() for row in rows])
    assert "4 of 4 messages passed" in report(done, record).read_text()
    changed = {**record.config, "epsilon": [1.0]}
    assert audited.saved(done, "tiny", changed) is None


def test_without_its_raw_file_a_pipeline_is_not_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The public facts of the source stand in the file."""
    monkeypatch.delenv("CURVOTE_DATA_MIRROR", raising=False)
    source = {"name": "phonemes"}
    (tmp_path / "data").mkdir()
    real = Path(__file__).parents[1] / "data" / "sources.toml"
    (tmp_path / "data" / "sources.toml").write_text(real.read_text())
    project = plain.write(tmp_path, one=plain.TINY | {"source": source})
    with pytest.raises(UserError, match="curvote data fetch phonemes"):
        audited.tasks(project, "one")
