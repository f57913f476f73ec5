"""Service of the intake: published tasks go out, envelopes come in, over HTTP."""

import asyncio
import hashlib
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

import h11
import prometheus_client as prometheus
from prometheus_client import multiprocess
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from curvote.base.errors import InternalError, UserError
from curvote.flows.environment import is_alive
from curvote.intake.admission import USED_INVITATION, RefusedEnvelope
from curvote.intake.box import Intake
from curvote.intake.group import GroupCommit, IntakeUnavailable, Outcome, QueueFull
from curvote.pipeline.release.publication import task_digests
from curvote.wire.merkle import MerkleTree, proof_document
from curvote.wire.receipt import SALT_HEADER
from curvote.wire.strict_json import canonical_json

# Names the folder; the library reads it when it is imported.
COUNTS_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
ACCEPTED: Final = "accepted"
ACCEPTED_BEFORE: Final = "accepted before"


class IntakeMetrics:
    """The counters of one process of the service."""

    def __init__(self) -> None:
        # A time of arrival, of the first of a kind.
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = prometheus.CollectorRegistry()
        options: dict[str, Any] = {"registry": self._registry}
        options["namespace"] = "curvote_intake"
        summed = options | {"multiprocess_mode": "livesum"}
        counter, gauge = prometheus.Counter, prometheus.Gauge
        about = "Envelopes by outcome"
        self._envelopes = counter("envelopes", about, ["outcome"], **options)
        self._transactions = counter("transactions", "Transactions", **options)
        self._requests = counter("uploads", "Uploads by status", ["status"], **options)
        self._waiting = gauge("waiting", "Envelopes that wait", **summed)
        self._ready = gauge("ready", "Processes that accept", **summed)
        for name in (ACCEPTED, ACCEPTED_BEFORE, *REASON_STATUS):
            self._envelopes.labels(name)

    def count_transaction(self, outcomes: Sequence[RefusedEnvelope | None]) -> None:
        """Count one transaction."""
        self._transactions.inc()
        names: Counter[str] = Counter()
        for refused in outcomes:
            reason = ACCEPTED if refused is None else refused.reason
            names[ACCEPTED_BEFORE if reason == USED_INVITATION else reason] += 1
        for name, count in names.items():
            self._envelopes.labels(name).inc(count)

    def count_upload(self, status: int) -> None:
        """Count one upload."""
        self._requests.labels(str(status)).inc()

    def set_state(self, *, waiting: int, ready: bool) -> None:
        """Set the current number of waiting envelopes, and readiness."""
        self._waiting.set(waiting)
        self._ready.set(ready)

    def render_page(self) -> bytes:
        """Return the counts of all processes in Prometheus' text form."""
        if COUNTS_VARIABLE not in os.environ:
            return prometheus.generate_latest(self._registry)
        for path in Path(os.environ[COUNTS_VARIABLE]).glob("gauge_live*.db"):
            pid = path.stem.rpartition("_")[2]
            if not is_alive(f"pid:{pid}"):
                multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]
        every = prometheus.CollectorRegistry()
        multiprocess.MultiProcessCollector(every)  # type: ignore[no-untyped-call]
        return prometheus.generate_latest(every)


_TYPE: Final = "urn:curvote:intake:"
JSON_TYPE: Final = "application/json"
PROBLEM_TYPE: Final = "application/problem+json"
# Of each reason of the intake: the status of its answer. A used invitation is none.
REASON_STATUS: Final = {
    "unreadable": 400,
    "unknown invitation": 403,
    "another round": 409,
    "unknown task": 404,
    "wrong seal": 403,
    "not sealed": 400,
    "another round's seal": 400,
    "record answered": 409,
    "round closed": 410,
    "impossible message": 422,
    "another record": 403,
    "unknown record": 422,
}


@dataclass(eq=False)
class RequestProblem(Exception):  # noqa: N818 - an answer
    """A request that is not done: ``name`` is its type, ``title`` describes it.

    ``wait`` is after how many seconds it may be sent again, None: as it is, never.
    """

    status: int
    name: str
    title: str
    detail: str = ""
    wait: int | None = None

    @property
    def details(self) -> dict[str, Any]:
        """Problem details as plain JSON values."""
        named = {"type": f"{_TYPE}{self.name}", "title": self.title}
        more = {"detail": self.detail} if self.detail else {}
        return {**named, "status": self.status, **more}

    @property
    def response(self) -> Response:
        """The response; connections that send too much or too early are closed."""
        headers = {"Cache-Control": "no-store"}
        if self.wait is not None:
            headers["Retry-After"] = str(self.wait)
        if self.status in {408, 413, 429, 503}:
            headers["Connection"] = "close"
        body = canonical_json(self.details)
        return Response(body, self.status, headers, PROBLEM_TYPE)


