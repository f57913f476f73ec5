"""More replicates draw the new ones only, fewer none: nobody sees it in the tables."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curvote.base.errors import UserError
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import Step, has_replicates, sibling_steps
from curvote.pipeline.run import execution
from curvote.pipeline.run.engines import Engine
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import Selection
from curvote.pipeline.store import garbage, records
from curvote.pipeline.store.artifacts import artifact
from tests import plain, production

SMALL = plain.TINY | {"epsilon": [4], "learners": ["centroid"]}
Counts = dict[str, list[int]]


def of(count: int) -> str:
    """Return the override that sets the number of replicates."""
    return f"replicates={count}"


@pytest.fixture
def small(tmp_path: Path) -> Project:
    """Return a project whose small pipeline ran with 4 replicates."""
    project = plain.write(tmp_path / "small", tiny=SMALL)
    plain.run(project, "tiny", of(4))
    return project


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the hashes of a run from nothing, by the number of replicates."""

    @cache
    def run(count: int) -> dict[str, str]:
        project = plain.write(tmp_path_factory.mktemp("nothing"), tiny=SMALL)
        return plain.hashes(project, plain.run(project, "tiny", of(count)))

    return run


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """Return the replicates that each stage computes from now on."""
    found: Counts = {}
    compute = execution.compute_block

    def noted(job: execution.Job, part: execution.Part) -> None:
        found.setdefault(job.stage, []).extend(place[0] for place in part)
        compute(job, part)

    monkeypatch.setattr(execution, "compute_block", noted)
    return found


@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    counts=st.lists(st.integers(1, 6), min_size=2, max_size=4, unique=True),
    block=st.integers(1, 4),
    workers=st.sampled_from([1, 1, 3]),
)
def test_tables_do_not_tell_how_often_a_study_ran_before(
    nothing: Any,
    tmp_path_factory: pytest.TempPathFactory,
    counts: list[int],
    block: int,
    workers: int,
) -> None:
    """Up and down, in blocks of any size, by one or by several: as from nothing."""
    project = plain.write(tmp_path_factory.mktemp("grown"), tiny=SMALL)
    engine = Engine("threads", workers)
    for count in counts:
        record = plain.run(project, "tiny", of(count), block=block, engine=engine)
        assert plain.hashes(project, record) == nothing(count)


def test_settings_of_a_grid_and_several_protocols_grow_each(tmp_path: Path) -> None:
    """What combinations share is taken over once, what is their own by each."""
    wide = SMALL | {
        "protocols": ["mrma", "direct"],
        "grid": {"aggregate.cutoff": [0.6, 0.7]},
    }
    one, other = (plain.write(tmp_path / at, tiny=wide) for at in ("one", "other"))
    plain.run(one, "tiny", of(2))
    made = plain.plan(one, "tiny", of(3)).steps_to_run()
    assert {s.earlier.reused_count for s in made if s.earlier} == {2}
    assert all(step.earlier for step in made)
    grown, fresh = (plain.run(at, "tiny", of(3)) for at in (one, other))
    assert plain.hashes(one, grown) == plain.hashes(other, fresh)


def test_each_stage_computes_the_new_replicates_and_no_other(
    small: Project, computed: Counts
) -> None:
    """Of 6 the plan has 2 to compute in every stage, and so has the run; of 3 none."""
    planned = plain.plan(small, "tiny", of(6)).steps_to_run()
    assert {s.reason for s in planned} == {"2 of 6 replicates: 4 are there"}
    plain.run(small, "tiny", of(6), block=1)
    assert set(computed) == {step.stage.name for step in planned}
    assert {tuple(sorted({*places})) for places in computed.values()} == {(4, 5)}
    computed.clear()
    fewer = plain.plan(small, "tiny", of(3)).steps_to_run()
    told = "the first 3 of 4 replicates that are there"
    assert {s.reason for s in fewer} == {told}
    assert {s.row()["action"] for s in fewer} == {"copy"}
    assert {s.row()["action"] for s in planned} == {"run"}
    plain.run(small, "tiny", of(3))
    assert computed == {}


def test_a_plan_takes_the_number_that_leaves_least_to_do(small: Project) -> None:
    """The smallest that holds all, or else the largest."""
    plain.run(small, "tiny", of(2))
    plain.run(small, "tiny", of(6))
    taken = {}
    for count in (1, 3, 5, 8):
        made = plain.plan(small, "tiny", of(count)).steps_to_run()
        taken[count] = {
            (s.earlier.count, s.earlier.reused_count) for s in made if s.earlier
        }
    assert taken == {1: {(2, 1)}, 3: {(4, 3)}, 5: {(6, 5)}, 8: {(6, 6)}}


def test_another_seed_or_setting_takes_over_nothing_that_reads_it(
    small: Project,
) -> None:
    """A changed cutoff leaves earlier stages to be taken over, a seed none."""
    changed = ("tiny", of(6), "aggregate.cutoff=0.6")
    made = plain.plan(small, *changed).steps_to_run()
    anew = {step.stage.name for step in made if not step.earlier}
    assert anew == {"aggregate", "report"}
    made = plain.plan(small, "tiny", of(6), "seed=8").steps_to_run()
    assert not any(step.earlier for step in made)


