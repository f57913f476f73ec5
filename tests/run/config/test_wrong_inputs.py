"""What new users write: each message says what, where, and what to write instead."""

from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.data.tables import table
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project

RIGHT = """\
defaults:
  seed: 3
pipelines:
  p:
    source:
      name: curves
      path: days.csv
      id: person
      label: ill
      positive: yes
      time: hour
      value: steps
      grid: {start: 0, stop: 24, points: 49}
      unit: h
      gaps: {most: 3}
      bounds: [0, 10]
    clients: {train: 60, vote: 80, test: 40}
    project: {basis: bspline, size: 4}
    train: {count: 5, size: 20}
    aggregate: {cutoff: 0.8}
    epsilon: [1, 4]
    learners: [centroid]
    replicates: 5
"""
# What stands in RIGHT, what is written instead, and of the message: line, key path (""
# for what is no YAML), words that say what is wrong and what would be right.
WRONG = [
    # Layout
    ("      id: person", "\tid: person", 8, "", "indent it by spaces (no tab)"),
    ("      id: person", "       id: person", 8, "", "indented as its neighbours"),
    ("    clients:", "   clients:", 17, "", "does not fit", "indent it"),
    ("epsilon: [", "epsilon:[", 21, "", "a space after the colon"),
    ("    replicates: 5", "    replicates 5", 23, "", "name: value is expected"),
    ("epsilon: [1, 4]", "epsilon: [1, 4", 21, "", "[ or { that is opened", "close it"),
    ("4]", "4]]", 21, "", "close only what is open"),
    ("positive: yes", 'positive: "yes', 10, "", "quote that is opened", "close it"),
    ("label: ill", "label: 10%: ill", 9, "", "a text with a colon needs quotes"),
    ("path: days", "path: *days", 7, "", "such as @, *", "needs quotes"),
    ("path: days", "path: @days", 7, "", "such as @, *", "needs quotes"),
    ("days.csv", '"C:\\days"', 7, "", "column 16", "unknown escape character"),
    ("name: curves", "<<: 3", 6, "", "<< takes a mapping by its anchor", "<<: *name"),
    ("    replicates:", "    seed: 1\n    seed:", 24, "", "a second time; keep one"),
    # Keys
    ("{most: 3}", "{max: 3}", 15, "source.gaps.max", "not known. Known: most"),
    ("{most: 3}", "{max: 3}", 15, "source.gaps.most", "is missing. Write most:"),
    ("points: 49", "point: 49", 13, "source.grid.point", "Did you mean 'points'?"),
    ("      unit: h\n", "", 5, "source.unit", "is missing. Write unit: and a text"),
    ("      gaps: {most: 3}\n", "", 5, "source.gaps", "missing. Write gaps: {most:"),
    ("train: 60, ", "train:60, ", 17, "clients.train:60", "after the colon: train: 60"),
    ("aggregate", "agregate", 20, "agregate", "not known. Did you mean 'aggregate'?"),
    ("name: curves", "nam: curves", 5, "source.name", "is missing. Known:", "table"),
    ("name: curves", "name: curve", 6, "source.name", "Did you mean 'curves'?"),
    ("pipelines:", "pipeline:", 3, "pipeline", "Did you mean 'pipelines'?"),
    ("  seed", "  sed", 2, "defaults.sed", "not known. Did you mean 'seed'?"),
    # Values
    ("path: days.csv", "path: 5", 7, "source.path", "must be a text", 'quotes: "5"'),
    ("49}", "49.5}", 13, "source.grid.points", "a whole number (given: 49.5)"),
    ("grid: {start: 0", "grid: {start: 24", 13, "source.grid.stop", "be above start"),
    ("[0, 10]", "[10, 0]", 16, "source.bounds", "first must be below the second"),
    ("[0, 10]", "[0, .inf]", 16, "source.bounds.1", "must be a finite number"),
    ("train: 60", "train: sixty", 17, "clients.train", "must be a whole number"),
    ("train: 60", "train: 1_000", 17, "clients.train", "Write 1000, without quotes"),
    ("train: 60", "train: -60", 17, "clients.train", "must be 1 or more (given: -60)"),
    ("clients: {train: 60, vote: 80, test: 40}", "clients: 180", 17, "clients", "map"),
    ("cutoff: 0.8", "cutoff: 0,8", 20, "aggregate.8", "write a point, no comma"),
    ("cutoff: 0.8", "cutoff: 80", 20, "aggregate.cutoff", "must be below 1 (given:"),
    ("[1, 4]", "[1, 0]", 21, "epsilon.1", "must be above 0 (given: 0)"),
    ("[1, 4]", "[1, high]", 21, "epsilon.1", "must be a number (given: 'high')"),
    ("[centroid]", "centroid", 22, "learners", "must be a list", "Write [centroid]"),
    ("[centroid]", "[centroids]", 22, "learners.0", "Did you mean 'centroid'?"),
    ("size: 4", "size: 3", 18, "project.size", "need a size of at least 4"),
    ("size: 20", "size: 200", 19, "train.size", "200 reports a learner, but only 60"),
    (": 5\n", ": 5\n    mode: prod\n", 24, "mode", "must be 'study' or 'production'"),
    (": 5\n", ": 5\nruntime: {engine: thread}\n", 24, "runtime.engine", "'threads'?"),
]


