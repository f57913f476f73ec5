"""What may stand in pipelines.yaml: unknown keys are errors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Whole = Annotated[int, Field(ge=1, strict=True)]
Count = Annotated[int, Field(ge=0, strict=True)]
Epsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Numbers = float | list[float]


class Strict(BaseModel):
    """A frozen model that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class Clients(Strict):
    """How many clients play each role; ``public`` are the volunteers."""

    public: Count = 0
    train: Whole
    vote: Count = 0
    test: Count = 0


class Representation(Strict):
    """How a curve becomes d numbers in [-1, 1]; everything here is public.

    ``bounds`` says where those of ``min_max`` come from: stated here (``lower`` and
    ``upper``), the public ones of the data set, or the data (which is not private).
    A ``public`` centre is the data set's, too; a public scale lets the farther of a
    feature's public bounds lie three scales from the centre.
    """

    basis: str
    size: Whole | None = None
    order: Whole = 4
    coordinates: Literal["coefficients", "orthonormal"] = "coefficients"
    rescale: str = "tanh"
    centre: Numbers | Literal["volunteers", "public"] = 0.0
    scale: Numbers | Literal["volunteers", "public"] = 1.0
    lower: Numbers = -1.0
    upper: Numbers = 1.0
    bounds: Literal["stated", "public", "from_data"] = "stated"
    judge: Literal["rescaled", "coefficients", "inner_products"] = "rescaled"

    @property
    def volunteers(self) -> bool:
        """Whether constants come from volunteers."""
        centred = self.rescale in {"tanh", "standard"}
        return centred and "volunteers" in (self.centre, self.scale)


class Privatize(Strict):
    """The mechanism of a report and the part of its budget that the label gets.

    ``params`` are the mechanism's own, such as the delta of ``gaussian``.
    """

    mechanism: str = "laplace"
    params: dict[str, Any] = {}
    label_share: Literal["equal"] | Annotated[float, Field(gt=0, lt=1)] = "equal"


class Train(Strict):
    """``count`` weak classifiers, each trained on ``size`` reports."""

    count: Whole
    size: Annotated[int, Field(ge=2, strict=True)]


class Aggregate(Strict):
    """The utility above which a classifier counts, and what to do when none does.

    Weights are its excess over the cutoff, or the distance from 1/2 (as published).
    """

    cutoff: Annotated[float, Field(ge=0.5, lt=1)] = 0.8
    when_none_pass: Literal["soft", "best", "uniform"] = "soft"
    weights: Literal["excess", "distance"] = "excess"


class Histogram(Strict):
    """The histogram baseline: each axis of [-1, 1]^d is cut into ``bins`` parts."""

    bins: Annotated[int, Field(ge=2, strict=True)] = 4


class Federation(Strict):
    """How many servers share what they learn; for a source with several servers.

    ``split`` says how the voters serve own and foreign classifiers: split among them,
    or asked twice with half the budget each, or own ones only (``single``). ``cutoff``
    is that of the second averaging. ``faults`` lets servers answer badly, to see that
    the others go on: ``nan``, ``dimension``, ``huge``, ``weights`` or ``silent`` by
    server.
    """

    split: Literal["clients", "budget", "single"] = "clients"
    cutoff: Annotated[float, Field(ge=0.5, lt=1)] = 0.8
    faults: dict[int, Literal["nan", "dimension", "huge", "weights", "silent"]] = {}


class Drift(Strict):
    """The report ``at`` which protocol ``drift`` compares noised and clean labels."""

    at: float = 0.0


class Direct(Strict):
    """How clients of protocol ``direct`` report, and the constant beside their z.

    ``auto`` takes the arm that N, d and epsilon call for; ``intercept`` is public.
    """

    arm: Literal["auto", "mean", "joint", "two"] = "auto"
    intercept: Literal["auto"] | Annotated[float, Field(gt=0)] = "auto"


class Votes(Strict):
    """How many random directions the clients of protocol ``votes`` judge."""

    directions: Whole = 100


