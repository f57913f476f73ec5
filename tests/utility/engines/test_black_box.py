"""Models that can only be asked: draws, what they cover, and what is refused."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.systems.utility.method.engines import base, black_box
from curvote.systems.utility.method.engines.black_box import BlackBox, BlackBoxSurface
from curvote.systems.utility.method.intervals import mean_share_interval
from tests.utility import models_of
from tests.utility.black_boxes import grid_shares

STROKE = models_of.stroke_like()
channel = partial(models_of.channel, STROKE)


class Recorder:
    """A model that remembers how many rows it was asked at once."""

    def __init__(self, inner):
        self.inner, self.sizes = inner, list[int]()

    def predict(self, rows):
        self.sizes.append(len(rows))
        return np.asarray(self.inner.predict(rows))


class Moody:
    """A model that answers every third question by a coin."""

    def __init__(self):
        self.coin = np.random.default_rng(0)

    def predict(self, rows):
        answers = (rows[:, 0] > 50).astype(int)
        answers[::3] = self.coin.integers(2, size=len(answers[::3]))
        return answers


def surface(model, n=20):
    """Return what is known of ``n`` records."""
    question = base.Question(model, STROKE.X[:n], STROKE.sensitive, STROKE.bounds)
    found = BlackBox().surface(question)
    assert isinstance(found, BlackBoxSurface)
    return found


def agreement(known, found):
    """Return share, lower and upper of the clean answers."""
    i = np.arange(len(known.clean))
    arrays = (found.share, found.lower, found.upper)
    return tuple(each[i, known.clean] for each in arrays)


@pytest.mark.parametrize("name", ["pm_01", "laplace", "joint_box"])
def test_intervals_cover_the_truth_of_a_network(name):
    """Of 40 records x 2 epsilons x 3 draws as many as 95 % leave; truth on a grid."""
    known = surface(models_of.network(), 40)
    inside = []
    for epsilon in (1.0, 4.0):
        through = channel(name, epsilon)
        truth = grid_shares(known, through, 120)
        for seed in range(3):
            found = known.answers(through, base.Draws(1000, 0.95, SeededEntropy(seed)))
            _, low, high = agreement(known, found)
            inside += [(low <= truth) & (truth <= high)]
            assert (high - low).max() < 0.07
    assert np.sum(inside) >= binom.ppf(1e-4, np.size(inside), 0.95)


def test_thousand_records_take_few_questions_of_bounded_size():
    """1,000 records x 100 draws of a forest: two for each 65,536 rows, none larger."""
    model = Recorder(models_of.forest())
    rows = models_of.stroke_like(1000, seed=3)
    question = base.Question(model, rows.X, rows.sensitive, rows.bounds)
    known = BlackBox().surface(question)
    found = known.answers(channel("pm_01", 2), base.Draws(100, 0.95, SeededEntropy(1)))
    assert model.sizes == [1000, 1000, base.MOST_ROWS, 100_000 - base.MOST_ROWS]
    assert (found.queries == 100).all()
    assert found.evidence == "draws"


def test_average_covers_and_is_narrower_than_records():
    """8,000 draws of 40 records together: about 1 % on each side."""
    known = surface(models_of.network(), 40)
    through = channel("pm_01", 2)
    truth = grid_shares(known, through, 120).mean()
    i = np.arange(40)
    hits = known.counts(through, 200, SeededEntropy(8))[i, known.clean]
    low, high = mean_share_interval(hits, 200, 0.95)
    assert low <= truth <= high
    assert high - low < 0.025


@pytest.mark.parametrize(
    ("name", "params", "asked"),
    [
        ("duchi", {}, 4),
        ("k_rr", {"split": [1, 0]}, 101),
        ("k_rr", {"n_classes": 11}, 121),
    ],
)
def test_few_outputs_are_all_asked_for(name, params, asked):
    """Noise with few outputs leaves nothing to chance: exact, as many draws agree."""
    known = surface(models_of.forest())
    found = known.answers(channel(name, 2, **params), base.Draws(2000))
    assert found.evidence == "exact"
    assert (found.queries == asked).all()
    drawn = known.counts(channel(name, 2, **params), 4000, SeededEntropy(2)) / 4000
    error = np.sqrt(found.share * (1 - found.share) / 4000)
    assert (abs(found.share - drawn) <= 4.5 * error + 1e-12).all()


def test_blocks_of_records_change_nothing(monkeypatch):
    """Listed outputs of many records are laid out some records at a time."""
    known = surface(models_of.forest())
    noise = channel("k_rr", 2, split=[1, 0])
    whole = known.answers(noise, base.Draws(200))
    monkeypatch.setattr(black_box, "MOST_POINTS", 700)
    some = known.answers(noise, base.Draws(200))
    assert (some.share == whole.share).all()
    assert (some.queries == 101).all()
    counts = known.counts(channel("pm_01", 2), 200, SeededEntropy(1))
    assert (counts.sum(axis=1) == 200).all()


def test_nothing_sent_takes_one_question():
    """What is withheld has one output, the constant."""
    known = surface(models_of.forest())
    middle = STROKE.bounds.mean(axis=1)
    found = known.answers(base.Channel([], STROKE.bounds, middle), base.Draws(2000))
    rows = STROKE.X[:20].copy()
    rows[:, list(STROKE.sensitive)] = middle
    answers = base.predict_indices(models_of.forest(), rows)
    assert (found.share[np.arange(20), answers] == 1).all()
    assert (found.queries == 1).all()


def test_different_answers_when_asked_twice_are_refused():
    """The message says how many records, and what to do."""
    with pytest.raises(UserError, match=r"answered \d+ of 20 .* Fix its random state"):
        surface(Moody())


def test_one_answer_a_row_is_wanted():
    """Probabilities are no answers."""

    class Both(Recorder):
        def predict(self, rows):
            return np.asarray(self.inner.predict_proba(rows))

    with pytest.raises(UserError, match="one class for each row"):
        surface(Both(models_of.forest()))


def test_answer_that_is_no_class_counts_for_none():
    """A model without ``classes_``: agreement is right all the same."""

    class Shy(Recorder):
        def predict(self, rows):
            sure = np.isin(rows[:, 0], STROKE.X[:, 0])
            return np.where(sure, self.inner.predict(rows), 9)

    known = surface(Shy(models_of.forest()))
    assert known.classes.tolist() == [0, 1]
    found = known.answers(channel("pm_01", 2), base.Draws(100, 0.95, SeededEntropy(1)))
    assert found.share.sum(axis=1).max() < 0.5


def test_named_columns_and_classes_in_words():
    """A pipeline fitted on a table is asked with names, and warns of nothing."""
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    table = pd.DataFrame(STROKE.X, columns=list(STROKE.names))
    words = np.where(STROKE.y == 1, "yes", "no").astype(object)
    model = LogisticRegression(max_iter=5000).fit(table, words)
    known = surface(model)
    assert (model.predict(table[:20]) == known.classes[known.clean]).all()
    again = BlackBox().restored(known.question, known.arrays())
    assert not any(each.dtype.hasobject for each in known.arrays().values())
    draws = [
        each.answers(channel("pm_01", 2), base.Draws(50, 0.95, SeededEntropy(3))).share
        for each in (known, again)
    ]
    assert (draws[0] == draws[1]).all()


def test_box_of_a_black_box_is_unknown():
    """Nothing can be said of answers that were not asked for."""
    known = surface(models_of.forest())
    with pytest.raises(NotImplementedError):
        known.holds(known.question.values, known.question.values)


def test_model_without_predict_is_refused():
    """It says what is missing."""
    question = base.Question(object(), STROKE.X, STROKE.sensitive, STROKE.bounds)
    assert "predict" in (BlackBox().refusal(question) or "")


def test_wide_records_are_asked_in_smaller_batches():
    """Rows of 20,000 numbers: a quarter of a GiB at most."""
    model = Recorder(models_of.forest())
    model.predict = lambda rows: model.sizes.append(len(rows)) or rows[:, 0]  # type: ignore[method-assign, assignment, func-returns-value]
    base.predict_batched(model, np.zeros((3000, 20_000)))
    assert max(model.sizes) < 2000
    assert sum(model.sizes) == 3000


def test_no_draws_are_refused():
    """Neither none nor a part of one."""
    with pytest.raises(UserError, match="draws is 0"):
        surface(models_of.forest()).answers(channel("pm_01", 2), base.Draws(0))
