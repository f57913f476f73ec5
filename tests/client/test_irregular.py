"""Curves at times of their own: as in the study, and nothing of the times is told."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.cli.client import answer as command
from curvote.client.table import read_record
from curvote.curves.basis import orthonormal, projection
from curvote.curves.encoding import Encoding
from curvote.data.tables import curves
from curvote.ledger import places
from curvote.messages.answer import client_inputs, public_centre, validate_task
from curvote.messages.message import message_of
from curvote.pipeline.config.yaml_document import parse_value
from curvote.wire.task import Task
from tests import long_file, plain
from tests.exchange import FAR, NAME, Server
from tests.house import ROOT
from tests.invited import Home, printed

CHANNELS = ("x", "y", "z")
TABLE = (
    long_file.frame(12)
    .rename(columns={"steps": "x"})
    .assign(
        y=lambda t: np.where(np.arange(len(t)) % 7, t["x"] % 7, np.nan),
        z=lambda t: -t["hour"],
    )
)
SOURCE = {
    "value": CHANNELS,
    "bounds": {"x": [0, 500], "y": [0, 7], "z": [-40, 10]},
    "gaps": {"most": 40},
    "irregular": "smooth",
}


@pytest.fixture(scope="module")
def task() -> Task:
    """Return a task about the derivatives of three channels, as a client reads it."""
    onto = projection("bspline", 5, long_file.PARAMETERS.points, derivative=1)
    onto = orthonormal(onto).stacked(CHANNELS)
    constants = {"centre": np.zeros(1), "scale": np.full(12, 50.0)}
    encoding = Encoding(onto, "tanh", constants, smooth=True)
    stated = Task(encoding, ("no", "yes"), 1.0, "mrma", "report")
    found = validate_task(message_of(stated).nominal_task(stated).to_json())
    assert isinstance(found, Task)
    return found


def test_a_client_finds_what_the_study_found(tmp_path: Path, task: Task) -> None:
    """With gaps, other orders of columns and rows, and measurements off the grid."""
    path = long_file.write(TABLE, tmp_path, "long.csv")
    study = long_file.read(path, long_file.parameters(**SOURCE))
    assert len(study["curve"]) == 12
    expected = task.encoding.encode(study["curve"])
    for place, who in enumerate(study["client_id"].tolist()):
        own = TABLE[TABLE["who"] == who].sort_values("x")
        own[["hour", "z", "y", "x"]].to_csv(tmp_path / "own.csv", index=False)
        record = read_record(tmp_path / "own.csv", "yes", task)
        found = client_inputs(task, record, None)
        assert found.z[0] == pytest.approx(expected.z[place], abs=1e-12)
    gaps = np.where(np.arange(27) % 4, study["curve"][0], np.nan)
    pd.DataFrame([gaps]).to_csv(tmp_path / "row.csv", index=False, header=False)
    found = client_inputs(task, read_record(tmp_path / "row.csv", "yes", task), None)
    assert not np.allclose(found.coefficients, public_centre(task.encoding))
    facts = curves.facts(long_file.parameters(**SOURCE), {"path": path})
    assert (facts["channels"], facts["irregular"]) == ([*CHANNELS], "smooth")
    assert facts["bounds"]["upper"] == [500, 7, 10]
    card = curves.examined(long_file.parameters(**SOURCE), {"path": path})
    missing = [column.missing for column in card.columns]
    assert missing == TABLE[[*CHANNELS]].isna().sum().tolist()


def test_measurements_on_the_grid_are_kept_in_whatever_order(
    tmp_path: Path, task: Task
) -> None:
    """A study reads a file by time, and so does a client."""
    grid = task.encoding.projection.grid
    rows = pd.DataFrame({"hour": grid} | {name: np.cos(grid) for name in CHANNELS})
    rows.to_csv(tmp_path / "kept.csv", index=False)
    rows[::-1].to_csv(tmp_path / "turned.csv", index=False)
    kept, turned = (
        client_inputs(task, read_record(tmp_path / name, "yes", task), None).z
        for name in ("kept.csv", "turned.csv")
    )
    assert np.array_equal(kept, turned)


RECORDS = {
    "many": "\n".join(f"{hour},{hour % 5},1,{hour}" for hour in range(24)),
    "later": "\n".join(f"{hour}.25,{hour % 5},1,{hour}" for hour in range(24)),
    "one": "12,1,2,3",
    "outside": "30,1,2,3\n-4,1,2,3",
    "no y": "1,2,,3\n4,5,,6",
    "no times": ",1,2,3\nnan,1,1,1",
    "wild": "1,1e999,-1e308,nan\n1,1,1,1",
}


def answer(folder: Path, rows: str, task: Task) -> Any:
    """Return all that is seen of the real command's answer, the digest left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        home = Home(folder, patch)
        home.invite(task)
        (home.root / "curve.csv").write_text("time,x,y,z\n" + rows + "\n")
        result = home.client("answer")
        assert result.exit_code == 0, result.exception
        (sealed,) = places.outbox_path().glob("*.json")
        words = re.sub("[0-9a-f]{32,}", "", result.output.replace(str(folder), ""))
        return sealed.stat().st_size, words, len(home.entries())


