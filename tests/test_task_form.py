"""A task is judged before the record: what is none is refused, in words."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.messages import answer
from curvote.messages.answer import check_invitation, validate_task
from curvote.wire import task as task_form
from tests.fuzzing import Home, deep, invited, observed
from tests.rounds import REPORTS, VOTES
from tests.valid_tasks import document, encodings, tasks

Document = dict[str, Any]
Change = Callable[[Document], object]


def test_what_curvote_publishes_is_accepted_unchanged() -> None:
    """Every protocol, basis, rescaling and mechanism; the digest stays."""
    for name, task in tasks().items():
        assert validate_task(document(task)).digest() == task.digest(), name


STATED = replace(REPORTS, protocol="direct", mechanism="privunit")
PINNED = {
    "9cba00e0f4d782c09b80c174925185385048bacf754d7ff8001a8018e24696fb": REPORTS,
    "c5204fbbe580489b38fb31e99d727f81adb1ea46b126ee6078686a07a0aeb3ea": VOTES,
    # An epsilon that was written as a whole number stays one.
    "c35b0a42d017e810d6a42d8d5011d5e77f42d9414a28dbe114680befb0119068": replace(
        REPORTS, epsilon=1
    ),
    "5ca11a8614cbf48b82ca754adfa16f20e478405bba0fadccb4772b60fbb58bfa": replace(
        STATED, params={"intercept": 0.5, "share": 0.8, "square": 1.0}
    ),
}


@pytest.mark.parametrize("digest", PINNED)
def test_tasks_that_were_published_keep_their_digest(digest: str) -> None:
    """Invitations name it: these are of the version before tasks were judged."""
    assert PINNED[digest].digest() == digest
    assert validate_task(document(PINNED[digest])).digest() == digest


@pytest.mark.parametrize(
    "classes",
    [
        ["yes, certainly", "no"],
        ["yes", "yes"],
        ["yes", "YES"],
        ["copy", "\u0441\u043e\u0440\u0443"],
        ["HAT", "\u0397\u0391\u03a4"],
        ["no", 1],
        [0, 1],
        [True, False],
        [None, "no"],
        [["no"], "yes"],
        "no",
        ["no"],
        ["no", "yes", "perhaps"],
        ["no", "y\ud800"],
        ["no", "yes\n"],
        ["no", " yes"],
        ["no", "\u202eyes"],
        ["no", ""],
        ["no", "y" * 61],
        {"no": "yes"},
    ],
)
def test_classes_are_two_words(classes: Any) -> None:
    """Two different texts without lists: what an owner agrees to before all else."""
    bent = document(tasks()["mrma-report-0"]) | {"classes": classes}
    with pytest.raises(UserError):
        validate_task(bent)


def _bounds(task: Document, lower: float, upper: float) -> None:
    constants = {"lower": lower, "upper": upper}
    task["encoding"] |= {"rescale": "min_max", "constants": constants}


MALFORMED: dict[str, Change] = {
    "no format": lambda t: t.pop("format"),
    "format true": lambda t: t.update(format=True),
    "format 1.0": lambda t: t.update(format=1.0),
    "format 2": lambda t: t.update(format=2),
    "format huge": lambda t: t.update(format=10**5000),
    "format deep": lambda t: t.update(format=deep(5000)),
    "no encoding": lambda t: t.pop("encoding"),
    "encoding a list": lambda t: t.update(encoding=[]),
    "unknown key": lambda t: t.update(hint="x"),
    "unknown key in encoding": lambda t: t["encoding"].update(bias=1),
    "unknown key of odd text": lambda t: t.update({"\x1b[2J\ud800": 1}),
    "protocol unknown": lambda t: t.update(protocol="mrmb"),
    "protocol a number": lambda t: t.update(protocol=3),
    "protocol without messages": lambda t: t.update(protocol="clean"),
    "asks unknown": lambda t: t.update(asks="secret"),
    "asks for a vote on nothing": lambda t: t.update(asks="vote"),
    "number 0": lambda t: t.update(number=0),
    "number true": lambda t: t.update(number=True),
    "number 1.0": lambda t: t.update(number=1.0),
    "number huge": lambda t: t.update(number=10**400),
    "epsilon true": lambda t: t.update(epsilon=True),
    "epsilon text": lambda t: t.update(epsilon="1"),
    "epsilon nan": lambda t: t.update(epsilon=float("nan")),
    "epsilon infinite": lambda t: t.update(epsilon=float("inf")),
    "epsilon huge": lambda t: t.update(epsilon=10**400),
    "epsilon 0": lambda t: t.update(epsilon=0),
    "epsilon tiny": lambda t: t.update(epsilon=1e-9),
    "epsilon beyond the largest": lambda t: t.update(epsilon=1001.0),
    "mechanism unknown": lambda t: t.update(mechanism="laplase"),
    "mechanism of labels": lambda t: t.update(mechanism="k_rr"),
    "mechanism none": lambda t: t.update(mechanism=None),
    "params a list": lambda t: t.update(params=[]),
    "params of another": lambda t: t.update(params={"delta": 0.5}),
    "params nested": lambda t: t.update(params={"delta": {"x": 1}}),
    "params missing": lambda t: t.update(mechanism="gaussian"),
    "delta text": lambda t: t.update(mechanism="gaussian", params={"delta": "0.1"}),
    "delta 1": lambda t: t.update(mechanism="gaussian", params={"delta": 1}),
    "delta below 0": lambda t: t.update(mechanism="gaussian", params={"delta": -1}),
    "size of wrong kind": lambda t: t.update(
        mechanism="exponential", params={"size": "9"}
    ),
    "share 1": lambda t: t.update(label_share=1),
    "share unknown": lambda t: t.update(label_share="half"),
    "share true": lambda t: t.update(label_share=True),
    "candidates of a report": lambda t: t.update(
        candidates={"coef": [[1.0] * 4], "intercept": [0.0]}
    ),
    "candidates empty": lambda t: t.update(candidates={}),
    "basis unknown": lambda t: t["encoding"].update(basis="wavelet"),
    "basis another": lambda t: t["encoding"].update(basis="values"),
    "size huge": lambda t: t["encoding"].update(size=10**9),
    "size another": lambda t: t["encoding"].update(size=5),
    "order 0": lambda t: t["encoding"].update(order=0),
    "order another": lambda t: t["encoding"].update(order=3),
    "domain reversed": lambda t: t["encoding"].update(domain=[1.0, 0.0]),
    "domain of one": lambda t: t["encoding"].update(domain=[1.0]),
    "domain infinite": lambda t: t["encoding"].update(domain=[0, float("inf")]),
    "domain another": lambda t: t["encoding"].update(domain=[0.0, 2.0]),
    "matrix ragged": lambda t: t["encoding"]["matrix"][1].pop(),
    "matrix empty": lambda t: t["encoding"].update(matrix=[[]]),
    "matrix of text": lambda t: t["encoding"].update(matrix=[["1"] * 12] * 4),
    "matrix of a huge number": lambda t: t["encoding"]["matrix"][0].insert(0, 10**400),
    "matrix nested": lambda t: t["encoding"].update(matrix=[[[1.0]]]),
    "gram of another size": lambda t: t["encoding"].update(gram=[[1.0]]),
    "gram another": lambda t: t["encoding"].update(gram=np.eye(4)[::-1].tolist()),
    "rescale unknown": lambda t: t["encoding"].update(rescale="softmax"),
    "judge unknown": lambda t: t["encoding"].update(judge="truth"),
    "constants missing": lambda t: t["encoding"].update(constants={}),
    "constants too many": lambda t: t["encoding"]["constants"].update(lower=0.0),
    "constants of another size": lambda t: t["encoding"]["constants"].update(
        centre=[0.0, 0.0]
    ),
    "scale 0": lambda t: t["encoding"]["constants"].update(scale=0.0),
    "scale tiny": lambda t: t["encoding"]["constants"].update(scale=1e-7),
    "scale below 0": lambda t: t["encoding"]["constants"].update(scale=[-1.0] * 4),
    "bounds too near": lambda t: _bounds(t, 0.0, 1e-7),
    "bounds reversed": lambda t: _bounds(t, 1.0, 0.0),
}


def _first_with_constants() -> Document:
    """Return a report of MRMA, B-splines, rescaled by tanh."""
    name = next(n for n, t in tasks().items() if t.encoding.rescale == "tanh")
    return document(tasks()[name])


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_task_is_refused_in_words_the_same_for_every_record(
    name: str, tmp_path: Path
) -> None:
    """One printable sentence, never a traceback."""
    bent = _first_with_constants()
    MALFORMED[name](bent)
    home = Home(tmp_path)
    seen = {observed(home, bent, None, number) for number in (0, 9)}
    (one,) = seen
    assert one.outcome == "refused"
    assert one.words.isprintable()
    assert len(one.words) < 400
    assert one.words.endswith((".", "?"))


@pytest.mark.parametrize("given", [None, [], "task", 1, True, deep(5000)])
def test_what_is_no_object_is_no_task(given: Any) -> None:
    """Whatever JSON holds at the top."""
    with pytest.raises(UserError, match="not a task"):
        validate_task(given)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("direct-report-0", {"intercept": 0.0}),
        ("direct-report-0", {"intercept": "auto"}),
        ("direct-report-0", {"share": 1.5}),
        ("direct-report-0", {"square": 0}),
        ("direct-report-0", {"delta": 0.5}),
        ("direct_two-refinement-0", {"matrix": [[1.0]]}),
        ("direct_two-refinement-0", {"matrix": [[1.0]], "centre": [0.0]}),
        ("direct_two-refinement-0", {"centre": "middle"}),
        ("direct_two-refinement-0", {"centre": 0.0}),
        ("mrma-vote-0", {"delta": 0.5}),
        ("majority-report-0", {"delta": 0.5}),
    ],
)
def test_parameters_out_of_range_are_refused(name: str, change: Document) -> None:
    """Of every message: those that it needs, in their range, and no others."""
    bent = document(tasks()[name])
    bent["params"] |= change
    with pytest.raises(UserError):
        validate_task(bent)


def test_no_number_that_a_task_leads_to_can_overflow() -> None:
    """Interval arithmetic on the limits of a task's form: all far below 1e308.

    Squares of them are taken for lengths, so they must stay finite as well.
    """
    form = task_form
    d, largest = form.MOST_COEFFICIENTS, form.LARGEST_NUMBER
    coefficient = form.MOST_POINTS * largest * form.LARGEST_CURVE_VALUE
    standardised = (coefficient + largest) / form.SMALLEST_SCALE
    inner = d * largest * coefficient
    whitened = d * largest * (standardised + largest)
    decision = d * largest * max(inner, standardised) + largest
    worst = max(coefficient, standardised, inner, whitened, decision)
    assert worst < 1e75
    assert d * worst**2 < 1e160


def test_an_invitation_to_something_else_is_refused_before_the_record() -> None:
    """Another task, another question, a candidate that is not up."""
    report, vote = tasks()["mrma-report-0"], tasks()["mrma-vote-0"]
    fits = invited(vote, 1)
    check_invitation(vote, fits)
    for wrong in (None, -1, len(vote.candidates.coef)):  # type: ignore[union-attr]
        with pytest.raises(UserError, match="up for a vote"):
            check_invitation(vote, replace(fits, about=wrong))
    with pytest.raises(UserError, match="different rounds"):
        check_invitation(report, fits)
    with pytest.raises(UserError, match="none is up"):
        check_invitation(report, replace(invited(report, None), about=0))


def test_judging_asks_the_system_for_no_entropy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The trial draw is about a public record and from a public seed."""

    def refuse(count: int) -> bytes:
        raise AssertionError(f"{count} bytes")

    monkeypatch.setattr("os.urandom", refuse)
    assert (
        answer.stand_in_inputs(
            validate_task(document(tasks()["mrma-report-0"])), None
        ).labels
        == 0
    )


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where each number, text and truth of a document stands."""
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else None
    )
    if inside is None:
        yield at
        return
    for key, one in inside:
        yield from leaves(one, (*at, key))


def changes(value: Any) -> list[Any]:
    """Return what a leaf may become: something near, or the same spelled otherwise."""
    if value is None or isinstance(value, bool):
        return [not value, 0]
    if isinstance(value, int | float):
        near = [value + 1, -value, float(value), int(value), value * (1 + 2**-52)]
        return [one for one in near if repr(one) != repr(value)]
    return [value + " ", value.upper(), f"\ufeff{value}"]


def spread() -> list[str]:
    """Return tasks that hold each message and encoding twice, each mechanism once."""
    names, n_encodings = [*tasks()], len(encodings())
    return [
        name
        for place, name in enumerate(names)
        if sum(divmod(place, n_encodings)) % 11 == 0 or name.startswith("mechanism")
    ]


@pytest.mark.parametrize("name", spread())
def test_a_digest_is_that_of_the_text(name: str) -> None:
    """One leaf changed: another digest, or none, as the document is refused."""
    text = document(tasks()[name])
    was = validate_task(text).digest()
    everywhere = list(leaves(text))
    for at in everywhere[:: max(1, len(everywhere) // 12)]:
        before = text
        for key in at:
            before = before[key]
        for other in changes(before):
            changed = json.loads(json.dumps(text))
            place = changed
            for key in at[:-1]:
                place = place[key]
            place[at[-1]] = other
            try:
                found = validate_task(changed).digest()
            except UserError:
                continue
            assert found != was, (at, other)
