"""Stages of utility: fit, surface, agree and report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from curvote.base.classes import class_signs
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import InternalError, UserError
from curvote.base.validate import FloatArray
from curvote.chain.measure import SCORES
from curvote.chain.stage import Columns, Rows, StageContext
from curvote.learning.learners import registry
from curvote.messages.measures import AGREEMENT
from curvote.messages.roles import roles_of_table
from curvote.systems.common.models import pack_model, unpack_model
from curvote.systems.utility import inputs, measures, scores
from curvote.systems.utility.method import projections
from curvote.systems.utility.method.deployment import OUTPUT as ANSWER
from curvote.systems.utility.method.deployment import (
    Deployment,
    Setting,
    floor_deployments,
    make_setting,
)
from curvote.systems.utility.method.engines.base import Draws, choose_engine
from curvote.systems.utility.method.engines.discriminants import Linear, LinearModel
from curvote.systems.utility.method.measurement import (
    Measurement,
    Recommendation,
    recommend,
)
from curvote.systems.utility.method.profile import (
    Profile,
    build_profile,
    restore_profile,
)
from curvote.systems.utility.method.scan import Refit, list_deployments, measure

Settings = dict[str, Setting]


def sent_settings(context: StageContext) -> Settings:
    """Return the settings of the features and of each projection, by name."""
    plain = plain_setting(context)
    settings, params = {measures.FEATURES: plain}, context.params
    for k in params["deployments.components"]:
        coordinates = projections.principal_coordinates(plain.prior, k)
        settings[f"{k} components"] = _projected_setting(plain, coordinates)
    numbers = params["deployments.directions"]
    for coordinates in (
        projections.direction_coordinates(plain, numbers) if numbers else ()
    ):
        k = len(coordinates.bounds)
        name_sent = f"{k} directions" if k > 1 else "1 direction"
        settings[name_sent] = _projected_setting(plain, coordinates)
    return settings


def plain_setting(context: StageContext) -> Setting:
    """Return the setting of the features themselves, or the coefficients."""
    source, params = _read_source(context), context.params
    roles = roles_of_table(source.clients, params, context.number)
    test, train, public = roles["test"], roles["train"], roles["public"]
    labels = source.clients["label"]
    model = unpack_model(context.rows("fit", "estimator")["model"][0])
    if "project" in context.inputs and not isinstance(model, LinearModel):
        raise InternalError(f"{type(model).__name__} is no rule on coefficients")
    return make_setting(
        model,
        source.records[test],
        sensitive=source.columns.sensitive,
        bounds=source.columns.bounds,
        features=source.columns.names,
        labels=labels[test],
        groups=None if source.groups is None else source.groups[test],
        public=source.records[public] if len(public) else None,
        train=(source.records[train], labels[train]) if source.refits else None,
        client_side=params.get("deployments.client_side", False),
        clip=params["deployments.clip"],
    )


@dataclass(frozen=True)
class _SourceRecords:
    """Clients of a source, and the model's columns of them: records (n, D)."""

    clients: Columns
    records: FloatArray
    columns: inputs.RecordColumns
    groups: NDArray[np.str_] | None = None
    refits: bool = True


def _read_source(context: StageContext) -> _SourceRecords:
    """Return the records of the source, or the coefficients."""
    if "project" in context.inputs:
        # Rescaled coefficients are all of them sensitive: public bounds are -1, 1.
        clients = context.rows("project", "encoded")
        places = tuple(range(clients["z"].shape[1]))
        names = tuple(f"z{place + 1}" for place in places)
        bounds = np.tile([-1.0, 1.0], (len(places), 1))
        columns = inputs.RecordColumns(names, places, places, bounds)
        return _SourceRecords(clients, clients["z"], columns, refits=False)
    clients, record = context.rows("ingest", "clients"), context.params["record"]
    facts = context.inputs["ingest"].metadata
    columns = inputs.record_columns(facts, record)
    groups, name = None, record["group"]
    if name is not None:  # as its column writes it
        names_of_source = inputs.column_names(facts)
        if name not in names_of_source:
            raise UserError(f"record.group: there is no column {name}.")
        values = clients["curve"][:, names_of_source.index(name)]
        groups = np.array([f"{value:g}" for value in values])
    return _SourceRecords(clients, columns.of(clients["curve"]), columns, groups)


