"""NHANES 2013-2014: who becomes a client, and what the hours of the day are."""

import json
import math
import tracemalloc
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.data import raw_files
from curvote.data.public import nhanes
from curvote.data.public.nhanes import Parameters
from curvote.data.raw_files import read
from tests import nhanes_files, xport_file
from tests.nhanes_files import SAMPLES, put, week
from tests.real_files import MIRROR, needs_mirror

WOMAN = (101.0, 2.0, 40.0, 55.0, 1.0)


def _table(*people: int) -> pd.DataFrame:
    generator = np.random.default_rng(7)
    return pd.concat([week(seqn, generator) for seqn in people], ignore_index=True)


def _damaged(frame: pd.DataFrame) -> pd.DataFrame:
    """Take rows away, repeat some, flag minutes, take the monitor off, lose sums."""
    generator = np.random.default_rng(8)
    n = len(frame)
    frame["PAXVMH"] = generator.choice([60, 60, 60, 45, 20, 0, math.nan], n)
    frame["PAXNWMH"] = (generator.choice([0, 0, 0, 0.5, 1], n)) * frame["PAXVMH"]
    frame.loc[generator.random(n) < 0.02, "PAXMTSH"] = math.nan
    kept = frame[generator.random(n) > 0.004]
    return pd.concat([kept, frame.sample(3, random_state=1)]).sample(
        frac=1, random_state=2
    )


def _by_hand(
    frame: pd.DataFrame, minutes: int, hours: int, days: int
) -> dict[int, list[float]]:
    """Return the mean days, computed row by row from the codebook's words."""
    curves: dict[int, list[float]] = {}
    for seqn, person in frame.groupby("SEQN"):
        slots: list[list[float]] = [[] for _ in range(24)]
        valid = 0
        for day, rows in person.groupby("PAXDAYH"):
            ordered = rows.sort_values("PAXSSNHP").to_dict("records")
            starts = {row["PAXSSNHP"] for row in ordered}
            if day in {1, 9} or len(ordered) != 24 or len(starts) != 24:
                continue
            rates = {
                hour: row["PAXMTSH"] / row["PAXVMH"] * 60
                for hour, row in enumerate(ordered)
                if row["PAXVMH"] - row["PAXNWMH"] >= minutes
                and not math.isnan(row["PAXMTSH"])
            }
            if len(rates) >= hours:
                valid += 1
                for hour, rate in rates.items():
                    slots[hour].append(rate)
        if valid >= days and all(slots):
            curves[int(str(seqn))] = [sum(slot) / len(slot) for slot in slots]
    return curves


@cache
def _damaged_file() -> tuple[pd.DataFrame, bytes]:
    frame = _damaged(_table(*range(1, 13)))
    return frame, nhanes_files.hours(frame)


@pytest.mark.parametrize(
    ("minutes", "hours", "days", "size"),
    [*product([1, 20, 60], [1, 12], [1, 4], [100_000]), (1, 1, 1, 50), (60, 12, 4, 50)],
)
def test_curves_are_those_computed_by_hand(monkeypatch, minutes, hours, days, size):
    """In any row order and chunk size, with gaps, repeated rows and missing sums."""
    monkeypatch.setattr(nhanes, "read_chunks", partial(nhanes.read_chunks, size=size))
    frame, data = _damaged_file()
    ids, curves = nhanes.mean_days(data, np.arange(2, 13), minutes, hours, days)
    expected = _by_hand(frame[frame["SEQN"] > 1], minutes, hours, days)
    assert ids.tolist() == list(expected)
    np.testing.assert_allclose(curves, np.reshape([*expected.values()], (-1, 24)))
    if (minutes, hours, days) == (1, 1, 1):
        assert len(ids) > 8


def test_the_rank_in_a_day_is_the_hour(tmp_path: Path) -> None:
    """With one value an hour the curve is these values, whatever days 1 and 9 hold."""
    frame = _table(101)
    frame["PAXMTSH"] = np.where(frame["PAXDAYH"].isin([1, 9]), 9999.0, 0.0)
    inside = frame["PAXMTSH"] == 0
    frame.loc[inside, "PAXMTSH"] = np.tile(np.arange(24.0), 7)
    assert frame.loc[inside, "PAXSSNHP"].iloc[0] == 10.5 * SAMPLES  # 13:30 to 24:00
    shuffled = frame.sample(frac=1, random_state=3)
    columns = nhanes.clients(Parameters(), put(tmp_path, [WOMAN], shuffled))
    assert columns["curve"].tolist() == [[float(hour) for hour in range(24)]]


