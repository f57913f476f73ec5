"""Linear classifiers: their training, columns, models to keep, and models as bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy import array
from numpy.typing import NDArray

from curvote.base.classes import Classes
from curvote.chain.axis import PipelineSettings
from curvote.chain.stage import Columns, Metadata, Place, Rows, StageContext
from curvote.chain.system import View
from curvote.curves.columns import grid_names
from curvote.curves.encoding import Encoding, Linear, predict_indices
from curvote.learning.votes import (
    average_classifiers,
    disjoint_parts,
    draw_subsets,
    fit_problems,
    judged_accuracy,
    reversed_utility,
)
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.systems.common import tables
from curvote.systems.common.questions import one_against_rest_code
from curvote.systems.common.study import stated_metadata

if TYPE_CHECKING:
    from curvote.curves.curve_classifier import CurveClassifier

LinearModel = tuple[tables.Array, Any]
Lines = tuple[tables.Array, tables.Array]
FIRST_REPETITION: Place = (0,)


def classifier_columns(line: LinearModel, n: int) -> Columns:
    """Return table ``classifier`` of ``n`` reports: one row, or one for each class.

    ``line`` is coef (d,) and intercept of two classes, or (K, d) and (K,) of more.
    """
    coef, intercept = np.atleast_2d(line[0]), np.atleast_1d(line[1])
    return {"coef": coef, "intercept": intercept, "n": np.full(len(coef), n)}


def classifier_line(rows: Columns) -> LinearModel:
    """Return (coef, intercept) of the table ``classifier``."""
    coef, intercept = rows["coef"], rows["intercept"]
    if len(coef) == 1:
        return coef[0], float(intercept[0])
    return coef, intercept


def predict_places(features: tables.Array, rows: Columns) -> NDArray[np.int64]:
    """Return the places (n,) of classes that a table ``classifier`` predicts."""
    return predict_indices(decision_values(features, rows))


def decision_values(features: tables.Array, rows: Columns) -> tables.Array:
    """Return the values (n, R) of a table ``classifier``: R is 1 of two classes."""
    return np.asarray(features @ rows["coef"].T + rows["intercept"])


def ranking_of(decisions: tables.Array) -> tables.Array | None:
    """Return the values (n,) that rank people between two classes, None for more."""
    return decisions[:, 0] if decisions.shape[1] == 1 else None


def average_ensemble(lines: Lines, ensemble: Columns) -> LinearModel:
    """Return the weighted average of coef (B, d) and intercept (B,).

    ``ensemble`` holds the columns ``reversed`` and ``weight`` (B,).
    """
    return average_classifiers(*lines, signed_weights(ensemble))


def weak_columns(coef: tables.Array, intercept: tables.Array, n: int) -> Columns:
    """Return the rows of table ``weak``: coef (B, d), intercept (B,), ``n`` reports."""
    count = len(coef)
    return {
        "arm": np.full(count, tables.WEAK_VARIANTS.index("weak"), dtype=np.int8),
        "learner": np.arange(count),
        "coef": coef,
        "intercept": intercept,
        "n": np.full(count, n),
        "flagged": np.zeros(count, dtype=bool),
    }


def signed_weights(ensemble: Columns) -> tables.Array:
    """Return the weights (B,) of table ``ensemble``, below 0 where it reverses."""
    signs = np.where(ensemble["reversed"], -1.0, 1.0)
    return np.asarray(signs * ensemble["weight"])


def combined_error(
    code: tables.Array,
    tested: tuple[tables.Array, NDArray[Any]],
    lines: Lines,
    weights: tables.Array,
) -> float:
    """Return the share of ``tested`` clients that a combination gets wrong."""
    predictions = predict_indices(combined_decisions(code, tested[0], lines, weights))
    return float(np.mean(predictions != tested[1]))


def combined_decisions(
    code: tables.Array, features: tables.Array, lines: Lines, weights: tables.Array
) -> tables.Array:
    """Return the values (n, R) of a combination for ``features``."""
    coef, intercept = combine_lines(code, lines, weights)
    return np.asarray(features @ coef.T + intercept)


def combine_lines(code: tables.Array, lines: Lines, weights: tables.Array) -> Lines:
    """Return the lines (R, d), (R,) of weighted answers to the questions.

    ``lines`` are coef (B, d) and intercept (B,) of classifiers that answer the
    questions in turn, ``weights`` (B,) negative where one is reversed. One line of two
    classes, their weighted sum (MRMA, equation 11); else a score for each class, the
    sum of what speaks for it less what speaks against it.
    """
    if code.shape[1] == 2:
        coef, intercept = average_classifiers(*lines, weights)
        return coef[None], np.array([intercept])
    class_weights = weights[:, None] * code[np.arange(len(weights)) % len(code)]
    return class_weights.T @ lines[0], class_weights.T @ lines[1]


def read_encoding(view: View, place: Place = FIRST_REPETITION) -> Encoding:
    """Return a cell's encoding with volunteers' constants and feature map."""
    encoding = Encoding.from_json(view.metadata("project")["encoding"])
    encoding = encoding.completed(lambda table: view.columns("project", table, place))
    return replace(encoding, feature_map=view.setting("project.judge"))


def linear_model(
    view: View, line: LinearModel, place: Place = FIRST_REPETITION
) -> CurveClassifier:
    """Return a linear classifier of z as a model of raw curves."""
    # scikit-learn takes a second
    from curvote.curves.curve_classifier import CurveClassifier

    encoding = read_encoding(view, place)
    classifier = Linear(*line, encoding.feature_map)
    classes = Classes(view.metadata("project")["classes"])
    return CurveClassifier.of(encoding, record_columns(view), classifier, classes)


def record_columns(view: View, stage: str = "project") -> list[str]:
    """Return the column names of raw records: features, or grid points.

    ``stage`` is one that tells what the source told it.
    """
    facts = view.metadata(stage)
    features = [feature["name"] for feature in facts.get("features") or ()]
    return features or grid_names(facts["grid"], facts.get("channels", ()))


def decoded_model(view: View) -> CurveClassifier:
    """Return the one classifier that the server decoded, as a model."""
    return linear_model(view, classifier_line(view.columns("aggregate", "classifier")))


def ensemble_model(
    view: View, code: Callable[[int], tables.Array] = one_against_rest_code
) -> CurveClassifier:
    """Return the weighted ensemble of weak classifiers as a model.

    ``code`` returns the questions about K classes that they answer (`questions`).
    """
    weak = tables.lines_of_variant(view.columns("train", "weak"), "weak")
    weights = signed_weights(view.columns("aggregate", "ensemble"))
    n_classes = len(view.metadata("project")["classes"])
    coef, intercept = combine_lines(code(n_classes), weak, weights)
    return linear_model(view, classifier_line({"coef": coef, "intercept": intercept}))


def history_model(view: View) -> CurveClassifier:
    """Return the ensemble of the cell's arrival as a model."""
    rows = view.columns("update", "history")
    return linear_model(view, (rows["coef"][-1], float(rows["intercept"][-1])))


