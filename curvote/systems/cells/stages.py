"""Stages of `counts`, `stump` and `tree`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.chain.system import View
from curvote.curves import partition
from curvote.learning import cells
from curvote.systems.cells.messages import COUNTS_ANSWER, STUMP_ANSWER, TREE_ANSWER
from curvote.systems.common import models, study
from curvote.systems.references.stages import majority_error

if TYPE_CHECKING:
    from curvote.systems.cells.model import CellClassifier


def scorecard_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return d, epsilon and the number of classes, which decoding needs."""
    metadata = inputs["privatize"].metadata
    n_classes = len(inputs["project"].metadata["classes"])
    return {"d": metadata["d"], "epsilon": metadata["epsilon"], "n_classes": n_classes}


def tally_answers(
    context: StageContext, stage: str = "privatize"
) -> tuple[partition.Partitions, cells.CellShares]:
    """Return the questions of one repetition, and the shares of a stage's answers."""
    public = context.metadata
    questions = context.rows("train", "questions")
    partitions = partition.Partitions.from_columns(questions, public["d"])
    answers = context.rows(stage, "answers")
    shape = partitions.count, partitions.cells, public["n_classes"]
    words = answers["question"], answers["answer"]
    return partitions, cells.estimate_shares(*words, shape, public["epsilon"])


def scorecard_rows(
    partitions: partition.Partitions, scores: partition.Array, n: partition.Array
) -> Rows:
    """Return table ``scorecard``: cuts, scores (Q, C, K) and answers (Q,) to each."""
    columns = {"score": scores.reshape(partitions.count, -1), "n": n.astype(np.int64)}
    return {"scorecard": partitions.columns | columns}


def read_scorecard(
    rows: Mapping[str, NDArray[Any]], d: int, n_classes: int
) -> tuple[partition.Partitions, partition.Array]:
    """Return the questions and scores (Q, C, K) of table ``scorecard``."""
    partitions = partition.Partitions.from_columns(rows, d)
    shape = partitions.count, partitions.cells, n_classes
    return partitions, rows["score"].reshape(shape)


def scorecard_model(view: View, stage: str = "aggregate") -> CellClassifier:
    """Return the classifier of raw records of the first repetition."""
    from curvote.systems.cells.model import CellClassifier  # see `linear`

    encoding = models.read_encoding(view)
    classes = list(view.metadata("project")["classes"])
    rows = view.columns(stage, "scorecard", models.FIRST_REPETITION)
    partitions, scores = read_scorecard(rows, encoding.d, len(classes))
    return CellClassifier.from_scorecard(
        encoding, models.record_columns(view), partitions, scores, classes
    )


def scorecard_outcome(view: View) -> dict[str, float]:
    """Return the number of answers that were counted."""
    answers = view.columns("privatize", "answers", models.FIRST_REPETITION)
    return {"reports": len(answers["answer"])}


StageFunctions = tuple[study.MetadataFunction, Callable[[StageContext], Rows]]


def questions_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the length of z, and its rescaling, which names the assumed law."""
    public = inputs["project"].metadata
    return {"d": public["d"], "rescale": public["encoding"]["rescale"]}


def ask_stage(
    make_partitions: Callable[..., partition.Partitions], key: str, *streams: str
) -> StageFunctions:
    """Return the metadata and table functions of a stage that makes ``questions``.

    The setting ``key`` says how many; what is drawn of them, the ``streams`` draw.
    """

    def ask(context: StageContext) -> Rows:
        public, draws = context.metadata, map(context.generator, streams)
        terms = public["d"], public["rescale"], context.params[key]
        return {"questions": make_partitions(*terms, *draws).columns}

    return questions_metadata, ask


# A row a number; a row a number and threshold; the one grid.
ask_counts_metadata, ask_counts = ask_stage(partition.bin_partitions, "counts.bins")
ask_stump_metadata, ask_stump = ask_stage(partition.half_partitions, "stump.thresholds")
ask_tree_metadata, ask_tree = ask_stage(partition.random_grid, "tree.cells", "draw")

privatize_counts_metadata, privatize_counts = study.draw_stage(COUNTS_ANSWER)
privatize_stump_metadata, privatize_stump = study.draw_stage(STUMP_ANSWER)
privatize_tree_metadata, privatize_tree = study.draw_stage(TREE_ANSWER)


def scorecard_stage(score_cells: Callable[[cells.CellShares], Any]) -> StageFunctions:
    """Return the metadata and table functions of a stage that makes ``scorecard``.

    ``score_cells`` returns the scores (Q, C, K) of all questions, or the place of one
    and its scores.
    """

    def aggregate(context: StageContext) -> Rows:
        partitions, class_shares = tally_answers(context)
        scores, n = score_cells(class_shares), class_shares.n
        if isinstance(scores, tuple):
            place, scores = scores
            rows = np.array([place])
            partitions, n = partitions.select(rows), n[rows]
        return scorecard_rows(partitions, scores, n)

    return scorecard_metadata, aggregate


aggregate_counts_metadata, aggregate_counts = scorecard_stage(cells.naive_bayes_scores)
aggregate_stump_metadata, aggregate_stump = scorecard_stage(cells.best_question)
aggregate_tree_metadata, aggregate_tree = scorecard_stage(cells.leaf_scores)


def score(method: str, context: StageContext) -> Rows:
    """Return the table ``scores``: the ``method`` and the majority."""
    clients = study.study_clients(context)
    classes = context.inputs["project"].metadata["classes"]
    z, truth = clients.features_and_places("rescaled", "test")
    scorecard = context.rows("aggregate", "scorecard")
    partitions, scores = read_scorecard(scorecard, z.shape[1], len(classes))
    total = cells.total_scores(scores, partitions, z)
    errors = {"majority": majority_error(context, clients)}
    ranking = total[:, 1] - total[:, 0] if len(classes) == 2 else None
    predictions = {method: total.argmax(axis=1)}
    return study.score_places(context, truth, predictions, errors, ranking)


score_counts = partial(score, "counts")
score_stump = partial(score, "stump")
score_tree = partial(score, "tree")
