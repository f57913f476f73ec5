"""The intake's service: what goes out, what comes in, and what is said of it."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from curvote.flows.intake.service import MAX_BATCH, MAX_BODY_BYTES, MAX_ENVELOPE_BYTES
from curvote.intake.box import Intake
from curvote.wire.envelope import (
    Invitation,
    issue_invitations,
    new_private_key,
    seal_message,
)
from tests.envelope_service import (
    JSON,
    LINES,
    Service,
    invite,
    project,
    serving,
)
from tests.processes import until
from tests.rounds import REPORTS, edited, payload, signed

N = 40


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of one project, for all tests."""
    return tmp_path_factory.mktemp("service") / "p"


@pytest.fixture(scope="module")
def free(root: Path) -> Iterator[Invitation]:
    """Yield invitations of its round, each once."""
    return iter(invite(project(root).intake, N))


@pytest.fixture(scope="module")
def service(root: Path, free: Iterator[Invitation]) -> Iterator[Service]:
    """Serve it."""
    with serving(project(root)) as running:
        yield running


def sent(invitation: Invitation, seed: int = 0) -> bytes:
    """Return what an honest client sends."""
    return seal_message(invitation, payload(REPORTS, invitation, seed))


def test_an_envelope_is_accepted_once_and_said_so_for_ever(
    service: Service, free: Iterator[Invitation], root: Path
) -> None:
    """201 after the commit; who lost the answer is told 200, and nothing is counted."""
    assert (root / "data" / "state").stat().st_mode & 0o77 == 0  # whoever made it
    one = next(free)
    before = accepted(root)
    assert service.send(sent(one)).status == 201
    assert accepted(root) == before + 1
    for again in (sent(one), sent(one), sent(one, 9), sent(one).rstrip(b"\n")):
        told = service.send(again)
        assert (told.status, told.json["title"]) == (200, "accepted before")
    assert accepted(root) == before + 1


def accepted(root: Path) -> int:
    """Return how many messages the round has."""
    with Intake(project(root).intake) as intake:
        return intake.round("one-1").accepted


def test_any_page_may_post_and_read_the_answer(
    service: Service, free: Iterator[Invitation], root: Path
) -> None:
    """Without a cookie, whatever the answer; and it may read nothing else here."""
    before, cross = accepted(root), JSON | {"Origin": "null"}
    asked = {
        "Access-Control-Request-Method": "POST",
        "Origin": "https://foreign.example",
    }
    leave = service.ask("OPTIONS", "/v1/envelopes", headers=asked)
    assert (leave.status, leave.body) == (204, b"")
    allowed = leave.headers["access-control-allow-headers"]
    assert allowed == "Content-Type, Curvote-Salt"
    answers = [
        leave,
        *(service.send(body, cross) for body in (sent(next(free)), b"{}")),
    ]
    assert [answer.status for answer in answers] == [204, 201, 400]
    for answer in answers:
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in answer.headers
    assert accepted(root) == before + 1
    for path in ("/metrics", "/readyz", "/v1/tasks/" + "0" * 64):
        shut = service.ask("GET", path, headers=cross).headers
        assert "access-control-allow-origin" not in shut


def test_a_batch_has_one_outcome_a_line(
    service: Service, free: Iterator[Invitation]
) -> None:
    """In the order of the envelopes, each by itself."""
    one, two = next(free), next(free)
    lines = [sent(one), b"nothing\n", sent(two), sent(one)]
    told = service.send(b"".join(lines), LINES)
    assert (told.status, told.headers["content-type"]) == (200, "application/jsonl")
    assert [line["status"] for line in told.lines] == [201, 400, 201, 200]
    assert told.lines[1]["type"] == "urn:curvote:intake:unreadable"


def test_each_refusal_is_a_problem_of_its_own_type(
    service: Service, free: Iterator[Invitation]
) -> None:
    """RFC 9457: type, title, status and detail; none is an acceptance."""
    one = next(free)
    (stranger,) = issue_invitations(REPORTS, 1)
    good = sent(one)
    cases = {
        "unreadable": (400, b"nothing"),
        "unknown-invitation": (403, sent(stranger)),
        "unknown-task": (404, edited(good, lambda e: e.update(task="0" * 64))),
        "wrong-seal": (403, edited(good, lambda e: e["message"].update(label=-1))),
        "impossible-message": (422, seal_message(one, {"z": [0.3] * 4, "label": 1})),
    }
    for name, (status, data) in cases.items():
        told = service.send(data)
        assert told.headers["content-type"] == "application/problem+json"
        assert told.json["type"] == f"urn:curvote:intake:{name}"
        assert (told.status, told.json["status"]) == (status, status)
        assert told.json["title"]
        assert told.json["detail"]
    assert service.send(good).status == 201


