"""Reading pipelines.yaml: every problem in one pass, each with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from curvote.errors import Problem, UserError, Where, closest, did_you_mean
from curvote.run.config import schema
from curvote.run.config.axis_lines import dotted_path, set_at
from curvote.run.config.form import validated
from curvote.run.config.meaning import meaning_problems, unknown
from curvote.run.config.overrides import refuse_in_production
from curvote.run.config.parts import parts
from curvote.run.config.runtime import Runtime
from curvote.run.config.settings import named, put, settings
from curvote.run.config.source import files_of
from curvote.run.config.to_state import refuse_unstated
from curvote.run.config.yaml_lines import load, parsed
from curvote.run.project import PIPELINES, Project


@dataclass(frozen=True)
class Setting:
    """One combination of a grid's axes; a pipeline without a grid has one, unnamed."""

    name: str | None
    pipeline: schema.Pipeline


@dataclass(frozen=True)
class Configured:
    """A pipeline that is ready to be planned.

    ``pipeline`` is what stands in the file, ``settings`` what its grid makes of it.
    """

    name: str
    pipeline: schema.Pipeline
    overrides: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()

    def values(self) -> dict[str, Any]:
        """Return the resolved configuration as plain JSON values."""
        return self.pipeline.model_dump(mode="json")


class PipelinesFile:
    """The parsed pipelines.yaml of a folder; ``called`` is how errors name it."""

    def __init__(self, place: Project, called: str = PIPELINES) -> None:
        self.called = called
        values, self.lines = load(place.pipelines_file, called)
        self.values: dict[str, Any] = values if isinstance(values, dict) else {}
        self._check_top()

    def _check_top(self) -> None:
        unknown = set(self.values) - {*_TOP}
        problems = [
            Problem(f"not known.{did_you_mean(str(key), _TOP)}", (key,))
            for key in sorted(unknown, key=str)
        ]
        if not isinstance(self.values.get("pipelines"), dict):
            message = (
                f"{self.called}: there is no mapping named pipelines. Write pipelines:"
                " and below it, each indented by two spaces, names with their settings."
            )
            problems.append(Problem(message, None))
        if problems:
            raise self.located(UserError.several(problems))

    def names(self) -> list[str]:
        """Return the names of the pipelines, in the file's order."""
        return [str(name) for name in self.values["pipelines"]]

    def runtime(self) -> Runtime:
        """Return how the project runs; one UserError with all that is wrong there."""
        stated = self.values.get("runtime") or {}
        try:
            return validated(Runtime, stated, ("runtime",))
        except UserError as error:
            raise self.located(error) from None

    def schedules(self, faulty: dict[str, UserError] | None = None) -> dict[str, Any]:
        """Return when scheduled pipelines are due, not what they do when they fail.

        One that cannot be read is a UserError, or is put among ``faulty``.
        """
        found: dict[str, schema.Schedule | None] = {}
        for name in self.names():
            try:
                found[name] = self.configured(name).pipeline.schedule
            except UserError as error:
                if faulty is None:
                    raise
                faulty[name] = error
        left_out = {"retries", "retry_delay"}
        return {
            name: schedule.model_dump(exclude_none=True, exclude=left_out)
            for name, schedule in found.items()
            if schedule
        }

    def configured(
        self, name: str, overrides: Sequence[str] = (), **fixed: Any
    ) -> Configured:
        """Return pipeline ``name`` with defaults, ``a.b=v`` overrides and fixed values.

        Raises one UserError with all problems, each with its line; in production most
        overrides are one (`curvote.run.config.overrides`).
        """
        pipelines = self.values["pipelines"]
        if name not in pipelines:
            raise UserError(f"no pipeline {name!r}.{did_you_mean(name, pipelines)}")
        where: Where = ("pipelines", name)
        if not isinstance(pipelines[name], dict):
            problem = Problem("must be a mapping of settings: {source: ...}.", where)
            raise self.located(UserError.several([problem]))
        defaults = self._defaults()
        stated = {**defaults, **pipelines[name]}
        merged = deepcopy(stated)
        for override in overrides:
            _override(merged, override)
        given = {key: value for key, value in fixed.items() if value is not None}
        merged |= given
        asked = [*overrides, *(f"{key}={value}" for key, value in given.items())]
        inherited = set(defaults) - set(pipelines[name]) - {_key(one) for one in asked}
        try:
            with _inside(where):
                refuse_unstated(merged)
            refuse_in_production(stated, merged, where)
            return _configured(name, merged, where, tuple(asked), inherited)
        except UserError as error:
            raise self.located(error, asked) from None

    def check(self) -> None:
        """Check the whole file; one UserError with the problems of all its parts."""
        problems: list[Problem] = []
        for check in (self.runtime, *self._checks()):
            try:
                check()
            except UserError as error:
                problems += error.problems
        if problems:
            raise UserError.several(problems)

    def _checks(self) -> Iterator[Callable[[], object]]:
        return (partial(self.configured, name) for name in self.names())

    def _defaults(self) -> dict[str, Any]:
        defaults = self.values.get("defaults") or {}
        try:
            validated(schema.Defaults, defaults, ("defaults",))
        except UserError as error:
            raise self.located(error) from None
        return dict(defaults)

    @contextmanager
    def placing(self, name: str) -> Iterator[None]:
        """Add the line to errors of planning and running ``name``."""
        try:
            yield
        except UserError as error:
            placed = (
                replace(problem, where=("pipelines", name, *problem.where))
                if problem.where
                else problem
                for problem in error.problems
            )
            raise self.located(UserError.several(placed)) from None

    def located(self, error: UserError, overrides: Sequence[str] = ()) -> UserError:
        """Return the error with ``pipelines.yaml:7:`` before each message.

        What an override set is said to stand in ``--set``.
        """
        return UserError.several(
            problem.after(self._prefix(problem, overrides))
            for problem in error.problems
        )

    def _prefix(self, problem: Problem, overrides: Sequence[str]) -> str:
        if problem.where is None:
            return ""
        path = dotted_path(problem.where)
        for override in overrides:
            given = override.partition("=")[0]
            made = problem.where not in self.lines and _within(given, path)
            if made or _within(path, given):
                return f"--set {override}: {path}: "
        line = self.lines.line(set_at(self.values, problem.where))
        place = f"{self.called}:{line}" if line else self.called
        return f"{place}: {path}: "


