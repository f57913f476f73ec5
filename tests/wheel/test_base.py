"""The base of curvote is the client: what it does without an extra, and says."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from tests import lean
from tests.client.test_client_silence import publish
from tests.fuzzing import invited
from tests.hospitals import Hospital, steward
from tests.registry import FORM, Keeper, invitations, people, server
from tests.valid_tasks import document, tasks

# One task of each kind that asks single clients; PrivUnit and Gaussian noise take more.
ANSWERED = (
    "mrma-report-0 mrma-vote-0 votes-vote-0 majority-report-0 mrma_classes-report-0"
    " mrma_classes-vote-0 counts-report-0 stump-report-0 tree-report-0 drift-report-0"
    " online-report-0 online-vote-0 federated-report-0 federated-vote-0"
    " mechanism-duchi_vector mechanism-exponential mechanism-joint_box"
    " mechanism-sampled mechanism-square_wave"
)
LAWS = "direct-report-0 direct_two-refinement-0 sgd-gradient-0 mechanism-gaussian"
EVERY = "direct_two-report-0 direct_one_of-report-0 mrma_privunit-report-0"


# Each command in turn; what one imports is there for the next, and nothing heavier.
END = "-- ended well"
EACH = f"""
from curvote.cli.app import main
for command in sys.argv[1:]:
    sys.argv = ["curvote", *command.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, command
    print({END!r}, flush=True)
"""


def _answer(folder: Path, name: str) -> tuple[int, str, int]:
    """Return exit code and errors of `curvote client answer`, and its envelopes."""
    task = replace(tasks()[name], epsilon=1.0)
    points = task.encoding.projection.matrix.shape[1]
    home = folder / "home"
    home.mkdir()
    gap = "nan" if task.encoding.smooth else "0.5"
    (home / "curve.csv").write_text("\n".join(["0.5"] * (points - 1) + [gap]) + "\n")
    words = publish(home, document(task), invited(task, 1))
    words += ["--curve", "curve.csv", "--label", "yes", "--outbox", "outbox"]
    done = lean.curvote(home, "client", "answer", *words)
    return done.returncode, done.stderr, len([*home.glob("outbox/*.json")])


@pytest.mark.parametrize(
    "name",
    [
        "mrma-report-0",
        "mrma-report-25",  # two channels, a gap
        "mechanism-joint_box",
        *(
            pytest.param(each, marks=pytest.mark.faults)
            for each in ANSWERED.split()
            if each not in {"mrma-report-0", "mechanism-joint_box"}
        ),
    ],
)
def test_the_base_answers(tmp_path: Path, name: str) -> None:
    """Every kind of task but those whose noise SciPy computes."""
    code, said, envelopes = _answer(tmp_path, name)
    assert (code, envelopes) == (0, 1), said


@pytest.mark.parametrize(
    "name",
    [
        "direct-report-0",
        *(
            pytest.param(each, marks=pytest.mark.faults)
            for each in f"{LAWS} {EVERY}".split()[1:]
        ),
    ],
)
def test_the_base_says_what_such_noise_takes(tmp_path: Path, name: str) -> None:
    """One line, the smallest extra, and nothing released."""
    code, said, envelopes = _answer(tmp_path, name)
    assert (code, envelopes) == (2, 0)
    assert said == "curvote: scipy is not installed: pip install 'curvote[laws]'\n"


def test_the_base_releases_a_label(tmp_path: Path) -> None:
    """Of one's own, and of a registry's table."""
    table = people(44)
    given = server(tmp_path / "server", table)
    given.run()
    keeper = Keeper.at(tmp_path / "home", given)
    known = invitations(given)
    keeper.invited(known["p-0"])
    words = ["--yes", "--task", "task.json", "--invitation", "invitation.json"]
    done = lean.curvote(keeper.root, "client", "label", *words, "--label", "low")
    assert done.returncode == 0, done.stderr
    for name in ("p-1", "p-2"):
        keeper.invited(known[name], f"invitations/{name}.json")
    labels = pd.DataFrame({"record": ["p-1", "p-2"], "label": ["low", "mid"]})
    labels.to_csv(keeper.root / "labels.csv", index=False)
    folder = "--invitations", "invitations"
    keeper.state(FORM)
    words = ["--yes", "--task", "task.json", "--table", "labels.csv"]
    words += ["--ledger", "ledger.sqlite"]
    done = lean.curvote(keeper.root, "client", "label", *words, *folder)
    assert done.returncode == 0, done.stderr


def test_a_table_goes_with_scipy_and_no_table_library(tmp_path: Path) -> None:
    """A hospital's: the extra `laws` alone draws the noise of its one object."""
    asked = steward(tmp_path)
    asked.run()
    hospital = Hospital.at(tmp_path, "va")
    hospital.receive(asked)
    hospital.init("--cap", "2", "--cap-delta", "0.001")
    words = ["--yes", "--task", "task.json", "--invitation", "invitation.json"]
    words += ["--label-column", "disease", "--id-column", "patient"]
    words += ["--table", "patients.csv", "--ledger", "ledger.sqlite"]
    words += ["--outbox", "outbox"]
    done = lean.curvote(hospital.root, "client", "release", *words, beside="scipy")
    assert done.returncode == 0, done.stderr
    assert len([*hospital.root.glob("outbox/*.json")]) == 1


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("demo", "pipeline"),
        ("audit", "method"),
        ("report demo", "pipeline"),
        *(
            pytest.param(words, extra, marks=pytest.mark.faults)
            for words, extra in (
                ("list", "pipeline"),
                ("run demo", "pipeline"),
                ("plan demo", "pipeline"),
                ("scores demo", "pipeline"),
                ("status", "pipeline"),
                ("serve", "pipeline"),
                ("doctor", "pipeline"),
                ("gc", "pipeline"),
                ("utility model.skops", "method"),
                ("advise --clients 9 --features 2 --epsilon 1", "method"),
                ("data fetch phonemes", "method"),
                ("data show phonemes", "method"),
            )
        ),
    ],
)
def test_a_command_says_which_extra_it_misses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, extra: str
) -> None:
    """In one line that can be typed, before anything is done."""
    monkeypatch.delenv("CURVOTE_DATA_MIRROR", raising=False)  # it needs no download
    done = lean.curvote(tmp_path, *words.split())
    assert done.returncode == 2
    (line,) = done.stderr.replace("no pipelines.yaml here", "").splitlines()[-1:]
    assert line.endswith(f"is not installed: pip install 'curvote[{extra}]'"), line
    assert "Traceback" not in done.stderr


def test_help_version_and_data_list_take_nothing(tmp_path: Path) -> None:
    """The base answers what is asked of curvote itself."""
    commands = {
        "--help": "client",
        "--version": "curvote 0.",
        "client --help": "report",
        "data list": "phonemes",
    }
    done = lean.python(tmp_path, EACH, *commands)
    shown = done.stdout.split(END)
    assert (len(shown), done.returncode) == (len(commands) + 1, 0), done.stderr
    for text, known in zip(shown, commands.values(), strict=False):
        assert known in text


def test_a_missing_estimator_is_named_with_its_extra(tmp_path: Path) -> None:
    """In Python too: the traceback ends with what to type."""
    done = lean.python(tmp_path, "import curvote; curvote.MRMAClassifier")
    assert done.stderr.splitlines()[-1].endswith("pip install 'curvote[method]'")
