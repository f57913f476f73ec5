"""A table of outcomes: one noised answer for each id, once, within each id's cap."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from curvote.base.entropy import SystemEntropy
from curvote.base.errors import UserError
from curvote.ledger import places
from curvote.ledger.account import POPULATION
from curvote.ledger.book import Ledger
from curvote.messages.answer import answer_outcome
from curvote.messages.message import Outcome, parse_message
from curvote.systems.monitor.home import read_outcomes
from curvote.systems.monitor.messages import TASK_SETTINGS, answer_word, make_task
from curvote.wire.envelope import issue_invitations, read_envelope
from tests.invited import Home, envelopes, printed, refused, run

PRIVATE, PUBLIC = {"private": ["f", "m"]}, {"public": ["north", "south"]}
ROWS = "id,answered,truth\n" + "".join(f"p{i},yes,yes\n" for i in range(6))
OPTIONS = {"task": "task.json", "table": "t.csv", "invitations": "i.jsonl"}


def task_of(number: int = 1, epsilon: float = 1.0, **terms: Any) -> Any:
    """Return a task of a monitor."""
    usual = {"classes": (), "bins": 4, "question": "right"}
    every = dict.fromkeys(TASK_SETTINGS) | usual | terms
    return make_task(every, epsilon, number)


def publish(home: Home, task: Any, count: int, table: str = ROWS) -> list[Any]:
    """Put a task, as many invitations and a table into the folder."""
    invited = issue_invitations(task, count, home.server.fingerprint)
    home.publish(task.to_json())
    lines = [json.dumps(each.to_json()) for each in invited]
    (home.root / "i.jsonl").write_text("\n".join(lines) + "\n")
    (home.root / "t.csv").write_text(table)
    return invited


def words(*more: str) -> list[str]:
    """Return the command line of a batch."""
    return ["answer", *(w for k, v in OPTIONS.items() for w in (f"--{k}", v)), *more]


def spent() -> dict[str, float]:
    """Return what each id has spent by the user's own ledger."""
    with Ledger(places.ledger_path()) as ledger:
        totals = ledger.spent(POPULATION)
    return dict(zip(totals.clients.tolist(), totals.epsilon.tolist(), strict=True))


def test_each_id_answers_once_with_the_next_invitation(home: Home, drawn: list[int]):
    """Four of six are invited; later ones get what is new; repeats draw nothing."""
    task = task_of()
    invited = publish(home, task, 4)
    done = printed(run(*words("--json")))
    assert (done["records"], done["before"], done["left"]) == (4, 0, 1)
    assert "2 records are not invited, so they send nothing: p4/p5" in done["notes"]
    assert {path.name for path in envelopes()} == {each.file_name for each in invited}
    for path in envelopes():
        sent = read_envelope(path.read_bytes())
        parse_message(task, None, sent.payload)
    kept = {path: path.read_bytes() for path in envelopes()}
    drawn.clear()
    again = printed(run(*words("--json")))
    assert (again["new"], again["records"], again["before"]) == (False, 0, 4)
    assert "p4/p5" in run(*words()).stderr
    more = issue_invitations(task, 3, home.server.fingerprint)
    with (home.root / "i.jsonl").open("a") as file:
        file.writelines(json.dumps(each.to_json()) + "\n" for each in more)
    assert not drawn
    (home.root / "t.csv").write_text(ROWS.replace("yes\n", "no\n"))
    third = printed(run(*words("--json")))
    assert (third["records"], third["before"]) == (2, 4)
    assert {path: path.read_bytes() for path in kept} == kept
    assert {path.name for path in envelopes() - {*kept}} == {
        each.file_name for each in more[:2]
    }
    assert spent() == {f"p{i}": 1.0 for i in range(6)}


def test_caps_are_those_of_the_ids(home: Home) -> None:
    """Who has no room is told of and takes no invitation; all of none is refused."""
    run("init", "--cap", "2")
    publish(home, task_of(1), 6)
    printed(run(*words("--json")))
    publish(home, task_of(2), 3, ROWS[:57])
    assert printed(run(*words("--json")))["records"] == 3
    publish(home, task_of(3), 3, ROWS)
    done = printed(run(*words("--json")))
    assert done["records"] == 3
    assert any("no room in your cap" in n and "p0/p1/p2" in n for n in done["notes"])
    publish(home, task_of(4), 6)
    assert "no room for epsilon 1" in refused(*words())
    assert spent() == {f"p{i}": 2.0 for i in range(6)}


