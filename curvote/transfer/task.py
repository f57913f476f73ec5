"""Tasks for tables: one noised release of each server, and the forms it can have.

Every field is public. A server reads `Task.for_server` of itself, which names what it
is asked and nothing of the others: another budget for one server leaves the releases of
all others valid.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.classes import Classes
from curvote.errors import UserError
from curvote.privacy import Budget, refuse_delta
from curvote.strict_json import canonical_json

FORMAT: Final = 2
PROTOCOL: Final = "transfer"
ASKS: Final = "release"
PUBLIC: Final = "public"
OWN: Final = "own"
WITHOUT_NOISE: Final = (PUBLIC, OWN)

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


class Feature(NamedTuple):
    """Name of a number of a record, and the public bounds that it is clipped to."""

    name: str
    lower: float
    upper: float


class Level(NamedTuple):
    """Privacy level of one server's release.

    Parameters
    ----------
    epsilon : float, "public" or "own"
        The two words stand for no noise: ``public`` records are anybody's, a server's
        ``own`` stay with it, and so does what is learnt from them.
    delta : float or None, default=None
        None stands for n^-2, as in the published study (paper 002, section 6.1).

    Examples
    --------
    >>> Level(1.0).budget(1000).delta  # 1/n^2
    1e-06
    >>> Level("own").noised
    False
    """

    epsilon: float | str
    delta: float | None = None

    @property
    def noised(self) -> bool:
        """Whether there is a budget at all."""
        return self.epsilon not in WITHOUT_NOISE

    def budget(self, n: int) -> Budget:
        """Return the budget for a table of ``n`` records.

        A delta above 1/n is a UserError: publishing one record would keep it (a lone
        record is as in local privacy: at most 1e-4); so is a level without a budget.
        """
        if isinstance(self.epsilon, str):
            raise UserError(f"epsilon is {self.epsilon}: nothing is spent there.")
        if self.delta is None and n == 1:
            raise UserError("n^-2 promises nothing to one record; state a delta.")
        delta = 1 / n**2 if self.delta is None else self.delta
        return Budget(self.epsilon, refuse_delta(delta, n))


@dataclass(frozen=True, eq=False)
class Task:
    """One release of each of some servers, in one form, about the same features.

    Parameters
    ----------
    features : sequence of (name, lower, upper)
        In the order of X's columns; bounds are finite and increase.
    classes : sequence of str
        Two or more names.
    servers : mapping from a name to a Budget, a Level or an epsilon
        What each spends; of an epsilon alone delta is n^-2, and ``public`` and ``own``
        are without noise.
    release : str, default="cells"
        The form of a release (`curvote.transfer.forms`).
    params : mapping, default={}
        The form's own parameters; defaults are filled in.
    seed : int, default=0
        Where grids and hashes come from; published like the rest.
    number : int, default=1
        Counts the times the same was asked.

    Raises
    ------
    UserError
        Bounds that are not finite and increasing, a name twice, no server, an epsilon
        or a delta that is none (0 included), unknown parameters.

    Examples
    --------
    >>> task = Task([("age", 20, 90)], classes=("no", "yes"), servers={"a": 1, "b": 2})
    >>> print(task.release, task.for_server("b").servers["b"].budget(100))
    cells epsilon 2, delta 0.0001
    """

    features: tuple[Feature, ...]
    classes: Classes
    servers: Mapping[str, Level]
    release: str = "cells"
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    number: int = 1

    def __post_init__(self) -> None:
        from curvote.transfer.forms import form

        put = object.__setattr__
        put(
            self,
            "features",
            tuple(_check_feature(feature) for feature in self.features),
        )
        put(self, "classes", Classes(str(name) for name in self.classes))
        servers = {
            str(name): _check_level(name, level) for name, level in self.servers.items()
        }
        put(self, "servers", servers)
        _refuse_repeated([feature.name for feature in self.features])
        if not self.features or not servers:
            raise UserError(
                "a task needs a feature and a server, one of each at least."
            )
        validate.at_least(0, seed=self.seed)
        validate.at_least(1, number=self.number)
        put(self, "params", form(self.release).fill_params(self))

    @property
    def d(self) -> int:
        """Number of features of a record."""
        return len(self.features)

    @property
    def protocol(self) -> str:
        """Name of the system that the task belongs to."""
        return PROTOCOL

    @property
    def asks(self) -> str:
        """Name of the message that the task asks for."""
        return ASKS

    @property
    def mechanism(self) -> str:
        """Name of the noise of a release."""
        return "gaussian"

    @property
    def candidates(self) -> None:
        """None: no candidates are evaluated."""
        return

    @property
    def server(self) -> str:
        """Name of the one server of the task; several are a UserError."""
        if len(self.servers) > 1:
            raise UserError("the task asks several servers; take `only` one.")
        return next(iter(self.servers))

    @property
    def epsilon(self) -> float | str:
        """Epsilon of the task's one server, or why it has no budget."""
        return self.servers[self.server].epsilon

    def for_server(self, server: str) -> Task:
        """Return the task of one server; another name is a UserError."""
        validate.one_of(self.servers, server=server)
        return replace(self, servers={server: self.servers[server]})

    def cost(self, n: int = 1) -> Budget:
        """Return the budget of the task's one server for ``n`` records."""
        return self.servers[self.server].budget(n)

    def cube(self, X: ArrayLike) -> Array:
        """Return records (n, d) clipped to the bounds and scaled to [0, 1]^d.

        Another width, NaN or infinity is a UserError.
        """
        values = validate.finite(X=X)
        if values.ndim != 2 or values.shape[1] != self.d:
            raise UserError(
                f"X has shape {values.shape}; the task's records have {self.d}"
                f" features: (n, {self.d})."
            )
        lower, upper = np.array([feature[1:] for feature in self.features]).T
        return np.asarray((np.clip(values, lower, upper) - lower) / (upper - lower))

    def codes(self, y: ArrayLike) -> Codes:
        """Return labels (n,) as class indices; an unknown label is a UserError."""
        places = {name: place for place, name in enumerate(self.classes)}
        labels = [str(label) for label in np.asarray(y).ravel().tolist()]
        unknown = sorted({label for label in labels if label not in places})
        if unknown:
            raise UserError(
                f"y holds {validate.format_value(unknown[0])}; the task's classes are"
                f" {', '.join(self.classes)}."
            )
        return np.array([places[label] for label in labels], dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        """Return the task as plain JSON values."""
        return {
            "format": FORMAT,
            "protocol": self.protocol,
            "asks": self.asks,
            "number": self.number,
            "classes": list(self.classes),
            "features": [list(feature) for feature in self.features],
            "servers": {name: list(level) for name, level in self.servers.items()},
            "release": self.release,
            "params": dict(self.params),
            "seed": self.seed,
        }

    @classmethod
    def from_json(cls, text: Mapping[str, Any]) -> Task:
        """Build the task that `to_json` wrote; anything else is a UserError."""
        from curvote.transfer.task_form import parse_task

        return cls(**parse_task(text))

    def digest(self) -> str:
        """Return the SHA-256 that names this task."""
        return hashlib.sha256(canonical_json(self.to_json())).hexdigest()


def _check_feature(values: Iterable[Any]) -> Feature:
    """Return a feature with finite, increasing bounds, else a UserError."""
    name, lower, upper = values
    if not (-math.inf < lower < upper < math.inf):
        raise UserError(
            f"feature {name}: the bounds are {lower} and {upper}; they must be finite"
            " and increase."
        )
    return Feature(str(name), float(lower), float(upper))


def _check_level(name: str, value: Any) -> Level:
    """Return a server's checked level; a wrong epsilon or delta is a UserError."""
    if isinstance(value, int | float | str):
        value = Level(value)
    elif isinstance(value, Budget):
        value = Level(value.epsilon, value.delta)
    level = Level(*value)
    if level in (Level(PUBLIC), Level(OWN)):
        return level
    try:
        epsilon = validate.positive(epsilon=_require_number(level.epsilon))
        delta = None if level.delta is None else validate.fraction(delta=level.delta)
    except UserError as error:
        raise UserError(f"server {name}: {error}") from None
    return Level(epsilon, delta)


def _require_number(epsilon: float | str) -> float:
    """Return a numeric epsilon; any word is a UserError."""
    if isinstance(epsilon, str):
        words = " or ".join(WITHOUT_NOISE)
        raise UserError(
            f"epsilon is {validate.format_value(epsilon)}; give a number, or {words}"
            " without"
            " a delta."
        )
    return epsilon


def _refuse_repeated(names: list[str]) -> None:
    """Refuse a feature name that stands twice."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise UserError(f"feature {repeated[0]} stands twice.")
