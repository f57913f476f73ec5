"""Combining releases: what the model says, what weights do, what is refused."""

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.systems.transfer.method.advice import choose_form, pooled_variance
from curvote.systems.transfer.method.model import Model, combine
from curvote.systems.transfer.method.release import Release, check_release
from curvote.systems.transfer.method.task import Level, PublicSetup, Task
from tests.transfer.hospitals import releases, table, task

RULES = ["precision", "aligned", "adapt_samp", "adapt_tar", "adapt_all", "adapt_homog"]
FORMS: list[tuple[str, dict[str, Any]]] = [
    ("cells", {"grids": 100}),
    ("moments", {}),
    ("moments", {"arm": "joint"}),
    ("cells", {"grids": 100, "centring": "sums"}),
    ("moments", {"centring": "sums"}),
    ("moments", {"arm": "joint", "centring": "sums"}),
]
SUMS = {"centring": "sums"}
SIZES = {"here": 400, "there": 900, "far": 200}


def _tables(classes: int = 2, **flipped: bool) -> dict[str, Any]:
    return {
        name: table(n, seed, classes, flipped=flipped.get(name, False))
        for seed, (name, n) in enumerate(SIZES.items())
    }


def _right(model: Model, classes: int = 2) -> float:
    X, y = table(2000, 99, classes)
    return float((model.predict(X) == y).mean())


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(("form", "params"), FORMS)
@pytest.mark.parametrize("decide", ["balanced", "prior"])
def test_every_rule_learns_and_the_file_says_the_same(
    form: str, params: dict[str, Any], classes: int, decide: str
) -> None:
    """Accuracy; bytes, pickle and a DataFrame in another order give equal scores."""
    asked = task(dict.fromkeys(SIZES, 4.0), form, classes, params=params)
    told = releases(asked, _tables(classes))
    X = table(50, 98, classes)[0]
    named = pd.DataFrame(X[:, ::-1], columns=["pulse", "age"])
    for rule in RULES:
        model = combine(asked, told, "here", rule, decide)
        assert _right(model, classes) > (0.8 if classes == 2 else 0.65)  # best .76
        scores = model.decision_function(X)
        assert scores.shape == ((50,) if classes == 2 else (50, classes))
        for other in (
            Model.from_bytes(model.to_bytes()),
            pickle.loads(pickle.dumps(model)),
        ):
            assert (other.decision_function(X) == scores).all()
            assert other.servers == model.servers
        assert model.decision_function(named) == pytest.approx(scores)


def test_the_same_point_gets_the_same_answer() -> None:
    """Alone, twice or among others: noise was drawn once."""
    asked = task(dict.fromkeys(SIZES, 0.5), "cells")
    model = combine(asked, releases(asked, _tables()), "here", "adapt_all")
    X = table(20, 5)[0]
    alone = np.concatenate([model.decision_function(row[None]) for row in X])
    assert alone == pytest.approx(model.decision_function(np.tile(X, (2, 1)))[20:])


def test_turned_labels_are_noticed() -> None:
    """`aligned` drops a large source that contradicts; weights by size follow it."""
    asked = task({"here": 2.0, "there": 8.0, "far": 2.0})
    told = releases(asked, _tables(there=True))
    assert _right(combine(asked, told, "here", "aligned")) > 0.9
    assert _right(combine(asked, told, "here", "adapt_samp")) < 0.5
    standing = {each.server: each for each in combine(asked, told, "here").servers}
    assert standing["there"].weight == pytest.approx(0, abs=1e-3)
    assert standing["there"].agreement < -0.5
    se = standing["far"].agreement_se
    assert se is not None
    assert abs(standing["far"].agreement - 1) < 4 * se


@pytest.mark.parametrize("arm", ["mean", "joint"])
def test_where_the_bounds_lie_changes_little(arm: str) -> None:
    """Records a fifth of the range off the middle are told apart as well as there."""
    rights = []
    tables = {name: table(600, k) for k, name in enumerate(("here", "there"))}
    for off in (0.0, 0.2):
        asked = task(dict.fromkeys(tables, 2.0), params={"arm": arm} | SUMS)
        features = [
            (name, low - off * (high - low), high - off * (high - low))
            for name, low, high in asked.features
        ]
        asked = replace(asked, features=features)
        rights.append(_right(combine(asked, releases(asked, tables), "here")))
    assert min(rights) > max(rights) - 0.02
    assert min(rights) > 0.92


