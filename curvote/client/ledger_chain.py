"""The chain of a ledger: all that was ever entered, each link over the one before it.

A link is the HMAC-SHA256 of the link before it and of its event, under a key that never
leaves the ledger (RFC 2104). Whoever holds a link can later ask a ledger whether it
still holds what that link stood for: a ledger restored from a backup, or a fresh one,
does not. Without the key a link tells nothing, not even to who can guess its event.

Every function runs inside a transaction that its caller has begun.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

_BATCH: Final = 65_536
# The columns of a release that are entered with it, and when it is settled.
ENTERED: Final = (
    *("state", "epsilon", "delta", "cap_epsilon", "cap_delta"),
    *("n_clients", "facts", "reserved"),
)
SETTLED: Final = ("state", "settled", "place", "digest", "reason")


@dataclass(frozen=True)
class Movement:
    """A release that was reserved or settled, and the head of the chain since then.

    ``epsilon`` and ``delta`` are exact decimal text; ``sequence`` is the head's place
    in the chain, from 1 on.
    """

    release: str
    population: str
    clients: int
    epsilon: str
    delta: str
    state: str
    head: str
    sequence: int


def begin(db: sqlite3.Connection) -> None:
    """Enter the first link: the key of all others."""
    key = secrets.token_hex(32)
    event = _canonical({"kind": "begun", "key": key, "name": "", "said": {}})
    db.execute("INSERT INTO chain VALUES (1, ?, ?)", (event, _link(key, "", event)))


def append(
    db: sqlite3.Connection, kind: str, name: str, **said: str | int | None
) -> None:
    """Enter the next link: what is said of a release, population or setting."""
    event = _canonical({"kind": kind, "name": name, "said": said, "at": now()})
    link = _link(_key(db), head(db), event)
    db.execute("INSERT INTO chain (event, link) VALUES (?, ?)", (event, link))


def head(db: sqlite3.Connection) -> str:
    """Return the newest link, 64 hexadecimal digits."""
    return top(db)[1]


def top(db: sqlite3.Connection) -> tuple[int, str]:
    """Return the place of the newest link in the chain, from 1 on, and the link."""
    query = "SELECT number, link FROM chain ORDER BY number DESC LIMIT 1"
    found: tuple[int, str] | None = db.execute(query).fetchone()
    return found or (0, "")


def movements(db: sqlite3.Connection) -> Iterator[Movement]:
    """Yield the reservations and settlements, in the order in which they were made."""
    about: dict[str, dict[str, Any]] = {}
    query = "SELECT event, link, number FROM chain ORDER BY number"
    for text, *link in db.execute(query):
        event = json.loads(text)
        if event["kind"] in {"reserved", "settled"}:
            name = event["name"]
            said = about[name] = about.get(name, {}) | event["said"]
            of = said["population"], said["n_clients"]
            amounts = said["epsilon"], said["delta"]
            yield Movement(name, *of, *amounts, said["state"], *link)


class CohortDigest:
    """The digest of sorted ids, batch by batch; it must not leave the ledger."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._begun = False

    def add(self, batch: Sequence[str]) -> None:
        """Take in the ids that follow."""
        between = "\0" if self._begun else ""
        self._begun = True
        self._digest.update((between + "\0".join(batch)).encode())

    def text(self) -> str:
        """Return it, 64 hexadecimal digits."""
        return self._digest.hexdigest()


def adopt(db: sqlite3.Connection) -> None:
    """Enter the releases of a ledger of format 1, and a cap for each population.

    The cap is that of its latest release that had one. A client's own releases, which
    name an outbox, had theirs from a task, which is nobody to ask: they set no cap.
    """
    for release, columns in rows(db):
        first = {name: columns[name] for name in ENTERED} | {"state": "reserved"}
        about = {"population": columns["population"], "clients": columns["clients"]}
        append(db, "reserved", release, **first, **about)
        if columns["settled"] is not None:
            append(db, "settled", release, **{n: columns[n] for n in SETTLED})
    for population, epsilon, delta in db.execute(_LATEST_CAPS).fetchall():
        write_cap(db, population, epsilon, delta)


_LATEST_CAPS: Final = """SELECT name, cap_epsilon, cap_delta FROM releases
JOIN populations ON populations.id = population
WHERE number IN (SELECT max(number) FROM releases WHERE cap_epsilon IS NOT NULL
  AND instr(facts, '"outbox":') = 0 GROUP BY population)"""


