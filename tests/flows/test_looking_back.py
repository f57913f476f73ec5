"""The commands that look back: `runs`, `diff`, `show`, `list`, `status`, `report`."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from curvote.base.errors import UserError
from curvote.cli import app
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import parse_value
from curvote.pipeline.store import records
from tests import plain, production

FEW = plain.FEW | {"replicates": 3}
OFTEN = FEW | {"schedule": {"interval": 60}, "description": "every minute"}
Run = Callable[..., str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project with two runs that differ, and pipelines of each kind."""
    made = plain.write(tmp_path_factory.mktemp("back"), tiny=FEW, often=OFTEN)
    plain.run(made)
    plain.run(made, "tiny", "aggregate.cutoff=0.6", "seed=8")
    return made


@pytest.fixture
def run(place: Project, own_variables: None) -> Run:
    """Return what a command prints; it must end well unless it is said otherwise."""

    def done(*words: str, code: int = 0) -> str:
        found = CliRunner().invoke(app.app, [*words, "--project", str(place.root)])
        assert found.exit_code == code, found.output
        return found.stdout

    return done


def test_pipelines_that_curvote_brings_are_said_to_be(
    tmp_path: Path, own_variables: None
) -> None:
    """Where the project's own file is gone, or in the wrong folder."""
    (tmp_path / "data" / "state").mkdir(parents=True)
    for words in (["list"], ["status"], ["runs"], ["check", "demo"]):
        found = CliRunner().invoke(app.app, [*words, "--project", str(tmp_path)])
        assert found.stderr.startswith(f"{tmp_path} has no pipelines.yaml, so ")


def test_runs_tell_what_differed_and_what_came_of_it(run: Run) -> None:
    """The latest first, each against the one before of the same pipeline."""
    last, first = json.loads(run("runs", "tiny", "--json"))
    assert last["changed"] == "seed 7 -> 8, aggregate.cutoff 0.7 -> 0.6"
    assert first["changed"] == "the first"
    assert all(row["main"].startswith("mrma ") for row in (first, last))
    assert "aggregate.cutoff 0.7 -> 0.6" in run("runs")
    assert len(json.loads(run("runs", "--last", "1", "--json"))) == 1


def test_a_release_has_the_number_that_noised_messages_tell(
    tmp_path: Path, own_variables: None
) -> None:
    """With its error, and said as such: nobody knows its truth."""
    made = production.write(tmp_path)
    plain.run(made, production.NAME)
    asked = ["runs", "--json", "--project", str(made.root)]
    (row,) = json.loads(CliRunner().invoke(app.app, asked).stdout)
    assert re.fullmatch(r"utility [\d.]+ ± [\d.]+ %, by noised messages", row["main"])


def test_diff_names_cutoff_and_seed(run: Run) -> None:
    """On a terminal and as one JSON document; where no page is, it says how."""
    out = run("diff", "tiny~1", "tiny")
    for said in ("seed 7 -> 8", "aggregate.cutoff 0.7 -> 0.6", "Welch, 3 and 3"):
        assert said in out
    found = json.loads(run("diff", "tiny~1", "tiny", "--json"))
    assert {one["path"] for one in found["configuration"]} == {
        "seed",
        "aggregate.cutoff",
    }
    assert found["figures"] == [None, None]
    assert found["page"] is None


@pytest.mark.usefixtures("blank_figures")
def test_an_earlier_run_has_a_page_of_its_own(run: Run, place: Project) -> None:
    """That of the latest stays where it is; `diff` says where both are."""
    runs = [row["run"] for row in json.loads(run("runs", "tiny", "--json"))]
    latest = Path(run("report", "tiny").strip())
    earlier = Path(run("report", "tiny", "--run", runs[1]).strip())
    assert latest == place.reports / "tiny" / "report.html"
    assert earlier == place.reports / "tiny" / runs[1] / "report.html"
    assert (
        "changed for this run <b>aggregate.cutoff=0.6, seed=8</b>" in latest.read_text()
    )
    assert "overridden" not in earlier.read_text()
    found = json.loads(run("diff", runs[1], runs[0], "--json"))
    assert found["figures"] == [str(earlier), str(latest)]


def test_figures_stand_side_by_side_on_a_page(run: Run) -> None:
    """One file that asks for nothing: settings, scores, a pair a figure."""
    found = json.loads(run("diff", "tiny~1", "tiny", "--page", "--json"))
    text = Path(found["page"]).read_text()
    assert text.count("<svg") == 2 * text.count('class="pair"') > 0
    assert "aggregate.cutoff" in text
    assert "<script" not in text
    assert "http" not in text.replace("http://www.w3.org", "")


def test_tables_say_what_was_overridden(run: Run) -> None:
    """In their head, so that a copied table says what it is of."""
    assert "with aggregate.cutoff=0.6, seed=8" in run("scores", "tiny")


def test_show_prints_a_pipeline_that_could_stand_in_the_file(run: Run) -> None:
    """Its description as a comment, then YAML with every default filled in."""
    out = run("show", "often")
    assert out.startswith("# every minute\n")
    own = parse_value(out)["often"]
    assert own["aggregate"]["cutoff"] == 0.7
    assert own["privatize"]["mechanism"] == "laplace"
    told = run("show", "often", "--set", "aggregate.cutoff=0.6")
    assert parse_value(told)["often"]["aggregate"]["cutoff"] == 0.6


def test_list_groups_pipelines_and_says_what_they_are(run: Run) -> None:
    """What reproduces papers stands there where it is asked for."""
    out = run("list")
    assert out.index("on a schedule") < out.index("often") < out.index("studies")
    assert "every minute" in out
    assert "table-1" not in out
    assert "table-1" in run("list", "--all")


def _rows(run: Run, *words: str) -> dict[str, dict[str, str]]:
    found = json.loads(run("status", "--json", *words))
    return {row["pipeline"]: row for row in found}


def test_a_killed_run_is_recognised_at_once(run: Run, place: Project) -> None:
    """Though nobody has written it down; the last success stands beside."""
    done = plain.run(place, "often")
    made = plain.plan(place, "often")
    owner = "pid:4194305@1"  # above the highest number that a process may have
    record = records.record_start(place, made.configured, made.steps, owner)
    row = _rows(run)["often"]
    assert (row["run"], row["status"]) == (record.id, "killed")
    assert row["last_success"] == done.finished
    assert row["group"] == "on a schedule"
    runs = json.loads(run("runs", "often", "--json"))
    assert [one["status"] for one in runs] == ["killed", "completed"]
    assert records.load_record(place, record.id) == record


def test_reproductions_are_shown_where_they_are_asked_for(
    run: Run, place: Project
) -> None:
    """Those that ran here; what left pipelines.yaml is always shown."""
    for name in ("figure-2", "once"):
        made = replace(plain.plan(place).configured, name=name)
        records.record_end(
            place, records.record_start(place, made, (), ""), "completed"
        )
    assert {"once", "tiny"} <= set(_rows(run))
    assert "figure-2" not in _rows(run)
    assert "figure-2" in _rows(run, "--all")


@pytest.mark.parametrize(
    "words", [("runs", "tinny"), ("diff", "tiny", "tinny"), ("show", "tinny")]
)
def test_a_wrong_name_is_a_user_error(place: Project, words: tuple[str, ...]) -> None:
    """With the one that was meant."""
    asked = [*words, "--project", str(place.root)]
    found = CliRunner().invoke(app.app, asked)
    assert isinstance(found.exception, UserError)
    assert "Did you mean 'tiny'?" in str(found.exception)
