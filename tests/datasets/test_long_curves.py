"""The promises of a user's own curves: interpolation, gaps, blocks, refusals."""

from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from curvote.base.errors import UserError
from curvote.curves.smoothing import smooth
from curvote.data.tables import cells, curves
from tests import long_file
from tests.long_file import PARAMETERS, parameters, read, write

TABLE = long_file.frame()


@pytest.mark.parametrize("name", ["long.parquet", "long.csv", "long.csv.gz"])
@pytest.mark.parametrize("rows", [1, 7, curves.ROWS])
def test_curves_are_those_of_a_loop_over_clients(tmp_path, monkeypatch, name, rows):
    """Whatever the format and the blocks: same clients, curves, labels, in order."""
    monkeypatch.setattr(curves.LongReader.blocks, "__defaults__", (rows,))
    expected = long_file.one_by_one(TABLE)
    table = read(write(TABLE, tmp_path, name))
    assert 10 < len(expected) < 40
    assert table["client_id"].tolist() == list(expected)
    assert table["label"].tolist() == [who % 2 for who in expected]
    assert table["group"].tolist() == list(range(len(expected)))
    assert table["curve"] == pytest.approx(np.array([*expected.values()]), abs=1e-9)


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_pieces_have_at_most_so_many_clients(tmp_path, monkeypatch, most):
    """Pieces follow each other and make the same table, however small they are."""
    path = write(TABLE, tmp_path)
    whole = read(path)
    monkeypatch.setattr(curves, "CLIENTS", most)
    parts = list(curves.pieces(PARAMETERS, {"path": path}))
    assert max(len(part["curve"]) for part in parts) <= most
    assert min(len(part["curve"]) for part in parts) >= 1
    for name, column in whole.items():
        assert np.array_equal(np.concatenate([part[name] for part in parts]), column)


def test_long_curves_make_small_pieces(tmp_path, monkeypatch):
    """A piece of fine curves has fewer clients, so that memory stays bounded."""
    monkeypatch.setattr(curves, "_VALUES", 9 * 5)
    paths = {"path": write(TABLE, tmp_path)}
    assert max(len(p["curve"]) for p in curves.pieces(PARAMETERS, paths)) <= 5


def test_a_measurement_on_the_grid_is_kept_exactly(tmp_path: Path) -> None:
    """No rounding where nothing is joined; level ends, straight lines between."""
    grid = PARAMETERS.points
    steps = np.random.default_rng(2).lognormal(0, 9, size=(50, len(grid)))
    table = pd.DataFrame(
        {
            "who": np.repeat(np.arange(50), len(grid)),
            "hour": np.tile(grid, 50),
            "steps": steps.ravel(),
            "group": np.repeat(["ill", "well"], 25 * len(grid)),
        }
    )
    assert np.array_equal(read(write(table, tmp_path))["curve"], steps)
    halves = table[table["hour"].isin([3, 9, 21])].assign(steps=lambda t: t["hour"])
    curve = read(write(halves, tmp_path), parameters(gaps={"most": 24}))["curve"][0]
    assert curve.tolist() == [3, 3, 6, 9, 12, 15, 18, 21, 21]


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
def test_smoothed_curves_may_lack_values_and_whoever_lacks_a_channel_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """An empty cell is no measurement; lines would refuse it; blocks change no bit."""
    table = TABLE.assign(more=np.where(TABLE.index % 5, TABLE["steps"], np.nan))
    kept = list(long_file.one_by_one(TABLE))
    table.loc[table["who"] == kept[0], "more"] = np.nan
    path = write(table, tmp_path, name)
    given = parameters(value=["steps", "more"], irregular="smooth", gaps={"most": 9})
    found = read(path, given)
    assert kept[0] not in found["client_id"]
    assert found["curve"].shape[1] == curves.width(given) == 18
    own = TABLE[TABLE["who"] == found["client_id"][3]].to_numpy()[:, 1:3].astype(float)
    expected = smooth(given.points, np.array([0, len(own)]), own[:, 0], own[:, 1:])
    assert found["curve"][3, :9] == pytest.approx(expected[0], abs=1e-9)
    monkeypatch.setattr(curves, "CLIENTS", 3)
    assert np.array_equal(read(path, given)["curve"], found["curve"])
    with pytest.raises(UserError, match="more is not a finite number"):
        read(path, given.model_copy(update={"irregular": "interpolate"}))


