"""Stages of MRMA and of the systems that share its votes."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from curvote.base import validate
from curvote.base.classes import class_indices, class_signs
from curvote.base.errors import UserError
from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.curves.encoding import decision_sign, predict_indices
from curvote.learning.directions import ReportMean, one_round_classifier
from curvote.learning.votes import (
    averaging_weights,
    draw_subsets,
    estimate_utility,
    reversal_mask,
    reversed_utility,
)
from curvote.mechanisms.exact import GRID_STEP
from curvote.mechanisms.laplace import Laplace, draw_noise_sums
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.arms import decoding_metadata, directions_of, make_directions
from curvote.messages.roles import EVERYBODY
from curvote.systems.common import models, questions, study
from curvote.systems.common.tables import REPORT_VARIANTS, Array, lines_of_variant
from curvote.systems.mrma.messages import (
    ClassReport,
    ClassVote,
    DirectionVote,
    Report,
    Vote,
)
from curvote.systems.mrma.privunit.messages import TrainingDirection
from curvote.systems.references.stages import majority_error

IntArray = NDArray[np.int64]

MAX_CELLS = 1 << 20


@dataclass(frozen=True)
class Histogram:
    """[-1, 1]^d in cells, ``bins`` (1/h) equal intervals an axis; each cell elects.

    A client with (z, y), y the place of one of two classes, releases for every cell
    +1 or -1, as y says, where z is in the cell, else 0, plus noise (Berrett & Butucea
    2019); a point is classified by the sign of its cell's sum over all clients, 0 as
    the first class. Of more classes it releases 1{z in cell, y = k} plus noise for
    every cell and class, and the class of the largest sum wins, the first of ties.

    The noise is that of the ``laplace`` mechanism with the whole ``epsilon``, scale
    2/epsilon, in every one of the coordinates, and the vector is epsilon-LDP all the
    same: cells are disjoint, so a record fills one coordinate, with +1 or -1. Any two
    records therefore differ by 1 in two coordinates, by 2 in one, or not at all: by 2
    at most in L1, for any number of classes. A coordinate's noise has P(k)
    proportional to exp(-|k| r), r at most epsilon/2 for each unit; the draws are
    independent, so the log-ratio of any output is at most r times the L1 distance:
    epsilon.

    ``published`` multiplies the scale by 2^(d+1): MRMA's section 7 states 2^(d+1)/
    epsilon for what changes by 1, and its tables show twice that. This needs less.
    More than 2^20 numbers are a UserError, as is an epsilon that `Laplace` refuses.
    """

    d: int
    bins: int
    epsilon: float
    published: bool = False
    n_classes: int = 2
    mechanism: Laplace = field(init=False)

    def __post_init__(self) -> None:
        d, bins = validate.at_least(1, d=self.d), validate.at_least(1, bins=self.bins)
        number_count = len(self._class_codes)
        if number_count * bins**d > MAX_CELLS:
            size = math.log10(number_count) + d * math.log10(bins)
            words = f"{number_count} x " * (number_count > 1) + f"{bins}^{d}"
            raise UserError(
                f"With {bins} bins on each of {d} axes each client would send"
                f" {words} numbers, about 10^{size:.1f}; the most is"
                f" {MAX_CELLS}. Take fewer bins or a smaller basis."
            )
        excess = 2.0 ** (d + 1) if self.published else 1.0
        object.__setattr__(self, "mechanism", Laplace(epsilon=self.epsilon / excess))

    def cells(self, z: ArrayLike) -> NDArray[np.int64]:
        """Return the number of each point's cell, [n], for ``z`` [n, d].

        An inner edge belongs to the interval above it, and what lies outside [-1, 1],
        or on its ends, to the nearest one. Other shapes are a UserError.
        """
        points = validate.finite(z=z)
        if points.ndim != 2 or points.shape[1] != self.d:
            raise UserError(f"z has shape {points.shape}; it must be [n, {self.d}].")
        place = np.floor((np.clip(points, -1, 1) + 1) * (self.bins / 2))
        axes = np.minimum(place, self.bins - 1).astype(np.int64)
        return np.asarray(axes @ self.bins ** np.arange(self.d))

    def classify(
        self,
        z: ArrayLike,
        labels: IntArray,
        points: ArrayLike,
        generator: np.random.Generator,
    ) -> IntArray:
        """Return places [m] for ``points`` [m, d], from ``z`` [n, d], ``labels`` [n].

        Labels are places of classes; others are a UserError. A study's shortcut with
        the releases' exact law: noise is drawn as sums, and for the cells that some
        point meets; the others cannot matter.
        """
        cell_numbers = self.cells(z)
        filled = self._class_codes[:, class_indices(labels, self.n_classes)]
        met_cells, point_cell = np.unique(self.cells(points), return_inverse=True)
        size = self.bins**self.d
        total = [
            np.bincount(cell_numbers, weights=w, minlength=size)[met_cells]
            for w in filled
        ]
        law, n = self.mechanism.noise, len(cell_numbers)
        noise = [draw_noise_sums(n, law, len(met_cells), generator) for _ in filled]
        sums = np.array(total) + np.array(noise) * GRID_STEP
        winners = sums[0] > 0 if len(sums) == 1 else sums.argmax(axis=0)
        return np.asarray(winners[point_cell], dtype=np.int64)

    @property
    def _class_codes(self) -> Array:
        """Numbers that each class puts into a record's cell, a row a number."""
        if self.n_classes == 2:
            return np.array([[-1.0, 1.0]])
        return np.eye(self.n_classes)


