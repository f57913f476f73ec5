"""Systems: one frozen value each, of which everything generic is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import BaseModel

from curvote.base.errors import InternalError, Problem
from curvote.chain import axis
from curvote.chain.measure import Method, Metric
from curvote.chain.reputation import Reputation
from curvote.chain.stage import Columns, Metadata, Place, Stage, Table


@dataclass(frozen=True)
class MessageDescription:
    """Description of a message that leaves a party, and of its budget.

    ``epsilon`` is a number or words; ``study_only`` marks what is drawn for comparison
    and what no real deployment would ask for. A ``per_table`` one is about all records
    of its party, who is trusted with them: central privacy, not local.
    """

    who: str
    what: str
    mechanism: str
    detail: str = ""
    epsilon: float | str = "epsilon"
    study_only: bool = False
    party: str = "client"
    per_table: bool = False


class View(Protocol):
    """Artifacts that serve one cell of a run, with the settings of the cell."""

    @property
    def cell(self) -> axis.Cell:
        """The cell."""

    @property
    def settings(self) -> axis.PipelineSettings:
        """The resolved settings of the cell's system."""

    def without(self, *axes: str) -> View:
        """Return the view of the wider cell that has no value on some axes."""

    def at(self, **values: axis.Value) -> View:
        """Return the view of the narrower cell with these values on its axes."""

    def setting(self, path: str) -> Any:
        """Return the value of a dotted key as the stages of the cell read it."""

    def holds(self, stage: str, table: str = "") -> bool:
        """Say whether the cell has the stage, and the stage that table."""

    def metadata(self, stage: str) -> Metadata:
        """Return the metadata that a stage recorded."""

    def columns(self, stage: str, table: str, place: Place = (0,)) -> Columns:
        """Return the columns of one repetition of a table."""

    def count(self, stage: str) -> int:
        """Return how many rows the tables of a stage have in all."""

    def read(self, stage: str, table: str) -> Any:
        """Return all rows of a table, with its index, as a pandas DataFrame."""


# Settings, and what gives the facts of a stage: the tasks that an audit looks at.
AuditTasks = Callable[[axis.PipelineSettings, Callable[[str], Metadata]], Iterable[Any]]
StudyMessages = Callable[[Mapping[str, Any], int], Iterable[MessageDescription]]


@dataclass(frozen=True)
class Part:
    """Settings that stand for a pipeline in the cells that hold ``pairs``.

    ``reason`` says why a rule took ``method``; nothing was left to it where it is
    empty. ``settings.protocol`` names the system, ``rule`` the one that was asked in
    its place: tables have one row for whatever that takes.
    """

    settings: axis.PipelineSettings
    pairs: tuple[tuple[str, Any], ...] = ()
    method: str = ""
    reason: str = ""
    rule: str = ""


