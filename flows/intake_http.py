"""The intake's service: tasks go out, envelopes come in, over HTTP.

Nobody's address is asked for, and nothing of a request is logged. An answer that says
accepted was written after the transaction; whoever lost it asks again.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final

import h11
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from curvote.errors import InternalError
from curvote.flows.intake.metrics import Metrics
from curvote.flows.intake.problems import (
    BROKEN,
    DRAINS,
    FAILED,
    FULL,
    JSON,
    SLOW,
    Problem,
    answer,
    answers,
)
from curvote.flows.intake.tasks import Published
from curvote.server.intake_group import Full, Group, Unavailable

ONE: Final = (JSON, "application/jose+json")
LINES: Final = ("application/jsonl", "application/x-ndjson", "application/x-jsonlines")
# An envelope, a batch, and all bodies that are being read.
LARGEST: Final = 2**18
MOST: Final = 1000
LARGEST_BODY: Final = 2**26
MOST_READ: Final = 2**27
# A head, and then a body, must have come after so many seconds.
READING: Final = 30.0
# New uploads are sent away for so long before connections are closed (seconds).
DRAINING: Final = 1.0
# How many wait is said so often (seconds).
COUNTING: Final = 1.0
_FOR_EVER: Final = "public, max-age=31536000, immutable"


class HeadInTime(H11Protocol):
    """A connection that ends where the head of a request does not come in time.

    The library waits for ever for the rest of one that was begun; so a few thousand
    half-sent ones would keep everybody else out.
    """

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait on while the head is not whole; a further one is waited for anew."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._waiting is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(READING, self.transport.close)

    def _stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


@dataclass
class Service:
    """One process of the service, and how it stands."""

    group: Group
    metrics: Metrics
    published: Published
    draining: bool = False
    reading: int = 0
    drained: threading.Event = field(default_factory=threading.Event)

    @property
    def ready(self) -> bool:
        """Whether envelopes are accepted."""
        return not (self.draining or self.group.problem)

    def app(self) -> Starlette:
        """Return what serves the paths."""
        routes = [
            Route("/v1/tasks/{digest}", self.task, methods=["GET"]),
            Route("/v1/envelopes", self.envelopes, methods=["POST"]),
            Route("/healthz", self.healthz),
            Route("/readyz", self.readyz),
            Route("/metrics", self.page),
        ]
        told: Any = {HTTPException: _unknown, Exception: _broken}
        return Starlette(
            routes=routes, lifespan=self._lifespan, exception_handlers=told
        )

    async def envelopes(self, request: Request) -> Response:
        """Take envelopes in, and answer after the commit."""
        try:
            response = await self._taken(request)
        except Problem as problem:
            response = problem.response
        except ClientDisconnect:
            response = SLOW.response  # nobody reads it
        self.metrics.answered(response.status_code)
        return response

    async def _taken(self, request: Request) -> Response:
        if self.draining:
            return DRAINS.response
        kind = _kind(request)
        body = await self._body(request, LARGEST if kind == JSON else LARGEST_BODY)
        sent = [_line(body)] if kind == JSON else _lines(body)
        try:
            told = await asyncio.wrap_future(self.group.put(sent))
        except Full:
            return FULL.response
        except Unavailable:
            return FAILED.response
        except InternalError:
            return BROKEN.response
        return answer(told[0]) if kind == JSON else answers(told)

    async def _body(self, request: Request, most: int) -> bytes:
        """Return the body, as long as it is not too large and comes in time.

        Of one that is too large the rest is read, up to a limit, and dropped: who is
        hung up on while sending does not hear why.
        """
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > LARGEST_BODY:
            raise _too_large(most)
        body, came = bytearray(), 0
        try:
            async with asyncio.timeout(READING):
                async for part in request.stream():
                    came += len(part)
                    if came > LARGEST_BODY:
                        break
                    if came <= most:
                        self.reading += len(part)
                        body += part
                    if self.reading > MOST_READ:
                        raise Problem(429, FULL.name, FULL.title, wait=FULL.wait)
        except TimeoutError:
            raise Problem(408, SLOW.name, SLOW.title) from None
        finally:
            self.reading -= len(body)
        if came > most:
            raise _too_large(most)
        return bytes(body)

    async def task(self, request: Request) -> Response:
        """Return a published task by its digest; it never changes."""
        found = self.published.find(request.path_params["digest"])
        if found is None:
            detail = "no task of this digest is published here."
            return Problem(404, "unknown-task", "unknown task", detail).response
        headers = {"ETag": found.tag, "Cache-Control": _FOR_EVER}
        asked = request.headers.get("if-none-match", "")
        if found.tag in asked or asked.strip() == "*":
            return Response(status_code=304, headers=headers)
        return Response(found.data, headers=headers, media_type="application/jose+json")

    async def healthz(self, request: Request) -> Response:
        """Say that the process answers."""
        return PlainTextResponse("alive\n")

    async def readyz(self, request: Request) -> Response:
        """Say whether envelopes are accepted."""
        if self.ready:
            return PlainTextResponse("ready\n")
        return (DRAINS if self.draining else FAILED).response

    async def page(self, request: Request) -> Response:
        """Return what was counted."""
        self._count()
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return Response(self.metrics.page(), media_type=kind)

    def _count(self) -> None:
        self.metrics.state(waiting=self.group.waiting, ready=self.ready)

    async def _keep_counting(self) -> None:
        """Say how it is now and then: another process may be asked for it."""
        while True:
            self._count()
            await asyncio.sleep(COUNTING)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self.group.start()
        restore = self._drain_on_signals()
        counting = asyncio.create_task(self._keep_counting())
        try:
            yield
        finally:
            counting.cancel()
            restore()
            await asyncio.to_thread(self.group.stop, 60.0)

    def _drain_on_signals(self) -> Callable[[], None]:
        """Send new uploads away for a while before the server's own handler ends it."""
        if threading.current_thread() is not threading.main_thread():
            return lambda: None
        loop = asyncio.get_running_loop()
        before: dict[int, Any] = {}

        def drain(number: int, frame: FrameType | None) -> None:
            again, self.draining = self.draining, True
            end = before[number]
            if callable(end):
                wait = 0.0 if again else DRAINING
                loop.call_soon_threadsafe(loop.call_later, wait, end, number, frame)

        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, drain)

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        return restore


