"""Settings of transfer between servers, the tasks that follow, and who holds what.

Records are dealt to servers, and the target's set aside for testing, by pure functions
of the seed, which every stage calls; nobody's records are in two places.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from curvote.base.errors import UserError
from curvote.chain.settings import Count, Epsilon, Epsilons, Strict, WholeNumber
from curvote.chain.stage import Columns, Metadata, Params, StageContext, generator
from curvote.curves.basis import IDENTITY
from curvote.curves.encoding import Encoding
from curvote.data import lookup
from curvote.messages.measures import MAJORITY
from curvote.messages.roles import split_roles
from curvote.systems.common.settings import Clients, Representation
from curvote.systems.transfer.measures import STATED_WEIGHTS, WEIGHED
from curvote.systems.transfer.method.task import FORMS, Feature, Level, Task, form

Fault = Literal["flipped", "random"]
Delta = Annotated[float, Field(gt=0, lt=1)]


class Volunteers(Clients):
    """The volunteers, whose records are public; servers hold everybody else."""

    train: Count = 0


class Dealt(Strict):
    """Who learns from whom.

    ``target`` is the server that wants a classifier, the first by default; a study
    takes ``test`` of its records aside, a number or a share. A source that names no
    servers is dealt to ``servers`` of them, whole groups at a time.
    """

    target: str | None = None
    test: Count | Annotated[float, Field(gt=0, lt=1)] = 0
    servers: WholeNumber | None = None


class Transfer(Dealt):
    """Who learns from whom (`Dealt`), in which form, and what each server spends.

    ``release`` is the form of a release with its own ``params``, or `auto`. ``epsilon``
    states a server's own instead of the axis: a number, ``public`` (nothing to protect)
    or, of the target, ``own`` (its records never leave). ``delta`` is everybody's, n^-2
    by default. ``weights`` are a rule or a number for each server; by default a study
    compares all rules, and ``aligned`` is kept. ``decide`` says whether classes count
    alike or as often as in the target. ``faults`` let servers of a study lie.
    ``matrix`` is the epsilon at which a study tries the release of each server alone on
    the records of all.
    """

    release: str = "auto"
    params: dict[str, Any] = {}
    epsilon: dict[str, Epsilon | Literal["public", "own"]] = {}
    delta: Delta | None = None
    weights: str | dict[str, Annotated[float, Field(ge=0)]] | None = None
    decide: Literal["balanced", "prior"] = "balanced"
    faults: dict[str, Fault] = {}
    matrix: Epsilon | None = None


DEFAULT_PROJECT = Representation(basis="identity", rescale="min_max", bounds="public")


class Settings(Strict):
    """What transfer between servers reads."""

    clients: Volunteers = Volunteers()
    project: Representation = DEFAULT_PROJECT
    epsilon: Epsilons
    transfer: Transfer = Transfer()


COUNTS = "counts"
# Settings that say who holds which records.
ALLOCATION_SETTINGS = ("source", "clients", "names", "seed")
_Z_BOUNDS = (-1.0, 1.0)
_DEFAULTS = Transfer().model_dump(mode="json")


def server_names(source: Mapping[str, Any], transfer: Mapping[str, Any]) -> list[str]:
    """Return the server names by code: the source's own, or s1, s2, ..."""
    source_servers = lookup.servers(source)
    if source_servers is not None:
        return list(source_servers)
    return [f"s{number}" for number in range(1, 1 + (transfer["servers"] or 0))]


def target_name(source: Mapping[str, Any], transfer: Mapping[str, Any]) -> str:
    """Return the target's name: the one stated, or the first server."""
    return str(transfer["target"] or server_names(source, transfer)[0])


def method_names(transfer: Mapping[str, Any]) -> list[str]:
    """Return the methods to compare: the stated weights, else every rule."""
    weights = transfer["weights"]
    if transfer["release"] == COUNTS:
        return [MAJORITY.name]
    if weights is None:
        return [method.name for method in WEIGHED]
    return [STATED_WEIGHTS.name if isinstance(weights, dict) else weights]


