"""Stage fit: one of curvote's own learners on the clean coefficients of who trains."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.classes import signs
from curvote.protocols.labels.packing import packed
from curvote.protocols.roles import played
from curvote.server.learners.fitting import fit
from curvote.utility.engines.linear import LinearModel


def one(here: Here) -> Rows:
    """Return the table ``estimator``: one rule, fitted on those who train."""
    clients, learner = here.rows("project", "encoded"), here.params["learner"]
    train = played(clients, here.params, here.number)["train"]
    reports, labels = clients["z"][train], signs(clients["label"][train])
    fits = fit(learner["name"], reports[None], labels[None], **learner["params"])
    return {
        "estimator": {
            "model": packed(LinearModel(fits.coef[0], float(fits.intercept[0])))
        }
    }
