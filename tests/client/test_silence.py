"""Silence tells nothing: a task is judged alone, and no record changes what is seen."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.client.table import OwnerRecord, read_record
from curvote.messages.answer import (
    answer_task,
    client_inputs,
    public_centre,
    validate_task,
)
from curvote.messages.message import parse_message
from curvote.systems.mrma.messages import Report
from curvote.wire import task as task_form
from curvote.wire.task import Task
from tests.fuzzing import RECORDS, Home, bend, invited, observed, released, shape
from tests.valid_tasks import document, tasks

Document = dict[str, Any]
Change = Callable[[Document], object]


def fuzz(folder: Path, count: int, seed: int) -> Counter[str]:
    """Bend ``count`` tasks; give 20 records to each, and compare all that is seen."""
    rng, home = random.Random(seed), Home(folder)
    published = [*tasks().values()]
    outcomes: Counter[str] = Counter()
    for _ in range(count):
        bent, other = (document(rng.choice(published)) for _ in range(2))
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
        task = validate_task(bent)
        invitation = invited(task, about)
        seen += [released(home, task, invitation, k) for k in range(2, RECORDS)]
    assert all(each == first for each in seen), (bent, set(map(str, seen)))
    assert first.words.isprintable()
    return first.outcome


def test_400_bent_tasks_show_nothing_of_twenty_records(tmp_path: Path) -> None:
    """No traceback; outcome, words, ledger, files and the message's form agree."""
    outcomes = fuzz(tmp_path, 400, 1)
    assert min(outcomes["sent"], outcomes["refused"]) > 80


@pytest.mark.faults
def test_ten_thousand_bent_tasks_show_nothing_of_twenty_records(tmp_path: Path) -> None:
    """The same with more tasks."""
    outcomes = fuzz(tmp_path, 10_000, 2)
    assert min(outcomes["sent"], outcomes["refused"]) > 2_000


@pytest.mark.parametrize("leak", ["refusal", "length", "traceback"])
def test_the_comparison_sees_a_client_that_tells(leak, tmp_path, monkeypatch):
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
def test_a_threshold_in_a_tasks_constants_is_refused_for_every_record(attack, tmp_path):
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
            validate_task(bent)
    bent = document(tasks()["mrma-report-1"])
    bent["encoding"]["matrix"][2][5] *= 1 + 1e-7
    with pytest.raises(UserError, match="multiplies its curve by no other"):
        validate_task(bent)


def _extreme(name: str) -> Document:
    """Return a task with the largest public numbers that its form allows."""
    bent = document(tasks()[name])
    most, least = task_form.LARGEST_NUMBER, task_form.SMALLEST_SCALE
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


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.faults) if i % 4 else name
        for i, name in enumerate([*tasks()][::5])
    ],
)
def test_the_largest_numbers_of_a_task_meet_every_record(name, tmp_path):
    """Inputs are finite, and all records show the same, without a warning."""
    home, bent = Home(tmp_path), _extreme(name)
    points = len(bent["encoding"]["matrix"][0])
    seen = [observed(home, bent, 0, number) for number in range(RECORDS)]
    assert {each.outcome for each in seen} == {"sent"}
    assert all(each == seen[0] for each in seen)
    for number in range(RECORDS):
        task = validate_task(bent)
        given = read_record(home.record(number, points), "yes", task)
        told = client_inputs(task, given, 0)
        assert np.isfinite(told.z).all()
        assert np.isfinite(told.coefficients).all()


def test_a_missing_value_stands_for_the_public_centre() -> None:
    """And values beyond the bound for the bound; the label stays."""
    for name in ("mrma-report-1", "mrma-report-2", "mrma-report-3", "mrma-report-4"):
        task = tasks()[name]
        values = np.full(12, 7.0)
        values[3] = np.nan
        told = client_inputs(task, OwnerRecord(values, 1), None)
        assert np.array_equal(told.coefficients, public_centre(task.encoding))
        assert told.labels == 1
        if task.encoding.constants:
            assert np.allclose(told.z, 0)
    high, bound = (
        client_inputs(
            tasks()["mrma-report-0"], OwnerRecord(np.full(12, value), 1), None
        )
        for value in (np.inf, task_form.LARGEST_CURVE_VALUE)
    )
    assert np.array_equal(high.z, bound.z)


def test_a_draw_that_fails_for_one_record_is_answered_as_for_a_public_one(monkeypatch):
    """Whatever fails inside: the message of another record has the same form."""
    task = validate_task(document(tasks()["mrma-report-0"]))
    whole = answer_task(task, OwnerRecord(np.ones(12), 1), None, SeededEntropy(1))
    real = Report.draw

    def fails(self: Report, task: Task, told: Any, entropy: Any) -> Any:
        if (told.labels > 0).all():
            raise ZeroDivisionError("only for label +1")
        return real(self, task, told, entropy)

    monkeypatch.setattr(Report, "draw", fails)
    other = answer_task(task, OwnerRecord(np.ones(12), 1), None, SeededEntropy(1))
    assert shape(other) == shape(whole)
    parse_message(task, None, other)