def said_of(root: Path, text: str) -> list[str]:
    """Return the lines that are said of a pipelines.yaml, or of its use."""
    (root / "pipelines.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        PipelinesFile(Project(root)).check_all()
    return [problem.message for problem in error.value.problems]


def test_what_the_wrong_inputs_are_made_of_is_right(tmp_path: Path) -> None:
    """An unquoted yes is the text of a label."""
    (tmp_path / "pipelines.yaml").write_text(RIGHT)
    source = PipelinesFile(Project(tmp_path)).configure_pipeline("p").pipeline.source
    assert source["positive"] == "yes"


@pytest.mark.parametrize("case", WRONG, ids=lambda case: f"{case[3]} {case[1][:20]}")
def test_a_wrong_input_is_met_with_what_where_and_what_to_write(
    tmp_path: Path, case: tuple[str, str, int, str, str]
) -> None:
    """One message has all three, and all that is said has five lines at most."""
    before, after, line, path, *words = case
    assert before in RIGHT
    every = said_of(tmp_path, RIGHT.replace(before, after, 1))
    start = f"pipelines.yaml:{line}: " + (f"{path}: " if path else "")
    own = [message for message in every if message.startswith(start)]
    assert any(all(word in message for word in words) for message in own), every
    assert len(every) <= 5


@pytest.mark.parametrize("text", ["", "- a\n", "pipelines:\n", "a = 1\n"])
def test_a_file_without_pipelines_is_told_what_to_write(
    tmp_path: Path, text: str
) -> None:
    """An empty file, a list, no names: the first line to write is shown."""
    (only,) = said_of(tmp_path, text)
    assert only.startswith("pipelines.yaml: there is no mapping named pipelines. Write")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("cutoff", "write it as a.b=value"),
        ("=1", "write it as a.b=value"),
        ("aggregate.cutof=0.7", "aggregate.cutof: not known. Did you mean 'cutoff'?"),
        ("aggregate.cutoff=0,7", "must be a number (given: '0,7'). Write 0.7,"),
        ("aggregate.cutoff=[", "[ or { that is opened here is not closed"),
        ("source.gaps.max=3", "source.gaps.max: not known. Known: most."),
        ("mode={a: null}", "(given: {a: null})."),
        ("source=[true, null]", "(given: [true, null])."),
        ("source.name={a: [null]}", "source.name: {a: [null]} is not known"),
        ("source.name=true", "source.name: true is not known"),
        ("protocol=null", "protocol: 'null' is not known"),
        ("protocol={a: true}", "protocol: '{a: true}' is not known"),
        ("epsilon=1", ""),
    ],
)
def test_a_wrong_override_is_named_as_it_was_given(
    tmp_path: Path, override: str, said: str
) -> None:
    """--set, what was given, and what would be right; a single number is a list.

    What is no text is said as YAML, not as Python.
    """
    (tmp_path / "pipelines.yaml").write_text(RIGHT)
    file = PipelinesFile(Project(tmp_path))
    if not said:
        assert file.configure_pipeline("p", [override]).pipeline.epsilon == [1]
        return
    with pytest.raises(UserError) as error:
        file.configure_pipeline("p", [override])
    assert "--set " in str(error.value)
    assert override in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("mark", "called"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars (|)")]
)
def test_a_file_with_other_separators_is_recognised(
    tmp_path: Path, mark: str, called: str
) -> None:
    """Not "no column 'age'": what separates them, and the line that says so."""
    path = tmp_path / "people.csv"
    rows = (("age", "ill"), ("61,5", "yes"), ("30,5", "no"))
    path.write_text("".join(f"{mark.join(row)}\n" for row in rows))
    source = {"label": "ill", "positive": "yes", "features": ["age"]}
    given = source | {"path": str(path), "bounds": {"age": [0, 120]}}
    parameters = table.Parameters.model_validate(given)
    with pytest.raises(UserError) as error:
        table.facts(parameters, {"path": path})
    assert f"its fields are parted by {called}. Write" in str(error.value)
    stated = source | {"path": str(path), "separator": mark, "decimal": ","}
    read = table.Parameters.model_validate(stated | {"bounds": {"age": [0, 120]}})
    assert table.clients(read, {"path": path})["curve"].tolist() == [[61.5], [30.5]]


def test_a_file_that_is_no_text_is_told_how_to_save_it(tmp_path: Path) -> None:
    """Notepad's UTF-16 is refused; its mark at the head of UTF-8 is no matter."""
    path = tmp_path / "pipelines.yaml"
    path.write_text(RIGHT, encoding="utf-16")
    with pytest.raises(UserError, match="is no text in UTF-8; save it as such"):
        PipelinesFile(Project(tmp_path))
    path.write_text(RIGHT, encoding="utf-8-sig")
    assert PipelinesFile(Project(tmp_path)).names() == ["p"]
