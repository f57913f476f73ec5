"""Protocol votes on plain tables: random directions, and bits that weigh them."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.classes import Classes
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.chain.lookup import find_system
from curvote.chain.stage import Columns
from curvote.curves.basis import identity
from curvote.curves.encoding import Encoding
from curvote.learning.votes import average_classifiers
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.arms import make_directions
from curvote.messages.message import ClientData
from curvote.pipeline.run.results import final_model, final_views, replicate_scores
from curvote.pipeline.store.arrow import to_arrow
from curvote.systems.common.questions import halving_code
from curvote.systems.common.tables import ENSEMBLE, VOTES, WEAK, lines_of_variant
from curvote.systems.mrma import messages as mrma
from curvote.systems.mrma.messages import DirectionVote
from curvote.wire.task import Candidates
from tests import plain, production
from tests.memory import Made, Memory, do, replicates, value
from tests.rounds import REPORTS

SYSTEM = find_system("votes")

HUGE, REPLICATES, B = 200.0, 16, 100
SIZES = {"public": 0, "train": 1000, "vote": 3000, "test": 1000}
N, D = sum(SIZES.values()), 4
TRUTH = np.array([0.5, 2.0, -1.0, 0.0, 1.0])  # of the intercept, then of z
S = make_directions("mean", D, "tanh", "auto").intercept
PARAMS: dict[str, Any] = {
    "seed": 3,
    "clients": SIZES,
    "source.groups": None,
    "epsilon": HUGE,
    "replicates": REPLICATES,
    "votes.directions": B,
    "direct.intercept": "auto",
}
TASK = replace(REPORTS, protocol="votes", asks="vote", mechanism=BinaryRR.name)
MESSAGE = DirectionVote()


def encoded(seed: int) -> Columns:
    """Return clients whose label is the sign of TRUTH applied to (1, z)."""
    z = np.random.default_rng(seed).normal(size=(N, D)) * 0.6
    label = (TRUTH[0] + z @ TRUTH[1:] > 0).astype(int)
    return {"label": label, "z": z, "coefficients": z + 100}


@lru_cache
def project() -> Memory:
    """Return the clients; z alone tells the label, coefficients would mislead."""
    encoding = Encoding(identity(D), "tanh").to_json()
    facts = {"d": D, "encoding": encoding, "classes": ["no", "yes"]}
    facts |= {"roughness": np.zeros((D, D)).tolist()}
    return Memory.of(facts, encoded=[encoded(r) for r in range(REPLICATES)])


@lru_cache
def chain(epsilon: float = HUGE) -> Made:
    """Run every stage."""
    made = {"project": project()}
    for stage in SYSTEM.stages[2:]:
        values = PARAMS | {"epsilon": epsilon}
        made[stage.name] = do(stage, made, values, replicates(REPLICATES))
    return made


def line(made: Made, replicate: int) -> tuple[np.ndarray, float]:
    """Return the weighted average as a server would make it."""
    ensemble = made["aggregate"].columns("ensemble", (replicate,))
    turn = np.where(ensemble["reversed"], -1.0, 1.0) * ensemble["weight"]
    weak = made["train"].columns("weak", (replicate,))
    return average_classifiers(*lines_of_variant(weak, "weak"), turn)


def errors(made: Made, method: str) -> np.ndarray:
    """Return the misclassification of a method in each replicate."""
    return np.array([value(rows, method) for rows in made["report"].each("scores")])


# -------------------------------------------------------------------- the directions
def test_directions_are_unit_vectors_beside_the_public_constant() -> None:
    """Each (intercept/s, coef) has length 1, s being that of `direct`'s arm mean."""
    for rows in chain()["train"].each("weak"):
        w = np.column_stack([rows["intercept"] / S, rows["coef"]])
        assert w.shape == (B, D + 1)
        np.testing.assert_allclose(np.linalg.norm(w, axis=1), 1)


def test_directions_favour_none() -> None:
    """Means of 600 uniform unit vectors lie within 6 standard errors of 0."""
    weak = chain()["train"].each("weak")
    w = np.concatenate([rows["coef"] for rows in weak])
    assert np.abs(w.mean(axis=0)).max() < 6 / np.sqrt((D + 1) * len(w))
    assert len(np.unique(w, axis=0)) == REPLICATES * B


def test_directions_come_from_no_client() -> None:
    """They are the same where there is no client to read, and for every epsilon."""
    nobody = {"project": Memory(project().metadata)}
    without = {key: PARAMS[key] for key in PARAMS if key != "epsilon"}
    found = do(SYSTEM.stages[2], nobody, without, replicates(REPLICATES))
    np.testing.assert_equal(found.tables, chain()["train"].tables)


# ------------------------------------------------------------------------- the votes
def test_everybody_votes_once() -> None:
    """Training clients too, in parts whose sizes differ by 1 at most."""
    for votes in chain()["evaluate"].each("votes"):
        assert votes["n"].sum() == SIZES["train"] + SIZES["vote"]
        assert np.ptp(votes["n"]) <= 1


def test_the_average_approaches_the_right_direction() -> None:
    """With bits told as they are, cosines with the true slopes are above 0.95."""
    for replicate in range(REPLICATES):
        coef, intercept = line(chain(), replicate)
        right = coef @ TRUTH[1:] / np.linalg.norm(coef) / np.linalg.norm(TRUTH[1:])
        assert right > 0.95
        assert intercept > 0


def test_the_average_beats_every_single_direction() -> None:
    """And the best direction the majority, by 4 standard errors each."""
    ours, best, constant = (
        errors(chain(), method) for method in ("votes", "best_single", "majority")
    )
    for gain in (best - ours, constant - best):
        assert gain.mean() > 4 * gain.std(ddof=1) / np.sqrt(REPLICATES)
    assert ours.mean() < 0.12