def test_a_source_that_lies_elsewhere_moves_the_centre_little() -> None:
    """The target's own sums say where it is decided; near sources make it surer."""
    (X, y), (far, told_far) = table(2000, 0), table(2000, 1)
    asked = task({"here": 1.0, "there": 1.0}, params=SUMS)
    alone = combine(asked, releases(asked, {"here": (X, y)}), "here")
    both = releases(
        asked, {"here": (X, y), "there": (far + np.array([8, -15]), told_far)}
    )
    assert _right(combine(asked, both, "here")) > _right(alone) - 0.01


def test_the_weights_follow_the_noise() -> None:
    """`precision`: a server that trusts nobody counts little, whatever its size."""
    asked = task({"here": 2.0, "there": 0.02, "far": 2.0})
    told = releases(asked, _tables())
    model = combine(asked, told, "here", "precision")
    weight = {each.server: each.weight or 0.0 for each in model.servers}
    assert weight["there"] < 0.02
    assert sum(weight.values()) == pytest.approx(1)
    by_size = [s.weight for s in combine(asked, told, "here", "adapt_samp").servers]
    assert by_size == pytest.approx([4 / 15, 9 / 15, 2 / 15])
    stated = combine(asked, told, "here", {"far": 3, "here": 1}).servers
    assert [s.weight for s in stated] == pytest.approx([0.25, 0, 0.75])


def test_rates_decide_where_they_are_asked_for() -> None:
    """With one class in twenty `prior` errs less, `balanced` finds more of it."""
    X, y = table(4000, 3)
    keep = (y == "c0") | (np.arange(len(y)) % 20 == 0)
    asked = task({"here": 4.0})
    told = releases(asked, {"here": (X[keep][:1500], y[keep][:1500])})
    X, y = X[keep][1500:], y[keep][1500:]
    said = {
        decide: combine(asked, told, "here", decide=decide).predict(X)
        for decide in ("balanced", "prior")
    }
    assert (said["prior"] == y).mean() > (said["balanced"] == y).mean()
    rare = y == "c1"
    assert (said["prior"] == y)[rare].mean() < (said["balanced"] == y)[rare].mean()
    counted = task({"here": 4.0}, "counts")
    told = releases(counted, {"here": (X, y)})
    majority = combine(counted, told, "here", "adapt_tar")
    assert {*majority.predict(X)} == {"c0"}


@pytest.mark.parametrize("form", ["cells", "moments", "counts"])
@pytest.mark.parametrize("n", [1, 2, 30])
def test_a_class_may_be_missing_and_a_record_alone(form: str, n: int) -> None:
    """Finite scores whatever the noise, from one server or beside another."""
    tables = {"here": table(n, 0), "there": table(5, 1)}
    tables["here"][1][:] = "c0"
    level = Level(0.1, 1e-4)  # one record has no default
    asked = task(dict.fromkeys(tables, level), form, 3)
    told = releases(asked, tables)
    for rule in RULES:
        for some in (told, told[:1]):
            for decide in ("balanced", "prior"):
                model = combine(asked, some, "here", rule, decide)
                assert np.isfinite(model.decision_function(table(9, 2)[0])).all()


def test_no_noise_where_none_is_asked() -> None:
    """`public` is written, `own` never; the model of the latter says so."""
    asked = task({"here": "own", "there": "public", "far": 1.0})
    told = releases(asked, _tables())
    assert [each.sigma for each in told[:2]] == [0, 0]
    assert told[1].to_json()["n"] == 900
    with pytest.raises(UserError, match="never written"):
        told[0].to_json()
    text = told[1].to_json() | {"server": "here", "task": told[0].task}
    with pytest.raises(UserError, match="no file holds it"):
        Release.of(text, asked)
    inside = check_release(asked.for_server("here"), told[0].n, told[0].values)
    assert combine(asked, [inside, *told[1:]], "here").inside
    for rule in RULES:
        assert _right(combine(asked, told, "here", rule)) > 0.9
    assert not combine(asked, told[1:], "far").inside


