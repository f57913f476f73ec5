"""Release stage of production: clients that are here send their message once.

Shards of clients draw apart from each other. Each row then goes to a bucket that the
operating system's words choose, and each bucket is put in an order that they choose:
no place in the table tells whose a row is, not even in which shard its sender stood.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain import streams
from curvote.chain.stage import (
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
from curvote.entropy import random_buckets, random_permutation
from curvote.errors import InternalError
from curvote.protocols.message import (
    Message,
    assign_candidates,
    client_data,
    messages_of,
)
from curvote.protocols.roles import Roles, publisher_test_mask, roles_of_table
from curvote.protocols.stages.stated import configured_task, public_metadata
from curvote.representation.basis import roughness_matrix
from curvote.task import AnyTask, Task

# What a client is asked who sends nothing in this stage.
_NO_CANDIDATE: Final = -1
# Buckets hold fewer rows than a shard: so many 16ths of it in the mean, at most.
_BUCKET_FILL: Final = 15


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the published task, which is all that a client obeys."""
    return task_metadata(task_of(inputs, params))


def task_metadata(task: AnyTask) -> Metadata:
    """Return the metadata of a task: its document, and what servers read."""
    metadata = {"task": task.to_json(), "task_digest": task.digest()}
    if not isinstance(task, Task):
        return metadata
    rough = {"roughness": roughness_matrix(task.encoding.projection).tolist()}
    return metadata | public_metadata(task) | rough


def shards(inputs: Inputs, params: Params, metadata: Metadata, place: Place) -> int:
    """Return how many shards the clients are."""
    return inputs["ingest"].count("clients", place)


def shared(context: StageContext) -> Columns:
    """Return the candidate (n,) of each client; 0 without one, -1 for no sender."""
    task, clients = _metadata_task(context), context.inputs["ingest"]
    roles, n = stored_roles(clients, context.params, context.place)
    sender_rows = [*stage_message(context.params).senders.parts(roles)]
    ends = np.cumsum([len(part) for part in sender_rows])
    assigned = assign_candidates(task, int(ends[-1]), context.generator("split"))
    candidates = np.full(
        n, _NO_CANDIDATE, dtype=np.int8 if assigned is None else assigned.dtype
    )
    for part, end in zip(sender_rows, ends, strict=True):
        candidates[part] = 0 if assigned is None else assigned[end - len(part) : end]
    return {"asked": candidates, "senders": ends[-1:]}


def shard(context: StageContext, number: int) -> Scattered:
    """Return the messages of a shard: noise from the operating system, no client id."""
    task, kind = _metadata_task(context), stage_message(context.params)
    candidates = _shard_slice(context.shared["asked"], number)
    sender_rows = np.flatnonzero(candidates != _NO_CANDIDATE)
    clients = context.inputs["ingest"].shard(
        "clients", context.place, number, ("curve", "label")
    )
    if len(candidates) != len(clients["label"]):
        raise InternalError(f"shard {number} has other clients than were dealt with")
    candidate = candidates[sender_rows].astype(np.int64) if task.candidates else None
    data = client_data(
        task, clients["curve"][sender_rows], clients["label"][sender_rows], candidate
    )
    drawn_rows = kind.collect(
        task, kind.draw(task, data, context.entropy_source("draw", number))
    )
    count = 1 if kind.count_columns else bucket_count(int(context.shared["senders"][0]))
    bucket_numbers = random_buckets(
        _row_count(drawn_rows), count, context.entropy_source("bucket", number)
    )
    return Scattered({kind.table: drawn_rows}, bucket_numbers, count)


def joined(context: StageContext, bucket: int, rows: Rows) -> Rows:
    """Return the rows of a bucket in an order that is drawn, or the sum of counts."""
    kind = stage_message(context.params)
    table_rows = rows[kind.table]
    if kind.count_columns:
        return {kind.table: sum_counts(table_rows, kind.count_columns)}
    order = random_permutation(
        _row_count(table_rows), context.entropy_source("order", bucket)
    )
    return {kind.table: {name: values[order] for name, values in table_rows.items()}}


def _metadata_task(context: StageContext) -> Task:
    return Task.from_json(context.metadata["task"])


def _shard_slice(candidates: NDArray[Any], number: int) -> NDArray[Any]:
    """Return the candidates of the clients of one shard."""
    size = streams.CLIENT_BLOCK
    return np.asarray(candidates[number * size : (number + 1) * size])


def bucket_count(senders: int) -> int:
    """Return the number of buckets that rows are scattered over.

    A bucket holds no more rows than a shard, but for a chance that never comes.
    """
    size = streams.CLIENT_BLOCK
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


def stage_message(params: Params) -> Message:
    """Return the message that leaves the clients in this stage."""
    return messages_of(params["protocol"])[params["message"]]


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
    n = _client_count(clients, place)
    return roles_of_table(columns | {"label": np.broadcast_to(0, n)}, params, 0), n


def _client_count(clients: Source, place: Place) -> int:
    """Return the number of clients, of which all shards but the last are full."""
    last = clients.count("clients", place) - 1
    remainder = clients.shard("clients", place, last, ("label",))["label"]
    return last * streams.CLIENT_BLOCK + len(remainder)


def task_of(inputs: Inputs, params: Params) -> Task:
    """Return the task of this round, stated first and then carried on."""
    earlier = [
        source.metadata["task"] for source in inputs.values() if _has_task(source)
    ]
    base_task = Task.from_json(earlier[-1]) if earlier else _first_task(inputs, params)

    def read(stage: str, table: str) -> Columns:
        return inputs[stage].columns(table, (0,))

    task: Task = stage_message(params).task(base_task, read)
    return task


def _has_task(source: Source) -> bool:
    return "task" in source.metadata


def _first_task(inputs: Inputs, params: Params) -> Task:
    task = configured_task(stage_message(params), inputs, params)
    constants = inputs["project"].columns("constants", (0,))
    values_by_name = dict(zip(constants["name"], constants["value"], strict=True))
    return replace(task, encoding=replace(task.encoding, constants=values_by_name))