_TOP = ("defaults", "pipelines", "runtime")


def _within(path: str, outer: str) -> bool:
    return f"{path}.".startswith(f"{outer}.")


def _key(override: str) -> str:
    """Return the key of a pipeline that ``a.b=v`` sets or changes."""
    return override.partition("=")[0].partition(".")[0]


def _configured(
    name: str,
    merged: dict[str, Any],
    where: Where,
    overrides: tuple[str, ...],
    inherited: Set[str],
) -> Configured:
    with _inside(where):
        each = [(named(labels), own) for labels, own in settings(merged)]
    systems = schema.named_in(own for _, own in each)
    # Defaults are for whoever reads them.
    unread = inherited & schema.foreign(systems).keys()
    merged = {key: value for key, value in merged.items() if key not in unread}
    stated = {key for _, own in each for key in own} - unread
    problems = _unread(stated, systems, where)
    try:
        made = tuple(Setting(at, _checked(own, systems, where)) for at, own in each)
    except UserError as error:
        problems += error.problems
    if problems:
        raise UserError.several(problems)
    if len({files_of(setting.pipeline) for setting in made}) > 1:
        message = "settings of one run cannot read other files; make two pipelines."
        raise UserError(message, where=(*where, "grid"))
    if len(made) == 1:
        return Configured(name, made[0].pipeline, overrides, made)
    whole = validated(schema.model(systems), merged, where)
    return Configured(name, whole, overrides, made)


@contextmanager
def _inside(where: Where) -> Iterator[None]:
    """Place the problems of one pipeline in the file."""
    try:
        yield
    except UserError as error:
        raise UserError.several(
            replace(problem, where=(*where, *(problem.where or ())))
            for problem in error.problems
        ) from None


def _unread(stated: Set[str], systems: frozenset[str], where: Where) -> list[Problem]:
    """Return sections that no system here reads; one that is none is a UserError."""
    problems = [problem for name in sorted(systems) for problem in unknown(name)]
    if problems:
        with _inside(where):
            raise UserError.several(problems)
    return [
        Problem(_foreign(section, reader, systems), (*where, section))
        for section, reader in schema.foreign(systems).items()
        if section in stated
    ]


def _foreign(section: str, reader: str, systems: frozenset[str]) -> str:
    known = [*schema.model(systems).model_fields]
    names = ", ".join(sorted(systems))
    reads = f"none of {names} reads" if len(systems) > 1 else f"{names} never reads"
    return (
        f"{reads} it: it belongs to {reader}."
        f"{closest(section, known)} Take it out, or name {reader}."
    )


def _checked(
    merged: dict[str, Any], systems: frozenset[str], where: Where
) -> schema.Pipeline:
    (name,) = names = schema.named_in([merged])
    mine = {k: v for k, v in merged.items() if k not in schema.foreign(names)}
    known = schema.own(mine, name, systems)
    pipeline = validated(schema.model(names), known, where)
    with _inside(where):
        problems = meaning_problems(pipeline)
        if problems:
            raise UserError.several(problems)
    # Releases go by the concrete protocol; production leaves nothing open.
    return next(parts(pipeline)).settings if pipeline.production else pipeline


def _override(values: dict[str, Any], text: str) -> None:
    """Apply ``a.b=v``; the value is read as YAML."""
    path, equals, given = text.partition("=")
    if not equals or not path:
        raise UserError(f"--set {text!r}: write it as a.b=value.")
    try:
        put(values, path, parsed(given))
    except UserError as error:
        raise UserError(f"--set {text!r}: {error}") from None