DRAINING_PROBLEM: Final = RequestProblem(
    503, "draining", "the service is about to end", wait=5
)
QUEUE_FULL: Final = RequestProblem(
    429, "queue-full", "too many envelopes wait already", wait=2
)
UNAVAILABLE: Final = RequestProblem(
    503, "unavailable", "the intake cannot be written now: send all again", wait=5
)
INTERNAL_ERROR: Final = RequestProblem(
    500, "internal-error", "the service broke: nothing is certain"
)
TOO_SLOW: Final = RequestProblem(408, "too-slow", "the request took too long to come")
_ACCEPTED: Final = {"status": 201, "title": "accepted"}
_BEFORE: Final = {"status": 200, "title": "accepted before"}


def outcome_document(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome of an envelope as plain JSON values, its receipt included.

    One that came under a used invitation, rightly sealed, was accepted before: the
    same, or another one of this client, which counts for it and has the receipt.
    """
    if not isinstance(outcome, RefusedEnvelope):
        return _ACCEPTED | ({"receipt": outcome} if outcome else {})
    reason = outcome.reason
    if reason == USED_INVITATION:
        return _BEFORE | ({"receipt": outcome.receipt} if outcome.receipt else {})
    name = reason.replace("'", "").replace(" ", "-")
    return RequestProblem(REASON_STATUS[reason], name, reason, str(outcome)).details


_NOT_KEPT: Final = {"Cache-Control": "no-store"}


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
            with suppress(OSError, UserError):  # being written, or none of ours
                changed = path.stat().st_mtime_ns
                if self._documents_by_path.get(path, (None,))[0] != changed:
                    data = path.read_bytes()
                    tag = f'"{hashlib.sha256(data).hexdigest()}"'
                    # Under the digests of its task and of its parts.
                    digests = task_digests(data)
                    documents = dict.fromkeys(digests, TaskDocument(data, tag))
                    self._documents_by_path[path] = changed, documents
                if document := self._documents_by_path[path][1].get(digest):
                    return document
        return None


class ReceiptProofs:
    """The paths of leaves in the trees of rounds.

    ``opening`` opens the intake, once for each path. Some trees are kept: a pipeline's
    rounds are asked about by turns, and a tree takes all leaves of its round.
    """

    most_trees: Final = 4

    def __init__(self, opening: Callable[[], Intake]) -> None:
        self._opening = opening
        self._lock = threading.Lock()
        self._trees: dict[tuple[str, int], MerkleTree] = {}

    def find(self, leaf: str) -> dict[str, Any] | None:
        """Return the proof of a leaf as plain JSON values; None: it is not counted."""
        if not _DIGEST.fullmatch(leaf):
            return None
        octets = bytes.fromhex(leaf)
        with self._lock, self._opening() as intake:
            round_ = intake.round_of_leaf(octets)
            if round_ is None:
                return None
            name = round_.id, round_.folded
            if name not in self._trees:
                self._trees[name] = MerkleTree(intake.leaves(round_.id))
                if len(self._trees) > self.most_trees:
                    del self._trees[next(iter(self._trees))]
            return proof_document(self._trees[name], round_.digest, octets)


# Any page may post an envelope and read the answer, as any program may. No answer
# depends on who asks, and no cookie goes along: a page learns what a program would.
_ANY_PAGE: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": f"Content-Type, {SALT_HEADER}",
    "Access-Control-Expose-Headers": "Retry-After",
}
ENVELOPE_TYPES: Final = (JSON_TYPE, "application/jose+json")
BATCH_TYPES: Final = tuple(
    f"application/{name}" for name in ("jsonl", "x-ndjson", "x-jsonlines")
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
    proofs: ReceiptProofs
    draining: bool = False
    reading: int = 0

    @property
    def ready(self) -> bool:
        """Whether envelopes are accepted."""
        return not (self.draining or self.group.problem)

    def app(self) -> Starlette:
        """Return the application with all routes."""
        routes = [
            Route("/v1/tasks/{digest}", self.task, methods=["GET"]),
            Route("/v1/envelopes", self.envelopes, methods=["POST", "OPTIONS"]),
            Route("/v1/receipts/{leaf}", self.receipt, methods=["GET"]),
            Route("/healthz", self.healthz),
            Route("/readyz", self.readyz),
            Route("/metrics", self.page),
        ]
        handlers: Any = {HTTPException: _http_error_response}
        handlers[Exception] = _internal_error_response
        return Starlette(
            routes=routes, lifespan=self._lifespan, exception_handlers=handlers
        )

    async def envelopes(self, request: Request) -> Response:
        """Accept envelopes, and answer after the commit; say that browsers may ask."""
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_ANY_PAGE)
        try:
            response = await self._take_envelopes(request)
        except RequestProblem as problem:
            response = problem.response
        except ClientDisconnect:
            response = TOO_SLOW.response  # nobody reads it
        self.metrics.count_upload(response.status_code)
        response.headers.update(_ANY_PAGE)
        return response

    async def _take_envelopes(self, request: Request) -> Response:
        if self.draining:
            return DRAINING_PROBLEM.response
        kind, _, _ = request.headers.get("content-type", "").partition(";")
        media = kind.strip().lower()
        single = media in ENVELOPE_TYPES
        if not single and media not in BATCH_TYPES:
            detail = (
                f"send {JSON_TYPE} for one envelope, {BATCH_TYPES[0]} for one a line."
            )
            raise RequestProblem(415, "media-type", "unsupported media type", detail)
        if request.headers.get("content-encoding", "identity") != "identity":
            title = "unsupported content encoding"
            detail = "an envelope is random text: send it as it is."
            raise RequestProblem(415, "media-type", title, detail)
        salt = _upload_salt(request)
        most = MAX_ENVELOPE_BYTES if single else MAX_BODY_BYTES
        body = await self._read_body(request, most)
        if single:
            envelopes = [body if body.endswith(b"\n") else body + b"\n"]
        else:
            envelopes = [line + b"\n" for line in body.split(b"\n") if line.strip()]
            if not envelopes:
                detail = "the batch holds no line."
                raise RequestProblem(400, "empty", "no envelope", detail)
            if len(envelopes) > MAX_BATCH:
                detail = f"{len(envelopes)} envelopes; a batch has at most {MAX_BATCH}."
                raise RequestProblem(413, "too-many", "too many envelopes", detail)
            if max(map(len, envelopes)) > MAX_ENVELOPE_BYTES:
                raise _too_large_problem(MAX_ENVELOPE_BYTES)
        try:
            outcomes = await asyncio.wrap_future(self.group.put(envelopes, salt))
        except QueueFull:
            return QUEUE_FULL.response
        except IntakeUnavailable:
            return UNAVAILABLE.response
        except InternalError:
            return INTERNAL_ERROR.response
        documents = [outcome_document(outcome) for outcome in outcomes]
        texts = [canonical_json(document) for document in documents]
        if single:
            status = documents[0]["status"]
            media = JSON_TYPE if status in (200, 201) else PROBLEM_TYPE
            return Response(texts[0], status, _NOT_KEPT, media)
        lines = b"".join(text + b"\n" for text in texts)  # an outcome a line, in order
        return Response(lines, 200, _NOT_KEPT, "application/jsonl")

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
                        raise replace(QUEUE_FULL)
        except TimeoutError:
            raise replace(TOO_SLOW) from None
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
        return Response(document.data, 200, headers, "application/jose+json")

    async def receipt(self, request: Request) -> Response:
        """Return the proof that the envelope of a leaf was counted."""
        leaf = request.path_params["leaf"]
        try:
            document = await asyncio.to_thread(self.proofs.find, leaf)
        except UserError:
            return UNAVAILABLE.response
        if document is None:
            detail = "no envelope of this leaf is counted, or its round is open."
            return RequestProblem(404, "unknown-leaf", "unknown leaf", detail).response
        return Response(canonical_json(document), 200, _NOT_KEPT, JSON_TYPE)

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


def _upload_salt(request: Request) -> bytes | None:
    """Return the salt of an upload, None: it has none; `RequestProblem`: no salt."""
    text = request.headers.get(SALT_HEADER)
    if text is not None and not _DIGEST.fullmatch(text):
        detail = f"{SALT_HEADER} takes 64 hex digits."
        raise RequestProblem(400, "salt", "no salt", detail)
    return bytes.fromhex(text) if text else None


def _too_large_problem(max_bytes: int) -> RequestProblem:
    detail = f"over {max_bytes} bytes; an envelope has at most {MAX_ENVELOPE_BYTES}."
    return RequestProblem(413, "too-large", "too large", detail)


async def _http_error_response(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    title = str(getattr(error, "detail", "not found")).lower()
    response = RequestProblem(status, title.replace(" ", "-"), title).response
    response.headers.update(getattr(error, "headers", None) or {})  # Allow, of 405
    return response


async def _internal_error_response(request: Request, error: Exception) -> Response:
    return INTERNAL_ERROR.response