def report_stage(
    kind: Report,
) -> tuple[study.MetadataFunction, Callable[[StageContext], Rows]]:
    """Return the metadata and table functions of the stage for ``kind``.

    Rows say whose they are: of who trains (``mrma``), or of who votes (``pooled``).
    """
    task_metadata, _ = study.draw_stage(kind)

    def draw_reports(context: StageContext) -> Rows:
        clients, task = study.study_clients(context), study.study_task(context, kind)
        rows = EVERYBODY.rows(clients.roles)  # who trains, then who votes
        messages = study.draw_messages(context, kind, task, clients.data_of(rows))
        order = context.generator("shuffle").permutation(len(rows))
        shuffled = {name: values[order] for name, values in messages.items()}
        reports = kind.collect(task, shuffled)
        is_pooled = order >= len(clients.roles["train"])
        names = [REPORT_VARIANTS.index(name) for name in ("pooled", "mrma")]
        arm = np.where(is_pooled, *names).astype(np.int8)
        return {kind.table: reports | {"arm": arm}}

    return task_metadata, draw_reports


privatize_metadata, privatize = report_stage(Report())
privatize_classes_metadata, privatize_classes = report_stage(ClassReport())
evaluate_metadata, evaluate = study.draw_stage(Vote())
evaluate_classes_metadata, evaluate_classes = study.draw_stage(ClassVote())

train_classes_metadata = models.train_metadata


def train_classes_batch(many: Sequence[StageContext]) -> Iterator[Rows]:
    """Yield the table ``weak`` of each repetition; (coef, intercept) have length 1."""
    for weak in models.learn_repetitions(many, "class_reports", ("arm", "question")):
        line = np.column_stack([weak["coef"], weak["intercept"]])
        length = np.linalg.norm(line, axis=1)
        line /= np.where(length > 0, length, 1)[:, None]
        yield {"weak": weak | {"coef": line[:, :-1], "intercept": line[:, -1]}}


# The rule that turns utilities into weights.
RULE_SETTINGS: Final = {
    name: f"aggregate.{name}" for name in ("cutoff", "when_none_pass", "weights")
}
aggregate_metadata = study.stated_metadata(**RULE_SETTINGS)


