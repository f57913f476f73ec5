"""What differs between two runs: settings, keys with reasons, scores beyond chance."""

import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from curvote.chain.axis import Cell
from curvote.chain.measure import Metric
from curvote.pipeline.config.project import Project
from curvote.pipeline.run import comparison as changes
from curvote.pipeline.run.comparison import RunComparison, compare_runs
from curvote.pipeline.run.history import changed_settings, describe_change
from curvote.pipeline.store.records import RunRecord
from tests import plain

FEW = plain.FEW | {"replicates": 4}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project with runs of one pipeline: as it stands, and otherwise."""
    made = plain.write(tmp_path_factory.mktemp("place"), tiny=FEW)
    plain.run(made)
    plain.run(made, "tiny", "aggregate.cutoff=0.55", "seed=8")
    plain.run(made, "tiny", "aggregate.cutoff=0.55")
    plain.run(made, "tiny", "replicates=1")
    return made


def _two(place: Project, back: int) -> RunComparison:
    """Compare the first run with one that was begun later."""
    return compare_runs(place, "tiny~3", f"tiny~{back}")


def test_another_cutoff_and_another_seed_are_named(place: Project) -> None:
    """Both as settings, and each as the reason of the keys that it changes."""
    found = _two(place, 2)
    assert {s.path: (s.a, s.b) for s in found.settings} == {
        "seed": (7, 8),
        "aggregate.cutoff": (0.7, 0.55),
    }
    reasons = {one.stage: one.reasons for one in found.keys}
    assert "parameter seed 7 -> 8" in reasons["ingest"]
    assert "parameter aggregate.cutoff 0.7 -> 0.55" in reasons["aggregate"]
    assert {change.test for change in found.scores} == {"welch"}
    assert found.notes[0].startswith("Welch, 4 and 4 independent replicates")


def test_one_seed_pairs_replicates(place: Project) -> None:
    """What the change cannot reach is equal, bit for bit; its keys are, too."""
    found = _two(place, 1)
    assert {one.stage for one in found.keys} == {"aggregate", "report"}
    assert found.same > 0
    said = {change.where["method"]: change.verdict for change in found.scores}
    assert said["weak"] == said["voting"] == "equal"
    assert found.notes[0].startswith("paired, 4 shared replicates")
    assert {c.test for c in found.scores if c.verdict != "equal"} <= {"paired", ""}


def test_one_replicate_claims_nothing(place: Project) -> None:
    """Whatever it found."""
    found = _two(place, 0)
    assert not found.significant
    assert {c.verdict for c in found.scores} <= {"equal", "one replicate: no claim"}
    assert all(c.z is None and c.p is None for c in found.scores)


def test_a_run_is_like_itself(place: Project) -> None:
    """Nothing differs, and every score says so."""
    found = compare_runs(place, "tiny", "tiny")
    assert (found.settings, found.keys) == ([], [])
    assert {change.verdict for change in found.scores} == {"equal"}


def test_what_gc_took_leaves_the_rest_to_compare(place: Project) -> None:
    """In words, for keys and for scores; the configuration stands in the record."""
    moved = [root for root in place.stores if (root / "aggregate").is_dir()]
    for root in moved:
        shutil.move(root / "aggregate", root / ".away")
    shutil.move(place.clients / "report", place.clients / ".report")
    try:
        found = _two(place, 1)
    finally:
        shutil.move(place.clients / ".report", place.clients / "report")
        for root in moved:
            shutil.move(root / ".away", root / "aggregate")
    assert [str(s) for s in found.settings] == ["aggregate.cutoff 0.7 -> 0.55"]
    assert {"unknown: the artifact of A and B is not there, or not any more"} == {
        reason for one in found.keys for reason in one.reasons
    }
    assert found.scores == []
    assert "what it stored in report is gone" in found.notes[0]


def test_the_document_is_plain_json(place: Project) -> None:
    """Configuration, keys with reasons, scores with z, and where figures are."""
    made = _two(place, 2).to_document()
    assert {"configuration", "keys", "scores", "figures", "notes"} <= set(made)
    assert {"a", "b", "difference", "se", "z", "p", "test", "verdict"} <= set(
        made["scores"][0]
    )
    assert made["b"]["overrides"] == ["aggregate.cutoff=0.55", "seed=8"]


def _record(**config: Any) -> RunRecord:
    return RunRecord("one", "tiny", "", [], config, [])


def test_null_and_absent_are_alike_and_words_are_no_setting() -> None:
    """A record of an earlier version lacks keys that are null today."""
    one = _record(a={"b": 1, "c": None}, description="old", seed=1)
    other = _record(a={"b": 2}, description="new", seed=1, d=None)
    assert [str(s) for s in changed_settings(one, other)] == ["a.b 1 -> 2"]


def test_a_list_of_runs_says_what_changed_since_the_one_before() -> None:
    """From records alone; where settings are equal, by the reasons of the plan."""
    step = {"stage": "train", "cell": {}, "key": "a", "action": "run"}
    one = replace(_record(seed=1), steps=[step | {"reason": "never run"}])
    why = {"key": "b", "reason": "code curvote.learning.train changed"}
    other = replace(_record(seed=1), steps=[step | why])
    assert describe_change(None, one) == "the first"
    assert describe_change(one, one) == "nothing"
    assert describe_change(one, other) == "code curvote.learning.train changed"
    assert describe_change(one, replace(other, config={"seed": 2})) == "seed 1 -> 2"
    assert describe_change(one, _record()) == "this one could not be planned"
    assert describe_change(_record(), one) == "the one before could not be planned"


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_both_tests_are_those_of_the_books(shift: float) -> None:
    """Welch's and the paired one, as scipy has them."""
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=9), rng.normal(shift, 2.0, size=9)
    se, df = changes._welch_error(a, b)
    p = 2 * stats.t.sf(abs(b.mean() - a.mean()) / se, df)
    assert p == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)
    se, df = changes._paired_error(a, b)
    p = 2 * stats.t.sf(abs(b.mean() - a.mean()) / se, df)
    assert p == pytest.approx(stats.ttest_rel(a, b).pvalue)


