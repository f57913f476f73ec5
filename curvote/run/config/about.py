"""Overview of pipelines in pipelines.yaml, and the card of a user's own file."""

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
class PipelineOverview:
    """A pipeline as a list shows it: name, group, protocols, source, description."""

    name: str
    group: str
    protocols: str = ""
    source: str = ""
    description: str = ""

    def row(self) -> dict[str, Any]:
        """Return the overview as plain values."""
        return asdict(self)


def list_pipelines(file: PipelinesFile) -> list[PipelineOverview]:
    """Return overviews of all pipelines, sorted by group, then by file order."""
    overviews = [
        _describe_pipeline(str(n), section)
        for n, section in file.values["pipelines"].items()
    ]
    return sorted(overviews, key=lambda about: GROUPS.index(about.group))


def _describe_pipeline(name: str, section: Any) -> PipelineOverview:
    values = section if isinstance(section, Mapping) else {}
    source = values.get("source")
    source_name = source.get("name", "") if isinstance(source, Mapping) else ""
    protocols = ", ".join(dict.fromkeys(_protocol_names(values)))
    description = " ".join(str(values.get("description") or "").split())
    return PipelineOverview(
        name, _pipeline_group(values), protocols, str(source_name), description
    )


def _pipeline_group(values: Mapping[str, Any]) -> str:
    if values.get("schedule"):
        return SCHEDULED
    return PRODUCTION if values.get("mode") == "production" else STUDIES


def _protocol_names(values: Mapping[str, Any]) -> Iterator[str]:
    listed = values.get("protocols")
    if not isinstance(listed, list) or not listed:
        yield str(values.get("protocol", DEFAULT))
        return
    for entry in listed:
        yield str(entry.get("name") if isinstance(entry, Mapping) else entry)
