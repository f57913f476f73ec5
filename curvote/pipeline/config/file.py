"""Parsed pipelines.yaml: settings, overrides, placeholders, and places of errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from curvote.base.errors import (
    KeyPath,
    Problem,
    UserError,
    did_you_mean,
    suggest_closest,
)
from curvote.chain.lookup import find_system
from curvote.chain.registry import DEFAULT, SYSTEMS
from curvote.data.lookup import is_remote, resolve_source
from curvote.data.tables.starter import TO_STATE
from curvote.messages.message import messages_of
from curvote.messages.roles import too_many_error
from curvote.pipeline.config import schema, settings, yaml_document
from curvote.pipeline.config.project import PIPELINES, Project
from curvote.pipeline.config.schema import Runtime
from curvote.pipeline.config.source import raw_file_names, user_file_path

if TYPE_CHECKING:
    from curvote.data.tables.card import FileCard

_IN_PIPELINE: Final = 3  # ("pipelines", name, key)


def dotted_path(where: KeyPath) -> str:
    """Return the dotted path inside the pipeline, as ``--set`` takes it."""
    in_pipeline = where[0] == "pipelines" and len(where) >= _IN_PIPELINE
    return ".".join(str(part) for part in (where[2:] if in_pipeline else where))


def locate_setting(values: Mapping[str, Any], where: KeyPath) -> KeyPath:
    """Return the place in the file that sets ``where``; this may be an axis.

    ``values`` are those of the file, right or wrong.
    """
    if where[:1] != ("pipelines",) or len(where) < _IN_PIPELINE:
        return where
    pipeline, path = values["pipelines"].get(where[1]), dotted_path(where)
    for place, keys in _axis_setters(pipeline) if isinstance(pipeline, Mapping) else ():
        for key in keys:
            if _is_within(path, key):
                return *where[:2], *place, str(key)
    return where


def _axis_setters(
    pipeline: Mapping[Any, Any],
) -> Iterator[tuple[KeyPath, Iterable[Any]]]:
    """Yield the place of each axis value that sets dotted keys, with those keys."""
    grid, protocols = pipeline.get("grid"), pipeline.get("protocols")
    for axis, entries in grid.items() if isinstance(grid, Mapping) else ():
        if not isinstance(entries, Mapping):
            yield ("grid",), (axis,)
            continue
        for label, keys in entries.items():
            if isinstance(keys, Mapping):
                yield ("grid", str(axis), str(label)), keys
    for index, protocol in enumerate(protocols if isinstance(protocols, list) else ()):
        if isinstance(protocol, Mapping):
            yield ("protocols", index), protocol


_REFUSAL = (
    "{given} is asked for, the file says {stated}: in production an override changes"
    " nothing that a message is made of, nor who takes part. Such a change belongs into"
    " pipelines.yaml; a release above what was consented to needs `curvote ledger"
    " raise-cap`."
)
_ABSENT = "nothing"


def refuse_in_production(
    file_values: Mapping[str, Any], run_values: Mapping[str, Any], where: KeyPath
) -> None:
    """Refuse to run a production pipeline with other settings than its file's.

    ``run_values`` is the pipeline with what the command line set. Nor does the command
    line make a study of production, or production of a study. UserError names every
    change.
    """
    if "production" not in (file_values.get("mode"), run_values.get("mode")):
        return
    protocol, judges = file_values.get("protocol", DEFAULT), file_values.get("judges")
    free = overridable_settings(str(protocol), with_judges=bool(judges))
    before, after = (  # equal texts name one release
        {
            path: yaml_document.as_one_line(value)
            for path, value in yaml_document.flat_items(values)
        }
        for values in (file_values, run_values)
    )
    problems = []
    for path in sorted(before.keys() | after.keys()):
        file_text, run_text = before.get(path, _ABSENT), after.get(path, _ABSENT)
        if file_text != run_text and ".".join(path) not in free:
            message = _REFUSAL.format(stated=file_text, given=run_text)
            problems.append(Problem(message, (*where, *path)))
    if problems:
        raise UserError.several(problems)


def overridable_settings(protocol: str, *, with_judges: bool = False) -> set[str]:
    """Return the dotted settings that are read only after the last message."""
    system = find_system(protocol) if protocol in SYSTEMS else None
    stages = system.release_stages(with_judges=with_judges) if system else ()
    last = max((i for i, s in enumerate(stages) if s.message), default=len(stages))
    counts = {name for stage in stages[: last + 1] for name in stage.params}
    later = {name for stage in stages[last + 1 :] for name in stage.params}
    kinds = messages_of(protocol).values() if protocol in SYSTEMS else ()
    counts |= {name for kind in kinds for name in kind.schedule_settings}
    return later - counts - set(settings.FIXED)


# What to write, by the key that holds the mark; the innermost key that is here counts.
_EXPECTED: Final = {
    "bounds": "two numbers known without the data, such as [0, 120]",
    "categories": "the texts that may stand there, such as [f, m]",
    "positive": "the label of the class that a classifier is to find, such as ill",
    "label": "the name of the column that says who is of which class",
    "id": "the name of the column that says whose row it is",
    "time": "the name of the column of times",
    "value": "the name of the column of measurements",
    "grid": "numbers in `unit`, such as {start: 0, stop: 24, points: 49}",
    "unit": "the unit of time: s, min, h, d or another word",
    "clients": "whole numbers, such as {train: 300, test: 80}",
    "gaps": "the longest time, in `unit`, without a measurement, such as 3",
}


def refuse_placeholders(values: Mapping[str, Any]) -> None:
    """Refuse (UserError) a pipeline with placeholders, a problem for each key."""
    by_key: dict[KeyPath, list[str]] = {}
    for where in _find_placeholders(values, ()):
        described = [place for place, key in enumerate(where) if key in _EXPECTED]
        at = where[: described[-1] + 1] if described else where
        columns = by_key.setdefault(at, [])
        columns += [key for key in where[len(at) :][:1] if isinstance(key, str)]
    problems = []
    for at, columns in by_key.items():
        names = f" for {', '.join(dict.fromkeys(columns))}" if columns else ""
        expected = _EXPECTED.get(str(at[-1]), "what you mean")
        message = f"still to be stated{names}: in place of {TO_STATE} write {expected}."
        problems.append(Problem(message, at))
    if problems:
        raise UserError.several(problems)


def _find_placeholders(value: Any, where: KeyPath) -> Iterator[KeyPath]:
    if value == TO_STATE:
        yield where
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _find_placeholders(inner, (*where, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _find_placeholders(inner, (*where, index))


@dataclass(frozen=True)
class Setting:
    """One combination of a grid's axes; a pipeline without a grid has one, unnamed."""

    name: str | None
    pipeline: schema.Pipeline


