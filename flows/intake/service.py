"""Service of the intake: published tasks go out, envelopes come in, over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import re
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

import h11
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from curvote.base.errors import InternalError, UserError
from curvote.flows.intake.answers import (
    DRAINING_PROBLEM,
    INTERNAL_ERROR,
    JSON_TYPE,
    QUEUE_FULL,
    TOO_SLOW,
    UNAVAILABLE,
    IntakeMetrics,
    RequestProblem,
    batch_response,
    envelope_response,
)
from curvote.intake.group import GroupCommit, IntakeUnavailable, QueueFull
from curvote.pipeline.release.publication import task_digests

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class TaskDocument:
    """A published task, whose bytes and tag never change."""

    data: bytes
    tag: str


class PublishedTasks:
    """The folder of a pipeline's published tasks, read again as it changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._documents_by_path: dict[Path, tuple[int, dict[str, TaskDocument]]] = {}

    def find(self, digest: str) -> TaskDocument | None:
        """Return the document with the task of a digest, if it is published."""
        if not _DIGEST.fullmatch(digest):
            return None
        for path in sorted(self._folder.glob("*.task.json")):
            document = self._read_file(path).get(digest)
            if document is not None:
                return document
        return None

    def _read_file(self, path: Path) -> dict[str, TaskDocument]:
        try:
            changed = path.stat().st_mtime_ns
            if (
                path not in self._documents_by_path
                or self._documents_by_path[path][0] != changed
            ):
                self._documents_by_path[path] = (
                    changed,
                    _documents_by_digest(path.read_bytes()),
                )
        except (OSError, UserError):
            return {}  # being written, or none of ours
        return self._documents_by_path[path][1]


def _documents_by_digest(data: bytes) -> dict[str, TaskDocument]:
    """Return a document under the digests of its task and of its parts."""
    document = TaskDocument(data, f'"{hashlib.sha256(data).hexdigest()}"')
    return dict.fromkeys(task_digests(data), document)


ENVELOPE_TYPES: Final = (JSON_TYPE, "application/jose+json")
BATCH_TYPES: Final = (
    "application/jsonl",
    "application/x-ndjson",
    "application/x-jsonlines",
)
# An envelope, a batch, and all bodies that are being read.
MAX_ENVELOPE_BYTES: Final = 2**18
MAX_BATCH: Final = 1000
MAX_BODY_BYTES: Final = 2**26
MAX_PENDING_BYTES: Final = 2**27
# A head, and then a body, must have come after so many seconds.
READ_SECONDS: Final = 30.0
# New uploads are sent away for so long before connections are closed (seconds).
DRAIN_SECONDS: Final = 1.0
# How many wait is said so often (seconds).
COUNT_SECONDS: Final = 1.0
_IMMUTABLE: Final = "public, max-age=31536000, immutable"


