"""What stands before Prefect's API and MLflow's pages: no other page, no stranger."""

from __future__ import annotations

import secrets
from base64 import b64encode

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse
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
        changes = scope["type"] == "http" and scope["method"] not in _SAFE
        if elsewhere := self._elsewhere(scope, headers):
            return elsewhere
        if changes and not self._knows(headers):
            return PlainTextResponse("Unauthorized\n", 401)
        return None

    def _elsewhere(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        """Refuse another page, and another name of this machine."""
        hosts = [f"http://{host}" for host in headers.getlist("host")]
        if {*hosts, *headers.getlist("origin")} == {self.address}:
            return None
        if scope["type"] == "websocket":
            return WebSocketClose(code=1008)
        return PlainTextResponse(f"Open {self.address} itself.\n", 403)

    def _knows(self, headers: Headers) -> bool:
        given = headers.get("authorization", "").encode()
        return secrets.compare_digest(given, self._credentials)


class Door(Gate):
    """A gate before pages that ask nobody for anything: it asks at each request.

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

    def _refusal(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        if elsewhere := self._elsewhere(scope, headers):
            return elsewhere
        if scope["type"] == "http" and scope["path"].startswith("/enter/"):
            return self._enter(scope["path"].removeprefix("/enter/"))
        known = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        ours = secrets.compare_digest(known.encode(), self._session.encode())
        if ours or self._knows(headers):
            return None
        if scope["type"] == "websocket":
            return WebSocketClose(code=1008)
        return PlainTextResponse("Open the link that `curvote ui` printed.\n", 401)

    def _enter(self, ticket: str) -> ASGIApp:
        wanted, given = (self._ticket or "").encode(), ticket.encode()
        if self._ticket is None or not secrets.compare_digest(given, wanted):
            words = "This link is not the one, or was opened before: `curvote ui`\n"
            return PlainTextResponse(f"{words}prints a new one when it starts.\n", 403)
        self._ticket = None
        led = RedirectResponse(self._page, 303, {"cache-control": "no-store"})
        led.set_cookie(self._cookie, self._session, httponly=True, samesite="strict")
        return led
