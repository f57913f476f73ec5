"""Traces of releases outside a ledger, and what a ledger lacks by them.

A ledger that is gone, fresh, or older than it was gives clients a budget that they have
spent. Each release leaves traces elsewhere: the manifest of its artifact, a line of the
append-only copy, the record of its run, and a line of each witness outside the project.
"""

import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from curvote.base.errors import UserError
from curvote.ledger.amounts import EVERYONE_SETTING, Entry
from curvote.ledger.book import Ledger
from curvote.ledger.journal import Journal, JournalLine
from curvote.ledger.queries import LedgerReader

_USED_WITNESS: Final = "witness "  # name of a setting: a witness that was written once
RESTORE_HINT: Final = (
    "Clients have spent what this ledger does not know, so nothing is released. Put the"
    " newest ledger back, or run `curvote ledger restore FILE` with any backup of it"
    " (an older one in place: that file): what it lacks is entered as spent"
)
FOREIGN_LEDGER_HINT: Final = (
    "If these are the same people, `curvote ledger restore FILE` with that ledger's"
    " latest backup; if they are others, give this project another witness"
)


@dataclass(frozen=True)
class Trace:
    """A trace of a release: its place, and the head of the ledger's chain then.

    ``published`` says that the release left; else it was reserved at least. ``line`` is
    what an append-only file says of it; a witness also names the ``ledger``.
    """

    where: str
    release: object
    head: str | None = None
    published: bool = True
    line: JournalLine | None = None
    ledger: str | None = None

    @classmethod
    def from_line(
        cls, where: str, line: JournalLine, ledger: str | None = None
    ) -> "Trace":
        """Return the trace that a line of a journal is."""
        return cls(where, line["release"], line["head"], False, line, ledger)

    def is_foreign(self, origin: str) -> bool:
        """Return whether it tells of another ledger than that of ``origin``."""
        return self.ledger is not None and self.ledger != origin

    def problem(
        self, ledger: Ledger | None, entries: Mapping[str, Entry]
    ) -> str | None:
        """Return what it shows to be wrong with a ledger of these entries, or None."""
        name = self.release
        if not isinstance(name, str):
            return "a release without an id"
        if name not in entries:
            if ledger and (
                ledger.setting(f"{EVERYONE_SETTING}{name}") is not None
                or (not self.published and ledger.accepted_head(str(self.head)))
            ):
                return None  # a restored ledger accounts for it
            return f"release {name} is not in the ledger"
        if self.head is not None and not (ledger and ledger.knows(self.head)):
            return f"release {name}: the ledger is older than that, or another one"
        if self.published and not entries[name].counts:
            return f"release {name} is there, but {entries[name].state} in the ledger"
        return None