def test_times_and_their_number_change_no_byte_that_is_seen(
    tmp_path: Path, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One envelope of one length for each record; a client that counts is caught."""
    seen = {name: answer(tmp_path / name, x, task) for name, x in RECORDS.items()}
    assert len({*seen.values()}) == 1, seen
    real = command.answer_task

    def counts(task: Task, record: Any, *more: Any) -> Any:
        return real(task, record, *more) | {"n": [0] * len(record.times)}

    monkeypatch.setattr(command, "answer_task", counts)
    again = {name: answer(tmp_path / f"{name}!", RECORDS[name], task) for name in seen}
    assert again["many"][0] != again["one"][0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,x,y\n1,2,3\n", "columns time/x/y; the task asks for .* behind it x/y/z"),
        ("time,x,y,z,w\n1,2,3,4,5\n", "asks for a first column of times"),
        ("time,x,y,z\n1,2,3,4\n1,2,3,up\n", "row 2 below the header .* no number"),
        ("1,2,3,4\n1,2,3,4\n", "2 rows and 4 columns"),
        ("time\n1\n2\n", "2 values; the task"),
    ],
    ids=["channel", "more", "word", "header", "times"],
)
def test_a_file_of_another_form_is_refused(
    tmp_path: Path, task: Task, text: str, message: str
) -> None:
    """What it holds and what the task asks for are named, and no value."""
    (tmp_path / "own.csv").write_text(text)
    with pytest.raises(UserError, match=message):
        read_record(tmp_path / "own.csv", "yes", task)


def test_a_round_as_the_page_describes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/own-data.md: a remote source, an owner's own file, one that counts."""
    page = (ROOT / "docs" / "own-data.md").read_text(encoding="utf-8")
    stated = re.findall(r"`source: (\{name: remote.*?\})`", page, re.DOTALL)[0]
    block = r"^```none\n(hour,acc_x,.*?)^```$"
    (rows,) = re.findall(block, page, re.DOTALL | re.MULTILINE)
    asked = FAR | {"source": parse_value(stated), "epsilon": 1}
    server = Server(plain.write(tmp_path / "server", **{NAME: asked}))
    server.run()
    home = Home(tmp_path / "home", monkeypatch)
    published, invitations = server.published("report")
    (home.root / "task.json").write_bytes(published.read_bytes())
    (home.root / "invitation.json").write_text(invitations.read_text().split("\n")[0])
    (home.root / "my.csv").write_text(rows)
    said = printed(home.client("answer", "--json", curve="my.csv", label="shift"))
    server.take([Path(said["envelope"]).read_bytes()])
    assert "reports: 1 of 60" in server.run()[0].blocked_steps()[0].reason
