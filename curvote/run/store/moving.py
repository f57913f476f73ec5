"""Migration of raw artifacts that earlier versions left in the server's store."""

from __future__ import annotations

import sys
from pathlib import Path

from curvote.durable import OTHERS_MODE, private_folder, sync_folder
from curvote.errors import UserError
from curvote.run.project import Project, is_client_side
from curvote.run.store.artifacts import read_manifest, spare_path
from curvote.run.store.sides import stage_side


def migrate_raw_artifacts(project: Project) -> None:
    """Move raw artifacts into the clients' store, and report it.

    Before anything is looked up: a frozen artifact that were not found would be made
    again. Each is closed to others and moved by one rename; nothing is deleted. What
    came back open to others from a backup is closed, too.
    """
    if project.clients.is_dir():
        _restrict_folder(project.clients)
    raw_folders = [
        folder
        for folder in sorted(project.artifacts.glob("*/*"))
        if _is_raw_folder(folder)
    ]
    for folder in raw_folders:
        _move_folder(project, folder)
    if raw_folders:
        print(
            f"moved {len(raw_folders)} artifacts with raw tables from"
            f" {project.artifacts} to"
            f" {project.clients}, which you alone can read",
            file=sys.stderr,
        )


def _is_raw_folder(folder: Path) -> bool:
    """Return whether stage or manifest of a folder say that it holds raw data."""
    if not folder.is_dir():
        return False
    side = (read_manifest(folder) or {}).get("side")
    return is_client_side(stage_side(folder.parent.name)) or is_client_side(str(side))


def _restrict_folder(folder: Path) -> None:
    try:
        private_folder(folder)
    except PermissionError:
        raise UserError(
            f"{folder} is open to others and not yours to close; its owner runs"
            f" `chmod 700 {folder}`."
        ) from None


def _move_folder(project: Project, folder: Path) -> None:
    private_folder(project.clients)
    target = private_folder(project.clients / folder.parent.name) / folder.name
    try:
        _restrict_tree(folder)
        folder.rename(spare_path(target) if target.exists() else target)
    except FileNotFoundError:
        return  # another process was first
    except OSError as error:
        raise UserError(
            f"{folder} holds raw tables and cannot be moved to {target.parent}"
            f" ({error.strerror}); move it there yourself, then run again."
        ) from error
    sync_folder(target.parent)
    sync_folder(folder.parent)


def _restrict_tree(folder: Path) -> None:
    private_folder(folder)
    for path in folder.rglob("*"):
        mode = path.stat().st_mode
        if mode & OTHERS_MODE:
            path.chmod(mode & ~OTHERS_MODE)
