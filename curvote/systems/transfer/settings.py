"""Settings of transfer, their checks, the tasks that follow, and who holds what.

Records are dealt to servers, and the target's set aside for testing, by pure functions
of the seed, which every stage calls; nobody's records are in two places.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from curvote.base.errors import Problem, UserError, did_you_mean
from curvote.base.privacy import refuse_delta
from curvote.chain.axis import PipelineSettings
from curvote.chain.settings import Count, Epsilon, Epsilons, Strict, WholeNumber
from curvote.chain.stage import Columns, Metadata, Params, StageContext, generator
from curvote.chain.system import Part
from curvote.curves.basis import IDENTITY
from curvote.curves.encoding import Encoding
from curvote.data import lookup
from curvote.messages.measures import MAJORITY
from curvote.messages.roles import split_roles
from curvote.systems.common.checks import check_representation
from curvote.systems.common.settings import Clients, Representation
from curvote.systems.transfer.measures import STATED_WEIGHTS, WEIGHED
from curvote.systems.transfer.method import task
from curvote.systems.transfer.method.advice import choose_form

Fault = Literal["flipped", "random"]
Delta = Annotated[float, Field(gt=0, lt=1)]


class Volunteers(Clients):
    """The volunteers, whose records are public; servers hold everybody else."""

    train: Count = 0


class Dealt(Strict):
    """Who learns from whom."""

    target: str | None = None
    test: Count | Annotated[float, Field(gt=0, lt=1)] = 0
    servers: WholeNumber | None = None


class Transfer(Dealt):
    """Who learns from whom (`Dealt`), in which form, and what each server spends."""

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
    if servers and release in task.FORMS:
        params = task.form(release).check_params(params)
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
    weights = transfer["weights"]
    values["methods"] = [STATED_WEIGHTS.name if isinstance(weights, dict) else weights]
    if release == COUNTS:
        values["methods"] = [MAJORITY.name]
    elif weights is None:  # every rule is compared
        values["methods"] = [method.name for method in WEIGHED]
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
) -> task.Task:
    """Return the task of some servers from the metadata of stage ``project``."""
    first_request = next(iter(requests.values()))
    return task.Task(
        features=tuple(public_features(public)),
        classes=public["classes"],
        servers={
            name: task.Level(request["epsilon"], request["delta"])
            for name, request in requests.items()
        },
        release=first_request["release"],
        params=first_request["params"],
        seed=params["seed"],
        number=params.get("number", 1),
    )


def public_features(public: Metadata) -> list[task.Feature]:
    """Return the names and bounds of a record's features."""
    encoding = Encoding.from_json(public["encoding"])
    if not uses_coefficients(encoding):
        return [task.Feature(f"z{i}", *_Z_BOUNDS) for i in range(1, encoding.d + 1)]
    bounds = (
        np.broadcast_to(encoding.constants[end], (encoding.d,)).tolist()
        for end in ("lower", "upper")
    )
    names = [entry["name"] for entry in public.get("features") or ()]
    if encoding.projection.name != IDENTITY or not names:
        names = [f"c{i}" for i in range(1, encoding.d + 1)]
    return [task.Feature(*entry) for entry in zip(names, *bounds, strict=True)]


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


AUTO = "auto"


def resolve_parts(pipeline: PipelineSettings) -> list[Part]:
    """Return the settings resolved for each epsilon, with the form's own rules."""
    release, own_params = pipeline.transfer.release, pipeline.transfer.params
    setups = (_public_setup(pipeline, epsilon) for epsilon in pipeline.epsilon)
    if release != AUTO:
        kind = task.form(release)
        planned = [kind.plan_params(own_params, setup) for setup in setups]
        if all(params == own_params for params in planned):
            return [Part(pipeline)]
        return [
            _make_part(pipeline, epsilon, {"params": params})
            for epsilon, params in zip(pipeline.epsilon, planned, strict=True)
        ]
    parts = []
    for epsilon, setup in zip(pipeline.epsilon, setups, strict=True):
        choice = choose_form(setup)
        weights = pipeline.transfer.weights or choice.weights
        fields = task.form(choice.release).Parameters.model_fields
        # Stated parameters take precedence.
        known_params = {name: own_params[name] for name in own_params if name in fields}
        params = choice.params | known_params
        chosen = {"release": choice.release, "params": params, "weights": weights}
        part = _make_part(pipeline, epsilon, chosen)
        method = f"{choice.release}, {weights}"
        parts.append(replace(part, method=method, reason=choice.reason))
    return parts


def _make_part(
    pipeline: PipelineSettings, epsilon: float, chosen: dict[str, Any]
) -> Part:
    """Return the part of a pipeline at one epsilon with chosen settings."""
    transfer = pipeline.transfer.model_copy(update=chosen)
    update = {"epsilon": [epsilon], "transfer": transfer, "label": pipeline.called}
    return Part(pipeline.model_copy(update=update), (("epsilon", epsilon),))


def _public_setup(pipeline: PipelineSettings, epsilon: float) -> task.PublicSetup:
    """Return the public facts before anything is released."""
    values = pipeline.model_dump(mode="json")
    cell = normalize(values | {"epsilon": epsilon})
    target, sizes = cell["target"], public_sizes(cell["source"], cell["names"])
    size = sizes.get(target)
    if size is not None:
        sizes[target] = size - test_size(values["transfer"]["test"], size)
    d = lookup.record_numbers(pipeline)
    if d is None:
        message = "how many numbers a record has is not known yet; name the release."
        raise UserError(message, where=("transfer", "release"))
    classes = len(lookup.classes(pipeline.source) or ("no", "yes"))
    levels = {
        name: task.Level(request["epsilon"], request["delta"])
        for name, request in cell["told"].items()
    }
    return task.PublicSetup(int(d), classes, sizes, levels, target)


