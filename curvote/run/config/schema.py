"""What may stand in pipelines.yaml: common keys, and those of the systems it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field, create_model, model_validator

from curvote.chain.lookup import systems
from curvote.chain.registry import DEFAULT, SYSTEMS
from curvote.chain.settings import Count, Epsilon, Strict, Whole
from curvote.run.config.runtime import MOST_SECONDS
from curvote.run.config.yaml_lines import in_line

_Form = type[BaseModel] | None


class Schedule(Strict):
    """When `curvote serve` runs a pipeline: a cron line, or an interval in seconds.

    ``catch_up: latest`` makes up once for what was missed while nothing served. A run
    that fails is tried again, ``retries`` times, each ``retry_delay`` seconds later.
    """

    cron: str | None = None
    timezone: str = "UTC"
    interval: Annotated[float, Field(gt=0, le=MOST_SECONDS)] | None = None
    catch_up: Literal["latest"] | None = None
    retries: Annotated[int, Field(ge=0, le=10)] = 0
    retry_delay: Annotated[float, Field(ge=0, le=86_400)] = 60.0

    @model_validator(mode="after")
    def _one_of_two(self) -> Schedule:
        if (self.cron is None) == (self.interval is None):
            raise ValueError("give either cron or interval, not both and not neither")
        return self


class Cap(Strict):
    """The most that may ever be released about one client."""

    epsilon: Epsilon
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Accounts(Strict):
    """What the ledger allows; pipelines of one ``population`` share their clients.

    Without one it is called as its source; a second file of one's own by its path.
    ``witness`` is an append-only file outside the project: it tells a ledger that was
    put back together with the whole folder.
    """

    per_client: Cap
    population: str | None = None
    witness: str | None = None


class Waiting(Strict):
    """How many envelopes a round waits for; by default one from everybody invited.

    ``online`` leaves a complete round of votes open: each run folds in the votes that
    were accepted since the last one, ``fold`` of them at least. ``sealed`` gives each
    new round a key that envelopes are sealed to: who carries them learns sizes only.
    """

    online: bool = False
    # One vote alone, folded in, would belong to the one invitation that was just used.
    fold: Annotated[int, Field(ge=2, strict=True)] = 50
    sealed: bool = False

    def least(self, message: str) -> int | None:
        """Return how many messages of a name are waited for, if that is stated."""
        return getattr(self, waits_for(message), None)


def waits_for(message: str) -> str:
    """Return the key that says how many messages of a name a round waits for."""
    return f"min_{message}s"


class Pipeline(Strict):
    """The keys of every pipeline, with every default filled in.

    `model` adds those of its systems. ``protocols`` and the axes of ``grid`` make the
    settings of one run, all on the same data; ``label`` is what tables call the
    protocol of one. ``description`` says to people what it is for.
    """

    description: str | None = None
    mode: Literal["study", "production"] = "study"
    protocol: str = DEFAULT
    protocols: list[str | dict[str, Any]] = []
    label: str | None = None
    source: dict[str, Any]
    grid: dict[str, list[Any] | dict[str, dict[str, Any]]] = {}
    replicates: Whole = 100
    seed: Count = 0
    schedule: Schedule | None = None
    ledger: Accounts | None = None
    intake: Waiting | None = None

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a section that one of its systems adds."""

    @property
    def production(self) -> bool:
        """Whether real clients release something."""
        return self.mode == "production"

    @property
    def called(self) -> str:
        """What tables call the protocol."""
        return self.label or self.protocol

    @property
    def population(self) -> str:
        """Whose clients these are, as the ledger calls them."""
        named = self.ledger.population if self.ledger else None
        return named or str(self.source["name"])

    @model_validator(mode="before")
    @classmethod
    def _one_run(cls, given: Any) -> Any:
        """A production run is one run: the file's default for studies is no matter."""
        if isinstance(given, dict) and given.get("mode") == "production":
            return given | {"replicates": 1}
        return given


@cache
def model(names: frozenset[str]) -> type[Pipeline]:
    """Return what a pipeline of some systems may hold."""
    chosen = [one for one in systems() if one.name in names]
    fields: dict[str, Any] = {}
    for one in chosen:
        for name, field in one.settings.model_fields.items():
            # Of two forms of a section the wider one, which is the other's subclass.
            if name not in fields or _wider(field.annotation, fields[name][0]):
                fields[name] = (field.rebuild_annotation(), field)
    asked = (name for one in chosen for name in one.messages)
    waits: dict[str, Any] = {waits_for(name): (Whole | None, None) for name in asked}
    intake = create_model("Intake", __base__=Waiting, __doc__=Waiting.__doc__, **waits)
    fields["intake"] = (intake | None, None)
    return create_model(
        "Pipeline", __base__=Pipeline, __doc__=Pipeline.__doc__, **fields
    )


def _wider(one: Any, other: Any) -> bool:
    both = isinstance(one, type) and isinstance(other, type)
    return both and one is not other and issubclass(one, other)


@cache
def foreign(names: frozenset[str]) -> Mapping[str, str]:
    """Return {section: who reads it} of what is read, but by no system of these."""
    mine = model(names).model_fields
    return {
        section: one.name
        for one in reversed(systems())  # the first of those that read it stands
        for section in one.settings.model_fields
        if section not in mine
    }


def pipeline_of(values: Mapping[str, Any]) -> Pipeline:
    """Return the resolved settings of one system: what others read is left out."""
    (name,) = names = named_in([values])
    return model(names).model_validate(own(values, name, SYSTEMS))


def own(values: Mapping[str, Any], name: str, among: Iterable[str]) -> dict[str, Any]:
    """Return ``values`` without what others ``among`` the systems read alone."""
    mine, every = model(frozenset({name})), model(frozenset(among))
    kept: dict[str, Any] = _without(values, mine, every)
    return kept


def _without(value: Any, mine: _Form, every: _Form) -> Any:
    """Return what ``mine`` knows of a section, and what nobody does."""
    if not (mine and every and isinstance(value, Mapping)):
        return value
    return {
        key: _without(inner, form(mine, key), form(every, key))
        for key, inner in value.items()
        if key in mine.model_fields or key not in every.model_fields
    }


def form(of: type[BaseModel], key: str) -> _Form:
    """Return the form of a key whose values are a section."""
    field = of.model_fields.get(key)
    kinds = (field.annotation, *get_args(field.annotation)) if field else ()
    forms = (k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel))
    return next(forms, None)


def named_in(settings: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the systems that the settings of a pipeline name; no text: as YAML."""
    every = (own.get("protocol", DEFAULT) for own in settings)
    return frozenset(each if isinstance(each, str) else in_line(each) for each in every)


class Defaults(Strict):
    """What every pipeline may inherit; whoever reads it says what it may be."""

    seed: Any = None
    replicates: Any = None
    epsilon: Any = None
    learners: Any = None
