"""Stages that all systems share: ingestion, releases and collection."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.classes import Classes
from curvote.base.entropy import (
    SystemEntropy,
    random_buckets,
    random_permutation,
)
from curvote.base.errors import InternalError
from curvote.base.object_store import as_path
from curvote.chain import lookup
from curvote.chain.stage import (
    CLIENT_BLOCK,
    Columns,
    Inputs,
    Metadata,
    Params,
    Place,
    Rows,
    Scattered,
    Source,
    StageContext,
)
from curvote.curves.basis import roughness_matrix
from curvote.curves.encoding import Encoding
from curvote.data.lookup import resolve_source
from curvote.intake.box import Intake
from curvote.learning.sums import MessageSums, SumForm
from curvote.learning.votes import decline_of_votes
from curvote.messages import message
from curvote.messages.roles import Roles, publisher_test_mask, roles_of_table
from curvote.wire.task import AnyTask, Task


def ingest_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return what is public about the source: classes, servers, grid, unit, notes."""
    dataset, parameters = resolve_source(params["source"])
    return dict(dataset.facts(parameters, _raw_paths(params)))


def ingest(context: StageContext) -> Rows:
    """Return the table ``clients``, simulated anew for this repetition."""
    dataset, parameters = resolve_source(context.params["source"])
    n = dataset.size(parameters)
    if n is None:  # as many as play a role
        n = sum((context.params["clients"] or {}).values())
    # A repetition of one server's clients says which one behind the replicate.
    server = context.place[1:]
    rng = context.generator("simulate")
    return {"clients": dataset.clients(parameters, n, rng, *server)}


def ingest_shared_rows(
    inputs: Inputs, params: Params, metadata: Metadata
) -> Iterator[dict[str, Any]]:
    """Yield the table ``clients`` that all replicates share, some clients at a time."""
    dataset, parameters = resolve_source(params["source"])
    if hasattr(dataset, "pieces"):
        for columns in dataset.pieces(parameters, _raw_paths(params)):
            yield {"clients": columns}
        return
    yield {"clients": dataset.clients(parameters, _raw_paths(params))}


def client_groups(params: Params) -> Iterator[Columns]:
    """Yield id, group and part of all clients, without any curve."""
    dataset, parameters = resolve_source(params["source"])
    if hasattr(dataset, "members"):
        yield from dataset.members(parameters, _raw_paths(params))
        return
    for piece in ingest_shared_rows({}, params, {}):
        clients = piece["clients"]
        names = [name for name in ("client_id", "group", "part") if name in clients]
        yield {name: clients[name] for name in names}


def is_simulated(params: Params) -> bool:
    """Say whether the source draws its curves instead of reading them."""
    return bool(resolve_source(params["source"])[0].SIMULATED)


def _raw_paths(params: Params) -> dict[str, Path]:
    return {name: as_path(path) for name, path in params.get("raw.paths", {}).items()}


def configured_task(kind: message.Message, inputs: Inputs, params: Params) -> Task:
    """Return the task that the configuration states for one kind of message.

    Constants that volunteers decide are not in it. Nobody publishes that of a study:
    it has no protocol, and names the feature map only where a stage says that it
    matters.
    """
    public = inputs["project"].metadata
    encoding = Encoding.from_json(public["encoding"])
    feature_map = params.get("project.judge", encoding.feature_map)
    encoding = replace(encoding, feature_map=feature_map)
    return Task(
        encoding=encoding,
        classes=Classes(public["classes"]),
        epsilon=params["epsilon"],
        protocol=params.get("protocol", ""),
        asks=kind.name,
        number=params.get("number", 1),
        **kind.terms(params.__getitem__, encoding),
    )


def study_metadata(kind: message.Message, inputs: Inputs, params: Params) -> Metadata:
    """Return the metadata that later stages read of a study stage."""
    roughness = {"roughness": inputs["project"].metadata["roughness"]}
    return public_metadata(configured_task(kind, inputs, params)) | roughness


def public_metadata(task: Task) -> Metadata:
    """Return the metadata of a task that server-side stages read."""
    return {
        "d": task.encoding.d,
        "gram": task.encoding.projection.gram.tolist(),
        "epsilon": task.epsilon,
        "mechanism": task.mechanism,
        "params": dict(task.params),
        "n_classes": len(task.classes),
    }


# What a client is asked who sends nothing in this stage.
_NO_CANDIDATE: Final = -1
# Buckets hold fewer rows than a shard: so many 16ths of it in the mean, at most.
_BUCKET_FILL: Final = 15


