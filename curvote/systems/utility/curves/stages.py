"""Stage fit of curves: one of curvote's learners on clean coefficients."""

from __future__ import annotations

from curvote.base.classes import class_signs
from curvote.chain.stage import Rows, StageContext
from curvote.learning.learners.registry import fit
from curvote.messages.roles import roles_of_table
from curvote.systems.common.model_file import pack_model
from curvote.systems.utility.method.engines.discriminants import LinearModel


def fit_curves(context: StageContext) -> Rows:
    """Return the table ``estimator``: one rule, fitted on the training clients."""
    clients, learner = context.rows("project", "encoded"), context.params["learner"]
    train = roles_of_table(clients, context.params, context.number)["train"]
    reports, labels = clients["z"][train], class_signs(clients["label"][train])
    fits = fit(learner["name"], reports[None], labels[None], **learner["params"])
    return {
        "estimator": {
            "model": pack_model(LinearModel(fits.coef[0], float(fits.intercept[0])))
        }
    }
