"""Silence tells nothing: a task is judged alone, and no record changes what is seen."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from curvote import task_form
from curvote.client.record import Given, read_form
from curvote.entropy import SeededEntropy
from curvote.errors import UserError
from curvote.protocols import answering
from curvote.protocols.answering import answer, centre, known
from curvote.protocols.judging import check_invitation, judged
from curvote.protocols.message import check
from curvote.protocols.mrma.messages import Report
from curvote.task import Task
from tests.fuzzing import (
    RECORDS,
    Home,
    bend,
    deep,
    invited,
    observed,
    released,
    shape,
)
from tests.valid_tasks import document, tasks

Document = dict[str, Any]
Change = Callable[[Document], object]


def fuzz(folder: Path, count: int, seed: int) -> Counter[str]:
    """Bend ``count`` tasks; give 20 records to each, and compare all that is seen."""
    rng, home = random.Random(seed), Home(folder)
    published = [document(task) for task in tasks().values()]
    outcomes: Counter[str] = Counter()
    for _ in range(count):
        bent, other = deepcopy(rng.choice(published)), rng.choice(published)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            bend(rng, bent, other)
        about = rng.choice([0, 0, 0, 1, 10**9, -1])
        outcomes[_same_for_all(home, bent, about)] += 1
    return outcomes


def _same_for_all(home: Home, bent: Document, about: int) -> str:
    """Return the one outcome of a task; it is the same for every record."""
    first, second = (observed(home, bent, about, number) for number in (0, 1))
    seen = [first, second]
    if first.outcome == "sent":
        task = judged(bent)
        invitation = invited(task, about)
        seen += [released(home, task, invitation, k) for k in range(2, RECORDS)]
    assert all(each == first for each in seen), (bent, set(map(str, seen)))
    assert first.words.isprintable()
    return first.outcome


def test_a_thousand_bent_tasks_show_nothing_of_twenty_records(tmp_path: Path) -> None:
    """No traceback; outcome, words, ledger, files and the message's form agree."""
    outcomes = fuzz(tmp_path, 1_000, 1)
    assert min(outcomes["sent"], outcomes["refused"]) > 200


@pytest.mark.faults
def test_ten_thousand_bent_tasks_show_nothing_of_twenty_records(tmp_path: Path) -> None:
    """The same with more tasks."""
    outcomes = fuzz(tmp_path, 10_000, 2)
    assert min(outcomes["sent"], outcomes["refused"]) > 2_000


@pytest.mark.parametrize("name", tasks())
def test_what_curvote_publishes_is_accepted_unchanged(name: str) -> None:
    """Every protocol, basis, rescaling and mechanism; the digest stays."""
    task = tasks()[name]
    assert judged(document(task)).digest() == task.digest()


# Each makes something overflow, or fail, exactly if the record is beyond a threshold.
THRESHOLDS: dict[str, tuple[str, Change]] = {
    "matrix": ("", lambda t: t["encoding"].update(matrix=_times(t, "matrix", 1e300))),
    "gram": ("-vote-", lambda t: t["encoding"].update(gram=_times(t, "gram", 1e305))),
    "scale": ("", lambda t: _constants(t, "standard", centre=0.0, scale=1e-308)),
    "centre": ("", lambda t: _constants(t, "standard", centre=1.7e308, scale=1.0)),
    "bounds": ("", lambda t: _constants(t, "min_max", lower=-1e308, upper=7e307)),
    "whitening": (
        "refinement",
        lambda t: t["params"].update(matrix=_rows(t["params"]["matrix"], 1e307)),
    ),
    "moved": (
        "refinement",
        lambda t: t["params"].update(centre=[1e308] * len(t["params"]["centre"])),
    ),
    "candidate": (
        "-vote-",
        lambda t: t["candidates"].update(coef=_rows(t["candidates"]["coef"], 1e307)),
    ),
    "intercept": (
        "-vote-",
        lambda t: t["candidates"].update(
            intercept=[-1.7e308] * len(t["candidates"]["intercept"])
        ),
    ),
}


def _rows(rows: list[list[float]], factor: float) -> list[list[float]]:
    return [[value * factor for value in row] for row in rows]


def _times(task: Document, name: str, factor: float) -> list[list[float]]:
    return _rows(task["encoding"][name], factor)


def _constants(task: Document, rescale: str, **constants: float) -> None:
    task["encoding"].update(rescale=rescale, constants=constants)


def _of_each_protocol(part: str) -> list[str]:
    return [name for name in tasks() if name.endswith("-1") and part in name]


@pytest.mark.parametrize("attack", THRESHOLDS)
def test_a_threshold_in_a_tasks_constants_is_refused_for_every_record(
    attack: str, tmp_path: Path
) -> None:
    """Rising thresholds read any coefficient to 2 %: in every protocol."""
    part, change = THRESHOLDS[attack]
    names = _of_each_protocol(part)
    assert names
    for name in names:
        bent = document(tasks()[name])
        change(bent)
        seen = {observed(Home(tmp_path), bent, 0, number) for number in (0, 9, 13)}
        assert [each.outcome for each in seen] == ["refused"], name


