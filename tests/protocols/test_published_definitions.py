"""Scores and weights, plain and as the printed tables define them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.chain.stage import Columns
from curvote.curves.encoding import decision_sign
from curvote.intake.box import Intake
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.roles import split_roles
from curvote.systems.common.tables import WEAK_VARIANTS, lines_of_variant
from curvote.systems.mrma import stages
from curvote.systems.mrma.system import AGGREGATE, SCORE
from tests import plain
from tests.exchange import FAR, NAME, Server
from tests.memory import Made, Memory, do

EPSILON = 0.5
CLIENTS = {"public": 0, "train": 10, "vote": 30, "test": 40}
PARAMS = {
    "seed": 3,
    "clients": CLIENTS,
    "source.groups": None,
    "replicates": 1,
    "epsilon": 99.0,
    "project.judge": "rescaled",
    "aggregate.cutoff": 0.7,
    "aggregate.when_none_pass": "soft",
    "aggregate.weights": "excess",
    "report.definitions": "plain",
}


def counts(positive: list[int], n: int = 60) -> Columns:
    """Return counts of votes that were kept with the probability of EPSILON."""
    learner = np.arange(len(positive))
    asked = {"learner": learner, "n": np.full(len(positive), n)}
    return asked | {"positive": np.array(positive)}


def aggregated(positive: list[int], n: int = 60, **params: Any) -> Memory:
    """Return what the server makes of the counts."""
    votes = Memory.of({"epsilon": EPSILON}, votes=[counts(positive, n)])
    return do(AGGREGATE, {"evaluate": votes}, PARAMS | params)


def ensemble(positive: list[int], n: int = 60) -> Columns:
    """Return the table of the same name."""
    return aggregated(positive, n).columns("ensemble", (0,))


def study(positive: list[int]) -> Made:
    """Return clients, one weak and pooled classifier for each count, and the rest."""
    rng, count = np.random.default_rng(8), len(positive)
    z = rng.uniform(-1, 1, (80, 3))
    label = (z[:, 0] + rng.normal(size=80) > 0).astype(int)
    encoded = {"label": label, "z": z, "coefficients": z}
    weak = {
        "arm": np.repeat(np.arange(len(WEAK_VARIANTS)), [count, count, 1]),
        "coef": rng.normal(size=(2 * count + 1, 3)),
        "intercept": rng.normal(size=2 * count + 1) / 4,
    }
    return {
        "project": Memory.of(
            {"encoding": {"gram": np.eye(3).tolist()}, "classes": ["-", "+"]},
            encoded=[encoded],
        ),
        "train": Memory.of({}, weak=[weak]),
        "aggregate": aggregated(positive),
    }


def rows(given: Made, stage: str, table: str) -> Columns:
    """Return a table of the one replicate."""
    return given[stage].columns(table, (0,))


def scores(given: Made, **params: Any) -> dict[str, float]:
    """Return the error of each method."""
    found = do(SCORE, given, PARAMS | params).columns("scores", (0,))
    own = found["metric"] == "misclassification"
    return dict(zip(found["method"][own], found["value"][own], strict=True))


def errors(given: Made, decisions: Any) -> np.ndarray:
    """Return the test error of each column of decisions on all 80 clients."""
    test = split_roles(3, 0, 80, CLIENTS, None)["test"]
    labels = np.where(rows(given, "project", "encoded")["label"] == 1, 1.0, -1.0)
    return np.mean(decision_sign(decisions[test]) != labels[test, None], axis=0)


def decisions(given: Made, name: str = "weak") -> np.ndarray:
    """Return f_b(x_i) of one variant for all 80 clients, (80, B)."""
    coef, intercept = lines_of_variant(rows(given, "train", "weak"), name)
    return rows(given, "project", "encoded")["z"] @ coef.T + intercept


# ---------------------------------------------------------------------- aggregation
def test_utilities_rest_on_the_budget_that_the_votes_were_cast_with() -> None:
    """The stage asks its input for epsilon: voters may have spent another one."""
    keep = BinaryRR(epsilon=EPSILON).keep
    found = ensemble([40, 20])["utility"]
    expected = (np.array([40, 20]) / 60 + keep - 1) / (2 * keep - 1)
    np.testing.assert_allclose(found, expected)


def test_the_stage_states_and_uses_the_form_of_the_weights() -> None:
    """Three classifiers pass r0 = .7 by different margins; clipping makes two equal."""
    plain, printed = (
        aggregated([38, 45, 14], **{"aggregate.weights": form})
        for form in ("excess", "distance")
    )
    assert plain.metadata["weights"] == "excess"
    assert printed.metadata["weights"] == "distance"
    one, other = (made.columns("ensemble", (0,)) for made in (plain, printed))
    assert len(set(one["weight"].round(9))) == 3
    assert other["weight"][1] == pytest.approx(other["weight"][2])
    # Without reversal the third one counts for nothing, in either form.
    assert one["weight_ma"][2] == other["weight_ma"][2] == 0
    for name in ("utility", "reversed", "none_passed"):
        np.testing.assert_array_equal(one[name], other[name])


# ----------------------------------------------------------------------- best_single
@pytest.mark.parametrize(
    ("positive", "best"), [([31, 40, 25], 1), ([31, 40, 15], 2), ([20, 38, 40], 0)]
)
def test_best_single_is_the_reversed_one_of_highest_utility(
    positive: list[int], best: int
) -> None:
    """40 right of 60 and 40 wrong of 60 tie, whatever rounding says: the first wins."""
    given = study(positive)
    turned = np.where(np.array(positive) < 30, -1, 1) * decisions(given)
    expected = errors(given, turned)
    assert len(set(expected)) == 3
    assert scores(given)["best_single"] == expected[best]


@pytest.mark.parametrize("n", [7, 30, 60, 111])
def test_mirrored_counts_tie_at_any_count(n: int) -> None:
    """Of n, k right and k wrong are equally good: the first one stands."""
    for k in range(n // 2 + 1, n + 1):
        for pair in ([k, n - k], [n - k, k]):
            assert stages.best_single_weights(ensemble(pair, n)).tolist() == [1, 0]


# -------------------------------------------------------------------- as published
def test_weak_as_published_is_an_estimate() -> None:
    """1 minus the mean of 1, 0 and .6: utilities are clipped one by one."""
    assert stages.published_weak_error(np.array([1.5, -0.2, 0.6])) == pytest.approx(
        1 - 1.6 / 3
    )


@pytest.mark.parametrize(
    ("cutoff", "expected"), [(0.7, 0.2), (0.55, 0.3), (0.9, 0.8 / 3)]
)
def test_mr_as_published_averages_who_passes(cutoff: float, expected: float) -> None:
    """Test errors, not estimates, of the reversed ones above r0; of all if none is."""
    error, utility = np.array([0.2, 0.4, 0.2]), np.array([0.8, 0.6, 0.5])
    assert stages.published_mr_error(error, utility, cutoff) == pytest.approx(expected)


def test_voting_as_published_calls_a_tie_an_error() -> None:
    """Of four clients two are decided, one of them rightly; ties help no class."""
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    assert stages.published_voting_error(signs, np.array([1, 1, -1, 1])) == 0.75


def test_the_published_scores_replace_three_methods_only() -> None:
    """weak, mr and voting change, as defined; every other method stays as it is."""
    positive = [40, 22, 31, 29]
    given = study(positive)
    plain = scores(given)
    printed = scores(given, **{"report.definitions": "published"})
    assert list(plain) == list(printed)
    changed = {name for name in plain if plain[name] != printed[name]}
    assert changed == {"weak", "mr", "voting"}
    utility = rows(given, "aggregate", "ensemble")["utility"]
    assert printed["weak"] == pytest.approx(1 - np.clip(utility, 0, 1).mean())
    turned = np.array([1, -1, 1, -1]) * decisions(given)
    assert plain["weak"] == pytest.approx(errors(given, decisions(given)).mean())
    assert plain["mr"] == pytest.approx(errors(given, turned).mean())
    assert printed["mr"] == pytest.approx(errors(given, turned)[:2].mean())


def test_a_tied_vote_is_minus_one_unless_as_published() -> None:
    """With an even number of classifiers the printed voting errs more often."""
    given = study([40, 22, 31, 29])
    told = decision_sign(decisions(given, "pooled")).sum(axis=1)[:, None]
    found = scores(given), scores(given, **{"report.definitions": "published"})
    tied = np.where(told == 0, np.nan, told)
    assert found[0]["voting"] == errors(given, told)[0]
    test = split_roles(3, 0, 80, CLIENTS, None)["test"]
    labels = np.where(rows(given, "project", "encoded")["label"][test] == 1, 1, -1)
    assert found[1]["voting"] == np.mean(np.sign(tied[test, 0]) != labels)


SOURCE = {"name": "remote", "points": 20, "negative": "-1", "positive": "+1"}
PROJECT = {"basis": "bspline", "size": 4, "judge": "coefficients"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": SOURCE | {"positive": "yes, certainly"}}, "word or phrase"),
        ({"source": SOURCE | {"positive": "-1 "}}, "plain text"),
        ({"source": SOURCE | {"negative": "A", "positive": "a"}}, "different words"),
        ({"source": SOURCE | {"domain": [0.0, 1e16]}}, "at most 1e\\+15"),
        ({"project": PROJECT | {"scale": 1e-9}}, "at least 1e-06"),
        ({"epsilon": 2000}, "at most 1000"),
    ],
)
def test_what_clients_would_refuse_is_not_published(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    """In the same words, before a file is written or a round opened."""
    server = Server(plain.write(tmp_path / "server", **{NAME: FAR | change}))
    with pytest.raises(UserError, match=words):
        server.run()
    assert not list(server.project.published(NAME).glob("*"))
    if server.project.intake.exists():
        with Intake(server.project.intake) as intake:
            assert intake.rounds(NAME) == []
