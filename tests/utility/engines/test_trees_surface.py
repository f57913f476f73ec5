"""The surface of trees: shares, draws where there is no law, boxes that hold."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.systems.utility.method.engines.base import Draws, make_channel
from curvote.systems.utility.method.engines.trees import engine
from curvote.systems.utility.method.engines.trees.engine import Trees
from tests.utility.models_of import DATA
from tests.utility.trees_of import (
    KINDS,
    asked,
    fitted,
    predicted,
    read,
)

EVERY = list(product(KINDS, DATA))
MIDDLE = np.array([50.0, 30.0])


@pytest.mark.parametrize(("kind", "data"), EVERY)
def test_shares_are_sums_over_all_outputs(kind: str, data: str) -> None:
    """For k-RR the model is asked for each of its outputs, weighed by the channel."""
    question = asked(fitted(kind, data), data, n=2)
    middle = question.bounds.mean(axis=1)
    channel = make_channel(
        "k_rr", epsilon=4, bounds=question.bounds, fill_value=middle, n_classes=21
    )
    found = read(question).answers(channel, Draws())
    law = channel.law(question.values)
    assert law is not None
    for i, share in enumerate(found.share):
        first, second = law.terms[0]
        points = np.array(list(product(first.points[i], second.points[i])))
        weights = np.outer(first.masses[i], second.masses[i]).ravel()
        classes = predicted(question, i, points)
        expected = np.bincount(classes, weights, len(share))
        assert share == pytest.approx(expected, abs=1e-12)
    assert found.evidence == "exact"


@pytest.mark.parametrize(
    ("kind", "data", "name"),
    [
        ("forest", "stroke", "pm_01"),
        ("forest", "digits", "joint_box"),
        ("boosting", "stroke", "joint_box"),
        ("boosting", "digits", "laplace"),
        ("hist boosting", "stroke", "square_wave"),
        ("hist boosting", "digits", "hybrid"),
        ("ada", "stroke", "exponential"),
    ],
)
def test_exact_shares_agree_with_draws(kind: str, data: str, name: str) -> None:
    """Within 4.5 standard errors of 4,000 draws of the real mechanism."""
    question = asked(fitted(kind, data), data, n=6)
    middle = question.bounds.mean(axis=1)
    channel = make_channel(name, epsilon=3, bounds=question.bounds, fill_value=middle)
    share = read(question).answers(channel, Draws()).share
    number = 4000
    for i in range(6):
        values = np.tile(question.values[i], (number, 1))
        seen = channel.draw(values, SeededEntropy(i))
        drawn = np.bincount(predicted(question, i, seen), minlength=share.shape[1])
        deviation = np.sqrt(np.maximum(share[i] * (1 - share[i]), 1e-3) / number)
        assert (np.abs(drawn / number - share[i]) <= 4.5 * deviation).all()


@pytest.mark.parametrize(("kind", "data"), [("forest", "stroke"), ("ada", "digits")])
def test_a_box_holds_where_all_its_points_have_the_clean_answer(
    kind: str, data: str
) -> None:
    """The closed box is enumerated: at its upper ends and at each cut inside."""
    question = asked(fitted(kind, data), data, n=8)
    surface = read(question)
    rng, width = np.random.default_rng(4), np.diff(question.bounds, axis=1)[:, 0]
    seen = set()
    for share in (0.0, 0.003, 0.01, 0.03, 0.1, 0.3):
        low = question.values - rng.random((8, 2)) * share * width
        high = question.values + rng.random((8, 2)) * share * width
        holds = surface.holds(low, high)
        for i in range(8):
            sides = [
                np.append(cuts[(cuts >= a) & (cuts < b)], b)
                for cuts, a, b in zip(surface.cuts, low[i], high[i], strict=True)
            ]
            points = np.array(list(product(*sides)))
            right = predicted(question, i, points) == surface.clean[i]
            assert holds[i] == right.all()
            seen.add(bool(holds[i]))
    assert seen == {True, False}


def test_what_a_file_holds_gives_the_same_answers() -> None:
    """`restored` of `arrays` is the surface."""
    question = asked(fitted("forest", "digits"), "digits")
    surface = read(question)
    again = Trees().restored(question, surface.arrays())
    channel = make_channel(
        "pm_01", epsilon=2, bounds=question.bounds, fill_value=np.array([0.5, 0.5])
    )
    first, second = (each.answers(channel, Draws()) for each in (surface, again))
    assert (first.share == second.share).all()
    assert (again.clean == surface.clean).all()
    ends = question.values - 0.1, question.values + 0.1
    assert (surface.holds(*ends) == again.holds(*ends)).all()


@pytest.mark.parametrize("size", [1, 700, 3000])
def test_records_may_be_taken_in_pieces(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Their shares do not depend on how many are held at once."""
    question = asked(fitted("forest", "stroke"), "stroke", n=30)
    surface = read(question)
    channel = make_channel(
        "joint_box", epsilon=2, bounds=question.bounds, fill_value=MIDDLE
    )
    whole = surface.answers(channel, Draws()).share
    monkeypatch.setattr(engine, "CHUNK_NUMBERS", size)
    assert len(list(surface._record_chunks())) > 1
    assert surface.answers(channel, Draws()).share == pytest.approx(whole, abs=1e-14)


def test_a_channel_without_a_law_is_drawn() -> None:
    """The outputs of `privunit` are drawn, with intervals."""
    question = asked(fitted("forest", "stroke"), "stroke", n=3)
    channel = make_channel(
        "privunit", epsilon=4, bounds=question.bounds, fill_value=MIDDLE
    )
    found = read(question).answers(channel, Draws(300, entropy=SeededEntropy(1)))
    assert found.evidence == "draws"
    assert (found.queries >= 300).all()
    assert (found.lower < found.upper).all()


def test_what_is_withheld_leaves_one_line() -> None:
    """All of epsilon on the first feature: the second is always the constant."""
    question = asked(fitted("boosting", "stroke"), "stroke", n=4)
    surface = read(question)
    channel = make_channel(
        "k_rr", epsilon=2, bounds=question.bounds, fill_value=MIDDLE, split=[1, 0]
    )
    share = surface.answers(channel, Draws()).share
    law = channel.law(question.values)
    assert law is not None
    for i in range(4):
        first = law.terms[0][0]
        points = np.column_stack([first.points[i], np.full(first.points[i].shape, 30)])
        expected = np.bincount(predicted(question, i, points), first.masses[i], 2)
        assert share[i] == pytest.approx(expected, abs=1e-12)
