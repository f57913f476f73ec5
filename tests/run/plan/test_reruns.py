"""Reruns: exactly what a change touches runs again, and the plan says why."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan import step as plan_step
from curvote.pipeline.plan.step import file_digest
from curvote.pipeline.run.planner import Selection
from curvote.pipeline.run.results import (
    final_model,
    final_views,
    find_artifact,
    mean_scores,
)
from curvote.pipeline.store.artifacts import MANIFEST, all_folders, artifact
from curvote.pipeline.store.records import completed_run
from tests import plain


def reasons(project: Project, *overrides: str) -> set[str]:
    """Return why steps would run."""
    return {
        step.reason for step in plain.plan(project, "tiny", *overrides).steps_to_run()
    }


def test_a_second_run_reuses_everything(done: Project) -> None:
    """Nothing changed, nothing runs."""
    assert plain.to_run(plain.plan(done)) == set()


def test_a_first_plan_runs_everything_and_makes_nothing(project: Project) -> None:
    """A plan only plans: each of the 22 steps never ran, and no folder appears."""
    made = plain.plan(project)
    assert {step.reason for step in made.steps} == {"never run"}
    assert {step.action for step in made.steps} == {"run"}
    assert len(made.steps) == 2 + 2 + 4 * 4 + 2
    assert not any(root.exists() for root in project.stores)


@pytest.mark.parametrize(
    ("override", "stages", "reason"),
    [
        (
            "aggregate.cutoff=0.6",
            {"aggregate", "report"},
            "parameter aggregate.cutoff 0.7 -> 0.6",
        ),
        (
            "train.size=19",
            {"train", "evaluate", "aggregate", "report"},
            "parameter train.size 20 -> 19",
        ),
        (
            "project.judge=rescaled",
            {"evaluate", "aggregate", "report"},
            "parameter project.judge coefficients -> rescaled",
        ),
        (
            "privatize.label_share=0.3",
            {"privatize", "train", "evaluate", "aggregate", "report"},
            "parameter privatize.label_share equal -> 0.3",
        ),
    ],
)
def test_a_changed_setting_reruns_what_reads_it_and_what_follows(
    done: Project, override: str, stages: set[str], reason: str
) -> None:
    """The plan names the setting with both values."""
    assert plain.to_run(plain.plan(done, "tiny", override)) == stages
    assert reason in reasons(done, override)


def test_all_reasons_are_given_and_the_first_alone_is_the_short_one(
    done: Project,
) -> None:
    """Two settings of a stage: both, and what they make anew for the stages after."""
    made = plain.plan(done, "tiny", "train.size=19", "train.count=4")
    rows = {row["stage"]: row for row in (step.row() for step in made.steps_to_run())}
    both = ["parameter train.count 5 -> 4", "parameter train.size 20 -> 19"]
    assert rows["train"]["reasons"] == both
    assert rows["train"]["reason"] == both[0]
    assert "input train changed" in rows["evaluate"]["reasons"]
    kept = (step.row() for step in made.steps if step.action == "reuse")
    assert all(row["reasons"] == [row["reason"]] for row in kept)


def test_run_does_what_plan_said(done: Project) -> None:
    """The steps of the record are those of the plan, and then nothing is left."""
    planned = plain.plan(done, "tiny", "aggregate.cutoff=0.6")
    before = set(all_folders(done))
    record = plain.run(done, "tiny", "aggregate.cutoff=0.6")
    made = set(all_folders(done)) - before
    assert {path.name for path in made} == {s.key for s in planned.steps_to_run()}
    assert [step["action"] for step in record.steps] == [
        step.action for step in planned.steps
    ]
    assert not plain.to_run(plain.plan(done, "tiny", "aggregate.cutoff=0.6"))
    assert not plain.to_run(plain.plan(done))


def test_a_forced_stage_repeats_itself_exactly(done: Project) -> None:
    """Recomputing gives the stored tables, so the forced run commits nothing new."""
    before = set(all_folders(done))
    record = plain.run(done, selection=Selection(force=("train",)))
    forced = {s["stage"] for s in record.steps if s["action"] == "run"}
    assert forced == {"train"}
    assert set(all_folders(done)) == before


def test_from_a_stage_recomputes_it_and_all_that_follow(done: Project) -> None:
    """``--from evaluate`` leaves reports and weak classifiers alone."""
    made = plain.plan(done, selection=Selection(start="evaluate"))
    assert plain.to_run(made) == {"evaluate", "aggregate", "report"}


def test_only_a_stage_with_stale_inputs_is_refused_with_the_way_out(
    done: Project,
) -> None:
    """What it reads would be stale: the message prints the command that helps."""
    alone = Selection(only=("evaluate",))
    with pytest.raises(UserError, match="curvote run tiny --from train"):
        plain.plan(done, "tiny", "train.size=19", selection=alone)
    made = plain.plan(done, selection=Selection(only=("aggregate",)))
    assert plain.actions(made) == {"aggregate": {"run"}}
    assert not made.complete


def test_only_several_stages_may_read_each_other(done: Project) -> None:
    """What one of them reads of another is computed in the same run."""
    both = Selection(only=("train", "evaluate"))
    assert plain.actions(plain.plan(done, selection=both)) == {
        "train": {"run"},
        "evaluate": {"run"},
    }


def test_an_unknown_stage_is_refused(done: Project) -> None:
    """With the closest name."""
    with pytest.raises(UserError, match="Did you mean 'train'"):
        plain.plan(done, selection=Selection(start="trian"))


EVERY = ["ingest", "project", "privatize", "train", "evaluate", "aggregate", "report"]


def flip_byte(path: Path, at: int = 100) -> bytes:
    """Flip a bit of one byte of a file; return what was in it."""
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    return whole


def test_an_altered_artifact_is_never_used(done: Project) -> None:
    """One flipped byte: a plain run sees it, sets it aside and computes it anew.

    Of each stage one artifact; no other is computed, and none of this run reads them.
    """
    steps = {step.stage.name: step for step in plain.plan(done).steps}
    assert [*steps] == EVERY
    folders = {step.id: artifact(done, *step.id).path for step in steps.values()}
    paths = [next(folder.glob("*.parquet")) for folder in folders.values()]
    before = [flip_byte(path, path.stat().st_size // 2) for path in paths]
    made = plain.plan(done).steps_to_run()
    assert {step.id for step in made} == {*folders}
    said = {f"artifact altered ({path.name})" for path in paths}
    assert {step.reason for step in made} == said
    plain.run(done)
    assert [path.read_bytes() for path in paths] == before
    for folder in folders.values():
        assert list(folder.parent.glob(f".altered-{folder.name}-*"))
    assert not plain.plan(done).steps_to_run()


def test_an_altered_input_with_an_old_date_is_never_read(done: Project) -> None:
    """A step that runs reads its inputs whole before, whatever their dates say."""
    step = next(s for s in plain.plan(done).steps if s.stage.name == "train")
    path = next(artifact(done, "train", step.key).path.glob("*.parquet"))
    about = path.stat()
    flip_byte(path)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    made = plain.plan(done, selection=Selection(force=("evaluate",)))
    assert f"artifact altered ({path.name})" in {s.reason for s in made.steps_to_run()}


def test_a_copied_project_is_read_once_and_reused(
    done: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cp -r` may write a table after its manifest: that is no change."""
    for path in [*done.clients.rglob("*.parquet"), *done.artifacts.rglob("*.parquet")]:
        later = path.with_name(MANIFEST).stat().st_mtime_ns + 10**9
        os.utime(path, ns=(later, later))
    read: list[Path] = []
    monkeypatch.setattr(
        plan_step, "file_digest", lambda p: read.append(p) or file_digest(p)
    )
    assert not plain.plan(done).steps_to_run()
    assert {path.parent.parent.name for path in read} == set(EVERY)
    read.clear()
    assert not plain.plan(done).steps_to_run()
    assert {path.parent.parent.name for path in read} == {"report"}  # scores always


