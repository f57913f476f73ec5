"""Append-only copies of the releases: the project's second copy, and witnesses.

Where `ledger: {witness: PATH}` names one there is a third, outside the project: a
snapshot that takes the whole folder back leaves it as it is. Both are files of
`curvote.ledger.journal`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.ledger.book import Ledger
from curvote.ledger.journal import Journal, JournalLine
from curvote.ledger.queries import LedgerReader
from curvote.pipeline.config.project import PIPELINES, Project
from curvote.pipeline.config.yaml_document import load_document
from curvote.pipeline.release.populations import population_of_file

_USED_WITNESS: Final = "witness "  # name of a setting: a witness that was written once


def copy_path(project: Project) -> Path:
    """Return the path of the second copy."""
    return project.state / "releases.jsonl"


def copy_lines(project: Project) -> list[JournalLine]:
    """Return the readable lines of the second copy, oldest first."""
    return _second_copy(project).lines()


def _second_copy(project: Project) -> Journal:
    return Journal(copy_path(project), "the second copy of what was released")


def update_copies(project: Project, ledger: Ledger, named: Iterable[str] = ()) -> int:
    """Append the ledger's news to the second copy and to the witnesses.

    Returns how many lines were new to the copy. They are durable on return. A file that
    cannot be written, or a witness that was written once and is gone: UserError.
    """
    copy_path(project).parent.mkdir(parents=True, exist_ok=True)
    added = _second_copy(project).catch_up(ledger)
    for witness in open_witnesses(project, named):
        refuse_missing_witness(witness, ledger)
        witness.catch_up(ledger)
        ledger.store_setting(f"{_USED_WITNESS}{witness.path}", "used")
    return added


def complete_copies(project: Project, ledger: Ledger, named: Iterable[str]) -> None:
    """Complete all copies; report a second copy that is written again."""
    path = copy_path(project)
    missing = not path.exists()
    if update_copies(project, ledger, named) and missing:
        words = "was not there: it was written again from the ledger"
        print(f"curvote: {path} {words}.", file=sys.stderr)


def refuse_missing_witness(witness: Journal, ledger: LedgerReader | None) -> None:
    """Refuse to start a missing witness again that was used before: UserError."""
    used = ledger and ledger.setting(f"{_USED_WITNESS}{witness.path}") is not None
    if used and not witness.exists():
        raise UserError(
            f"{witness.path}, {witness.description}, is gone. Bring it back (is its"
            " disk"
            " mounted?); if it is lost, name another file under `ledger: {witness:"
            " ...}`: the ledger writes all that it knows into it. Nothing is released"
            " before."
        )


def open_witnesses(project: Project, named: Iterable[str]) -> list[Journal]:
    """Return the witnesses of these paths; inside the project: UserError.

    A relative path begins at the project's folder.
    """
    paths = dict.fromkeys(_path_outside(project, name) for name in named)
    return [Journal(path) for path in paths]


def _path_outside(project: Project, name: str) -> Path:
    root = project.root.resolve()
    try:
        path = (root / Path(name).expanduser()).resolve()
    except (RuntimeError, ValueError):  # a user who is not there, a loop of links
        message = f"the witness {name!r} is no path of a file."
        raise UserError(message, where=("ledger", "witness")) from None
    if path.is_relative_to(root):
        raise UserError(
            f"the witness {name} lies inside the project {root}: a backup that is put"
            " back would take it back, too. Name a file elsewhere, on another disk or"
            " machine if there is one.",
            where=("ledger", "witness"),
        )
    return path


class ProjectAccounts:
    """The ledger settings of all pipelines of a project.

    A witness tells of the whole ledger, so each release writes to all that are named,
    whichever pipeline names them; and a pipeline that is wrong stops no other.
    """

    def __init__(self, project: Project) -> None:
        values, _ = load_document(project.pipelines_file, PIPELINES)
        file = _as_mapping(values)
        defaults = _as_mapping(file.get("defaults"))
        self._pipelines = [
            defaults | _as_mapping(pipeline)
            for pipeline in _as_mapping(file.get("pipelines")).values()
        ]

    @property
    def witnesses(self) -> tuple[str, ...]:
        """The paths of all witnesses, as they are written."""
        paths = (account["witness"] for account, _ in self._accounts_with_names())
        return tuple(dict.fromkeys(str(path) for path in paths if path))

    @property
    def populations(self) -> frozenset[str]:
        """The populations whose clients release from this project, or may."""
        return frozenset(
            name for _, names in self._accounts_with_names() for name in names
        )

    def caps(self, population: str) -> list[Budget]:
        """Return the caps that pipelines of a population allow each client."""
        budgets = []
        for account, names in self._accounts_with_names():
            if population in names:
                with suppress(UserError, TypeError, ValueError):
                    budgets.append(Budget(**_as_mapping(account.get("per_client"))))
        return budgets

    def _accounts_with_names(self) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
        """Yield each account with the names that its population may have."""
        empty = dict.fromkeys(("witness", "population"))
        sources = [_as_mapping(pipeline.get("source")) for pipeline in self._pipelines]
        files = {population_of_file(source) for source in sources} - {None}
        for pipeline, source in zip(self._pipelines, sources, strict=True):
            account = pipeline.get("ledger")
            if isinstance(account, dict) and source:
                population = account.get("population") or source.get("name")
                path = None if account.get("population") else population_of_file(source)
                # One file alone is never called by its path.
                more = (path,) if path and len(files) > 1 else ()
                yield empty | account, (str(population), *more)


def _as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