@dataclass(frozen=True)
class ConfiguredPipeline:
    """A checked pipeline, ready to be planned.

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
    """The parsed pipelines.yaml of a folder; errors name it ``called``."""

    def __init__(self, place: Project, called: str = PIPELINES) -> None:
        self.called = called
        values, self.lines = yaml_document.load_document(place.pipelines_file, called)
        self.values: dict[str, Any] = values if isinstance(values, dict) else {}
        unknown = set(self.values) - {*_TOP_KEYS}
        problems = [
            Problem(f"not known.{did_you_mean(str(key), _TOP_KEYS)}", (key,))
            for key in sorted(unknown, key=str)
        ]
        if not isinstance(self.values.get("pipelines"), dict):
            message = (
                f"{self.called}: there is no mapping named pipelines. Write pipelines:"
                " and below it, each indented by two spaces, names with their settings."
            )
            problems.append(Problem(message, None))
        if problems:
            raise self.locate_error(UserError.several(problems))

    def names(self) -> list[str]:
        """Return the names of the pipelines, in the file's order."""
        return [str(name) for name in self.values["pipelines"]]

    def runtime(self) -> Runtime:
        """Return the section ``runtime``; one UserError holds all its problems."""
        return self._read_section("runtime", schema.Runtime)

    def _read_section(self, name: str, model: type[settings.Model]) -> settings.Model:
        try:
            return settings.validate_settings(
                model, self.values.get(name) or {}, (name,)
            )
        except UserError as error:
            raise self.locate_error(error) from None

    def schedules(self, faulty: dict[str, UserError] | None = None) -> dict[str, Any]:
        """Return the schedules of pipelines: when they are due, without retries.

        One that cannot be read is a UserError, or is put among ``faulty``.
        """
        schedules: dict[str, schema.Schedule | None] = {}
        for name in self.names():
            try:
                schedules[name] = self.configure_pipeline(name).pipeline.schedule
            except UserError as error:
                if faulty is None:
                    raise
                faulty[name] = error
        left_out = {"retries", "retry_delay"}
        return {
            name: schedule.model_dump(exclude_none=True, exclude=left_out)
            for name, schedule in schedules.items()
            if schedule
        }

    def configure_pipeline(
        self, name: str, overrides: Sequence[str] = (), **fixed: Any
    ) -> ConfiguredPipeline:
        """Return pipeline ``name``, resolved with defaults and overrides, checked.

        Raises one UserError with all problems, each with its line; in production most
        overrides are one (`curvote.pipeline.config.file`).
        """
        pipelines = self.values["pipelines"]
        if name not in pipelines:
            raise UserError(f"no pipeline {name!r}.{did_you_mean(name, pipelines)}")
        where: KeyPath = ("pipelines", name)
        if not isinstance(pipelines[name], dict):
            problem = Problem("must be a mapping of settings: {source: ...}.", where)
            raise self.locate_error(UserError.several([problem]))
        self._read_section("defaults", schema.Defaults)
        defaults = self.values.get("defaults") or {}
        file_values = {**defaults, **pipelines[name]}
        merged = deepcopy(file_values)
        for override in overrides:
            path, equals, text = override.partition("=")
            if not equals or not path:
                raise UserError(f"--set {override!r}: write it as a.b=value.")
            try:
                value = yaml_document.parse_value(text)
                settings.set_dotted(merged, path, value)
            except UserError as error:
                raise UserError(f"--set {override!r}: {error}") from None
            if value is None and isinstance(file_values.get(path), dict | list):
                merged.pop(path, None)  # a section that is taken out
        set_values = {key: value for key, value in fixed.items() if value is not None}
        merged |= set_values
        changes = [*overrides, *(f"{key}={value}" for key, value in set_values.items())]
        inherited = (
            set(defaults)
            - set(pipelines[name])
            - {change.partition("=")[0].partition(".")[0] for change in changes}
        )
        try:
            with _errors_inside(where):
                refuse_placeholders(merged)
            refuse_in_production(file_values, merged, where)
            return _configure(name, merged, where, tuple(changes), inherited)
        except UserError as error:
            raise self.locate_error(error, changes) from None

    def check_all(self) -> None:
        """Check the whole file; one UserError holds the problems of all its parts."""
        problems: list[Problem] = []
        pipelines = (partial(self.configure_pipeline, name) for name in self.names())
        checks: Iterator[Callable[[], object]] = chain([self.runtime], pipelines)
        for check in checks:
            try:
                check()
            except UserError as error:
                problems += error.problems
        if problems:
            raise UserError.several(problems)

    @contextmanager
    def errors_located(self, name: str) -> Iterator[None]:
        """Add file and line to errors that planning and running ``name`` raises."""
        try:
            yield
        except UserError as error:
            placed = (
                replace(problem, where=("pipelines", name, *problem.where))
                if problem.where
                else problem
                for problem in error.problems
            )
            raise self.locate_error(UserError.several(placed)) from None

    def locate_error(
        self, error: UserError, overrides: Sequence[str] = ()
    ) -> UserError:
        """Return the error with ``pipelines.yaml:7:`` before each message.

        What an override set is said to stand in ``--set``.
        """
        return UserError.several(
            problem.after(self._error_prefix(problem, overrides))
            for problem in error.problems
        )

    def _error_prefix(self, problem: Problem, overrides: Sequence[str]) -> str:
        if problem.where is None:
            return ""
        path = dotted_path(problem.where)
        for override in overrides:
            set_path = override.partition("=")[0]
            creates = problem.where not in self.lines and _is_within(set_path, path)
            if creates or _is_within(path, set_path):
                return f"--set {override}: {path}: "
        line = self.lines.line(locate_setting(self.values, problem.where))
        place = f"{self.called}:{line}" if line else self.called
        return f"{place}: {path}: "


