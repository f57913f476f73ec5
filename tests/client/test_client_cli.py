"""`curvote client` and `curvote intake`: from a curve to a counted message."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from curvote.base.errors import UserError
from curvote.cli.commands import intake as cli_intake
from curvote.client import report as reports
from curvote.intake.box import Intake
from curvote.messages.message import parse_message
from curvote.pipeline.config.project import Project
from curvote.wire import envelope
from curvote.wire.envelope import issue_invitations, seal_message
from tests.invited import Home, envelopes, printed, run
from tests.rounds import REPORTS, VOTES, payload, quiet


def test_a_report_and_a_vote_travel_from_client_to_server(home, project):
    """Without a project on the client's side; the intake accepts what it released."""
    for command, task in (("report", REPORTS), ("vote", VOTES)):
        invitation = home.invite(task)
        with Intake(project.intake) as intake:
            given = {"pipeline": "tiny", "needed": 1, "invitations": [invitation]}
            intake.open_round(command, task=task, **given)
        done = printed(home.client(command, "--json"))
        assert (done["message"], done["epsilon"], done["new"]) == (command, 1.0, True)
        path = Path(done["envelope"])
        assert path.name == invitation.file_name
        project.inbox("tiny").mkdir(parents=True, exist_ok=True)
        path.rename(project.inbox("tiny") / path.name)
    assert done["left"] == 0
    assert taken(project) == {"accepted": 2, "refused": {}, "left": {}}
    assert list(project.inbox("tiny").iterdir()) == []


def test_an_envelope_is_sealed_to_the_key_of_the_signed_task(home: Home) -> None:
    """Whoever carries it learns its size only; the owner of the key reads it."""
    private = envelope.new_private_key()
    invitation = home.invite(REPORTS)
    home.publish(REPORTS.to_json(), seal_to=envelope.public_key(private))
    done = printed(home.client("report", "--json"))
    data = Path(done["envelope"]).read_bytes()
    assert invitation.id not in data.decode() + done["envelope"]
    _, inner = envelope.open_sealed(data, {envelope.public_key(private): private}.get)
    assert envelope.read_envelope(inner).invitation == invitation.id


def test_a_client_is_light(home: Home) -> None:
    """A release loads NumPy, pydantic and cryptography, and nothing heavier."""
    code = (
        "import sys, curvote.cli.app as cli\n"
        "try: cli.main()\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "client", *home.words("report"), "--yes"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert {"curvote", "numpy", "pydantic", "cryptography"} <= loaded
    assert not loaded & {"scipy", "pandas", "pyarrow", "sklearn", "prefect", "mlflow"}


RECORDS = [
    "0.5,-1,2.25,0",
    "0,0,0,0",
    "1e12,-1e300,inf,-inf",
    "nan,1,,2",
    "1,2,3,1e-320",
]


@pytest.mark.parametrize("task", [REPORTS, VOTES, replace(REPORTS, epsilon=3.0)])
def test_records_differ_in_the_noised_payload_only(home, task, monkeypatch, tmp_path):
    """Exit code, words, names, lengths, ledger: the same for every record in form."""
    home.invite(task)
    seen = set()
    for i, (record, label) in enumerate(product(RECORDS, ("no", "yes"))):
        Path("curve.csv").write_text(record + "\n")
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f"state{i}"))
        done = home.client(task.asks, "--json", label=label)
        assert bool(done.exit_code) == (task.epsilon > 2)
        seen.add(_shown(home, done, str(tmp_path / f"state{i}")))
    assert len(seen) == 1


def _shown(home: Home, done: Result, state: str) -> str:
    """Return all that can be observed of a release but its payload and the time."""
    said = json.loads(done.stdout or "{}")
    said.pop("sha256", None)
    files = sorted((path.name, path.stat().st_size) for path in envelopes())
    entries = [
        (e.release, e.state, e.budget, e.facts | {"attempt": "", "outbox": ""})
        for e in home.entries()
    ]
    error = (type(done.exception), str(done.exception))
    seen = (done.exit_code, said, done.stderr, files, entries, error)
    return str(seen).replace(state, "")


