"""Learning without privacy beside transfer: the same records, in plain sight."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.chain.stage import StageContext
from curvote.pipeline.run.results import RunView, final_views, mean_scores
from curvote.systems.transfer import settings, stages
from tests import plain

STUDY: dict[str, Any] = {
    "protocol": "transfer_clean",
    "source": {"name": "posterior_drift", "n": 100, "m": 2, "gamma": 0.5, "test": 200},
    "transfer": {"test": 200},
    "replicates": 4,
    "seed": 3,
}


def at(view: RunView, replicate: int) -> StageContext:
    """Return a repetition as the stage sees it."""
    asked = (*settings.ALLOCATION_SETTINGS, "target", "transfer.test")
    params = {name: view.setting(name) for name in asked}
    inputs = {"project": view.artifact("project")}
    return StageContext("report", (replicate,), (4,), inputs, params, {})


def test_it_tests_what_transfer_tests_and_learns_from_all_else(tmp_path: Path) -> None:
    """In each repetition; more records without noise do better than the target's."""
    project = plain.write(tmp_path, tiny=STUDY)
    record = plain.run(project)
    (view,) = final_views(project, record)
    for replicate in range(4):
        context = at(view, replicate)
        held, tested = stages._split_rows(context)
        assert np.array_equal(tested, stages.test_rows(context))
        every = np.concatenate([tested, *held.values()])
        assert len(np.unique(every)) == len(every) == 500
    rows = {row["method"]: row for row in mean_scores(project, record)}
    assert list(rows) == ["pooled", "target"]
    assert rows["pooled"]["epsilon"] is None
    assert rows["pooled"]["protocol"] == "transfer_clean"
    assert rows["pooled"]["balanced_se"] > 0
    assert rows["pooled"]["f1"] > 0


def test_any_number_of_classes_is_learnt() -> None:
    """Three classes apart are told apart; one alone is said of everybody."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 40)
    centres = np.array([[0.1, 0.1], [0.9, 0.1], [0.5, 0.9]])
    known = centres[labels] + 0.1 * rng.normal(size=(120, 2))
    assert np.mean(stages._predict_without_noise(known, labels, known) == labels) > 0.95
    assert (stages._predict_without_noise(known[:40], np.full(40, 2), known) == 2).all()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("target=nobody", "no server"),
        ("test=300", "test fewer"),
        ("release=cells", "release: not known"),
    ],
)
def test_what_it_cannot_do_is_refused(tmp_path: Path, said: str, words: str) -> None:
    """As by transfer; a form of release is nothing that it would read."""
    project = plain.write(tmp_path, tiny=STUDY)
    with pytest.raises(UserError, match=words):
        plain.plan(project, "tiny", f"transfer.{said}")
