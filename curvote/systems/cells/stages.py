"""Stages of `counts`, `stump` and `tree`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.curves.partition import bin_partitions, half_partitions, random_grid
from curvote.learning.cells import (
    best_question,
    leaf_scores,
    naive_bayes_scores,
    predict_cells,
)
from curvote.systems.cells.counts.messages import COUNTS_ANSWER
from curvote.systems.cells.scorecard import (
    read_scorecard,
    scorecard_columns,
    scorecard_metadata,
    tally_answers,
)
from curvote.systems.cells.stump.messages import STUMP_ANSWER
from curvote.systems.cells.tree.messages import TREE_ANSWER
from curvote.systems.common import study
from curvote.systems.common.study import draw_stage, score_rows, study_clients
from curvote.systems.references.stages import majority_error


def questions_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the length of z, and its rescaling, which names the assumed law."""
    public = inputs["project"].metadata
    return {"d": public["d"], "rescale": public["encoding"]["rescale"]}


def scorecard_score_stage(method: str) -> Callable[[StageContext], Rows]:
    """Return the table function of the stage that scores ``method``."""

    def score_cells(context: StageContext) -> Rows:
        clients, classes = (
            study_clients(context),
            context.inputs["project"].metadata["classes"],
        )
        z, truth = clients.features_and_places("rescaled", "test")
        partitions, scores = read_scorecard(
            context.rows("aggregate", "scorecard"), z.shape[1], len(classes)
        )
        predictions = predict_cells(scores, partitions, z)
        error = float(np.mean(predictions != truth))
        rows = score_rows({"majority": majority_error(context, clients), method: error})
        return study.add_class_scores(rows, method, truth, predictions, classes)

    return score_cells


ask_counts_metadata = questions_metadata


def ask_counts(context: StageContext) -> Rows:
    """Return the table ``questions``: a row a number."""
    partitions = bin_partitions(
        context.metadata["d"],
        context.metadata["rescale"],
        context.params["counts.bins"],
    )
    return {"questions": partitions.columns}


privatize_counts_metadata, privatize_counts = draw_stage(COUNTS_ANSWER)


aggregate_counts_metadata = scorecard_metadata


def aggregate_counts(context: StageContext) -> Rows:
    """Return the table ``scorecard``: a row a number, log-odds by bin and class."""
    partitions, class_shares = tally_answers(context)
    return {
        "scorecard": scorecard_columns(
            partitions, naive_bayes_scores(class_shares), class_shares.n
        )
    }


score_counts = scorecard_score_stage("counts")


ask_stump_metadata = questions_metadata


def ask_stump(context: StageContext) -> Rows:
    """Return the table ``questions``: a row a number and threshold."""
    public, count = context.metadata, context.params["stump.thresholds"]
    partitions = half_partitions(public["d"], public["rescale"], count)
    return {"questions": partitions.columns}


privatize_stump_metadata, privatize_stump = draw_stage(STUMP_ANSWER)


aggregate_stump_metadata = scorecard_metadata


def aggregate_stump(context: StageContext) -> Rows:
    """Return the table ``scorecard``: one row."""
    partitions, class_shares = tally_answers(context)
    place, scores = best_question(class_shares)
    rows = np.array([place])
    return {
        "scorecard": scorecard_columns(
            partitions.select(rows), scores, class_shares.n[rows]
        )
    }


score_stump = scorecard_score_stage("stump")


ask_tree_metadata = questions_metadata


def ask_tree(context: StageContext) -> Rows:
    """Return the table ``questions``: the one grid."""
    public, rng = context.metadata, context.generator("draw")
    partitions = random_grid(
        public["d"], public["rescale"], context.params["tree.cells"], rng
    )
    return {"questions": partitions.columns}


privatize_tree_metadata, privatize_tree = draw_stage(TREE_ANSWER)


aggregate_tree_metadata = scorecard_metadata


def aggregate_tree(context: StageContext) -> Rows:
    """Return the table ``scorecard``: one row."""
    partitions, class_shares = tally_answers(context)
    return {
        "scorecard": scorecard_columns(
            partitions, leaf_scores(class_shares), class_shares.n
        )
    }


score_tree = scorecard_score_stage("tree")
