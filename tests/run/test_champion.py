"""A champion is replaced beyond chance only, however often somebody looks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from curvote.flows.tracking import log as tracking
from curvote.flows.tracking.store import connect
from curvote.pipeline.config.project import Project
from curvote.pipeline.run import champion
from curvote.pipeline.run.champion import ModelScore, judge
from curvote.pipeline.run.comparison import compare_runs
from tests import plain
from tests.prepared import put_databases

RUNS, SERIES = 20, 400
NOWHERE = Project(Path("/nowhere"))  # no run is kept: judged by mean and error


def score_of(scores: np.ndarray, **changes: object) -> ModelScore:
    """Return the model_score of a run of these scores."""
    n, se = len(scores), float(scores.std(ddof=1)) / len(scores) ** 0.5
    made = ModelScore("r", {"measure": "error"}, float(scores.mean()), se, n, "lower")
    return replace(made, **changes)


def moves(series: list[ModelScore]) -> tuple[int, int]:
    """Return how often the champion of a series moves, and who it is at the end."""
    at, looks, count = 0, 0, 0
    for place, new in enumerate(series[1:], start=1):
        verdict = judge(NOWHERE, series[at], new, looks)
        looks += verdict.counted
        if verdict.champion:
            at, count = place, count + 1
    return count, at


@pytest.mark.parametrize("n", [5, 10, 0])
@pytest.mark.parametrize("law", ["normal", "exponential"])
def test_twenty_equal_models_move_the_champion_at_most_twice(
    law: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 400 series at most 5 % move it at all: here some 2 %; a release's too.

    One that is better by ten standard errors takes its place, after as many looks.
    """
    monkeypatch.setattr(champion, "load_record", lambda *_: None)
    rng = np.random.default_rng(n)
    draws = 0.2 + 0.02 * getattr(rng, f"standard_{law}")((SERIES, RUNS, n or 50))
    release = {} if n else {"n": 0}
    scores = [[score_of(one, **release) for one in series] for series in draws]
    counts = [moves(series)[0] for series in scores]
    assert max(counts) <= 2
    assert np.count_nonzero(counts) <= 0.05 * SERIES
    better = score_of(draws[0, -1] - 0.3)
    assert moves([score_of(draws[0, 0])] * (RUNS - 1) + [better])[1] == RUNS - 1


def test_no_claim_where_nothing_can_be_claimed() -> None:
    """Another source or epsilon, one replicate, the best of very many classifiers."""
    rng = np.random.default_rng(0)
    old, new = (score_of(rng.normal(mean, 0.02, 9)) for mean in (0.2, 0.1))
    assert judge(NOWHERE, old, new, 0).champion
    other = replace(new, basis={"measure": "error", "source": "b"})
    for weaker in (other, replace(new, se=None), replace(new, value=old.value)):
        assert not judge(NOWHERE, old, weaker, 0).champion
    release = [replace(s, n=0, se=0.03) for s in (old, new)]
    assert judge(NOWHERE, *release, 0).champion
    assert not judge(NOWHERE, release[0], replace(release[1], tries=9), 0).champion


def test_aliases_follow_the_verdict(tmp_path: Path, databases: Path) -> None:
    """The first is champion, an equal one challenges, a better one takes its place."""
    weak = plain.FEW | {"train": {"count": 1, "size": 2}, "replicates": 20}
    project = put_databases(databases, plain.write(tmp_path, own=weak))
    expected = {
        "seed=1": ((1, None), "the first champion"),
        "seed=1; train.count=2": ((1, 2), "not better beyond chance: mis"),
        "train={count: 5, size: 20}": ((3, None), "better beyond chance: misclass"),
        "epsilon=[1]": ((3, 4), "cannot be compared with the champion: another m"),
    }
    for change, (numbers, words) in expected.items():
        plain.run(project, "own", *change.split("; "))
        tracking.log_missing_runs(project)
        aliases = connect(project).get_registered_model("own").aliases
        current = connect(project).get_model_version_by_alias("own", "current")
        assert tuple(map(aliases.get, ("champion", "challenger"))) == numbers, change
        assert current.tags["verdict"].startswith(words)
        if "count=" in change:  # as `curvote diff` has it
            changes = compare_runs(project, "own~1", "own").scores
            (p,) = [c.p for c in changes if c.where["method"] == "mrma"]
            assert f"(p {p:.2g}, limit 0.025 at" in current.tags["verdict"]
