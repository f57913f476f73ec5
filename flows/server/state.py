"""Launch of Prefect's server as a process, its state, and why it ended."""

from __future__ import annotations

import http.client
from typing import Final
from urllib.parse import urlsplit

READY: Final = http.client.OK
# It answers, but cannot reach its database.
DATABASE_DOWN: Final = http.client.SERVICE_UNAVAILABLE


def api_status(url: str, timeout: float = 2.0) -> int | None:
    """Return the status of the API: READY or DATABASE_DOWN; None: no answer."""
    return _get_status(url, "ready", timeout)


def is_healthy(url: str, timeout: float) -> bool:
    """Return whether the API reports health within ``timeout`` seconds.

    One request is enough: the socket listens before the server is up, and is closed
    when the server fails to start.
    """
    return _get_status(url, "health", timeout) == http.client.OK


def _get_status(url: str, page: str, timeout: float) -> int | None:
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