def release_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the published task, which is all that a client obeys."""
    task, kind = release_task(inputs, params), stage_message(params)
    keep = {"keep": "rows"} if kind.summed else {}
    return task_metadata(task) | keep


def task_metadata(task: AnyTask) -> Metadata:
    """Return the metadata of a task: its document, and what servers read."""
    metadata = {"task": task.to_json(), "task_digest": task.digest()}
    if not isinstance(task, Task):
        return metadata
    rough = {"roughness": roughness_matrix(task.encoding.projection).tolist()}
    return metadata | public_metadata(task) | rough


def release_shard_count(
    inputs: Inputs, params: Params, metadata: Metadata, place: Place
) -> int:
    """Return how many shards the clients are."""
    return inputs["ingest"].count("clients", place)


def release_shared(context: StageContext) -> Columns:
    """Return the candidate (n,) of each client; 0 without one, -1 for no sender."""
    task, clients = _metadata_task(context), context.inputs["ingest"]
    roles, n = stored_roles(clients, context.params, context.place)
    sender_rows = [*stage_message(context.params).senders.parts(roles)]
    ends = np.cumsum([len(part) for part in sender_rows])
    assigned = message.assign_candidates(
        task, int(ends[-1]), context.generator("split")
    )
    dtype = np.int8 if assigned is None else assigned.dtype
    candidates = np.full(n, _NO_CANDIDATE, dtype=dtype)
    for part, end in zip(sender_rows, ends, strict=True):
        candidates[part] = 0 if assigned is None else assigned[end - len(part) : end]
    return {"asked": candidates, "senders": ends[-1:]}


def release_shard(context: StageContext, number: int) -> Scattered:
    """Return the messages of a shard: noise from the operating system, no client id."""
    task, kind = _metadata_task(context), stage_message(context.params)
    start = number * CLIENT_BLOCK
    candidates = context.shared["asked"][start : start + CLIENT_BLOCK]
    rows = np.flatnonzero(candidates != _NO_CANDIDATE)
    clients = context.inputs["ingest"].shard(
        "clients", context.place, number, ("curve", "label")
    )
    if len(candidates) != len(clients["label"]):
        raise InternalError(f"shard {number} has other clients than were dealt with")
    candidate = candidates[rows].astype(np.int64) if task.candidates else None
    data = message.client_data(
        task, clients["curve"][rows], clients["label"][rows], candidate
    )
    messages = kind.draw(task, data, context.entropy_source("draw", number))
    table_rows = kind.collect(task, messages)
    count = 1 if kind.count_columns else bucket_count(int(context.shared["senders"][0]))
    entropy = context.entropy_source("bucket", number)
    buckets = random_buckets(_row_count(table_rows), count, entropy)
    return Scattered({kind.table: table_rows}, buckets, count)


def release_join(context: StageContext, bucket: int, rows: Rows) -> Rows:
    """Return the rows of a bucket in an order that is drawn, or the sum of counts."""
    kind = stage_message(context.params)
    table_rows = rows[kind.table]
    if kind.count_columns:
        return {kind.table: sum_counts(table_rows, kind.count_columns)}
    entropy = context.entropy_source("order", bucket)
    order = random_permutation(_row_count(table_rows), entropy)
    return {kind.table: {name: values[order] for name, values in table_rows.items()}}


def _metadata_task(context: StageContext) -> Task:
    return Task.from_json(context.metadata["task"])


def bucket_count(senders: int) -> int:
    """Return the number of buckets that rows are scattered over.

    A bucket holds no more rows than a shard, but for a chance that never comes.
    """
    size = CLIENT_BLOCK
    if senders <= size:
        return 1
    return 1 << (-(-senders * 16 // (size * _BUCKET_FILL)) - 1).bit_length()


def _row_count(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def sum_counts(counts: Columns, names: tuple[str, ...]) -> Columns:
    """Return counts of all shards, added up over equal rows."""
    (about,) = set(counts) - set(names)
    groups, place = np.unique(counts[about], return_inverse=True)
    total = {name: np.zeros(len(groups), dtype=np.int64) for name in names}
    for name, values in total.items():
        np.add.at(values, place, counts[name])
    return {about: groups} | total


def stage_message(params: Params) -> message.Message:
    """Return the message that leaves the clients in this stage."""
    return message.messages_of(params["protocol"])[params["message"]]


def sending_rows(clients: Columns, params: Params) -> NDArray[np.int64]:
    """Return the row numbers of the clients who release in this stage."""
    return stage_message(params).senders.rows(roles_of_table(clients, params, 0))


def stored_sending_rows(
    clients: Source, params: Params, place: Place
) -> NDArray[np.int64]:
    """Return the row numbers of senders from the stored clients."""
    roles, _ = stored_roles(clients, params, place)
    return stage_message(params).senders.rows(roles)


def stored_roles(clients: Source, params: Params, place: Place) -> tuple[Roles, int]:
    """Return the rows of each role, and how many clients there are.

    No more is read than what decides who plays which role.
    """
    names = ["group"] * bool(params["source.groups"])
    first = clients.shard("clients", place, 0, ("part",))
    names += ["part"] * (publisher_test_mask(first) is not None)
    parts = [*clients.shards("clients", place, names)] if names else []
    columns = {name: np.concatenate([p[name] for p in parts]) for name in names}
    # All shards but the last are full.
    last = clients.count("clients", place) - 1
    remainder = clients.shard("clients", place, last, ("label",))["label"]
    n = last * CLIENT_BLOCK + len(remainder)
    return roles_of_table(columns | {"label": np.broadcast_to(0, n)}, params, 0), n


def release_task(inputs: Inputs, params: Params) -> Task:
    """Return the task of this round, stated first and then carried on."""
    earlier = [
        source.metadata["task"]
        for source in inputs.values()
        if "task" in source.metadata
    ]
    base_task = Task.from_json(earlier[-1]) if earlier else _first_task(inputs, params)

    def read(stage: str, table: str) -> Columns:
        return inputs[stage].columns(table, (0,))

    task: Task = stage_message(params).task(base_task, read)
    return task


def _first_task(inputs: Inputs, params: Params) -> Task:
    task = configured_task(stage_message(params), inputs, params)
    project = inputs["project"]
    complete = task.encoding.completed(lambda table: project.columns(table, (0,)))
    return replace(task, encoding=complete)


# A stage that states its task in another way has a ``task_of`` of its own.
collect_task = release_task


def collect_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the task as published, the batches, and the evidence of a decline.

    ``batches`` counts the messages as they were folded in, and ``decline`` is the
    evidence that classifiers became worse meanwhile (`votes.decline_of_votes`); None
    where nothing compares.
    """
    task = lookup.read_task(params["intake.task"])
    keep, batches = _accepted_batches(params)
    evidence = None
    if len(batches) > 1:
        tables = [_message_table(task, params, keep, [batch]) for batch in batches]
        if {"n", "positive"} <= {*tables[0]}:
            counts = ([table[name] for table in tables] for name in ("n", "positive"))
            evidence = decline_of_votes(*map(np.array, counts))
    metadata: dict[str, Any] = {"batches": [batch.n for batch in batches]}
    metadata["decline"] = evidence
    if keep is not None:
        metadata["keep"] = keep
    if batches[0].form.field:
        metadata["sums"] = MessageSums.of_all(batches).words
    return task_metadata(task) | metadata


