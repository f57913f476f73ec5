"""Tasks for tables: one noised release of each server, and the forms it can have.

Every field is public. A server reads `Task.for_server` of itself, which names what it
is asked and nothing of the others: another budget for one server leaves the releases of
all others valid.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, Field, model_validator

from curvote.base import validate
from curvote.base.classes import Classes
from curvote.base.errors import UserError
from curvote.base.privacy import Budget, refuse_delta
from curvote.base.registry import Registry
from curvote.learning.directions import shrink_factor
from curvote.mechanisms.gaussian import GaussianNoise
from curvote.wire.strict_json import StrictForm, read_form
from curvote.wire.task import AnyTask, Epsilon, MechanismParams, Number, TaskForm, Word

PROTOCOL: Final = "transfer"
ASKS: Final = "release"
PUBLIC: Final = "public"
OWN_RELEASE: Final = "own"
WITHOUT_NOISE: Final = (PUBLIC, OWN_RELEASE)

MOST_FEATURES: Final = 1 << 10
MOST_SERVERS: Final = 1 << 12

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


class FeatureForm(StrictForm):
    """JSON form of a feature's three values, by name."""

    name: Word
    lower: Number
    upper: Number


class LevelForm(StrictForm):
    """JSON form of a level's two values, by name."""

    epsilon: Epsilon | Literal["public", "own"]
    delta: Annotated[float, Field(gt=0, lt=1)] | None


class ReleaseForm(TaskForm):
    """JSON form of a task about tables as `Task.to_json` writes it."""

    format: Literal[2]
    protocol: Literal["transfer"]
    asks: Literal["release"]
    features: Annotated[
        list[Annotated[list[Any], Field(min_length=3, max_length=3)]],
        Field(min_length=1, max_length=MOST_FEATURES),
    ]
    servers: Annotated[
        dict[Word, Annotated[list[Any], Field(min_length=2, max_length=2)]],
        Field(min_length=1, max_length=MOST_SERVERS),
    ]
    release: Word
    params: MechanismParams
    seed: Annotated[int, Field(ge=0, le=2**53)]

    @model_validator(mode="after")
    def _check_nested(self) -> ReleaseForm:
        for feature in self.features:
            FeatureForm.model_validate(Feature(*feature)._asdict())
        for level in self.servers.values():
            LevelForm.model_validate(Level(*level)._asdict())
        return self