@pytest.mark.parametrize("epsilon", [1.0, HUGE])
def test_weights_are_utilities_less_a_half(epsilon: float) -> None:
    """After reversal every direction above chance counts, by how far above it is.

    The cutoff of the configuration has no part in it: none is given.
    """
    votes = chain(epsilon)["evaluate"].columns("votes", (0,))
    found = chain(epsilon)["aggregate"].columns("ensemble", (0,))
    keep = BinaryRR(epsilon=epsilon).keep
    excess = np.abs(votes["positive"] / votes["n"] - 0.5) / (2 * keep - 1)
    np.testing.assert_allclose(found["weight"], excess / excess.sum(), atol=1e-12)
    np.testing.assert_array_equal(found["reversed"], 2 * votes["positive"] < votes["n"])
    assert chain()["aggregate"].metadata["cutoff"] == 0.5


def test_rows_of_a_study() -> None:
    """Three methods, and whether a direction passed the cutoff."""
    (rows, *_) = chain()["report"].each("scores")
    told = ["votes", "best_single", "majority", "votes"]
    assert rows["method"][:4].tolist() == told
    assert rows["metric"][:4].tolist() == ["misclassification"] * 3 + ["none_passed"]


def test_the_server_s_tables_hold_no_client() -> None:
    """They keep their contracts, which know no id, and hold no client's number."""
    own = project().columns("encoded", (0,))
    secret = np.concatenate([own["z"].ravel(), own["coefficients"].ravel()])
    for stage, table in (("train", WEAK), ("evaluate", VOTES), ("aggregate", ENSEMBLE)):
        columns = chain(1.0)[stage].columns(table.name, (0,))
        assert to_arrow(table, ("replicate",), (0,), columns).num_rows == B
        for values in columns.values():
            assert not np.isin(secret, np.ravel(values).astype(float)).any()


# ----------------------------------------------------------------------- the message
def asked() -> Any:
    """Return the task of the round, with the directions of one replicate."""
    return MESSAGE.task(TASK, lambda _, table: chain()["train"].columns(table, (0,)))


def test_everybody_is_asked_about_the_drawn_directions() -> None:
    """The message is MRMA's vote, but for who sends it and what it is about."""
    assert MESSAGE.senders.count(SIZES) == SIZES["train"] + SIZES["vote"]
    assert mrma.Vote().senders.count(SIZES) == SIZES["vote"]
    coef, intercept = lines_of_variant(chain()["train"].columns("weak", (0,)), "weak")
    np.testing.assert_array_equal(asked().candidates.coef, coef)
    np.testing.assert_array_equal(asked().candidates.intercept, intercept)


# ------------------------------------------------------------------- several classes
CIRCLE: dict[str, Any] = {
    "source": {"name": "circle", "n_classes": 5},
    "clients": {"train": 1000, "vote": 2000, "test": 300},
    "project": {"basis": "identity"},
    "votes": {"directions": 60},
    "epsilon": [8],
    "replicates": 2,
    "protocol": "votes",
}


def test_several_classes_are_learned_by_their_splits(tmp_path: Path) -> None:
    """So many directions about each of 7 splits; the model errs as it was scored."""
    project = plain.write(tmp_path, tiny=CIRCLE)
    record = plain.run(project)
    (view,) = final_views(project, record)
    assert len(view.columns("train", "weak")["coef"]) == 7 * 60
    found = replicate_scores(project, record)
    error = found[found["metric"] == "misclassification"].groupby("method")["value"]
    ours, best, constant = error.mean()[["votes", "best_single", "majority"]]
    assert ours < 0.3 < best < constant
    assert (found["metric"] == "recall").sum() == 2 * 5
    model = final_model(project, record, view.cell)
    angle = 2 * np.pi * np.arange(5) / 5
    corners = np.column_stack([np.cos(angle), np.sin(angle)])
    assert model.predict(corners).tolist() == model.classes_.tolist()


@pytest.mark.parametrize("n_classes", [3, 5, 26])
def test_a_vote_is_right_of_its_split(n_classes: int) -> None:
    """A direction that always says yes is right for whom the split answers yes."""
    code, labels = halving_code(n_classes), np.arange(n_classes)
    words = Classes(map(str, labels))
    up = Candidates(np.zeros((len(code), 4)), np.ones(len(code)))
    task = replace(TASK, classes=words, epsilon=60.0, candidates=up)
    MESSAGE.check_task(task)
    own = np.full((n_classes, 4), 0.25)
    for b, answers in enumerate(code):
        judge = np.full(n_classes, b)
        sent = MESSAGE.draw(task, ClientData(own, own, labels, judge), SeededEntropy(1))
        assert (sent["positive"] == (answers > 0)).all()


def test_too_few_clients_for_all_splits_are_refused(tmp_path: Path) -> None:
    """Every direction about every split has a voter."""
    many = CIRCLE | {"votes": {"directions": 500}}
    with pytest.raises(UserError, match="more directions about each of 7 splits"):
        plain.plan(plain.write(tmp_path, tiny=many))


def test_a_release_of_several_classes(tmp_path: Path) -> None:
    """Everybody votes once; a repeated run gives the same bytes."""
    own = {name: v for name, v in CIRCLE.items() if name != "replicates"}
    own |= {"epsilon": 4, "clients": {"train": 1000, "vote": 2000}}
    project = production.write(tmp_path, **own)
    before = production.bytes_of(project, production.run(project))
    again = production.run(project)
    assert production.bytes_of(project, again) == before
    assert len(before) == len(production.confirmed(project)) == 1