METRIC = Metric("misclassification", "error")


def _claimed(test: changes.Test, common: float, shift: float = 0.0) -> float:
    """Return how often one score alone is called changed, of 2,000 pairs of runs.

    Values of both runs share a part of this size in each replicate; the own part has
    size 1, and that of B is shifted.
    """
    rng, found = np.random.default_rng(17), []
    error = {"paired": changes._paired_error, "welch": changes._welch_error}[test]
    for _ in range(2000):
        shared = common * rng.normal(size=8)
        a, b = (shared + rng.normal(at, size=8) for at in (0.0, shift))
        means = float(a.mean()), float(b.mean())
        one = changes.ScoreChange({}, METRIC, *means, test, (8,), *error(a, b))
        found += changes._with_verdicts([one])
    return sum(change.significant for change in found) / len(found)


@given(a=st.integers(1, 999), by=st.integers(1, 999), n=st.integers(2, 20))
def test_the_same_change_everywhere_has_no_spread(a: int, by: int, n: int) -> None:
    """Whatever rounding makes of it: nothing is claimed of what never varies."""
    before = (a + np.arange(n)) / 1000
    assert changes._paired_error(before, before + by / 1000)[0] == 0
    one, other = np.full(n, a / 1000), np.full(n, by / 1000)
    assert changes._welch_error(one, other) == (0, 0)


@pytest.mark.parametrize(("test", "common"), [("paired", 3.0), ("welch", 0.0)])
def test_two_runs_alike_differ_in_one_score_of_twenty(
    test: changes.Test, common: float
) -> None:
    """With common clients and noise, where pairs are taken, and without, where not.

    A frequency of 5 % in 2,000 has a standard error of .49 points.
    """
    assert 0.035 < _claimed(test, common) < 0.065


def test_the_wrong_error_of_pairs_finds_nothing() -> None:
    """What is common does not count: with it, a true change is overlooked."""
    assert _claimed("welch", common=3.0) < 0.005  # not calibrated: the broken twin
    assert _claimed("paired", common=3.0, shift=2.0) > 0.75
    assert _claimed("welch", common=3.0, shift=2.0) < 0.25


def _judged(
    place: Project, shifts: list[float], n: int = 30
) -> list[changes.ScoreChange]:
    """Judge made-up scores of which some are shifted."""
    known = {m.name: m for m in changes._declared_metrics(_two(place, 1).a)}
    rng = np.random.default_rng(11)
    made = []
    for i, shift in enumerate(shifts):
        where = {"method": f"m{i}", "metric": next(iter(known))}
        a, b = pd.Series(rng.normal(size=n)), pd.Series(rng.normal(shift, size=n))
        made.append(changes._test_change(where, known, a, b, "welch"))
    return changes._with_verdicts(made)


def test_changes_beyond_chance_are_found_and_no_other(place: Project) -> None:
    """A large shift among many scores that stayed; the direction is told."""
    found = _judged(place, [0.0] * 40 + [3.0, -3.0])
    assert [c.verdict for c in found if c.significant] == ["worse", "better"]


def test_chance_alone_is_seldom_called_a_change(place: Project) -> None:
    """Of 100 families of 20 scores without a change at most 15 have a claim.

    5 are expected; more than 15 have a chance below 1e-4, and the seed is fixed.
    """
    known = {m.name: m for m in changes._declared_metrics(_two(place, 1).a)}
    rng = np.random.default_rng(3)
    where = {"method": "m", "metric": next(iter(known))}
    wrong = 0
    for _ in range(100):
        pairs = rng.normal(size=(20, 2, 6))
        made = [
            changes._test_change(where, known, pd.Series(a), pd.Series(b), "paired")
            for a, b in pairs
        ]
        wrong += any(c.significant for c in changes._with_verdicts(made))
    assert wrong <= 15


def test_no_coordinate_is_lost_and_no_two_look_alike() -> None:
    """A liar's share of 0 is a coordinate; epsilons differ in their seventh digit."""
    where = {"liars": 0.0, "epsilon": 1.0, "learner": None, "method": "m"}
    metric = Metric("misclassification", "one")
    change = changes.ScoreChange(where, metric, 0.1, 0.2, "", (1,))
    assert change.cell.to_json() == {"liars": 0.0, "epsilon": 1.0}
    shown = {
        str(Cell.from_mapping({"epsilon": e})) for e in (0.1234567, 0.12345671, 1, 1.0)
    }
    assert shown == {"epsilon=0.1234567", "epsilon=0.12345671", "epsilon=1"}