def test_new_ids_are_new_people_or_refused(home: Home) -> None:
    """As with labels: the same people under other ids would have a second budget."""
    publish(home, task_of(1), 6)
    printed(run(*words("--json")))
    publish(home, task_of(2), 6, ROWS.replace("p", "q"))
    assert "--new-people" in refused(*words())
    assert printed(run(*words("--json", "--new-people")))["records"] == 6


def test_a_public_group_takes_its_own_invitations(home: Home) -> None:
    """The place that leaves is that of the row, however they are mixed."""
    task = task_of(epsilon=2, group=PUBLIC)
    rows = [f"p{i},a,a,{PUBLIC['public'][i % 3 > 0]}" for i in range(9)]
    publish(home, task, 8, "\n".join(["id,answered,truth,group", *rows]))
    done = printed(run(*words("--json")))
    places = Counter(
        read_envelope(p.read_bytes()).payload["place"] for p in envelopes()
    )
    assert (done["records"], places) == (7, {0: 3, 1: 4})


def test_every_problem_is_told_at_once(home: Home, drawn: list[int]) -> None:
    """With its lines, and nothing is drawn; a ledger that counts for one is refused."""
    task = task_of(question="calibration", group=PRIVATE)
    text = "id,answered,truth,group,probability\np,a,a,f,.5\np,,,x,.5\n,b,b,m,high\n"
    publish(home, task, 3, text)
    said = refused(*words())
    for line in (
        "id: nothing in line 4",
        "id: an id that stood there before in line 3",
        "group: none of f, m in line 3",
        "probability: no finite number in line 4",
    ):
        assert line in said
    publish(home, task, 3, "id,answered,truth,truth\n")
    said = refused(*words())
    for line in ("no row", "2 columns named 'truth'", "no column 'group'"):
        assert line in said
    assert not drawn
    home.publish(task.to_json())
    only = "answer --task task.json --truth a --invitations i.jsonl"
    assert "--table and --invitations for" in refused(*only.split())


STRANGE = ("", "?", "nan", "1e999", "-1e308", "x,y", "ü" * 99, "=1+1", "yes ", "0x1")


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"question": "class", "classes": ("no", "yes", "1")},
        {"question": "calibration"},
        {"question": "error", "bounds": (0.0, 2.0)},
        {"question": "versus"},
    ],
    ids=lambda terms: terms.get("question", "right"),
)
def test_no_cell_is_refused_for_what_it_says(terms: Any, tmp_path: Path) -> None:
    """Whatever was answered and is true there is a word, of one row as of many."""
    task = task_of(**terms)
    path, sure = tmp_path / "t.csv", task.question == "calibration"
    lines = [
        f'{i}-{j},"{answered}","{truth}",{i - 3}'
        for i, answered in enumerate(STRANGE)
        for j, truth in enumerate(STRANGE)
    ]
    path.write_text("\n".join(["id,answered,truth,probability", *lines]))
    outcomes, notes = read_outcomes(path, task)
    assert len(outcomes) == len(STRANGE) ** 2
    assert "rows lack" in notes[0]
    for _, outcome in outcomes.values():
        assert 0 <= answer_word(task, outcome) < task.label_count
        parse_message(task, None, answer_outcome(task, outcome, None, SystemEntropy()))
    if sure:
        for odd in (float("nan"), float("inf"), -1.0):
            assert answer_word(task, Outcome(("a",), "a", None, odd)) in range(8)


def test_numbers_and_two_columns_are_read_as_people_mean_them(tmp_path: Path) -> None:
    """1.0 is 1, commas belong to an answer, two models are two columns or A,B."""
    task, path = task_of(question="versus"), tmp_path / "t.csv"
    path.write_text('id,answered,answered_2,truth\na,"x,y",z,"x,y"\nb,1,1.0,1\n')
    (_, first), (_, second) = read_outcomes(path, task)[0].values()
    assert [answer_word(task, each) for each in (first, second)] == [1, 3]
    path.write_text('id,answered,truth\na,"z, y",y\n')
    ((_, both),) = read_outcomes(path, task)[0].values()
    assert answer_word(task, both) == 2
    right, classes = task_of(), task_of(question="class", classes=("0.0", "1.0"))
    assert answer_word(right, Outcome(("New York", " NY"), "New York, NY")) == 1
    assert answer_word(classes, Outcome(("1",), "1.0")) == 3
    with pytest.raises(UserError, match="about 2 models"):
        answer_word(task, Outcome(("1",), "1"))