def test_neighbours_in_the_file_do_not_mix(tmp_path: Path) -> None:
    """Neither a gap nor a repeated time reaches from one client to the next."""
    hours = [4.0, 8, 12, 16, 20]
    clients = {1: hours, 2: [20.0], 3: [20, 21.0], 4: hours, 5: [30.0], 6: hours}
    parts = [
        pd.DataFrame({"who": who, "hour": own, "steps": 1.0, "group": "ill"})
        for who, own in clients.items()
    ]
    parts[-1]["group"] = "well"
    assert read(write(pd.concat(parts), tmp_path))["client_id"].tolist() == [1, 4, 6]


@pytest.mark.parametrize(
    ("hours", "kept"),
    [
        ([0, 4, 8, 12, 16, 20, 24], True),
        ([4, 8, 12, 16, 20], True),
        ([4.01, 8, 12, 16, 20], False),
        ([4, 8, 12, 16, 19.99], False),
        ([0, 4, 8, 12.01, 16, 20, 24], False),
        ([-9, 0, 4, 8, 12, 16, 20, 24, 40], True),
        ([-9, 1, 5, 9, 13, 17, 21, 24], False),
        ([12], False),
    ],
)
def test_long_gaps_leave_a_client_out(tmp_path, hours, kept):
    """Gaps and ends of exactly ``most`` pass; gaps beyond the grid do not count."""
    more = TABLE[TABLE["who"].isin(list(long_file.one_by_one(TABLE)))]
    one = pd.DataFrame({"who": 10**6, "hour": hours, "steps": 1.0, "group": "ill"})
    path = write(pd.concat([one, more]), tmp_path)
    assert (10**6 in read(path)["client_id"]) == kept


def test_rounding_makes_no_gap(tmp_path: Path) -> None:
    """Tenths that are exactly ``most`` apart pass, though 0.4 - 0.3 is above 0.1."""
    tenths = np.arange(241) / 10
    parts = [
        pd.DataFrame({"who": who, "hour": tenths, "steps": 1.0, "group": group})
        for who, group in ((1, "ill"), (2, "well"))
    ]
    table = read(write(pd.concat(parts), tmp_path), parameters(gaps={"most": 0.1}))
    assert len(table["curve"]) == 2


def test_facts_count_who_was_left_out(tmp_path: Path) -> None:
    """Read, kept, left out for a gap, left out at the ends: they add up."""
    facts = curves.facts(PARAMETERS, {"path": write(TABLE, tmp_path)})
    gaps = facts["gaps"]
    assert gaps["clients"] == 40
    assert gaps["kept"] == facts["rows"] == len(long_file.one_by_one(TABLE))
    assert gaps["kept"] + gaps["gap"] + gaps["ends"] == 40
    assert min(gaps["gap"], gaps["ends"]) > 0
    assert facts["classes"] == ["well", "ill"]
    assert sum(facts["counts"].values()) == facts["rows"]
    assert (facts["grid"][0], facts["grid"][-1]) == (0, 24)
    assert (facts["bounds"]["lower"], facts["bounds"]["upper"]) == (0, 500)
    assert f"{len(TABLE)} measurements of 40 clients" in facts["notes"][0]


@pytest.mark.parametrize("kind", ["text", "zones", "stamps", "zoned", "nanoseconds"])
@pytest.mark.parametrize(("unit", "hours"), [("h", 1.0), ("s", 3600.0)])
def test_date_times_count_from_midnight(tmp_path, kind, unit, hours):
    """Each client's own first day, on its wall clock: any day, any zone."""
    inside = TABLE[TABLE["hour"] >= 0]
    offset = inside["who"] % 300 * 24.0 + inside["hour"].groupby(
        inside["who"]
    ).transform(lambda hour: 0 if hour.min() < 24 else np.nan)
    inside = inside[offset.notna()]
    day = pd.Timestamp("2024-03-01")
    stamps = day + pd.to_timedelta((inside["hour"] + offset.dropna()) * 3600, unit="s")
    times: dict[str, Any] = {
        "text": stamps.dt.strftime("%Y-%m-%d %H:%M:%S"),
        "zones": stamps.dt.strftime("%Y-%m-%dT%H:%M:%S.000+05:30"),
        "stamps": stamps.astype("datetime64[ms]"),
        "zoned": stamps.dt.tz_localize("Asia/Tokyo"),
        "nanoseconds": stamps.astype("datetime64[ns]"),
    }
    given = parameters(
        unit=unit,
        grid={"start": 0, "stop": 24 * hours, "points": 9},
        gaps={"most": 4 * hours},
    )
    name = "a.csv" if kind in ("text", "zones") else "a.parquet"
    table = read(write(inside.assign(hour=times[kind]), tmp_path, name), given)
    expected = long_file.one_by_one(inside)
    assert table["client_id"].tolist() == list(expected)
    assert table["curve"] == pytest.approx(np.array([*expected.values()]), rel=1e-9)


