"""The command `curvote gc`: deletion of unneeded artifacts and of old files."""

from __future__ import annotations

from typing import Annotated

import typer

from curvote.flows.output.terminal import ProjectOption
from curvote.run.project import find_project


def gc(
    dry_run: Annotated[bool, typer.Option(help="Only say what would go.")] = False,
    keep: Annotated[int, typer.Option(min=1, help="Runs to keep a pipeline.")] = 1,
    older: Annotated[
        str | None, typer.Option(help="Also records, pages, logs: 36h, 90d, 12w.")
    ] = None,
    project: ProjectOption = None,
) -> None:
    """Delete artifacts that no pipeline's latest completed run uses, and what is old.

    What is old says --older, or retention in pipelines.yaml; what a latest run needs, a
    release, a ledger and an intake always stay.
    """
    from curvote.flows.retention import collect_garbage, retention_limits
    from curvote.run.store.moving import migrate_raw_artifacts

    place = find_project(project)
    migrate_raw_artifacts(place)
    limits = retention_limits(place, older)
    verb = "would free" if dry_run else "freed"
    for pile in collect_garbage(place, keep=keep, limits=limits, dry_run=dry_run):
        size, count = pile.bytes / 2**20, len(pile.paths)
        typer.echo(f"{verb} {size:.1f} MiB: {count} {pile.kind}")