def count_reports(view: View) -> dict[str, float]:
    """Return the number of reports that made the classifier."""
    return {"reports": int(view.columns("aggregate", "classifier")["n"][0])}


def vote_outcome(view: View) -> dict[str, float]:
    """Return counts, and the estimated utility of the best classifier.

    Choosing it makes it look better than it is, so ``utility_se`` is a lower bound on
    its error.
    """
    votes = view.columns("evaluate", "votes")
    ensemble = view.columns("aggregate", "ensemble")
    utility = reversed_utility(ensemble["utility"], ensemble["reversed"])
    best = int(np.argmax(utility))
    keep = BinaryRR(epsilon=view.cell["epsilon"]).keep
    n = int(votes["n"][best])
    share = (votes["positive"][best] + 2) / (n + 4)  # never 0: Agresti & Coull (1998)
    return {
        "reports": view.count("privatize") if view.holds("privatize") else 0,
        "votes": int(votes["n"].sum()),
        "classifiers": len(utility),
        "passed": int((utility > view.metadata("aggregate")["cutoff"]).sum()),
        "utility": float(utility[best]),
        "utility_se": float(np.sqrt(share * (1 - share) / n) / (2 * keep - 1)),
    }


def judge_outcome(
    production_metrics: Callable[[View], Mapping[str, float]], view: View
) -> dict[str, float]:
    """Return the accuracy of a release, if it has judges, then its other metrics.

    That is the share of clients for whom the classifier is right, within [0, 1], its
    standard error, and the ends of its exact 95 % interval.
    """
    metrics = dict(production_metrics(view))
    if not view.holds("judge"):
        return metrics
    counts = view.columns("judge", "judgements")
    n, keep = int(counts["n"][0]), BinaryRR(epsilon=view.cell["epsilon"]).keep
    accuracy = judged_accuracy(int(counts["positive"][0]), n, keep)
    names = ("accuracy", "accuracy_se", "accuracy_low", "accuracy_high")
    return {**dict(zip(names, accuracy, strict=True)), "judges": n, **metrics}