def _kind(request: Request) -> str:
    """Return whether one envelope comes, or several; else a problem."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in ONE + LINES:
        detail = f"send {ONE[0]} for one envelope, {LINES[0]} for one a line."
        raise Problem(415, "media-type", "unsupported media type", detail)
    if request.headers.get("content-encoding", "identity") != "identity":
        detail = "an envelope is random text: send it as it is."
        raise Problem(415, "media-type", "unsupported content encoding", detail)
    return JSON if media in ONE else LINES[0]


def _too_large(most: int) -> Problem:
    detail = f"over {most} bytes; an envelope has at most {LARGEST}."
    return Problem(413, "too-large", "too large", detail)


def _line(data: bytes) -> bytes:
    return data if data.endswith(b"\n") else data + b"\n"


def _lines(body: bytes) -> list[bytes]:
    """Return the envelopes of a batch, each with its line feed."""
    lines = [line + b"\n" for line in body.split(b"\n") if line.strip()]
    if not lines:
        raise Problem(400, "empty", "no envelope", "the batch holds no line.")
    if len(lines) > MOST:
        detail = f"{len(lines)} envelopes; a batch has at most {MOST}."
        raise Problem(413, "too-many", "too many envelopes", detail)
    if max(map(len, lines)) > LARGEST:
        raise _too_large(LARGEST)
    return lines


async def _unknown(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    title = str(getattr(error, "detail", "not found"))
    told = Problem(status, title.lower().replace(" ", "-"), title.lower()).response
    told.headers.update(getattr(error, "headers", None) or {})  # Allow, of 405
    return told


async def _broken(request: Request, error: Exception) -> Response:
    return BROKEN.response