def test_a_repeat_spends_nothing_and_says_so(home: Home) -> None:
    """A second release needs --new-release, an invitation and room in the cap."""
    run("init", "--cap", "1")
    first = home.client("report")
    assert "released one report, epsilon 1, delta 0\n" in first.stdout
    assert "left      epsilon 0, delta 0 of your cap of epsilon 1" in first.stdout
    again = home.client("report")
    assert "released before; nothing more was drawn or spent" in again.stdout
    assert first.stdout.splitlines()[1:] == again.stdout.splitlines()[1:]
    home.invite(REPORTS)
    assert "room" in home.refusal("report", "--new-release")
    assert run("raise-cap", "--cap", "2.5").exit_code == 0
    done = printed(home.client("report", "--new-release", "--json"))
    assert (done["new"], done["cap"], done["left"]) == (True, 2.5, 0.5)
    assert len(envelopes()) == 2
    latest = printed(home.client("report", "--json"))
    assert latest == done | {"new": False}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,2,3\n", "holds 3 values; the task's grid has 4"),
        ("1,2,3,four\n", "value 3 .* is no number"),
        ("1,2,3,4\n5,6,7,8\n", "2 rows and 4 columns"),
        ("a,b,c,d\n1,2,3,4\n5,6,7,8\n", "2 rows and 4 columns"),
        ("a,b,c,4\n1,2,3,4\n", "2 rows and 4 columns"),
        ("t,v\n0,1\n1,2\n2,3\n3,4\n", "4 rows and 2 columns"),
        ("", "no such table"),
        ("1\n2,3\n", "no such table"),
        ("a,b,c,d\n", "value 0 .* is no number"),
    ],
)
def test_a_curve_file_that_is_wrong_says_how(home: Home, text: str, words: str) -> None:
    """And releases nothing: nothing is even reserved."""
    Path("curve.csv").write_text(text)
    with pytest.raises(UserError, match=words):
        raise UserError(home.refusal("report"))


@pytest.mark.parametrize("shape", [(1, 4), (4, 1)])
@pytest.mark.parametrize("kind", ["csv", "csv with header", "parquet"])
def test_a_curve_is_one_row_or_one_column(home, shape, kind, monkeypatch):
    """In CSV, with a header or not, or Parquet: the same numbers."""
    seen: list[np.ndarray] = []
    monkeypatch.setattr(
        reports.Reporter,
        "release",
        lambda self, z, y, *_, **__: (seen.append(z), (z, y))[1],
    )
    frame = pd.DataFrame(np.array([0.5, -1, 2.25, 0]).reshape(shape)).add_prefix("x")
    path = Path("curve.parquet" if kind == "parquet" else "curve.csv")
    if kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, header="header" in kind)
    assert home.client("report", curve=str(path)).exit_code == 0
    _, z = seen  # before the curve was read, the task was tried on a public one
    assert np.allclose(z, np.array([[0.5, -1, 2.25, 0]]) / 2.25)


def test_the_wrong_question_label_task_or_invitation_is_refused(home: Home) -> None:
    """Each names the file or the way out."""
    assert "use `curvote client report`" in home.refusal("vote")
    assert "Did you mean 'yes'" in home.refusal("report", label="yess")
    assert "task.json: not an invitation" in home.refusal(
        "report", invitation="task.json"
    )
    assert "missing.json: it cannot be read" in home.refusal(
        "report", task="missing.json"
    )
    for text in ("{", "[]", "\0", "[" * 10_000, json.dumps(REPORTS.to_json())):
        Path("broken.json").write_text(text)
        assert "broken.json: not a signed task" in home.refusal(
            "report", task="broken.json"
        )
    home.invite(VOTES)
    assert "use `curvote client vote`" in home.refusal("report")
    home.publish(REPORTS.to_json())
    assert "different rounds" in home.refusal("report")
    assert home.entries() == []