@dataclass(frozen=True, eq=False)
class Task(AnyTask):
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
        The form of a release (`curvote.systems.transfer.method.forms`).
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

    FORMAT = 2
    REFUSAL = "a release is asked in"
    form = ReleaseForm
    protocol, asks, mechanism = PROTOCOL, ASKS, "gaussian"

    features: tuple[Feature, ...]
    classes: Classes
    servers: Mapping[str, Level]
    release: str = "cells"
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    number: int = 1

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "features", tuple(map(_check_feature, self.features)))
        put(self, "classes", Classes(map(str, self.classes)))
        levels = self.servers.items()
        servers = {str(name): _check_level(name, level) for name, level in levels}
        put(self, "servers", servers)
        names = [feature.name for feature in self.features]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise UserError(f"feature {repeated[0]} stands twice.")
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
    def server(self) -> str:
        """Name of the one server of the task; several are a UserError."""
        if len(self.servers) > 1:
            raise UserError("the task asks several servers; take `only` one.")
        return next(iter(self.servers))

    @property
    def epsilon(self) -> float | str:  # type: ignore[override]  # no task's is written
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

    def payload(self) -> dict[str, Any]:
        """Return the fields that a task about tables adds."""
        return {
            "features": [list(feature) for feature in self.features],
            "servers": {name: list(level) for name, level in self.servers.items()},
            "release": self.release,
            "params": dict(self.params),
            "seed": self.seed,
        }

    @classmethod
    def read_payload(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields, without the words that are the same in every task."""
        return {name: values[name] for name in cls.__dataclass_fields__}


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
    if level in (Level(PUBLIC), Level(OWN_RELEASE)):
        return level
    try:
        if isinstance(level.epsilon, str):
            words = " or ".join(WITHOUT_NOISE)
            raise UserError(
                f"epsilon is {validate.format_value(level.epsilon)}; give a number, or"
                f" {words} without a delta."
            )
        epsilon = validate.positive(epsilon=level.epsilon)
        delta = None if level.delta is None else validate.fraction(delta=level.delta)
    except UserError as error:
        raise UserError(f"server {name}: {error}") from None
    return Level(epsilon, delta)


@dataclass(frozen=True)
class PublicSetup:
    """Numbers of features and classes, and each server's size and level.

    ``sizes`` are numbers of records, None where only the server itself will say it.
    """

    d: int
    classes: int
    sizes: Mapping[str, int | None]
    levels: Mapping[str, Level]
    target: str

    def require_sizes(self) -> dict[str, int]:
        """Return all sizes; an unknown one is a UserError."""
        unknown = [name for name, n in self.sizes.items() if n is None]
        if unknown:
            raise UserError(
                f"how many records {unknown[0]} holds is not known yet, and the rule"
                " asks for it; name the release and its params."
            )
        return {name: n for name, n in self.sizes.items() if n is not None}


# The most that the mean square of the inner product of a query with a record may be.
SPREAD = 1.0


class NoisedSums(Protocol):
    """Protocol of the noised numbers of one server, as a form reads them."""

    @property
    def server(self) -> str:
        """The name of the server."""

    @property
    def n(self) -> int:
        """The public number of its records."""

    @property
    def values(self) -> NDArray[np.int64]:
        """The released whole numbers."""

    @property
    def sigma(self) -> float:
        """The standard deviation of their noise, in steps."""


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Contrasts of the classes in one server's release, with their error variances.

    With S_c the released sum of phi over the records of class c, m the public reference
    mean of phi and p_c = <S_c, m> / sum_k <S_k, m> the server's own rate of class c,
    the contrast T_c = (S_c - p_c sum_k S_k) / n is p_c times the difference of c's mean
    from that of all records: whatever the rates are, it is 0 where a class is as
    frequent as everywhere. All of it is post-processing.

    ``rows`` (R, m) are weights on phi, of the second class where there are two, else
    one for each class, ``main`` (R, k) their part along the public directions in which
    queries differ most: without their constant. ``rates`` (K,) are the classes' shares,
    ``second`` is the mean of phi phi' if it was released. ``noise`` is the variance
    that privacy adds to a coordinate of a row, ``second_noise`` to one of ``second``.
    ``centre`` (d,) is the mean of phi over all records, where decisions take it from
    the sums, ``centre_noise`` the variance of privacy in one of its numbers,
    ``rate_noise`` that in a class's counted share; ``spread`` is the mean square of the
    inner product of a query with a record, at most.
    """

    server: str
    n: int
    rates: Array
    rows: Array
    main: Array
    noise: float
    second: Array | None = None
    second_noise: float = 0.0
    centre: Array | None = None
    centre_noise: float = 0.0
    rate_noise: float = 0.0
    spread: float = SPREAD

    @property
    def likely_rates(self) -> Array:
        """Posterior mean of the classes' shares: before, all shares are as likely."""
        if not self.rate_noise:
            return self.rates
        k = len(self.rates)
        equal, spread = 1 / k, (k - 1) / (k * k * (k + 1))
        part = spread / (spread + (1 - equal) * self.rate_noise)
        return equal + part * (self.rates - equal)

    @property
    def sampling(self) -> float:
        """Variance of a contrast at a query that is due to the n records."""
        return self.spread * self.clear / self.n

    @property
    def variance(self) -> float:
        """Variance of a contrast at a query: sampling and noise."""
        return self.sampling + self.noise

    @property
    def clear(self) -> float:
        """Factor p (1 - p) by which rates shrink a contrast."""
        return float(np.mean(self.rates * (1 - self.rates)))

    @property
    def differences(self) -> Array:
        """Class differences mu_c - mu, (R, k), as for equally frequent classes."""
        shares = self.rates * (1 - self.rates) if len(self.rows) == 1 else self.rates
        return np.asarray(self.main / shares[-len(self.rows) :, np.newaxis])


Steps = NDArray[np.int64]
Refine = Callable[[Array], Array]

# The parameter by which a task takes the centre of records from the sums.
CENTRING: Final = "centring"
# No class is taken to be rarer: a noised rate may even be negative.
RAREST = 0.02


class Form(ABC):
    """Form of a release: whole numbers summed over the records of a server.

    Records come as (n, d) in [0, 1]^d, labels as codes (n,). The numbers of a release
    are ``values`` (length,); divided by ``unit`` they are inner products' weights on
    the public features phi(x) of a record, |phi| = 1: `weights` reads them as rows
    (r, m) and `product` multiplies queries with such rows.
    """

    name: str
    Parameters: type[BaseModel]
    # Whether the rules that weigh the servers choose a bandwidth, too.
    by_bandwidth: ClassVar[bool] = False
    # How such a release must decide, whatever is asked.
    decides: ClassVar[str | None] = None
    # True: not private as it claims; no client answers such a task.
    study: ClassVar[bool] = False

    def fill_params(self, task: Task) -> dict[str, Any]:
        """Return the checked parameters of a task with defaults filled in."""
        return self.settle_params(task, self.check_params(task.params))

    def check_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters with defaults; unknown or wrong ones are a UserError."""
        form = read_form(self.Parameters, dict(params), f"release {self.name}: ")
        left_out = {CENTRING} - form.model_fields_set  # older tasks keep their digest
        return form.model_dump(mode="json", exclude=left_out)

    def plan_params(self, params: dict[str, Any], setup: PublicSetup) -> dict[str, Any]:
        """Return ``params`` completed by the public facts of all servers."""
        return params

    def settle_params(self, task: Task, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters resolved for this task's features and classes."""
        return params

    @abstractmethod
    def length(self, task: Task) -> int:
        """Return the number of numbers of a release."""

    @abstractmethod
    def unit(self, task: Task) -> float:
        """Return the length, in steps, of a feature vector of norm 1."""

    @abstractmethod
    def sensitivity(self, task: Task) -> float:
        """Return the largest L2 distance, in steps, of the sums of two neighbours."""

    def noise(self, task: Task, budget: Budget) -> GaussianNoise:
        """Return the noise of a release at ``budget``."""
        return GaussianNoise(self.sensitivity(task), budget.epsilon, budget.delta)

    @abstractmethod
    def sums(self, task: Task, cube: Array, codes: Steps) -> Steps:
        """Return the numbers of a table, (length,), without noise."""

    @abstractmethod
    def weights(self, task: Task, values: Array) -> Array:
        """Return sums of phi over records, (r, m), as released."""

    @abstractmethod
    def product(self, task: Task, cube: Array, weights: Array) -> Array:
        """Return phi(x) . w for queries (q, d) and rows (r, m): (q, r)."""

    def multiply_all(self, task: Task, cube: Array, weights: Array) -> Array:
        """Return `product` at each of the release's bandwidths, (B, q, r); B is 1."""
        return self.product(task, cube, weights)[np.newaxis]

    def has_several_bandwidths(self, task: Task) -> bool:
        """Return whether a release has several bandwidths to choose from."""
        return False

    @abstractmethod
    def side(self, task: Task, release: NoisedSums) -> Contrasts:
        """Return the contrasts of the classes in one server's release."""

    def odds(self, task: Task, main: Array, noise: float) -> float:
        """Return the log-odds per unit of a score.

        ``main`` (R, k) are the differences that make it, ``noise`` the variance of
        each of their numbers. Without it only `balanced` decisions can be made.
        """
        raise UserError(f"release {self.name} tells no rates: it decides balanced.")

    def constant(self, task: Task) -> Array:
        """Return weights (m,) of a public, nowhere negative function."""
        raise UserError(f"release {self.name} tells no rates: it decides balanced.")

    def refined(
        self, task: Task, sides: Sequence[Contrasts], shares: Array, target: int
    ) -> Refine:
        """Return the map applied to contrasts (r, m) in use: the identity.

        ``shares`` (J,) are the weights of the ``sides``, ``target`` the target's place.
        """
        return lambda rows: rows


class ClassSums(Form):
    """Base of forms whose `weights` are the sums of phi over each class."""

    def side(self, task: Task, release: NoisedSums) -> Contrasts:
        """Return the contrasts of the classes in a release of class sums."""
        sums = self.weights(task, release.values.astype(np.float64) / release.n)
        rates = self.rates(task, sums)
        used = slice(1, 2) if len(sums) == 2 else slice(None)
        rows = (sums - np.outer(rates, sums.sum(axis=0)))[used]
        rows = self.without_constant(task, rows)
        row_scale = (1 - rates[used]) ** 2 + (len(rates) - 1) * rates[used] ** 2
        unit = (release.sigma / self.unit(task) / release.n) ** 2
        main, noise = rows @ self.main(task), unit * float(row_scale.mean())
        return Contrasts(release.server, release.n, rates, rows, main, noise)

    def rates(self, task: Task, sums: Array) -> Array:
        """Return the classes' shares (K,) of sums (K, m)."""
        return _class_rates(self.reference(task, sums))

    def without_constant(self, task: Task, rows: Array) -> Array:
        """Return rows (r, m) of mean 0 over the public reference."""
        return rows - np.outer(self.reference(task, rows), self.constant(task))

    @abstractmethod
    def reference(self, task: Task, weights: Array) -> Array:
        """Return phi . w, (r,), for the mean phi of the public reference."""

    @abstractmethod
    def constant(self, task: Task) -> Array:
        """Return weights (m,) of the constant part that contrasts lose."""

    @abstractmethod
    def main(self, task: Task) -> Array:
        """Return the directions (m, k), of norm 1, in which queries differ most."""

    @abstractmethod
    def direction_variances(self, task: Task) -> Array:
        """Return the variance (k,) of public reference points along each of them."""

    def odds(self, task: Task, main: Array, noise: float) -> float:
        """Return 1/v, v the variance within a class along the differences.

        Log-odds are <mu_1 - mu_0, phi>/v for classes of equal spread; differences are
        shrunk by their noise first.
        """
        signal = shrink_factor(main, noise * main.size)
        if not signal:
            return 0.0
        energies = (main**2).sum(axis=0)
        within = energies @ self.direction_variances(task)
        return signal * float(energies.sum() / within)


def _class_rates(reference: Array) -> Array:
    """Return class shares (K,) that sum to 1, none below `RAREST`."""
    total = float(reference.sum())
    if total <= 0:
        return np.full(len(reference), 1 / len(reference))
    return _bounded_shares(reference / total)


def counted_rates(counts: Array) -> Array:
    """Return class shares from noised ones of known sum 1, none below `RAREST`.

    What the sum departs from 1 is noise, of each class as much.
    """
    return _bounded_shares(counts + (1 - counts.sum()) / len(counts))


def _bounded_shares(shares: Array) -> Array:
    shares = np.maximum(shares, 2 * RAREST / len(shares))
    return np.asarray(shares / shares.sum())


_FORMS = {
    "cells": "curvote.systems.transfer.method.forms.cells:Cells",
    "moments": "curvote.systems.transfer.method.forms.moments:Moments",
    "kernel": "curvote.systems.transfer.method.forms.kernel:Kernel",
    "printed": "curvote.systems.transfer.method.forms.kernel:Printed",
    "counts": "curvote.systems.transfer.method.forms.cells:Counts",
}
FORMS = Registry("release", _FORMS)


def form(name: str) -> Form:
    """Return the form of this name; an unknown one is a UserError."""
    kind: Form = FORMS.load(name)()
    return kind
