"""Stages of private numbers: noise, training, and the scores of a study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import StageContext
from curvote.labels.regression.noising import make_template
from curvote.labels.regression.prior import estimate_histogram
from curvote.labels.regression.randomizers import ON_BINS, randomizer_name
from curvote.labels.regression.targets import NoisedTargets

Array = NDArray[np.float64]
# A score needs squares without bias.
SCORE_RANDOMIZER = "piecewise"


def public_bounds(context: StageContext) -> tuple[float, float]:
    """Return the public bounds of the number."""
    source = context.inputs.get("features") or context.inputs["ingest"]
    target = source.metadata["target"]
    return target["lower"], target["upper"]


def needs_histogram(context: StageContext) -> bool:
    """Return whether a histogram comes first."""
    params = context.params
    return (
        randomizer_name(params["labels_regression.randomizer"], params["epsilon"])
        == ON_BINS
    )


def training_template(context: StageContext, shapes: Array) -> NoisedTargets:
    """Return the empty targets of those to learn from, after ``shapes`` are known."""
    params, epsilon = context.params, context.params["epsilon"]
    prior = estimate_histogram(shapes, epsilon) if needs_histogram(context) else None
    name = params["labels_regression.randomizer"]
    return make_template(public_bounds(context), epsilon, name, prior=prior)


def holdout_template(context: StageContext) -> NoisedTargets:
    """Return the empty targets of those who send for the score."""
    return make_template(
        public_bounds(context), context.params["epsilon"], SCORE_RANDOMIZER
    )


def with_values(template: NoisedTargets, values: Array) -> NoisedTargets:
    """Return the template's targets with the values that were sent."""
    return replace(template, values=values)
