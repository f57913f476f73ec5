"""Stage report of a study of `majority`: the true error of the elected class."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.protocols.majority.elect import wrong
from curvote.protocols.scores import score_rows
from curvote.protocols.study import clients_of


def one(here: Here) -> Rows:
    """Return the table ``scores`` with the row ``majority``."""
    return score_rows({"majority": wrong(here, clients_of(here))})
