"""What leaves a server: one noised object about all of its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.chain.sent import Sent
from curvote.chain.stage import Columns
from curvote.entropy import Entropy
from curvote.errors import InternalError, UserError
from curvote.mechanisms.gaussian_noise import GaussianNoise, Steps
from curvote.protocols.message import Known, Message, Setting
from curvote.protocols.payloads import Payload
from curvote.protocols.roles import Senders
from curvote.representation.encoding import Encoding
from curvote.transfer import releasing
from curvote.transfer.forms import FORMS, form
from curvote.transfer.forms.base import Form
from curvote.transfer.task import ASKS, Task

Array = NDArray[np.float64]

TASK = Task
# The loss of a release hardly depends on how many records it is about: see `Level`.
_REHEARSED = 1000
# More numbers may not fit an envelope, sealed or not.
LONGEST = 10_000


class ReleasePayload(Payload):
    """A release as JSON: whose, about how many records, and its noised sums."""

    server: str
    n: int
    values: list[int]


class ReleaseMessage(Message):
    """The noised sums over the table of one server (`curvote.transfer.releasing`)."""

    name, stage, table = ASKS, "privatize", "releases"
    whole, shuffled, party = True, False, "server"
    senders, mechanism = Senders(()), "gaussian"
    payload: type[Payload] = ReleasePayload
    who, what = "each server, once", "noised sums over its records"
    detail = "one object for all queries"

    def words(self, config: Mapping[str, Any], d: int) -> list[Sent]:
        """Return what leaves a server."""
        detail = f"form {config['transfer']['release']}: {self.detail}"
        return [Sent(self.who, self.what, self.mechanism, detail)]

    def terms(self, setting: Setting, encoding: Encoding) -> dict[str, Any]:
        """Return nothing: tasks about tables are stated by the system's own stage."""
        return {}

    def invited(self, config: Mapping[str, Any]) -> int:
        """Return 1: a round is one server's."""
        return 1

    def sender(self, task: Any) -> str:
        """Return the name of the one server that is asked."""
        return str(task.server)

    def together(self, asked: Sequence[Any]) -> Task:
        """Return the task that asks all these servers; each digest stays what it was.

        One that cannot be said together with the first is an InternalError.
        """
        servers = {
            name: level for task in asked for name, level in task.servers.items()
        }
        every: Task = replace(asked[0], servers=servers)
        for task in asked:
            if every.only(task.server).digest() != task.digest():
                raise InternalError(f"{task.server} is asked something else")
        return every

    def admit(self, task: Any) -> None:
        """Refuse a form for studies, several servers at once, and too many numbers.

        The rest its form has judged.
        """
        if self.form(task).study:
            raise UserError(
                f"release {task.release} protects less than it claims: it is for"
                " studies only."
            )
        self.noise(task, _rehearsed(task))
        sizes = [each for each in task.params.values() if isinstance(each, int)]
        # What is larger is not even counted: that takes memory.
        size = max([0, *sizes])
        size = size if size > LONGEST else self.numbers(task)
        if size > LONGEST:
            raise UserError(
                f"a release of {size} numbers; an envelope holds {LONGEST}."
            )

    def code(self, task: Any) -> tuple[str, ...]:
        """Return the form, which the task names."""
        return (FORMS[task.release],)

    def worst_loss(self, task: Any) -> float:
        """Return the exact loss at the stated delta, whatever the form claims."""
        return self.noise(task, _rehearsed(task)).worst_log_ratio()

    def form(self, task: Any) -> Form:
        """Return what is summed."""
        return form(task.release)

    def sums(self, task: Any, known: Known) -> Steps:
        """Return the numbers of a table without noise; labels are checked."""
        codes = _codes(task, known.labels)
        return self.form(task).sums(task, task.cube(known.z), codes)

    def noise(self, task: Any, n: int) -> GaussianNoise:
        """Return the noise of a release about ``n`` records; none is a UserError."""
        noise = releasing.noise_of(task, n)
        if noise is None:
            raise UserError(f"server {task.server} adds no noise: nothing is hidden.")
        return noise

    def numbers(self, task: Any) -> int:
        """Return how many noised numbers a release holds."""
        return self.form(task).length(task)

    def draw(self, task: Any, known: Known, entropy: Entropy) -> Columns:
        """Return one release about all records of ``known``."""
        named = np.asarray(task.classes)[_codes(task, known.labels)]
        made = releasing.release(task, task.server, known.z, named, entropy)
        return _row(made)

    def possible(self, task: Any, messages: Columns) -> NDArray[np.bool_]:
        """Say for each release whether an honest server can have sent it."""
        parts = zip(*(messages[n] for n in ("server", "n", "values")), strict=True)
        return np.array([_possible(task, *part) for part in parts])

    def refuse(self, task: Any, sent: dict[str, Any]) -> None:
        """Refuse what the invited server cannot have sent, and say why."""
        if sent["server"] != task.server:
            raise UserError(
                f"a release of server {validate.shown(sent['server'])}; the invitation"
                f" is for server {task.server}."
            )
        releasing.received(task, sent["n"], sent["values"])

    def rho(self, task: Any, n: int) -> float:
        """Return the zero-concentrated cost of a release about ``n`` records."""
        return self.noise(task, n).rho

    def log_ratio(
        self, task: Any, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the loss of each release if the table is ``one`` or ``other``."""
        first, second = (self.sums(task, known) for known in (one, other))
        at = np.asarray(messages["values"], dtype=np.float64)
        return self.noise(task, len(one.z)).log_ratio(first, second, at)

    def gather(self, task: Any, messages: Columns) -> Columns:
        """Return the table ``releases``."""
        return messages | {"values": np.asarray(messages["values"], dtype=np.float64)}


def _codes(task: Task, labels: Array) -> Steps:
    """Return labels as places of classes; a number that is none is a UserError."""
    if not np.isin(labels, np.arange(len(task.classes))).all():
        raise UserError(f"a label is not the place of a class: {task.classes}.")
    return labels.astype(np.int64)


def _rehearsed(task: Task) -> int:
    """Return a number of records that the stated delta allows."""
    delta = task.servers[task.server].delta
    return _REHEARSED if delta is None else max(2, min(_REHEARSED, int(1 / delta)))


def _row(made: releasing.Release) -> Columns:
    return {
        "server": np.array([made.server], dtype=object),
        "n": np.array([made.n], dtype=np.int64),
        "values": made.values[None],
    }


def _possible(task: Task, server: str, n: Any, values: Any) -> bool:
    try:
        releasing.received(task.only(server), int(n), values)
    except UserError:
        return False
    return True


MESSAGES = {ASKS: ReleaseMessage()}