class Online(Strict):
    """Evaluation clients who arrive in groups, and what their votes change.

    ``arrivals`` groups have come so far. Votes fade by ``memory`` an arrival. Where
    the ensemble's utility fell by ``drop`` standard errors, ``more`` classifiers are
    trained on the newest reports.
    """

    arrivals: Whole = 1
    memory: Annotated[float, Field(gt=0, le=1)] = 1.0
    more: Whole = 20
    drop: Annotated[float, Field(gt=0)] = 3.0


class Learner(Strict):
    """A learner, the label that tables show, and its own parameters."""

    name: str
    label: str
    params: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"name": given, "label": given}
        if not isinstance(given, dict) or "name" not in given or "params" in given:
            return given
        params = {k: v for k, v in given.items() if k not in ("name", "label")}
        label = given.get("label", given["name"])
        return {"name": given["name"], "label": label, "params": params}


class Schedule(Strict):
    """When `curvote serve` runs a pipeline: a cron line, or an interval in seconds."""

    cron: str | None = None
    timezone: str = "UTC"
    interval: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Schedule:
        if (self.cron is None) == (self.interval is None):
            raise ValueError("give either cron or interval, not both and not neither")
        return self


class Cap(Strict):
    """The most that may ever be released about one client."""

    epsilon: Epsilon
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Accounts(Strict):
    """What the ledger allows; pipelines of one ``population`` share their clients."""

    per_client: Cap
    population: str | None = None


class Intake(Strict):
    """How many envelopes a round waits for; by default one from everybody invited.

    ``online`` leaves a complete round of votes open: each run folds in the votes that
    were accepted since the last one, ``fold`` of them at least. ``sealed`` gives each
    new round a key that envelopes are sealed to: who carries them learns sizes only.
    """

    min_reports: Whole | None = None
    min_votes: Whole | None = None
    min_refinements: Whole | None = None
    online: bool = False
    # One vote alone, folded in, would belong to the one invitation that was just used.
    fold: Annotated[int, Field(ge=2, strict=True)] = 50
    sealed: bool = False


class Pipeline(Strict):
    """One pipeline with every default filled in.

    ``as_published`` takes the definitions that match MRMA's printed tables instead of
    the right ones. ``protocols`` and the axes of ``grid`` make the settings of one run,
    all on the same clients; ``label`` is what tables call the protocol of one.
    ``liars`` is the share of clients that ``auto`` should expect to lie.
    """

    mode: Literal["study", "production"] = "study"
    protocol: str = "mrma"
    protocols: list[str | dict[str, Any]] = []
    label: str | None = None
    source: dict[str, Any]
    clients: Clients
    project: Representation
    liars: Annotated[float, Field(ge=0, lt=0.5)] = 0.0
    privatize: Privatize = Privatize()
    train: Train | None = None
    direct: Direct = Direct()
    votes: Votes = Votes()
    aggregate: Aggregate = Aggregate()
    histogram: Histogram = Histogram()
    federation: Federation = Federation()
    online: Online = Online()
    drift: Drift = Drift()
    as_published: bool = False
    grid: dict[str, list[Any] | dict[str, dict[str, Any]]] = {}
    epsilon: Annotated[list[Epsilon], Field(min_length=1)]
    learners: list[Learner] = []
    replicates: Whole = 100
    seed: Count = 0
    schedule: Schedule | None = None
    ledger: Accounts | None = None
    intake: Intake | None = None

    @property
    def production(self) -> bool:
        """Whether real clients release something."""
        return self.mode == "production"

    @property
    def called(self) -> str:
        """What tables call the protocol."""
        return self.label or self.protocol

    @property
    def population(self) -> str:
        """Whose clients these are, as the ledger calls them."""
        named = self.ledger.population if self.ledger else None
        return named or str(self.source["name"])

    @model_validator(mode="before")
    @classmethod
    def _one_run(cls, given: Any) -> Any:
        """A production run is one run: the file's default for studies is no matter."""
        if isinstance(given, dict) and given.get("mode") == "production":
            return given | {"replicates": 1}
        return given

    @model_validator(mode="before")
    @classmethod
    def _one_epsilon(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("epsilon"), int | float):
            return given | {"epsilon": [given["epsilon"]]}
        return given


class Defaults(Strict):
    """What every pipeline may inherit."""

    seed: Any = None
    replicates: Any = None
    epsilon: Any = None
    learners: Any = None
