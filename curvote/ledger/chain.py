"""Hash chain of a ledger: every event ever entered, each linked to the one before.

A link is the HMAC-SHA256 of the link before it and of its event, under a key that never
leaves the ledger (RFC 2104). Whoever holds a link can later ask a ledger whether it
still holds what that link stood for: a ledger restored from a backup, or a fresh one,
does not. Without the key a link tells nothing, not even to who can guess its event.

Every function runs inside a transaction that its caller has begun.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from sqlite3 import Connection
from typing import Any, Final

_BATCH: Final = 65_536
# The columns of a release that are entered with it, and when it is settled.
ENTRY_COLUMNS: Final = (
    *("state", "epsilon", "delta", "cap_epsilon", "cap_delta"),
    *("n_clients", "facts", "reserved"),
)
SETTLEMENT_COLUMNS: Final = ("state", "settled", "place", "digest", "reason")


@dataclass(frozen=True)
class Movement:
    """A reservation or settlement of a release, with the chain's head then.

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


def begin_chain(db: Connection) -> None:
    """Insert the first link, which holds the key of all others."""
    key = secrets.token_hex(32)
    event = _event_json({"kind": "begun", "key": key, "name": "", "said": {}})
    first = event, _link_code(key, "", event)
    db.execute("INSERT INTO chain VALUES (1, ?, ?)", first)


def append_event(
    db: Connection, kind: str, name: str, **values: str | int | None
) -> None:
    """Append an event about a release, population or setting."""
    event = _event_json({"kind": kind, "name": name, "said": values, "at": utc_now()})
    link = _link_code(_chain_key(db), chain_head(db), event)
    db.execute("INSERT INTO chain (event, link) VALUES (?, ?)", (event, link))


def chain_head(db: Connection) -> str:
    """Return the newest link, 64 hexadecimal digits."""
    return chain_top(db)[1]


def chain_top(db: Connection) -> tuple[int, str]:
    """Return the newest link and its position in the chain, from 1 on."""
    query = "SELECT number, link FROM chain ORDER BY number DESC LIMIT 1"
    row: tuple[int, str] | None = db.execute(query).fetchone()
    return row or (0, "")


def read_movements(db: Connection) -> Iterator[Movement]:
    """Yield all reservations and settlements in order."""
    about: dict[str, dict[str, Any]] = {}
    query = "SELECT event, link, number FROM chain ORDER BY number"
    for text, *link in db.execute(query):
        event = json.loads(text)
        if event["kind"] in {"reserved", "settled"}:
            name = event["name"]
            values = about[name] = about.get(name, {}) | event["said"]
            owner = values["population"], values["n_clients"]
            amounts = values["epsilon"], values["delta"]
            yield Movement(name, *owner, *amounts, values["state"], *link)


