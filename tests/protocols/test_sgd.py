"""Protocol `sgd`: rounds of clipped gradients, on tables in memory and as messages."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from curvote.base.errors import UserError
from curvote.chain.lookup import find_system
from curvote.chain.stage import Columns
from curvote.checks import examples
from curvote.curves.basis import identity
from curvote.curves.direction import Gradients, class_codes, simplex_codes
from curvote.curves.encoding import Encoding
from curvote.learning.directions import average_iterates, gradient_step
from curvote.messages.roles import EVERYBODY, split_roles
from curvote.systems.direct.messages import Gradient, task_gradients
from tests.memory import Made, Memory, do, replicates, value
from tests.noise import SEED

D, REPLICATES = 3, 3
CLIENTS = {"public": 0, "train": 2000, "vote": 4001, "test": 3000}
PARAMS: dict[str, Any] = {
    "seed": SEED,
    "clients": CLIENTS,
    "source.groups": None,
    "replicates": REPLICATES,
    "epsilon": 4.0,
    "sgd.rounds": 4,
    "sgd.rate": 5.0,
    "sgd.clip": 0.2,
}
STAGES = {stage.name: stage for stage in find_system("sgd").stages[2:]}
MESSAGE = Gradient()
CENTRES = np.array([[1.5, 0, 0], [-1.5, 0.5, 0], [0, -1.5, 0.5]])


# ------------------------------------------------------------------------ the chain
def crowd(replicate: int, n_classes: int) -> Columns:
    """Return encoded clients of some classes, normal around their centres."""
    rng, n = np.random.default_rng([SEED, replicate]), sum(CLIENTS.values())
    label = rng.integers(n_classes, size=n)
    z = rng.normal(size=(n, D)) + CENTRES[label]
    return {"label": label, "coefficients": z, "z": z, "group": np.arange(n)}


@lru_cache
def study(n_classes: int = 2) -> Made:
    """Return what each stage made."""
    facts = {"d": D, "encoding": Encoding(identity(D), "none").to_json()}
    facts |= {"classes": [*"abc"[:n_classes]], "roughness": []}
    encoded = [crowd(replicate, n_classes) for replicate in range(REPLICATES)]
    made = {"project": Memory.of(facts, encoded=encoded)}
    for name, stage in STAGES.items():
        places = replicates(REPLICATES)
        made[name] = do(stage, made, PARAMS, places, (REPLICATES,))
    return made


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_comes_close_to_the_best_line(n_classes: int) -> None:
    """Within 3 points of the nearest centre, the best rule of equal classes."""
    found, best = [], []
    for replicate, scores in enumerate(study(n_classes)["report"].each("scores")):
        clients = crowd(replicate, n_classes)
        test = split_roles(SEED, replicate, len(clients["label"]), CLIENTS)["test"]
        far = clients["z"][test, None] - CENTRES[None, :n_classes]
        nearest = np.argmin(np.sum(far**2, axis=2), axis=1)
        best.append(np.mean(nearest != clients["label"][test]))
        found.append(value(scores, "sgd"))
    assert np.mean(found) - np.mean(best) < 0.03


def test_every_client_reports_once_in_batches_of_public_sizes() -> None:
    """As many reports as clients; the sizes of rounds differ by 1 at most."""
    rows = study()["descend"].columns("gradients", (0,))
    _, counts = np.unique(rows["round"], return_counts=True)
    assert counts.sum() == EVERYBODY.count(CLIENTS) == len(rows["gradient"])
    assert len(counts) == PARAMS["sgd.rounds"]
    assert counts.max() - counts.min() == 1


def test_the_server_sees_noised_gradients_of_one_length_and_no_more() -> None:
    """Nothing of the table depends on a record but through `PrivUnit`."""
    rows = study()["descend"].columns("gradients", (0,))
    assert set(rows) == {"round", "gradient"}
    lengths = np.linalg.norm(rows["gradient"], axis=1)
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-9)


def test_rounds_have_noise_of_their_own() -> None:
    """No row stands in two rounds, and no two replicates share one."""
    every = [rows["gradient"] for rows in study()["descend"].each("gradients")]
    firsts = np.concatenate(every)[:, 0]
    assert len(np.unique(firsts)) == len(firsts)


# ------------------------------------------------------------------------ the vector
def vectors(coef: np.ndarray, clip: float = 0.3) -> Gradients:
    """Return gradients at some coefficients."""
    return Gradients(coef.shape[1] - 1, 0.8, clip, 1.0, coef)


@given(
    z=arrays.arrays(float, (5, D), elements=st.floats(-1e60, 1e60)),
    coef=arrays.arrays(float, (2, D + 1), elements=st.floats(-1e15, 1e15)),
    clip=st.floats(1e-9, 1e9),
)
def test_whatever_the_record_its_vector_has_length_1(
    z: np.ndarray, coef: np.ndarray, clip: float
) -> None:
    """Clipped, filled up, finite: also where a task is as odd as it may be."""
    made = vectors(coef, clip).vectors(z, class_codes([0, 1, 2, 0, 1], 3))
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_it_is_the_gradient_of_the_loss(n_classes: int) -> None:
    """Against differences of the log likelihood, where nothing is clipped."""
    rng = np.random.default_rng(SEED)
    coef, z = rng.normal(size=(n_classes - 1, D + 1)), rng.normal(size=(1, D))
    given, far = vectors(coef, clip=1e3), 1e-6

    def gain(at: np.ndarray) -> float:
        x = np.append(given.intercept, z[0]) / given.length
        scores = simplex_codes(n_classes) @ at @ x / 2
        return float(scores[1] - np.log(np.sum(np.exp(scores))))

    steps = far * np.eye(coef.size).reshape(coef.size, *coef.shape)
    slopes = [(gain(coef + s) - gain(coef - s)) / (2 * far) for s in steps]
    found = given.gradient(given.vectors(z, class_codes([1], n_classes))[0])
    np.testing.assert_allclose(found.ravel(), slopes, atol=1e-7)


def test_a_long_gradient_is_shortened_and_a_short_one_is_not() -> None:
    """Clipping keeps the direction; signs say of two classes what codes say."""
    z, coef = np.array([[0.1, 0, 0], [9.0, 0, 0]]), np.zeros((1, D + 1))
    loose, tight = vectors(coef, 1e3), vectors(coef, 0.45)
    signs, of_class = np.array([-1.0, -1.0]), class_codes([0, 0], 2)
    made = tight.vectors(z, signs)
    np.testing.assert_array_equal(made, tight.vectors(z, of_class))
    whole = np.array([loose.gradient(v) for v in loose.vectors(z, signs)])[:, 0]
    told = np.array([tight.gradient(v) for v in made])[:, 0]
    np.testing.assert_allclose(told[0], whole[0])
    length = np.linalg.norm(whole[1])
    assert length > 0.45
    np.testing.assert_allclose(told[1], whole[1] * 0.45 / length)


def test_a_line_names_the_class_of_the_largest_score() -> None:
    """Scores of the model of x, and those of the line of z, up to their scale."""
    rng = np.random.default_rng(SEED)
    given, z = vectors(rng.normal(size=(2, D + 1))), rng.normal(size=(50, D))
    x = np.column_stack([np.full(50, given.intercept), z]) / given.length
    coef, intercept = given.line()
    own = x @ given.coef.T @ simplex_codes(3).T
    np.testing.assert_array_equal(
        (z @ coef.T + intercept).argmax(axis=1), own.argmax(axis=1)
    )
    coef, intercept = vectors(given.coef[:1]).line()
    assert (coef.shape, intercept.shape) == ((1, D), (1,))
    np.testing.assert_allclose(z @ coef[0] + intercept, x @ given.coef[0])


# ------------------------------------------------------------------------ the server
def test_a_step_follows_the_mean_and_is_shorter_the_noisier() -> None:
    """Along the reports' mean; a smaller part of it, the fewer clients and epsilon."""
    given = vectors(np.zeros((1, D + 1)))
    report = np.array([[0.5, -0.5, 0, 0, 0.7]])

    def moved(n: int, epsilon: float) -> np.ndarray:
        return gradient_step(given, np.repeat(report, n, 0), epsilon, 1.0).coef[0]

    step, half = moved(100, 1.0), np.sqrt(0.5)
    np.testing.assert_allclose(step / np.linalg.norm(step), [half, -half, 0, 0])
    for end in (moved(10, 1.0), moved(100, 0.5)):
        assert np.linalg.norm(end) < np.linalg.norm(step)
    assert gradient_step(given, report[:0], 1.0, 1.0) is given


