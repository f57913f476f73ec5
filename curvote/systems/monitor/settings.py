"""Settings of `monitor`: what is asked of whom, how often, and when an alarm is due."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, model_validator

from curvote.base.errors import Problem, UserError
from curvote.base.privacy import Budget
from curvote.chain.axis import PipelineSettings
from curvote.chain.settings import Epsilon, Epsilons, Span, Strict, WholeNumber
from curvote.systems.monitor.messages import make_task
from curvote.systems.monitor.questions import CLASS

Share = Annotated[float, Field(gt=0, lt=1)]


class Groups(Strict):
    """Groups that are told apart: hidden in the answer, or named by the invitation."""

    private: tuple[str, ...] = ()
    public: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_kind(self) -> "Groups":
        if bool(self.private) == bool(self.public):
            raise ValueError("name private groups or public ones")
        return self


class Monitor(Strict):
    """The question, its windows, the people asked in each, and the alarm."""

    question: Literal["right", "class", "calibration", "error", "versus"] = "right"
    model: str | tuple[str, str] | None = None
    classes: tuple[str, ...] = ()
    bins: WholeNumber = 10
    bounds: tuple[FiniteFloat, FiniteFloat] | None = None
    levels: Annotated[int, Field(ge=2, strict=True)] | None = None
    group: Groups | None = None
    window: Span = "7d"
    late: Span | None = None
    rounds: WholeNumber = 26
    people: Annotated[int, Field(ge=2, strict=True)] = 500
    per_person: Epsilon | None = None
    reference: FiniteFloat | None = None
    margin: Annotated[float, Field(ge=0)] = 0.0
    error: Share = 0.05


class MonitorSettings(Strict):
    """Settings of a watch over a model: its records are with those who answer."""

    # Nobody's curve is read: what an answer is about stands in the task.
    source: dict[str, Any] = {
        "name": "remote",
        "points": 2,
        "negative": "wrong",
        "positive": "right",
    }
    monitor: Monitor = Monitor()
    epsilon: Epsilons = [1.0]


def check_settings(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Yield what contradicts itself, or cannot be kept."""
    terms = pipeline.monitor
    if not pipeline.production or pipeline.intake is None:
        yield Problem(
            "monitor asks real people, by envelope: state `mode: production` and"
            " `intake: {}`. `curvote monitor plan NAME` simulates it, and"
            " curvote.monitor is for studies.",
            ("mode",),
        )
    try:
        for epsilon in pipeline.epsilon:
            make_task(terms.model_dump(mode="json"), epsilon)
    except UserError as error:
        yield Problem(str(error), ("monitor", "question"))
    if terms.question != CLASS and terms.classes:
        yield Problem("only question class is about classes.", ("monitor", "classes"))
    budget = terms.per_person
    if budget is not None and budget < max(pipeline.epsilon):
        yield Problem(
            f"one answer spends more than a person has in all, {budget:g}.",
            ("monitor", "per_person"),
        )


def times_asked(terms: Any, epsilon: float) -> int:
    """Return how often one person may be asked within their budget."""
    spent, times = Budget(epsilon), 1
    allowed = max(terms.per_person or epsilon, epsilon)
    while times < terms.rounds and (times + 1) * spent.epsilon <= allowed * (1 + 1e-12):
        times += 1
    return times


def panel_count(terms: Any, epsilon: float) -> int:
    """Return the number of panels that take turns, so that nobody's budget is gone."""
    rounds: int = terms.rounds
    return -(-rounds // times_asked(terms, epsilon))
