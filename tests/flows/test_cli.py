"""The command line: JSON as documented, exit codes, one message and no traceback."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from curvote.cli import app
from curvote.pipeline.config.project import Project


def curvote(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str
) -> tuple[int, str, str]:
    """Run the command line in this process; return exit code, output and errors."""
    monkeypatch.setattr(sys, "argv", ["curvote", *words])
    with pytest.raises(SystemExit) as end:
        app.main()
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    finished: Project,
) -> Any:
    """Return the command line, standing in the finished project."""
    monkeypatch.chdir(finished.root)
    return lambda *words: curvote(capsys, monkeypatch, *words)


def test_plan_prints_one_json_document(run: Any) -> None:
    """Seven columns, all reused; what would run says its first reason, --why all."""
    code, out, _ = run("plan", "tiny", "--json")
    rows = json.loads(out)
    assert code == 0
    assert {frozenset(row) for row in rows} == {
        frozenset({"stage", "part", "cell", "key", "action", "reason", "reasons"})
    }
    assert {row["action"] for row in rows} == {"reuse"}
    code, out, _ = run("plan", "tiny", "--set", "aggregate.cutoff=0.65")
    assert "parameter aggregate.cutoff 0.7 -> 0.65" in out
    two = ("--set", "train.size=19", "--set", "train.count=4")
    _, short, _ = run("plan", "tiny", *two)
    assert "parameter train.count 5 -> 4, and 1 more: --why" in short
    _, every, _ = run("plan", "tiny", *two, "--why")
    for said in ("parameter train.count 5 -> 4", "parameter train.size 20 -> 19"):
        assert said in every


def test_an_engine_that_is_not_known_runs_nothing(run: Any) -> None:
    """One line that names the one that was meant, exit 2, before a server starts."""
    for words in (("run", "tiny", "--engine", "thread"), ("demo", "--engine", "dusk")):
        code, out, err = run(*words)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
    code, _, err = run("run", "tiny", "--engine", "thread")
    assert err == "curvote: there is no engine 'thread'. Did you mean 'threads'?\n"


def test_list_names_what_there_is(run: Any) -> None:
    """Pipelines, sources, mechanisms, learners."""
    code, out, _ = run("list", "--json")
    known = json.loads(out)
    assert code == 0
    assert known["pipelines"] == ["tiny"]
    assert {"laplace", "binary_rr"} <= set(known["mechanisms"])
    assert {"logistic", "centroid", "cg"} <= set(known["learners"])
    assert {"simulated", "phonemes"} <= set(known["sources"])
    assert {"table-1", "beyond"} <= set(known["reproduce"])


def test_a_pipeline_of_a_wing_is_planned_like_any_other(run: Any) -> None:
    """By its name, without a line in the project's file."""
    code, out, _ = run("plan", "figure-2", "--replicates", "2", "--json")
    assert code == 0
    assert {row["action"] for row in json.loads(out)} == {"run"}


def test_scores_are_those_of_the_latest_completed_run(run: Any) -> None:
    """As a table and as JSON."""
    _, out, _ = run("scores", "tiny", "--json")
    rows = json.loads(out)
    assert len(rows) == 2 * (2 * 8 + 2)
    code, table, _ = run("scores", "tiny")
    assert code == 0
    assert "mrma" in table
    assert f"{100 * rows[0]['misclassification']:.2f}" in table


def test_status_counts_sound_artifacts(run: Any) -> None:
    """With --verify every byte is read."""
    code, out, _ = run("status", "--verify", "--json")
    (row,) = json.loads(out)
    assert code == 0
    assert row["artifacts"] == "22 of 22 sound"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", "tinny"), "Did you mean 'tiny'?"),
        (("plan", "tiny", "--set", "epsilon=[0]"), "--set epsilon=[0]: epsilon.0"),
        (("plan", "tiny", "--from", "trian"), "Did you mean 'train'?"),
        (("run", "tiny", "--set", "aggregate.cutof=1"), "Did you mean 'cutoff'?"),
        (("scores", "tiny", "--run", "nonsense"), "no completed run 'nonsense'"),
        (("plan", "tiny", "--project", "/"), "no pipelines.yaml"),
    ],
)
def test_a_user_error_is_one_message_and_exit_code_2(
    run: Any, words: tuple[str, ...], said: str
) -> None:
    """No traceback, nothing on standard output."""
    code, out, err = run(*words)
    assert code == 2
    assert said in err
    assert "Traceback" not in err
    assert not out


def test_a_pipeline_without_its_raw_file_is_blocked_not_failed(
    run: Any, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``plan`` downloads nothing and says what would."""
    monkeypatch.delenv("CURVOTE_DATA_MIRROR", raising=False)
    text = (Path(__file__).parents[2] / "pipelines.yaml").read_text()
    (project.root / "pipelines.yaml").write_text(text)
    code, out, _ = run("plan", "phonemes", "--project", str(project.root), "--json")
    assert code == 0
    assert {row["action"] for row in json.loads(out)} == {"blocked"}
    assert "curvote data fetch phonemes" in out


def test_help_imports_nothing_heavy() -> None:
    """Neither numpy nor Prefect nor MLflow: --help answers at once."""
    code = (
        "import sys, curvote.cli.app\n"
        "heavy = {'numpy', 'pandas', 'prefect', 'mlflow', 'sklearn'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_an_interrupt_while_it_imports_is_no_traceback() -> None:
    """In the first second nothing runs yet. A process of its own: imports are kept."""
    script = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from curvote.cli.__main__ import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


HEAVY = ("scipy.stats", "sklearn", "prefect", "mlflow", "matplotlib", "skfda")
COMMANDS = ("list", "status", "scores tiny", "plan tiny", "gc --dry-run")
SCRIPT = f"""
import json, sys
from curvote.cli.__main__ import main
for command in {COMMANDS!r}:
    sys.argv[1:] = command.split()
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
    heavy = [name for name in {HEAVY!r} if name in sys.modules]
    print(json.dumps([command, heavy]), file=sys.stderr)
"""


def test_reading_commands_import_nothing_heavy(finished: Project) -> None:
    """In an interpreter of their own; it would take longer than all else they do."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=finished.root,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stderr.splitlines() if line[:2] == '["']
    assert told == [[command, []] for command in COMMANDS]
