"""Surfaces of the linear engine, of a model or of weights alone."""

from __future__ import annotations

import numpy as np

from curvote.systems.utility.method.engines.base import Question
from curvote.systems.utility.method.engines.discriminants import Linear, LinearModel
from tests.utility import models_of

STROKE, DIGITS = models_of.stroke_like(), models_of.digits_like()


def surface_of(model, data=STROKE, n=10, sensitive=None, bounds=None):
    """Return the engine's surface of a model and some records."""
    chosen = data.sensitive if sensitive is None else sensitive
    edges = data.bounds if bounds is None else bounds
    question = Question(model, data.X[:n], chosen, edges)
    assert Linear().refusal(question) is None
    return Linear().surface(question)


def plain(weights, intercept, n=10, seed=1):
    """Return the surface of weights on [-1, 1]^d, all of it sensitive."""
    d = len(weights)
    records = np.random.default_rng(seed).uniform(-1, 1, (n, d))
    edges = np.tile([-1.0, 1.0], (d, 1))
    question = Question(
        LinearModel(weights, intercept), records, tuple(range(d)), edges
    )
    return Linear().surface(question)
