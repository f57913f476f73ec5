"""Settings of a pipeline: their validation, axes, and the parts they lead to."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import product
from typing import Any, Final, TypeVar, get_origin

from pydantic import BaseModel, ValidationError

from curvote.base.errors import KeyPath, Problem, UserError, did_you_mean
from curvote.base.privacy import refuse_delta
from curvote.chain.axis import Cell
from curvote.chain.lookup import all_systems, find_system
from curvote.chain.registry import DEFAULT, SYSTEMS
from curvote.chain.system import Part
from curvote.curves.basis import AUTO
from curvote.data.lookup import (
    BALANCE,
    balance,
    find_dataset,
    is_remote,
    own_settings,
)
from curvote.data.registry import DATASETS
from curvote.messages.message import messages_of
from curvote.messages.sizes import resolve_sizes
from curvote.pipeline.config.schema import Pipeline, pipeline_of, section_model
from curvote.pipeline.config.source import reads_user_file
from curvote.pipeline.config.yaml_document import as_one_line

Values = dict[str, Any]
# The labels of a setting by axis, and its configuration.
Labelled = tuple[dict[str, str], Values]

# The axis of the protocols: a table's column by itself, so it stands without its name.
PROTOCOL = "protocol"
# What makes a run one run: it cannot differ between the settings of a pipeline.
FIXED = ("mode", "replicates", "seed", "schedule", "ledger", "intake", "grid")


def expand_settings(values: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield (axis -> label, configuration) for each combination of the axes.

    The first axis are the ``protocols``: names, or ``{name, label, dotted keys...}``.
    An axis of the ``grid`` is a dotted key with a list of values (``project.size: [4,
    5, 6]``), or any name with labels, each of which sets some dotted keys. Without
    axes the only setting has no labels. An axis that is not so, or that sets what a run
    has only once, is a UserError. What stands beside others unasked (`System`) is one
    more protocol at the end.
    """
    labelled = list(stated_settings(values))
    yield from labelled
    covered = {
        _with_protocol(labels, str(configuration.get(PROTOCOL)))
        for labels, configuration in labelled
    }
    # Of the settings that only their protocols tell apart it takes after the first.
    for labels, configuration in labelled:
        name = str(configuration.get(PROTOCOL, DEFAULT))
        for member in all_systems() if name in SYSTEMS else ():
            if not member.auto_include(find_system(name), configuration):
                continue
            place = _with_protocol(labels, member.name)
            if place not in covered:
                covered.add(place)
                added = deepcopy(configuration) | {PROTOCOL: member.name}
                added["label"] = member.name
                for path, value in member.implied_settings.items():
                    set_dotted(added, path, value)
                yield dict(place), added


