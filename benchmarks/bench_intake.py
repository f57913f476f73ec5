"""The intake: envelopes a second from a file, over HTTP, and at two services at once.

Run with ``python -m benchmarks.bench_intake``; client and service share the machine's
cores. Every answer is written after the commit of its envelope, and every count is held
against what was sent. Fails where one is off, where over HTTP fewer than 1,000 a second
are accepted one by one, or fewer than 5,000 in batches to a round that keeps sums
(4,000 of 34 numbers), or where 100,000 from one file take over 60 seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.history import record
from curvote.base.entropy import SeededEntropy
from curvote.curves.basis import identity
from curvote.curves.encoding import Encoding
from curvote.intake.box import Intake
from curvote.intake.inbox import accept_inbox
from curvote.learning.sums import MessageSums
from curvote.messages.arms import directions_to_params, make_directions
from curvote.messages.message import (
    ClientData,
    message_of,
    parse_messages,
    payload_at,
)
from curvote.pipeline.config.project import Project
from curvote.wire.envelope import seal_message
from curvote.wire.key_tree import InvitationTree
from curvote.wire.task import Candidates, Task
from tests.envelope_service import (
    NAME,
    Service,
    answered,
    invite,
    project,
    serving,
)
from tests.postgres import missing, postgres
from tests.rounds import quiet

FILE, SINGLE, SHARED = 100_000, 5_000, 3_000
BATCHED, BATCH, CARRIERS = 40_000, 1000, 4
_SIX = Encoding(identity(6), "max_abs", feature_map="coefficients")


def _direct(arm: str) -> Task:
    terms = directions_to_params(make_directions(arm, 6, "max_abs", "auto"))
    named = "direct", "report", "privunit"
    return Task(_SIX, ("no", "yes"), 1.0, *named, params=terms)


TASKS = {
    "mean": _direct("mean"),
    "joint": _direct("joint"),
    "votes": replace(
        Task(_SIX, ("no", "yes"), 1.0, "mrma", "vote", "binary_rr"),
        candidates=Candidates(np.eye(3, 6), np.zeros(3)),
    ),
}
CONNECTIONS = 256
HEAD = (
    "POST /v1/envelopes HTTP/1.1\r\nHost: localhost\r\n"
    "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n"
)


async def post(port: int, mine: Sequence[bytes], seen: Counter[int]) -> None:
    """Send envelopes one after the other over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for data in mine:
        writer.write(HEAD.format(len(data)).encode() + data)
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
        await reader.readexactly(int(length))
        seen[int(head.split(b" ", 2)[1])] += 1
    writer.close()


async def post_all(ports: Sequence[int], sent: Sequence[bytes]) -> Counter[int]:
    """Send every envelope to every service; return how often each status came."""
    seen: Counter[int] = Counter()
    lanes = [sent[k::CONNECTIONS] for k in range(CONNECTIONS)]
    work = [post(port, lane, seen) for port in ports for lane in lanes]
    await asyncio.gather(*work)
    return seen


def over_http(
    place: Project, sent: Sequence[bytes], services: int, **environment: str
) -> tuple[float, float, Counter[int]]:
    """Return seconds, the services' own seconds, and how often each status came.

    All envelopes are sent to each of so many services.
    """
    with ExitStack() as stack:
        ran = [
            stack.enter_context(serving(place, **environment)) for _ in range(services)
        ]
        before, started = worked(ran), time.perf_counter()
        seen = asyncio.run(post_all([each.port for each in ran], sent))
        seconds, own = time.perf_counter() - started, worked(ran) - before
        for each in ran:
            each.end()
    return seconds, own, seen


def worked(services: Sequence[Service]) -> float:
    """Return how many seconds of a processor the services have had."""
    texts = [Path(f"/proc/{s.process.pid}/stat").read_text() for s in services]
    ticks = [text.rpartition(")")[2].split()[11:13] for text in texts]
    return sum(map(int, chain(*ticks))) / os.sysconf("SC_CLK_TCK")


def from_file(root: Path) -> tuple[float, float, int]:
    """Take envelopes from one file: how many at once, one by one, and all accepted."""
    (root / "inbox").mkdir()
    path = root / "intake.sqlite"
    invited = invite(path, FILE)
    sent = answered(invited)
    lone, rest = sent[:200], sent[200:]
    with Intake(path) as intake:
        started = time.perf_counter()
        for data in lone:
            intake.take_batch([data], parse_messages)
        single = len(lone) / (time.perf_counter() - started)
        (root / "inbox" / "all.jsonl").write_bytes(b"".join(rest))
        quiet(root / "inbox" / "all.jsonl")
        started = time.perf_counter()
        done = accept_inbox(intake, root / "inbox", root / "kept", parse_messages)
    seconds = (time.perf_counter() - started) * FILE / len(rest)
    return seconds, single, done.accepted + len(lone)


