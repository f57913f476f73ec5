"""System `mrma` and its variants: settings, methods, stages and messages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final

from pydantic import Field

from curvote.base.errors import Problem
from curvote.chain import axis, measure, stage, system
from curvote.chain.settings import Strict, WholeNumber
from curvote.messages.measures import AGREEMENT, ERRORS, LEARNER, MAJORITY
from curvote.systems.common import checks, models
from curvote.systems.common.declarations import (
    COMMON_STAGES,
    LEARNERS,
    MECHANISMS,
    NONE_PASSED,
    ROLE_PARAMS,
    SECTIONS,
    UTILITIES,
    client_stage,
    release_stage,
    score_stage,
    server_stage,
)
from curvote.systems.common.questions import halving_code
from curvote.systems.common.settings import Aggregate, Privatize, Shared, Taught
from curvote.systems.common.study import CONFUSION
from curvote.systems.common.tables import ENSEMBLE, REPORTS, VOTES, WEAK
from curvote.systems.direct.system import JUDGED_BY_Z, Direct
from curvote.systems.mrma.messages import MESSAGES_BY_SYSTEM, Pooled
from curvote.systems.references.messages import ComparisonLabel

_STAGES: Final = "curvote.systems.mrma.stages"
_CLASS_STAGES: Final = "curvote.systems.mrma.class_stages"


class Histogram(Strict):
    """The histogram baseline: each axis of [-1, 1]^d is cut into ``bins`` parts."""

    bins: Annotated[int, Field(ge=2, strict=True)] = 4


class Watch(Strict):
    """Threshold at which the newest votes of an open round raise an alert."""

    drop: Annotated[float, Field(gt=0)] = 3.0


class Settings(Taught):
    """Settings of MRMA; ``as_published`` takes the printed definitions."""

    privatize: Privatize = Privatize()
    aggregate: Aggregate = Aggregate()
    histogram: Histogram = Histogram()
    online: Watch = Watch()
    as_published: bool = False


WEAK_METHOD: Final = measure.Method(
    "weak",
    "weak",
    "Mean error of the weak classifiers as they were trained.",
    measure.Look("#838b94", "v", size=5),
    rank=10,
    short_phrase="one weak classifier",
)
REVERSED_METHOD: Final = measure.Method(
    "mr",
    "MR",
    "Mean error of the weak classifiers after reversal.",
    measure.Look("#0072b2", "s"),
    rank=20,
)
AVERAGED_METHOD: Final = measure.Method(
    "ma",
    "MA",
    "The weighted average of MRMA, but nothing is reversed.",
    measure.Look("#e69f00", "D", size=4),
    rank=30,
)
MRMA_METHOD: Final = measure.Method(
    "mrma",
    "MRMA",
    "Weak classifiers that do worse than a coin are reversed; those whose "
    "estimated utility then passes the cutoff are averaged, the better ones with "
    "more weight.",
    measure.Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    rank=40,
)
BEST_SINGLE_METHOD: Final = measure.Method(
    "best_single",
    "best single",
    "The one reversed classifier of highest estimated utility.",
    measure.Look("#cc79a7", "^", size=5),
    rank=80,
)
VOTING_METHOD: Final = measure.Method(
    "voting",
    "voting",
    "Majority vote of classifiers trained on equal parts of all clients' reports.",
    measure.Look("#8a6a4a", "d", "--", size=4.5),
    rank=130,
    study_only=True,
)
AVERAGING_METHOD: Final = measure.Method(
    "averaging",
    "averaging",
    "Plain mean of the same classifiers.",
    measure.Look("#56b4e9", "X", "--", size=5),
    rank=140,
    study_only=True,
)
ALL_DATA_METHOD: Final = measure.Method(
    "all_data",
    "all data",
    "One classifier trained on noised reports of all clients, voters included.",
    measure.Look("#009e73", "P", "--", size=5.2),
    rank=150,
    study_only=True,
)
HISTOGRAM_METHOD: Final = measure.Method(
    "histogram",
    "histogram",
    "The class that is larger in a record's cell of a coarse grid; every client "
    "sends a noised number for each cell.",
    measure.Look("#a39a2e", "", ":", width=1.2),
    rank=180,
    study_only=True,
)
ENSEMBLE_METHODS: Final = (
    WEAK_METHOD,
    REVERSED_METHOD,
    AVERAGED_METHOD,
    MRMA_METHOD,
    BEST_SINGLE_METHOD,
)
ALL_METHODS: Final = (
    *ENSEMBLE_METHODS,
    VOTING_METHOD,
    AVERAGING_METHOD,
    ALL_DATA_METHOD,
    HISTOGRAM_METHOD,
)


CELL_AXES = ("epsilon", "learner")
REPORT_PARAMS = tuple(
    f"privatize.{key}" for key in ("mechanism", "params", "label_share")
)

DRAW_PARAMS = ("train.count", "train.size", "seed")
LEARN_PARAMS = ("learner.name", "learner.params", *DRAW_PARAMS)
RULE_PARAMS = tuple(
    f"aggregate.{key}" for key in ("cutoff", "when_none_pass", "weights")
)

PRIVATIZE = client_stage(
    "privatize",
    f"{_STAGES}:privatize",
    REPORTS,
    params=REPORT_PARAMS,
    plugins=(MECHANISMS,),
)
TRAIN = server_stage(
    "train",
    "curvote.systems.common.models:train",
    ("privatize",),
    WEAK,
    axes=CELL_AXES,
    params=LEARN_PARAMS,
    plugins=(LEARNERS,),
)
EVALUATE = client_stage(
    "evaluate",
    f"{_STAGES}:evaluate",
    VOTES,
    ("project", "train"),
    axes=CELL_AXES,
    params=("project.judge",),
)
AGGREGATE = server_stage(
    "aggregate",
    f"{_STAGES}:aggregate",
    ("evaluate",),
    ENSEMBLE,
    axes=CELL_AXES,
    params=("epsilon", *RULE_PARAMS),
)
SCORE = score_stage(
    f"{_STAGES}:score",
    ("project", "train", "aggregate"),
    CELL_AXES,
    ("project.judge", "report.definitions", *ROLE_PARAMS),
)
BASELINE = score_stage(
    f"{_STAGES}:baseline",
    ("project",),
    params=("epsilon", "histogram.bins", "published.histogram", *ROLE_PARAMS),
)
STAGES = (*COMMON_STAGES, PRIVATIZE, TRAIN, EVALUATE, AGGREGATE, SCORE, BASELINE)

RELEASE = release_stage(
    PRIVATIZE, "report", ("ingest", "project"), ("project.judge", *REPORT_PARAMS)
)
RELEASE_VOTES = release_stage(EVALUATE, "vote", ("ingest", "privatize", "train"))
# No baseline and no score: what only a study could draw or know is not asked for.
PRODUCTION = (*COMMON_STAGES, RELEASE, TRAIN, RELEASE_VOTES, AGGREGATE)


def describe_histogram(
    config: Mapping[str, Any], d: int
) -> list[system.MessageDescription]:
    """Return the description of what the histogram's clients would send."""
    n_classes = checks.class_count(config["source"])
    prefix = f"{n_classes} x " if n_classes > 2 else ""
    suffix = " and class" if n_classes > 2 else ""
    bins = config["histogram"]["bins"]
    what = f"{prefix}{bins}^{d} noised numbers, one for each cell{suffix}"
    detail = "for histogram; two of them depend on the record"
    return [system.MessageDescription("every client", what, "laplace", detail)]