class HeadInTime(H11Protocol):
    """A connection that is closed if the head of a request is late.

    The library waits for ever for the rest of one that was begun; so a few thousand
    half-sent ones would keep everybody else out.
    """

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the timer for the first head."""
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Keep the timer until the head is complete; start it for a further one."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()
        elif self._waiting is None:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._waiting = self.loop.call_later(READ_SECONDS, self.transport.close)

    def _stop_timer(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


@dataclass
class IntakeService:
    """One process of the service, and its state."""

    group: GroupCommit
    metrics: IntakeMetrics
    published: PublishedTasks
    draining: bool = False
    reading: int = 0
    drained: threading.Event = field(default_factory=threading.Event)

    @property
    def ready(self) -> bool:
        """Whether envelopes are accepted."""
        return not (self.draining or self.group.problem)

    def app(self) -> Starlette:
        """Return the application with all routes."""
        routes = [
            Route("/v1/tasks/{digest}", self.task, methods=["GET"]),
            Route("/v1/envelopes", self.envelopes, methods=["POST"]),
            Route("/healthz", self.healthz),
            Route("/readyz", self.readyz),
            Route("/metrics", self.page),
        ]
        handlers: Any = {
            HTTPException: _http_error_response,
            Exception: _internal_error_response,
        }
        return Starlette(
            routes=routes, lifespan=self._lifespan, exception_handlers=handlers
        )

    async def envelopes(self, request: Request) -> Response:
        """Accept envelopes, and answer after the commit."""
        try:
            response = await self._take_envelopes(request)
        except RequestProblem as problem:
            response = problem.response
        except ClientDisconnect:
            response = TOO_SLOW.response  # nobody reads it
        self.metrics.count_upload(response.status_code)
        return response

    async def _take_envelopes(self, request: Request) -> Response:
        if self.draining:
            return DRAINING_PROBLEM.response
        kind = _media_type(request)
        body = await self._read_body(
            request, MAX_ENVELOPE_BYTES if kind == JSON_TYPE else MAX_BODY_BYTES
        )
        envelopes = [_with_line_feed(body)] if kind == JSON_TYPE else _split_batch(body)
        try:
            outcomes = await asyncio.wrap_future(self.group.put(envelopes))
        except QueueFull:
            return QUEUE_FULL.response
        except IntakeUnavailable:
            return UNAVAILABLE.response
        except InternalError:
            return INTERNAL_ERROR.response
        return (
            envelope_response(outcomes[0])
            if kind == JSON_TYPE
            else batch_response(outcomes)
        )

    async def _read_body(self, request: Request, max_bytes: int) -> bytes:
        """Return the body, if it is not too large and arrives in time.

        Of one that is too large the rest is read, up to a limit, and dropped: who is
        hung up on while sending does not hear why.
        """
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > MAX_BODY_BYTES:
            raise _too_large_problem(max_bytes)
        body, came = bytearray(), 0
        try:
            async with asyncio.timeout(READ_SECONDS):
                async for part in request.stream():
                    came += len(part)
                    if came > MAX_BODY_BYTES:
                        break
                    if came <= max_bytes:
                        self.reading += len(part)
                        body += part
                    if self.reading > MAX_PENDING_BYTES:
                        raise RequestProblem(
                            429, QUEUE_FULL.name, QUEUE_FULL.title, wait=QUEUE_FULL.wait
                        )
        except TimeoutError:
            raise RequestProblem(408, TOO_SLOW.name, TOO_SLOW.title) from None
        finally:
            self.reading -= len(body)
        if came > max_bytes:
            raise _too_large_problem(max_bytes)
        return bytes(body)

    async def task(self, request: Request) -> Response:
        """Return a published task by its digest; it never changes."""
        document = self.published.find(request.path_params["digest"])
        if document is None:
            detail = "no task of this digest is published here."
            return RequestProblem(404, "unknown-task", "unknown task", detail).response
        headers = {"ETag": document.tag, "Cache-Control": _IMMUTABLE}
        tags = request.headers.get("if-none-match", "")
        if document.tag in tags or tags.strip() == "*":
            return Response(status_code=304, headers=headers)
        return Response(
            document.data, headers=headers, media_type="application/jose+json"
        )

    async def healthz(self, request: Request) -> Response:
        """Return an answer for as long as the process lives."""
        return PlainTextResponse("alive\n")

    async def readyz(self, request: Request) -> Response:
        """Return whether envelopes are accepted, as status 200 or 503."""
        if self.ready:
            return PlainTextResponse("ready\n")
        return (DRAINING_PROBLEM if self.draining else UNAVAILABLE).response

    async def page(self, request: Request) -> Response:
        """Return the metrics."""
        self._update_metrics()
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return Response(self.metrics.render_page(), media_type=kind)

    def _update_metrics(self) -> None:
        self.metrics.set_state(waiting=self.group.waiting, ready=self.ready)

    async def _update_metrics_forever(self) -> None:
        """Update the metrics regularly, as another process may be asked for them."""
        while True:
            self._update_metrics()
            await asyncio.sleep(COUNT_SECONDS)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self.group.start()
        restore = self._drain_on_signals()
        counting = asyncio.create_task(self._update_metrics_forever())
        try:
            yield
        finally:
            counting.cancel()
            restore()
            await asyncio.to_thread(self.group.stop, 60.0)

    def _drain_on_signals(self) -> Callable[[], None]:
        """Refuse new uploads for a while before the server's handler ends it."""
        if threading.current_thread() is not threading.main_thread():
            return lambda: None
        loop = asyncio.get_running_loop()
        before: dict[int, Any] = {}

        def start_draining(number: int, frame: FrameType | None) -> None:
            again, self.draining = self.draining, True
            end = before[number]
            if callable(end):
                wait = 0.0 if again else DRAIN_SECONDS
                loop.call_soon_threadsafe(loop.call_later, wait, end, number, frame)

        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, start_draining)

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        return restore


def _media_type(request: Request) -> str:
    """Return whether one envelope or a batch comes; else raise a problem."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in ENVELOPE_TYPES + BATCH_TYPES:
        detail = (
            f"send {ENVELOPE_TYPES[0]} for one envelope, {BATCH_TYPES[0]} for one a"
            " line."
        )
        raise RequestProblem(415, "media-type", "unsupported media type", detail)
    if request.headers.get("content-encoding", "identity") != "identity":
        detail = "an envelope is random text: send it as it is."
        raise RequestProblem(415, "media-type", "unsupported content encoding", detail)
    return JSON_TYPE if media in ENVELOPE_TYPES else BATCH_TYPES[0]


def _too_large_problem(max_bytes: int) -> RequestProblem:
    detail = f"over {max_bytes} bytes; an envelope has at most {MAX_ENVELOPE_BYTES}."
    return RequestProblem(413, "too-large", "too large", detail)


def _with_line_feed(data: bytes) -> bytes:
    return data if data.endswith(b"\n") else data + b"\n"


def _split_batch(body: bytes) -> list[bytes]:
    """Return the envelopes of a batch, each with its line feed."""
    lines = [line + b"\n" for line in body.split(b"\n") if line.strip()]
    if not lines:
        raise RequestProblem(400, "empty", "no envelope", "the batch holds no line.")
    if len(lines) > MAX_BATCH:
        detail = f"{len(lines)} envelopes; a batch has at most {MAX_BATCH}."
        raise RequestProblem(413, "too-many", "too many envelopes", detail)
    if max(map(len, lines)) > MAX_ENVELOPE_BYTES:
        raise _too_large_problem(MAX_ENVELOPE_BYTES)
    return lines


async def _http_error_response(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    title = str(getattr(error, "detail", "not found"))
    response = RequestProblem(
        status, title.lower().replace(" ", "-"), title.lower()
    ).response
    response.headers.update(getattr(error, "headers", None) or {})  # Allow, of 405
    return response


async def _internal_error_response(request: Request, error: Exception) -> Response:
    return INTERNAL_ERROR.response
