"""A second copy of what was released: append-only, beside the ledger.

Where `ledger: {witness: PATH}` names one there is a third, outside the project: a
snapshot that takes the whole folder back leaves it as it is. Both are files of
`curvote.client.ledger_witness`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from curvote.client.ledger import Ledger
from curvote.client.ledger_reading import LedgerReader
from curvote.client.ledger_witness import Line, Witness
from curvote.errors import UserError
from curvote.privacy import Budget
from curvote.run.config.yaml_lines import load
from curvote.run.project import PIPELINES, Project
from curvote.run.release.own_files import by_file

_USED: Final = "witness "  # name of a setting: a witness that was written once


def path_of(project: Project) -> Path:
    """Return where the copy is."""
    return project.state / "releases.jsonl"


def lines(project: Project) -> list[Line]:
    """Return the lines that can be read, oldest first; none where there is no copy."""
    return _copy(project).lines()


def _copy(project: Project) -> Witness:
    return Witness(path_of(project), "the second copy of what was released")


def catch_up(project: Project, ledger: Ledger, named: Iterable[str] = ()) -> int:
    """Add what the ledger knows to the copy and the named witnesses.

    Returns how many lines were new to the copy. They are durable on return. A file that
    cannot be written, or a witness that was written once and is gone: UserError.
    """
    path_of(project).parent.mkdir(parents=True, exist_ok=True)
    added = _copy(project).catch_up(ledger)
    for witness in witnesses(project, named):
        refuse_gone(witness, ledger)
        witness.catch_up(ledger)
        ledger.settle_once(f"{_USED}{witness.path}", "used")
    return added


def complete(project: Project, ledger: Ledger, named: Iterable[str]) -> None:
    """Complete all copies; where the second alone is gone, write it again aloud."""
    path = path_of(project)
    gone = not path.exists()
    if catch_up(project, ledger, named) and gone:
        words = "was not there: it was written again from the ledger"
        print(f"curvote: {path} {words}.", file=sys.stderr)


def refuse_gone(witness: Witness, ledger: LedgerReader | None) -> None:
    """Refuse to begin a witness anew that the ledger has written to: UserError."""
    used = ledger and ledger.setting(f"{_USED}{witness.path}") is not None
    if used and not witness.exists():
        raise UserError(
            f"{witness.path}, {witness.called}, is gone. Bring it back (is its disk"
            " mounted?); if it is lost, name another file under `ledger: {witness:"
            " ...}`: the ledger writes all that it knows into it. Nothing is released"
            " before."
        )


def witnesses(project: Project, named: Iterable[str]) -> list[Witness]:
    """Return the witnesses of these paths, each once; inside the project: UserError.

    A relative path begins at the project's folder.
    """
    paths = dict.fromkeys(_outside(project, name) for name in named)
    return [Witness(path) for path in paths]


def _outside(project: Project, name: str) -> Path:
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


class Accounts:
    """What all pipelines of a project say of its ledger.

    A witness tells of the whole ledger, so each release writes to all that are named,
    whichever pipeline names them; and a pipeline that is wrong stops no other.
    """

    def __init__(self, project: Project) -> None:
        values, _ = load(project.pipelines_file, PIPELINES)
        file = _mapping(values)
        defaults = _mapping(file.get("defaults"))
        self._stated = [
            defaults | _mapping(stated)
            for stated in _mapping(file.get("pipelines")).values()
        ]

    @property
    def witnesses(self) -> tuple[str, ...]:
        """The paths of all witnesses, as they are written."""
        found = (own["witness"] for own, _ in self._accounts())
        return tuple(dict.fromkeys(str(path) for path in found if path))

    @property
    def populations(self) -> frozenset[str]:
        """Whose clients release from here, or may."""
        return frozenset(name for _, names in self._accounts() for name in names)

    def caps(self, population: str) -> list[Budget]:
        """Return what pipelines of a population allow each client."""
        found = []
        for own, names in self._accounts():
            if population in names:
                with suppress(UserError, TypeError, ValueError):
                    found.append(Budget(**_mapping(own.get("per_client"))))
        return found

    def _accounts(self) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
        """Yield each account, and the names that its population may have."""
        empty = dict.fromkeys(("witness", "population"))
        sources = [_mapping(stated.get("source")) for stated in self._stated]
        files = {by_file(source) for source in sources} - {None}
        for stated, source in zip(self._stated, sources, strict=True):
            own = stated.get("ledger")
            if isinstance(own, dict) and source:
                made = own.get("population") or source.get("name")
                path = None if own.get("population") else by_file(source)
                # One file alone is never called by its path.
                more = (path,) if path and len(files) > 1 else ()
                yield empty | own, (str(made), *more)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