def votes_declined(settings: PipelineSettings, metadata: Metadata) -> bool:
    """Say whether the newest votes found the classifiers worse.

    A false alert is ever given with probability at most ``online.error``.
    """
    evidence = metadata.get("decline")
    return evidence is not None and bool(evidence >= 1 / settings.online.error)


_SCHEMA: Final = "schema.json"
_ID, _FILE = "__id__", "file"


def pack_model(model: Any) -> NDArray[Any]:
    """Return a column of one file, the model: the same model has the same bytes.

    Plain arrays and known classes, nothing that is run on reading. Names in the file
    are numbers in order of appearance, and no time stands in it.
    """
    import skops.io

    # Addresses in memory and times are taken out of it.
    with ZipFile(BytesIO(skops.io.dumps(model))) as archive:
        numbers: dict[Any, int] = {}
        schema = _renumber(json.loads(archive.read(_SCHEMA)), numbers)
        files = {
            _renumber_name(name, numbers): archive.read(name)
            for name in archive.namelist()
        }
    files[_SCHEMA] = json.dumps(schema, sort_keys=True).encode()
    buffer = BytesIO()
    with ZipFile(buffer, "w") as out:
        for name in sorted(files):
            out.writestr(ZipInfo(name), files[name])
    return array([buffer.getvalue()], dtype=object)


def unpack_model(data: bytes) -> Any:
    """Return the model `pack_model` wrote; its bytes stand in a store that checks."""
    import skops.io

    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


def _renumber(node: Any, numbers: dict[Any, int]) -> Any:
    """Return a part of the schema with ids and file names as numbers."""
    if isinstance(node, list):
        return [_renumber(item, numbers) for item in node]
    if not isinstance(node, dict):
        return node
    renumbered = {key: _renumber(item, numbers) for key, item in node.items()}
    if _ID in renumbered:
        renumbered[_ID] = numbers.setdefault(renumbered[_ID], len(numbers))
    if isinstance(renumbered.get(_FILE), str):
        numbers.setdefault(renumbered[_FILE], len(numbers))
        renumbered[_FILE] = _renumber_name(renumbered[_FILE], numbers)
    return renumbered


def _renumber_name(name: str, numbers: dict[Any, int]) -> str:
    number = numbers.get(name)
    return name if number is None else f"{number}{name[name.rindex('.') :]}"


Index = NDArray[np.int64]
# The reports (n, d) and labels (n,) that one classifier learns from.
Problem = tuple[NDArray[np.float64], NDArray[np.float64]]


train_metadata = stated_metadata(learner="learner.name", params="learner.params")


def train_batch(many: Sequence[StageContext]) -> Iterator[Rows]:
    """Yield the table ``weak`` of each repetition."""
    for weak in learn_repetitions(many, "reports", ("arm",)):
        yield {"weak": weak}


def learn_repetitions(
    many: Sequence[StageContext], table: str, chosen_by: Sequence[str]
) -> Iterator[Columns]:
    """Yield the table ``weak`` that each repetition learns from a table of reports.

    The columns ``chosen_by`` decide who learns from which.
    """
    problems: list[list[Problem]] = []
    variants: list[NDArray[np.int8]] = []
    for context in many:
        known_columns = context.rows("privatize", table, chosen_by)
        indices, of_variants = choose_rows(context, known_columns)
        # No more rows are read than needed.
        names = ("z", "label")
        if context.inputs["privatize"].count(table, context.place) == 1:
            reports = context.rows("privatize", table, names)
        else:
            rows_needed = np.unique(np.concatenate(indices))
            shards = context.shards("privatize", table, names)
            reports = select_from_shards(shards, rows_needed)
            indices = [np.searchsorted(rows_needed, rows) for rows in indices]
        problems.append([make_problem(reports, rows) for rows in indices])
        variants.append(of_variants)
    public = many[0].inputs["privatize"].metadata
    fits = fit_repetitions(problems, public, many[0].metadata)
    yield from map(weak_table, variants, fits)


