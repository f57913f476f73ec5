"""Sections of pipelines.yaml that several systems share."""

import operator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic.json_schema import SkipJsonSchema

from curvote.chain.settings import Count, Epsilons, Numbers, Strict, WholeNumber
from curvote.curves.basis import AUTO, MAX_DERIVATIVE, VOLUNTEERS_BASES

# One message for one fault: of a number what numbers must be, of a word which is known.
Size = Annotated[
    Annotated[Literal["auto"], Tag("a-word")] | Annotated[WholeNumber, Tag("a-number")],
    Discriminator(lambda value: "a-word" if isinstance(value, str) else "a-number"),
]


class Clients(Strict):
    """How many clients play each role; ``public`` are the volunteers.

    ``judge`` follows from `judges`, and stands nowhere where there are none.
    """

    public: Count = 0
    train: WholeNumber
    vote: Count = 0
    test: Count = 0
    judge: SkipJsonSchema[Count] = Field(default=0, exclude_if=operator.not_)


class Representation(Strict):
    """How a curve becomes d numbers in [-1, 1]; everything here is public.

    ``size`` is that of the basis, for each channel of a curve; of a ``derivative`` the
    coefficients count. `auto` leaves it to a public rule, epsilon by epsilon
    (`curvote.messages.sizes`), and stages read what the rule takes.
    ``bounds`` says where those of ``min_max`` come from: stated here (``lower`` and
    ``upper``), the public ones of the data set, or the data (which is not private).
    A ``public`` centre is the data set's, too; a public scale lets the farther of a
    feature's public bounds lie three scales from the centre. Of `fpca` the components
    are volunteers' own, and so are centre and scale, one scale for all where `rescale`
    is `standard`, if nothing else is stated; of `auto` they choose basis and size,
    ``noise`` being the variance that reports leave in a number of the label moment
    (`curvote.messages.evidence`). ``project: auto`` is that with all else by default.
    """

    basis: str
    size: Size | None = None
    order: WholeNumber = 4
    derivative: Annotated[int, Field(ge=0, le=MAX_DERIVATIVE, strict=True)] = 0
    coordinates: Literal["coefficients", "orthonormal"] = "coefficients"
    rescale: str = "tanh"
    centre: Numbers | Literal["volunteers", "public"] = 0.0
    scale: Numbers | Literal["volunteers", "public"] = 1.0
    lower: Numbers = -1.0
    upper: Numbers = 1.0
    bounds: Literal["stated", "public", "from_data"] = "stated"
    judge: Literal["rescaled", "coefficients", "inner_products"] = "rescaled"
    noise: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, value: Any) -> Any:
        value = {"basis": AUTO} if value == AUTO else value
        if not isinstance(value, dict) or value.get("basis") not in VOLUNTEERS_BASES:
            return value
        defaults = {"centre": "volunteers", "scale": "volunteers"}
        if value["basis"] == AUTO:
            defaults |= {"size": AUTO, "rescale": "standard"}
        return defaults | value

    @property
    def width(self) -> int | None:
        """The size as a number; None where the source or a rule has not decided yet."""
        return self.size if isinstance(self.size, int) else None

    @property
    def volunteers(self) -> bool:
        """Whether constants or components come from volunteers."""
        centred = self.rescale in {"tanh", "standard"}
        constants = centred and "volunteers" in (self.centre, self.scale)
        return constants or self.basis in VOLUNTEERS_BASES


class Privatize(Strict):
    """The mechanism of a report and the part of its budget that the label gets."""

    mechanism: str = "laplace"
    params: dict[str, Any] = {}
    label_share: Literal["equal"] | Annotated[float, Field(gt=0, lt=1)] = "equal"


class Train(Strict):
    """``count`` weak classifiers, each trained on ``size`` reports."""

    count: WholeNumber
    size: Annotated[int, Field(ge=2, strict=True)]


class Aggregate(Strict):
    """The utility above which a classifier counts, and what to do when none does."""

    cutoff: Annotated[float, Field(ge=0.5, lt=1)] = 0.8
    when_none_pass: Literal["soft", "best", "uniform"] = "soft"
    weights: Literal["excess", "distance"] = "excess"


def _allow_short_form(schema: dict[str, Any]) -> None:
    """Make the JSON Schema of a learner that of every accepted form."""
    schema.clear()
    schema["anyOf"] = [{"type": "string"}, {"type": "object", "required": ["name"]}]


class Learner(Strict):
    """A learner, the label that tables show, and its own parameters."""

    model_config = ConfigDict(json_schema_extra=_allow_short_form)

    name: str
    label: str
    params: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value, "label": value}
        if not isinstance(value, dict) or "name" not in value or "params" in value:
            return value
        params = {k: v for k, v in value.items() if k not in ("name", "label")}
        label = value.get("label", value["name"])
        return {"name": value["name"], "label": label, "params": params}


class Shared(Strict):
    """Settings of every system: roles of clients, and the representation."""

    clients: Clients
    project: Representation
    epsilon: Epsilons


class Taught(Shared):
    """Settings of systems whose server trains classifiers."""

    train: Train | None = None
    learners: list[Learner] = []
