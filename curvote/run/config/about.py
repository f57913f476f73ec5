"""What pipelines.yaml says of its pipelines at a glance; nothing is checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from curvote.chain.registry import DEFAULT
from curvote.run.config.file import PipelinesFile

SCHEDULED: Final = "on a schedule"
PRODUCTION: Final = "production"
STUDIES: Final = "studies"
ELSEWHERE: Final = "not in pipelines.yaml"
GROUPS: Final = (SCHEDULED, PRODUCTION, STUDIES, ELSEWHERE)


@dataclass(frozen=True)
class About:
    """A pipeline as a list shows it: its group, protocols, source, and what it is."""

    name: str
    group: str
    protocols: str = ""
    source: str = ""
    description: str = ""

    def row(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def pipelines(file: PipelinesFile) -> list[About]:
    """Return the pipelines of a file, group after group, in the file's order there."""
    found = [_about(str(n), given) for n, given in file.values["pipelines"].items()]
    return sorted(found, key=lambda about: GROUPS.index(about.group))


def _about(name: str, given: Any) -> About:
    values = given if isinstance(given, Mapping) else {}
    source = values.get("source")
    named = source.get("name", "") if isinstance(source, Mapping) else ""
    protocols = ", ".join(dict.fromkeys(_protocols(values)))
    words = " ".join(str(values.get("description") or "").split())
    return About(name, _group(values), protocols, str(named), words)


def _group(values: Mapping[str, Any]) -> str:
    if values.get("schedule"):
        return SCHEDULED
    return PRODUCTION if values.get("mode") == "production" else STUDIES


def _protocols(values: Mapping[str, Any]) -> Iterator[str]:
    listed = values.get("protocols")
    if not isinstance(listed, list) or not listed:
        yield str(values.get("protocol", DEFAULT))
        return
    for each in listed:
        yield str(each.get("name") if isinstance(each, Mapping) else each)