@pytest.mark.parametrize("option", ["--cap", "--client"])
def test_an_option_of_an_earlier_curvote_says_what_it_became(home, option):
    """Caps and names are set once, by a command of their own."""
    assert "curvote client init" in home.refusal("report", option, "1")
    assert "curvote client init" in home.refusal("report", f"{option}=1")
    assert option not in run("report", "--help").stdout


def taken(project: Project, *more: str) -> Any:
    """Run `curvote intake take` and return what it counts."""
    words = ["take", "tiny", "--json", "--project", str(project.root), *more]
    return printed(CliRunner().invoke(cli_intake.app, words))


def show(project: Project) -> Any:
    """Return the rounds that `curvote intake show` lists."""
    words = ["show", "tiny", "--json", "--project", str(project.root)]
    return printed(CliRunner().invoke(cli_intake.app, words))


def test_the_inbox_is_emptied_and_what_is_refused_is_kept_with_its_reason(project):
    """Files of one envelope or one a line; of a copy nothing is kept."""
    invitations = issue_invitations(REPORTS, 4)
    sealed = [
        seal_message(i, payload(REPORTS, i, k)) for k, i in enumerate(invitations)
    ]
    with Intake(project.intake) as intake:
        given = {"pipeline": "tiny", "needed": 3, "invitations": invitations}
        intake.open_round("one", task=REPORTS, **given)
    inbox = project.root / "elsewhere"
    inbox.mkdir()
    (inbox / "a.json").write_bytes(sealed[0])
    (inbox / "torn.json").write_bytes(sealed[1][:50])
    (inbox / "more.jsonl").write_bytes(sealed[1] + b"\n" + sealed[2])
    (inbox / "notes.txt").write_text("stays")
    quiet(*inbox.iterdir())
    found = taken(project, "--inbox", str(inbox))
    assert found == {"accepted": 3, "refused": {"unreadable": 1}, "left": {}}
    assert [p.name for p in inbox.iterdir()] == ["notes.txt"]
    kept = project.quarantine("tiny")
    (torn,) = kept.glob("*.json")
    assert torn.read_bytes() == sealed[1][:50]
    assert "cut off" in torn.with_suffix(".reason.txt").read_text()
    for _ in range(2):
        (inbox / "copy.json").write_bytes(sealed[0])
        assert taken(project, "--inbox", str(inbox))["refused"] == {
            "used invitation": 1
        }
    assert len(list(kept.iterdir())) == 2
    assert show(project) == [
        {
            "round": "one",
            "asks": "report",
            "issued": 4,
            "accepted": 3,
            "needed": 3,
            "state": "complete",
        }
    ]


def test_a_round_is_closed_by_hand(project: Project) -> None:
    """The open one of the pipeline, with what is in; then there is none left."""
    words = ["close", "tiny", "--project", str(project.root)]
    nothing = CliRunner().invoke(cli_intake.app, words)
    assert "opens one" in str(nothing.exception)
    invited = issue_invitations(REPORTS, 21)
    with Intake(project.intake) as intake:
        given = {"pipeline": "tiny", "needed": 21, "invitations": invited}
        intake.open_round("one", task=REPORTS, **given)
        for one in invited[:20]:
            intake.take(seal_message(one, payload(REPORTS, one)), parse_message)
    closed = CliRunner().invoke(cli_intake.app, words)
    assert "closed one: 20 of 21 reports" in closed.stdout
    assert [row["state"] for row in show(project)] == ["closed"]
    assert isinstance(CliRunner().invoke(cli_intake.app, words).exception, UserError)


@pytest.mark.parametrize("command", ["take", "close", "show"])
def test_an_unknown_pipeline_gets_a_suggestion(project: Project, command: str) -> None:
    """As everywhere on the command line."""
    words = [command, "tinny", "--project", str(project.root)]
    result = CliRunner().invoke(cli_intake.app, words)
    assert "Did you mean 'tiny'" in str(result.exception)
