"""Many servers through the store: their scores, and who was left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.run.results import mean_scores, replicate_scores, run_notes
from curvote.report.page import load_page_data
from tests import plain

SERVERS = plain.TINY | {
    "protocol": "federated",
    "source": {"name": "simulated_servers", "points": 20, "servers": [1, 1, 1]},
    "learners": ["centroid"],
    "epsilon": [4],
    "replicates": 3,
}


def test_a_bad_server_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    """NaN and silence end nobody's run; the run and its page say who and why."""
    faults = {"faults": {0: "nan", 2: "silent"}}
    project = plain.write(tmp_path, tiny=SERVERS | {"federation": faults})
    record = plain.run(project)
    said = [
        "server 0 was dropped: sent numbers that are not finite",
        "server 2 was dropped: sent nothing",
    ]
    assert run_notes(project, record) == said
    assert set(said) <= set(load_page_data(project, record).notes)
    assert {row["replicates"] for row in mean_scores(project, record)} == {3}


def test_where_all_answer_nobody_is_reported(tmp_path: Path) -> None:
    """Nor where a pipeline has one server."""
    for name, pipeline in (("many", SERVERS), ("one", plain.TINY)):
        project = plain.write(tmp_path / name, tiny=pipeline)
        assert run_notes(project, plain.run(project)) == []


def test_the_servers_of_a_replicate_count_once(tmp_path: Path) -> None:
    """Two servers of a group: one value a replicate stands behind its error."""
    source = SERVERS["source"] | {"servers": [2, 1, 1]}
    project = plain.write(tmp_path, tiny=SERVERS | {"source": source})
    record = plain.run(project)
    table = replicate_scores(project, record)
    table = table[table["metric"] == "misclassification"]
    mine = table[(table["group"] == "1") & (table["method"] == "federated")]
    mine = mine[mine["metric"] == "misclassification"]
    assert len(mine) == 2 * 3
    (row,) = (
        row
        for row in mean_scores(project, record)
        if (row["group"], row["method"]) == ("1", "federated")
    )
    each = mine.groupby("replicate")["value"].mean()
    assert row["misclassification"] == pytest.approx(each.mean())
    assert row["se"] == pytest.approx(each.std(ddof=1) / 3**0.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": {"name": "simulated", "points": 20}}, "several servers"),
        ({"protocol": "mrma"}, "several servers"),
        ({"federation": {"faults": {3: "nan"}}}, "no server 3: they are 0 to 2"),
        ({"clients": {"train": 60, "vote": 7, "test": 9}}, "8 classifiers, but only 7"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    """Before anything runs, in words."""
    project = plain.write(tmp_path, tiny=SERVERS | changes)
    with pytest.raises(UserError, match=message):
        PipelinesFile(project).configure_pipeline("tiny")
