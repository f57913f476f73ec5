"""Stages of utility: fit, surface, agree and report, and the tables of scores."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import log, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.classes import class_signs
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import InternalError, UserError
from curvote.chain.measure import SCORES
from curvote.chain.stage import Columns, Rows, StageContext
from curvote.learning.learners import registry
from curvote.messages.measures import AGREEMENT
from curvote.messages.roles import roles_of_table
from curvote.systems.common.models import pack_model, unpack_model
from curvote.systems.labels.metrics import ACCURACY, BALANCED
from curvote.systems.utility import system
from curvote.systems.utility.method import projections
from curvote.systems.utility.method.deployment import OUTPUT as ANSWER
from curvote.systems.utility.method.deployment import (
    Deployment,
    Places,
    Setting,
    floor_deployments,
    make_setting,
)
from curvote.systems.utility.method.engines.base import Draws, choose_engine
from curvote.systems.utility.method.engines.discriminants import Linear, LinearModel
from curvote.systems.utility.method.measurement import (
    Measurement,
    Recommendation,
    Row,
    fixed_answers,
    make_rows,
    measure_agreement,
    recommend,
)
from curvote.systems.utility.method.profile import (
    Profile,
    build_profile,
    restore_profile,
)
from curvote.systems.utility.method.scan import list_deployments, measure

Ends = tuple[float, float]
CONFIDENCE: Final = 0.95
_FLOORS: Final = {
    "raw": system.WITHHOLD,
    "decode": system.DECODED,
    "without": system.WITHOUT,
}


@dataclass(frozen=True)
class ScoreRow:
    """Row of the table ``scores``; exact values have equal ends."""

    method: str
    metric: str
    value: float
    lower: float
    upper: float
    group: str | None = None


def score_table(scores: Iterable[ScoreRow]) -> Columns:
    """Return the columns of the table ``scores``."""
    rows = [*scores]
    texts, numbers = ("method", "metric", "group"), ("value", "lower", "upper")
    return {
        **{n: np.array([getattr(r, n) for r in rows], dtype=object) for n in texts},
        **{n: np.array([getattr(r, n) for r in rows], dtype=float) for n in numbers},
    }


def deployment_scores(
    method: str, setting: Setting, deployment: Deployment, measurement: Measurement
) -> Iterator[ScoreRow]:
    """Yield every metric of a deployment, for all records and each group."""
    for row in make_rows(setting, deployment, measurement):
        mask = np.full(setting.n, True)
        if row.group is not None:
            mask = np.asarray(setting.groups == row.group)
        labels = None if setting.labels is None else setting.labels[mask]
        for metric, ends in _metric_ends(row, measurement.of(mask), labels).items():
            value = getattr(row, metric)
            if value is not None:
                yield ScoreRow(method, metric, value, *ends, row.group)


def _metric_ends(
    row: Row, measurement: Measurement, labels: Places | None
) -> dict[str, Ends]:
    """Return the ends of each metric, by the evidence.

    A weighted mean of shares is off by nothing where they are exact; of plain draws by
    the bound of Hoeffding (1963) at the confidence; of anything else by the widths of
    the intervals.
    """
    worst = float(measurement.lower.min()), float(measurement.upper.min())
    bound = row.bound or 0.0
    ends = {
        AGREEMENT.name: (row.lower, row.upper),
        system.WORST.name: worst,
        system.BOUND.name: (bound, bound),
    }
    if labels is None:
        return ends
    equal = np.full(len(labels), 1 / len(labels))
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    by_class = 1 / (len(classes) * counts[codes])
    for metric, value, weights in (
        (ACCURACY, row.accuracy or 0.0, equal),
        (BALANCED, row.balanced_accuracy or 0.0, by_class),
    ):
        reach = float(weights @ (measurement.upper - measurement.lower))
        if measurement.draw_count:
            squares = float(np.sum(weights**2)) / measurement.draw_count
            reach = sqrt(log(2 / (1 - CONFIDENCE)) * squares / 2)
        ends[metric.name] = max(0.0, value - reach), min(1.0, value + reach)
    return ends


VECTORS = ("agreement", "lower", "upper", "bound", "right", "queries")
DeploymentResult = tuple[Deployment, str, Measurement]


def write_deployment(deployment: Deployment) -> str:
    """Return a deployment as JSON text."""
    return json.dumps(asdict(deployment), sort_keys=True)


def deployment_table(results: Sequence[DeploymentResult]) -> Columns:
    """Return the table ``agreed`` of deployments, descriptions and measurements."""
    nothing, vectors = np.zeros(len(results[0][2].agreement)), {}
    for name in VECTORS:  # (deployments, n); what is missing is 0
        rows = [getattr(measured, name) for _, _, measured in results]
        vectors[name] = np.stack([nothing if row is None else row for row in rows])
    texts = {
        "deployment": [write_deployment(deployment) for deployment, _, _ in results],
        "words": [text for _, text, _ in results],
        "evidence": [measured.evidence for _, _, measured in results],
    }
    return {
        **{name: np.array(column, dtype=object) for name, column in texts.items()},
        "drawn": np.array([m.draw_count for _, _, m in results], dtype=np.int64),
        "bounded": np.array([m.bound is not None for _, _, m in results]),
        **vectors,
    }


def read_measurements(columns: Columns) -> list[DeploymentResult]:
    """Return the deployments of a table ``agreed``, with measurements."""
    results = []
    for row, text in enumerate(columns["deployment"]):
        fields: dict[str, Any] = {name: columns[name][row] for name in VECTORS}
        fields["bound"] = fields["bound"] if columns["bounded"][row] else None
        fields["queries"] = fields["queries"].astype(np.int64)
        fields["evidence"] = columns["evidence"][row]
        fields["confidence"] = CONFIDENCE if fields["evidence"] == "draws" else None
        measured = Measurement(**fields, draw_count=int(columns["drawn"][row]))
        written = json.loads(text)
        split = written.pop("split")
        split = None if split is None else tuple(split)
        deployment = Deployment(**written, split=split)
        results.append((deployment, str(columns["words"][row]), measured))
    return results


Settings = dict[str, Setting]


def sent_settings(context: StageContext) -> Settings:
    """Return the settings of the features and of each projection, by name."""
    plain = plain_setting(context)
    settings, params = {system.FEATURES: plain}, context.params
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
    params, groups, refits = context.params, None, "project" not in context.inputs
    model = unpack_model(context.rows("fit", "estimator")["model"][0])
    if refits:
        clients, record = context.rows("ingest", "clients"), params["record"]
        facts, name = context.inputs["ingest"].metadata, record["group"]
        columns = system.record_columns(facts, record)
        records = columns.of(clients["curve"])
        if name is not None:  # as its column writes it
            names = system.column_names(facts)
            if name not in names:
                raise UserError(f"record.group: there is no column {name}.")
            values = clients["curve"][:, names.index(name)]
            groups = np.array([f"{value:g}" for value in values])
    else:
        # Rescaled coefficients are all of them sensitive: public bounds are -1, 1.
        clients = context.rows("project", "encoded")
        records = clients["z"]
        places = tuple(range(records.shape[1]))
        columns = system.RecordColumns(
            tuple(f"z{place + 1}" for place in places),
            places,
            places,
            np.tile([-1.0, 1.0], (len(places), 1)),
        )
        if not isinstance(model, LinearModel):
            raise InternalError(f"{type(model).__name__} is no rule on coefficients")
    roles, labels = roles_of_table(clients, params, context.number), clients["label"]
    test, train, public = roles["test"], roles["train"], roles["public"]
    return make_setting(
        model,
        records[test],
        sensitive=columns.sensitive,
        bounds=columns.bounds,
        features=columns.names,
        labels=labels[test],
        groups=None if groups is None else groups[test],
        public=records[public] if len(public) else None,
        train=(records[train], labels[train]) if refits else None,
        client_side=params.get("deployments.client_side", False),
        clip=params["deployments.clip"],
    )


def _projected_setting(plain: Setting, coordinates: projections.Coordinates) -> Setting:
    """Return the setting of coordinates; several have no prior."""
    setting_sent = projections.project_setting(plain, coordinates)
    alone = len(setting_sent.sensitive) == 1
    return setting_sent if alone else replace(setting_sent, public=None)


def read_profile(context: StageContext, name_sent: str, setting: Setting) -> Profile:
    """Return the profile that stage ``surface`` stored for one way to send."""
    stored = system.unpack_arrays(context.rows("surface", "known")["known"][0])
    parts = ((name.partition("/"), array) for name, array in stored.items())
    arrays = {key: array for (start, _, key), array in parts if start == name_sent}
    return restore_profile(setting, arrays)


def fit(context: StageContext) -> Rows:
    """Return the table ``estimator``: one model, fitted on the training clients."""
    clients = context.rows("ingest", "clients")
    facts = context.inputs["ingest"].metadata
    columns = system.record_columns(facts, context.params["record"])
    train = roles_of_table(clients, context.params, context.number)["train"]
    seed = int(context.generator("fit").integers(1 << 31))
    X, y = columns.of(clients["curve"][train]), clients["label"][train]
    model = system.make_classifier(context.params["learner"], seed).fit(X, y)
    return {"estimator": {"model": pack_model(model)}}


def surface(context: StageContext) -> Rows:
    """Return the table ``known``, and the scores of the floors."""
    settings = sent_settings(context)
    arrays: dict[str, NDArray[Any]] = {}
    plain, profile = settings[system.FEATURES], build_profile(settings[system.FEATURES])
    for name_sent, setting in settings.items():
        profile_sent = profile
        if name_sent != system.FEATURES:
            # A linear model of coordinates is as cheap as one of features; all others
            # of them are drawn.
            cheap = choose_engine(setting.question)[0].name == Linear.name
            profile_sent = build_profile(setting, evidence="auto" if cheap else "draws")
        arrays |= {
            f"{name_sent}/{name}": a for name, a in profile_sent.arrays().items()
        }
    rows: list[ScoreRow] = []
    floors = floor_deployments(plain)
    for floor in floors:
        measured = measure(plain, profile, floor)
        rows += deployment_scores(_FLOORS[floor.read].name, plain, floor, measured)
    answers = fixed_answers(profile.clean, profile.n_classes)  # without noise
    measured = measure_agreement(answers, profile.clean, plain.labels, CONFIDENCE)
    clean = deployment_scores(system.CLEAN.name, plain, floors[0], measured)
    accuracies = {ACCURACY.name, BALANCED.name}
    rows += [score for score in clean if score.metric in accuracies]
    return {
        "known": {"known": system.pack_arrays(arrays)},
        SCORES.name: score_table(rows),
    }


def agree(context: StageContext) -> Rows:
    """Return the table ``agreed``: the deployments of one mechanism and epsilon.

    Several coordinates are sent jointly, and read raw; training data have none.
    """
    results, params, mechanism = [], context.params, context.params["mechanism"]
    for name_sent, setting in sent_settings(context).items():
        profile = read_profile(context, name_sent, setting)
        features, alone = name_sent == system.FEATURES, len(setting.sensitive) == 1
        needed = {"decode": setting.public, "retrain": setting.train}
        reads = params["deployments.reads"]
        for deployment in list_deployments(
            setting,
            [params["epsilon"]],
            [mechanism],
            reads=[name for name in reads if needed.get(name, ()) is not None],
            params=params["deployments.params"].get(mechanism),
        ):
            split = deployment.split
            fits = features or split is None or alone
            if deployment.mechanism != mechanism or not fits:
                continue
            purpose = f"{name_sent} {split} {deployment.read}"
            seed = int(context.generator(purpose).integers(1 << 31))
            if not features:
                deployment = replace(deployment, project=name_sent)  # noqa: PLW2901
            how = {"number": params["deployments.draws"], "seed": seed}
            measurement = measure_drawn(setting, profile, deployment, **how)
            words = deployment.describe(setting.names)
            # The shares of features, which a projection does not send, are none.
            if deployment.project:
                deployment = replace(deployment, split=None)  # noqa: PLW2901
            results.append((deployment, words, measurement))
    return {"agreed": deployment_table(results)}


def measure_drawn(
    setting: Setting,
    profile: Profile,
    deployment: Deployment,
    *,
    number: int,
    seed: int,
    confidence: float = CONFIDENCE,
) -> Measurement:
    """Return the effect of a deployment, whose draws and refits come from ``seed``."""
    draws = Draws(number, confidence, SeededEntropy(seed))
    return measure(setting, profile, deployment, draws, seed)


def report(context: StageContext) -> Rows:
    """Return the tables ``scores`` and ``recommended`` of one total epsilon."""
    setting, params = sent_settings(context)[system.FEATURES], context.params
    profile = read_profile(context, system.FEATURES, setting)
    sent_results: list[tuple[Deployment, str, Measurement]] = []
    for name in context.inputs:
        if name.startswith("agree@"):
            sent_results += read_measurements(context.rows(name, "agreed"))
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
    rows: list[ScoreRow] = []
    named = {system.OUTPUT.name: free_results[-1]}
    for deployment, words, measured in sent_results:
        rows += deployment_scores(words, setting, deployment, measured)
        # The first that the pipeline names has a name, not the best: a choice would
        # flatter.
        if deployment.read == "raw" and not deployment.project:
            if deployment.split is None:
                named.setdefault(system.VECTOR_METHOD.name, (deployment, measured))
            elif len(set(deployment.split)) == 1:
                named.setdefault(system.EQUAL.name, (deployment, measured))
    for name, (deployment, measured) in named.items():
        rows += deployment_scores(name, setting, deployment, measured)
    chosen = best.deployment
    if best.row is not None:  # of the half of the records that chose nothing
        for metric in system.METRICS:
            value = getattr(best.row, metric.name)
            if value is not None:
                ends = value, value
                if metric is AGREEMENT:
                    ends = best.row.lower, best.row.upper
                name = system.RECOMMENDED.name
                rows.append(ScoreRow(name, metric.name, value, *ends))
    texts = {
        "deployment": "" if chosen is None else write_deployment(chosen),
        "words": _recommended_words(setting, best),
        "reason": best.reason,
        "reaches": _recommended_words(setting, reached),
    }
    recommended = {key: np.array([text], dtype=object) for key, text in texts.items()}
    return {SCORES.name: score_table(rows), "recommended": recommended}


def _recommended_words(setting: Setting, advice: Recommendation | None) -> str:
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
