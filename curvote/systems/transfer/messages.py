"""Message of a server: one noised release about all of its records."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy
from curvote.base.errors import InternalError, UserError
from curvote.chain.stage import Columns
from curvote.chain.system import MessageDescription
from curvote.mechanisms.gaussian import GaussianNoise, Steps
from curvote.messages.message import ClientData, Message, Payload
from curvote.messages.roles import Senders
from curvote.systems.transfer.method import release as releasing
from curvote.systems.transfer.method.task import ASKS, FORMS, Form, Task, form

Array = NDArray[np.float64]

TASK = Task
# The loss of a release hardly depends on how many records it is about: see `Level`.
_NOMINAL_SIZE = 1000
# More numbers may not fit an envelope, sealed or not.
MOST_NUMBERS = 10_000


class ReleasePayload(Payload):
    """Payload of a release: server, number of records, noised sums."""

    server: str
    n: int
    values: list[int]


class ReleaseMessage(Message):
    """Message with the noised sums over one server's table."""

    name, stage, table = ASKS, "privatize", "releases"
    per_table, shuffled, party = True, False, "server"
    summed = True  # it is one message
    senders, mechanism = Senders(()), "gaussian"
    payload: type[Payload] = ReleasePayload
    who, what = "each server, once", "noised sums over its records"
    detail = "one object for all queries"

    def describe(self, config: Mapping[str, Any], d: int) -> list[MessageDescription]:
        """Return the description of a server's message."""
        detail = f"form {config['transfer']['release']}: {self.detail}"
        return [MessageDescription(self.who, self.what, self.mechanism, detail)]

    def invited_count(self, config: Mapping[str, Any]) -> int:
        """Return 1: a round has one server."""
        return 1

    def sender(self, task: Any) -> str:
        """Return the name of the task's one server."""
        return str(task.server)

    def merge_tasks(self, tasks: Sequence[Any]) -> Task:
        """Return one task for all servers; each digest stays the same.

        One that cannot be said together with the first is an InternalError.
        """
        servers = {
            name: level for task in tasks for name, level in task.servers.items()
        }
        merged: Task = replace(tasks[0], servers=servers)
        for task in tasks:
            if merged.for_server(task.server).digest() != task.digest():
                raise InternalError(f"{task.server} is asked something else")
        return merged

    def check_task(self, task: Any) -> None:
        """Refuse a study form, several servers at once, or too many numbers.

        The rest its form has judged.
        """
        if self.form(task).study:
            raise UserError(
                f"release {task.release} protects less than it claims: it is for"
                " studies only."
            )
        self.noise(task, _nominal_size(task))
        sizes = [value for value in task.params.values() if isinstance(value, int)]
        # What is larger is not even counted: that takes memory.
        size = max([0, *sizes])
        if size <= MOST_NUMBERS:
            size = self.count_numbers(task)
        if size > MOST_NUMBERS:
            raise UserError(
                f"a release of {size} numbers; an envelope holds {MOST_NUMBERS}."
            )

    def code_modules(self, task: Any) -> tuple[str, ...]:
        """Return the module of the task's form."""
        return (FORMS[task.release],)

    def mechanisms(self, task: Any, n: int | None = None) -> Sequence[GaussianNoise]:
        """Return the noise at the stated delta, for any claim of the form."""
        return (self.noise(task, n or _nominal_size(task)),)

    def form(self, task: Any) -> Form:
        """Return the form of the task's release."""
        return form(task.release)

    def sums(self, task: Any, data: ClientData) -> Steps:
        """Return the numbers of a table without noise; labels are checked."""
        codes = _label_codes(task, data.labels)
        return self.form(task).sums(task, task.cube(data.z), codes)

    def noise(self, task: Any, n: int) -> GaussianNoise:
        """Return the noise for ``n`` records; a task without: UserError."""
        noise = releasing.release_noise(task, n)
        if noise is None:
            raise UserError(f"server {task.server} adds no noise: nothing is hidden.")
        return noise

    def count_numbers(self, task: Any) -> int:
        """Return the number of noised numbers of a release."""
        return self.form(task).length(task)

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        """Return one release about all records of a table."""
        labels = np.asarray(task.classes)[_label_codes(task, data.labels)]
        release = releasing.release(task, task.server, data.z, labels, entropy)
        return {
            "server": np.array([release.server], dtype=object),
            "n": np.array([release.n], dtype=np.int64),
            "values": release.values[None],
        }

    def possible_mask(self, task: Any, messages: Columns) -> NDArray[np.bool_]:
        """Return the mask of releases that an honest server can send."""
        parts = zip(*(messages[n] for n in ("server", "n", "values")), strict=True)
        return np.array([_is_possible(task, *part) for part in parts])

    def check_message(self, task: Any, message: dict[str, Any]) -> None:
        """Refuse a release that the invited server cannot have sent."""
        if message["server"] != task.server:
            raise UserError(
                f"a release of server {validate.format_value(message['server'])}; the"
                f" invitation is for server {task.server}."
            )
        releasing.check_release(task, message["n"], message["values"])

    def rho(self, task: Any, n: int) -> float:
        """Return the zero-concentrated cost of a release about ``n`` records."""
        return self.noise(task, n).rho

    def log_ratio(
        self, task: Any, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the loss of each release between two tables."""
        first_sums, second_sums = (self.sums(task, table) for table in (first, second))
        values = np.asarray(messages["values"], dtype=np.float64)
        return self.noise(task, len(first.z)).log_ratio(first_sums, second_sums, values)

    def collect(self, task: Any, messages: Columns) -> Columns:
        """Return the table ``releases``."""
        return messages | {"values": np.asarray(messages["values"], dtype=np.float64)}


def _label_codes(task: Task, labels: Array) -> Steps:
    """Return labels as class indices; any other number is a UserError."""
    if not np.isin(labels, np.arange(len(task.classes))).all():
        raise UserError(f"a label is not the place of a class: {task.classes}.")
    return labels.astype(np.int64)


def _nominal_size(task: Task) -> int:
    """Return a number of records that the stated delta allows."""
    delta = task.servers[task.server].delta
    return (
        _NOMINAL_SIZE if delta is None else max(2, min(_NOMINAL_SIZE, int(1 / delta)))
    )


def _is_possible(task: Task, server: str, n: Any, values: Any) -> bool:
    """Return whether an honest server can have sent this release."""
    try:
        releasing.check_release(task.for_server(server), int(n), values)
    except UserError:
        return False
    return True


MESSAGES = {ASKS: ReleaseMessage()}
# No server of `transfer_clean` sends anything.
MESSAGES_BY_SYSTEM: Mapping[str, Mapping[str, Message]] = {
    "transfer": MESSAGES,
    "transfer_clean": {},
}
