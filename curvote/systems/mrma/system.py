"""System `mrma` and its variants: settings, methods, stages and messages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from curvote.base.errors import Problem
from curvote.chain import axis, measure, stage, system
from curvote.chain.settings import Strict, WholeNumber
from curvote.messages.measures import AGREEMENT, ERRORS, LEARNER, methods_named
from curvote.systems.common import checks, models
from curvote.systems.common.declarations import (
    JUDGED_BY_Z,
    LEARNERS,
    MECHANISMS,
    NONE_PASSED,
    ROLE_PARAMS,
    SECTIONS,
    UTILITIES,
    client_stage,
    learning_system,
    release_stage,
    score_stage,
    server_stage,
)
from curvote.systems.common.questions import halving_code
from curvote.systems.common.settings import Aggregate, Privatize, Shared, Taught
from curvote.systems.common.study import CONFUSION
from curvote.systems.common.tables import ENSEMBLE, REPORTS, VOTES, WEAK
from curvote.systems.direct import system as direct
from curvote.systems.direct.system import Direct
from curvote.systems.mrma.messages import Pooled
from curvote.systems.references.messages import ComparisonLabel

_STAGES: Final = "curvote.systems.mrma.stages"


class Histogram(Strict):
    """The histogram baseline: each axis of [-1, 1]^d is cut into ``bins`` parts."""

    bins: Annotated[int, Field(ge=2, strict=True)] = 4


class Watch(Strict):
    """Probability of an alert, ever, that votes of an open round should not raise."""

    error: Annotated[float, Field(gt=0, lt=1)] = 0.05

    @model_validator(mode="before")
    @classmethod
    def _skip_former_key(cls, values: Any) -> Any:
        """Leave out ``drop``, which records of earlier versions hold."""
        if isinstance(values, dict):
            return {name: value for name, value in values.items() if name != "drop"}
        return values


class Settings(Taught):
    """Settings of MRMA; ``as_published`` takes the printed definitions."""

    privatize: Privatize = Privatize()
    aggregate: Aggregate = Aggregate()
    histogram: Histogram = Histogram()
    online: Watch = Watch()
    as_published: bool = False


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
    "privatize", _STAGES, REPORTS, params=REPORT_PARAMS, plugins=(MECHANISMS,)
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
    _STAGES,
    VOTES,
    ("project", "train"),
    axes=CELL_AXES,
    params=("project.judge",),
)
AGGREGATE = server_stage(
    "aggregate",
    _STAGES,
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
RELEASE = release_stage(
    PRIVATIZE, "report", ("ingest", "project"), ("project.judge", *REPORT_PARAMS)
)
RELEASE_VOTES = release_stage(EVALUATE, "vote", ("ingest", "privatize", "train"))


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


# What MRMA's systems keep, know and ask of votes.
VOTED: Final[dict[str, Any]] = {
    "judge_inputs": ("privatize", "train", "aggregate"),
    "final_model": models.ensemble_model,
    "production_metrics": models.vote_outcome,
    "needs_new_round": models.votes_declined,
}
_MRMA_FIELDS: Final[dict[str, Any]] = {
    "axes": (axis.EPSILON, LEARNER),
    "study_messages": (
        Pooled().describe,
        ComparisonLabel().describe,
        describe_histogram,
    ),
    "main": ("mrma",),
    "checks": checks.LEARNING_CHECKS,
    "classes": checks.check_mrma_classes,
    "normalize": checks.expand_published,
    "notes": _histogram_notes,
    "sections": (NONE_PASSED, UTILITIES, *SECTIONS),
    **VOTED,
}
ENSEMBLE_METHODS = "weak mr ma mrma best_single"
_ALL_METHODS = f"{ENSEMBLE_METHODS} voting averaging all_data histogram majority"

SYSTEM = learning_system(
    "mrma",
    Settings,
    (PRIVATIZE, TRAIN, EVALUATE, AGGREGATE, SCORE, BASELINE),
    _ALL_METHODS,
    # No baseline and no score: what only a study could draw or know is not asked for.
    releases=(RELEASE, RELEASE_VOTES),
    resolve_parts=checks.resolve_classes,
    **_MRMA_FIELDS,
)


# Several classes: each client answers for one.
CLASS_REPORTS: Final = stage.Table(
    "class_reports", {**REPORTS.columns, "question": "int64"}, unit="message"
)
_MRMA_CLASSES = learning_system(
    "mrma_classes",
    Settings,
    (
        replace(
            PRIVATIZE, module=f"{_STAGES}:privatize_classes", tables=(CLASS_REPORTS,)
        ),
        replace(
            TRAIN, module=f"{_STAGES}:train_classes", inputs=("project", *TRAIN.inputs)
        ),
        replace(EVALUATE, module=f"{_STAGES}:evaluate_classes"),
        replace(AGGREGATE, inputs=("project", *AGGREGATE.inputs)),
        replace(
            SCORE, module=f"{_STAGES}:score_classes", tables=(*SCORE.tables, CONFUSION)
        ),
        BASELINE,
    ),
    _ALL_METHODS,
    releases=(replace(RELEASE, tables=(CLASS_REPORTS,)), RELEASE_VOTES),
    **_MRMA_FIELDS,
)


class Votes(Strict):
    """Number of random directions that clients judge."""

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


_VOTES_SYSTEM = learning_system(
    "votes",
    VotesSettings,
    (_DRAW_DIRECTIONS, _JUDGE_DIRECTIONS, _AGGREGATE_VOTES, _SCORE_VOTES),
    "votes best_single majority",
    releases=(_RELEASE_JUDGEMENTS,),
    study_messages=(ComparisonLabel().describe,),
    classes=_check_direction_count,
    shorthand=("directions",),
    implied_settings=JUDGED_BY_Z,
    sections=(UTILITIES, *SECTIONS),
    **VOTED
    | {
        "final_model": partial(models.ensemble_model, code=halving_code),
        "judge_inputs": ("train", "evaluate", "aggregate"),
    },
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

_DRIFT = learning_system(
    "drift",
    DriftSettings,
    (PRIVATIZE, _SCORE_DRIFT),
    "report",
    metrics=(AGREEMENT, measure.Metric("total_variation", "distance of the two laws")),
    checks=(checks.check_budgets,),
    classes=checks.check_two_classes,
)


class AutoSettings(direct.Settings):
    """Settings of `direct` and of `votes` together."""

    votes: Votes = Votes()


# It has no stage: each of its cells is one of the system that its rule takes.
_AUTO = system.System(
    name=direct.AUTO_PROTOCOL,
    settings=AutoSettings,
    stages=(),
    metrics=ERRORS,
    methods=methods_named("auto"),
    checks=checks.combine_checks(
        checks.check_test_clients,
        direct.check_choice,
        classes=checks.check_many_classes,
    ),
    resolve_parts=direct.resolve_choice,
    implied_settings=JUDGED_BY_Z,
)

SYSTEMS: Final = (SYSTEM, _MRMA_CLASSES, _VOTES_SYSTEM, _DRIFT, _AUTO)
