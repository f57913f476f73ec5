"""Plan of a run: an action for every step, and its reason in words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from curvote.base.errors import UserError, did_you_mean
from curvote.chain.measure import SCORES
from curvote.pipeline.config.file import ConfiguredPipeline
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import (
    MissingFiles,
    RawInput,
    raw_files,
    stage_files,
)
from curvote.pipeline.plan.definitions import NOTES
from curvote.pipeline.plan.expand import expand
from curvote.pipeline.plan.step import Step, differences
from curvote.pipeline.release import evidence, production
from curvote.pipeline.store.artifacts import Artifact, artifact, migrate_raw_artifacts
from curvote.pipeline.store.growth import reuse_replicates
from curvote.pipeline.store.records import latest_keys


@dataclass(frozen=True)
class Plan:
    """The steps of a pipeline, inputs first; incomplete if limited to a stage."""

    configured: ConfiguredPipeline
    steps: tuple[Step, ...]
    complete: bool = True

    def steps_to_run(self) -> list[Step]:
        """Return the steps that have to be computed."""
        return [step for step in self.steps if step.action == "run"]

    def blocked_steps(self) -> list[Step]:
        """Return the steps that wait for something outside this run."""
        return [step for step in self.steps if step.action == "blocked"]


@dataclass(frozen=True)
class Selection:
    """Selection of stages to recompute: some alone, one and later, or named ones."""

    only: tuple[str, ...] = ()
    start: str | None = None
    force: tuple[str, ...] = ()

    def forced_stages(self, stages: Sequence[str]) -> dict[str, str]:
        """Return ``{stage: reason}`` of forced stages; unknown ones: UserError."""
        order = list(dict.fromkeys(stages))
        for name in filter(None, (*self.only, self.start, *self.force)):
            if name not in order:
                raise UserError(f"no stage {name!r}.{did_you_mean(name, order)}")
        reasons = dict.fromkeys(self.force, "forced by --force")
        if self.start:
            later = order[order.index(self.start) :]
            reasons |= dict.fromkeys(later, f"forced by --from {self.start}")
        return reasons | dict.fromkeys(self.only, "forced by --only")


EVERYTHING = Selection()


def make_plan(
    project: Project,
    configured: ConfiguredPipeline,
    selection: Selection = EVERYTHING,
    *,
    fetch: bool = False,
    new_release: bool = False,
    new_people: bool = False,
) -> Plan:
    """Return the plan, with an action and its reason for every step.

    ``plan`` and ``run`` both call this; only ``run`` sets ``fetch``, which may download
    the raw file. Without the raw file every step is blocked. Raises UserError for an
    unknown stage and for ``only`` with inputs that are not there.
    """
    migrate_raw_artifacts(project)
    NOTES.open(project.state / "code.json")
    raw = raw_files(project, configured.pipeline, fetch=fetch)
    if isinstance(raw, MissingFiles):
        names = ", ".join(raw.names)
        reason = (
            f"a file is missing: `curvote data fetch {names}` (a run does that, too)"
        )
        absent = tuple(RawInput(name, "absent", "", "", "absent") for name in raw.names)
        every = expand(configured, absent)
        blocked = [replace(step, action="blocked", reason=reason) for step in every]
        return Plan(configured, tuple(blocked))
    flags = {"new_release": new_release, "new_people": new_people}
    configured = evidence.with_population(project, configured)
    state = None
    if configured.pipeline.production:
        state = production.release_state(
            project, configured, raw, **flags, closing=fetch
        )
    elif any(flags.values()):
        raise UserError(
            f"--new-release, --new-people: {configured.name} is a study, and these are"
            " for production; --seed draws a study's noise anew."
        )
    pipelines = [setting.pipeline for setting in configured.settings]
    steps = list(expand(configured, raw, state, stage_files(project, pipelines)))
    forced = selection.forced_stages([step.stage.name for step in steps])
    production.refuse_force(steps, forced)
    latest = cache(partial(latest_keys, project, configured.name))
    decided = [
        _decide_action(project, configured, step, forced, latest) for step in steps
    ]
    if configured.pipeline.intake:
        decided = production.merge_round_counts(project, configured, decided)
    decided = _recheck_inputs(project, production.block_dependents(decided))
    decided = reuse_replicates(project, configured, _share_equal_steps(decided))
    if selection.only:
        decided = _limit_to_stages(configured.name, decided, selection.only)
    return Plan(configured, tuple(decided), complete=not selection.only)


def _decide_action(
    project: Project,
    configured: ConfiguredPipeline,
    step: Step,
    forced: Mapping[str, str],
    latest: Callable[[], Mapping[tuple[str, str], str]],
) -> Step:
    if step.stage.name in forced:
        why = forced[step.stage.name]
        return replace(step, action="run", reason=why, forced=True)
    if step.release:
        return production.decide_release(project, configured, step)
    there = artifact(project, step.stage.name, step.key)
    problem = there.problem(content=SCORES in step.stage.tables)
    if problem is None:
        return replace(step, action="reuse", reason="unchanged")
    if problem != "missing":
        return replace(step, action="run", reason=f"artifact {problem}")
    reason, *also = _missing_reasons(project, step, latest())
    return replace(step, action="run", reason=reason, also=tuple(also))


def _missing_reasons(
    project: Project, step: Step, latest: Mapping[tuple[str, str], str]
) -> tuple[str, ...]:
    """Return all reasons why a step's artifact is missing, most telling first."""
    before = latest.get((step.stage.name, str(step.cell)))
    if before is None:
        return ("never run",)
    if before == step.key:
        return ("did not finish, or was deleted",)
    old: Artifact = artifact(project, step.stage.name, before)
    if old.problem(content=False) == "missing":
        return ("never run",)
    reasons = differences(old.manifest["components"], step.components)
    return tuple(reasons) or ("what it depends on changed",)


def _recheck_inputs(project: Project, steps: Sequence[Step]) -> list[Step]:
    """Check contents of artifacts that steps will read; recompute altered ones."""
    running = {step.id for step in steps if step.action == "run"}
    altered: dict[tuple[str, str], str] = {}
    for step in reversed(steps):
        if step.id not in running or step.action == "blocked":
            continue
        for source in set(step.sources.values()) - running:
            problem = artifact(project, *source).problem(content=True)
            if problem is not None:
                altered[source] = f"artifact {problem}"
                running.add(source)
    return [
        replace(step, action="run", reason=altered[step.id])
        if step.id in altered
        else step
        for step in steps
    ]


def _share_equal_steps(steps: Sequence[Step]) -> list[Step]:
    """Run a step shared by several cells once; the other cells reuse it."""
    first: dict[tuple[str, str], Step] = {}
    for step in steps:
        first.setdefault(step.id, step)
    return [
        replace(
            step,
            action="reuse",
            reason=f"the same as {first[step.id].name}",
            also=(),
            forced=False,
        )
        if step.action == "run" and first[step.id] is not step
        else step
        for step in steps
    ]


def _limit_to_stages(
    name: str, steps: Sequence[Step], only: Sequence[str]
) -> list[Step]:
    """Return the steps of some stages; refuse stale inputs (UserError)."""
    selected = [step for step in steps if step.stage.name in only]
    needed = {source for step in selected for source in step.sources.values()}
    needed -= {step.id for step in selected}
    stale = [step for step in steps if step.id in needed and step.action != "reuse"]
    if stale:
        first = stale[0]
        options = " ".join(f"--only {stage}" for stage in only)
        raise UserError(
            f"{options}: {first.name}, which it reads, is stale ({first.reason})."
            f" Run `curvote run {name} --from {first.stage.name}`, or without --only."
        )
    return selected
