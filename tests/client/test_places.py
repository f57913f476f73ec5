"""One ledger, register and outbox for each user, wherever a command is given."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.ledger import places
from curvote.ledger.account import POPULATION
from curvote.ledger.book import Ledger
from curvote.ledger.register import Register
from curvote.wire.envelope import issue_invitations
from tests.invited import Home, envelopes, printed, refused, run
from tests.releasing import Client
from tests.rounds import REPORTS, VOTES


def files(ledger: Path) -> dict[str, bytes]:
    """Return a ledger that no process has open, as its files."""
    paths = (Path(f"{ledger}{end}") for end in ("", "-wal", "-shm"))
    return {path.name: path.read_bytes() for path in paths if path.exists()}


def put(found: dict[str, bytes], folder: Path) -> None:
    """Put the files of a ledger into a folder, and take away those that are there."""
    folder.mkdir(exist_ok=True)
    for path in folder.glob("ledger.sqlite*"):
        path.unlink()
    for name, data in found.items():
        (folder / name).write_bytes(data)


def test_the_same_command_elsewhere_gives_the_same_envelope(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ledger and outbox do not depend on the working folder: nothing is drawn again."""
    first = printed(home.client("report", "--json"))
    away = tmp_path / "elsewhere"
    shutil.copytree(home.root, away)
    monkeypatch.chdir(away)
    assert printed(home.client("report", "--json")) == first | {"new": False}
    assert {p.name for p in away.iterdir()} == {p.name for p in home.root.iterdir()}
    assert len(envelopes()) == 1


def test_nobody_has_a_second_name(home: Home) -> None:
    """Another spelling would be another client, with a budget of its own."""
    home.client("report")
    for name in ("Me", "ME", "me2"):
        assert "one person has one name" in refused("init", "--name", name)
        assert "--client is gone" in home.refusal("report", "--client", name)
    assert run("init", "--name", "me").exit_code == 0


def test_a_second_ledger_cannot_answer_the_same_invitation(home, tmp_path):
    """Whatever --ledger says: a new one, an older copy, one of somebody else."""
    run("init")
    older = files(places.ledger_path())
    home.client("report")
    put(older, tmp_path / "older")
    put({}, tmp_path / "new")
    for name in ("older", "new"):
        second = tmp_path / name / "ledger.sqlite"
        for more in ((), ("--new-release",), ("--outbox", str(tmp_path / "other"))):
            said = home.refusal("report", "--ledger", str(second), *more)
            words = (
                "an older copy",
                f"answered from the ledger {places.ledger_path()}",
            )
            assert words[name == "new"] in said
        assert list(tmp_path.glob("other/*.json")) == []


def test_an_older_copy_is_recognised_wherever_it_stands(home, tmp_path):
    """For a new invitation, too: it would have the budget of before."""
    run("init", "--cap", "1")
    put(files(places.ledger_path()), tmp_path / "copies")
    copy = ("--ledger", str(tmp_path / "copies" / "ledger.sqlite"))
    home.client("report")
    home.invite(VOTES)
    assert "an older copy" in home.refusal("vote", *copy)
    put(files(places.ledger_path()), tmp_path / "copies")
    assert "room" in home.refusal("vote", *copy)  # the newest may stand anywhere


def test_two_people_of_one_user_answer_their_own_invitations(home, tmp_path):
    """A second ledger is refused for an answered invitation only."""
    home.client("report")
    mine = Path("invitation.json").read_text()
    home.invite(REPORTS)
    second = ("--ledger", str(tmp_path / "second.sqlite"))
    assert printed(home.client("report", *second, "--json"))["new"]
    Path("invitation.json").write_text(mine)
    assert not printed(home.client("report", "--json"))["new"]
    assert len(envelopes()) == 2


def test_an_invitation_is_claimed_before_its_noise_is_drawn(tmp_path: Path) -> None:
    """Two ledgers at the same moment: the second draws nothing and spends nothing."""
    (invitation,) = issue_invitations(REPORTS, 1)
    people = [Client(tmp_path / name) for name in ("one", "two")]
    for person in people:
        person.register = tmp_path / "register.sqlite"

    def meanwhile() -> dict[str, object]:
        with pytest.raises(UserError, match="cannot answer it again"):
            people[1].release(invitation)
        return people[0].draw()

    people[0].release(invitation, draw=meanwhile)
    assert [person.draws for person in people] == [1, 0]
    assert people[0].state() == "confirmed"
    assert people[1].state() is None


def test_claims_that_meet_are_decided_by_the_register(tmp_path, monkeypatch):
    """Both have looked and found nothing; one of them is given its budget back."""
    (invitation,) = issue_invitations(REPORTS, 1)
    one, two = (Client(tmp_path / name) for name in ("one", "two"))
    one.register = two.register
    look = Register.refuse_answered

    def both(self: Register, invited: str, attempt: str) -> None:
        look(self, invited, attempt)
        monkeypatch.setattr(Register, "refuse_answered", look)
        two.release(invitation)

    monkeypatch.setattr(Register, "refuse_answered", both)
    with pytest.raises(UserError, match="cannot answer it again"):
        one.release(invitation)
    assert (one.state(), one.draws, one.files()) == ("cancelled", 0, set())
    assert (two.state(), two.draws) == ("confirmed", 1)
    with pytest.raises(UserError, match="cannot answer it again"):
        one.release(invitation)


