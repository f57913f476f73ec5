"""A stage of production where clients that are here release their message, once.

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
    Facts,
    Here,
    Inputs,
    Params,
    Place,
    Rows,
    Scattered,
    Source,
)
from curvote.entropy import buckets, permutation
from curvote.errors import InternalError
from curvote.protocols.message import Message, dealt, knowledge, messages
from curvote.protocols.roles import Roles, played, set_aside
from curvote.protocols.stages.stated import public, stated
from curvote.representation.basis import roughness
from curvote.task import Asked, Task

# What a client is asked who sends nothing in this stage.
_NOTHING: Final = -1
# Buckets hold fewer rows than a shard: so many 16ths of it in the mean, at most.
_FULL: Final = 15


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the published task, which is all that a client obeys."""
    return described(task_of(inputs, params))


def described(task: Asked) -> Facts:
    """Return a task as facts: in whole, and what server-side stages read of it."""
    named = {"task": task.to_json(), "task_digest": task.digest()}
    if not isinstance(task, Task):
        return named
    rough = {"roughness": roughness(task.encoding.projection).tolist()}
    return named | public(task) | rough


def shards(inputs: Inputs, params: Params, facts: Facts, place: Place) -> int:
    """Return how many shards the clients are."""
    return inputs["ingest"].count("clients", place)


def shared(here: Here) -> Columns:
    """Return what each client is asked about, (n,): a candidate, 0, or nothing (-1)."""
    task, clients = _task(here), here.inputs["ingest"]
    roles, n = dealt_roles(clients, here.params, here.place)
    mine = [*message(here.params).senders.parts(roles)]
    ends = np.cumsum([len(part) for part in mine])
    judge = dealt(task, int(ends[-1]), here.generator("split"))
    asked = np.full(n, _NOTHING, dtype=np.int8 if judge is None else judge.dtype)
    for part, end in zip(mine, ends, strict=True):
        asked[part] = 0 if judge is None else judge[end - len(part) : end]
    return {"asked": asked, "senders": ends[-1:]}


def shard(here: Here, number: int) -> Scattered:
    """Return the messages of a shard: noise from the operating system, no client id."""
    task, kind = _task(here), message(here.params)
    asked = _of(here.shared["asked"], number)
    mine = np.flatnonzero(asked != _NOTHING)
    clients = here.inputs["ingest"].shard(
        "clients", here.place, number, ("curve", "label")
    )
    if len(asked) != len(clients["label"]):
        raise InternalError(f"shard {number} has other clients than were dealt with")
    judge = asked[mine].astype(np.int64) if task.candidates else None
    known = knowledge(task, clients["curve"][mine], clients["label"][mine], judge)
    sent = kind.gather(task, kind.draw(task, known, here.words("draw", number)))
    count = 1 if kind.counted else bucket_count(int(here.shared["senders"][0]))
    to = buckets(_length(sent), count, here.words("bucket", number))
    return Scattered({kind.table: sent}, to, count)


def joined(here: Here, bucket: int, rows: Rows) -> Rows:
    """Return the rows of a bucket in an order that is drawn, or the sum of counts."""
    kind = message(here.params)
    sent = rows[kind.table]
    if kind.counted:
        return {kind.table: summed(sent, kind.counted)}
    order = permutation(_length(sent), here.words("order", bucket))
    return {kind.table: {name: own[order] for name, own in sent.items()}}


def _task(here: Here) -> Task:
    return Task.from_json(here.facts["task"])


def _of(asked: NDArray[Any], number: int) -> NDArray[Any]:
    """Return what the clients of a shard are asked."""
    size = streams.CLIENT_BLOCK
    return np.asarray(asked[number * size : (number + 1) * size])


def bucket_count(senders: int) -> int:
    """Return over how many buckets rows are scattered: a power of two.

    A bucket holds no more rows than a shard, but for a chance that never comes.
    """
    size = streams.CLIENT_BLOCK
    if senders <= size:
        return 1
    return 1 << (-(-senders * 16 // (size * _FULL)) - 1).bit_length()


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def summed(counts: Columns, names: tuple[str, ...]) -> Columns:
    """Return counts of all shards: rows that are alike but for ``names`` add up."""
    (about,) = set(counts) - set(names)
    each, place = np.unique(counts[about], return_inverse=True)
    total = {name: np.zeros(len(each), dtype=np.int64) for name in names}
    for name, values in total.items():
        np.add.at(values, place, counts[name])
    return {about: each} | total


def message(params: Params) -> Message:
    """Return the message that leaves the clients in this stage."""
    return messages(params["protocol"])[params["message"]]


def rows(clients: Columns, params: Params) -> NDArray[np.int64]:
    """Return the rows of the clients who release in this stage."""
    return message(params).senders.rows(played(clients, params, 0))


def senders(clients: Source, params: Params, place: Place) -> NDArray[np.int64]:
    """Return the same, from what is stored of the clients."""
    roles, _ = dealt_roles(clients, params, place)
    return message(params).senders.rows(roles)


def dealt_roles(clients: Source, params: Params, place: Place) -> tuple[Roles, int]:
    """Return the rows of each role, and how many clients there are.

    No more is read than what decides who plays which role.
    """
    names = ["group"] * bool(params["source.groups"])
    first = clients.shard("clients", place, 0, ("part",))
    names += ["part"] * (set_aside(first) is not None)
    parts = [*clients.shards("clients", place, names)] if names else []
    known = {name: np.concatenate([p[name] for p in parts]) for name in names}
    n = _clients(clients, place)
    return played(known | {"label": np.broadcast_to(0, n)}, params, 0), n


def _clients(clients: Source, place: Place) -> int:
    """Return how many clients there are: all shards but the last one are full."""
    last = clients.count("clients", place) - 1
    rest = clients.shard("clients", place, last, ("label",))["label"]
    return last * streams.CLIENT_BLOCK + len(rest)


def task_of(inputs: Inputs, params: Params) -> Task:
    """Return the task of this round: the first states it, the later ones go on."""
    earlier = [source.facts["task"] for source in inputs.values() if _asked(source)]
    given = Task.from_json(earlier[-1]) if earlier else _stated(inputs, params)

    def read(stage: str, table: str) -> Columns:
        return inputs[stage].columns(table, (0,))

    asked: Task = message(params).task(given, read)
    return asked


def _asked(source: Source) -> bool:
    return "task" in source.facts


def _stated(inputs: Inputs, params: Params) -> Task:
    task = stated(message(params), inputs, params)
    constants = inputs["project"].columns("constants", (0,))
    named = dict(zip(constants["name"], constants["value"], strict=True))
    return replace(task, encoding=replace(task.encoding, constants=named))