async def post_batches(port: int, mine: Sequence[bytes], seen: Counter[int]) -> None:
    """Send batches one after the other over one connection; count the outcomes."""
    head = HEAD.replace("application/json", "application/x-ndjson")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for body in mine:
        writer.write(head.format(len(body)).encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = answer.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
        for line in (await reader.readexactly(int(length))).splitlines():
            seen[json.loads(line)["status"]] += 1
    writer.close()


def in_batches(root: Path, kind: str) -> tuple[float, float, dict[int, int]]:
    """Return envelopes a second, the service's us for one, and counts of outcomes.

    They come from carriers, to a round whose invitations are a tree, kept as sums.
    """
    place, task = project(root), TASKS[kind]
    tree = InvitationTree.grow(task, BATCHED)
    with Intake(place.intake) as intake:
        keep = str(message_of(task).sum_form(task))
        about = {"pipeline": NAME, "needed": 1, "invitations": tree, "keep": keep}
        intake.open_round("one-1", task=task, **about)
    z = np.random.default_rng(1).normal(size=(BATCHED, 6))
    about = np.arange(BATCHED) % 3 if task.candidates else None
    data = ClientData(z, z, np.arange(BATCHED) % 2, about)
    drawn = message_of(task).draw(task, data, SeededEntropy(1))
    sent = [seal_message(i, payload_at(drawn, k)) for k, i in enumerate(tree)]
    batches = [b"".join(sent[k : k + BATCH]) for k in range(0, BATCHED, BATCH)]
    seen: Counter[int] = Counter()
    with serving(place) as service:

        async def post_all_batches() -> None:
            lanes = [batches[k::CARRIERS] for k in range(CARRIERS)]
            await asyncio.gather(
                *(post_batches(service.port, lane, seen) for lane in lanes)
            )

        before, started = worked([service]), time.perf_counter()
        asyncio.run(post_all_batches())
        seconds = time.perf_counter() - started
        each = 1e6 * (worked([service]) - before) / BATCHED
        service.end()
    with Intake(place.intake) as intake:
        (sums,) = intake.batches("one-1", intake.close("one-1")).values()
    expected = MessageSums(sums.form)
    expected.add(payload_at(drawn, k) for k in range(BATCHED))
    if sums.to_text() != expected.to_text():
        seen[-1] += 1
    return BATCHED / seconds, each, dict(seen)


def main() -> int:
    wrong, batched = [], {}
    for kind in TASKS:
        with TemporaryDirectory() as name:
            rate, each, seen = in_batches(Path(name) / "p", kind)
        wrong += [] if seen == {201: BATCHED} else [f"in batches {seen}"]
        print(f"in batches, {kind:10s} {rate:6.0f} a second, {each:.0f} us of a core")
        batched[f"in batches, {kind}, a second"] = rate
    with TemporaryDirectory() as name:
        seconds, single, accepted = from_file(Path(name))
        wrong += [] if accepted == FILE else [f"{accepted} of {FILE} accepted"]
    print(f"{FILE:,} from one file  {seconds:6.1f} s, {FILE / seconds:,.0f} a second")
    print(f"one a transaction      {single:6.0f} a second")
    with TemporaryDirectory() as name:
        place = project(Path(name) / "p")
        sent = answered(invite(place.intake, SINGLE))
        lasted, own, seen = over_http(place, sent, 1)
    rate = seen[201] / lasted
    wrong += [] if seen == {201: SINGLE} else [f"over HTTP {dict(seen)}"]
    each = 1e6 * own / SINGLE
    print(f"over HTTP              {rate:6.0f} a second, {CONNECTIONS} connections")
    print(f"service, of a core     {each:6.0f} us an envelope")
    wrong += shared()
    for words in wrong:
        print(f"WRONG: {words}")
    least = {name: 4000.0 if "joint" in name else 5000.0 for name in batched}
    missed = record(
        "intake",
        {"from a file / one a transaction": FILE / seconds / single},
        sizes=batched
        | {
            "over HTTP, a second": rate,
            "service, us an envelope": each,
            "100,000 from a file, s": seconds,
        },
        bounds={"100,000 from a file, s": 60.0},
        least={"over HTTP, a second": 1000.0} | least,
        more=("from a file / one a transaction",),
    )
    return 1 if missed or wrong else 0


def shared() -> list[str]:
    """Send every envelope to two services of one PostgreSQL; say what is off."""
    if (why := missing()) is not None:
        print(f"two services           not measured: {why}")
        return []
    with TemporaryDirectory() as name, postgres() as url:
        place = project(Path(name) / "p")
        environment = {"CURVOTE_INTAKE_URL": url}
        sent = invite_there(url, place)
        lasted, _, seen = over_http(place, sent, 2, **environment)
    print(f"two services           {SHARED / lasted:6.0f} a second, each sent to both")
    return [] if seen == {201: SHARED, 200: SHARED} else [f"at two {dict(seen)}"]


def invite_there(url: str, place: Project) -> list[bytes]:
    """Open a round in the shared database, and return its clients' envelopes."""
    os.environ["CURVOTE_INTAKE_URL"] = url
    try:
        return answered(invite(place.intake, SHARED))
    finally:
        del os.environ["CURVOTE_INTAKE_URL"]


if __name__ == "__main__":
    sys.exit(main())
