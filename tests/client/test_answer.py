"""`curvote client answer` does what the task's own command does, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from curvote.base.entropy import SeededEntropy, SystemEntropy
from curvote.checks import examples
from curvote.ledger import places
from curvote.systems.transfer.audit import tables as servers
from curvote.systems.transfer.method.task import Level
from curvote.wire.envelope import issue_invitations, issue_record_invitations
from tests.invited import Home, envelopes, refused, run
from tests.rounds import REPORTS, VOTES

CURVE = {"curve": "curve.csv", "label": "yes"}
# What an owner gives to answer: a task of each kind takes one of these, or two.
GIVEN: dict[str, dict[str, str]] = {
    "curve": CURVE | {"invitation": "invitation.json"},
    "label": {"label": "+1", "invitation": "invitation.json"},
    "registry": {"table": "labels.csv", "invitations": "invitation.json"},
    "table": {"table": "table.csv", "invitation": "invitation.json"},
}
# The command that each kind was made for, and what a task of that kind takes.
KINDS = {
    "report": ("report", {"curve"}),
    "vote": ("vote", {"curve"}),
    "code": ("label", {"label", "registry"}),
    "release": ("release", {"table"}),
}


def publish(home: Home, kind: str) -> Any:
    """Sign a task of a kind, and put it with its invitation into the folder."""
    (home.root / "invitation.json").unlink(missing_ok=True)
    by = home.server.fingerprint
    if kind in {"report", "vote"}:
        task: Any = {"report": REPORTS, "vote": VOTES}[kind]
        (invited,) = issue_invitations(task, 1, by)
    elif kind == "code":
        task = examples.example_task("labels", "code", 1.0)
        (invited,) = issue_record_invitations(task, ["a"], by)
    else:
        task = servers.example_task("transfer.moments", Level(1.0))
        (invited,) = issue_invitations(task, 1, by, None, servers.SERVER)
    home.publish(task.to_json())
    (home.root / "invitation.json").write_text(json.dumps(invited.to_json()))
    return task


def words(given: dict[str, str], *more: str) -> list[str]:
    """Return the options of a release."""
    options = {"task": "task.json"} | given
    return [*(w for k, v in options.items() for w in (f"--{k}", v)), *more]


def settle(home: Home, kind: str, way: str) -> None:
    """Write what the owner holds: a form where there is a table, caps, the files."""
    task = publish(home, kind)
    run("init", "--cap", "2", "--cap-delta", "1e-3")
    (home.root / "labels.csv").write_text("record,label\na,+1\n")
    if way == "registry":
        form = "{id: record, label: label, classes: ['-1', '+1']}"
    elif way == "table":
        bounds = {f.name: {"bounds": [f.lower, f.upper]} for f in task.features}
        stated = {"id": None, "label": "label", "classes": [*task.classes]}
        form = json.dumps(stated | {"columns": bounds})
        header = [*bounds, "label"]
        middle = [str((f.lower + f.upper) / 2) for f in task.features]
        rows = [[*middle, name] for name in task.classes] * 40
        text = "\n".join(",".join(row) for row in [header, *rows])
        (home.root / "table.csv").write_text(text + "\n")
    else:
        return
    (home.root / "form.yaml").write_text(form)
    done = run("form", "form.yaml")
    assert done.exit_code == 0, done.exception


FITTING = [(kind, way) for kind, (_, ways) in KINDS.items() for way in sorted(ways)]


@pytest.mark.parametrize(("kind", "way"), FITTING)
def test_answer_is_the_command_that_the_task_calls_for(
    home: Home, kind: str, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same words, JSON, notices, consent, ledger, caps and bytes that leave."""
    settle(home, kind, way)
    state = places.outbox_path().parent
    kept = {p: p.read_bytes() for p in state.rglob("*") if p.is_file()}
    seen = []
    for number, command in enumerate((KINDS[kind][0], "answer")):
        folder = tmp_path / f"state-{number}"
        monkeypatch.setenv("XDG_STATE_HOME", str(folder))
        for path, data in kept.items():
            copy = places.outbox_path().parent / path.relative_to(state)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
        source = SeededEntropy(3)
        monkeypatch.setattr(
            SystemEntropy, "words", lambda _, n, source=source: source.words(n)
        )
        done = run(command, *words(GIVEN[way], "--json", "--yes"), yes=False)
        assert done.exit_code == 0, (done.output, done.exception)
        again = run(command, *words(GIVEN[way], "--yes"), yes=False)
        spent = [(e.release, e.state, e.budget, e.n_clients) for e in home.entries()]
        outbox = {path.name: path.read_bytes() for path in envelopes()}
        told = [done.stdout, done.stderr, again.stdout, again.stderr]
        seen.append(([t.replace(str(folder), "") for t in told], spent, outbox))
    assert seen[0] == seen[1]
    assert len(seen[0][2]) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["answer", "report", "vote", "label", "release"])
