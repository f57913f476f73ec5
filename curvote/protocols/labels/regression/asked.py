"""What is asked of clients with a number, and how the server reads what they sent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Here
from curvote.labels.regression.noising import ask
from curvote.labels.regression.prior import histogram
from curvote.labels.regression.randomizers import ON_BINS, concrete
from curvote.labels.regression.targets import NoisedTargets

Array = NDArray[np.float64]
# A score needs squares without bias.
SCORED_BY = "piecewise"


def bounds_of(here: Here) -> tuple[float, float]:
    """Return the public bounds of the number."""
    source = here.inputs.get("features") or here.inputs["ingest"]
    told = source.facts["target"]
    return told["lower"], told["upper"]


def on_bins(here: Here) -> bool:
    """Say whether a histogram comes first."""
    params = here.params
    return (
        concrete(params["labels_regression.randomizer"], params["epsilon"]) == ON_BINS
    )


def learnt(here: Here, shapes: Array) -> NoisedTargets:
    """Return what is asked of those to learn from, after the histogram's ``shapes``."""
    params, epsilon = here.params, here.params["epsilon"]
    prior = histogram(shapes, epsilon) if on_bins(here) else None
    name = params["labels_regression.randomizer"]
    return ask(bounds_of(here), epsilon, name, prior=prior)


def held(here: Here) -> NoisedTargets:
    """Return what is asked of those who send for the score."""
    return ask(bounds_of(here), here.params["epsilon"], SCORED_BY)


def heard(asked: NoisedTargets, values: Array) -> NoisedTargets:
    """Return the answers to what was asked."""
    return replace(asked, values=values)
