"""Answers of a client to tasks: validation first, then noise, never refusal.

Whether a client answers, and in which words, must not depend on its record. So whatever
a record holds becomes an input, by rules that everybody knows:

- a value beyond 1e12 in size, infinite ones included, stands for that bound;
- where the task says so, a curve at times of its own or with missing values (NaN) is
  smoothed onto the grid; measurements beyond its ends are of no use;
- any other record with a missing value, and a curve of which a channel has no value,
  stands for the public centre of its rescaling;
- a record on which anything fails, for whatever reason, stands for that centre and the
  first class.

The label is the owner's word, one of those that the task names.

Of a message that belongs to a public record nothing but the label is secret, and
nothing about a label can fail.
"""

from typing import Any

import numpy as np

from curvote.base import validate
from curvote.base.entropy import Entropy, SeededEntropy
from curvote.base.errors import UserError
from curvote.base.text import format_names, printable_name
from curvote.chain import lookup
from curvote.chain.stage import Columns
from curvote.client.table import OwnerRecord
from curvote.curves import basis
from curvote.curves.encoding import Encoding, rescale
from curvote.curves.smoothing import smooth, smooth_missing
from curvote.mechanisms.registry import MECHANISMS
from curvote.messages.message import (
    Array,
    ClientData,
    Outcome,
    message_of,
    payload_at,
)
from curvote.wire import strict_json
from curvote.wire.envelope import Invitation
from curvote.wire.task import (
    LARGEST_CURVE_VALUE,
    SMALLEST_SCALE,
    AnyTask,
    Task,
    confusable_form,
)


def answer_task(
    task: Task, record: OwnerRecord, about: int | None, entropy: Entropy
) -> dict[str, Any]:
    """Return the noised payload of one client for a validated task.

    ``about`` is the candidate that the invitation names. Never fails because of what
    ``record`` holds.
    """
    with np.errstate(all="ignore"):
        columns = _try_draw(task, record, about, entropy)
        if columns is None:
            columns = message_of(task).draw(task, stand_in_inputs(task, about), entropy)
    return payload_at(columns, 0)


def answer_about_record(
    task: AnyTask, record: str, place: int, entropy: Entropy
) -> dict[str, Any]:
    """Return the noised payload about a public record's label."""
    no_numbers = np.empty((1, 0))
    data = ClientData(no_numbers, no_numbers, np.array([place]))
    columns = message_of(task).draw(task, data, entropy)
    return {"record": record} | payload_at(columns, 0)


def answer_outcome(
    task: AnyTask, outcome: Outcome, about: int | None, entropy: Entropy
) -> dict[str, Any]:
    """Return the noised payload about what a model said and what is true."""
    message, nothing = message_of(task), np.empty((1, 0))
    candidate = None if about is None else np.array([about])
    with np.errstate(all="ignore"):
        word = np.array([message.word(task, outcome)])
    data = ClientData(nothing, nothing, word, candidate)
    return payload_at(message.draw(task, data, entropy), 0)


def _try_draw(
    task: Task, record: OwnerRecord, about: int | None, entropy: Entropy
) -> Columns | None:
    try:
        return message_of(task).draw(task, client_inputs(task, record, about), entropy)
    except Exception:  # noqa: BLE001 - a failure that shows would tell of the record
        return None


def client_inputs(task: Task, record: OwnerRecord, about: int | None) -> ClientData:
    """Return a client's record as inputs within the range of a task."""
    encoding = task.encoding
    ends = -LARGEST_CURVE_VALUE, LARGEST_CURVE_VALUE
    values = np.clip(record.values, *ends)
    if encoding.smooth:
        grid, rows = np.asarray(encoding.projection.grid), np.array([0, len(values)])
        if record.times is None:
            values = smooth_missing(grid, values)
        else:
            values = smooth(grid, rows, record.times, values)[0]
        values = np.clip(values, *ends)
    missing = np.isnan(values).any()
    own_coefficients = encoding.projection.apply(np.nan_to_num(values)[None])
    coefficients = np.where(missing, public_centre(encoding), own_coefficients)
    return _client_data(encoding, coefficients, record.label, about)


def stand_in_inputs(task: Task, about: int | None) -> ClientData:
    """Return the inputs that stand for a broken record: centre, class 0."""
    return _client_data(task.encoding, public_centre(task.encoding), 0, about)


def public_centre(encoding: Encoding) -> Array:
    """Return the coefficients (1, d) in the middle of the public constants."""
    public = encoding.constants
    middle = public.get("centre", 0.0)
    if "lower" in public:
        middle = (public["lower"] + public["upper"]) / 2
    return np.broadcast_to(middle, (1, encoding.d))


def _client_data(
    encoding: Encoding, coefficients: Array, label: int, about: int | None
) -> ClientData:
    z, _ = encoding.rescaled(coefficients)
    candidate = None if about is None else np.array([about])
    return ClientData(coefficients, z, np.array([label]), candidate)