def test_a_killed_run_computes_what_was_not_finished(
    small: Project, nothing: Any, computed: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its blocks are there for the next one, which still takes over the others."""
    step = plain.plan(small, "tiny", of(7)).steps_to_run()[0]
    noted = execution.compute_block

    def dies(job: execution.Job, part: execution.Part) -> None:
        if part == ((5,),):
            raise KeyboardInterrupt
        noted(job, part)

    with monkeypatch.context() as patch:
        patch.setattr(execution, "compute_block", dies)
        with pytest.raises(KeyboardInterrupt):
            execute_step(small, step, block=1)
    assert computed == {"ingest": [4]}
    record = plain.run(small, "tiny", of(7), block=1)
    assert computed["ingest"] == [4, 5, 6]
    assert plain.hashes(small, record) == nothing(7)


def test_what_was_altered_is_not_taken_over(small: Project, nothing: Any) -> None:
    """A byte of a stored table differs: all replicates of that stage are computed."""
    (before,) = (s for s in plain.plan(small, "tiny", of(4)).steps if _is(s, "train"))
    there = artifact(small, "train", before.key)
    (name, *_) = there.manifest["tables"]
    data = bytearray(there.table_path(name).read_bytes())
    data[len(data) // 2] ^= 1
    there.table_path(name).write_bytes(data)
    (step,) = (s for s in plain.plan(small, "tiny", of(6)).steps if _is(s, "train"))
    assert (step.action, step.earlier) == ("run", None)
    record = plain.run(small, "tiny", of(6))
    assert plain.hashes(small, record) == nothing(6)


def test_what_is_altered_after_the_plan_is_refused(small: Project) -> None:
    """The message says what to do; nothing is stored."""
    step = plain.plan(small, "tiny", of(6)).steps_to_run()[0]
    assert step.earlier
    (artifact(small, "ingest", step.earlier.key).path / "manifest.json").unlink()
    with pytest.raises(UserError, match="Run the pipeline again"):
        execute_step(small, step)
    assert artifact(small, "ingest", step.key).problem(content=False) == "missing"


def test_a_forced_stage_is_computed_whole(small: Project, computed: Counts) -> None:
    """``--force`` asks for new computations of every replicate."""
    forced = Selection(force=("train",))
    plain.run(small, "tiny", of(6), selection=forced, block=1)
    assert computed["train"] == [0, 1, 2, 3, 4, 5]
    assert computed["privatize"] == [4, 5]


def test_what_a_run_takes_from_stays_while_it_runs(small: Project) -> None:
    """`curvote gc` beside it deletes nothing of it; afterwards it may."""
    made = plain.plan(small, "tiny", of(6))
    plain.run(small, "tiny", "seed=8", of(1))
    record = records.record_start(small, made.configured, made.steps, "me")
    taken = {s.earlier.key for s in made.steps if s.earlier}
    assert taken
    assert not taken & _may_go(small)
    records.record_end(small, record, "killed")
    assert taken <= _may_go(small)


def test_production_takes_over_nothing(tmp_path: Path) -> None:
    """There is one replicate, and its keys say nothing of others."""
    made = production.plan(production.write(tmp_path))
    assert not any(map(has_replicates, made.steps))


def test_a_stage_over_all_replicates_has_no_others_rows(small: Project) -> None:
    """Nor has what reads it, however often it repeats itself."""
    steps = list(plain.plan(small, "tiny", of(4)).steps)
    found = sibling_steps(steps, 9)
    assert all(one.same for one in found.values())
    (at,) = (n for n, step in enumerate(steps) if _is(step, "evaluate"))
    steps[at] = _over_all(steps[at])
    found = sibling_steps(steps, 9)
    assert not any(found[s.id].same for s in steps[at:] if _reads(s, steps[at]))
    assert all(found[step.id].same for step in steps[:at])


def test_the_record_of_a_run_says_what_it_took_over(small: Project) -> None:
    """Beside the reason stands the key; other steps have no such entry."""
    record = plain.run(small, "tiny", of(5))
    told = records.completed_run(small, "tiny", record.id).steps
    assert all(artifact(small, s["stage"], s["earlier"]).n_rows for s in told)
    again = plain.run(small, "tiny", of(5))
    assert not any("earlier" in step for step in again.steps)


def _over_all(step: Step) -> Step:
    return Step(**{**vars(step), "index": (), "places": ((),)})


def _reads(step: Step, source: Step) -> bool:
    return source.id in {step.id, *step.sources.values()}


def _is(step: Step, stage: str) -> bool:
    return step.stage.name == stage


def _may_go(project: Project) -> set[str]:
    limits = garbage.RetentionLimits()
    return {
        p.name for pile in garbage.find_garbage(project, 1, limits) for p in pile.paths
    }
