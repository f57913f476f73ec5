"""Stages of `counts`, `stump` and `tree`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.chain.system import View
from curvote.curves import partition
from curvote.learning import cells
from curvote.systems.cells.messages import COUNTS_ANSWER, STUMP_ANSWER, TREE_ANSWER
from curvote.systems.common import models, study
from curvote.systems.common.study import draw_stage, score_rows, study_clients
from curvote.systems.references.stages import majority_error

if TYPE_CHECKING:
    from curvote.systems.cells.model import CellClassifier


def scorecard_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return d, epsilon and the number of classes, which decoding needs."""
    metadata = inputs["privatize"].metadata
    n_classes = len(inputs["project"].metadata["classes"])
    return {"d": metadata["d"], "epsilon": metadata["epsilon"], "n_classes": n_classes}


def tally_answers(
    context: StageContext,
) -> tuple[partition.Partitions, cells.CellShares]:
    """Return the questions of one repetition, and the shares of answers."""
    public = context.metadata
    questions = context.rows("train", "questions")
    partitions = partition.Partitions.from_columns(questions, public["d"])
    answers = context.rows("privatize", "answers")
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


def scorecard_model(view: View) -> CellClassifier:
    """Return the classifier of raw records of the first repetition."""
    from curvote.systems.cells.model import CellClassifier  # see `linear`

    encoding = models.read_encoding(view)
    classes = list(view.metadata("project")["classes"])
    rows = view.columns("aggregate", "scorecard", models.FIRST_REPETITION)
    partitions, scores = read_scorecard(rows, encoding.d, len(classes))
    return CellClassifier.from_scorecard(
        encoding, models.record_columns(view), partitions, scores, classes
    )


def scorecard_outcome(view: View) -> dict[str, float]:
    """Return the number of answers that were counted."""
    answers = view.columns("privatize", "answers", models.FIRST_REPETITION)
    return {"reports": len(answers["answer"])}


def questions_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the length of z, and its rescaling, which names the assumed law."""
    public = inputs["project"].metadata
    return {"d": public["d"], "rescale": public["encoding"]["rescale"]}


def scorecard_score_stage(method: str) -> Callable[[StageContext], Rows]:
    """Return the table function of the stage that scores ``method``."""

    def score_cells(context: StageContext) -> Rows:
        clients = study_clients(context)
        classes = context.inputs["project"].metadata["classes"]
        z, truth = clients.features_and_places("rescaled", "test")
        partitions, scores = read_scorecard(
            context.rows("aggregate", "scorecard"), z.shape[1], len(classes)
        )
        predictions = cells.predict_cells(scores, partitions, z)
        error = float(np.mean(predictions != truth))
        rows = score_rows({"majority": majority_error(context, clients), method: error})
        return study.add_class_scores(rows, method, truth, predictions, classes)

    return score_cells


ask_counts_metadata = questions_metadata


def ask_counts(context: StageContext) -> Rows:
    """Return the table ``questions``: a row a number."""
    public, count = context.metadata, context.params["counts.bins"]
    partitions = partition.bin_partitions(public["d"], public["rescale"], count)
    return {"questions": partitions.columns}


privatize_counts_metadata, privatize_counts = draw_stage(COUNTS_ANSWER)


aggregate_counts_metadata = scorecard_metadata


def aggregate_counts(context: StageContext) -> Rows:
    """Return the table ``scorecard``: a row a number, log-odds by bin and class."""
    partitions, class_shares = tally_answers(context)
    return scorecard_rows(
        partitions, cells.naive_bayes_scores(class_shares), class_shares.n
    )


score_counts = scorecard_score_stage("counts")


ask_stump_metadata = questions_metadata


def ask_stump(context: StageContext) -> Rows:
    """Return the table ``questions``: a row a number and threshold."""
    public, count = context.metadata, context.params["stump.thresholds"]
    partitions = partition.half_partitions(public["d"], public["rescale"], count)
    return {"questions": partitions.columns}


privatize_stump_metadata, privatize_stump = draw_stage(STUMP_ANSWER)


aggregate_stump_metadata = scorecard_metadata


def aggregate_stump(context: StageContext) -> Rows:
    """Return the table ``scorecard``: one row."""
    partitions, class_shares = tally_answers(context)
    place, scores = cells.best_question(class_shares)
    rows = np.array([place])
    return scorecard_rows(partitions.select(rows), scores, class_shares.n[rows])


score_stump = scorecard_score_stage("stump")


ask_tree_metadata = questions_metadata


def ask_tree(context: StageContext) -> Rows:
    """Return the table ``questions``: the one grid."""
    public, rng = context.metadata, context.generator("draw")
    count = context.params["tree.cells"]
    partitions = partition.random_grid(public["d"], public["rescale"], count, rng)
    return {"questions": partitions.columns}


privatize_tree_metadata, privatize_tree = draw_stage(TREE_ANSWER)


aggregate_tree_metadata = scorecard_metadata


def aggregate_tree(context: StageContext) -> Rows:
    """Return the table ``scorecard``: one row."""
    partitions, class_shares = tally_answers(context)
    return scorecard_rows(partitions, cells.leaf_scores(class_shares), class_shares.n)


score_tree = scorecard_score_stage("tree")
