"""Group commit: uploads of many senders accepted in common transactions.

Whoever waits for an answer gets it after the commit. One thread holds the intake; what
fails for its database is told to those who wait, and the next ones find it opened anew.
"""

import queue
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from curvote.base.errors import InternalError, UserError
from curvote.intake.admission import BatchCheck, RefusedEnvelope
from curvote.intake.box import Intake
from curvote.wire.receipt import envelope_salt

# A transaction is for so many envelopes, or for what comes in so many seconds.
GROUP_SIZE: Final = 500
GROUP_SECONDS: Final = 0.02
# So many envelopes, or bytes of them, may wait; more are sent away.
MAX_WAITING: Final = 10_000
MAX_WAITING_BYTES: Final = 2**26
# A database that failed is tried again after so long (seconds).
PROBE_SECONDS: Final = 1.0
# Rows are written anew so often (seconds), but in no more than this part of the time.
REWRITE_SECONDS: Final = 60.0
REWRITE_SHARE: Final = 0.05

# Of an accepted envelope: its receipt, None in a round that gives none.
Outcome = RefusedEnvelope | dict[str, Any] | None


class QueueFull(Exception):  # noqa: N818 - what happens to an upload
    """Error for uploads while too many envelopes wait."""


class IntakeUnavailable(Exception):  # noqa: N818 - what happens to an upload
    """Error for uploads while the intake's database fails."""


@dataclass(eq=False)
class _Upload:
    """Envelopes that came together under a salt, with a future of their outcomes."""

    envelopes: Sequence[bytes]
    salt: bytes
    future: Future[list[Outcome]] = field(default_factory=Future)
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The number of bytes of the envelopes."""
        return sum(map(len, self.envelopes))


class GroupCommit:
    """A thread that takes uploads into the intake, many in a transaction.

    ``checks`` are those of `Intake.take_batch`. ``committed`` is told the outcomes of
    each transaction, ``failed`` what is wrong with the database, "" once it is well.
    """

    def __init__(
        self,
        opening: Callable[[], Intake],
        check: BatchCheck,
        *,
        committed: Callable[[Sequence[RefusedEnvelope | None]], None] = lambda _: None,
        failed: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._opening, self._check = opening, check
        self._committed, self._failed = committed, failed
        self._uploads: queue.SimpleQueue[_Upload | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = self._bytes = 0
        self._intake: Intake | None = None
        # Whoever was here before may have been killed: its traces go, too.
        self._tidied, self._pause = time.monotonic(), REWRITE_SECONDS
        self._has_new = True
        self.problem = ""
        self._thread = threading.Thread(
            target=self._accept_uploads, name="intake", daemon=True
        )

    @property
    def waiting(self) -> int:
        """The number of waiting envelopes."""
        return self._count

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """Accept what waits, then stop; False if it takes too long."""
        self._uploads.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def put(
        self, envelopes: Sequence[bytes], salt: bytes | None = None
    ) -> Future[list[Outcome]]:
        """Queue envelopes; return a future of their outcomes, in order.

        The salts of their leaves follow from ``salt``, which is drawn if there is none.
        `QueueFull`: too many wait already. The outcome may be `IntakeUnavailable`, or
        an InternalError where a check breaks; then each may be sent again.
        """
        upload = _Upload(envelopes, salt or secrets.token_bytes(32))
        with self._lock:
            more = self._count + len(envelopes), self._bytes + upload.size
            if self._count and (more[0] > MAX_WAITING or more[1] > MAX_WAITING_BYTES):
                raise QueueFull
            self._count, self._bytes = more
        self._uploads.put(upload)
        return upload.future

    def _accept_uploads(self) -> None:
        while (uploads := self._next_uploads()) is not None:
            self._accept_group(uploads)
            with self._lock:
                self._count -= sum(len(upload.envelopes) for upload in uploads)
                self._bytes -= sum(upload.size for upload in uploads)
            now = time.monotonic()
            due = self._has_new and now - self._tidied >= self._pause
            if due and self._intake is not None:
                with suppress(UserError, InternalError):
                    self._intake.tidy()
                    self._has_new = False
                self._tidied = time.monotonic()
                share = (self._tidied - now) / REWRITE_SHARE
                self._pause = max(REWRITE_SECONDS, share)
        self._close_intake()

    def _next_uploads(self) -> list[_Upload] | None:
        """Return uploads that came at about the same time; None: it is over."""
        uploads: list[_Upload] = []
        count, wait, until = 0, PROBE_SECONDS, 0.0
        while count < GROUP_SIZE:
            try:
                upload = self._uploads.get(timeout=wait)
            except queue.Empty:
                break
            if upload is None:
                if not uploads:
                    return None
                self._uploads.put(None)  # for whoever waits next
                break
            uploads.append(upload)
            count += len(upload.envelopes)
            until = until or time.monotonic() + GROUP_SECONDS
            wait = max(0.0, until - time.monotonic())
        return uploads

    def _accept_group(self, uploads: Sequence[_Upload]) -> None:
        """Accept uploads in transactions, and complete their futures."""
        pairs = [(upload, data) for upload in uploads for data in upload.envelopes]
        failure: Exception | None = None
        try:
            if self._intake is None:
                self._intake = self._opening()
            intake = self._intake
            for start in range(0, len(pairs), GROUP_SIZE):
                part = pairs[start : start + GROUP_SIZE]
                envelopes = [data for _, data in part]
                salts = [envelope_salt(upload.salt, data) for upload, data in part]
                outcomes = intake.take_batch(envelopes, self._check, salts)
                self._has_new = True
                self._committed(outcomes)
                receipts = intake.receipts(envelopes, salts)
                for (upload, _), refused, receipt in zip(
                    part, outcomes, receipts, strict=True
                ):
                    if refused is not None:
                        refused.receipt = receipt
                    upload.outcomes.append(refused or receipt)
        except UserError as error:
            self._report_problem(str(error))
            failure = IntakeUnavailable()
        except Exception as error:  # noqa: BLE001 - the thread must go on
            failure = InternalError(type(error).__name__)
        else:
            self._report_problem("")
        for upload in uploads:
            if not upload.future.set_running_or_notify_cancel():
                continue
            if failure is None or len(upload.outcomes) == len(upload.envelopes):
                upload.future.set_result(upload.outcomes)
            else:
                upload.future.set_exception(failure)
        if failure:
            # last: a database that is kept by others keeps this, too
            self._close_intake()

    def _report_problem(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self._failed(problem)

    def _close_intake(self) -> None:
        intake, self._intake = self._intake, None
        if intake is not None:
            # It has failed, or it ends: what is wrong was said.
            with suppress(UserError, InternalError):
                intake.__exit__(None, None, None)
