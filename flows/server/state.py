"""How Prefect's server stands: whether it answers, and whether its database does."""

from __future__ import annotations

import http.client
from typing import Final
from urllib.parse import urlsplit

READY: Final = http.client.OK
# It answers, but cannot reach its database.
DATABASE: Final = http.client.SERVICE_UNAVAILABLE


def ask(url: str, timeout: float = 2.0) -> int | None:
    """Return the status of the API at ``url``: READY or DATABASE; None: no answer."""
    return _get(url, "ready", timeout)


def answers(url: str, timeout: float) -> bool:
    """Say whether the API at ``url`` reports health within ``timeout`` seconds.

    One request is enough: the socket listens before the server is up, and is closed
    when the server fails to start.
    """
    return _get(url, "health", timeout) == http.client.OK


def _get(url: str, page: str, timeout: float) -> int | None:
    address = urlsplit(url)
    secure = address.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(address.netloc, timeout=timeout)
    try:
        connection.request("GET", f"{address.path.rstrip('/')}/{page}")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