Problems = Iterator[Problem]


def check_settings(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of the settings, those of the servers first."""
    yield from check_servers(pipeline)
    servers = axis_servers(pipeline)
    if servers and not lookup.drawn_per_server(pipeline.source):
        yield from _check_names(pipeline, servers)
        yield from _check_delta(pipeline, servers)
        yield from _check_form(pipeline)
        yield from _check_production(pipeline)


def check_servers(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of servers, target and test records."""
    yield from check_representation(pipeline)
    if lookup.keeps_published_split(pipeline.source):
        message = "it says who is tested, and so does transfer.test: leave it out."
        yield Problem(message, ("source", "split"))
    servers, target = axis_servers(pipeline), pipeline.transfer.target
    if not servers:
        message = "is missing: this source names no servers; say how many share it."
        yield Problem(message, ("transfer", "servers"))
        return
    if lookup.drawn_per_server(pipeline.source):
        message = f"{pipeline.source['name']} draws as many as each server is told."
        yield Problem(message, ("source", "name"))
        return
    yield from _check_known("target", [target] if target else [], servers)
    yield from _check_test(pipeline, servers)
    if lookup.servers(pipeline.source) is not None and pipeline.transfer.servers:
        message = "the source names its servers; none can be dealt."
        yield Problem(message, ("transfer", "servers"))


def _check_known(key: str, names: Iterable[str], servers: list[str]) -> Problems:
    """Yield a problem for each name that is no server."""
    for name in names:
        if name not in servers:
            message = f"there is no server {name!r}.{did_you_mean(name, servers)}"
            yield Problem(message, ("transfer", key))


def axis_servers(pipeline: PipelineSettings) -> list[str]:
    """Return the names of a pipeline's servers."""
    values = pipeline.model_dump(mode="json")
    return server_names(values["source"], values["transfer"])


def _check_names(pipeline: PipelineSettings, servers: list[str]) -> Problems:
    """Yield the problems of settings that name a server."""
    transfer = pipeline.transfer
    yield from _check_known("epsilon", transfer.epsilon, servers)
    yield from _check_known("faults", transfer.faults, servers)
    if isinstance(transfer.weights, dict):
        yield from _check_known("weights", transfer.weights, servers)
    target = transfer.target or servers[0]
    for name, level in transfer.epsilon.items():
        if level == task.OWN_RELEASE and name != target:
            message = f"only the target keeps its own records, and {name} is a source."
            yield Problem(message, ("transfer", "epsilon", name))


def _check_test(pipeline: PipelineSettings, servers: list[str]) -> Problems:
    """Yield the problems of the target's test records."""
    transfer, where = pipeline.transfer, ("transfer", "test")
    if pipeline.production:
        return
    if not transfer.test:
        yield Problem("a study needs records of the target to test on.", where)
    target = transfer.target or servers[0]
    size = public_sizes(pipeline.source, servers).get(target)
    if size is not None and test_size(transfer.test, size) >= size:
        message = f"{target} has {size} records: test fewer than all of them."
        yield Problem(message, where)
    roles = pipeline.clients.model_dump()
    for role in ("train", "vote", "test"):
        if roles[role]:
            message = (
                "servers hold all records: transfer.test says how many are tested."
            )
            yield Problem(message, ("clients", role))


def _check_delta(pipeline: PipelineSettings, servers: list[str]) -> Problems:
    """Yield a problem if delta is no promise to some known size."""
    for name, n in public_sizes(pipeline.source, servers).items():
        try:
            if n is not None:
                refuse_delta(pipeline.transfer.delta or 0.0, n)
        except UserError as error:
            yield Problem(f"{name}: {error}", ("transfer", "delta"))
            return


def _check_form(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of form, weights and parameters."""
    transfer, rules = pipeline.transfer, [method.name for method in WEIGHED]
    release, weights = transfer.release, transfer.weights
    if release not in (AUTO, *task.FORMS):
        hint = did_you_mean(release, (AUTO, *task.FORMS))
        yield Problem(f"{release!r} is not known.{hint}", ("transfer", "release"))
        return
    if isinstance(weights, str) and weights not in rules:
        hint = did_you_mean(weights, rules)
        yield Problem(f"{weights!r} is not known.{hint}", ("transfer", "weights"))
    try:
        if release == AUTO:
            list(resolve_parts(pipeline))
        else:
            task.form(release).check_params(transfer.params)
    except UserError as error:
        yield Problem(str(error), ("transfer", "params"))


def _check_production(pipeline: PipelineSettings) -> Problems:
    """Yield the problems that only production has."""
    if not pipeline.production:
        return
    if not lookup.is_remote(pipeline.source):
        message = "releases come by envelope: each server draws its own, at home."
        yield Problem(message, ("source", "name"))
    if pipeline.transfer.release == AUTO:
        message = "state the form, so that no later rule makes a second release."
        yield Problem(message, ("transfer", "release"))
    elif task.form(pipeline.transfer.release).study:
        message = "it protects less than it claims, so it is for studies only."
        yield Problem(message, ("transfer", "release"))
    if task.OWN_RELEASE in pipeline.transfer.epsilon.values():
        message = "who keeps its own records sends no envelope: combine them in Python."
        yield Problem(message, ("transfer", "epsilon"))
    waits = pipeline.intake
    if waits and (waits.online or waits.stated_minimum(task.ASKS) is not None):
        message = "each server sends one release, and all of them are waited for."
        yield Problem(message, ("intake",))
    if pipeline.transfer.faults:
        yield Problem("is for studies: leave it out.", ("transfer", "faults"))
