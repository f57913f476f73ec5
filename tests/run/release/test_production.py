"""Production: each client is released once, whatever is repeated, changed or lost."""

import os
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.flows.serving import retention
from curvote.ledger.book import Ledger
from curvote.messages.roles import split_roles
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan import definitions
from curvote.pipeline.plan import expand as chain
from curvote.pipeline.release import evidence
from curvote.pipeline.release import production as session
from curvote.pipeline.run.planner import Selection, make_plan
from curvote.pipeline.store.artifacts import artifact
from curvote.pipeline.store.garbage import RetentionLimits
from tests import production
from tests.processes import in_child

BOTH = {"privatize", "evaluate"}
FROZEN = ["ingest", "project", "privatize", "train", "evaluate"]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project that has released; tests must not change it."""
    project = production.write(tmp_path_factory.mktemp("released"))
    production.run(project)
    return project


@pytest.fixture
def real(released: Project, tmp_path: Path) -> Project:
    """Return a copy of the released project, to be changed at will."""
    shutil.copytree(released.root, tmp_path, dirs_exist_ok=True)
    return Project(tmp_path)


def test_a_release_is_counted_for_exactly_its_clients(released: Project) -> None:
    """The ledger names each training and each vote client once, nobody else."""
    entries = production.confirmed(released)
    assert [entry.n_clients for entry in entries] == [60, 80]
    with Ledger(released.ledger) as ledger:
        report, vote = (set(ledger.members(e.release).tolist()) for e in entries)
    assert len(report) == 60
    assert len(vote) == 80
    assert not report & vote


def test_a_repeated_run_gives_the_same_bytes_and_spends_nothing(real: Project) -> None:
    """Nothing but reuse; the ledger has the same entries."""
    before = (
        production.bytes_of(real, production.plan(real)),
        production.confirmed(real),
    )
    made = production.run(real)
    assert {step.action for step in made.steps} == {"reuse"}
    assert (production.bytes_of(real, made), production.confirmed(real)) == before
    assert set(before[0]) == BOTH


def test_an_upgrade_releases_nothing_again(
    real: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New library versions, changed code and a new contract recompute no release."""
    before = production.bytes_of(real, production.plan(real))
    monkeypatch.setattr(chain, "library_versions", lambda stage: {"numpy": "99"})
    monkeypatch.setattr(definitions, "of_code", lambda modules: {"all": "rewritten"})
    monkeypatch.setattr(chain, "VERSION", 99)
    made = production.run(real)
    actions = {step.stage.name: step.action for step in made.steps}
    assert actions.pop("aggregate") == "run"
    assert set(actions.values()) == {"reuse"}
    assert production.bytes_of(real, made) == before
    assert len(production.confirmed(real)) == 2


def test_a_setting_with_a_default_may_be_added_or_spelt_out(real: Project) -> None:
    """What a later version adds, or what says what holds anyway, renames nothing."""
    spelt = {"privatize": {"mechanism": "laplace", "label_share": "equal"}}
    production.write(real.root, **spelt)
    assert {step.action for step in production.plan(real).steps} == {"reuse"}


@pytest.mark.parametrize(
    "stage", ["ingest", "project", "privatize", "train", "evaluate"]
)
def test_what_was_released_is_never_forced(real: Project, stage: str) -> None:
    """--force, --from and --only of anything up to the last release are refused."""
    configured = PipelinesFile(real).configure_pipeline(production.NAME)
    for selection in (
        Selection(force=(stage,)),
        Selection(start=stage),
        Selection(only=(stage,)),
    ):
        with pytest.raises(UserError, match="--new-release"):
            make_plan(real, configured, selection)
    assert make_plan(real, configured, Selection(start="aggregate")).steps_to_run()


def test_a_new_release_needs_room(real: Project) -> None:
    """Without room nothing is drawn or written; with room noise is drawn once more."""
    before = sorted(real.artifacts.rglob("*"))
    with pytest.raises(UserError, match="60 of 60 clients"):
        production.run(real, new_release=True)
    assert sorted(real.artifacts.rglob("*")) == before
    assert len(production.confirmed(real)) == 2

    first = production.bytes_of(real, production.plan(real))
    production.write(real.root, ledger={"per_client": {"epsilon": 8}})
    with pytest.raises(UserError, match="raise-cap simulated --cap 8`"):
        production.run(real, new_release=True)
    with Ledger(real.ledger) as ledger:
        ledger.raise_cap("simulated", Budget(8))
    made = production.run(real, new_release=True)
    second = production.bytes_of(real, made)
    assert {first[stage] != second[stage] for stage in BOTH} == {True}
    numbers = [entry.facts["number"] for entry in production.confirmed(real)]
    assert numbers == [1, 1, 2, 1]  # votes judge the second round's own classifiers
    again = production.run(real)  # from now on the second release is the one
    assert production.bytes_of(real, again) == second


def test_noise_is_nobodys_seed(released: Project, tmp_path: Path) -> None:
    """The same pipeline with the same seed releases other noise elsewhere."""
    other = production.write(tmp_path)
    theirs = production.bytes_of(other, production.run(other))
    ours = production.bytes_of(released, production.plan(released))
    assert all(ours[stage] != theirs[stage] for stage in BOTH)