def test_two_copies_at_the_same_moment_spend_one_budget(tmp_path: Path) -> None:
    """The copy that comes second does not know what the first has answered."""
    one = Client(tmp_path / "one")
    two = Client(tmp_path / "two")
    two.register = one.register
    put(files(one.path), two.path.parent)

    def meanwhile() -> dict[str, object]:
        with pytest.raises(UserError, match="older copy"):
            two.release()
        return one.draw()

    look = Register.refuse_answered

    def both(self: Register, invited: str, attempt: str) -> None:
        look(self, invited, attempt)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Register, "refuse_answered", look)
            one.release()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Register, "refuse_answered", both)
        with pytest.raises(UserError, match="older copy"):
            two.release()
    assert (one.draws, two.draws, two.state()) == (1, 0, "cancelled")
    one.raise_cap(2)
    one.release(number=2, draw=meanwhile)
    assert (one.draws, two.draws) == (2, 0)


def test_an_older_or_a_lost_ledger_is_noticed(home: Home) -> None:
    """The register holds the newest link of its chain: nothing begins afresh."""
    run("init", "--cap", "1")
    ledger = places.ledger_path()
    older = files(ledger)
    home.client("report")
    newest = files(ledger)
    home.invite(VOTES)
    put(older, ledger.parent)
    for words in (home.words("vote"), ["init"], ["raise-cap", "--cap", "3", "--yes"]):
        assert "an older copy, or another" in refused(*words)
    put({}, ledger.parent)
    for words in (home.words("vote"), ["init"]):
        assert "is gone" in refused(*words)
    assert not ledger.exists()
    put(newest, ledger.parent)
    assert "room" in home.refusal("vote")


def test_a_lost_register_is_rebuilt_from_the_ledger_in_use(home, tmp_path):
    """Also what a ledger knows that was used before there was a register."""
    home.client("report")
    for path in places.register_path().parent.glob("register.sqlite*"):
        path.unlink()
    assert not printed(home.client("report", "--json"))["new"]
    second = ("--ledger", str(tmp_path / "second.sqlite"))
    assert "cannot answer it again" in home.refusal("report", *second)


@pytest.mark.parametrize("damage", [b"", b"no register at all", b"SQLite format 3\0"])
def test_without_a_sound_register_nothing_is_released(home, damage):
    """It fails closed: what is no register is refused and left as it is."""
    home.client("report")
    for path in places.register_path().parent.glob("register.sqlite?*"):
        path.unlink()
    places.register_path().write_bytes(damage)
    home.invite(VOTES)
    assert "the register" in home.refusal("vote")
    assert places.register_path().read_bytes() == damage


def test_a_ledger_of_an_earlier_curvote_is_not_forgotten(home: Home) -> None:
    """In the working folder, and none at the new place: refused with two ways out."""
    with Ledger(places.FORMER_LEDGER) as old:
        old.set_cap(POPULATION, Budget(1.0))
    for words in (home.words("report"), ["init"], ["raise-cap", "--cap", "3"]):
        said = refused(*words)
        assert f"--ledger {places.FORMER_LEDGER}" in said
        assert "Move it there" in said
    assert not (places.register_path().parent / "ledger.sqlite").exists()
    named = ("--ledger", str(places.FORMER_LEDGER))
    assert printed(home.client("report", *named, "--json"))["left"] == 0
    commands = re.search(r"Move it there \(`(.*)`\)", said)
    assert commands is not None
    subprocess.run(commands[1], shell=True, check=True)
    assert not printed(home.client("report", "--json"))["new"]


@pytest.mark.parametrize("names", [["Ann"], ["Ann", "Bob"]])
def test_a_ledger_keeps_the_name_that_it_counts_for(home, names):
    """An earlier curvote asked for it each time: ``me`` would have spent nothing."""
    with Ledger(places.ledger_path()) as old:
        old.set_cap(POPULATION, Budget(1.0))
        for name in names:
            old.reserve(
                name, [name], Budget(1.0), population=POPULATION, facts={"number": 1}
            )
    said = home.refusal("report")
    assert ("room" if len(names) == 1 else "init --name") in said
    assert "one person has one name" in refused("init", "--name", "me")
    assert run("init", "--name", "Ann").exit_code == 0
    assert "room" in home.refusal("report")


def test_the_state_folder_is_the_users_own(home, state_home, monkeypatch):
    """Mode 0700, below XDG_STATE_HOME or the home folder; files that nobody reads."""
    own = state_home / "curvote"
    own.mkdir(mode=0o755, parents=True)
    home.client("report")
    assert own.stat().st_mode & 0o777 == 0o700
    names = {path.name for path in own.iterdir()}
    assert names >= {"ledger.sqlite", "register.sqlite", "outbox"}
    for name in ("ledger.sqlite", "register.sqlite"):
        assert (own / name).stat().st_mode & 0o777 == 0o600
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(home.root))
    expected = home.root / ".local" / "state" / "curvote" / "ledger.sqlite"
    assert places.ledger_path() == expected.resolve()


def test_a_state_folder_that_cannot_be_made_is_a_user_error(tmp_path, monkeypatch):
    """It names the folder and the variable."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert "XDG_STATE_HOME" in refused("init")
