"""System of private numbers: a study of regressors trained on noised numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from curvote.base.errors import Problem, UserError
from curvote.chain.axis import EPSILON, PipelineSettings
from curvote.chain.measure import Look, Method, Metric
from curvote.chain.settings import Epsilons, Strict
from curvote.chain.stage import TEXT, Stage, Table
from curvote.chain.system import MessageDescription, System
from curvote.data import lookup
from curvote.messages.measures import CLEAN, LEARNER
from curvote.systems.common import checks as shared
from curvote.systems.common import declarations
from curvote.systems.common.settings import Clients, Learner
from curvote.systems.labels import system as labels
from curvote.systems.labels.labels_regression.messages import MESSAGES
from curvote.systems.labels.settings import Public, check_public
from curvote.systems.labels.system import HONEST

_Share = Annotated[float, Field(gt=0, lt=1)]


class Regression(Strict):
    """Noise of a number, and the shares of clients who send it for each purpose.

    Each client sends one number. Those in ``holdout`` send theirs for the score, by
    `piecewise`; where `rr_on_bins` is taken, the part ``share`` of the others sends it
    for the histogram that the bins are made for, and the rest for the model.
    """

    randomizer: Literal["auto", "piecewise", "hybrid", "rr_on_bins"] = "auto"
    share: _Share = 0.2
    holdout: _Share = 0.2


class RegressionSettings(Strict):
    """Settings that learning private numbers reads."""

    clients: Clients
    epsilon: Epsilons
    public: Public = Public()
    labels_regression: Regression = Regression()
    learners: list[Learner] = [Learner(name="ridge", label="ridge")]


def check_settings(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Yield the problems of roles, the source, public features and learners."""
    yield from shared.check_roles(pipeline)
    yield from shared.check_test_clients(pipeline)
    yield from check_public(pipeline)
    _, parameters = lookup.resolve_source(pipeline.source)
    if getattr(parameters, "target", None) is None:
        message = "labels_regression learns a number; name a target."
        yield Problem(message, ("source",))
    from curvote.systems.labels.regression import regressor  # scikit-learn: a second

    for index, learner in enumerate(pipeline.learners):
        where = ("learners", index)
        try:
            regressor.make_regressor(learner.name, 1, 0)
        except UserError as error:
            yield Problem(str(error), where)
        if learner.params:
            message = (
                f"{learner.name} is tuned by the noised numbers; it takes no parameters"
                " here."
            )
            yield Problem(message, where)


RMSE: Final = Metric(
    "rmse",
    "root mean squared error",
    display="number",
    sentence="is off by {value} (root mean square) on new {record}s",
    words="Root of the mean squared error on new {record}s, in the number's unit",
)
MSE: Final = Metric(
    "mse",
    "mean squared error",
    display="number",
    beside=RMSE.name,
    spread=True,
    words="Mean squared error on new {record}s, in the number's unit squared",
)
HONEST_MSE: Final = Metric(
    "honest_mse",
    "mean squared error by noised numbers alone",
    display="number",
    beside=RMSE.name,
    spread=True,
    words="What the server says itself, from numbers that nothing was learnt from; one"
    " beyond the public bounds counts as lying on them",
)
HONEST_MSE_ERROR: Final = Metric(
    "honest_mse_error",
    "its standard error",
    display="number",
    beside=RMSE.name,
    words="The standard error that the server states with it",
)
METRICS: Final = (RMSE, MSE, HONEST_MSE, HONEST_MSE_ERROR)

REGRESSION: Final = Method(
    "regression",
    "private numbers",
    "A learner trained on public features and one noised number of each client.",
    Look("#0072b2", "o", width=2.4, size=6, above=6),
    rank=610,
)
MEAN: Final = Method(
    "mean_number",
    "mean predictor",
    "The mean of the noised numbers, whatever the features.",
    Look("#8a8f98", "s", (0, (3, 2))),
    rank=620,
)
METHODS: Final = (REGRESSION, MEAN, CLEAN)


_NUMBER = {"record": TEXT, "value": "float64"}
# What the clients of the histogram sent, of those to learn from, and of the score.
HISTOGRAM_NUMBERS: Final = Table("shape_numbers", {"value": "float64"})
NUMBERS: Final = Table("numbers", _NUMBER)
HOLDOUT_NUMBERS: Final = Table("held_numbers", _NUMBER)
# What the server says of records whose numbers it has not heard of.
FORECAST: Final = Table(
    "forecast",
    {"record": TEXT, "value": "float64", "mean": "float64"},
    unit="number",
)


_NOISED = ("epsilon", "labels_regression.randomizer")

PRIVATIZE = Stage(
    "privatize",
    "curvote.systems.labels.labels_regression.stages:privatize",
    inputs=("ingest",),
    axes=("epsilon",),
    params=(
        *(*_NOISED, "labels_regression.share", "labels_regression.holdout"),
        *declarations.ROLE_PARAMS,
    ),
    tables=(HISTOGRAM_NUMBERS, NUMBERS, HOLDOUT_NUMBERS),
    side="client -> server",
)
TRAIN = Stage(
    "train",
    "curvote.systems.labels.labels_regression.stages:train",
    inputs=("features", "privatize"),
    axes=("epsilon", "learner"),
    params=("learner", *_NOISED, "seed", "replicates"),
    tables=(FORECAST, HONEST),
    side="server",
    libraries=("scikit-learn", "scipy"),
)
SCORE = declarations.score_stage(
    "curvote.systems.labels.labels_regression.stages:score",
    ("ingest", "features", "train"),
    ("epsilon", "learner"),
    ("learner", *declarations.ROLE_PARAMS),
    libraries=("scikit-learn", "scipy"),
)


def describe_numbers(config: Mapping[str, Any], d: int) -> list[MessageDescription]:
    """Return descriptions of what leaves a client; so far only a study draws it."""
    randomizer = str(config["labels_regression"]["randomizer"])
    who, what = "every client who trains", "one noised number"
    detail = "once: for a histogram, for the model or for its score"
    return [MessageDescription(who, what, randomizer, detail)]


SYSTEM = System(
    name="labels_regression",
    settings=RegressionSettings,
    stages=(declarations.INGEST, labels.FEATURES_OF, PRIVATIZE, TRAIN, SCORE),
    axes=(EPSILON, LEARNER),
    messages=MESSAGES,
    study_messages=(describe_numbers,),
    metrics=METRICS,
    methods=METHODS,
    main=(REGRESSION.name,),
    checks=check_settings,
    shorthand=("randomizer", "share", "holdout"),
    sections=(
        declarations.DATA_SET,
        "curvote.systems.labels.page.sections:gather_features",
    ),
)
