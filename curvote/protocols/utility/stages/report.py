"""Stage report: the figures of every deployment, and the one to recommend."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from curvote.chain.measure import SCORES
from curvote.chain.stage import Columns, Rows, StageContext
from curvote.protocols.measures import AGREEMENT
from curvote.protocols.utility import deployed
from curvote.protocols.utility.deployed import DeploymentResult
from curvote.protocols.utility.given import sent_settings
from curvote.protocols.utility.known import read_profile
from curvote.protocols.utility.measured import ScoreRow, deployment_scores, score_table
from curvote.protocols.utility.methods import (
    EQUAL,
    FEATURES,
    METRICS,
    OUTPUT,
    RECOMMENDED,
    VECTOR_METHOD,
)
from curvote.utility.deployments.deployment import OUTPUT as ANSWER
from curvote.utility.deployments.deployment import Deployment
from curvote.utility.deployments.floors import floor_deployments
from curvote.utility.deployments.scan import measure
from curvote.utility.known import Profile
from curvote.utility.recommendation import Recommendation, recommend
from curvote.utility.setting import Setting

_TARGET = "deployments.target"


def one(context: StageContext) -> Rows:
    """Return the tables ``scores`` and ``recommended`` of one total epsilon."""
    setting = sent_settings(context)[FEATURES]
    profile = read_profile(context, FEATURES, setting)
    sent_results, free_results = (
        [*_sent_results(context)],
        [*_free_results(context, setting, profile)],
    )
    scan = [
        (deployment, measurement)
        for deployment, _, measurement in (*free_results, *sent_results)
    ]
    choose = partial(recommend, setting, profile, scan, seed=context.params["seed"])
    best, target = choose(epsilon=context.params["epsilon"]), context.params[_TARGET]
    reached = None if target is None else choose(target=target)
    scores = [
        *_report_scores(setting, sent_results, free_results),
        *_recommended_scores(best),
    ]
    chosen = _recommended_table(setting, best, reached)
    return {SCORES.name: score_table(scores), "recommended": chosen}


def _sent_results(context: StageContext) -> Iterator[DeploymentResult]:
    """Yield the stored results of each mechanism's deployments."""
    for name in context.inputs:
        if name.startswith("agree@"):
            yield from deployed.read_measurements(context.rows(name, "agreed"))


def _free_results(
    context: StageContext, setting: Setting, profile: Profile
) -> Iterator[DeploymentResult]:
    """Yield the results of the floors, and of the randomised answer."""
    answer = Deployment(ANSWER, context.params["epsilon"])
    for deployment in (*floor_deployments(setting), answer):
        yield (
            deployment,
            deployment.describe(setting.names),
            measure(setting, profile, deployment),
        )


def _report_scores(
    setting: Setting,
    sent_results: list[DeploymentResult],
    free_results: list[DeploymentResult],
) -> Iterator[ScoreRow]:
    """Yield the scores of each deployment in its words, and of those with a name."""
    for deployment, words, measurement in sent_results:
        yield from deployment_scores(words, setting, deployment, measurement)
    named = {
        OUTPUT.name: free_results[-1],
        **_first_of_kind(sent_results, EQUAL.name, VECTOR_METHOD.name),
    }
    for name, (deployment, _, measurement) in named.items():
        yield from deployment_scores(name, setting, deployment, measurement)


def _first_of_kind(
    sent_results: list[DeploymentResult], equal: str, joint: str
) -> dict[str, DeploymentResult]:
    """Return the first raw deployment with equal split, and the first joint one.

    The first that the pipeline names, not the best: a choice would flatter.
    """
    named: dict[str, DeploymentResult] = {}
    for result in sent_results:
        deployment = result[0]
        if deployment.read == "raw" and not deployment.project:
            if deployment.split is None:
                named.setdefault(joint, result)
            elif len(set(deployment.split)) == 1:
                named.setdefault(equal, result)
    return named


def _recommended_scores(best: Recommendation) -> Iterator[ScoreRow]:
    """Yield the scores of the half of the records that chose nothing."""
    row = best.row
    if row is None:
        return
    ends = {AGREEMENT.name: (row.lower, row.upper)}
    for metric in METRICS:
        value = getattr(row, metric.name)
        if value is not None:
            low, high = ends.get(metric.name, (value, value))
            yield ScoreRow(RECOMMENDED.name, metric.name, value, low, high)


def _recommended_table(
    setting: Setting, best: Recommendation, reached: Recommendation | None
) -> Columns:
    """Return the recommendation as a row, with the one for the target, if any."""
    chosen = best.deployment
    texts = {
        "deployment": "" if chosen is None else deployed.write_deployment(chosen),
        "words": _recommended_words(setting, best),
        "reason": best.reason,
        "reaches": "" if reached is None else _recommended_words(setting, reached),
    }
    return {name: np.array([text], dtype=object) for name, text in texts.items()}


def _recommended_words(setting: Setting, recommendation: Recommendation) -> str:
    """Return the recommended deployment in words."""
    chosen = recommendation.deployment
    return "" if chosen is None else chosen.describe(setting.names)
