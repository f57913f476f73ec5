"""Words that users type and read: settings, tables, names, signatures."""

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from curvote.chain.lookup import all_systems
from curvote.chain.registry import SYSTEMS
from curvote.chain.system import System
from curvote.data.lookup import find_dataset
from curvote.data.registry import DATASETS
from curvote.learning.learners.registry import LEARNERS
from curvote.mechanisms.registry import MECHANISMS
from curvote.papers.registry import reproductions
from curvote.pipeline.config.schema import pipeline_model
from curvote.systems.labels.codes.encoders import ENCODERS
from curvote.systems.labels.learners.registry import LEARNERS as LABEL_LEARNERS
from curvote.systems.transfer.method.task import FORMS
from curvote.systems.utility.method.engines.base import ENGINES
from tests.pins import pinned
from tests.public_names import PACKAGES, public_names

KIND = "words"
REGISTRIES: dict[str, Mapping[str, Any]] = {
    "systems": SYSTEMS,
    "data sets": DATASETS,
    "mechanisms": MECHANISMS,
    "learners": LEARNERS,
    "learners of labels": LABEL_LEARNERS,
    "encoders": dict.fromkeys(ENCODERS),
    "engines": dict.fromkeys(ENGINES),
    "forms": FORMS,
    "reproductions": reproductions(),
}


def of_system(one: System) -> dict[str, Any]:
    """Return what a system declares, in the words that users meet."""
    return {
        "settings": list(one.settings.model_fields),
        "axes": [axis.name for axis in one.axes],
        "index": [index.name for index in one.index],
        "messages": list(one.messages),
        "metrics": [[m.name, m.beside, m.spread] for m in one.metrics],
        "methods": [[method.name, method.study_only] for method in one.methods],
        "main": list(one.main),
        "fixed": one.implied_settings,
        "short": list(one.shorthand),
        "stages": [_stage(stage) for stage in one.stages],
        "production": [_stage(stage) for stage in one.production],
        "tables": {
            table.name: {"side": table.side, "unit": table.unit, **table.columns}
            for table in one.tables
        },
    }


def _stage(stage: Any) -> str:
    """Return a stage's name, what it reads, its message and its side."""
    reads = ", ".join((*stage.inputs, *stage.params))
    sends = f" sends {stage.message}" if stage.message else ""
    return f"{stage.name} ({stage.side}): {reads}{sends}"


def sections() -> dict[str, list[str]]:
    """Return the keys of each section of pipelines.yaml by its dotted place."""
    schema = pipeline_model(frozenset(SYSTEMS)).model_json_schema()
    return dict(_below(schema, schema["$defs"], "pipeline"))


def _below(part: Any, known: Any, place: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the keys of a part of a schema, and those of the parts below it."""
    if "$ref" in part:
        part = known[part["$ref"].rpartition("/")[2]]
    own = part.get("properties", {})
    if own:
        yield place, sorted(own)
    for name, inner in own.items():
        yield from _below(inner, known, f"{place}.{name}")
    for inner in (*part.get("anyOf", ()), *filter(None, [part.get("items")])):
        yield from _below(inner, known, place)


def parameters() -> dict[str, list[str]]:
    """Return what `source:` may say, by data set."""
    return {name: list(find_dataset(name).Parameters.model_fields) for name in DATASETS}


def signatures() -> dict[str, str]:
    """Return the parameters and defaults of what curvote exports, where it stands."""
    found = {}
    for name, thing in public_names().items():
        if inspect.isclass(thing) and issubclass(thing, Exception):
            continue
        known = inspect.signature(thing).parameters.values()
        found[name] = ", ".join(map(_parameter, known))
    return found


def _parameter(one: inspect.Parameter) -> str:
    """Return a parameter's name, a star where it goes by its name only, its default."""
    name = f"{'*' * (one.kind is one.KEYWORD_ONLY)}{one.name}"
    if one.default is one.empty:
        return name
    plain = isinstance(one.default, str | int | float | tuple | None)
    return f"{name}={one.default if plain else '...'}"


# Packages that nobody outside names, where they were when this was recorded.
INTERNAL = {
    "labels.learners": "systems.labels.learners",
    "labels.neural": "labels.neural",
    "server.learners": "learning.learners",
    "transfer.forms": "systems.transfer.method.forms",
}


def exported() -> dict[str, list[str]]:
    """Return the names that packages export."""
    found = {}
    for inside in (*PACKAGES, "audit", *INTERNAL):
        place = INTERNAL.get(inside, inside)
        package = import_module(".".join(filter(None, ("curvote", place))))
        found[inside or "curvote"] = sorted(package.__all__)
    return found


def every(_: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """Yield all words."""
    del patch
    yield from FACTS.items()


FACTS: dict[str, Any] = {
    "registries": {name: sorted(own) for name, own in REGISTRIES.items()},
    "sections": sections(),
    "sources": parameters(),
    "exported": exported(),
    "signatures": signatures(),
    **{f"system {one.name}": of_system(one) for one in all_systems()},
}


def test_every_recorded_word_is_looked_at() -> None:
    """And every word that is looked at is recorded."""
    assert set(FACTS) == set(pinned.items(KIND))


@pytest.mark.parametrize("name", FACTS)
def test_words_are_those_that_were_recorded(name: str) -> None:
    """No name that users know is lost, and none is new."""
    assert pinned.as_json(FACTS[name]) == pinned.recorded(KIND, name)
