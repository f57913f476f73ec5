"""Schema of pipelines.yaml, and the starter files that a new project gets with it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    create_model,
    model_validator,
)

from curvote.base.errors import UserError
from curvote.chain.lookup import all_systems
from curvote.chain.registry import DEFAULT, SYSTEMS
from curvote.chain.settings import (
    MOST_SECONDS,
    Count,
    Epsilon,
    Span,
    Strict,
    WholeNumber,
)
from curvote.data.lookup import BALANCE, find_dataset
from curvote.data.registry import DATASETS
from curvote.data.tables import starter
from curvote.messages.roles import MOST_JUDGES, parse_percent, set_judges_aside
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.reference import describe_settings
from curvote.pipeline.config.yaml_document import as_one_line

Event = Literal["failed", "blocked", "alarm", "missed", "recovered"]


class Retention(Strict):
    """How long to keep what no latest run needs; None: for ever."""

    runs: Span | None = None
    artifacts: Span | None = None


class Notify(Strict):
    """Whom to tell, by a command of one's own, when something did not go well."""

    on: tuple[Event, ...] = ("failed", "alarm", "missed")
    command: tuple[str, ...] = ()


class MlflowFiles(Strict):
    """Where MLflow keeps its files, whatever its database is."""

    artifacts: str | None = None


_PORTS: Final = {"http": 80, "https": 443}


def normalise_address(url: str) -> str:
    """Return an http address in its one spelling: lower case, no usual port, no end /.

    UserError: it is none, or holds a user, a query or a fragment; it is not quoted.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UserError(f"an address of a Prefect server is none: {error}") from None
    if parts.scheme not in _PORTS or not host:
        raise UserError("write an address as http://host:4200/api")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise UserError("an address holds no user, no password, no ? and no #")
    host = f"[{host}]" if ":" in host else host
    place = host if port in (None, _PORTS[parts.scheme]) else f"{host}:{port}"
    return f"{parts.scheme}://{place}{parts.path.rstrip('/')}"


class PrefectServers(Strict):
    """Which Prefect server, beside curvote's own, may order releases about people.

    ``api`` is its address as `prefect config view` shows PREFECT_API_URL. ``keep`` is
    how long curvote's own server waits for a further run once the last one ended.
    """

    api: Annotated[str, AfterValidator(normalise_address)] | None = None
    keep: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,3}[sm]$")] | None = None

    @property
    def keep_seconds(self) -> int:
        """``keep`` in seconds, 0: a run's server ends with the run."""
        seconds = {"s": 1, "m": 60}
        return int(self.keep[:-1]) * seconds[self.keep[-1]] if self.keep else 0


class Runtime(Strict):
    """What runs the stages, where artifacts are, how long things stay, who is told.

    No secret stands here: those come from the environment.
    """

    engine: Literal["local", "threads", "dask"] = "local"
    workers: WholeNumber | None = None
    cluster: Annotated[str, Field(pattern=r"^(tcp|tls|ws|wss)://.+")] | None = None
    artifacts: Annotated[str, Field(pattern=r"^s3://[^/]+(/.*)?$")] | None = None
    retention: Retention = Retention()
    notify: Notify = Notify()
    mlflow: MlflowFiles = MlflowFiles()
    prefect: PrefectServers = PrefectServers()

    @model_validator(mode="after")
    def _check_cluster(self) -> Runtime:
        if self.cluster and self.engine != "dask":
            raise ValueError("only engine dask has a cluster; add engine: dask")
        return self


_Form = type[BaseModel] | None


class Schedule(Strict):
    """When `curvote serve` runs a pipeline: a cron line, or an interval in seconds."""

    cron: str | None = None
    timezone: str = "UTC"
    interval: Annotated[float, Field(gt=0, le=MOST_SECONDS)] | None = None
    catch_up: Literal["latest"] | None = None
    retries: Annotated[int, Field(ge=0, le=10)] = 0
    retry_delay: Annotated[float, Field(ge=0, le=86_400)] = 60.0

    @model_validator(mode="after")
    def _check_trigger(self) -> Schedule:
        if (self.cron is None) == (self.interval is None):
            raise ValueError("give either cron or interval, not both and not neither")
        return self


class Cap(Strict):
    """The most that may ever be released about one client."""

    epsilon: Epsilon
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Accounts(Strict):
    """What the ledger allows; pipelines of one ``population`` share their clients."""

    per_client: Cap
    population: str | None = None
    witness: str | None = None


class Waiting(Strict):
    """How many envelopes a round waits for; by default one from everybody invited."""

    online: bool = False
    # One vote alone, folded in, would belong to the one invitation that was just used.
    fold: Annotated[int, Field(ge=2, strict=True)] = 50
    sealed: bool = False
    keep: Literal["sums", "rows"] | None = None
    invitations: Literal["lines", "tree"] = "lines"
    receipts: bool | None = None

    @property
    def gives_receipts(self) -> bool:
        """Whether rounds give receipts: by default where no tree saves the room."""
        if self.receipts is None:
            return self.invitations == "lines"
        return self.receipts

    def stated_minimum(self, message: str) -> int | None:
        """Return the stated minimum of messages of a kind; None: not stated."""
        return getattr(self, min_messages_key(message), None)