def describe_answer(task: AnyTask, about: int | str | None) -> str:
    """Return words for an answer, as ``report (5 numbers, a class of iy/sh)``.

    ``about`` is the candidate or the public record that the invitation asks about; None
    where it asks for none.
    """
    message = message_of(task)
    if words := message.describe_answer(task, about):
        return words
    numbers, fields = message.count_numbers(task), message.payload.model_fields
    parts = [f"{numbers} number{'s' * (numbers > 1)}"] if numbers else []
    if isinstance(about, int):
        parts.append(f"one bit about candidate {about}")
    single_class = message.per_record or "label" in fields
    kind = "a class of" if single_class else "classes"
    parts.append(f"{kind} {format_names(task.classes)}")
    if columns := getattr(task, "words", None):
        parts.append(f"each a label and {format_names([*columns], ' and ')}")
    plugin = MECHANISMS.origin(task.mechanism)
    if plugin:
        parts.append(f"noised by {plugin}, which curvote does not audit")
    if isinstance(about, str):
        parts.append(f"public record {printable_name(about)}")
    return f"{message.name} ({', '.join(parts)})"


# What separates words in a list: "yes, certainly" would be two classes in one.
SEPARATORS = ",;|/"


def validate_task(document: Any, server: str | None = None) -> AnyTask:
    """Return the task of a document, if a client may answer it at all.

    It is what ``server`` is asked, where the task asks several by name.

    UserError: another form, numbers out of range, a basis that is not the one it is
    called, classes that are no words, an unknown question, or a mechanism that cannot
    be built. Neither a record nor the system's entropy is touched.
    """
    task = lookup.read_task(document)
    # Else two texts would have one digest, and invitations to the one fit the other.
    canonical_json = strict_json.canonical_json
    if canonical_json(task.to_json()) != canonical_json(document):
        raise UserError(
            "the task is not written in its one form, so that its digest is not that of"
            " its text: something was altered, or another program wrote it."
        )
    server_task = task if server is None else task.for_server(server)
    try:
        with np.errstate(all="ignore"):
            _check_task(server_task)
    except (UserError, ModuleNotFoundError):  # the latter is no fault of the task
        raise
    except Exception as error:  # noqa: BLE001 - a task must never crash its client
        raise UserError(
            f"this task cannot be answered: it fails with {type(error).__name__}."
        ) from None
    return server_task


def check_invitation(task: AnyTask, invitation: Invitation) -> None:
    """Refuse an invitation to another task or about another subject.

    That is a candidate that is not up for a vote, or a record where none is told of.
    """
    if invitation.task != task.digest() or invitation.asks != task.asks:
        raise UserError(
            f"the invitation is to task {invitation.task[:12]}, but the task is"
            f" {task.digest()[:12]}; they belong to different rounds."
        )
    if message_of(task).per_record != (invitation.record is not None):
        wanted, named = ("no", "one") if invitation.record else ("a", "none")
        raise UserError(
            f"a {task.asks} belongs to {wanted} public record, but the invitation names"
            f" {named}."
        )
    about, count = invitation.about, task.subject_count
    called = "candidate" if task.candidates is not None else "group"
    if count is None and about is not None:
        raise UserError("the invitation is about a candidate, but none is up for one.")
    if count is not None and (about is None or not 0 <= about < count):
        raise UserError(
            f"the invitation is about {called} {about}; up for a {task.asks} are 0 to"
            f" {count - 1}."
        )


def _check_task(task: AnyTask) -> None:
    if len({confusable_form(word) for word in task.classes}) < len(task.classes):
        raise UserError("two of the task's classes look alike: who could tell them?")
    for word in task.classes:
        if set(word) & set(SEPARATORS):
            raise UserError(
                f"class {validate.format_value(word)} is no single word or phrase: it"
                " holds"
                f" one of {' '.join(SEPARATORS)}."
            )
    if isinstance(task, Task):
        _check_encoding(task)
    message_of(task).check_task(task)
    if isinstance(task, Task):
        # The first draw of all is about a record that everybody knows.
        message_of(task).draw(task, stand_in_inputs(task, 0), SeededEntropy(0))


def _check_encoding(task: Task) -> None:
    encoding = task.encoding
    basis.check_projection(encoding.projection)
    if encoding.smooth and encoding.projection.grid is None:
        name = encoding.projection.name
        raise UserError(f"irregular: smooth needs curves on a grid; {name} has none.")
    rescale(encoding.rescale, np.zeros((1, encoding.d)), encoding.constants)
    if encoding.rescale == "min_max":
        width = encoding.constants["upper"] - encoding.constants["lower"]
        least = 2 * SMALLEST_SCALE
        if not (width >= least).all():
            raise UserError(f"upper must be at least {least:g} above lower.")