def aggregate(context: StageContext) -> Rows:
    """Return the table ``ensemble``: one row for each weak classifier.

    Weights sum to 1 among those that answer one question: where the stage reads the
    classes there may be several.
    """
    epsilon = context.inputs["evaluate"].metadata["epsilon"]
    votes, n_questions = context.rows("evaluate", "votes"), 1
    if "project" in context.inputs:
        n_classes = len(context.inputs["project"].metadata["classes"])
        n_questions = len(questions.one_against_rest_code(n_classes))
    ensembles = [
        ensemble_columns(columns, epsilon, context.metadata)
        for columns in questions.split_questions(votes, n_questions)
    ]
    return {
        "ensemble": {
            name: questions.interleave_questions([part[name] for part in ensembles])
            for name in ensembles[0]
        }
    }


def ensemble_columns(votes: Columns, epsilon: float, rule: Metadata) -> Columns:
    """Return the table ``ensemble`` of vote counts (B,) by classifier.

    ``votes`` are the counts of each classifier (B,), ``epsilon`` is a vote's.
    """
    keep = BinaryRR(epsilon=epsilon).keep
    has_votes = votes["n"] > 0
    positive, n = votes["positive"][has_votes], votes["n"][has_votes]
    utility = estimate_utility(positive, n, keep)
    flipped = reversal_mask(positive, n)
    rule_values = [rule[name] for name in RULE_SETTINGS]
    best_side = reversed_utility(utility.value, flipped)
    mrma, none_mrma = averaging_weights(best_side, *rule_values)
    ma, none_ma = averaging_weights(utility.value, *rule_values)
    judged_columns = {
        "learner": votes["learner"][has_votes],
        "utility": utility.value,
        "standard_error": utility.standard_error,
        "reversed": flipped,
        "weight": mrma,
        "none_passed": np.full(len(mrma), none_mrma),
        "weight_ma": ma,
        "none_passed_ma": np.full(len(ma), none_ma),
    }
    # What a classifier without votes has; a flag is the same for all of an ensemble.
    defaults = {
        "learner": votes["learner"],
        "utility": 0.5,
        "standard_error": 0.5 / (2 * keep - 1),
        "none_passed": judged_columns["none_passed"][0],
        "none_passed_ma": judged_columns["none_passed_ma"][0],
    }
    columns = {}
    for name, values in judged_columns.items():
        columns[name] = np.full(len(has_votes), defaults.get(name, 0), values.dtype)
        columns[name][has_votes] = values
    return columns


# Utilities of equal vote counts differ by rounding errors, others by far more.
TIE_TOLERANCE = 1e-9
# Features (n, d) of the tested clients, and the places (n,) of their classes.
TestData = tuple[Array, IntArray]


score_metadata = study.stated_metadata(definitions="report.definitions")


def score(context: StageContext) -> Rows:
    """Return the table ``scores``: a row a method; of K > 2 classes also recalls."""
    judge = context.params["project.judge"]
    test = study.study_clients(context).features_and_places(judge, "test")
    classes = context.inputs["project"].metadata["classes"]
    code = questions.one_against_rest_code(len(classes))
    weak = context.rows("train", "weak")
    ensemble = context.rows("aggregate", "ensemble")
    single = mean_errors(code, test, weak, ensemble)
    averaged = ensemble_errors(code, test, weak, ensemble)
    # In the order that rows of either have always had.
    errors = single | averaged if len(code) == 1 else averaged | single
    errors |= pooled_errors(code, test, weak)
    if context.params["report.definitions"] == "published":
        cutoff = context.inputs["aggregate"].metadata["cutoff"]
        errors |= published_errors(test, weak, ensemble, cutoff)
    rows = study.score_rows(errors, none_passed_flags(ensemble))
    lines = lines_of_variant(weak, "weak")
    weights = models.signed_weights(ensemble)
    decisions = models.combined_decisions(code, test[0], lines, weights)
    places, ranking = predict_indices(decisions), models.ranking_of(decisions)
    return study.add_class_scores(
        rows, "mrma", test[1], places, classes, decision=ranking
    )


