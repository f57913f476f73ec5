"""Systems `counts`, `stump` and `tree`: questions, noised answers, a scorecard."""

from collections.abc import Callable, Iterator
from typing import Final

from pydantic import BaseModel

from curvote.base.errors import Problem, UserError
from curvote.chain import axis, measure, stage, system
from curvote.data import lookup
from curvote.messages.measures import ERRORS, MAJORITY
from curvote.systems.cells import messages
from curvote.systems.cells.stages import scorecard_model, scorecard_outcome
from curvote.systems.common import checks, declarations, study
from curvote.systems.direct.system import JUDGED_BY_Z
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
    method: measure.Method,
    settings: type[BaseModel],
    size: tuple[str, Cells],
    *drawing: str,
) -> system.System:
    """Return the system named as its ``method``.

    ``size`` is the key of its section that says how many cells or questions there are,
    and the number of cells that settings ask for; ``drawing`` are further keys that its
    questions depend on.
    """
    name, (key, cells) = method.name, size
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
        try:
            messages.check_answer_count(cells(pipeline), len(named))
        except UserError as error:
            yield Problem(str(error), (name, key))

    return system.System(
        name=name,
        settings=settings,
        stages=(*declarations.COMMON_STAGES, train, privatize, aggregate, score),
        production=(*declarations.COMMON_STAGES, train, release, aggregate),
        messages=messages.MESSAGES_BY_SYSTEM[name],
        study_messages=(ComparisonLabel().describe,),
        metrics=ERRORS,
        methods=(method, MAJORITY),
        main=(name,),
        checks=checks.combine_checks(checks.check_test_clients, classes=check_cells),
        shorthand=(key,),
        implied_settings=JUDGED_BY_Z,
        final_model=scorecard_model,
        production_metrics=scorecard_outcome,
        sections=declarations.SECTIONS,
    )


_COUNTS = measure.Method(
    "counts",
    "counts (naive Bayes)",
    "Each client tells the public bin of one number and its class, as one noised word; "
    "naive Bayes is made of the counts. It expects no straight line.",
    measure.Look("#7b4173", "P", width=1.6),
    rank=121,
)
_STUMP = measure.Method(
    "stump",
    "stump",
    "Each client tells the side of one public threshold and its class, as one noised "
    "word; the threshold that tells most classes rightly is kept.",
    measure.Look("#8c6d31", "v", width=1.6),
    rank=122,
)
_TREE = measure.Method(
    "tree",
    "tree",
    "Each client tells its cell of a public recursive grid and its class, as one "
    "noised word; each cell gets the class that most in it have.",
    measure.Look("#637939", "^", width=1.6),
    rank=123,
)

SYSTEMS: Final = (
    cell_system(
        _COUNTS, messages.CountsSettings, ("bins", lambda p: int(p.counts.bins))
    ),
    cell_system(_STUMP, messages.StumpSettings, ("thresholds", lambda _: 2)),
    cell_system(
        _TREE, messages.TreeSettings, ("cells", lambda p: int(p.tree.cells)), "seed"
    ),
)