def test_noise_depends_on_task_server_and_seed_alone() -> None:
    """Other records get the same noise, another server or budget another."""
    asked = task(dict.fromkeys(SIZES, 1.0))
    X, y = table(50, 1)
    one = dict.fromkeys(SIZES, (X, y))
    other = {name: table(50, 2) for name in SIZES}
    noise = [
        [told.values - clean.values for told, clean in zip(*pair, strict=True)]
        for pair in (
            (releases(asked, tables), releases(_public(asked), tables))
            for tables in (one, other)
        )
    ]
    assert np.array_equal(noise[0], noise[1])
    assert not (noise[0][0] == noise[0][1]).any()


def _public(asked: Task) -> Task:
    return task(dict.fromkeys(asked.servers, "public"))


def test_what_does_not_fit_is_refused() -> None:
    """Each with its reason: the target, a stale release, two of one, names, X."""
    asked = task(dict.fromkeys(SIZES, 1.0))
    told = releases(asked, _tables())
    stale = releases(task(dict.fromkeys(SIZES, 2.0)), _tables())
    refused: list[tuple[str, Any]] = [
        ("missing", lambda: combine(asked, told[1:], "here")),
        ("target is 'nowhere'", lambda: combine(asked, told, "nowhere")),
        ("two releases of far", lambda: combine(asked, [*told, told[2]], "here")),
        ("it is asked", lambda: combine(asked, [told[0], stale[1]], "here")),
        ("weights is 'alined'", lambda: combine(asked, told, "here", "alined")),
        ("at least 0", lambda: combine(asked, told, "here", {"far": -1})),
        ("at least 0", lambda: combine(asked, told, "here", {})),
        ("decide is", lambda: combine(asked, told, "here", decide="maybe")),
    ]
    model = combine(asked, told, "here")
    frame = pd.DataFrame(table(3, 1)[0], columns=["age", "pulse"])
    refused += [
        ("pulse", lambda: model.predict(frame[["age"]])),
        ("NaN", lambda: model.predict(frame.assign(age=np.nan))),
        ("2 features", lambda: model.predict(np.zeros((3, 3)))),
    ]
    for reason, call in refused:
        with pytest.raises(UserError, match=reason):
            call()


HEART = {"cleveland": 303, "hungarian": 142, "switzerland": 116, "va": 141}


def _levels(epsilon: float | str) -> dict[str, Level]:
    return {name: Level(epsilon) for name in HEART}


def _setup(
    d: int, classes: int, sizes: Mapping[str, int | None], target: str
) -> PublicSetup:
    return PublicSetup(d, classes, sizes, _levels(1.0), target)


def test_a_few_features_are_cells_and_more_a_line() -> None:
    """Two: cells at half the range; seven: sums, and products as far as they fit."""
    two = choose_form(_setup(2, 2, HEART, "va"))
    assert (two.release, two.params["pitch"]) == ("cells", 0.5)
    heart = choose_form(_setup(7, 2, HEART, "va"))
    assert (heart.release, heart.params["arm"]) == ("moments", "joint")
    assert choose_form(_setup(200, 2, HEART, "va")).params["arm"] == "mean"
    assert "too many for cells" in heart.reason
    assert choose_form(_setup(7, 2, {"va": 141}, "va")).weights == "adapt_tar"


@pytest.mark.parametrize("d", [1, 2, 3, 4, 30])
@pytest.mark.parametrize("classes", [2, 5, 20])
def test_a_task_can_be_made_of_it(d: int, classes: int) -> None:
    """The parameters fit, and a release fits one envelope."""
    choice = choose_form(_setup(d, classes, HEART, "va"))
    features = [(f"x{k}", 0, 1) for k in range(d)]
    names = [str(k) for k in range(classes)]
    task = Task(features, names, {"va": 1.0}, choice.release, choice.params)
    assert task.params.items() >= choice.params.items()


def test_more_trust_is_less_variance() -> None:
    """Down to sampling alone; a target that is no server is refused."""
    falling = [pooled_variance(HEART, _levels(e)) for e in (0.25, 1.0, 10.0, "public")]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] == pytest.approx(1 / (4 * sum(HEART.values())))
    with pytest.raises(UserError, match="va holds is not known"):
        choose_form(_setup(7, 2, HEART | {"va": None}, "va"))