_TOP_KEYS = ("defaults", "pipelines", "runtime")


def _is_within(path: str, outer: str) -> bool:
    return f"{path}.".startswith(f"{outer}.")


def _configure(
    name: str,
    merged: dict[str, Any],
    where: KeyPath,
    overrides: tuple[str, ...],
    inherited: Set[str],
) -> ConfiguredPipeline:
    with _errors_inside(where):
        labelled = [
            (settings.setting_name(labels), values)
            for labels, values in settings.expand_settings(merged)
        ]
    systems = schema.named_systems(values for _, values in labelled)
    # Defaults are for whoever reads them.
    unread = inherited & schema.unread_sections(systems).keys()
    merged = {key: value for key, value in merged.items() if key not in unread}
    used_keys = {key for _, values in labelled for key in values} - unread
    unknown = [name for name in sorted(systems) if name not in SYSTEMS]
    if unknown:
        hints = {name: did_you_mean(name, SYSTEMS) for name in unknown}
        raise UserError.several(
            Problem(f"{name!r} is not known.{hint}", (*where, "protocol"))
            for name, hint in hints.items()
        )
    model = schema.pipeline_model(systems)
    names, keys = ", ".join(sorted(systems)), [*model.model_fields]
    reads = f"none of {names} reads" if len(systems) > 1 else f"{names} never reads"
    problems = [
        Problem(
            f"{reads} it: it belongs to {reader}.{suggest_closest(section, keys)}"
            f" Take it out, or name {reader}.",
            (*where, section),
        )
        for section, reader in schema.unread_sections(systems).items()
        if section in used_keys
    ]
    try:
        checked = tuple(
            Setting(at, _check_setting(values, systems, where))
            for at, values in labelled
        )
    except UserError as error:
        problems += error.problems
    if problems:
        raise UserError.several(problems)
    if len({raw_file_names(setting.pipeline) for setting in checked}) > 1:
        message = "settings of one run cannot read other files; make two pipelines."
        raise UserError(message, where=(*where, "grid"))
    if len(checked) == 1:
        return ConfiguredPipeline(name, checked[0].pipeline, overrides, checked)
    full = settings.validate_settings(model, merged, where)
    return ConfiguredPipeline(name, full, overrides, checked)


