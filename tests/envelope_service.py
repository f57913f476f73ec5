"""A service of the intake on loopback, and whoever sends to it."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from curvote.base.entropy import SeededEntropy
from curvote.flows.intake import processes, service  # noqa: F401 - for forked services
from curvote.intake.box import Intake
from curvote.messages.message import client_data, message_of, payload_at
from curvote.pipeline.config.project import Project
from curvote.wire.envelope import Invitation, issue_invitations, seal_message
from curvote.wire.receipt import ReceiptKey
from tests import plain
from tests.exchange import FAR
from tests.processes import start_command
from tests.rounds import REPORTS

JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/jsonl"}
NAME = "far"


@dataclass(frozen=True)
class Answer:
    """What the service answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The outcomes, one a line."""
        return [json.loads(line) for line in self.body.splitlines()]


class Service:
    """A running service: its address, its process, and what it said."""

    def __init__(self, process: subprocess.Popen[str], log: Path, port: int) -> None:
        self.process, self.log, self.port = process, log, port

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = JSON,
    ) -> Answer:
        """Return the answer to one request over a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, dict(headers))
            told = connection.getresponse()
            return Answer(told.status, dict(told.headers), told.read())
        finally:
            connection.close()

    def send(self, body: bytes, headers: Mapping[str, str] = JSON) -> Answer:
        """Post envelopes."""
        return self.ask("POST", "/v1/envelopes", body, headers)

    def tried(self, body: bytes) -> int:
        """Return the status of the answer to envelopes, 0 if there is none."""
        try:
            return self.send(body).status
        except (OSError, http.client.HTTPException):
            return 0

    def kill(self, after: float) -> None:
        """Kill it after some seconds."""
        time.sleep(after)
        self.process.kill()

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it; return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)


def project(root: Path) -> Project:
    """Write a project with one pipeline whose clients are elsewhere."""
    return plain.write(root, **{NAME: FAR})


def invite(
    path: Path,
    count: int,
    seal_to: str | None = None,
    receipts: ReceiptKey | None = None,
) -> list[Invitation]:
    """Open a round of reports, and return its invitations."""
    invited = issue_invitations(REPORTS, count)
    with Intake(path) as intake:
        given: dict[str, Any] = {"pipeline": NAME, "needed": 1, "seal": seal_to}
        given["receipts"] = receipts
        intake.open_round("one-1", task=REPORTS, invitations=invited, **given)
    return invited


def answered(invited: Sequence[Invitation]) -> list[bytes]:
    """Return the envelopes of honest clients, all drawn together."""
    n = len(invited)
    curves = np.random.default_rng(n).normal(size=(n, 4))
    known = client_data(REPORTS, curves, np.ones(n))
    drawn = message_of(REPORTS).draw(REPORTS, known, SeededEntropy(n))
    return [seal_message(each, payload_at(drawn, k)) for k, each in enumerate(invited)]


@contextmanager
def serving(place: Project, *words: str, **environment: str) -> Iterator[Service]:
    """Run the command on a free port; it is killed at the end if it still lives.

    With options it is a process by itself: several workers import what is its own.
    """
    log = place.root / f"service-{os.urandom(4).hex()}.log"
    command = ["intake", "serve", NAME, "--port", "0", *words]
    command += ["--project", str(place.root)]
    with log.open("w") as stream:
        how: dict[str, Any] = {"stderr": stream, "env": os.environ | environment}
        if words:
            module = [sys.executable, "-m", "curvote.cli"]
            process = subprocess.Popen([*module, *command], text=True, **how)
        else:
            process = start_command(*command, **how)
    try:
        yield Service(process, log, _port(process, log))
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _port(process: subprocess.Popen[str], log: Path) -> int:
    while process.poll() is None:
        time.sleep(0.05)  # it needs the processor more than we do
        found = re.search(r"on http://127\.0\.0\.1:(\d+)", log.read_text())
        if found and _answers(int(found[1])):
            return int(found[1])
    raise AssertionError(log.read_text())


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
