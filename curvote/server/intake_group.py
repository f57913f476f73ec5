"""Envelopes of many senders, taken in together: one transaction for many.

Whoever waits for an answer gets it after the commit. One thread holds the intake; what
fails for its database is told to those who wait, and the next ones find it opened anew.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from curvote.errors import InternalError, UserError
from curvote.server.admission import Checks, Refused
from curvote.server.intake import Intake

# A transaction is for so many envelopes, or for what comes in so many seconds.
BATCH: Final = 500
SECONDS: Final = 0.02
# So many envelopes, or bytes of them, may wait; more are sent away.
MOST_WAITING: Final = 10_000
MOST_BYTES: Final = 2**26
# A database that failed is tried again after so long (seconds).
PROBE: Final = 1.0
# Rows are written anew so often (seconds), but in no more than this part of the time.
TIDY: Final = 60.0
TIDY_SHARE: Final = 0.05

Outcome = Refused | None


class Full(Exception):  # noqa: N818 - what happens to an upload
    """As many envelopes wait as may."""


class Unavailable(Exception):  # noqa: N818 - what happens to an upload
    """The intake's database failed: what is not known to be accepted is sent again."""


@dataclass(eq=False)
class _Upload:
    """Envelopes that came together; their outcomes are told together."""

    sent: Sequence[bytes]
    told: Future[list[Outcome]] = field(default_factory=Future)
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many bytes it holds."""
        return sum(map(len, self.sent))


class Group:
    """What takes uploads into the intake that ``opening`` opens, in its own thread.

    ``checks`` are those of `Intake.take_batch`. ``committed`` is told the outcomes of
    each transaction, ``failed`` what is wrong with the database, "" once it is well.
    """

    def __init__(
        self,
        opening: Callable[[], Intake],
        checks: Checks,
        *,
        committed: Callable[[Sequence[Outcome]], None] = lambda _: None,
        failed: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._opening, self._checks = opening, checks
        self._committed, self._failed = committed, failed
        self._uploads: queue.SimpleQueue[_Upload | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = self._bytes = 0
        self._intake: Intake | None = None
        # Whoever was here before may have been killed: its traces go, too.
        self._tidied, self._pause, self._came = time.monotonic(), TIDY, True
        self.problem = ""
        self._thread = threading.Thread(target=self._run, name="intake", daemon=True)

    @property
    def waiting(self) -> int:
        """How many envelopes wait."""
        return self._count

    def start(self) -> None:
        """Begin to take in."""
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """Take in what waits, then leave; False: it takes longer than ``seconds``."""
        self._uploads.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def put(self, sent: Sequence[bytes]) -> Future[list[Outcome]]:
        """Let envelopes wait; return what will tell the outcome of each, in order.

        `Full`: too many wait already. The outcome may be `Unavailable`, or an
        InternalError where a check breaks; then each may be sent again.
        """
        upload = _Upload(sent)
        with self._lock:
            more = self._count + len(sent), self._bytes + upload.size
            if self._count and (more[0] > MOST_WAITING or more[1] > MOST_BYTES):
                raise Full
            self._count, self._bytes = more
        self._uploads.put(upload)
        return upload.told

    def _run(self) -> None:
        for uploads in self._together():
            self._take(uploads)
            with self._lock:
                self._count -= sum(len(each.sent) for each in uploads)
                self._bytes -= sum(each.size for each in uploads)
            self._tidy()
        self._leave()

    def _together(self) -> Iterator[list[_Upload]]:
        """Yield uploads that came at about the same time, until it is stopped."""
        while True:
            try:
                first = self._uploads.get(timeout=PROBE)
            except queue.Empty:
                yield []
                continue
            if first is None:
                return
            yield [first, *self._more(len(first.sent))]

    def _more(self, count: int) -> Iterator[_Upload]:
        until = time.monotonic() + SECONDS
        while count < BATCH:
            try:
                upload = self._uploads.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return
            if upload is None:
                self._uploads.put(None)  # for whoever waits next
                return
            count += len(upload.sent)
            yield upload

    def _take(self, uploads: Sequence[_Upload]) -> None:
        """Take uploads in, a transaction for every so many, and tell each."""
        sent = [(upload, data) for upload in uploads for data in upload.sent]
        failure: Exception | None = None
        try:
            intake = self._opened()
            for start in range(0, len(sent), BATCH):
                part = sent[start : start + BATCH]
                told = self._commit(intake, [data for _, data in part])
                for (upload, _), outcome in zip(part, told, strict=True):
                    upload.outcomes.append(outcome)
        except UserError as error:
            self._say(str(error))
            failure = Unavailable()
        except Exception as error:  # noqa: BLE001 - the thread must go on
            failure = InternalError(type(error).__name__)
        else:
            self._say("")
        _tell(uploads, failure)
        if failure:
            self._leave()  # last: a database that is kept by others keeps this, too

    def _commit(self, intake: Intake, sent: Sequence[bytes]) -> list[Outcome]:
        told = intake.take_batch(sent, self._checks)
        self._came = True
        self._committed(told)
        return told

    def _opened(self) -> Intake:
        if self._intake is None:
            self._intake = self._opening()
        return self._intake

    def _say(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self._failed(problem)

    def _tidy(self) -> None:
        """Write rows anew now and then: a service that stays leaves no trace."""
        now = time.monotonic()
        if self._intake is None or not self._came or now - self._tidied < self._pause:
            return
        with suppress(UserError, InternalError):
            self._intake.tidy()
            self._came = False
        self._tidied = time.monotonic()
        self._pause = max(TIDY, (self._tidied - now) / TIDY_SHARE)

    def _leave(self) -> None:
        intake, self._intake = self._intake, None
        if intake is not None:
            # It has failed, or it ends: what is wrong was said.
            with suppress(UserError, InternalError):
                intake.__exit__(None, None, None)


def _tell(uploads: Sequence[_Upload], failure: Exception | None) -> None:
    """Tell the outcomes; whoever has not all of them may send all of it again."""
    for upload in uploads:
        if not upload.told.set_running_or_notify_cancel():
            continue
        if len(upload.outcomes) == len(upload.sent):
            upload.told.set_result(upload.outcomes)
        else:
            upload.told.set_exception(failure)