def caps(db: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """Return the cap of every population that has one, as its two texts."""
    query = "SELECT name, epsilon, delta FROM caps JOIN populations ON id = population"
    return {name: (epsilon, delta) for name, epsilon, delta in db.execute(query)}


def write_cap(
    db: sqlite3.Connection, population: str, epsilon: str, delta: str
) -> None:
    """Set or replace the cap of a population that is there."""
    db.execute(
        """INSERT OR REPLACE INTO caps
        SELECT id, ?, ? FROM populations WHERE name = ?""",
        (epsilon, delta, population),
    )
    append(db, "cap", population, epsilon=epsilon, delta=delta)


def rows(db: sqlite3.Connection) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each release with its columns as the chain tells them."""
    columns = (*ENTERED, *SETTLED[1:])
    query = f"""SELECT number, release, name, {", ".join(columns)} FROM releases
    JOIN populations ON populations.id = population ORDER BY number"""  # noqa: S608 - names of columns are ours
    for number, release, population, *values in db.execute(query).fetchall():
        clients = _members(db, number)
        told = dict(zip(columns, values, strict=True))
        yield release, told | {"population": population, "clients": clients}


def _members(db: sqlite3.Connection, number: int) -> str:
    """Return the digest of a release's clients, who are never all held at once.

    They were mostly entered in the order of their ids, so that SQLite sorts what is
    nearly sorted.
    """
    digest = CohortDigest()
    found = db.execute(_SORTED, (number,))
    while batch := found.fetchmany(_BATCH):
        digest.add([name for (name,) in batch])
    return digest.text()


_SORTED: Final = """SELECT c.client FROM members m CROSS JOIN clients c
ON c.number = m.client WHERE m.release = ? ORDER BY c.client"""


def problems(db: sqlite3.Connection) -> Iterator[str]:
    """Yield what in the chain, or beside it in the tables, is not what was entered."""
    chain = db.execute("SELECT event, link FROM chain ORDER BY number").fetchall()
    key, links = _key(db), ["", *(link for _, link in chain)]
    broken = sum(
        link != _link(key, before, event)
        for before, (event, link) in zip(links, chain, strict=False)
    )
    if broken or not chain:
        yield f"the chain of entries is broken: {broken} of {len(chain)} links"
    else:
        yield from _untold(db, [json.loads(event) for event, _ in chain])


def _untold(db: sqlite3.Connection, events: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield what the tables say and the chain does not, or the other way round."""
    told = _Told(events)
    there = dict(rows(db))
    for release in sorted(told.releases.keys() | there.keys()):
        if told.releases.get(release) != there.get(release):
            yield f"release {release}: its entry is not what the chain says"
    stated = caps(db)
    for name in sorted(stated.keys() | told.caps.keys()):
        if stated.get(name) != told.caps.get(name):
            yield f"the cap of population {name!r} is not what the chain says"
    if dict(db.execute("SELECT name, value FROM settings")) != told.settings:
        yield "the settings are not what the chain says"


class _Told:
    """What a chain adds up to: releases, caps and settings."""

    def __init__(self, events: Sequence[dict[str, Any]]) -> None:
        self.releases: dict[str, dict[str, Any]] = {}
        self.caps: dict[str, tuple[str, str]] = {}
        self.settings: dict[str, str] = {}
        for event in events:
            name, said = event["name"], event["said"]
            if event["kind"] == "reserved":
                self.releases[name] = dict.fromkeys(SETTLED[1:]) | said
            elif event["kind"] == "settled":
                self.releases.setdefault(name, {}).update(said)
            elif event["kind"] == "cap":
                self.caps[name] = (said["epsilon"], said["delta"])
            elif event["kind"] == "setting":
                self.settings[name] = said["value"]


def _key(db: sqlite3.Connection) -> str:
    found = db.execute("SELECT event FROM chain WHERE number = 1").fetchone()
    return str(json.loads(found[0]).get("key", "")) if found else ""


def _link(key: str, before: str, event: str) -> str:
    message = f"{before}\n{event}".encode()
    return hmac.new(key.encode(), message, hashlib.sha256).hexdigest()


def now() -> str:
    """Return the time in UTC as text, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _canonical(event: Mapping[str, Any]) -> str:
    return json.dumps(event, sort_keys=True, separators=(",", ":"))
