"""Stage report of a study of `majority`: the true error of the elected class."""

from __future__ import annotations

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.majority.elect import majority_error
from curvote.protocols.scores import score_rows
from curvote.protocols.study import study_clients


def one(context: StageContext) -> Rows:
    """Return the table ``scores`` with the row ``majority``."""
    return score_rows({"majority": majority_error(context, study_clients(context))})