def select_from_shards(shards: Iterable[Columns], rows: Index) -> Columns:
    """Return rows with these rising numbers from a table in shards."""
    selected: list[Columns] = []
    start = 0
    for shard in shards:
        end = start + len(next(iter(shard.values())))
        low, high = np.searchsorted(rows, [start, end])
        positions = rows[low:high] - start
        selected.append({name: values[positions] for name, values in shard.items()})
        start = end
    return {n: np.concatenate([part[n] for part in selected]) for n in selected[0]}


def make_problem(reports: Columns, rows: Index) -> Problem:
    """Return the features and labels that one classifier learns from."""
    return reports["z"][rows], reports["label"][rows].astype(float)


def fit_repetitions(
    problems: Sequence[Sequence[Problem]], basis: Metadata, learner: Mapping[str, Any]
) -> list[Columns]:
    """Return the fits of all repetitions, computed as one batch.

    ``basis`` holds the Gram matrix and the roughness of the basis, ``learner`` its
    name (``learner``) and its ``params``. Columns: coef, intercept, flagged, n; none
    where there is no problem at all.
    """
    flat = [item for repetition in problems for item in repetition]
    if not flat:
        return [{} for _ in problems]
    fits = fit_problems(
        learner["learner"],
        flat,
        gram=np.asarray(basis["gram"]),
        roughness=np.asarray(basis["roughness"]),
        **learner["params"],
    )
    columns = {"coef": fits.coef, "intercept": fits.intercept, "flagged": fits.flagged}
    columns["n"] = np.array([len(labels) for _, labels in flat])
    ends = np.cumsum([len(repetition) for repetition in problems])[:-1]
    split = {name: np.split(values, ends) for name, values in columns.items()}
    return [{name: split[name][i] for name in split} for i in range(len(problems))]


def weak_table(variants: NDArray[np.int8], fits: Columns) -> Columns:
    """Return the table ``weak``; classifiers of one variant stand together."""
    position = np.arange(len(variants)) - np.searchsorted(variants, variants)
    return {"arm": variants, "learner": position} | fits


def choose_rows(
    context: StageContext, reports: Columns
) -> tuple[list[Index], NDArray[np.int8]]:
    """Return the rows of each classifier, and its variant.

    Classifiers answer the questions in turn; where no column says so there is one.
    """
    count, size = context.params["train.count"], context.params["train.size"]
    is_training = reports["arm"] == tables.REPORT_VARIANTS.index("mrma")
    by_question = [np.arange(len(is_training))]
    if "question" in reports:
        n_classes = len(context.inputs["project"].metadata["classes"])
        numbers = range(len(one_against_rest_code(n_classes)))
        by_question = [np.flatnonzero(reports["question"] == q) for q in numbers]
    rng, chosen = context.generator("draw"), []
    for rows in by_question:
        training = rows[is_training[rows]]
        # By chance a question may have been asked too rarely.
        most = min(size, len(training)) if "question" in reports else size
        chosen.append(training[draw_subsets(rng, len(training), count, most)])
    if is_training.all():  # nobody reports who votes: there is nothing to pool
        return _in_turn(chosen), np.zeros(count * len(by_question), dtype=np.int8)
    rng = context.generator("pool")
    pooled = [
        [rows[part] for part in disjoint_parts(rng, len(rows), count)]
        for rows in by_question
    ]
    sizes = np.array([count, count, 1]) * len(by_question)
    variants = np.repeat(np.arange(len(tables.WEAK_VARIANTS), dtype=np.int8), sizes)
    return [*_in_turn(chosen), *_in_turn(pooled), *by_question], variants


def _in_turn(by_question: Sequence[Any]) -> list[Index]:
    """Return the first of each question, then the second of each, and so on."""
    return [rows for group in zip(*by_question, strict=True) for rows in group]