score_classes = score


def none_passed_flags(ensemble: Columns) -> dict[str, bool]:
    """Return whether no classifier passed the cutoff, with and without reversal."""
    names = {"mrma": "none_passed", "ma": "none_passed_ma"}
    return {method: bool(ensemble[name].all()) for method, name in names.items()}


def mean_errors(
    code: Array, test: TestData, weak: Columns, ensemble: Columns
) -> dict[str, float]:
    """Return the mean errors ``weak`` and ``mr``: before and after reversal.

    A rule has one classifier for each question of the ``code``.
    """
    coef, intercept = lines_of_variant(weak, "weak")
    signs = np.where(ensemble["reversed"], -1.0, 1.0)
    rules = np.split(np.arange(len(signs)), len(signs) // len(code))
    weights_by_method = {"weak": np.ones(len(signs)), "mr": signs}
    return {
        name: float(
            np.mean(
                [
                    models.combined_error(code, test, (coef[r], intercept[r]), w[r])
                    for r in rules
                ]
            )
        )
        for name, w in weights_by_method.items()
    }


def ensemble_errors(
    code: Array, test: TestData, weak: Columns, ensemble: Columns
) -> dict[str, float]:
    """Return the error of each method that averages the weak classifiers."""
    weights_by_method = {
        "ma": ensemble["weight_ma"],
        "mrma": models.signed_weights(ensemble),
        "best_single": best_weights(ensemble, len(code)),
    }
    lines = lines_of_variant(weak, "weak")
    return {
        name: models.combined_error(code, test, lines, weights)
        for name, weights in weights_by_method.items()
    }


def pooled_errors(code: Array, test: TestData, weak: Columns) -> dict[str, float]:
    """Return the error of each method that learns from all reports."""
    lines, every = lines_of_variant(weak, "pooled"), lines_of_variant(weak, "all_data")
    votes = decision_sign(test[0] @ lines[0].T + lines[1])
    by_question = votes.reshape(len(votes), -1, len(code)).sum(axis=1)
    elected = (by_question @ code).argmax(axis=1)
    equal = [np.ones(len(coef)) for coef, _ in (lines, every)]
    return {
        "voting": float(np.mean(elected != test[1])),
        "averaging": models.combined_error(code, test, lines, equal[0]),
        "all_data": models.combined_error(code, test, every, equal[1]),
    }


def published_errors(
    test: TestData, weak: Columns, ensemble: Columns, cutoff: float
) -> dict[str, float]:
    """Return the errors of the methods that MRMA's tables define in another way."""
    clients = study.TestClients(test[0], class_signs(test[1]))
    decisions = clients.decisions(*lines_of_variant(weak, "weak"))
    signed_decisions = np.where(ensemble["reversed"], -decisions, decisions)
    utility = reversed_utility(ensemble["utility"], ensemble["reversed"])
    votes = decision_sign(clients.decisions(*lines_of_variant(weak, "pooled")))
    return {
        "weak": published_weak_error(ensemble["utility"]),
        "mr": published_mr_error(clients.error(signed_decisions), utility, cutoff),
        "voting": published_voting_error(votes, clients.labels),
    }


def published_weak_error(utility: Array) -> float:
    """Return 1 minus the mean of the clipped estimated utilities [B]."""
    return float(1 - np.clip(utility, 0, 1).mean())


def published_mr_error(error: Array, utility: Array, cutoff: float) -> float:
    """Return the mean error [B] of reversed classifiers that pass ``cutoff``.

    ``utility`` [B] is estimated, after reversal. Where none passes, the mean of all.
    """
    passed = utility > cutoff
    return float(error[passed].mean() if passed.any() else error.mean())


def published_voting_error(signs: Array, labels: Array) -> float:
    """Return the error of the majority of ``signs`` [n, B]; a tie is an error."""
    return float(np.mean(np.sign(signs.sum(axis=1)) != labels))


def best_single_weights(ensemble: Columns) -> Array:
    """Return weight 1 for the first classifier of highest utility."""
    utility = reversed_utility(ensemble["utility"], ensemble["reversed"])
    weights = np.zeros(len(utility))
    weights[np.argmax(utility > utility.max() - TIE_TOLERANCE)] = 1
    return weights


def best_weights(ensemble: Columns, n_questions: int) -> Array:
    """Return the signed weights of the best classifier for each question."""
    by_question = questions.split_questions(ensemble, n_questions)
    best = questions.interleave_questions([*map(best_single_weights, by_question)])
    return np.asarray(np.where(ensemble["reversed"], -1.0, 1.0) * best)


def baseline_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return why there is no histogram, or null."""
    reason = None
    try:
        _make_histogram(inputs, params)
    except UserError as error:
        reason = f"Left out. {error}"
    return {"histogram": reason}


def baseline(context: StageContext) -> Rows:
    """Return the table ``scores``: a row for each baseline that there is."""
    clients = study.study_clients(context)
    errors = {"majority": majority_error(context, clients)}
    if not context.metadata["histogram"]:
        histogram = _make_histogram(context.inputs, context.params)
        rows, test = EVERYBODY.rows(clients.roles), clients.roles["test"]
        records, points = (clients.z[rows], clients.labels[rows]), clients.z[test]
        draws = context.generator("histogram")
        predictions = histogram.classify(*records, points, draws)
        errors["histogram"] = float(np.mean(clients.labels[test] != predictions))
    return study.score_rows(errors)


def _make_histogram(inputs: Inputs, params: Params) -> Histogram:
    return Histogram(
        inputs["project"].metadata["d"],
        params["histogram.bins"],
        params["epsilon"],
        bool(params["published.histogram"]),
        len(inputs["project"].metadata["classes"]),
    )


privatize_directions_metadata, privatize_directions_portions = (
    study.draw_stage_in_portions(TrainingDirection())
)


def average_directions_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the mechanism and budget that decoding needs."""
    return decoding_metadata(inputs["privatize"].metadata)


def average_directions(context: StageContext) -> Rows:
    """Return the table ``weak``: drawn as `mrma` draws (MRMA, algorithm 1)."""
    public, params = context.metadata, context.params
    reports = context.rows("privatize", "directions")["direction"]
    count, size = params["train.count"], params["train.size"]
    rows = draw_subsets(context.generator("draw"), len(reports), count, size)
    vectors, epsilon = directions_of(public), public["epsilon"]
    lines = [
        one_round_classifier(ReportMean.from_reports(sample), vectors, epsilon)
        for sample in reports[rows]
    ]
    coef, intercept = zip(*lines, strict=True)
    return {"weak": models.weak_columns(np.array(coef), np.array(intercept), size)}


def score_privunit(context: StageContext) -> Rows:
    """Return the table ``scores``: one row for each method."""
    clients = study.study_clients(context)
    test = clients.features_and_places(context.params["project.judge"], "test")
    code = questions.one_against_rest_code(2)
    tables = context.rows("train", "weak"), context.rows("aggregate", "ensemble")
    errors = mean_errors(code, test, *tables) | ensemble_errors(code, test, *tables)
    errors["majority"] = majority_error(context, clients)
    return study.score_rows(errors, none_passed_flags(tables[1]))


def draw_directions_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the length of z and the public constant beside it."""
    public = inputs["project"].metadata
    d, rescale = public["d"], public["encoding"]["rescale"]
    beside = make_directions("mean", d, rescale, params["direct.intercept"]).intercept
    return {
        "d": d,
        "intercept": float(beside),
        "splits": len(questions.halving_code(len(public["classes"]))),
    }


def draw_directions(context: StageContext) -> Rows:
    """Return the table ``weak``: a row a direction."""
    count = context.params["votes.directions"] * context.metadata["splits"]
    size = context.metadata["d"], context.metadata["intercept"]
    return {"weak": random_directions(context.generator("draw"), count, *size)}


def random_directions(
    generator: np.random.Generator, count: int, d: int, intercept: float
) -> Columns:
    """Return ``count`` rows of table ``weak``.

    They are classifiers of z whose (intercept/s, coef) is uniform on the sphere.
    """
    w = generator.standard_normal((count, d + 1))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    return models.weak_columns(w[:, 1:], intercept * w[:, 0], 0)


evaluate_directions_metadata, evaluate_directions = study.draw_stage(DirectionVote())


# No direction is good by itself: a higher cutoff would throw away what its sum needs.
DIRECTION_RULE: Final = {"cutoff": 0.5, "when_none_pass": "soft", "weights": "excess"}


def aggregate_votes_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the rule that turns utilities into weights."""
    return dict(DIRECTION_RULE)


aggregate_votes = aggregate


def score_votes(context: StageContext) -> Rows:
    """Return the table ``scores``: ``votes``, the best direction, and the majority."""
    clients = study.study_clients(context)
    ensemble = context.rows("aggregate", "ensemble")
    features, truth = clients.features_and_places("rescaled", "test")
    classes = context.inputs["project"].metadata["classes"]
    code = questions.halving_code(len(classes))
    lines = lines_of_variant(context.rows("train", "weak"), "weak")
    weights_by_method = {
        "votes": models.signed_weights(ensemble),
        "best_single": best_weights(ensemble, len(code)),
    }
    decisions = {
        method: models.combined_decisions(code, features, lines, weights)
        for method, weights in weights_by_method.items()
    }
    predictions = {m: predict_indices(values) for m, values in decisions.items()}
    errors = {m: float(np.mean(places != truth)) for m, places in predictions.items()}
    errors["majority"] = majority_error(context, clients)
    rows = study.score_rows(errors, {"votes": ensemble["none_passed"][0]})
    places, ranking = predictions["votes"], models.ranking_of(decisions["votes"])
    return study.add_class_scores(
        rows, "votes", truth, places, classes, decision=ranking
    )


WIDTH = 0.1


def score_drift(context: StageContext) -> Rows:
    """Return the table ``scores``: ``agreement`` and ``total_variation``.

    ``agreement`` is g(z0) of MRMA, proposition 2, at z0 = ``drift.at``, from the
    reports whose first number lies within 0.1 of z0, or beyond the end of [-1, 1] at
    or beyond which z0 lies (the Laplace law says the same there). The total variation
    is that of record and report: since the noised density lies nowhere in the cube
    above the records', it is the chance that a report lies outside the cube.
    """
    reports = context.rows("privatize", "reports")
    slope = context.inputs["ingest"].metadata["slope"]
    scores = {"total_variation": outside_share(reports)}
    scores |= label_agreement(reports, slope, context.params["drift.at"])
    return {
        "scores": {
            "method": np.full(len(scores), "report", dtype=object),
            "metric": np.array(list(scores), dtype=object),
            "value": np.array(list(scores.values())),
        }
    }


def outside_share(reports: Columns) -> float:
    """Return the share of reports that lie outside the cube, where records are."""
    inside = (np.abs(reports["z"]) <= 1).all(axis=1)
    return 1 - float(inside.mean())


def label_agreement(reports: Columns, slope: float, at: float) -> dict[str, float]:
    """Return the chance that clean and noised label agree at z0, if any is near."""
    first = reports["z"][:, 0]
    is_near = np.abs(first - at) <= WIDTH if abs(at) < 1 else first * np.sign(at) >= 1
    if not is_near.any():
        return {}
    noised = float((reports["label"][is_near] > 0).mean())
    clean = float(expit(slope * at))
    return {"agreement": 1 - (clean * (1 - noised) + (1 - clean) * noised)}