@contextmanager
def _errors_inside(where: KeyPath) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise UserError.several(
            replace(problem, where=(*where, *(problem.where or ())))
            for problem in error.problems
        ) from None


def _check_setting(
    merged: dict[str, Any], systems: frozenset[str], where: KeyPath
) -> schema.Pipeline:
    (name,) = names = schema.named_systems([merged])
    read_values = {
        k: v for k, v in merged.items() if k not in schema.unread_sections(names)
    }
    system_values = schema.own_settings(read_values, name, systems)
    pipeline = settings.validate_settings(
        schema.pipeline_model(names), system_values, where
    )
    with _errors_inside(where):
        problems = settings.meaning_problems(pipeline)
        if problems:
            raise UserError.several(problems)
    # Releases go by the concrete protocol; production leaves nothing open.
    return (
        next(settings.resolve_parts(pipeline)).settings
        if pipeline.production
        else pipeline
    )


SCHEDULED: Final = "on a schedule"
PRODUCTION: Final = "production"
STUDIES: Final = "studies"
ELSEWHERE: Final = "not in pipelines.yaml"
GROUPS: Final = (SCHEDULED, PRODUCTION, STUDIES, ELSEWHERE)


def list_pipelines(file: PipelinesFile) -> list[dict[str, str]]:
    """Return a row for each pipeline, sorted by group, then by file order.

    It has the pipeline's name, group, protocols, source and description.
    """
    overviews = []
    for name, section in file.values["pipelines"].items():
        values = section if isinstance(section, Mapping) else {}
        group = PRODUCTION if values.get("mode") == "production" else STUDIES
        protocols, listed = [values.get("protocol", DEFAULT)], values.get("protocols")
        if isinstance(listed, list) and listed:
            protocols = [e.get("name") if isinstance(e, Mapping) else e for e in listed]
        source = values.get("source")
        source = source if isinstance(source, Mapping) else {}
        overview = {
            "name": str(name),
            "group": SCHEDULED if values.get("schedule") else group,
            "protocols": ", ".join(dict.fromkeys(map(str, protocols))),
            "source": str(source.get("name", "")),
            "description": " ".join(str(values.get("description") or "").split()),
        }
        overviews.append(overview)
    return sorted(overviews, key=lambda about: GROUPS.index(about["group"]))


def user_file_card(project: Project, configured: ConfiguredPipeline) -> FileCard | None:
    """Return the card of the file that a pipeline reads; None: it reads none.

    Raises:
        UserError: no such file, all that is wrong with it, or fewer clients in it than
            the pipeline asks for.
    """
    source = configured.pipeline.source
    path = user_file_path(project, configured.pipeline)
    if path is None or is_remote(source):
        return None
    dataset, parameters = resolve_source(source)
    card: FileCard = dataset.examined(parameters, {"path": path})
    n, where = card.clients, ""
    if n < card.rows:
        repeats = card.repeats if card.repeats_are == "left out" else 0
        why = {"repeat an earlier row (duplicates: keep takes them)": repeats}
        counts = {**why, **card.left_out}
        omitted = ", ".join(f"{many:,} {what}" for what, many in counts.items() if many)
        where = f" of {card.rows:,} rows: {omitted}" if omitted else ""
    for setting in configured.settings:
        sizes = getattr(setting.pipeline, "clients", None)
        requested = sizes.model_dump() if sizes else {}
        if sum(requested.values()) > n:
            raise too_many_error(requested, n, where)
    return card