def _projected_setting(plain: Setting, coordinates: projections.Coordinates) -> Setting:
    """Return the setting of coordinates; several have no prior."""
    setting_sent = projections.project_setting(plain, coordinates)
    alone = len(setting_sent.sensitive) == 1
    return setting_sent if alone else replace(setting_sent, public=None)


def read_profile(context: StageContext, name_sent: str, setting: Setting) -> Profile:
    """Return the profile that stage ``surface`` stored for one way to send."""
    stored = inputs.unpack_arrays(context.rows("surface", "known")["known"][0])
    start = f"{name_sent}/"
    arrays = {
        name.removeprefix(start): array
        for name, array in stored.items()
        if name.startswith(start)
    }
    return restore_profile(setting, arrays)


def fit(context: StageContext) -> Rows:
    """Return the table ``estimator``: one model, fitted on the training clients."""
    clients = context.rows("ingest", "clients")
    facts = context.inputs["ingest"].metadata
    columns = inputs.record_columns(facts, context.params["record"])
    train = roles_of_table(clients, context.params, context.number)["train"]
    seed = int(context.generator("fit").integers(1 << 31))
    X, y = columns.of(clients["curve"][train]), clients["label"][train]
    model = inputs.fit_classifier(context.params["learner"], X, y, seed)
    return {"estimator": {"model": pack_model(model)}}


def surface(context: StageContext) -> Rows:
    """Return the table ``known``, and the scores of the floors."""
    profiles, settings = {}, sent_settings(context)
    for name_sent, setting in settings.items():
        # A linear model of coordinates is as cheap as one of features; all others of
        # them are drawn.
        cheap = (
            name_sent == measures.FEATURES
            or choose_engine(setting.question)[0].name == Linear.name
        )
        profile = build_profile(setting, evidence="auto" if cheap else "draws")
        profiles[name_sent] = profile
    arrays = {
        f"{name_sent}/{name}": array
        for name_sent, profile in profiles.items()
        for name, array in profile.arrays().items()
    }
    plain, profile = settings[measures.FEATURES], profiles[measures.FEATURES]
    rows: list[scores.ScoreRow] = []
    for floor in floor_deployments(plain):
        rows += scores.floor_scores(plain, profile, floor)
    rows += scores.clean_scores(plain, profile)
    return {
        "known": {"known": inputs.pack_arrays(arrays)},
        SCORES.name: scores.score_table(rows),
    }


def agree(context: StageContext) -> Rows:
    """Return the table ``agreed``: the deployments of one mechanism and epsilon."""
    results = []
    for name_sent, setting in sent_settings(context).items():
        profile = read_profile(context, name_sent, setting)
        for deployment in _mechanism_deployments(context, name_sent, setting):
            purpose = f"{name_sent} {deployment.split} {deployment.read}"
            seed = int(context.generator(purpose).integers(1 << 31))
            number, entropy = context.params["deployments.draws"], SeededEntropy(seed)
            draws, refit = Draws(number, scores.CONFIDENCE, entropy), Refit(seed=seed)
            measurement = measure(setting, profile, deployment, draws, refit)
            words = deployment.describe(setting.names)
            # The shares of features, which a projection does not send, are none.
            if deployment.project:
                deployment = replace(deployment, split=None)  # noqa: PLW2901
            results.append((deployment, words, measurement))
    return {"agreed": scores.deployment_table(results)}