@dataclass(frozen=True)
class Copies:
    """The append-only copies of a project's ledger: one inside of it, and witnesses.

    ``named`` are the witnesses' paths; a relative one begins at the project's folder.
    """

    root: Path
    path: Path
    named: tuple[str, ...] = ()

    @property
    def second(self) -> Journal:
        """The copy inside of the project."""
        return Journal(self.path, "the second copy of what was released")

    def witnesses(self) -> list[Journal]:
        """Return the witnesses; a path inside of the project, or none: UserError."""
        root, paths = self.root.resolve(), list[Path]()
        for name in self.named:
            try:
                path = (root / Path(name).expanduser()).resolve()
            except (RuntimeError, ValueError):  # an unknown user, a loop of links
                message = f"the witness {name!r} is no path of a file."
                raise UserError(message, where=("ledger", "witness")) from None
            if path.is_relative_to(root):
                raise UserError(
                    f"the witness {name} lies inside the project {root}: a backup that"
                    " is put back would take it back, too. Name a file elsewhere, on"
                    " another disk or machine if there is one.",
                    where=("ledger", "witness"),
                )
            paths.append(path)
        return [Journal(path) for path in dict.fromkeys(paths)]

    def update(self, ledger: Ledger) -> int:
        """Append the ledger's news to all copies; return how many the second lacked.

        They are durable on return. A file that cannot be written, or a witness that was
        written once and is gone: UserError.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        added = self.second.catch_up(ledger)
        for witness in self.witnesses():
            _refuse_missing_witness(witness, ledger)
            witness.catch_up(ledger)
            ledger.store_setting(f"{_USED_WITNESS}{witness.path}", "used")
        return added

    def complete(self, ledger: Ledger) -> None:
        """Update all copies; report a second copy that is written again."""
        missing = not self.path.exists()
        if self.update(ledger) and missing:
            words = "was not there: it was written again from the ledger"
            print(f"curvote: {self.path} {words}.", file=sys.stderr)

    def refuse_missing_witnesses(self, ledger: LedgerReader | None) -> None:
        """Refuse to start a missing witness again that was used before: UserError."""
        for witness in self.witnesses():
            _refuse_missing_witness(witness, ledger)

    def traces(self) -> list[Trace]:
        """Return the traces in the second copy."""
        where = str(self.path.relative_to(self.root))
        return [Trace.from_line(where, line) for line in self.second.lines()]

    def witness_traces(self) -> list[Trace]:
        """Return the traces in the witnesses."""
        return [
            Trace.from_line(str(witness.path), line, str(line.get("ledger")))
            for witness in self.witnesses()
            for line in witness.lines()
        ]


def ledger_traces(where: str, ledger: Ledger | None) -> list[Trace]:
    """Return a trace for each movement of a ledger at ``where``; None has none."""
    if ledger is None:
        return []
    origin = ledger.origin()
    lines = [asdict(move) | {"ledger": origin} for move in ledger.movements()]
    return [Trace.from_line(where, line, origin) for line in lines]


def _refuse_missing_witness(witness: Journal, ledger: LedgerReader | None) -> None:
    used = ledger and ledger.setting(f"{_USED_WITNESS}{witness.path}") is not None
    if used and not witness.exists():
        raise UserError(
            f"{witness.path}, {witness.description}, is gone. Bring it back (is its"
            " disk mounted?); if it is lost, name another file under `ledger: {witness:"
            " ...}`: the ledger writes all that it knows into it. Nothing is released"
            " before."
        )


def refuse_unknown_releases(
    path: Path,
    traces: Sequence[Trace],
    ledger: Ledger | None,
    populations: Container[str] = (),
) -> None:
    """Refuse the ledger of a path, or none, that lacks a release with a trace.

    A witness may tell of other ledgers, too: they matter for these ``populations``.
    """
    missing_note = "" if ledger else f"{path} is gone. "
    if problems := list(missing_releases(traces, ledger)):
        raise UserError(f"{missing_note}{_first_problem(problems)}. {RESTORE_HINT}.")
    if problems := list(foreign_releases(traces, ledger, populations)):
        raise UserError(
            f"{missing_note}{_first_problem(problems)}. {FOREIGN_LEDGER_HINT}. Nothing"
            " is released."
        )


def _first_problem(problems: Sequence[str]) -> str:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}"


def foreign_releases(
    traces: Sequence[Trace], ledger: Ledger | None, populations: Container[str]
) -> Iterator[str]:
    """Yield a line for each release of these populations in another ledger."""
    origin = ledger.origin() if ledger else ""
    reported: set[object] = set()
    for trace in (t for t in traces if t.is_foreign(origin)):
        population = (trace.line or {}).get("population")
        restored = ledger and ledger.knows(str(trace.head))
        if population in populations and not restored and trace.release not in reported:
            reported.add(trace.release)
            yield (
                f"{trace.where}: release {trace.release} of population {population!r}"
                " is in another ledger"
            )


def missing_releases(traces: Sequence[Trace], ledger: Ledger | None) -> Iterator[str]:
    """Yield a line for each release that a ledger should know and does not.

    The traces come first: what is released while we look is then no surprise. A release
    that several of them tell of is named once.
    """
    entries = {e.release: e for e in ledger.entries()} if ledger else {}
    origin = ledger.origin() if ledger else ""
    reported: set[object] = set()
    for trace in traces:
        problem = None if trace.is_foreign(origin) else trace.problem(ledger, entries)
        if problem and trace.release not in reported:
            reported.add(trace.release)
            yield f"{trace.where}: {problem}"
