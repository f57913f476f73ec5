"""Systems `counts`, `stump` and `tree`: questions, noised answers, a scorecard."""

from collections.abc import Callable, Iterator
from typing import Final

from pydantic import BaseModel

from curvote.base.errors import Problem
from curvote.chain import axis, stage, system
from curvote.data import lookup
from curvote.systems.cells import messages
from curvote.systems.cells.stages import scorecard_model, scorecard_outcome
from curvote.systems.common import checks, declarations, study
from curvote.systems.references.messages import ComparisonLabel

_CUTS = {"of": stage.VECTOR, "feature": stage.VECTOR, "threshold": stage.VECTOR}
QUESTIONS: Final = stage.Table("questions", _CUTS, unit="question")
ANSWERS: Final = stage.Table(
    "answers", {"question": "int64", "answer": "int64"}, unit="message"
)
# The scores of a question are (C, K), cell by cell.
SCORECARD: Final = stage.Table(
    "scorecard", {**_CUTS, "score": stage.VECTOR, "n": "int64"}, unit="question"
)


Cells = Callable[[axis.PipelineSettings], int]

_STAGES = "curvote.systems.cells.stages"


def cell_system(
    name: str, settings: type[BaseModel], key: str, cells: Cells, *drawing: str
) -> system.System:
    """Return the system of one kind of questions, and of the method of its name.

    The ``key`` of its section says how many cells or questions there are, ``cells`` how
    many cells settings ask for; ``drawing`` are further keys that its questions depend
    on.
    """
    # No client has a part in the questions: every epsilon shares them.
    train = declarations.server_stage(
        "train",
        f"{_STAGES}:ask_{name}",
        ("project",),
        QUESTIONS,
        axes=(),
        params=(f"{name}.{key}", *drawing),
    )
    privatize = declarations.client_stage(
        "privatize", f"{_STAGES}:privatize_{name}", ANSWERS, ("project", "train")
    )
    release = declarations.release_stage(
        privatize, "report", ("ingest", "project", "train"), ("project.judge",)
    )
    aggregate = declarations.server_stage(
        "aggregate",
        f"{_STAGES}:aggregate_{name}",
        ("project", "train", "privatize"),
        SCORECARD,
    )
    score = declarations.score_stage(
        f"{_STAGES}:score_{name}",
        ("project", "aggregate"),
        params=("epsilon", *declarations.ROLE_PARAMS),
        beside=(study.CONFUSION,),
    )

    def check_cells(pipeline: axis.PipelineSettings) -> Iterator[Problem]:
        """Require no more cells and classes than one word tells."""
        named = lookup.classes(pipeline.source) or ("one", "other")
        size = cells(pipeline), len(named)
        return checks.refusal((name, key), messages.check_answer_count, *size)

    return declarations.learning_system(
        name,
        settings,
        (train, privatize, aggregate, score),
        f"{name} majority",
        releases=(release,),
        judge_inputs=("privatize", "aggregate"),
        study_messages=(ComparisonLabel().describe,),
        classes=check_cells,
        shorthand=(key,),
        implied_settings=declarations.JUDGED_BY_Z,
        final_model=scorecard_model,
        production_metrics=scorecard_outcome,
    )


SYSTEMS: Final = (
    cell_system("counts", messages.CountsSettings, "bins", lambda p: p.counts.bins),
    cell_system("stump", messages.StumpSettings, "thresholds", lambda _: 2),
    cell_system("tree", messages.TreeSettings, "cells", lambda p: p.tree.cells, "seed"),
)