def test_a_result_that_does_not_repeat_is_our_bug(
    done: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forced step whose tables differ from the stored ones stops the run."""
    from curvote.base.errors import InternalError
    from curvote.pipeline.run.execution import execute_step
    from curvote.systems.mrma import stages as aggregate

    step = next(s for s in plain.plan(done).steps if s.stage.name == "aggregate")
    real = aggregate.averaging_weights
    monkeypatch.setattr(
        aggregate, "averaging_weights", lambda *a: (real(*a)[0][::-1], False)
    )
    with pytest.raises(InternalError, match="second computation"):
        execute_step(done, replace(step, action="run", forced=True))


def test_two_pipelines_share_what_is_equal(tmp_path: Path) -> None:
    """The second pipeline differs in its cutoff only: it starts at aggregate."""
    other = plain.TINY | {"aggregate": {"cutoff": 0.6}}
    project = plain.write(tmp_path, tiny=plain.TINY, other=other)
    plain.run(project)
    assert plain.to_run(plain.plan(project, "other")) == {"aggregate", "report"}


def test_learners_that_are_computed_alike_keep_their_labels(tmp_path: Path) -> None:
    """Two labels for one learner share artifacts up to the scores, which name both."""
    twice = [{"name": "cg", "label": "a"}, {"name": "cg", "label": "b"}]
    project = plain.write(tmp_path, tiny=plain.TINY | {"learners": twice})
    record = plain.run(project)
    made = plain.plan(project, selection=Selection(start="train"))
    assert {s.cell["learner"] for s in made.steps if s.stage.name == "train"} == {
        "a",
        "b",
    }
    rows = mean_scores(project, record)
    errors = {
        label: [row["misclassification"] for row in rows if row["learner"] == label]
        for label in ("a", "b")
    }
    assert len(errors["a"]) == 16
    assert errors["a"] == errors["b"]


@pytest.mark.parametrize("stage", ["report", "aggregate"])
def test_results_are_never_read_from_an_altered_artifact(
    done: Project, stage: str
) -> None:
    """Neither scores nor the final classifier: the message says what to do."""
    record = completed_run(done, "tiny")
    cells = (view.cell for view in final_views(done, record))
    cell = next(c for c in cells if c["learner"] == "centroid")
    key = find_artifact(done, record, stage, cell).key
    path = next(artifact(done, stage, key).path.glob("*.parquet"))
    flip_byte(path)
    with pytest.raises(UserError, match="altered"):
        mean_scores(done, record) if stage == "report" else final_model(
            done, record, cell
        )
