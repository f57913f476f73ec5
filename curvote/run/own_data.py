"""A user's own file before a run: the card that its owner looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvote.datasets.lookup import chosen, remote
from curvote.protocols.roles import too_many
from curvote.run.config.file import Configured
from curvote.run.config.source import own_file
from curvote.run.project import Project

if TYPE_CHECKING:
    from curvote.datasets.own.examined import Examined


def examined(project: Project, configured: Configured) -> Examined | None:
    """Return the card of the file that a pipeline reads; None: it reads none of yours.

    Raises:
        UserError: no such file, all that is wrong with it, or fewer clients in it than
            the pipeline asks for.
    """
    source = configured.pipeline.source
    path = own_file(project, configured.pipeline)
    if path is None or remote(source):
        return None
    dataset, parameters = chosen(source)
    found: Examined = dataset.examined(parameters, {"path": path})
    _refuse_more(configured, found)
    return found


def _refuse_more(configured: Configured, found: Examined) -> None:
    n, where = found.clients, ""
    if n < found.rows:
        gone = found.repeats if found.repeats_are == "left out" else 0
        why = {"repeat an earlier row (duplicates: keep takes them)": gone}
        counts = {**why, **found.left_out}
        left = ", ".join(f"{many:,} {what}" for what, many in counts.items() if many)
        where = f" of {found.rows:,} rows: {left}" if left else ""
    for setting in configured.settings:
        sizes = getattr(setting.pipeline, "clients", None)
        asked = sizes.model_dump() if sizes else {}
        if sum(asked.values()) > n:
            raise too_many(asked, n, where)