class CohortDigest:
    """The digest of sorted ids, added batch by batch."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._started = False

    def add(self, batch: Sequence[str]) -> None:
        """Add the next ids to the digest."""
        between = "\0" if self._started else ""
        self._started = True
        self._digest.update((between + "\0".join(batch)).encode())

    def text(self) -> str:
        """Return the digest, 64 hexadecimal digits."""
        return self._digest.hexdigest()


def adopt_format_1(db: Connection) -> None:
    """Append the releases and caps of a ledger of format 1.

    The cap is that of its latest release that had one. A client's own releases, which
    name an outbox, had theirs from a task, which is nobody to ask: they set no cap.
    """
    for release, columns in release_rows(db):
        first = {name: columns[name] for name in ENTRY_COLUMNS} | {"state": "reserved"}
        about = {"population": columns["population"], "clients": columns["clients"]}
        append_event(db, "reserved", release, **first, **about)
        if columns["settled"] is not None:
            settled = {name: columns[name] for name in SETTLEMENT_COLUMNS}
            append_event(db, "settled", release, **settled)
    for population, epsilon, delta in db.execute(_LATEST_CAPS).fetchall():
        write_cap(db, population, epsilon, delta)


_LATEST_CAPS: Final = """SELECT name, cap_epsilon, cap_delta FROM releases
JOIN populations ON populations.id = population
WHERE number IN (SELECT max(number) FROM releases WHERE cap_epsilon IS NOT NULL
  AND instr(facts, '"outbox":') = 0 GROUP BY population)"""


def read_caps(db: Connection) -> dict[str, tuple[str, str]]:
    """Return the cap of every population that has one, as decimal texts."""
    query = "SELECT name, epsilon, delta FROM caps JOIN populations ON id = population"
    return {name: (epsilon, delta) for name, epsilon, delta in db.execute(query)}


def write_cap(db: Connection, population: str, epsilon: str, delta: str) -> None:
    """Set or replace the cap of an existing population."""
    query = (
        "INSERT OR REPLACE INTO caps SELECT id, ?, ? FROM populations WHERE name = ?"
    )
    db.execute(query, (epsilon, delta, population))
    append_event(db, "cap", population, epsilon=epsilon, delta=delta)


def release_rows(db: Connection) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each release with the columns that the chain records."""
    columns = (*ENTRY_COLUMNS, *SETTLEMENT_COLUMNS[1:])
    query = f"""SELECT number, release, name, {", ".join(columns)} FROM releases
    JOIN populations ON populations.id = population ORDER BY number"""  # noqa: S608 - names of columns are ours
    for number, release, population, *values in db.execute(query).fetchall():
        digest = CohortDigest()
        cursor = db.execute(_SORTED_MEMBERS, (number,))
        while batch := cursor.fetchmany(_BATCH):
            digest.add([name for (name,) in batch])
        clients = digest.text()
        recorded = dict(zip(columns, values, strict=True))
        yield release, recorded | {"population": population, "clients": clients}


_SORTED_MEMBERS: Final = """SELECT c.client FROM members m CROSS JOIN clients c
ON c.number = m.client WHERE m.release = ? ORDER BY c.client"""


def chain_problems(db: Connection) -> Iterator[str]:
    """Yield differences between the chain and the tables."""
    chain = db.execute("SELECT event, link FROM chain ORDER BY number").fetchall()
    key, links = _chain_key(db), ["", *(link for _, link in chain)]
    broken = sum(
        link != _link_code(key, before, event)
        for before, (event, link) in zip(links, chain, strict=False)
    )
    if broken or not chain:
        yield f"the chain of entries is broken: {broken} of {len(chain)} links"
        return
    # What the events add up to.
    releases: dict[str, dict[str, Any]] = {}
    caps: dict[str, tuple[str, str]] = {}
    settings: dict[str, str] = {}
    for event in (json.loads(text) for text, _ in chain):
        name, values = event["name"], event["said"]
        if event["kind"] == "reserved":
            releases[name] = dict.fromkeys(SETTLEMENT_COLUMNS[1:]) | values
        elif event["kind"] == "settled":
            releases.setdefault(name, {}).update(values)
        elif event["kind"] == "cap":
            caps[name] = (values["epsilon"], values["delta"])
        elif event["kind"] == "setting":
            settings[name] = values["value"]
    current_releases = dict(release_rows(db))
    for release in sorted(releases.keys() | current_releases.keys()):
        if releases.get(release) != current_releases.get(release):
            yield f"release {release}: its entry is not what the chain says"
    current_caps = read_caps(db)
    for name in sorted(current_caps.keys() | caps.keys()):
        if current_caps.get(name) != caps.get(name):
            yield f"the cap of population {name!r} is not what the chain says"
    if dict(db.execute("SELECT name, value FROM settings")) != settings:
        yield "the settings are not what the chain says"


def _chain_key(db: Connection) -> str:
    row = db.execute("SELECT event FROM chain WHERE number = 1").fetchone()
    return str(json.loads(row[0]).get("key", "")) if row else ""


def _link_code(key: str, before: str, event: str) -> str:
    message = f"{before}\n{event}".encode()
    return hmac.new(key.encode(), message, hashlib.sha256).hexdigest()


def utc_now() -> str:
    """Return the time in UTC as text, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _event_json(event: Mapping[str, Any]) -> str:
    return json.dumps(event, sort_keys=True, separators=(",", ":"))