def test_twenty_four_rows_may_yet_be_no_day(tmp_path: Path) -> None:
    """A day 1 from 00:30 on is partial; a repeated hour does not fill a gap."""
    frame = _table(101)
    frame["PAXMTSH"] = 1.0
    first = frame[frame["PAXDAYH"] == 2].assign(PAXDAYH=1, PAXMTSH=9.0)
    gap = frame[frame["PAXDAYH"] == 4].assign(PAXDAYH=3, PAXMTSH=9.0)
    gap.loc[gap.index[5], "PAXSSNHP"] = gap.loc[gap.index[6], "PAXSSNHP"]
    frame = pd.concat([first, gap, frame[~frame["PAXDAYH"].isin([1, 3])]])
    columns = nhanes.clients(Parameters(), put(tmp_path, [WOMAN], frame))
    assert columns["curve"].tolist() == [[1.0] * 24]


def test_a_sum_over_valid_minutes_becomes_a_rate(tmp_path: Path) -> None:
    """Half the valid minutes with half the sum give the same MIMS an hour."""
    frame = _table(101)
    frame["PAXVMH"], frame["PAXMTSH"] = 30.0, 150.0
    columns = nhanes.clients(Parameters(), put(tmp_path, [WOMAN], frame))
    assert columns["curve"].tolist() == [[300.0] * 24]


def test_only_women_of_twenty_with_everything_take_part(tmp_path: Path) -> None:
    """HDL is healthy from 50 mg/dL on; whoever lacks something is counted."""
    people = [
        (106.0, 2.0, 20.0, 50.0, 1.0),
        (101.0, 2.0, 80.0, 49.0, 1.0),
        (102.0, 1.0, 40.0, 60.0, 1.0),  # a man
        (103.0, 2.0, 19.0, 60.0, 1.0),  # too young
        (104.0, 2.0, 40.0, math.nan, 1.0),
        (105.0, 2.0, 40.0, 60.0, 2.0),  # no monitor data
        (107.0, 2.0, 40.0, 60.0, 1.0),  # no hours
        (108.0, 2.0, 40.0, 60.0, 1.0),  # never worn
    ]
    frame = _table(101, 102, 103, 104, 105, 106, 108)
    frame.loc[frame["SEQN"] == 108, "PAXNWMH"] = 60.0
    paths = put(tmp_path, people, frame)
    columns = nhanes.clients(Parameters(), paths)
    facts = json.loads(json.dumps(nhanes.facts(Parameters(), paths)))
    assert columns["client_id"].tolist() == [101, 106]
    assert columns["label"].tolist() == [0, 1]
    assert columns["curve"].shape == (2, 24)
    assert facts["counts"] == {"low HDL": 1, "healthy HDL": 1}
    lost = {"HDL": 1, "monitor data": 1, "enough valid days": 2}
    assert facts["missing"] == {"policy": "drop", "counts": lost}
    assert facts["grid"] == list(range(24))
    assert facts["rows"] == 2
    assert "enough valid days 2" in facts["notes"][0]


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    """What one run remembers never outlives the bytes it came from."""
    frame = _table(101)
    before = nhanes.clients(Parameters(), put(tmp_path, [WOMAN], frame))
    frame["PAXMTSH"] += 1
    after = nhanes.clients(Parameters(), put(tmp_path, [WOMAN], frame))
    np.testing.assert_allclose(after["curve"], before["curve"] + 1)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("PAXMTSH", -0.01, r"PAXMTSH is not within \[0, inf\] in 1, the first row 41"),
        ("PAXVMH", 61.0, "PAXVMH is not within"),
        ("PAXNWMH", -1.0, "PAXNWMH is not within"),
        ("PAXSSNHP", math.nan, "PAXSSNHP is missing in 1"),
        ("SEQN", 101.5, "SEQN is not whole"),
        ("PAXDAYH", 0, "PAXDAYH is not within"),
    ],
)
def test_impossible_hours_are_refused(column: str, value: float, message: str) -> None:
    """A negative sum is no value, and no minute is counted twice."""
    frame = _table(101).astype({column: object})
    frame.loc[40, column] = value
    with pytest.raises(UserError, match=message):
        nhanes.check_hours(nhanes_files.hours(frame))


def test_nobody_left_is_a_user_error(tmp_path: Path) -> None:
    """The message says which parameters may be lowered."""
    frame = _table(101)[lambda rows: rows["PAXDAYH"] < 5]
    paths = put(tmp_path, [WOMAN], frame)
    assert len(nhanes.clients(Parameters(days=3), paths)["label"]) == 1
    with pytest.raises(UserError, match="lower valid_minutes, valid_hours or days"):
        nhanes.clients(Parameters(days=4), paths)


