"""Tasks bent at random, records of every kind, and all that a client shows of them."""

import random
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.client.table import read_record
from curvote.messages import answer
from curvote.messages.answer import check_invitation, describe_answer, validate_task
from curvote.messages.message import parse_message, payload_at
from curvote.wire.envelope import Invitation, issue_invitations, seal_message
from curvote.wire.task import Task

RECORDS = 20
# A value of each kind that text can hold; a record repeats some of them.
CELLS = [
    ("0.5", "-1", "2.25", "0"),
    ("0",),
    ("",),
    ("1", "nan", "3"),
    ("inf",),
    ("-inf", "inf"),
    ("1e999",),
    ("-1e999", "1"),
    ("1e308", "-1e308"),
    ("1e308",),
    ("-1.7e308",),
    ("5e-324",),
    ("-0.0", "1e-320"),
    ("1e12", "-1e12"),
    ("1e13", "7"),
    ("NA", "1e300"),
    ("9" * 400,),
    ("0.1", "0.2", "0.3"),
    ("123456789.123456789",),
    ("-3", "5"),
]
HOSTILE: list[Any] = [
    None,
    True,
    False,
    "",
    "x",
    "laplace",
    "nan",
    "\ud800",
    "\x1b[31m",
    "y\u0000",
    "w" * 5000,
    [],
    {},
    [[]],
    [1, 2],
    [[1.0]],
    {"a": 1},
    -1,
    0,
    1,
    2**31,
    2**63,
    10**400,
    10**5000,
    -(10**400),
    -1.0,
    -0.0,
    0.5,
    5e-324,
    1e-300,
    1e-7,
    1e6,
    1e14,
    1e16,
    1e300,
    float("nan"),
    float("inf"),
    float("-inf"),
]


def deep(levels: int) -> Any:
    """Return a list in a list in a list."""
    value: Any = 1.0
    for _ in range(levels):
        value = [value]
    return value


HOSTILE += [deep(50), deep(5000)]


def bend(rng: random.Random, document: dict[str, Any], other: dict[str, Any]) -> None:
    """Change one place of a document: its value, its size, or its neighbours.

    The place is found by a walk from the top, so that large arrays do not hide others.
    """
    container: Any = document
    while True:
        if not container:
            return
        names = [*container] if isinstance(container, dict) else range(len(container))
        key = rng.choice(names)
        inner = container[key]
        if not isinstance(inner, dict | list) or rng.random() < 0.3:
            break
        container = inner
        other = other.get(key, {}) if isinstance(other, dict) else {}
    _bend(rng, container, key, other)


def _bend(rng: random.Random, container: Any, key: Any, other: Any) -> None:
    how = rng.randrange(6)
    value = container[key]
    if how == 0:
        container[key] = copy(rng.choice(HOSTILE))
    elif how == 1 and isinstance(value, int | float) and abs(value) < 1e15:
        container[key] = value * 10.0 ** rng.uniform(-9, 16) + rng.gauss(0, 1)
    elif how == 2 and isinstance(container, dict):
        del container[key]
    elif how == 3 and isinstance(container, list):
        container.insert(rng.randrange(len(container) + 1), value)
    elif how == 4 and isinstance(container, dict):
        container[rng.choice(["more", "x" * 90, "delta", "d", "\u202e"])] = value
    elif isinstance(other, dict) and key in other:
        container[key] = deepcopy(other[key])


@dataclass(frozen=True)
class Seen:
    """All that can be observed of one call, the noised numbers themselves left out."""

    outcome: str
    words: str
    ledger: tuple[Any, ...] = ()
    file: tuple[str, int] | None = None
    form: Any = None


class Home:
    """A client's folder: the same records again for every task."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._written: dict[tuple[int, int], Path] = {}

    def record(self, number: int, points: int) -> Path:
        """Return the file of a record with so many values."""
        at = number, points
        if at not in self._written:
            cells = [CELLS[number][i % len(CELLS[number])] for i in range(points)]
            path = self.folder / f"{points}-{number}.csv"
            path.write_text("\n".join(cells) + "\n")
            self._written[at] = path
        return self._written[at]


def observed(home: Home, document: Any, about: Any, number: int) -> Seen:
    """Do what the command does, in its order, with one record; anything may be seen.

    No traceback: whatever is not a UserError goes through to the test.
    """
    try:
        task = validate_task(document)
        invitation = invited(task, about)
        check_invitation(task, invitation)
    except UserError as error:
        return Seen("refused", str(error))
    return released(home, task, invitation, number)


def released(home: Home, task: Task, invitation: Invitation, number: int) -> Seen:
    """Release the message of one record for a task that was accepted."""
    path = home.record(number, task.encoding.projection.matrix.shape[1])
    given = read_record(path, task.classes[number % 2], task)
    columns = answer._try_draw(task, given, invitation.about, SeededEntropy(number))
    assert columns is not None, "a record that was told from others"
    payload, about = payload_at(columns, 0), invitation.about
    sealed = seal_message(invitation, payload)
    if number < 2:  # the server takes it
        parse_message(task, about, payload)
    reserved = ("reserve", task.digest(), task.budget, invitation.id)
    file = invitation.file_name, len(sealed)
    return Seen("sent", describe_answer(task, about), reserved, file, shape(payload))


def invited(task: Task, about: Any) -> Invitation:
    """Return the invitation that a server sends; ``about`` is its candidate."""
    first = issue_invitations(replace(task, candidates=None), 1)[0]
    if task.candidates is None:
        about = None
    return replace(first, id="0" * 32, key="1" * 64, task=task.digest(), about=about)


def shape(value: Any) -> Any:
    """Return the kind and size of a payload, without its numbers."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return type(value).__name__