def _histogram_notes(views: Sequence[system.View]) -> Iterator[str]:
    """Yield why the histogram is missing, where it is."""
    for view in views:
        if not view.settings.production:
            reason = view.without("learner").metadata("report").get("histogram")
            if reason:
                yield f"histogram: {reason}"


SYSTEM = system.System(
    name="mrma",
    settings=Settings,
    stages=STAGES,
    production=PRODUCTION,
    axes=(axis.EPSILON, LEARNER),
    messages=MESSAGES_BY_SYSTEM["mrma"],
    study_messages=(Pooled().describe, ComparisonLabel().describe, describe_histogram),
    metrics=ERRORS,
    methods=(*ALL_METHODS, MAJORITY),
    main=("mrma",),
    checks=checks.combine_checks(
        *checks.LEARNING_CHECKS, classes=checks.check_mrma_classes
    ),
    resolve_parts=checks.resolve_classes,
    normalize=checks.expand_published,
    final_model=models.ensemble_model,
    production_metrics=models.vote_outcome,
    needs_new_round=models.votes_declined,
    notes=_histogram_notes,
    sections=(NONE_PASSED, UTILITIES, *SECTIONS),
)


# Several classes: each client answers for one.
CLASS_REPORTS: Final = stage.Table(
    "class_reports", {**REPORTS.columns, "question": "int64"}, unit="message"
)


_PRIVATIZE_CLASSES = replace(
    PRIVATIZE, module=f"{_CLASS_STAGES}:privatize_classes", tables=(CLASS_REPORTS,)
)
_TRAIN_CLASSES = replace(
    TRAIN, module=f"{_CLASS_STAGES}:train_classes", inputs=("project", *TRAIN.inputs)
)
_EVALUATE_CLASSES = replace(EVALUATE, module=f"{_CLASS_STAGES}:evaluate_classes")
_AGGREGATE_CLASSES = replace(
    AGGREGATE,
    module=f"{_CLASS_STAGES}:aggregate_classes",
    inputs=("project", *AGGREGATE.inputs),
)
_RELEASE_CLASSES = replace(RELEASE, tables=(CLASS_REPORTS,))
_SCORE_CLASSES = replace(
    SCORE, module=f"{_CLASS_STAGES}:score_classes", tables=(*SCORE.tables, CONFUSION)
)

