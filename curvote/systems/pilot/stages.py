"""Stages of `pilot`: two rules, bits about them, and the better one."""

from collections.abc import Iterator, Sequence

import numpy as np

from curvote.chain.stage import Rows, StageContext
from curvote.chain.system import View
from curvote.learning import cells
from curvote.systems.cells import stages as cell_stages
from curvote.systems.common import models, study
from curvote.systems.direct import stages as direct
from curvote.systems.mrma.stages import aggregate_votes_metadata, ensemble_columns
from curvote.systems.pilot.messages import MESSAGES
from curvote.systems.references.stages import majority_error

# The rules in the order in which they are candidates.
RULES = ("mean", "counts")

ask_metadata, ask = cell_stages.ask_counts_metadata, cell_stages.ask_counts
privatize_metadata, privatize = study.draw_stage(MESSAGES["report"])
answer_metadata, answer = study.draw_stage(MESSAGES["answer"])


# The mechanism and budget that decoding needs.
decode_metadata = direct.aggregate_metadata


def decode(context: StageContext) -> Rows:
    """Return the tables ``classifier``, of the line, and ``scorecard``."""
    total = direct.report_mean(context)
    partitions, shares = cell_stages.tally_answers(context, "answer")
    scores = cells.naive_bayes_scores(shares)
    line = direct.decode_total(total, context.metadata)
    return {
        "classifier": line,
        **cell_stages.scorecard_rows(partitions, scores, shares.n),
    }


evaluate_metadata, evaluate = study.draw_stage(MESSAGES["vote"])


aggregate_metadata = aggregate_votes_metadata


def aggregate(context: StageContext) -> Rows:
    """Return the table ``ensemble``: the utility of each rule, weight 1 on the best."""
    epsilon = context.inputs["evaluate"].metadata["epsilon"]
    votes = context.rows("evaluate", "votes")
    columns = ensemble_columns(votes, epsilon, context.metadata)
    weight = np.eye(len(RULES))[columns["utility"].argmax()]
    signs = {"reversed": np.zeros(len(RULES), dtype=bool)}
    return {"ensemble": columns | signs | {"weight": weight, "weight_ma": weight}}


def score(context: StageContext) -> Rows:
    """Return the table ``scores``: both rules, the one that was taken, the majority."""
    clients = study.study_clients(context)
    z, truth = clients.features_and_places("rescaled", "test")
    line, card = (context.rows("decode", t) for t in ("classifier", "scorecard"))
    bins, scores = cell_stages.read_scorecard(card, z.shape[1], 2)
    places = models.predict_places(z, line), cells.predict_cells(scores, bins, z)
    best = int(context.rows("aggregate", "ensemble")["weight"].argmax())
    errors = {"majority": majority_error(context, clients)}
    predictions = dict(zip(RULES, places, strict=True)) | {"pilot": places[best]}
    return study.score_places(context, truth, predictions, errors)


def taken_model(view: View) -> object:
    """Return the rule that was taken, as a model of raw records."""
    if taken_rule(view) == "counts":
        return cell_stages.scorecard_model(view, "decode")
    return models.linear_model(
        view, models.classifier_line(view.columns("decode", "classifier"))
    )


def taken_rule(view: View) -> str:
    """Return the name of the rule that was taken in the first repetition."""
    return RULES[int(view.columns("aggregate", "ensemble")["weight"].argmax())]


def pilot_notes(views: Sequence[View]) -> Iterator[str]:
    """Yield what the pilot said of both rules in each cell."""
    for view in views:
        table = view.columns("aggregate", "ensemble")
        rows = zip(RULES, table["utility"], table["standard_error"], strict=True)
        words = ", ".join(f"{n} {100 * u:.0f} ± {100 * e:.0f} %" for n, u, e in rows)
        place, rule = f"epsilon {view.cell['epsilon']:g}", taken_rule(view)
        yield f"pilot, {place}: right, as clients say: {words}; {rule} taken"