def test_each_file_is_checked_for_rows_and_people(tmp_path: Path) -> None:
    """Another number of rows, or a person twice, is another edition."""
    paths = put(tmp_path, [WOMAN, (102.0, 1.0, 5.0, 60.0, 1.0)], _table(101))
    for name in nhanes.files(Parameters()):
        rows = 193 if name == nhanes.HOURS else 2
        source = replace(raw_files.find(name), rows=rows)
        nhanes.check(read(paths[name]), source)
        with pytest.raises(UserError, match=f"{rows} rows instead of 7"):
            nhanes.check(read(paths[name]), replace(source, rows=7))
    twice = put(tmp_path, [WOMAN, WOMAN], _table(101))
    with pytest.raises(
        UserError,
        match=r"demographics\.xpt: 1 rows repeat.*101|header\.xpt: 1 rows repeat.*101",
    ):
        nhanes.clients(Parameters(), twice)


def test_memory_is_bounded_by_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the file's bytes a chunk and the wanted hours are held, no more.

    5 MB and chunks of a fifth here; the published file has 145 MB in the same layout,
    so that it stays far below 1 GiB.
    """
    size = nhanes.CHUNK // 5
    monkeypatch.setattr(nhanes, "read_chunks", partial(nhanes.read_chunks, size=size))
    frame = _table(101)
    rows = nhanes_files.hours(frame)
    header = rows.index(b"OBS     ") + 60
    width = 5 * 8 + 1
    body = rows[header : header + len(frame) * width]
    times = 5_000_000 // len(body) // 80 * 80  # whole cards
    data = rows[:header] + body * times
    tracemalloc.start()
    ids, _ = nhanes.mean_days(data, np.array([102]), 30, 16, 1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not len(ids)
    assert nhanes.check_hours(data) == len(frame) * times > 4 * size
    assert peak < 1.5 * len(data)
    assert peak < 10e6


@needs_mirror
def test_the_published_cohort_lies_between_two_wear_rules() -> None:
    """Women aged 20 or older with HDL: 2410 are published, 64.6 % of them healthy.

    With any monitor data there are 2479 (2.9 % more), with one day by the strict rule
    of the derived table 2284 (5.2 % fewer); only the wear rule is left to differ.
    """
    folder = Path(str(MIRROR))
    files = {
        nhanes.DEMOGRAPHICS: folder / "DEMO_H.XPT.gz",
        nhanes.HDL: folder / "HDL_H.XPT",
    }
    people = {
        name: nhanes._read_persons(name, read(path)) for name, path in files.items()
    }
    hdl = nhanes.women_hdl(people[nhanes.DEMOGRAPHICS], people[nhanes.HDL]).dropna()
    table = nhanes.read_activity(
        read(folder / "nhanes_2013_2014_activity_summary.csv.gz")
    )
    worn = table.set_index("SEQN")["num_valid_days"]
    monitored = hdl[hdl.index.isin(worn.index)]
    strict = hdl[hdl.index.isin(worn.index[worn >= 1])]
    assert (len(hdl), len(monitored), len(strict)) == (2795, 2479, 2284)
    assert len(strict) < 2410 < len(monitored) < 1.03 * 2410
    for women in (monitored, strict):
        assert (women >= nhanes.HEALTHY).mean() == pytest.approx(0.646, abs=0.02)


@needs_mirror
def test_the_real_files_are_as_listed() -> None:
    """Schema and rows agree; the 405 infants have age 0; ages agree between files."""
    folder = Path(str(MIRROR))
    for name in (nhanes.DEMOGRAPHICS, nhanes.HDL, nhanes.ACTIVITY):
        source = raw_files.find(name)
        path = next(folder.glob(f"{source.file}*"))
        nhanes.check(read(path), source)
    demographics = nhanes._read_persons(
        nhanes.DEMOGRAPHICS, read(folder / "DEMO_H.XPT.gz")
    )
    assert (demographics["RIDAGEYR"] == 0).sum() == 405
    table = nhanes.read_activity(
        read(folder / "nhanes_2013_2014_activity_summary.csv.gz")
    )
    same = demographics.loc[table["SEQN"].astype(int)]
    assert same["RIDAGEYR"].tolist() == table["age_in_years_at_screening"].tolist()
    assert (same["RIAGENDR"] - 1).tolist() == table["gender"].tolist()


def test_ibm_arrays_agree_with_single_numbers() -> None:
    """The fast writer of large files writes what the plain one writes."""
    values = np.array([0.0, -2.5, 1e6, math.nan])
    expected = [xport_file.ibm(value) for value in values.tolist()]
    assert [bytes(cell) for cell in xport_file.ibm_array(values)] == expected
