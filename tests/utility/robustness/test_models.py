"""Boxes of real models: certified answers stay, and bounds are below agreement."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.systems.utility.method.engines.base import (
    Draws,
    Question,
    Surface,
    choose_engine,
    make_channel,
    predict_batched,
)
from curvote.systems.utility.method.profile import (
    Box,
    certified_bound,
    certify_box,
    uniform_numbers,
)
from tests.noise import SEED
from tests.utility import models_of

MODELS = ["logistic", "forest", "boosting", "hist_boosting"]
MECHANISMS = ["laplace", "pm_01", "sw_01", "exponential", "k_rr", "hybrid", "joint_box"]
RECORDS = 50


@cache
def found(name: str) -> tuple[Question, Surface, Box]:
    """A model's boxes around 50 records it has not seen."""
    data = models_of.stroke_like(RECORDS, 5)
    model = getattr(models_of, name)("stroke")
    bounds = np.asarray(data.bounds, dtype=float)
    question = Question(model, data.X, tuple(data.sensitive), bounds)
    surface = choose_engine(question)[0].surface(question)
    return question, surface, certify_box(surface, question.values, bounds=bounds)


@pytest.mark.parametrize("name", MODELS)
def test_answers_stay_in_certified_boxes(name):
    """At 40 random points and the four corners of each."""
    question, _, boxes = found(name)
    clean = predict_batched(question.model, question.records)
    share = uniform_numbers((44, RECORDS, 2), SeededEntropy(SEED))
    share[:4] = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[:, None]
    points = boxes.low + (boxes.high - boxes.low) * np.clip(share, 0, 1)
    points = np.clip(points, boxes.low, boxes.high)
    rows = np.tile(question.records, (44, 1))
    rows[:, list(question.sensitive)] = points.reshape(-1, 2)
    same = predict_batched(question.model, rows) == np.tile(clean, 44)
    assert same.reshape(44, RECORDS)[:, boxes.certified].all()
    assert boxes.certified.all()


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4, 8])
@pytest.mark.parametrize("name", MODELS)
def test_bound_is_at_most_agreement(name, epsilon):
    """For seven mechanisms and 50 records; and it comes near for large epsilons."""
    question, surface, boxes = found(name)
    for mechanism in MECHANISMS:
        channel = make_channel(
            mechanism, epsilon=epsilon, bounds=question.bounds, fill_value=[50, 30]
        )
        shares = surface.answers(channel, Draws()).upper
        agreement = np.take_along_axis(shares, surface.clean[:, None], axis=1)[:, 0]
        least = certified_bound(channel, question.values, boxes)
        assert (least <= agreement + 1e-9).all()
        assert (least > 0).any()


def test_too_large_a_box_is_noticed():
    """Twice the box is above agreement somewhere."""
    question, surface, boxes = found("forest")
    channel = make_channel(
        "pm_01", epsilon=8, bounds=question.bounds, fill_value=[50, 30]
    )
    reach = (boxes.high - boxes.low) / 2
    wide = boxes.low - reach, boxes.high + reach
    twice = Box(boxes.radius, *wide, boxes.certified, boxes.queries)
    shares = surface.answers(channel, Draws()).upper
    agreement = np.take_along_axis(shares, surface.clean[:, None], axis=1)[:, 0]
    assert (certified_bound(channel, question.values, twice) > agreement).any()