def collect(context: StageContext) -> Rows:
    """Return the message's table from the accepted envelopes.

    Rows stand in random order. Of vectors that were summed it is empty: their sums
    stand in the metadata, as integers.
    """
    task, params = lookup.read_task(context.metadata["task"]), context.params
    table = _message_table(task, params, *_accepted_batches(params))
    return {stage_message(params).table: table}


def _accepted_batches(params: Params) -> tuple[str | None, list[MessageSums]]:
    """Return how messages were kept, and those that the step was named after, by batch.

    Those that were accepted or folded in since are left to the next run.
    """
    with Intake(Path(params["intake.path"])) as intake:
        round_id = params["intake.round"]
        batches = intake.batches(round_id, params["accepted"])
        return intake.require_round(round_id).keep, [*batches.values()]


def _message_table(
    task: AnyTask, params: Params, keep: str | None, batches: list[MessageSums]
) -> Columns:
    kind, total = stage_message(params), MessageSums.of_all(batches)
    if total.form.field:
        no_rows = {name: np.empty(0) for name in kind.payload_of(task).model_fields}
        return kind.collect(task, no_rows)
    payloads, counts = zip(*total.payloads(), strict=True)
    columns = message.payload_columns([*payloads])
    order = np.repeat(np.arange(len(counts)), counts)
    if SumForm.from_text(keep) is None:
        order = order[random_permutation(len(order), SystemEntropy())]
    return kind.collect(task, {name: values[order] for name, values in columns.items()})
