"""Server process of Prefect's API, behind a gate against other pages and users."""

from __future__ import annotations

import argparse
import fcntl
import gc
import json
import os
import secrets
import select
import socket
import threading
import time
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from curvote.base.errors import InternalError
from curvote.flows.environment import (
    SERVER_VARIABLE,
    WARM_SERVER,
    file_locked,
    process_tag,
    write_secret,
)

if TYPE_CHECKING:
    import uvicorn


# These change nothing; what they read Prefect itself keeps for those who may.
_SAFE = ("GET", "HEAD", "OPTIONS")


class RequestGate:
    """A gate that refuses requests of other pages, host names and strangers.

    A browser names the page that asks in ``Origin`` and the server it believes to ask
    in ``Host``; other programs send no ``Origin``. Both must be the ``address`` itself
    (``http://127.0.0.1:4200``). Sockets are held to that, too. An order without the
    secret is answered 401 here: Prefect would first ask for its token (403).
    """

    def __init__(self, app: ASGIApp, address: str, secret: str) -> None:
        self.app = app
        self.address = address
        self._credentials = b"Basic " + b64encode(secret.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 403 or 401."""
        answer = self.app
        if scope["type"] != "lifespan":
            answer = self._refusal_response(scope, Headers(scope=scope)) or self.app
        await answer(scope, receive, send)

    def _refusal_response(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        changes = scope["type"] == "http" and scope["method"] not in _SAFE
        if elsewhere := self._refuse_other_address(scope, headers):
            return elsewhere
        if changes and not self._has_credentials(headers):
            return PlainTextResponse("Unauthorized\n", 401)
        return None

    def _refuse_other_address(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        """Return a refusal of another page or host name; None: neither."""
        hosts = [f"http://{host}" for host in headers.getlist("host")]
        if {*hosts, *headers.getlist("origin")} == {self.address}:
            return None
        if scope["type"] == "websocket":
            return WebSocketClose(code=1008)
        return PlainTextResponse(f"Open {self.address} itself.\n", 403)

    def _has_credentials(self, headers: Headers) -> bool:
        credentials = headers.get("authorization", "").encode()
        return secrets.compare_digest(credentials, self._credentials)


class CookieGate(RequestGate):
    """A gate that also accepts a cookie, which a link sets that opens once.

    Who comes by the link ``ADDRESS/enter/TICKET``, which opens once, is given a cookie
    and led to ``page``; programs give the secret (basic authentication).
    """

    def __init__(
        self, app: ASGIApp, address: str, secret: str, ticket: str, page: str
    ) -> None:
        super().__init__(app, address, secret)
        self._ticket: str | None = ticket
        self._page = page
        # A name of its own: cookies know no port.
        self._cookie = f"curvote-{address.rpartition(':')[2]}"
        self._session = secrets.token_urlsafe(32)

    def _refusal_response(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        if elsewhere := self._refuse_other_address(scope, headers):
            return elsewhere
        if scope["type"] == "http" and scope["path"].startswith("/enter/"):
            return self._enter_by_ticket(scope["path"].removeprefix("/enter/"))
        cookie = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        ours = secrets.compare_digest(cookie.encode(), self._session.encode())
        if ours or self._has_credentials(headers):
            return None
        if scope["type"] == "websocket":
            return WebSocketClose(code=1008)
        return PlainTextResponse("Open the link that `curvote ui` printed.\n", 401)

    def _enter_by_ticket(self, ticket: str) -> ASGIApp:
        wanted, presented = (self._ticket or "").encode(), ticket.encode()
        if self._ticket is None or not secrets.compare_digest(presented, wanted):
            words = "This link is not the one, or was opened before: `curvote ui`\n"
            return PlainTextResponse(f"{words}prints a new one when it starts.\n", 403)
        self._ticket = None
        led = RedirectResponse(self._page, 303, {"cache-control": "no-store"})
        led.set_cookie(self._cookie, self._session, httponly=True, samesite="strict")
        return led


GRACE_SECONDS, _RECORDER_SECONDS, _LOOK_SECONDS = 5.0, 3.0, 0.5
_MINIMAL_SETTINGS = {
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false",
    "PREFECT_SERVER_MEMOIZE_BLOCK_AUTO_REGISTRATION": "false",
    "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
    "PREFECT_LOGGING_LEVEL": "WARNING",
    "PREFECT_API_DATABASE_MIGRATE_ON_START": "false",
    # Many task runs in one statement: thousands do not queue up.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "50",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
}
# Nothing here needs them: no workers, automations, pauses or pages with late runs.
_DISABLED_SERVICES = (
    "CLEANUP_RECONCILER",
    "EVENT_PERSISTER",
    "FOREMAN",
    "LATE_RUNS",
    "PAUSE_EXPIRATIONS",
    "REPOSSESSOR",
    "TRIGGERS",
)
_SCHEDULING_SERVICES = ("CANCELLATION_CLEANUP", "SCHEDULER")
_PROMPT_SETTINGS = {
    "PREFECT_SERVER_SERVICES_SCHEDULER_RECENT_DEPLOYMENTS_LOOP_SECONDS": "1",
    "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "15",
}


def main() -> None:
    """Serve the API until standard input ends or a SIGTERM comes.

    With ``--warm SECONDS``: until nobody has used it for so long.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--services", action="store_true")
    parser.add_argument("--warm", type=int, default=0)
    arguments = parser.parse_args()
    server: list[uvicorn.Server] = []
    listening = socket.socket(fileno=arguments.fd)
    address = "http://{}:{}".format(*listening.getsockname())
    end: tuple[Any, ...] = (_end_with_parent, server)
    if arguments.warm:
        end = _end_when_unused, server, f"{address}/api", arguments.warm
    threading.Thread(target=end[0], args=end[1:], daemon=True).start()
    os.environ.update(_server_settings(address, services=arguments.services))
    # Importing the server builds thousands of long-lived classes.
    gc.disable()
    import asyncio

    import uvicorn
    from prefect.server.api.server import create_app
    from prefect.server.database import provide_database_interface

    # Created or upgraded by one process at a time.
    with file_locked(Path(os.environ["PREFECT_HOME"]) / "migrate.lock"):
        asyncio.run(provide_database_interface().create_db())
    config = uvicorn.Config(
        RequestGate(create_app(final=True), address, os.environ[SERVER_VARIABLE]),
        log_level="warning",
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
    )
    server.append(uvicorn.Server(config))
    gc.freeze()
    gc.enable()
    server[0].run(sockets=[listening])


def _server_settings(address: str, *, services: bool) -> dict[str, str]:
    """Return Prefect's variables for this server, which keep it closed.

    The names are those that Prefect reads first: no variable of the user's opens what
    is closed here.
    """
    if not os.environ.get(SERVER_VARIABLE):
        raise InternalError(f"{SERVER_VARIABLE} is not set: anybody could give orders")
    closed = {
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": address,
        "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
    }
    off = _DISABLED_SERVICES + (() if services else _SCHEDULING_SERVICES)
    disabled = {f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in off}
    settings = _MINIMAL_SETTINGS | _PROMPT_SETTINGS | disabled | closed
    if not services:
        return settings | {"PREFECT_SERVER_EVENTS_STREAM_OUT_ENABLED": "false"}
    return settings | {  # of the pages, which else ask port 4200
        "PREFECT_SERVER_UI_ENABLED": "true",
        "PREFECT_SERVER_UI_API_URL": f"{address}/api",
        # By default they are written into the installed package.
        "PREFECT_SERVER_UI_STATIC_DIRECTORY": f"{os.environ['PREFECT_HOME']}/ui",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    }


def _end_when_unused(server: list[uvicorn.Server], url: str, seconds: int) -> None:
    """Let further commands use this server; shut down once none did for some seconds.

    Whoever uses it holds a shared lock, which goes with its process. The last look at
    the lock keeps others out until the address is gone: they start a server of their
    own.
    """
    address, used = Path(os.environ["PREFECT_HOME"], WARM_SERVER), time.monotonic()
    entry = {"url": url, "process": process_tag()}
    entry["secret"] = os.environ[SERVER_VARIABLE]
    try:
        write_secret(address, json.dumps(entry))
        with address.with_suffix(".lock").open("a") as lock:
            while True:
                time.sleep(_LOOK_SECONDS)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    used = time.monotonic()
                    continue
                if time.monotonic() - used > seconds:
                    break
                fcntl.flock(lock, fcntl.LOCK_UN)
            if json.loads(address.read_text(encoding="utf-8")) == entry:
                address.unlink()
    finally:  # whatever went wrong, nothing stays behind
        _shut_down(server)


def _end_with_parent(server: list[uvicorn.Server]) -> None:
    """Shut down once standard input is at its end or the parent has gone.

    A worker that the parent forked may hold the pipe open, hence the second sign.
    """
    parent = os.getppid()
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], 1.0)
        if readable and not os.read(0, 4096):
            break
    _shut_down(server)


def _shut_down(server: list[uvicorn.Server]) -> None:
    if server:
        # The task-run recorder takes all events first, if it does soon.
        from prefect.server.utilities.messaging.memory import METRICS

        counts, consumed = METRICS["events"], -1
        end = time.monotonic() + _RECORDER_SECONDS
        while time.monotonic() < end:
            before, consumed = consumed, counts["consumed"]
            if before == consumed >= counts["published"]:
                break
            time.sleep(0.1)
        server[0].should_exit = True
        time.sleep(GRACE_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    main()
