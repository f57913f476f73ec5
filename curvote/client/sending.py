"""Sending of envelopes to a server, with retries until it answers.

What is sent was drawn and published before: sending it once more tells nothing new and
spends nothing, so whoever got no answer asks again.
"""

import json
import random
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from curvote.base.errors import UserError

# Waits (seconds) between tries, each as long again, unless the server names its own.
FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0
MAX_TRIES: Final = 8
TIMEOUT: Final = 30.0
# Of an answer at most so much is read.
_MAX_ANSWER: Final = 2**16
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# Answers that may be others later.
_RETRY_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class NotSent(Exception):  # noqa: N818 - what happened to an envelope
    """Error for an envelope that no try delivered; it stays in the outbox."""


@dataclass(frozen=True)
class ServerAnswer:
    """A server's answer: its status, its text, when to retry, the receipt it gives."""

    status: int
    words: str
    wait: float | None
    receipt: Any = None

    @property
    def outcome(self) -> str:
        """What became of an envelope: "accepted" or "accepted before"."""
        return "accepted" if self.status == 201 else "accepted before"


def send_envelope(
    url: str,
    envelope: bytes,
    *,
    salt: bytes | None = None,
    sleep: Callable[[float], object] = time.sleep,
) -> ServerAnswer:
    """Post an envelope to the service at ``url``; return its answer once accepted.

    ``salt`` is that of the envelope's receipt. UserError: no address of a service, or a
    server that refuses the envelope. `NotSent`: no answer after several tries.
    """
    place = service_address(url)
    answer: ServerAnswer | None = None
    wait = FIRST_WAIT
    for tries in range(1, MAX_TRIES + 1):
        answer = try_sending(place, envelope, salt)
        if answer is not None and answer.status in (200, 201):
            return answer
        if answer is not None and answer.status not in _RETRY_STATUSES:
            raise UserError(
                f"the server at {url} refused the envelope: {answer.words}. It stays in"
                " the outbox; nothing more was drawn."
            )
        if tries < MAX_TRIES:
            # Drawn: clients that were sent away together do not come back together.
            drawn_wait = wait * (1 + random.random()) / 2  # noqa: S311 - nothing is secret
            wait = min(2 * wait, LONGEST_WAIT)
            sleep(
                min(answer.wait or drawn_wait, LONGEST_WAIT) if answer else drawn_wait
            )
    why = f"it says: {answer.words}" if answer else "it does not answer"
    raise NotSent(
        f"the server at {url}: {why}. The envelope waits in the outbox: the same"
        " command sends it again, and draws nothing."
    )


def service_address(url: str) -> SplitResult:
    """Return the parsed address of a service; invalid or open ones: UserError."""
    try:
        place = urlsplit(url)
        host, _ = (place.hostname or "").encode("idna"), place.port
        plain = place.path.isascii() and place.path.isprintable()
        valid = bool(host) and plain and " " not in place.path
    except ValueError:  # no number of a port, no name of a host
        valid = False
    if not valid or place.scheme not in ("http", "https") or place.query:
        raise UserError(f"{url!r} is no address of a service; it is like https://host.")
    if place.scheme == "http" and place.hostname not in _LOOPBACK:
        raise UserError(
            f"{url} is not encrypted: whoever is on the way could read and stop the"
            " envelope. Use https://."
        )
    return place


def try_sending(
    place: SplitResult, envelope: bytes, salt: bytes | None = None
) -> ServerAnswer | None:
    """Post an envelope once; return the server's answer, None: there was none."""
    from curvote.wire.receipt import SALT_HEADER

    host, port = str(place.hostname), place.port
    if place.scheme == "http":
        connection = HTTPConnection(host, port, timeout=TIMEOUT)
    else:
        secure = ssl.create_default_context()
        connection = HTTPSConnection(host, port, timeout=TIMEOUT, context=secure)
    try:
        path = f"{place.path.rstrip('/')}/v1/envelopes"
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        headers |= {SALT_HEADER: salt.hex()} if salt else {}
        connection.request("POST", path, envelope, headers)
        answer = connection.getresponse()
        body = answer.read(_MAX_ANSWER)
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
    receipt = None
    try:  # a problem document, else the status says it
        problem: Any = json.loads(body)
        receipt = problem.get("receipt")
        title, detail = problem["title"], problem.get("detail", "")
        text = f"{title} ({detail})" if detail else str(title)
        words = "".join(
            c if c.isascii() and c.isprintable() else "?" for c in text[:200]
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        words = f"status {answer.status}"
    return ServerAnswer(answer.status, words, wait, receipt)
