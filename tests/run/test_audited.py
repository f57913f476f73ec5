"""What an audit is asked about a pipeline, and what the report says of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.checks import examples
from curvote.messages.message import ClientData, client_data, message_of
from curvote.pipeline.config.file import ConfiguredPipeline, PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan import definitions
from curvote.pipeline.run import audit_tasks
from curvote.pipeline.store import records
from curvote.report.page import draw_report
from tests import plain
from tests.traced import functions, missing_functions


def configured(project: Project, name: str = "tiny") -> ConfiguredPipeline:
    """Return a pipeline as its file has it."""
    return PipelinesFile(project).configure_pipeline(name)


def test_every_epsilon_and_message_of_a_pipeline_is_a_task(project: Project) -> None:
    """Also of one that never ran: an audit reads no client."""
    tasks = audit_tasks.pipeline_tasks(project, configured(project))
    assert [(task.epsilon, task.asks) for task in tasks] == [
        (1.0, "report"),
        (1.0, "vote"),
        (4.0, "report"),
        (4.0, "vote"),
    ]
    assert {task.encoding.d for task in tasks} == {4}
    assert not any(root.exists() for root in project.stores)


def test_exact_losses_are_within_the_claims(done: Project) -> None:
    """Each message loses what it claims, and nearly all of it."""
    losses = audit_tasks.exact_losses(done, records.completed_run(done, "tiny"))
    assert [loss.claimed for loss in losses] == [1, 1, 4, 4]
    assert all(loss.is_within_claim for loss in losses)
    assert [loss.exact for loss in losses] == pytest.approx([1, 1, 4, 4], abs=1e-6)
    assert not replace(losses[0], exact=1.0000001).is_within_claim


def test_a_run_and_its_audit_name_the_same_tasks(done: Project) -> None:
    """Whether they come from the raw file's facts or from what the run stored."""
    record = records.completed_run(done, "tiny")
    both = (
        audit_tasks.pipeline_tasks(done, configured(done)),
        audit_tasks.run_tasks(done, record),
    )
    assert len({tuple(task.digest() for task in each) for each in both}) == 1


def audit(project: Project) -> None:
    """Keep a good verdict on every task, as `curvote audit --pipeline tiny` does."""
    every = audit_tasks.pipeline_tasks(project, configured(project))
    audit_tasks.save_verdicts(
        project, "tiny", ((task, {"verdict": "pass"}) for task in every)
    )


def verdict(project: Project) -> bool:
    """Say whether the latest run has the verdict of an audit."""
    return (
        audit_tasks.stored_verdicts(project, records.completed_run(project, "tiny"))
        is not None
    )


@pytest.mark.usefixtures("blank_figures")
def test_the_report_carries_the_verdict_until_what_is_sent_changes(
    done: Project,
) -> None:
    """The audit of other messages is no verdict on these."""
    record = records.completed_run(done, "tiny")
    assert "not done yet" in draw_report(done, record).read_text()
    audit(done)
    assert "4 of 4 messages passed" in draw_report(done, record).read_text()
    plain.run(done, "tiny", "epsilon=[2]")
    record = records.completed_run(done, "tiny")
    assert "not done yet" in draw_report(done, record).read_text()


@pytest.mark.parametrize(
    "changed",
    [
        "source.points=21",
        "project.size=5",
        "privatize.label_share=0.3",
        "grid={project.size: [4, 5]}",
        "grid={privatize.mechanism: [laplace, duchi]}",
    ],
)
def test_a_verdict_ends_with_what_it_was_about(done: Project, changed: str) -> None:
    """Another source, size or mechanism, also as one more value of a grid."""
    audit(done)
    assert verdict(done)
    plain.run(done, "tiny", changed)
    assert not verdict(done)


def test_a_verdict_ends_when_the_rule_takes_another_arm(tmp_path: Path) -> None:
    """The number of clients is in no task, but decides what `auto` asks for."""
    few = {"protocols": ["auto"], "epsilon": [0.5], "replicates": 2}
    given = plain.of("auto") | few
    project = plain.write(tmp_path, tiny=given)
    plain.run(project)
    audit(project)
    assert verdict(project)
    plain.run(project, "tiny", "clients.vote=2000")
    assert not verdict(project)


def test_a_verdict_ends_with_the_code_that_was_audited(
    done: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draws of other code prove nothing."""
    audit(done)
    assert verdict(done)
    monkeypatch.setattr(definitions, "of_code", lambda modules: {"all": "rewritten"})
    assert not verdict(done)


@pytest.mark.parametrize(("protocol", "asks"), examples.production_messages())
def test_a_verdict_counts_all_code_that_draws(
    protocol: str, asks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a curve to the message, and the law that it is held against."""
    task, counted = examples.example_task(protocol, asks, 2.0), {}
    curves, labels = np.zeros((3, 30)), np.ones(3)
    judge = None if task.candidates is None else np.zeros(3, dtype=np.int64)

    def whole() -> None:
        message = message_of(task)
        if message.about_model:
            known = ClientData(np.empty((3, 0)), np.empty((3, 0)), labels)
        else:
            known = client_data(task, curves, labels, judge)
        sent = message.draw(task, known, SeededEntropy(1))
        message.log_ratio(task, known, known, sent)
        message.max_privacy_loss(task)
        message.collect(task, sent)

    monkeypatch.setattr(
        audit_tasks, "json_digest", lambda parts: counted.update(parts[1])
    )
    audit_tasks._verdict_name(task)
    assert missing_functions(functions(whole), counted, {}) == []


@pytest.mark.parametrize("name", examples.code_names())
def test_a_verdict_counts_all_code_that_draws_codes_of_labels(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a label to the message that is tied to its record, and its law."""
    task, counted = examples.task_named(name, 2.0), {}
    nothing = np.empty((3, 0))
    known = ClientData(nothing, nothing, np.array([0.0, 1.0, 2.0]))

    def whole() -> None:
        message = message_of(task)
        sent = message.draw(task, known, SeededEntropy(1))
        message.log_ratio(task, known, known, sent)
        message.max_privacy_loss(task)
        message.collect(task, {**sent, "record": np.array(["a", "b", "c"])})

    monkeypatch.setattr(
        audit_tasks, "json_digest", lambda parts: counted.update(parts[1])
    )
    audit_tasks._verdict_name(task)
    assert missing_functions(functions(whole), counted, {}) == []


def test_without_its_raw_file_a_pipeline_is_not_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The public facts of the source stand in the file."""
    monkeypatch.delenv("CURVOTE_DATA_MIRROR", raising=False)
    source = {"name": "phonemes"}
    (tmp_path / "data").mkdir()
    real = Path(__file__).parents[2] / "data" / "sources.toml"
    (tmp_path / "data" / "sources.toml").write_text(real.read_text())
    project = plain.write(tmp_path, one=plain.TINY | {"source": source})
    with pytest.raises(UserError, match="curvote data fetch phonemes"):
        audit_tasks.pipeline_tasks(project, configured(project, "one"))
