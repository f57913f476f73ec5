"""What stands before Prefect's API: requests of its own pages and of programs only."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose


class OwnPagesOnly:
    """Refuse what another page, or a name that points here, asks of a server.

    A browser names the page that asks in ``Origin`` and the server it believes to ask
    in ``Host``; other programs send no ``Origin``. Both must be the ``address`` itself
    (``http://127.0.0.1:4200``): before Prefect sees the request, sockets included.
    """

    def __init__(self, app: ASGIApp, address: str) -> None:
        self.app = app
        self.address = address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 403 without a word of permission."""
        if scope["type"] == "lifespan" or self._own(Headers(scope=scope)):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose(code=1008)(scope, receive, send)
        else:
            message = f"This is not {self.address}: open that page itself.\n"
            await PlainTextResponse(message, 403)(scope, receive, send)

    def _own(self, headers: Headers) -> bool:
        hosts = [f"http://{host}" for host in headers.getlist("host")]
        return {*hosts, *headers.getlist("origin")} == {self.address}