def min_messages_key(message: str) -> str:
    """Return the key that states the minimum of messages of a kind."""
    return f"min_{message}s"


_JudgeShare = Annotated[float, Field(gt=0, le=MOST_JUDGES)]
JudgeShare = Annotated[_JudgeShare, BeforeValidator(parse_percent, str | _JudgeShare)]


class Pipeline(Strict):
    """The keys of every pipeline, with every default filled in.

    `pipeline_model` adds those of its systems. ``protocols`` and the axes of ``grid``
    make the settings of one run, all on the same data; ``label`` is what tables call
    the protocol of one. ``description`` says to people what it is for.
    """

    description: str | None = None
    mode: Literal["study", "production"] = "study"
    protocol: str = DEFAULT
    protocols: list[str | dict[str, Any]] = []
    label: str | None = None
    source: dict[str, Any]
    grid: dict[str, list[Any] | dict[str, dict[str, Any]]] = {}
    replicates: WholeNumber = 100
    seed: Count = 0
    schedule: Schedule | None = None
    ledger: Accounts | None = None
    intake: Waiting | None = None
    judges: JudgeShare | None = None

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a section that one of the pipeline's systems adds."""

    @property
    def production(self) -> bool:
        """Whether clients release messages for real."""
        return self.mode == "production"

    @property
    def called(self) -> str:
        """The name of the protocol in tables."""
        return self.label or self.protocol

    @property
    def population(self) -> str:
        """The name of the clients' population in the ledger."""
        named = self.ledger.population if self.ledger else None
        return named or str(self.source["name"])

    @model_validator(mode="before")
    @classmethod
    def _set_judges_aside(cls, values: Any) -> Any:
        """Take the judges out of the clients who train and vote, once."""
        return set_judges_aside(values) if isinstance(values, dict) else values

    @model_validator(mode="before")
    @classmethod
    def _single_replicate(cls, values: Any) -> Any:
        """Set one replicate in production, whatever the file's defaults say."""
        if isinstance(values, dict) and values.get("mode") == "production":
            return values | {"replicates": 1}
        return values


@cache
def pipeline_model(names: frozenset[str]) -> type[Pipeline]:
    """Return the pydantic model of pipelines of some systems."""
    members = [member for member in all_systems() if member.name in names]
    fields: dict[str, Any] = {}
    for member in members:
        for name, field in member.settings.model_fields.items():
            # Of two forms of a section the wider one, which is the other's subclass.
            if name not in fields or _is_wider(field.annotation, fields[name][0]):
                fields[name] = (field.rebuild_annotation(), field)
    messages = (name for member in members for name in member.messages)
    minimums: dict[str, Any] = {
        min_messages_key(name): (WholeNumber | None, None) for name in messages
    }
    intake = create_model("Intake", __base__=Waiting, **minimums)
    fields["intake"] = (intake | None, None)
    return create_model("Pipeline", __base__=Pipeline, **fields)


def _is_wider(first: Any, second: Any) -> bool:
    classes = isinstance(first, type) and isinstance(second, type)
    return classes and first is not second and issubclass(first, second)


@cache
def unread_sections(names: frozenset[str]) -> Mapping[str, str]:
    """Return the sections that no named system reads, each with a reader."""
    read_sections = pipeline_model(names).model_fields
    return {
        section: member.name
        for member in reversed(all_systems())  # the first of those that read it stands
        for section in member.settings.model_fields
        if section not in read_sections
    }


def pipeline_of(values: Mapping[str, Any]) -> Pipeline:
    """Return the resolved settings of one system, without keys of others."""
    (name,) = names = named_systems([values])
    return pipeline_model(names).model_validate(own_settings(values, name, SYSTEMS))


def own_settings(
    values: Mapping[str, Any], name: str, among: Iterable[str]
) -> dict[str, Any]:
    """Return ``values`` without what only other systems ``among`` these read."""
    one_model, all_models = (pipeline_model(frozenset(n)) for n in ({name}, among))
    kept_values: dict[str, Any] = _drop_foreign(values, one_model, all_models)
    return kept_values


def _drop_foreign(value: Any, system_form: _Form, combined_form: _Form) -> Any:
    """Return a section without the keys that only other systems know."""
    if not (system_form and combined_form and isinstance(value, Mapping)):
        return value
    return {
        key: _drop_foreign(
            inner, section_model(system_form, key), section_model(combined_form, key)
        )
        for key, inner in value.items()
        if key in system_form.model_fields or key not in combined_form.model_fields
    }


def section_model(parent: type[BaseModel], key: str) -> _Form:
    """Return the model of a key whose value is a section; else None."""
    field = parent.model_fields.get(key)
    kinds = (field.annotation, *get_args(field.annotation)) if field else ()
    forms = (k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel))
    return next(forms, None)


