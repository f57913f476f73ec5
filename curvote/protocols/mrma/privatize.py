"""Stages of MRMA and of the systems that share its votes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.mrma.messages import Report
from curvote.protocols.mrma.tables import REPORT_VARIANTS
from curvote.protocols.roles import EVERYBODY
from curvote.protocols.stages.drawn import (
    MetadataFunction,
    draw_messages,
    draw_stage,
    study_task,
)
from curvote.protocols.study import study_clients


def report_stage(
    kind: Report,
) -> tuple[MetadataFunction, Callable[[StageContext], Rows]]:
    """Return the metadata and table functions of the stage for ``kind``.

    Rows say whose they are: of who trains (``mrma``), or of who votes (``pooled``).
    """
    task_metadata, _ = draw_stage(kind)

    def draw_reports(context: StageContext) -> Rows:
        clients, task = study_clients(context), study_task(context, kind)
        rows = EVERYBODY.rows(clients.roles)  # who trains, then who votes
        messages = draw_messages(context, kind, task, clients.data_of(rows))
        order = context.generator("shuffle").permutation(len(rows))
        reports = kind.collect(
            task, {name: values[order] for name, values in messages.items()}
        )
        is_pooled = order >= len(clients.roles["train"])
        names = [REPORT_VARIANTS.index(name) for name in ("pooled", "mrma")]
        arm = np.where(is_pooled, *names).astype(np.int8)
        return {kind.table: reports | {"arm": arm}}

    return task_metadata, draw_reports


facts, one = report_stage(Report())