_MRMA_CLASSES = replace(
    SYSTEM,
    name="mrma_classes",
    stages=(
        *COMMON_STAGES,
        _PRIVATIZE_CLASSES,
        _TRAIN_CLASSES,
        _EVALUATE_CLASSES,
        _AGGREGATE_CLASSES,
        _SCORE_CLASSES,
        BASELINE,
    ),
    production=(
        *COMMON_STAGES,
        _RELEASE_CLASSES,
        _TRAIN_CLASSES,
        RELEASE_VOTES,
        _AGGREGATE_CLASSES,
    ),
    messages=MESSAGES_BY_SYSTEM["mrma_classes"],
    resolve_parts=lambda settings: (system.Part(settings),),
)


class Votes(Strict):
    """Number of random directions that clients judge.

    Of more than two classes, so many about each split of them into halves.
    """

    directions: WholeNumber = 100


class VotesSettings(Shared):
    """Settings of votes about random directions."""

    votes: Votes = Votes()
    direct: Direct = Direct()
    online: Watch = Watch()


# No client has a part in it: every epsilon shares the directions.
_DRAW_DIRECTIONS = server_stage(
    "train",
    f"{_STAGES}:draw_directions",
    ("project",),
    WEAK,
    axes=(),
    params=("votes.directions", "direct.intercept", "seed"),
)
_JUDGE_DIRECTIONS = client_stage(
    "evaluate", f"{_STAGES}:evaluate_directions", VOTES, ("project", "train")
)
_RELEASE_JUDGEMENTS = release_stage(
    _JUDGE_DIRECTIONS, "vote", ("ingest", "project", "train"), ("project.judge",)
)
_AGGREGATE_VOTES = server_stage(
    "aggregate", f"{_STAGES}:aggregate_votes", ("evaluate",), ENSEMBLE
)
_SCORE_VOTES = score_stage(
    f"{_STAGES}:score_votes",
    ("project", "train", "aggregate"),
    params=("epsilon", *ROLE_PARAMS),
    beside=(CONFUSION,),
)


def _check_direction_count(pipeline: axis.PipelineSettings) -> Iterator[Problem]:
    yield from checks.check_many_classes(pipeline)
    voters = pipeline.clients.train + pipeline.clients.vote
    split_count = len(halving_code(checks.class_count(pipeline.source)))
    if pipeline.votes.directions * split_count > voters:
        about = f" about each of {split_count} splits" if split_count > 1 else ""
        message = f"more directions{about} than the {voters} clients who judge them."
        yield Problem(message, ("votes", "directions"))


_VOTES = measure.Method(
    "votes",
    "votes",
    "No client trains: random directions are judged by one noised vote of each "
    "client, reversed and averaged by their utility.",
    measure.Look("#0072b2", "s", width=2.0),
    rank=120,
)


_VOTES_SYSTEM = system.System(
    name="votes",
    settings=VotesSettings,
    stages=(
        *COMMON_STAGES,
        _DRAW_DIRECTIONS,
        _JUDGE_DIRECTIONS,
        _AGGREGATE_VOTES,
        _SCORE_VOTES,
    ),
    production=(
        *COMMON_STAGES,
        _DRAW_DIRECTIONS,
        _RELEASE_JUDGEMENTS,
        _AGGREGATE_VOTES,
    ),
    messages=MESSAGES_BY_SYSTEM["votes"],
    study_messages=(ComparisonLabel().describe,),
    metrics=ERRORS,
    methods=(_VOTES, BEST_SINGLE_METHOD, MAJORITY),
    main=("votes",),
    checks=checks.combine_checks(
        checks.check_test_clients, classes=_check_direction_count
    ),
    shorthand=("directions",),
    implied_settings=JUDGED_BY_Z,
    final_model=partial(models.ensemble_model, code=halving_code),
    production_metrics=models.vote_outcome,
    needs_new_round=models.votes_declined,
    sections=(UTILITIES, *SECTIONS),
)


class Drift(Strict):
    """Value of z at which noised and clean labels are compared."""

    at: float = 0.0


class DriftSettings(Shared):
    """Settings of reports beside their records."""

    privatize: Privatize = Privatize()
    drift: Drift = Drift()


_SCORE_DRIFT = score_stage(
    f"{_STAGES}:score_drift", ("ingest", "privatize"), params=("drift.at", "replicates")
)

_DRIFT_METHOD = measure.Method(
    "report",
    "reports",
    "The noised reports of the clients, held against their records.",
    measure.Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    rank=200,
)


_DRIFT = system.System(
    name="drift",
    settings=DriftSettings,
    stages=(*COMMON_STAGES, PRIVATIZE, _SCORE_DRIFT),
    messages=MESSAGES_BY_SYSTEM["drift"],
    metrics=(AGREEMENT, measure.Metric("total_variation", "distance of the two laws")),
    methods=(_DRIFT_METHOD,),
    main=("report",),
    checks=checks.combine_checks(checks.check_budgets),
    sections=SECTIONS,
)

SYSTEMS: Final = (SYSTEM, _MRMA_CLASSES, _VOTES_SYSTEM, _DRIFT)