@pytest.mark.parametrize(("n", "first"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_the_later_half_of_the_iterates_is_averaged(n: int, first: int) -> None:
    """The only one, where there is one."""
    iterates = [vectors(np.full((1, D + 1), float(i))) for i in range(n)]
    assert average_iterates(iterates).coef[0, 0] == np.mean(range(first, n))


# ----------------------------------------------------------------------- the message
@pytest.mark.parametrize(
    "change",
    [
        {"clip": 0.0},
        {"clip": np.inf},
        {"intercept": -1.0},
        {"square": 0.0},
        {"coef": [0.0] * 5},
        {"coef": [[0.0] * 4]},
        {"coef": [[0.0] * 5, [0.0] * 5]},
        {"coef": [[np.nan] * 5]},
        {"share": 1.0},
    ],
)
def test_a_task_of_other_gradients_is_refused(change: dict[str, Any]) -> None:
    """Before anything is drawn: each constant, and the shape of the coefficients."""
    task = examples.example_task("sgd", "gradient", 1.0)
    with pytest.raises(UserError):
        MESSAGE.check_task(replace(task, params={**task.params, **change}))


def test_a_task_lacks_no_constant() -> None:
    """And names the mechanism that hides a direction."""
    task = examples.example_task("sgd", "gradient", 1.0)
    less = {k: v for k, v in task.params.items() if k != "clip"}
    with pytest.raises(UserError, match="clip"):
        task_gradients(replace(task, params=less))
    with pytest.raises(UserError):
        MESSAGE.check_task(replace(task, mechanism="laplace"))