def normalize(values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with each server's request and level filled in.

    ``asked`` is what the cell's own server is told, ``told`` all of them: a change for
    one server is none for another. ``columns`` says of the source what all share.
    """
    # What settings leave to their defaults may be left out here, too.
    source, transfer = values["source"], _DEFAULTS | values.get("transfer", {})
    servers = server_names(source, transfer)
    wanted_target = target_name(source, transfer)
    release, params = transfer["release"], transfer["params"]
    if servers and release in FORMS:
        params = form(release).check_params(params)
    requests = {
        name: {
            "epsilon": transfer["epsilon"].get(name, values.get("epsilon")),
            "delta": transfer["delta"],
            "release": release,
            "params": params,
        }
        for name in servers
    }
    values |= {"told": requests, "target": wanted_target, "names": servers}
    values["methods"] = method_names(transfer)
    values["columns"] = {k: v for k, v in source.items() if k != "servers"}
    if (server := values.get("server")) is not None:
        values |= {
            "asked": requests[server],
            "held_out": transfer["test"] if server == wanted_target else 0,
            "fault": transfer["faults"].get(server),
        }
    return values


def build_task(
    public: Metadata, requests: Mapping[str, Mapping[str, Any]], params: Params
) -> Task:
    """Return the task of some servers from the metadata of stage ``project``."""
    first_request = next(iter(requests.values()))
    return Task(
        features=tuple(public_features(public)),
        classes=public["classes"],
        servers={name: to_level(request) for name, request in requests.items()},
        release=first_request["release"],
        params=first_request["params"],
        seed=params["seed"],
        number=params.get("number", 1),
    )


def to_level(request: Mapping[str, Any]) -> Level:
    """Return a server's level from its request."""
    return Level(request["epsilon"], request["delta"])


def public_features(public: Metadata) -> list[Feature]:
    """Return the names and bounds of a record's features."""
    encoding = Encoding.from_json(public["encoding"])
    if not uses_coefficients(encoding):
        return [Feature(f"z{i}", *_Z_BOUNDS) for i in range(1, encoding.d + 1)]
    bounds = (
        np.broadcast_to(encoding.constants[end], (encoding.d,)).tolist()
        for end in ("lower", "upper")
    )
    names = [entry["name"] for entry in public.get("features") or ()]
    if encoding.projection.name != IDENTITY or not names:
        names = [f"c{i}" for i in range(1, encoding.d + 1)]
    return [Feature(*entry) for entry in zip(names, *bounds, strict=True)]


def uses_coefficients(encoding: Encoding) -> bool:
    """Return whether servers release of coefficients within bounds, not of z."""
    return encoding.rescale == "min_max"


Rows = NDArray[np.int64]


def server_rows(context: StageContext, records: Columns) -> dict[str, Rows]:
    """Return the rows of ``records`` of each server, volunteers left out."""
    params = context.params
    seed, n = params["seed"], len(records["label"])
    groups = records["group"] if params["source"].get("groups") else None
    roles = split_roles(seed, context.number, n, params["clients"], groups)
    private_rows = np.setdiff1d(np.arange(n), roles["public"])
    if lookup.servers(params["source"]) is not None:
        codes = records["group"][private_rows]
        return {
            name: private_rows[codes == code]
            for code, name in enumerate(params["names"])
        }
    rng = generator(seed, "shared", "deal", context.number)
    piles: list[list[Rows]] = [[] for _ in params["names"]]
    sizes = [0] * len(piles)
    # Each group goes to the smallest pile so far.
    for rows in _shuffle_rows(private_rows, groups, rng):
        smallest = sizes.index(min(sizes))
        piles[smallest].append(rows)
        sizes[smallest] += len(rows)
    return {
        name: np.concatenate(pile)
        for name, pile in zip(params["names"], piles, strict=True)
    }


def split_test(
    context: StageContext, rows: Rows, records: Columns, test: float
) -> tuple[Rows, Rows]:
    """Return (test rows, kept rows) of a server; groups stay together.

    More to be tested than there are, or all of them, is a UserError.
    """
    size = test_size(test, len(rows))
    if size >= len(rows):
        raise UserError(
            f"{size} records are to be tested, but the target holds only {len(rows)}.",
            where=("transfer", "test"),
        )
    source = context.params["source"]
    grouped = lookup.servers(source) is None and source.get("groups")
    groups = records["group"] if grouped else None
    rng = generator(context.params["seed"], "shared", "set_aside", context.number)
    tested, remaining, room = [rows[:0]], [rows[:0]], size
    for group_rows in _shuffle_rows(rows, groups, rng):
        fits = len(group_rows) <= room
        (tested if fits else remaining).append(group_rows)
        room -= len(group_rows) * fits
    return np.concatenate(tested), np.concatenate(remaining)


def test_size(test: float, n: int) -> int:
    """Return the number of test records for a number or a share."""
    return round(test * n) if 0 < test < 1 else int(test)


def _shuffle_rows(
    rows: Rows, groups: NDArray[np.int64] | None, rng: np.random.Generator
) -> list[Rows]:
    """Return the rows in random order, whole groups together."""
    if groups is None:
        return list(rng.permutation(rows)[:, None])
    order = rng.permutation(np.unique(groups[rows]))
    return [rows[groups[rows] == group] for group in order]


def public_sizes(
    source: Mapping[str, object], servers: list[str]
) -> dict[str, int | None]:
    """Return each server's number of records, as far as that is public."""
    server_sizes = lookup.servers(source)
    if server_sizes is not None:
        return dict(server_sizes)
    dataset, parameters = lookup.resolve_source(source)
    total = dataset.size(parameters)
    return {name: None if total is None else total // len(servers) for name in servers}