def test_a_lost_or_altered_release_is_not_drawn_again(real: Project) -> None:
    """It is blocked, with the way out, and so is what reads from it."""
    (report, _) = production.releases(production.plan(real))
    folder = artifact(real, report.stage.name, report.key).path
    table = folder / "reports.parquet"
    table.write_bytes(table.read_bytes()[:-1] + b"?")
    for _ in range(2):
        made = production.plan(real)
        blocked = {s.stage.name: s.reason for s in made.blocked_steps()}
        assert "put it back from a backup" in blocked["privatize"]
        assert blocked["train"] == "waits for privatize"
        shutil.rmtree(folder, ignore_errors=True)


def test_without_its_ledger_nothing_is_released(real: Project) -> None:
    """A fresh ledger would give everybody their budget back."""
    for file in real.state.glob("ledger.sqlite*"):
        file.unlink()
    for changes in ({}, {"seed": 8}):
        production.write(real.root, **changes)
        for look in (production.run, partial(production.plan, run=False)):
            with pytest.raises(UserError, match=r"gone\. .* ledger restore FILE"):
                look(real)
    assert not real.ledger.exists()


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("_reserve_release", "ended before it was published: goes on"),
        ("commit", "ended before it was published: goes on"),
        ("_confirm_release", "published, to be confirmed in the ledger"),
    ],
)
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_step_is_settled_by_the_next_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    reason: str,
    after: bool,
) -> None:
    """Before or after each step; the next run ends it and draws nothing twice."""
    project = production.write(tmp_path)
    step = getattr(session, where)

    def dies(*given: object, **named: object) -> None:
        if after:
            step(*given, **named)
        os._exit(9)

    with monkeypatch.context() as patch:
        patch.setattr(session, where, dies)
        os.waitpid(in_child(lambda: production.run(project)), 0)
    before = production.bytes_of(project, production.plan(project))
    told = {s.stage.name: s.reason for s in production.plan(project).steps}
    expected = {
        ("_reserve_release", False): "never released",
        ("commit", True): "published, to be confirmed in the ledger",
        ("_confirm_release", True): "released once (release 1)",
    }
    assert told["privatize"] == expected.get((where, after), reason)
    made = production.run(project)
    assert before.items() <= production.bytes_of(project, made).items()
    assert len(production.confirmed(project)) == 2
    assert evidence.ledger_problems(project) == []


def test_another_split_cannot_overspend(real: Project) -> None:
    """Other roles mean another cohort: who has nothing left stops the release."""
    production.write(real.root, seed=8)
    with pytest.raises(UserError, match="no room"):
        production.run(real)
    assert len(production.confirmed(real)) == 2


def test_gc_never_deletes_what_production_made(real: Project) -> None:
    """No run record names these artifacts here; what cannot be made again stays."""
    before = production.bytes_of(real, production.plan(real))
    retention.collect_garbage(real, limits=RetentionLimits())
    made = production.plan(real)
    assert production.bytes_of(real, made) == before
    assert {s.stage.name for s in made.steps_to_run()} == {
        "aggregate"
    }  # it can be made again


def test_the_order_of_rows_is_drawn(tmp_path: Path) -> None:
    """With little noise most reports tell whose z they are, but not by their place."""
    loud = {"epsilon": 1000, "ledger": {"per_client": {"epsilon": 1000}}}
    project = production.write(tmp_path, **loud)
    made = production.run(project)
    report = production.releases(made)[0]
    rows = artifact(project, report.stage.name, report.key).columns("reports", (0,))
    assert set(rows) == {"arm", "z", "label"}
    stages = {step.stage.name: step for step in made.steps}
    there = artifact(project, "project", stages["project"].key)
    encoded = there.columns("encoded", (0,))
    ours = np.array([np.abs(encoded["z"] - z).max(axis=1).argmin() for z in rows["z"]])
    roles = split_roles(7, 0, 140, {"public": 0, "train": 60, "vote": 80, "test": 0})
    assert np.isin(ours, roles["train"]).mean() > 0.7
    assert (ours == roles["train"]).mean() < 0.3


def test_what_is_real_says_so(released: Project) -> None:
    """Every artifact is marked private; what was released names its ledger entry."""
    known = {entry.release for entry in production.confirmed(released)}
    named = set()
    for step in production.plan(released).steps:
        manifest = artifact(released, step.stage.name, step.key).manifest
        assert manifest["private"] is True
        assert "release" not in manifest["components"]  # it would name the cohort
        named |= {manifest["release"]["id"]} if step.release else set()
    assert named == known


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": [1, 2]}, "exactly one; 2 are given"),
        ({"learners": ["centroid", "cg"]}, "exactly one; 2 are given"),
        ({"ledger": None}, "production needs a cap"),
        ({"epsilon": 5}, "more than each client's cap"),
        ({"mode": "study"}, "only a pipeline with mode: production"),
        (
            {"intake": {}},
            "an intake takes messages about records that are elsewhere: write",
        ),
        ({"privatize": {"mechanism": "k_rr"}}, "takes labels"),
    ],
)
def test_what_production_refuses(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    """Ambiguous or unbounded pipelines are refused before anything is read."""
    project = production.write(tmp_path, **changes)
    with pytest.raises(UserError, match=message):
        production.plan(project)


def test_study_has_no_new_release(project: Project) -> None:
    """In a study noise is drawn anew with another seed."""
    configured = PipelinesFile(project).configure_pipeline("tiny")
    with pytest.raises(UserError, match="--seed"):
        make_plan(project, configured, new_release=True)
