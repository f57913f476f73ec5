"""Sending an envelope to its server: until it is accepted, refused, or hope is gone.

What is sent was drawn and published before: sending it once more tells nothing new and
spends nothing, so whoever got no answer asks again.
"""

from __future__ import annotations

import json
import random
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from curvote.errors import UserError

# Waits (seconds) between tries, each as long again, unless the server names its own.
FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0
TRIES: Final = 8
TIMEOUT: Final = 30.0
# Of an answer at most so much is read.
_MOST: Final = 2**16
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# Answers that may be others later.
_LATER: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class NotSent(Exception):  # noqa: N818 - what happened to an envelope
    """No try reached the server, or it had no room: the envelope waits in its place."""


@dataclass(frozen=True)
class _Told:
    """An answer: its status, what it says, and after how long to come back."""

    status: int
    words: str
    wait: float | None


def send(
    url: str, envelope: bytes, *, sleep: Callable[[float], object] = time.sleep
) -> str:
    """Post an envelope to the service at ``url``; return what became of it.

    That is "accepted" or "accepted before". UserError: no address of a service, or a
    server that refuses the envelope. `NotSent`: no answer after several tries.
    """
    place = address(url)
    told: _Told | None = None
    for wait in _waits():
        told = _tried(place, envelope)
        if told is not None and told.status in (200, 201):
            return "accepted" if told.status == 201 else "accepted before"
        if told is not None and told.status not in _LATER:
            raise UserError(
                f"the server at {url} refused the envelope: {told.words}. It stays in"
                " the outbox; nothing more was drawn."
            )
        if wait is not None:
            sleep(min(told.wait or wait, LONGEST_WAIT) if told else wait)
    why = f"it says: {told.words}" if told else "it does not answer"
    raise NotSent(
        f"the server at {url}: {why}. The envelope waits in the outbox: the same"
        " command sends it again, and draws nothing."
    )


def _waits() -> Iterator[float | None]:
    """Yield how long to wait after each try, None after the last.

    Each is drawn: clients that were sent away together do not come back together.
    """
    wait = FIRST_WAIT
    for _ in range(TRIES - 1):
        yield wait * (1 + random.random()) / 2  # noqa: S311 - nothing is secret
        wait = min(2 * wait, LONGEST_WAIT)
    yield None


def address(url: str) -> SplitResult:
    """Return where a service is; UserError: it is none, or others could listen."""
    try:
        place = urlsplit(url)
        host, _ = (place.hostname or "").encode("idna"), place.port
        plain = place.path.isascii() and place.path.isprintable()
        known = bool(host) and plain and " " not in place.path
    except ValueError:  # no number of a port, no name of a host
        known = False
    if not known or place.scheme not in ("http", "https") or place.query:
        raise UserError(f"{url!r} is no address of a service; it is like https://host.")
    if place.scheme == "http" and place.hostname not in _LOOPBACK:
        raise UserError(
            f"{url} is not encrypted: whoever is on the way could read and stop the"
            " envelope. Use https://."
        )
    return place


def _tried(place: SplitResult, envelope: bytes) -> _Told | None:
    """Return the server's answer to one try, None if there is none."""
    connection = _connection(place)
    try:
        path = f"{place.path.rstrip('/')}/v1/envelopes"
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        connection.request("POST", path, envelope, headers)
        answer = connection.getresponse()
        said = answer.read(_MOST)
        after = answer.getheader("Retry-After", "")
    except ssl.SSLCertVerificationError as error:
        raise UserError(
            f"{place.hostname} does not prove who it is: {error.verify_message}."
            " Nothing was sent."
        ) from None
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
    wait = float(after) if after.isdecimal() and len(after) < 6 else None
    return _Told(answer.status, _words(answer.status, said), wait)


def _connection(place: SplitResult) -> HTTPConnection:
    host = str(place.hostname)
    if place.scheme == "http":
        return HTTPConnection(host, place.port, timeout=TIMEOUT)
    secure = ssl.create_default_context()
    return HTTPSConnection(host, place.port, timeout=TIMEOUT, context=secure)


def _words(status: int, said: bytes) -> str:
    """Return what a problem says, in plain characters; else its status."""
    try:
        found: Any = json.loads(said)
        title, detail = found["title"], found.get("detail", "")
        text = f"{title} ({detail})" if detail else str(title)
    except (ValueError, TypeError, KeyError, AttributeError):
        return f"status {status}"
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text[:200])
