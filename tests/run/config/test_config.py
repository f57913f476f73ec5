"""pipelines.yaml: every problem in one pass, each with its line and a way out."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from curvote.base.errors import UserError
from curvote.chain.settings import LEAST_SECONDS, parse_span
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import Runtime, editor_schema
from curvote.pipeline.config.settings import labelled_parts
from curvote.pipeline.config.yaml_document import as_yaml, parse_value
from tests import plain


def problems(root: Path, **changes: Any) -> str:
    """Return the message for the tiny pipeline with dotted keys changed."""
    pipeline: dict[str, Any] = {
        key: dict(value) if isinstance(value, dict) else value
        for key, value in plain.TINY.items()
    }
    for path, value in changes.items():
        first, _, second = path.partition("__")
        if second:
            pipeline[first][second] = value
        else:
            pipeline[first] = value
    project = plain.write(root, tiny=pipeline)
    with pytest.raises(UserError) as error:
        PipelinesFile(project).configure_pipeline("tiny")
    return str(error.value)


def test_every_problem_is_reported_in_one_pass_with_its_line(tmp_path: Path) -> None:
    """Two unknown keys and a wrong type: three messages, three right lines."""
    text = (
        "pipelines:\n"
        "  p:\n"
        "    source: {name: simulated}\n"
        "    clients:\n"
        "      train: sixty\n"
        "      vote: 80\n"
        "      test: 40\n"
        "      trian: 4\n"
        "    project: {basis: bspline, size: 4}\n"
        "    train: {count: 5, size: 20}\n"
        "    agregate: {cutoff: 0.8}\n"
        "    epsilon: 1\n"
        "    learners: [centroid]\n"
    )
    (tmp_path / "pipelines.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        PipelinesFile(Project(tmp_path)).configure_pipeline("p")
    message = str(error.value)
    assert "pipelines.yaml:5: clients.train" in message
    assert (
        "pipelines.yaml:8: clients.trian: not known. Did you mean 'train'?" in message
    )
    assert "pipelines.yaml:11: agregate: not known. Did you mean 'aggregate'" in message
    assert len(error.value.problems) == 3


PHONEMES = {"name": "phonemes"}
MANY = {"public": 50, "train": 300, "vote": 1150, "test": 536}


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "one"])
def test_an_epsilon_outside_the_positive_numbers_is_refused(
    tmp_path: Path, epsilon: object
) -> None:
    """0 < epsilon < inf, and NaN fails too."""
    message = problems(tmp_path, epsilon=[1, epsilon])
    assert "pipelines.yaml" in message
    assert "epsilon.1" in message


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"project__basis": "fourier"}, "Fourier sizes are odd: 3 or 5, not 4"),
        ({"project__size": 3}, "order 4 need a size of at least 4"),
        ({"project__basis": "bsplin"}, "Did you mean 'bspline'?"),
        ({"project__rescale": "tanhh"}, "Did you mean 'tanh'?"),
        ({"project__centre": [0.0, 1.0]}, "centre has shape (2,)"),
        ({"project__scale": 0}, "scale is 0 for coordinate 0"),
        ({"project__rescale": "min_max", "project__upper": -2}, "lower is -1"),
        ({"project__rescale": "min_max"}, "min_max needs bounds"),
        ({"project__centre": "volunteers"}, "at least 2 of them (clients.public)"),
        ({"learners": ["logistik"]}, "Did you mean 'logistic'?"),
        ({"learners": [{"name": "cg", "stps": 3}]}, "Did you mean 'steps'?"),
        ({"learners": ["cg", {"name": "cg", "steps": 2}]}, "cg stands twice"),
        ({"epsilon": [1, 1.0]}, "stands twice"),
        ({"privatize": {"mechanism": "laplac"}}, "Did you mean 'laplace'?"),
        ({"privatize": {"label_share": 1.5}}, "privatize.label_share"),
        ({"source__name": "phonems"}, "Did you mean 'phonemes'?"),
        ({"source": {"name": "simulated", "pionts": 9}}, "Did you mean 'points'?"),
        ({"train__size": 61}, "61 reports a learner, but only 60 train"),
        ({"train__count": 81}, "81 classifiers, but only 80 clients vote"),
        ({"aggregate__cutoff": 0.4}, "aggregate.cutoff"),
        ({"aggregate__when_none_pass": "sof"}, "aggregate.when_none_pass"),
        ({"protocol": "mrmb"}, "Did you mean 'mrma'?"),
        ({"clients__test": True}, "clients.test"),
        ({"source": PHONEMES, "clients": MANY}, "2036, but there are only 2035"),
        ({"source": PHONEMES | {"positive": "zh"}}, "'sh'"),
        ({"schedule": {}}, "either cron or interval"),
        ({"schedule": {"cron": "* * * * *", "interval": 3}}, "either cron or interval"),
    ],
)
def test_what_does_not_make_sense_is_refused_with_the_way_out(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    """The message names the place and what would be right."""
    message = problems(tmp_path, **changes)
    assert said in message
    assert "pipelines.yaml:" in message


def test_what_none_of_several_systems_reads_is_refused(tmp_path: Path) -> None:
    """A whole section, and a key that only others know of one they have."""
    names = ["direct", "votes"]
    more = {"protocols": names, "train": {}, "online": {"arrivals": 2}}
    given = plain.of(*names) | more
    with pytest.raises(UserError) as error:
        PipelinesFile(plain.write(tmp_path, tiny=given)).configure_pipeline("tiny")
    assert "train: none of direct, votes reads it: it belongs" in str(error.value)
    assert "online.arrivals: not known. Known: error" in str(error.value)


def test_a_run_s_configuration_gives_back_each_systems_form(tmp_path: Path) -> None:
    """Of `online` MRMA knows one key; beside `online` the others are no error."""
    given = plain.TINY | {
        "source": {"name": "drifting", "points": 20, "periods": 2},
        "protocols": ["mrma", "online"],
        "online": {"arrivals": 2, "error": 0.1},
    }
    configured = PipelinesFile(plain.write(tmp_path, tiny=given)).configure_pipeline(
        "tiny"
    )
    one, other = (setting.pipeline.online for setting in configured.settings)
    assert (one.model_dump(), other.arrivals) == ({"error": 0.1}, 2)
    parts = [part for _, part in labelled_parts(configured.values())]
    assert [part.settings.online for part in parts] == [one, other]


def test_the_pipelines_of_this_project_are_right() -> None:
    """The shipped pipelines.yaml passes its own check."""
    root = Path(__file__).resolve().parents[3]
    file = PipelinesFile(Project(root))
    file.check_all()
    assert {"demo", "simulated", "phonemes"} <= set(file.names())


@pytest.mark.parametrize("mode", ["study", "production"])
def test_each_part_of_a_wrong_source_is_named(tmp_path: Path, mode: str) -> None:
    """Unquoted false and an infinite bound of a remote table: key, line and way out."""
    source = {
        "name": "remote_table",
        "servers": ["here"],
        "features": {"age": [20, 90], "dose": [0, float("inf")]},
        "classes": [False, True],
    }
    changes = {"source": source, "protocol": "direct", "mode": mode}
    said = problems(tmp_path, **changes).split("\n")
    for at, key, why in (
        (13, "features.dose.1", "must be a finite number (given: inf)."),
        (15, "classes.0", "put false in quotes to make it a text (given: false)."),
        (16, "classes.1", "put true in quotes to make it a text (given: true)."),
    ):
        assert f"pipelines.yaml:{at}: source.{key}: {why}" in said


def test_signs_are_made_of_two_classes_only(tmp_path: Path) -> None:
    """More are refused at their line, before a file is looked for."""
    protocol = "mrma_privunit"
    source = {"name": "phonemes", "classes": ["aa", "iy", "sh"]}
    own = {"source": source, "project": {"basis": "bspline", "size": 4}}
    project = plain.write(tmp_path, tiny=plain.of(protocol) | own)
    with pytest.raises(UserError) as error:
        PipelinesFile(project).configure_pipeline("tiny")
    said = f"source.classes: {protocol} tells two classes apart, not 3."
    assert f"pipelines.yaml:5: {said}" in str(error.value)
    PipelinesFile(project).configure_pipeline("tiny", ["source.classes=[sh, iy]"])


def test_the_schema_for_editors_is_current_and_accepts_the_shipped_file() -> None:
    """docs/pipelines.schema.json is what `curvote list --schema` prints."""
    root = Path(__file__).resolve().parents[3]
    stored = json.loads((root / "docs" / "pipelines.schema.json").read_text())
    assert stored == editor_schema(), "run python -m docs.making.pipelines"
    shipped = parse_value((root / "pipelines.yaml").read_text())
    jsonschema.validate(shipped, stored)
    shipped["pipelines"]["demo"]["agregate"] = {}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(shipped, stored)


@pytest.mark.parametrize(
    ("axis", "line"),
    [
        ("    grid:\n      train.cuont: [1, 2]\n", 4),
        ("    grid:\n      cut:\n        low: {train.cuont: 1}\n", 5),
        ("    protocols:\n      - {name: mrma, train.cuont: 1}\n", 4),
    ],
)
def test_what_an_axis_sets_is_reported_at_the_axis(
    tmp_path: Path, axis: str, line: int
) -> None:
    """Not at the section that would hold it, where it does not stand."""
    own = "".join(f"    {each}\n" for each in as_yaml(plain.TINY).splitlines())
    text = f"pipelines:\n  tiny:\n{axis}{own}"
    (tmp_path / "pipelines.yaml").write_text(text)
    with pytest.raises(UserError) as refused:
        PipelinesFile(Project(tmp_path)).configure_pipeline("tiny")
    assert f"pipelines.yaml:{line}: train.cuont: not known" in str(refused.value)


def file(root: Path, stated: Any) -> PipelinesFile:
    """Return a file of one pipeline with this section."""
    whole = {"pipelines": {"tiny": plain.TINY}, "runtime": stated}
    (root / "pipelines.yaml").write_text(as_yaml(whole))
    return PipelinesFile(Project(root))


def test_a_file_without_the_section_runs_here(tmp_path: Path) -> None:
    """On the processors of this machine, and nothing is ever thrown away."""
    assert file(tmp_path, None).runtime() == Runtime()
    assert Runtime().retention.runs is None


@pytest.mark.parametrize(("span", "hours"), [("1h", 1), ("36 h", 36), ("2w", 336)])
def test_spans_are_hours_days_or_weeks(span: str, hours: int) -> None:
    """An hour is the least."""
    assert parse_span(span) == hours * LEAST_SECONDS


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"engine": "ray"}, "runtime.engine: .*'local', 'threads' or 'dask'"),
        ({"cluster": "tcp://here:1"}, "only engine dask has a cluster"),
        ({"artifacts": "/mnt/there"}, "runtime.artifacts"),
        ({"retention": {"runs": "0h"}}, "under an hour would take"),
        ({"retention": {"runs": "90"}}, "write a span of time as 36h, 90d or 12w"),
        ({"retention": {"run": "90d"}}, "not known. Did you mean 'runs'"),
        ({"notify": {"on": ["always"]}}, "'missed' or 'recovered'"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, stated: dict[str, Any], words: str
) -> None:
    """With the line it stands in; a check of the file finds it, too."""
    bad = file(tmp_path, stated)
    for check in (bad.runtime, bad.check_all):
        with pytest.raises(UserError, match=words) as found:
            check()
        assert str(found.value).startswith("pipelines.yaml:")
