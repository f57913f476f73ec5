"""Base class and number types of all settings: frozen, unknown keys refused."""

import re
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

WholeNumber = Annotated[int, Field(ge=1, strict=True)]
Count = Annotated[int, Field(ge=0, strict=True)]
Epsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Numbers = float | list[float]


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, int | float) else value


# Privacy levels: a list, or one number.
_EpsilonList = Annotated[list[Epsilon], Field(min_length=1)]
Epsilons = Annotated[_EpsilonList, BeforeValidator(_as_list, _EpsilonList | Epsilon)]


class Strict(BaseModel):
    """A frozen model that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


_UNITS: Final = {"h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(rf"(\d+) ?([{''.join(_UNITS)}])")
LEAST_SECONDS: Final = 3600
MOST_SECONDS: Final = 100 * 366 * 86_400  # dates end in the year 9999


def parse_span(span: str) -> int:
    """Return the seconds of a time span such as ``36h``, ``90d`` or ``12w``.

    Another form, less than an hour, or more than a hundred years: ValueError.
    """
    match = _SPAN.fullmatch(span.strip())
    if match is None:
        raise ValueError("write a span of time as 36h, 90d or 12w")
    total = int(match[1]) * _UNITS[match[2]]
    if total < LEAST_SECONDS:
        raise ValueError("a span under an hour would take what is still in use")
    if total > MOST_SECONDS:
        raise ValueError("a span over a hundred years reaches nothing")
    return total


def _check_span(span: str) -> str:
    parse_span(span)
    return span


Span = Annotated[str, AfterValidator(_check_span)]