def test_date_times_need_a_unit_of_time(tmp_path: Path) -> None:
    """Hours can be counted in date-times, steps of a protocol cannot."""
    path = write(TABLE.assign(hour="2024-01-01 08:00"), tmp_path, "a.csv")
    with pytest.raises(UserError, match="unit must be one of s, min, h, d"):
        read(path, parameters(unit="visit"))


def test_text_ids_are_stable_numbers(tmp_path: Path) -> None:
    """An id is the same in each format and order; plain whole numbers stay."""
    texts = ["007", "7", "-12", "Zoë", "+1", "12345678901234567890", "a b"]
    numbers, marks = cells.identify(pa.array(texts))
    again, _ = cells.identify(pa.array(texts[::-1]))
    assert numbers.tolist() == again.tolist()[::-1]
    assert (numbers[1], numbers[2]) == (7, -12)
    digest = blake2b(b"007", digest_size=16).digest()
    assert numbers[0] == int.from_bytes(digest[:8], "little") >> 1
    assert (marks == 0).tolist() == [text in ("7", "-12") for text in texts]
    assert (numbers[marks > 0] >= 0).all()
    named = TABLE.assign(who="p" + TABLE["who"].astype(str))
    given, csv = (read(write(named, tmp_path, n)) for n in ("a.parquet", "a.csv"))
    assert np.array_equal(given["client_id"], csv["client_id"])
    assert np.array_equal(given["curve"], read(write(TABLE, tmp_path))["curve"])


def test_other_column_types_are_read(tmp_path: Path) -> None:
    """Dictionaries, large texts, whole floats as ids, numbers and bools as labels."""
    expected = read(write(TABLE, tmp_path))
    schema = {
        "who": pa.float64(),
        "hour": pa.dictionary(pa.int32(), pa.string()),
        "steps": pa.large_string(),
        "group": pa.bool_(),
    }
    ill = TABLE["group"] == "ill"
    texts = TABLE[["hour", "steps"]].astype(str)
    changed = TABLE.assign(group=ill, hour=texts["hour"], steps=texts["steps"])
    table = pa.Table.from_pandas(changed, pa.schema(schema), preserve_index=False)
    pq.write_table(table, tmp_path / "b.parquet")
    found = read(tmp_path / "b.parquet", parameters(positive=True))
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    write(TABLE.assign(group=ill.astype(int)), tmp_path, "c.parquet")
    coded = read(tmp_path / "c.parquet", parameters(positive=1))
    assert np.array_equal(coded["label"], expected["label"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grid": {"start": 1, "stop": 1, "points": 9}}, "above start"),
        ({"grid": {"start": 0, "stop": 1, "points": 1}}, "points"),
        ({"bounds": [5, 5]}, "first must be below the second"),
        ({"gaps": {"most": 0}}, "greater than 0"),
        ({"gaps": {}}, "most"),
        ({"value": "hour"}, "four different columns"),
        ({"value": ["hour", "y"]}, "four different columns"),
        ({"value": ["steps", "steps"]}, "steps stands twice"),
        ({"bounds": {"y": [0, 1]}}, "state those of steps, and of no other"),
        ({"bounds": {"steps": [1, 1]}}, "first must be below the second"),
        ({"irregular": "lines"}, "'smooth' or 'interpolate'"),
        ({"format": "csv"}, "format"),
    ],
)
def test_wrong_parameters_are_refused(changes: dict[str, Any], message: str) -> None:
    """Grid, bounds and gaps must make sense; nothing unknown is accepted."""
    with pytest.raises(ValidationError, match=message):
        parameters(**changes)
