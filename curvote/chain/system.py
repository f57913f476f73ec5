"""What a system is: one frozen value, from which all that is generic is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from curvote.chain.axis import EPSILON, REPLICATE, Axis, Index, Settings
from curvote.chain.measure import Method, Metric
from curvote.chain.sent import Sent
from curvote.chain.stage import Facts, Stage
from curvote.chain.tables import Table
from curvote.chain.view import View
from curvote.errors import InternalError, Problem

# Settings, and what gives the facts of a stage: the tasks that an audit looks at.
Asked = Callable[[Settings, Callable[[str], Facts]], Iterable[Any]]
Said = Callable[[Mapping[str, Any], int], Iterable[Sent]]


@dataclass(frozen=True)
class Part:
    """What settings stand for in the cells that hold ``pairs``; () are all cells.

    ``reason`` says why a rule took ``method``; nothing was left to it where it is
    empty. ``settings.protocol`` names the system, ``rule`` the one that was asked in
    its place: tables have one row for whatever that takes.
    """

    settings: Settings
    pairs: tuple[tuple[str, Any], ...] = ()
    method: str = ""
    reason: str = ""
    rule: str = ""


@dataclass(frozen=True)
class System:
    """A whole way from data to a result.

    ``settings`` are its own sections of pipelines.yaml; any other section is an error.
    ``stages`` are those of a study, ``production`` those of a release, if it has any.
    ``axes`` make its cells, ``x`` is what stands on the x-axis of its figures, and its
    tables repeat over ``index``. ``messages`` are what leaves whom, ``compared`` says
    what leaves only in a study, for comparison, and ``asked`` yields the tasks that an
    audit looks at, where they are not one for each epsilon and message. ``metrics`` and
    ``methods`` are what it measures, and of what; ``main`` names the methods that may
    stand in a headline, the first that there is.

    ``checks`` yields what is wrong with settings beyond their form, ``parts`` what they
    stand for where something is left to a rule, and ``spelled`` what stages read.
    ``unasked`` says of another system and settings, as they stand in pipelines.yaml,
    whether this one stands beside them though nobody named it: as a further protocol,
    once for each combination of the grid.

    ``short`` names the keys of its section that an entry of `protocols` may call by
    their last name, ``fixed`` what such an entry sets by itself.

    ``final`` makes the model to keep (any object with ``predict``), ``outcome`` says
    what production may know, ``notes`` what a reader of a run should be told, and
    ``alarm`` whether facts of a round that stays open call for a new one.
    ``sections`` of the page are modules of its own (`curvote.reporting.section`), and
    so are the verbs of the command line that a module ``commands`` beside it names
    (`curvote.chain.commands`).
    """

    name: str
    settings: type[BaseModel]
    stages: tuple[Stage, ...]
    production: tuple[Stage, ...] = ()
    axes: tuple[Axis, ...] = (EPSILON,)
    x: Axis = EPSILON
    index: tuple[Index, ...] = (REPLICATE,)
    messages: Mapping[str, Any] = field(default_factory=dict, hash=False)
    compared: tuple[Said, ...] = ()
    asked: Asked | None = None
    metrics: tuple[Metric, ...] = ()
    methods: tuple[Method, ...] = ()
    main: tuple[str, ...] = ()
    checks: Callable[[Settings], Iterable[Problem]] = lambda _: ()
    parts: Callable[[Settings], Sequence[Part]] = lambda settings: (Part(settings),)
    spelled: Callable[[dict[str, Any]], dict[str, Any]] = lambda values: values
    unasked: Callable[[System, Mapping[str, Any]], bool] = lambda other, values: False
    short: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict, hash=False)
    final: Callable[[View], Any] | None = None
    outcome: Callable[[View], Mapping[str, float]] = lambda _: {}
    alarm: Callable[[Settings, dict[str, Any]], bool] = lambda settings, facts: False
    notes: Callable[[Sequence[View]], Iterable[str]] = lambda _: ()
    sections: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for kind in ("axes", "index", "metrics", "methods"):
            names = [each.name for each in getattr(self, kind)]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise InternalError(f"{self.name}: {kind} {twice[0]} stands twice")
        self._check_index()
        self._check("metric", {m.beside for m in self.metrics if m.beside})
        self._check("method", set(self.main))

    def _check_index(self) -> None:
        """Refuse a stage whose place would name another repetition of its inputs."""
        names = tuple(index.name for index in self.index)
        for stage in self.every_stage:
            own = names if stage.index is None else stage.index
            if own != names[: len(own)]:
                raise InternalError(
                    f"{self.name}: stage {stage.name} repeats over {', '.join(own)},"
                    f" which does not begin {', '.join(names)}"
                )

    def _check(self, kind: str, named: set[str]) -> None:
        """Refuse the names of metrics or methods that the system does not have."""
        absent = sorted(named - {each.name for each in getattr(self, f"{kind}s")})
        if absent:
            raise InternalError(f"{self.name}: there is no {kind} {absent[0]}")

    def sent(self, config: Mapping[str, Any], d: int) -> tuple[Sent, ...]:
        """Return what leaves whom in words, for a configuration and d numbers."""
        real = [
            replace(one, party=m.party, whole=m.whole)
            for m in self.messages.values()
            for one in m.words(config, d)
        ]
        beside = [one for said in self.compared for one in said(config, d)]
        return (*real, *(replace(one, study_only=True) for one in beside))

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table that its stages make."""
        every = (table for stage in self.every_stage for table in stage.tables)
        return tuple({table.name: table for table in every}.values())

    @property
    def every_stage(self) -> tuple[Stage, ...]:
        """The stages of studies and of production."""
        return (*self.stages, *self.production)
