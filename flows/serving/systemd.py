"""Launch of Prefect's server as a process, and notifications to systemd."""

from __future__ import annotations

import contextlib
import os
import socket

# A child that had them would speak for the service.
SYSTEMD_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


def notify_systemd(*words: str) -> None:
    """Send words such as ``READY=1`` to systemd; without a socket do nothing.

    A name that begins with @ is one of Linux's abstract sockets.
    """
    place = os.environ.get("NOTIFY_SOCKET")
    if not place:
        return
    address = f"\0{place[1:]}" if place.startswith("@") else place
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door,
    ):
        door.settimeout(1.0)
        door.sendto("\n".join(words).encode(), address)


def watchdog_seconds() -> float | None:
    """Return the seconds of silence after which systemd ends this process.

    See sd_watchdog_enabled(3).
    """
    limit, whom = os.environ.get("WATCHDOG_USEC"), os.environ.get("WATCHDOG_PID")
    if not limit or whom not in (None, str(os.getpid())):
        return None
    return int(limit) / 1e6 if limit.isdecimal() else None