def test_what_is_no_upload_is_refused_before_anything_is_taken(
    service: Service, free: Iterator[Invitation], root: Path
) -> None:
    """Over a size, over a count, of another type, or empty: nothing of it counts."""
    before, one = accepted(root), next(free)
    good = sent(one)
    cases = [
        (415, good, {"Content-Type": "text/plain"}),
        (415, good, JSON | {"Content-Encoding": "gzip"}),
        (413, good + b" " * MAX_ENVELOPE_BYTES, JSON),
        (413, good * (MAX_BATCH + 1), LINES),
        (413, good + b"x" * MAX_ENVELOPE_BYTES + b"\n", LINES),
        (400, b"\n\n", LINES),
    ]
    for status, body, headers in cases:
        told = service.send(body, headers)
        assert told.status == status, told
        assert told.json["type"].startswith("urn:curvote:intake:")
    huge = LINES | {"Content-Length": str(MAX_BODY_BYTES + 1)}
    assert service.send(b"", huge).status == 413
    other = service.ask("GET", "/v1/envelopes")
    allowed = {*other.headers["allow"].split(", ")}
    assert (other.status, allowed) == (405, {"OPTIONS", "POST"})
    assert service.ask("GET", "/v1/nothing").status == 404
    assert accepted(root) == before
    assert service.send(good * MAX_BATCH, LINES).lines[0]["status"] == 201


def test_a_published_task_is_served_for_ever(service: Service, root: Path) -> None:
    """By its digest, with a tag; whoever has it is told so."""
    folder = project(root).published("far")
    folder.mkdir(parents=True)
    document = signed(REPORTS)
    (folder / "report-1.task.json").write_bytes(document)
    (folder / "vote-1.task.json").write_bytes(b"being written")
    place = f"/v1/tasks/{REPORTS.digest()}"
    told = service.ask("GET", place)
    assert (told.status, told.body) == (200, document)
    assert "immutable" in told.headers["cache-control"]
    tag = told.headers["etag"]
    again = service.ask("GET", place, headers={"If-None-Match": tag})
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    for odd in ("0" * 64, "..%2f..%2fserver.key", "x"):
        assert service.ask("GET", f"/v1/tasks/{odd}").status == 404


def test_slow_cut_and_repeated_uploads_take_nothing_from_others(
    service: Service, free: Iterator[Invitation], root: Path
) -> None:
    """Half an envelope is none; the same connection may repeat the whole one."""
    before, one = accepted(root), next(free)
    data = sent(one)
    head = (
        "POST /v1/envelopes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    ).encode()
    slow = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(20)]
    for each in slow:
        each.sendall(head + data[:50])
    assert service.send(sent(next(free))).status == 201  # others go on
    for each in slow[1:]:
        each.close()  # cut
    time.sleep(0.1)
    assert accepted(root) == before + 1
    for piece in data[50:200], data[200:]:
        time.sleep(0.05)
        slow[0].sendall(piece)
    assert b"201 Created" in slow[0].recv(65536)
    slow[0].sendall((head + data) * 2)  # repeated, two at once
    seen = b""
    while seen.count(b"200 OK") < 2:
        seen += slow[0].recv(65536)
    slow[0].close()
    assert accepted(root) == before + 2


def test_a_closed_round_takes_nothing_more(
    service: Service, root: Path, tmp_path: Path
) -> None:
    """410 for who comes late; who was in time is still told so. Sealed ones, too."""
    with Intake(project(root).intake) as intake:
        invited = issue_invitations(REPORTS, 3)
        given = {
            "pipeline": "far",
            "needed": 1,
            "task": REPORTS,
            "seal": new_private_key(),
        }
        intake.open_round("two-1", invitations=invited, **given)
        to = intake.round("two-1").seal_to
    early, late = (seal_message(i, payload(REPORTS, i), to) for i in invited[:2])
    bare = seal_message(invited[2], payload(REPORTS, invited[2]))
    assert [service.send(d).status for d in (early, early, bare)] == [201, 200, 400]
    with Intake(project(root).intake) as intake:
        intake.close("two-1")
    assert service.send(bare).json["type"].endswith(":round-closed")
    assert service.send(bare).status == 410
    # Nobody can open it any more, so nobody can say which round it was for.
    assert service.send(late).json["type"].endswith(":unreadable")


def test_counts_are_told_and_nothing_of_whom(service: Service) -> None:
    """Outcomes, transactions, what waits: no time, no address, no name."""

    def idle() -> bool:
        """Whether nothing waits: what other tests sent may still be counted."""
        told = service.ask("GET", "/metrics").body.decode()
        return "curvote_intake_waiting 0.0" in told

    assert until(idle, 30)
    page = service.ask("GET", "/metrics").body.decode()
    for word in (
        'curvote_intake_envelopes_total{outcome="accepted"}',
        'curvote_intake_envelopes_total{outcome="accepted before"}',
        "curvote_intake_transactions_total",
        "curvote_intake_ready 1.0",
    ):
        assert word in page
    for word in ("_created", "127.0.0.1", "far", REPORTS.digest()):
        assert word not in page
    assert service.ask("GET", "/healthz").body == b"alive\n"
    assert json.loads(service.send(b"x").body)["status"] == 400