def _mechanism_deployments(
    context: StageContext, name_sent: str, setting: Setting
) -> list[Deployment]:
    """Return the deployments of the stage's mechanism, without floors.

    Several coordinates are sent jointly, and read raw; training data have none.
    """
    params, name = context.params, context.params["mechanism"]
    needed = {"decode": setting.public, "retrain": setting.train}
    candidates = list_deployments(
        setting,
        [params["epsilon"]],
        [name],
        reads=[x for x in params["deployments.reads"] if needed.get(x, ()) is not None],
        params=params["deployments.params"].get(name),
    )
    matching = [deployment for deployment in candidates if deployment.mechanism == name]
    if name_sent == measures.FEATURES:
        return matching
    alone = len(setting.sensitive) == 1
    fit = (deployment for deployment in matching if deployment.split is None or alone)
    return [replace(deployment, project=name_sent) for deployment in fit]


def report(context: StageContext) -> Rows:
    """Return the tables ``scores`` and ``recommended`` of one total epsilon."""
    setting, params = sent_settings(context)[measures.FEATURES], context.params
    profile = read_profile(context, measures.FEATURES, setting)
    sent_results: list[tuple[Deployment, str, Measurement]] = []
    for name in context.inputs:
        if name.startswith("agree@"):
            sent_results += scores.read_measurements(context.rows(name, "agreed"))
    answer = Deployment(ANSWER, params["epsilon"])
    free_results = [
        (deployment, measure(setting, profile, deployment))
        for deployment in (*floor_deployments(setting), answer)
    ]
    pairs = ((deployment, measured) for deployment, _, measured in sent_results)
    scan = [*free_results, *pairs]
    choose = partial(recommend, setting, profile, scan, seed=params["seed"])
    best, target = choose(epsilon=params["epsilon"]), params["deployments.target"]
    reached = None if target is None else choose(target=target)
    rows: list[scores.ScoreRow] = []
    named = {measures.OUTPUT.name: free_results[-1]}
    for deployment, words, measured in sent_results:
        rows += scores.deployment_scores(words, setting, deployment, measured)
        # The first that the pipeline names has a name, not the best: a choice would
        # flatter.
        if deployment.read == "raw" and not deployment.project:
            if deployment.split is None:
                named.setdefault(measures.VECTOR_METHOD.name, (deployment, measured))
            elif len(set(deployment.split)) == 1:
                named.setdefault(measures.EQUAL.name, (deployment, measured))
    for name, (deployment, measured) in named.items():
        rows += scores.deployment_scores(name, setting, deployment, measured)
    rows += _recommended_scores(best)
    chosen = best.deployment
    texts = {
        "deployment": "" if chosen is None else scores.write_deployment(chosen),
        "words": _recommended_words(setting, best),
        "reason": best.reason,
        "reaches": _recommended_words(setting, reached),
    }
    recommended = {key: np.array([text], dtype=object) for key, text in texts.items()}
    return {SCORES.name: scores.score_table(rows), "recommended": recommended}


def _recommended_scores(best: Recommendation) -> Iterator[scores.ScoreRow]:
    """Yield the scores of the half of the records that chose nothing."""
    row = best.row
    if row is None:
        return
    for metric in measures.METRICS:
        value = getattr(row, metric.name)
        if value is not None:
            ends = value, value
            if metric is AGREEMENT:
                ends = row.lower, row.upper
            yield scores.ScoreRow(measures.RECOMMENDED.name, metric.name, value, *ends)


def _recommended_words(setting: Setting, advice: Recommendation | None) -> str:
    """Return the recommended deployment in words, if there is one."""
    chosen = None if advice is None else advice.deployment
    return "" if chosen is None else chosen.describe(setting.names)


def fit_curves(context: StageContext) -> Rows:
    """Return the table ``estimator``: one rule, fitted on the training clients."""
    clients, learner = context.rows("project", "encoded"), context.params["learner"]
    train = roles_of_table(clients, context.params, context.number)["train"]
    reports, labels = clients["z"][train], class_signs(clients["label"][train])
    fits = registry.fit(
        learner["name"], reports[None], labels[None], **learner["params"]
    )
    model = LinearModel(fits.coef[0], float(fits.intercept[0]))
    return {"estimator": {"model": pack_model(model)}}
