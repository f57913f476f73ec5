"""Raw artifacts that an earlier curvote left among those of the server's side."""

from __future__ import annotations

import sys
from pathlib import Path

from curvote.durable import OTHERS, owner_folder, sync_folder
from curvote.errors import UserError
from curvote.run.project import Project, is_raw
from curvote.run.store.artifacts import aside, manifest_of
from curvote.run.store.sides import side_of


def move_raw(project: Project) -> None:
    """Bring raw artifacts to the clients' side, under their names, and say so.

    Before anything is looked up: a frozen artifact that were not found would be made
    again. Each is closed to others and moved by one rename; nothing is deleted. What
    came back open to others from a backup is closed, too.
    """
    if project.clients.is_dir():
        _owned(project.clients)
    found = [folder for folder in sorted(project.artifacts.glob("*/*")) if _raw(folder)]
    for folder in found:
        _move(project, folder)
    if found:
        print(
            f"moved {len(found)} artifacts with raw tables from {project.artifacts} to"
            f" {project.clients}, which you alone can read",
            file=sys.stderr,
        )


def _raw(folder: Path) -> bool:
    """Say whether a folder's stage or, where stages were renamed, manifest says so."""
    if not folder.is_dir():
        return False
    told = (manifest_of(folder) or {}).get("side")
    return is_raw(side_of(folder.parent.name)) or is_raw(str(told))


def _owned(folder: Path) -> None:
    try:
        owner_folder(folder)
    except PermissionError:
        raise UserError(
            f"{folder} is open to others and not yours to close; its owner runs"
            f" `chmod 700 {folder}`."
        ) from None


def _move(project: Project, folder: Path) -> None:
    owner_folder(project.clients)
    target = owner_folder(project.clients / folder.parent.name) / folder.name
    try:
        _close(folder)
        folder.rename(aside(target) if target.exists() else target)
    except FileNotFoundError:
        return  # another process was first
    except OSError as error:
        raise UserError(
            f"{folder} holds raw tables and cannot be moved to {target.parent}"
            f" ({error.strerror}); move it there yourself, then run again."
        ) from error
    sync_folder(target.parent)
    sync_folder(folder.parent)


def _close(folder: Path) -> None:
    owner_folder(folder)
    for path in folder.rglob("*"):
        mode = path.stat().st_mode
        if mode & OTHERS:
            path.chmod(mode & ~OTHERS)