def test_a_free_matrix_is_refused(tmp_path: Path) -> None:
    """One value of the curve instead of the first coefficient; also another grid's."""
    for name in _of_each_protocol(""):
        bent = document(tasks()[name])
        matrix = bent["encoding"]["matrix"]
        matrix[0] = [1.0] + [0.0] * (len(matrix[0]) - 1)
        with pytest.raises(UserError, match="not that of basis"):
            judged(bent)
    bent = document(tasks()["mrma-report-1"])
    bent["encoding"]["matrix"][2][5] *= 1 + 1e-7
    with pytest.raises(UserError, match="multiplies its curve by no other"):
        judged(bent)


@pytest.mark.parametrize(
    "classes",
    [
        ["yes, certainly", "no"],
        ["yes", "yes"],
        ["yes", "YES"],
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
        judged(bent)


def test_a_label_outside_the_classes_is_told_before_the_file_is_opened() -> None:
    """To the owner alone; the file need not even be there."""
    task = tasks()["mrma-report-0"]
    with pytest.raises(UserError, match="Known: no, yes"):
        read_form(Path("nowhere.csv"), "male", task)


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
    "bounds too near": lambda t: _constants(t, "min_max", lower=0.0, upper=1e-7),
    "bounds reversed": lambda t: _constants(t, "min_max", lower=1.0, upper=0.0),
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
        judged(given)


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
        judged(bent)


def test_no_number_that_a_task_leads_to_can_overflow() -> None:
    """Interval arithmetic on the limits of a task's form: all far below 1e308.

    Squares of them are taken for lengths, so they must stay finite as well.
    """
    form = task_form
    d, largest = form.MOST_COEFFICIENTS, form.LARGEST
    coefficient = form.MOST_POINTS * largest * form.LARGEST_VALUE
    standardised = (coefficient + largest) / form.SMALLEST_SCALE
    inner = d * largest * coefficient
    whitened = d * largest * (standardised + largest)
    decision = d * largest * max(inner, standardised) + largest
    worst = max(coefficient, standardised, inner, whitened, decision)
    assert worst < 1e75
    assert d * worst**2 < 1e160


def _extreme(name: str) -> Document:
    """Return a task with the largest public numbers that its form allows."""
    bent = document(tasks()[name])
    most, least = task_form.LARGEST, task_form.SMALLEST_SCALE
    known = {"centre": -most, "scale": least, "lower": -most, "upper": most}
    constants = bent["encoding"]["constants"]
    bent["encoding"]["constants"] = {key: known[key] for key in constants}
    d = len(bent["encoding"]["matrix"])
    if bent["candidates"]:
        count = len(bent["candidates"]["intercept"])
        coef, intercept = [[most] * d] * count, [-most] * count
        bent["candidates"] = {"coef": coef, "intercept": intercept}
    if "matrix" in bent["params"]:
        bent["params"] |= {"matrix": [[most] * d] * d, "centre": [most] * d}
    return bent


@pytest.mark.parametrize("name", [*tasks()][::5])
def test_the_largest_numbers_of_a_task_meet_every_record(
    name: str, tmp_path: Path
) -> None:
    """Inputs are finite, and all records show the same, without a warning."""
    home, bent = Home(tmp_path), _extreme(name)
    points = len(bent["encoding"]["matrix"][0])
    seen = [observed(home, bent, 0, number) for number in range(RECORDS)]
    assert {each.outcome for each in seen} == {"sent"}
    assert all(each == seen[0] for each in seen)
    for number in range(RECORDS):
        task = judged(bent)
        given = read_form(home.record(number, points), "yes", task)
        told = known(task, given, 0)
        assert np.isfinite(told.z).all()
        assert np.isfinite(told.coefficients).all()


def test_a_missing_value_stands_for_the_public_centre() -> None:
    """And values beyond the bound for the bound; the label stays."""
    for name in ("mrma-report-1", "mrma-report-2", "mrma-report-3", "mrma-report-4"):
        task = tasks()[name]
        values = np.full(12, 7.0)
        values[3] = np.nan
        told = known(task, Given(values, 1.0), None)
        assert np.array_equal(told.coefficients, centre(task.encoding))
        assert told.labels == 1
        if task.encoding.constants:
            assert np.allclose(told.z, 0)
    high, bound = (
        known(tasks()["mrma-report-0"], Given(np.full(12, value), 1.0), None)
        for value in (np.inf, task_form.LARGEST_VALUE)
    )
    assert np.array_equal(high.z, bound.z)


def test_a_draw_that_fails_for_one_record_is_answered_as_for_a_public_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever fails inside: the message of another record has the same form."""
    task = judged(document(tasks()["mrma-report-0"]))
    whole = answer(task, Given(np.ones(12), 1.0), None, SeededEntropy(1))
    real = Report.draw

    def fails(self: Report, task: Task, told: Any, entropy: Any) -> Any:
        if (told.labels > 0).all():
            raise ZeroDivisionError("only for label +1")
        return real(self, task, told, entropy)

    monkeypatch.setattr(Report, "draw", fails)
    other = answer(task, Given(np.ones(12), 1.0), None, SeededEntropy(1))
    assert shape(other) == shape(whole)
    check(task, None, other)


def test_the_form_of_a_file_is_told_its_values_are_not(tmp_path: Path) -> None:
    """Missing, infinite and too large numbers are values, in one row or one column."""
    task = tasks()["mrma-report-3"]
    task = replace(task, encoding=tasks()["mrma-report-16"].encoding)
    assert task.encoding.d == 3
    path = tmp_path / "curve.csv"
    for text, found in {
        "1,,3\n": [1, np.nan, 3],
        "a,b,c\n1,NA,1e999\n": [1, np.nan, np.inf],
        "1\n\n-inf\n": [1, np.nan, -np.inf],
        "t\nnull\n2\n\n": [np.nan, 2, np.nan],
        "1,2,3\n\n\n": [1, 2, 3],
        "\ufeff1,2, 3\n": [1, 2, 3],
        "1\n2\n3\n\n\n": [1, 2, 3],
        "9" * 400 + "\n1\n2\n": [np.inf, 1, 2],
        ",,\n": [np.nan] * 3,
    }.items():
        path.write_text(text, encoding="utf-8")
        given = read_form(path, "yes", task)
        assert np.array_equal(given.values, found, equal_nan=True), text
    for text in ("1,2\n", "1,2,x\n", "1,2,3\n4,5\n", "", "\n", "1;2;3\n", "1,2,3x\n"):
        path.write_text(text)
        with pytest.raises(UserError, match=r"curve\.csv"):
            read_form(path, "yes", task)
    path.write_bytes(b"\xff\xfe1,2,3")
    with pytest.raises(UserError, match="no such table"):
        read_form(path, "yes", task)


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
    assert answering.fixed(judged(document(tasks()["mrma-report-0"])), None).labels < 0


@pytest.mark.parametrize("leak", ["refusal", "length", "traceback"])
def test_the_comparison_sees_a_client_that_tells(
    leak: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: one record is refused, or its message is longer, or it crashes."""
    real = Report.draw

    def tells(self: Report, task: Task, told: Any, entropy: Any) -> Any:
        drawn = real(self, task, told, entropy)
        if np.abs(told.coefficients).max() < 1e12:
            return drawn
        if leak == "length":
            return drawn | {"z": drawn["z"][:, :-1]}
        raise UserError("too large") if leak == "refusal" else ZeroDivisionError

    monkeypatch.setattr(Report, "draw", tells)
    home, published = Home(tmp_path), document(tasks()["mrma-report-0"])
    with pytest.raises(AssertionError):
        _same_for_all(home, published, 0)


def test_a_parquet_file_is_read_in_the_same_form(tmp_path: Path) -> None:
    """Nulls are missing values, of every kind of column; words are no numbers."""
    task = replace(
        tasks()["mrma-report-3"], encoding=tasks()["mrma-report-16"].encoding
    )
    path = tmp_path / "curve.parquet"
    for values in (
        [1.0, None, np.inf],
        pd.array([1, None, 3], dtype="Int64"),
        [Decimal(1), Decimal("NaN"), None],
        ["1", "", "1e999"],
    ):
        pd.DataFrame({"v": values}).to_parquet(path)
        given = read_form(path, "yes", task)
        assert given.values[0] == 1
        assert np.isnan(given.values[1])
    for wrong in (["1", "a", "2"], [[1], [2], [3]], pd.to_datetime(["2020"] * 3)):
        pd.DataFrame({"v": wrong}).to_parquet(path)
        with pytest.raises(UserError, match="is no number"):
            read_form(path, "yes", task)
    path.write_bytes(b"PAR1")
    with pytest.raises(UserError, match="no such table"):
        read_form(path, "yes", task)


def test_a_client_loads_no_heavy_library(tmp_path: Path) -> None:
    """To judge a task of functions and answer it: neither scikit-fda nor pandas."""
    (tmp_path / "task.json").write_text(json.dumps(document(tasks()["mrma-report-0"])))
    (tmp_path / "curve.csv").write_text("1\n" * 12)
    code = (
        "import json, sys; from pathlib import Path;"
        " from curvote.client.record import read_form;"
        " from curvote.entropy import SystemEntropy;"
        " from curvote.protocols.answering import answer;"
        " from curvote.protocols.judging import judged;"
        " task = judged(json.loads(Path('task.json').read_text()));"
        " given = read_form(Path('curve.csv'), 'yes', task);"
        " answer(task, given, None, SystemEntropy()); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    heavy = {"skfda", "pandas", "pyarrow", "sklearn", "matplotlib", "prefect", "mlflow"}
    assert not heavy & set(done.stdout.split())
