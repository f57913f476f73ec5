"""Overview of pipelines in pipelines.yaml, and the card of a user's own file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from curvote.chain.registry import DEFAULT
from curvote.data.lookup import is_remote, resolve_source
from curvote.messages.roles import too_many_error
from curvote.pipeline.config.file import ConfiguredPipeline, PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import user_file_path

if TYPE_CHECKING:
    from curvote.data.tables.card import FileCard


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
