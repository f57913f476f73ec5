"""What the service answers where it cannot take an upload in now."""

import asyncio
import os
import socket
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from curvote.base.errors import InternalError
from curvote.flows.intake import service as intake_http
from curvote.flows.intake.service import (
    COUNTS_VARIABLE,
    IntakeMetrics,
    IntakeService,
    PublishedTasks,
)
from curvote.intake.group import IntakeUnavailable, QueueFull


class Group:
    """Stands for uploads that wait: whatever comes has one fate."""

    waiting, problem = 3, ""

    def __init__(self, fate: Exception | list[None]) -> None:
        self.fate = fate

    def start(self) -> None:
        """Begin."""

    def stop(self, seconds: float) -> None:
        """End."""

    def put(self, sent: Any, salt: Any = None) -> Future[Any]:
        """Return the outcome, or refuse."""
        if isinstance(self.fate, QueueFull):
            raise self.fate
        told: Future[Any] = Future()
        if isinstance(self.fate, Exception):
            told.set_exception(self.fate)
        else:
            told.set_result(self.fate)
        return told


def asked(
    service: IntakeService, *parts: bytes, wait: float = 0.0
) -> tuple[int, Any, bytes]:
    """Return status, headers and body of the answer to one upload, cut in parts."""
    more = [True] * (len(parts) - 1) + [wait > 0]
    coming, told = zip(parts, more, strict=True), []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(wait)
        part, follows = next(coming)
        return {"type": "http.request", "body": part, "more_body": follows}

    async def send(message: Any) -> None:
        told.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/envelopes",
        "headers": [(b"content-type", b"application/json")],
        "query_string": b"",
    }
    asyncio.run(service.app()(scope, receive, send))
    headers = {k.decode(): v.decode() for k, v in told[0]["headers"]}
    return told[0]["status"], headers, told[1]["body"]


@pytest.fixture
def service(tmp_path: Path) -> IntakeService:
    """Return a service that accepts whatever comes."""
    return IntakeService(Group([None]), IntakeMetrics(), PublishedTasks(tmp_path), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fate", "status", "wait"),
    [
        ([None], 201, None),
        (QueueFull(), 429, "2"),
        (IntakeUnavailable(), 503, "5"),
        (InternalError("ZeroDivisionError"), 500, None),
    ],
)
def test_each_fate_has_its_answer(
    service: IntakeService, fate: Any, status: int, wait: str | None
) -> None:
    """A full queue, a database that fails, a check that breaks: come back, or not."""
    service.group.fate = fate  # type: ignore[attr-defined]
    found, headers, body = asked(service, b"x")
    assert (found, headers.get("retry-after")) == (status, wait)
    assert b"ZeroDivision" not in body


def test_while_it_drains_or_fails_it_is_not_ready(service: IntakeService) -> None:
    """And takes nothing new while it drains."""
    assert service.ready
    service.group.problem = "the disk is full"  # type: ignore[misc]
    assert not service.ready
    service.group.problem = ""  # type: ignore[misc]
    service.draining = True
    assert asked(service, b"x")[0] == 503
    assert not service.ready


def test_what_comes_too_slowly_is_given_up(
    service: IntakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some seconds, with what was read of it."""
    monkeypatch.setattr(intake_http, "READ_SECONDS", 0.05)
    assert asked(service, b"x", b"y", b"z", wait=0.1)[0] == 408
    assert service.reading == 0


def test_all_that_is_being_read_has_a_limit(
    service: IntakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many send at once; and what is read is given back."""
    monkeypatch.setattr(intake_http, "MAX_PENDING_BYTES", 10)
    service.reading = 9
    status, headers, _ = asked(service, b"xyz")
    assert (status, headers["retry-after"], service.reading) == (429, "2", 9)


def test_how_it_stands_is_counted_whoever_is_asked(service: IntakeService) -> None:
    """Another process of the same service may be the one that is."""

    async def lives() -> bytes:
        async with service._lifespan(service.app()):
            await asyncio.sleep(0)
            return service.metrics.render_page()

    page = asyncio.run(lives())
    assert b"curvote_intake_waiting 3.0" in page
    assert b"curvote_intake_ready 1.0" in page


def test_a_process_that_has_gone_does_not_wait(tmp_path: Path) -> None:
    """Its uploads count for ever; it is neither ready, nor does anything wait in it."""
    code = (
        "import os\n"
        "from curvote.flows.intake.service import IntakeMetrics\n"
        "metrics = IntakeMetrics()\n"
        "metrics.set_state(waiting=1, ready=True)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    metrics.count_upload(201)\n"
        "    metrics.set_state(waiting=5, ready=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(metrics.render_page().decode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {COUNTS_VARIABLE: str(tmp_path)},
    )
    for figure in ("waiting 1.0", "ready 1.0", 'uploads_total{status="201"} 1.0'):
        assert f"curvote_intake_{figure}" in done.stdout


@pytest.mark.parametrize(
    ("begun", "asked"), [(b"", 0), (b"GET / HTTP/1.1\r\nHos", 0), (b"", 2)]
)
def test_half_a_head_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, begun: bytes, asked: int
) -> None:
    """Nor none at all, nor half of a third one: the connection ends. Others go on."""
    monkeypatch.setattr(intake_http, "READ_SECONDS", 0.3)
    whole = b"GET /x HTTP/1.1\r\nHost: here\r\n\r\n"

    async def answers(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.5)  # an answer may take longer than a head
        head = {"type": "http.response.start", "status": 204, "headers": []}
        await send(head)
        await send({"type": "http.response.body"})

    async def talk() -> list[bytes]:
        config = uvicorn.Config(
            answers, http=intake_http.HeadInTime, lifespan="off", log_config=None
        )
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as place:
            serving = asyncio.create_task(server.serve(sockets=[place]))
            reader, writer = await asyncio.open_connection(*place.getsockname())
            heard = []
            for _ in range(asked):
                writer.write(whole)
                heard.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(begun or whole[:5])
            async with asyncio.timeout(20):
                rest = await reader.read()
            writer.close()
            server.should_exit = True
            await serving
        return [*heard, rest]

    *heard, rest = asyncio.run(talk())
    assert [each[:12] for each in heard] == [b"HTTP/1.1 204"] * asked
    assert rest == b""