def named_systems(settings: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the names of the systems that settings of a pipeline use."""
    names = (values.get("protocol", DEFAULT) for values in settings)
    return frozenset(n if isinstance(n, str) else as_one_line(n) for n in names)


class Defaults(Strict):
    """What every pipeline may inherit; whoever reads it says what it may be."""

    seed: Any = None
    replicates: Any = None
    epsilon: Any = None
    learners: Any = None


def editor_schema() -> dict[str, Any]:
    """Return the JSON Schema of the whole file, with the sections of all systems.

    What defaults may give, or a system has a default for, is not required.
    """
    pipeline = pipeline_model(frozenset(SYSTEMS)).model_json_schema()
    parts, inherited = pipeline.pop("$defs"), Defaults.model_fields
    runtime = Runtime.model_json_schema()
    parts |= runtime.pop("$defs")
    optional = {
        name
        for member in all_systems()
        for name, field in member.settings.model_fields.items()
        if not field.is_required()
    }
    free = {*inherited, *optional}
    pipeline["required"] = [key for key in pipeline["required"] if key not in free]
    defaults = {name: pipeline["properties"][name] for name in inherited}
    pipeline["properties"]["source"], sources = _source_schemas()
    parts |= sources
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {**parts, "Pipeline": pipeline},
        "type": "object",
        "required": ["pipelines"],
        "additionalProperties": False,
        "properties": {
            "defaults": {
                "type": "object",
                "properties": defaults,
                "additionalProperties": False,
            },
            "pipelines": {
                "type": "object",
                "additionalProperties": {"$ref": "#/$defs/Pipeline"},
            },
            "runtime": runtime,
        },
    }
    return describe_settings(schema)


def _source_schemas() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of ``source``, and by name those of each source and its parts.

    The name decides which keys it takes. No key is required: an axis of a grid may
    give it.
    """
    conditions, definitions = [], {}
    for name in DATASETS:
        definition = f"source.{name}"
        condition = {"properties": {"name": {"const": name}}, "required": ["name"]}
        reference = {"$ref": f"#/$defs/{definition}"}
        conditions.append({"if": condition, "then": reference})
        form = find_dataset(name).Parameters
        schema = form.model_json_schema(ref_template=f"#/$defs/{definition}.{{model}}")
        for part, inner in schema.pop("$defs", {}).items():
            definitions[f"{definition}.{part}"] = inner
        schema.pop("required", None)
        schema["patternProperties"] = {f"^{BALANCE}$": {}}  # described once, below
        definitions[definition] = schema
    names = {"enum": [*DATASETS]}
    share = {"type": "number", "exclusiveMinimum": 0}
    source = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": names, BALANCE: {"type": "array", "items": share}},
        "allOf": conditions,
    }
    return source, definitions


SCHEMA = "pipelines.schema.json"
Form = Literal["table", "curves"]
_HEADER = f"""\
# yaml-language-server: $schema={SCHEMA}
# The pipelines of this project. Copy one, rename it, change what you like.
#
#   curvote check NAME     read the file, and say what is in it and what is odd
#   curvote plan NAME      say what would run and why
#   curvote run NAME       run what is new, reuse the rest
#   curvote report NAME    draw the report: one HTML file
#
# An unknown key is an error. An editor reads {SCHEMA};
# `curvote list --schema > {SCHEMA}` renews it after an upgrade.

pipelines:
"""


def begin_project(
    folder: Path, form: Form | None, file: Path | None
) -> tuple[Path, str]:
    """Write pipelines.yaml into ``folder``; return its path and the pipeline's name.

    ``file`` is the user's table or curves, ``form`` which of the two; without them the
    pipeline is a small simulated one.

    Raises:
        UserError: there is a pipelines.yaml, or a file cannot be read or is ``folder``.
    """
    if folder.is_file():
        raise UserError(
            f"{folder} is a file; init takes the folder of a project. To begin with a"
            f" file: `curvote init --table {folder}`, or --curves."
        )
    place = Project(folder).pipelines_file
    if place.exists():
        raise UserError(
            f"{place} is there already, and init never overwrites. Name a new folder,"
            " as `curvote init FOLDER`, or add to the file by hand."
        )
    name, text = "demo", starter.SIMULATED
    if form is not None and file is not None:
        layout = starter.read_layout(file)
        write = starter.table_pipeline if form == "table" else starter.curves_pipeline
        root, path = folder.resolve(), file.resolve()
        near = path.is_relative_to(root.parent)
        name, text = write(layout, os.path.relpath(path, root) if near else str(path))
    folder.mkdir(parents=True, exist_ok=True)
    schema = folder / SCHEMA
    if not schema.exists():
        text_of_schema = json.dumps(editor_schema(), indent=1) + "\n"
        schema.write_text(text_of_schema, encoding="utf-8")
    with place.open("x", encoding="utf-8") as new:  # never over another
        new.write(f"{_HEADER}{text}\n")
    return place, name
