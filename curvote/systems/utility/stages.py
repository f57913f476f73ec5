"""Stages of utility: fit, surface, agree and report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from curvote.base.entropy import SeededEntropy
from curvote.chain.measure import SCORES
from curvote.chain.stage import Columns, Rows, StageContext
from curvote.messages.measures import AGREEMENT
from curvote.messages.roles import roles_of_table
from curvote.systems.common.model_file import pack_model
from curvote.systems.utility import scores
from curvote.systems.utility import scores as deployed
from curvote.systems.utility.inputs import fit_classifier, pack_arrays, record_columns
from curvote.systems.utility.measures import (
    EQUAL,
    FEATURES,
    METRICS,
    OUTPUT,
    RECOMMENDED,
    VECTOR_METHOD,
)
from curvote.systems.utility.method.deployment import OUTPUT as ANSWER
from curvote.systems.utility.method.deployment import (
    Deployment,
    ReadMode,
    floor_deployments,
)
from curvote.systems.utility.method.engines.base import Draws, choose_engine
from curvote.systems.utility.method.engines.discriminants import Linear
from curvote.systems.utility.method.profile import Profile, build_profile
from curvote.systems.utility.method.recommendation import Recommendation, recommend
from curvote.systems.utility.method.scan import Refit, list_deployments, measure
from curvote.systems.utility.method.setting import Setting
from curvote.systems.utility.questions import (
    Settings,
    profile_arrays,
    read_profile,
    sent_settings,
)
from curvote.systems.utility.scores import (
    CONFIDENCE,
    DeploymentResult,
    ScoreRow,
    clean_scores,
    deployment_scores,
    floor_scores,
    score_table,
)


def fit(context: StageContext) -> Rows:
    """Return the table ``estimator``: one model, fitted on the training clients."""
    clients = context.rows("ingest", "clients")
    columns = record_columns(
        context.inputs["ingest"].metadata, context.params["record"]
    )
    train = roles_of_table(clients, context.params, context.number)["train"]
    seed = int(context.generator("fit").integers(1 << 31))
    X, y = columns.of(clients["curve"][train]), clients["label"][train]
    return {
        "estimator": {
            "model": pack_model(fit_classifier(context.params["learner"], X, y, seed))
        }
    }


def surface(context: StageContext) -> Rows:
    """Return the table ``known``, and the scores of the floors."""
    settings = sent_settings(context)
    profiles = {
        name_sent: _sent_profile(name_sent, setting)
        for name_sent, setting in settings.items()
    }
    scores = score_table(_free_scores(settings, profiles[FEATURES]))
    return {
        "known": {"known": pack_arrays(profile_arrays(profiles))},
        SCORES.name: scores,
    }


def _sent_profile(name_sent: str, setting: Setting) -> Profile:
    """Return the profile of one way to send; coordinates of nonlinear models drawn.

    A linear model of them is as cheap as one of features; all others are drawn.
    """
    if name_sent == FEATURES or choose_engine(setting.question)[0].name == Linear.name:
        return build_profile(setting)
    return build_profile(setting, evidence="draws")


def _free_scores(settings: Settings, profile: Profile) -> Iterator[ScoreRow]:
    """Yield the scores of the floors, and of the clean answers."""
    setting = settings[FEATURES]
    for floor in floor_deployments(setting):
        yield from floor_scores(setting, profile, floor)
    yield from clean_scores(setting, profile)


def agree(context: StageContext) -> Rows:
    """Return the table ``agreed``: the deployments of one mechanism and epsilon."""
    settings = sent_settings(context)
    results = [
        result
        for name_sent in settings
        for result in _deployment_results(context, name_sent, settings[name_sent])
    ]
    return {"agreed": scores.deployment_table(results)}


def _deployment_results(
    context: StageContext, name_sent: str, setting: Setting
) -> Iterator[scores.DeploymentResult]:
    """Yield deployment, description and measurement of one way to send."""
    profile = read_profile(context, name_sent, setting)
    for deployment in _mechanism_deployments(context, name_sent, setting):
        purpose = f"{name_sent} {deployment.split} {deployment.read}"
        seed = int(context.generator(purpose).integers(1 << 31))
        draws = Draws(
            context.params["deployments.draws"], CONFIDENCE, SeededEntropy(seed)
        )
        measurement = measure(setting, profile, deployment, draws, Refit(seed=seed))
        # The shares of features, which a projection does not send, are none.
        stored = replace(deployment, split=None) if deployment.project else deployment
        yield stored, deployment.describe(setting.names), measurement


def _mechanism_deployments(
    context: StageContext, name_sent: str, setting: Setting
) -> list[Deployment]:
    """Return the deployments of the stage's mechanism, without floors.

    Several coordinates are sent jointly, and read raw; training data have none.
    """
    params, name = context.params, context.params["mechanism"]
    candidates = list_deployments(
        setting,
        [params["epsilon"]],
        [name],
        reads=_available_reads(params["deployments.reads"], setting),
        params=params["deployments.params"].get(name),
    )
    matching = [deployment for deployment in candidates if deployment.mechanism == name]
    if name_sent == FEATURES:
        return matching
    alone = len(setting.sensitive) == 1
    fit = (deployment for deployment in matching if deployment.split is None or alone)
    return [replace(deployment, project=name_sent) for deployment in fit]


def _available_reads(reads: Sequence[ReadMode], setting: Setting) -> list[ReadMode]:
    """Return the ways of reading for which the setting has the data."""
    needed = {"decode": setting.public, "retrain": setting.train}
    return [read for read in reads if needed.get(read, ()) is not None]


_TARGET = "deployments.target"


def report(context: StageContext) -> Rows:
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
