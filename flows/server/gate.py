"""What stands before Prefect's API: no other page, no stranger."""

from __future__ import annotations

import secrets
from base64 import b64encode

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

# These change nothing; what they read Prefect itself keeps for those who may.
_SAFE = ("GET", "HEAD", "OPTIONS")


class Gate:
    """Refuse what another page, another name of this machine or a stranger asks.

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
        """Pass the request on, or answer 403 or 401 without a word of permission."""
        answer = self.app
        if scope["type"] != "lifespan":
            answer = self._refusal(scope, Headers(scope=scope)) or self.app
        await answer(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        hosts = [f"http://{host}" for host in headers.getlist("host")]
        if {*hosts, *headers.getlist("origin")} != {self.address}:
            if scope["type"] == "websocket":
                return WebSocketClose(code=1008)
            return PlainTextResponse(f"Open {self.address} itself.\n", 403)
        given = headers.get("authorization", "").encode()
        changes = scope["type"] == "http" and scope["method"] not in _SAFE
        if changes and not secrets.compare_digest(given, self._credentials):
            return PlainTextResponse("Unauthorized\n", 401)
        return None
