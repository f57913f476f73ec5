"""Base class and number types of all settings: frozen, unknown keys refused."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

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
