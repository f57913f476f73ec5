"""Card of a user's own file, which its owner reads before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvote.datasets.lookup import is_remote, resolve_source
from curvote.protocols.roles import too_many_error
from curvote.run.config.file import ConfiguredPipeline
from curvote.run.config.source import user_file_path
from curvote.run.project import Project

if TYPE_CHECKING:
    from curvote.datasets.own.examined import FileCard


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
    _refuse_too_many(configured, card)
    return card


def _refuse_too_many(configured: ConfiguredPipeline, card: FileCard) -> None:
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