@dataclass(frozen=True)
class System:
    """Whole way from data to a result, as one value.

    ``settings`` are its own sections of pipelines.yaml; any other section is an error.
    ``stages`` are those of a study, ``production`` those of a release, if it has any,
    and ``judging`` what stands behind these where clients are kept as judges.
    ``axes`` make its cells, ``x`` is what stands on the x-axis of its figures, and its
    tables repeat over ``index``. ``messages`` are what leaves whom, ``study_messages``
    says what leaves only in a study, for comparison, and ``audit_tasks`` yields the
    tasks that an audit looks at, where they are not one for each epsilon and message.
    ``metrics`` and ``methods`` are what it measures, and of what; ``main`` names the
    methods that may stand in a headline, the first that there is.

    ``checks`` yields what is wrong with settings beyond their form, ``resolve_parts``
    what they stand for where something is left to a rule, and ``normalize`` what stages
    read. ``auto_include`` says of another system and settings, as they stand in
    pipelines.yaml, whether this one stands beside them though nobody named it: as a
    further protocol, once for each combination of the grid.

    ``shorthand`` names the keys of its section that an entry of `protocols` may call by
    their last name, ``implied_settings`` what such an entry sets by itself.

    ``final_model`` makes the model to keep (any object with ``predict``),
    ``production_metrics`` says what production may know, ``reputation`` how a deployed
    model stands that production asks about, ``notes`` what a reader of a run should be
    told, and ``needs_new_round`` whether facts of a round that stays open call for a
    new one. ``sections`` of the page are modules of its own
    (`curvote.report.data`), and so are the verbs of the command line that a
    module ``commands`` beside it names (`curvote.chain.commands`).
    """

    name: str
    settings: type[BaseModel]
    stages: tuple[Stage, ...]
    production: tuple[Stage, ...] = ()
    judging: tuple[Stage, ...] = ()
    axes: tuple[axis.Axis, ...] = (axis.EPSILON,)
    x: axis.Axis = axis.EPSILON
    index: tuple[axis.Index, ...] = (axis.REPLICATE,)
    messages: Mapping[str, Any] = field(default_factory=dict, hash=False)
    study_messages: tuple[StudyMessages, ...] = ()
    audit_tasks: AuditTasks | None = None
    metrics: tuple[Metric, ...] = ()
    methods: tuple[Method, ...] = ()
    main: tuple[str, ...] = ()
    checks: Callable[[axis.PipelineSettings], Iterable[Problem]] = lambda _: ()
    resolve_parts: Callable[[axis.PipelineSettings], Sequence[Part]] = lambda config: (
        Part(config),
    )
    normalize: Callable[[dict[str, Any]], dict[str, Any]] = lambda values: values
    auto_include: Callable[[System, Mapping[str, Any]], bool] = lambda other, values: (
        False
    )
    shorthand: tuple[str, ...] = ()
    implied_settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    final_model: Callable[[View], Any] | None = None
    production_metrics: Callable[[View], Mapping[str, float]] = lambda _: {}
    reputation: Callable[[View], Reputation] | None = None
    needs_new_round: Callable[[axis.PipelineSettings, dict[str, Any]], bool] = (
        lambda settings, facts: False
    )
    notes: Callable[[Sequence[View]], Iterable[str]] = lambda _: ()
    sections: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for kind in ("axes", "index", "metrics", "methods"):
            names = [item.name for item in getattr(self, kind)]
            duplicates = sorted({name for name in names if names.count(name) > 1})
            if duplicates:
                raise InternalError(f"{self.name}: {kind} {duplicates[0]} stands twice")
        index = tuple(index.name for index in self.index)
        for stage in self.all_stages:
            stage_index = index if stage.index is None else stage.index
            if stage_index != index[: len(stage_index)]:
                raise InternalError(
                    f"{self.name}: stage {stage.name} repeats over"
                    f" {', '.join(stage_index)},"
                    f" which does not begin {', '.join(index)}"
                )
        for kind, named in (
            ("metric", {m.beside for m in self.metrics if m.beside}),
            ("method", set(self.main)),
        ):
            missing = sorted(named - {item.name for item in getattr(self, f"{kind}s")})
            if missing:
                raise InternalError(f"{self.name}: there is no {kind} {missing[0]}")

    def describe_messages(
        self, config: Mapping[str, Any], d: int
    ) -> tuple[MessageDescription, ...]:
        """Return descriptions of all messages, for settings and d numbers."""
        sent_messages = [
            replace(description, party=m.party, per_table=m.per_table)
            for m in self.messages.values()
            for description in m.describe(config, d)
        ]
        study_messages = [
            replace(description, study_only=True)
            for describe in self.study_messages
            for description in describe(config, d)
        ]
        return (*sent_messages, *study_messages)

    @property
    def tables(self) -> tuple[Table, ...]:
        """Tables of all stages, each once."""
        all_tables = (table for stage in self.all_stages for table in stage.tables)
        return tuple({table.name: table for table in all_tables}.values())

    @property
    def all_stages(self) -> tuple[Stage, ...]:
        """Stages of studies and of production."""
        return (*self.stages, *self.release_stages(with_judges=True))

    def release_stages(self, *, with_judges: bool) -> tuple[Stage, ...]:
        """Return the stages of production, with or without judges."""
        return (*self.production, *(self.judging if with_judges else ()))
