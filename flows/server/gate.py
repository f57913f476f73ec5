"""Server process of Prefect's API, behind a gate against other pages and users."""

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