def stated_settings(values: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield the settings that the configuration itself names."""
    if values.get("project") == AUTO:  # protocols may add to the section
        values = {**values, "project": {"basis": AUTO}}
    grid = values.get("grid") or {}
    if not isinstance(grid, Mapping):
        raise UserError("must be a mapping of axes.", where=("grid",))
    if PROTOCOL in grid:
        message = "is no axis of a grid: list protocols under `protocols`."
        raise UserError(message, where=("grid", PROTOCOL))
    grid_axes = {name: _axis_changes(name, entries) for name, entries in grid.items()}
    axes = _protocol_axis(values) | grid_axes
    for chosen in product(*(axis.items() for axis in axes.values())):
        configuration = deepcopy(dict(values))
        for name, (label, changes) in zip(axes, chosen, strict=True):
            where = ("protocols",) if name == PROTOCOL else ("grid", name, label)
            for path, value in changes.items():
                if path.partition(".")[0] in FIXED:
                    message = f"{path} is the same for all settings of a pipeline."
                    raise UserError(message, where=where)
                try:
                    set_dotted(configuration, path, value)
                except UserError as error:
                    raise UserError(str(error), where=where) from None
        labels = (label for label, _ in chosen)
        yield dict(zip(axes, labels, strict=True)), configuration


def _with_protocol(
    labels: Mapping[str, str], protocol: str
) -> tuple[tuple[str, str], ...]:
    return tuple(({PROTOCOL: ""} | dict(labels) | {PROTOCOL: protocol}).items())


def setting_name(labels: Mapping[str, str]) -> str | None:
    """Return a setting's name, such as "mrma d=4"; None without axes."""
    words = (
        label if axis == PROTOCOL else f"{axis}={label}"
        for axis, label in labels.items()
    )
    return " ".join(words) or None


def labels_by_setting(config: Mapping[str, Any]) -> dict[str | None, dict[str, str]]:
    """Return the labels of every setting of a run by its name."""
    return {setting_name(labels): labels for labels, _ in expand_settings(config)}


def _protocol_axis(values: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    listed = values.get("protocols") or []
    if not isinstance(listed, list):
        message = "must be a list of protocols."
        raise UserError(message, where=("protocols",))
    entries: list[tuple[str, dict[str, Any]]] = []
    for index, entry in enumerate(listed):
        keys = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(keys, Mapping) or not isinstance(keys.get("name"), str):
            message = "is a protocol: give its name, or {name, label, dotted keys}."
            raise UserError(message, where=("protocols", index))
        name, label = keys["name"], str(keys.get("label", keys["name"]))
        member = find_system(name) if name in SYSTEMS else None
        changes = {
            f"{name}.{key}" if member and key in member.shorthand else key: value
            for key, value in keys.items()
            if key not in ("name", "label")
        }
        fixed = member.implied_settings if member else {}
        entries.append((label, {"protocol": name, "label": label, **fixed, **changes}))
    labels = [label for label, _ in entries]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        message = f"{', '.join(twice)} stands twice; give each a label of its own."
        raise UserError(message, where=("protocols",))
    return {PROTOCOL: dict(entries)} if entries else {}


def _axis_changes(name: str, entries: Any) -> dict[str, dict[str, Any]]:
    if isinstance(entries, list) and entries:
        return {
            (f"{value:g}" if isinstance(value, float) else str(value)): {name: value}
            for value in entries
        }
    if isinstance(entries, Mapping) and entries:
        wrong = [label for label, keys in entries.items() if not isinstance(keys, dict)]
        if not wrong:
            return {str(label): dict(keys) for label, keys in entries.items()}
    message = (
        "is an axis: give a list of values for a dotted key, or labels that each set"
        " some, such as {small: {train.size: 50}}."
    )
    raise UserError(message, where=("grid", name))


def dotted_value(values: Mapping[str, Any], path: str) -> Any:
    """Return the value at the dotted key ``path``; None: there is none."""
    value: Any = values
    for part in path.split("."):
        value = value.get(part) if value else None
    return value


def set_dotted(values: Values, path: str, value: Any) -> None:
    """Set the dotted key ``path``; UserError where a part of it is no mapping."""
    *parents, last = path.split(".")
    section = values
    for parent in parents:
        inner = section.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise UserError(f"{parent} is not a mapping of settings.")
        section = inner
    section[last] = value


# Parts of a configuration, each with its setting's name.
Parts = list[tuple[str | None, Part]]


def resolve_parts(pipeline: Pipeline) -> Iterator[Part]:
    """Yield the parts of a pipeline: sizes are resolved first, then the system.

    A size that is left to a rule and cannot be told is a UserError.
    """
    for first in resolve_sizes(pipeline):
        for part in find_system(first.settings.protocol).resolve_parts(first.settings):
            yield replace(
                part,
                pairs=tuple((dict(first.pairs) | dict(part.pairs)).items()),
                method=", ".join(filter(None, (first.method, part.method))),
                reason="; ".join(filter(None, (first.reason, part.reason))),
            )


def labelled_parts(config: Mapping[str, Any]) -> Iterator[tuple[str | None, Part]]:
    """Yield (setting's name, part) of a run's configuration, in order."""
    for labels, values in expand_settings(config):
        pipeline = pipeline_of(values)
        for part in resolve_parts(pipeline):
            yield setting_name(labels), part


def part_of_cell(config: Mapping[str, Any], cell: Cell) -> Part:
    """Return the part of a run's configuration to which a cell belongs."""
    return find_part(labelled_parts(config), cell)


def find_part(labelled: Iterable[tuple[str | None, Part]], cell: Cell) -> Part:
    """Return the part, of several, to which a cell belongs."""
    return next(
        part
        for setting, part in labelled
        if setting == cell["setting"]
        and (cell["protocol"] in (None, part.settings.called))
        and set(part.pairs) <= set(cell.pairs)
    )


def describe_choices(config: Mapping[str, Any]) -> list[str]:
    """Return a line for each choice that was left to a rule, with its reason.

    Protocols of which the same is said share a line.
    """
    protocols: dict[tuple[str, str], list[str]] = {}
    for _, part in labelled_parts(config):
        if part.reason:
            choice = Cell(part.pairs).words, f"{part.method}, because {part.reason}"
            protocols.setdefault(choice, []).append(part.settings.called)
    return [
        f"{', '.join(filter(None, (*dict.fromkeys(names), words)))}: {choice}"
        for (words, choice), names in protocols.items()
    ]


_WHOLE_NUMBER: Final = "a whole number"
_NUMBER: Final = "a number"
_SWITCH: Final = "true or false"
_TEXT: Final = "a text"
_LIST: Final = "a list, such as [a, b]"
_MAPPING: Final = "a mapping of settings, such as {{name: value}}"
# By pydantic's names of errors; {…} is what it knows of the limit.
_MUST_BE: Final[Mapping[str, str]] = {
    "int_type": _WHOLE_NUMBER,
    "int_parsing": _WHOLE_NUMBER,
    "int_from_float": _WHOLE_NUMBER,
    "int_parsing_size": "a smaller whole number",
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "a finite number",
    "bool_type": _SWITCH,
    "bool_parsing": _SWITCH,
    "string_type": _TEXT,
    "string_too_short": "a text that is not empty",
    "string_too_long": "a text of at most {max_length} characters",
    "string_pattern_mismatch": "a text of the form {pattern}",
    "list_type": _LIST,
    "tuple_type": _LIST,
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "greater_than": "above {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "below {lt}",
    "less_than_equal": "{le} or less",
    "too_short": "a list of {min_length} or more",
    "too_long": "a list of {max_length} or fewer",
}
_KINDS: Final[Mapping[Any, str]] = {
    int: _WHOLE_NUMBER,
    float: _NUMBER,
    bool: _SWITCH,
    str: _TEXT,
    list: _LIST,
    tuple: _LIST,
}
_NUMERIC: Final = {
    name for name, phrase in _MUST_BE.items() if phrase in (_WHOLE_NUMBER, _NUMBER)
}
_CHOICE: Final = ("literal_error", "enum")


def describe_errors(details: Sequence[Any]) -> str:
    """Return one message for one value: its requirement and the value given.

    ``details`` are pydantic's errors at one place, such as one for each of the kinds
    that a value may have.
    """
    input_text = f"(given: {quote_value(details[0]['input'])})"
    custom = next((detail for detail in details if not _requirement(detail)), None)
    if custom:  # the message of a validator of this project
        message = str(custom["msg"]).removeprefix("Value error, ").rstrip(".")
        if custom["type"] == "invalid_key":
            message = "no name of a setting; in a number write a point, no comma"
        return f"{message} {input_text}."
    requirements = dict.fromkeys(map(_requirement, details))
    return (
        f"must be {' or '.join(requirements)} {input_text}.{_correction_hint(details)}"
    )


def _requirement(detail: Any) -> str:
    if detail["type"] in _CHOICE:
        return str(detail["ctx"]["expected"])
    limits = detail.get("ctx", {}).items()
    limit_texts = {name: f"{v:g}" if isinstance(v, float) else v for name, v in limits}
    return _MUST_BE.get(detail["type"], "").format(**limit_texts)


def quote_value(value: Any) -> str:
    """Return a value as messages show it: quoted text or short YAML."""
    plain = isinstance(value, bool | dict | list)
    text = "nothing" if value is None else as_one_line(value) if plain else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _correction_hint(details: Sequence[Any]) -> str:
    value, kinds = details[0]["input"], {detail["type"] for detail in details}
    if isinstance(value, str) and kinds & _NUMERIC:
        cleaned = value.replace("_", "").replace(" ", "").replace(",", ".")
        is_number = re.fullmatch(r"[-+]?[0-9]+(\.[0-9]*)?", cleaned)
        return f" Write {cleaned}, without quotes." if is_number else ""
    if kinds == {"list_type"} and isinstance(value, str | int | float):
        return f" Write [{value}]."
    if isinstance(value, bool | int | float) and kinds == {"string_type"}:
        return f' Put it in quotes: "{str(value).lower()}".'
    words = [
        word
        for detail in details
        if detail["type"] in _CHOICE
        for word in re.findall(r"'([^']*)'", str(detail["ctx"]["expected"]))
    ]
    close = difflib.get_close_matches(str(value), words, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


Model = TypeVar("Model", bound=BaseModel)


def validate_settings(model: type[Model], values: Any, where: KeyPath) -> Model:
    """Return ``values`` as ``model``; one UserError holds all its problems."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = validation_problems(model, error, values, where)
        raise UserError.several(problems) from None


def validation_problems(
    model: type[BaseModel], error: ValidationError, values: Any, where: KeyPath
) -> Iterator[Problem]:
    """Yield a problem for each place at which ``values`` do not fit ``model``."""
    by_place: dict[KeyPath, list[Any]] = {}
    for detail in error.errors(include_url=False):
        by_place.setdefault(_error_place(detail, values), []).append(detail)
    for inside, details in by_place.items():
        yield Problem(_problem_message(model, details, inside), (*where, *inside))


def _error_place(detail: Any, values: Any) -> KeyPath:
    """Return the path of an error in the file, without branches of unions."""
    *path, last = detail["loc"] or ("",)
    inside, values_inside = [], values
    for part in path:
        if _has_item(values_inside, part):
            inside.append(part)
            values_inside = values_inside[part]
    not_there = detail["type"] in ("missing", "extra_forbidden")
    if not_there or _has_item(values_inside, last):
        inside.append(last)
    return tuple(inside)


def _has_item(values: Any, part: str | int) -> bool:
    if isinstance(values, Mapping):
        return part in values
    return isinstance(values, list) and isinstance(part, int) and part < len(values)


def _problem_message(
    model: type[BaseModel], details: list[Any], inside: KeyPath
) -> str:
    kind = details[0]["type"]
    if kind == "extra_forbidden":
        key = str(inside[-1])
        keys = list(_model_at(model, inside[:-1]).model_fields)
        name, colon, value = key.partition(":")
        if colon and name in keys:
            return f"not known. Write a space after the colon: {name}: {value}."
        return f"not known.{did_you_mean(key, keys)}"
    if kind == "missing":
        hint = _missing_key_hint(_model_at(model, inside[:-1]), str(inside[-1]))
        return f"is missing.{hint}"
    return describe_errors(details)


def _model_at(model: type[BaseModel], inside: KeyPath) -> type[BaseModel]:
    for part in inside:
        model = section_model(model, str(part)) or model
    return model


def _missing_key_hint(model: type[BaseModel], key: str) -> str:
    """Return a hint what to write for a missing key, as its model requires."""
    inner = section_model(model, key)
    if inner:
        fields = inner.model_fields.items()
        required = [name for name, field in fields if field.is_required()]
        return f" Write {key}: {{{': ..., '.join(required)}: ...}}." if required else ""
    field = model.model_fields.get(key)
    kind = field.annotation if field else None
    wanted = _KINDS.get(get_origin(kind) or kind, "")
    return f" Write {key}: and {wanted}." if wanted else ""


def meaning_problems(pipeline: Pipeline) -> list[Problem]:
    """Return all problems of a pipeline whose keys are each well formed."""
    axes = find_system(pipeline.protocol).axes
    problems = [*_source_problems(pipeline)]
    # They may be those of the source: its servers.
    for axis in () if problems else axes:
        values = [str(value) for value in axis.values(pipeline)]
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            problems.append(Problem(f"{', '.join(twice)} stands twice.", (axis.key,)))
    source_valid = not problems
    if source_valid:  # a system's own checks need a source that is right
        checks = find_system(pipeline.protocol).checks
        try:
            every_size = [part.settings for part in resolve_sizes(pipeline)]
        except UserError as error:
            problems += error.problems
        else:
            problems += dict.fromkeys(p for size in every_size for p in checks(size))
        places = {problem.where for problem in problems}
        problems += [
            Problem("is empty; list one value at least.", (axis.key,))
            for axis in axes
            if not axis.values(pipeline) and (axis.key,) not in places
        ]
    more = *_judge_problems(pipeline), *_production_problems(pipeline, source_valid)
    return [*problems, *more]


def _source_problems(pipeline: Pipeline) -> Iterator[Problem]:
    name = pipeline.source.get("name")
    if not isinstance(name, str) or name not in DATASETS:
        hint = did_you_mean(str(name), DATASETS)
        problem = "is missing" if name is None else f"{quote_value(name)} is not known"
        yield Problem(f"{problem}.{hint}", ("source", "name"))
        return
    form = find_dataset(name).Parameters
    try:
        form.model_validate(own_settings(pipeline.source))
        yield from _balance_problems(pipeline)
    except ValidationError as error:
        yield from validation_problems(form, error, pipeline.source, ("source",))
    except UserError as error:
        yield Problem(str(error), ("source",))


def _balance_problems(pipeline: Pipeline) -> Iterator[Problem]:
    try:
        balance(pipeline.source)
    except UserError as error:
        yield Problem(str(error), ("source", BALANCE))


def _production_problems(pipeline: Pipeline, source_valid: bool) -> Iterator[Problem]:
    """Yield what would make a release ambiguous, unbounded or impossible.

    What a rule would choose is asked only where source and axes are ``source_valid``.
    """
    if not pipeline.production:
        for key in ("ledger", "intake"):
            if getattr(pipeline, key) is not None:
                yield Problem("only a pipeline with mode: production has one.", (key,))
        return
    chain = find_system(pipeline.protocol)
    sizes = resolve_sizes(pipeline) if source_valid else []
    open_size = [part for part in sizes if part.reason]
    if open_size:
        message = (
            "a release states its size, so that no later rule makes another release:"
            f" write the one that the rule takes today, {open_size[0].method}."
        )
        if open_size[0].settings.project.noise is not None:
            message = (
                "a release states its basis and size, such as `fpca` and 8, so"
                " that no later evidence makes another one of it; the page of a study"
                " says what volunteers choose."
            )
        yield Problem(message, ("project", "size"))
    elif source_valid and (
        open_arm := [part for part in chain.resolve_parts(pipeline) if part.reason]
    ):
        part = open_arm[0]
        message = (
            "a release states how its message is formed, so that no later rule makes"
            f" another release: write what the rule takes today, {part.method}"
            f" (protocol: {part.settings.protocol})."
        )
        yield Problem(message, ("protocol",))
    elif not chain.production:
        yield Problem(f"{pipeline.protocol} is for studies only.", ("protocol",))
    is_known = pipeline.source.get("name") in DATASETS
    # The records stay with their owners.
    away = is_known and is_remote(pipeline.source)
    user_file = is_known and reads_user_file(pipeline.source)
    if user_file and not (away or pipeline.source.get("id")):  # rows move in a file
        message = "production needs id: the column of ids that people keep for good."
        yield Problem(message, ("source",))
    yield from _single_setting_problems(pipeline)
    yield from _ledger_problems(pipeline, away)
    yield from _intake_problems(pipeline)
    if away and pipeline.intake is None:
        message = (
            "the records stay with their owners, whose messages come by envelope: write"
            " intake: {}, which waits for everybody who is invited."
        )
        yield Problem(message, ("source", "name"))
    elif pipeline.intake and not away:
        message = (
            "an intake takes messages about records that are elsewhere: write"
            " source: {name: remote, points: 50, negative: A, positive: B}, or `ledger`"
            " in place of `intake` where the records are here."
        )
        yield Problem(message, ("source", "name"))


def _judge_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield why clients cannot be kept as judges."""
    chain, why = find_system(pipeline.protocol), ""
    if not pipeline.production:
        why = "judges are for releases: a study knows its accuracy by its test clients."
    elif chain.production and not chain.judging:
        why = (
            f"no task can show the classifier of {pipeline.protocol} to those whom it"
            " is about, so nobody can say whether it is right; take it out."
        )
    elif chain.judging and not pipeline.clients.judge:
        why = "so few clients leave nobody to judge; state a larger share."
    elif pipeline.intake and pipeline.intake.online:
        why = "the classifier changes while the round stays open (intake.online)."
    if why and pipeline.judges:
        yield Problem(why, ("judges",))


def _single_setting_problems(pipeline: Pipeline) -> Iterator[Problem]:
    for key in ("grid", "protocols", "as_published"):
        if getattr(pipeline, key, None):
            message = (
                "is for studies, which compare settings; a release has one setting."
            )
            yield Problem(message, (key,))
    chain = find_system(pipeline.protocol)
    used = {name for stage in chain.production for name in stage.axes}
    # What a later stage reads for all values at once tells senders apart, no more.
    inputs = (name for stage in chain.production for name in stage.inputs)
    used -= {name.partition("@")[2] for name in inputs}
    for axis in chain.axes:
        count = len(axis.values(pipeline))
        if axis.name in used and count != 1:
            message = f"production takes exactly one; {count} are given."
            yield Problem(message, (axis.key,))


def _intake_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield why messages cannot be kept, or invitations written, as an intake says."""
    if (waits := pipeline.intake) is None:
        return
    for name, kind in messages_of(pipeline.protocol).items():
        if waits.keep == "sums" and not kind.summed:
            message = (
                f"the server needs each {name} of {pipeline.protocol}; leave `keep`"
                " out: then sums are kept of whatever needs no more."
            )
            yield Problem(message, ("intake", "keep"))
        if waits.invitations == "tree" and (kind.per_record or kind.per_table):
            message = (
                f"each invitation to a {name} names whose it is; a tree's name nobody:"
                " leave it out."
            )
            yield Problem(message, ("intake", "invitations"))


def _ledger_problems(pipeline: Pipeline, away: bool) -> Iterator[Problem]:
    if pipeline.intake or away:
        if pipeline.ledger:
            message = (
                "where messages come by envelope every client keeps a ledger of its"
                " own: take `ledger` out; `curvote client init --cap` states its cap."
            )
            yield Problem(message, ("ledger",))
        return
    if pipeline.ledger is None:
        message = "production needs a cap: write ledger: {per_client: {epsilon: 2}}."
        yield Problem(message, ("mode",))
        return
    cap, privatize = pipeline.ledger.per_client, getattr(pipeline, "privatize", None)
    delta = privatize.params.get("delta", 0) if privatize else 0
    for where, delta_value in (
        (("privatize", "params"), delta),
        (("ledger", "per_client"), cap.delta),
    ):
        try:
            refuse_delta(delta_value)
        except UserError as error:
            yield Problem(str(error), where)
    if max(pipeline.epsilon) > cap.epsilon or delta > cap.delta:
        message = (
            f"a message spends more than each client's cap (epsilon {cap.epsilon:g})."
        )
        yield Problem(message, ("ledger", "per_client"))