def test_a_task_takes_nothing_that_was_given_for_another(home, kind, command, drawn):
    """Whatever a server signs: of another kind it is refused, and no file is read.

    None of the files is there: whoever looked for one would say so.
    """
    publish(home, kind)
    (home.root / "curve.csv").unlink()
    right, ways = KINDS[kind]
    for way, given in GIVEN.items():
        if way in ways and command in {"answer", right}:
            continue
        result = run(command, *words(given, "--yes"), yes=False)
        if result.exit_code == 2 and isinstance(result.exception, SystemExit):
            continue  # the command has no such option, or needs another
        said = str(result.exception)
        other = "give --invitation and --label for a record of your own, or --table"
        other += " and --invitations for a message about each of many records."
        expected = {
            f"task.json asks for a {kind}: use `curvote client {right}`.",
            other,
        }
        if command == "answer":
            assert said.startswith(f"task.json asks for a {kind}: give --")
        else:
            assert said in expected, said
    assert (home.entries(), envelopes(), drawn) == ([], set(), [])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "give --invitation, --curve and --label"),
        (CURVE, "give --invitation, --curve and --label"),
        (GIVEN["curve"] | {"table": "t.csv"}, "or --invitation and --table for"),
        (GIVEN["label"] | {"invitations": "."}, "or --table and --invitations for"),
        (GIVEN["curve"] | {"id-column": "x"}, "--label-column, --id-column: give"),
        (GIVEN["registry"] | {"label-column": "x"}, "--id-column: give --invitation"),
        (
            GIVEN["registry"] | {"group": "x"},
            "--group, --probability: give --invitation",
        ),
        (GIVEN["registry"] | {"send": "https://x.example"}, "one envelope"),
    ],
)
def test_what_goes_with_nothing_is_refused_before_the_task_is_read(home, given, reason):
    """More or less than a kind of task takes: the task does not choose among it."""
    (home.root / "task.json").unlink()
    assert reason in refused("answer", *words(given))


@pytest.mark.parametrize(
    ("cap", "reason"),
    [(["--cap", "0.5"], "no room"), (["--server", "0" * 64], "you answer 0000")],
)
@pytest.mark.parametrize(("kind", "way"), FITTING)
def test_answer_keeps_to_the_cap_and_the_server_of_the_ledger(
    home: Home, kind: str, way: str, cap: list[str], reason: str, tmp_path: Path
) -> None:
    """In the words of the command that the task calls for; nothing is drawn."""
    settle(home, kind, way)
    ledger = str(tmp_path / "own.sqlite")
    more = ["--form", "form.yaml"] if Path("form.yaml").exists() else []
    run("init", "--ledger", ledger, "--cap-delta", "1e-3", *cap, *more)
    typed = words(GIVEN[way], "--ledger", ledger, "--yes")
    said = {
        str(run(c, *typed, yes=False).exception) for c in (KINDS[kind][0], "answer")
    }
    assert len(said) == 1
    assert reason in said.pop()
    assert envelopes() == set()


def test_classes_are_agreed_to_whatever_is_asked(home: Home) -> None:
    """With `answer` as with its aliases, before a label is looked at."""
    for kind, way in FITTING:
        publish(home, kind)
        if way in {"curve", "label"}:
            typed = words(GIVEN[way] | {"label": "x"}, "--classes", "so,no")
            assert "you agree to so/no only" in refused("answer", *typed)
    assert home.entries() == []


def test_former_names_of_columns_are_read_with_a_notice(home: Home) -> None:
    """By `release` alone, on standard error; `answer` takes a label for one's own."""
    settle(home, "release", "table")
    typed = words(GIVEN["table"], "--label=label", "--json", "--yes")
    done = run("release", *typed, yes=False)
    assert json.loads(done.stdout)["new"]
    notice = "curvote: --label is an old name; write --label-column from now on."
    assert notice in done.stderr.splitlines()
    assert "by the form in your ledger" in refused(
        "release", *words(GIVEN["table"], "--new-release", "--id", "label")
    )
    assert "give --invitation, --curve" in refused("answer", *typed)
