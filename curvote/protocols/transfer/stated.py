"""What settings say of the servers: their names, and what each of them is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from curvote.chain.stage import Facts, Params
from curvote.datasets import lookup
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.transfer.methods import STATED, WEIGHED
from curvote.protocols.transfer.settings import Transfer
from curvote.representation.basis import IDENTITY
from curvote.representation.encoding import Encoding
from curvote.transfer.forms import FORMS, form
from curvote.transfer.task import Feature, Level, Task

Values = dict[str, Any]

COUNTS = "counts"
# Settings that say who holds which records.
WHO = ("source", "clients", "names", "seed")
_Z = (-1.0, 1.0)
_DEFAULTS = Transfer().model_dump(mode="json")


def names(source: Mapping[str, Any], transfer: Mapping[str, Any]) -> list[str]:
    """Return the servers in the order of their codes: the source's, or those dealt."""
    known = lookup.servers(source)
    if known is not None:
        return list(known)
    return [f"s{number}" for number in range(1, 1 + (transfer["servers"] or 0))]


def target(source: Mapping[str, Any], transfer: Mapping[str, Any]) -> str:
    """Return the server that wants a classifier: the one named, or the first."""
    return str(transfer["target"] or names(source, transfer)[0])


def methods(transfer: Mapping[str, Any]) -> list[str]:
    """Return what is tried: the weights that are stated, else every rule there is."""
    weights = transfer["weights"]
    if transfer["release"] == COUNTS:
        return [MAJORITY.name]
    if weights is None:
        return [each.name for each in WEIGHED]
    return [STATED.name if isinstance(weights, dict) else weights]


def spelled(values: Values) -> Values:
    """Add what stages read of a cell: what each server is asked, and spends.

    ``asked`` is what the cell's own server is told, ``told`` all of them: a change for
    one server is none for another. ``columns`` says of the source what all share.
    """
    # What settings leave to their defaults may be left out here, too.
    source, transfer = values["source"], _DEFAULTS | values.get("transfer", {})
    servers, wants = names(source, transfer), target(source, transfer)
    told = {name: _told(values, transfer, name) for name in servers}
    values |= {"told": told, "target": wants, "names": servers}
    values["methods"] = methods(transfer)
    values["columns"] = {k: v for k, v in source.items() if k != "servers"}
    if (server := values.get("server")) is not None:
        values |= {
            "asked": told[server],
            "held_out": transfer["test"] if server == wants else 0,
            "fault": transfer["faults"].get(server),
        }
    return values


def _told(values: Values, transfer: Values, server: str) -> dict[str, Any]:
    """Return what one server is asked, as plain values."""
    return {
        "epsilon": transfer["epsilon"].get(server, values.get("epsilon")),
        "delta": transfer["delta"],
        "release": transfer["release"],
        "params": _filled(transfer["release"], transfer["params"]),
    }


def _filled(release: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return a form's parameters with defaults: who states those is asked the same."""
    return form(release).checked(params) if release in FORMS else params


def task(public: Facts, told: Mapping[str, Mapping[str, Any]], params: Params) -> Task:
    """Return the task of some servers about what the stage ``project`` has told."""
    one = next(iter(told.values()))
    return Task(
        features=tuple(features(public)),
        classes=public["classes"],
        servers={name: level(each) for name, each in told.items()},
        release=one["release"],
        params=one["params"],
        seed=params["seed"],
        number=params.get("number", 1),
    )


def level(told: Mapping[str, Any]) -> Level:
    """Return what a server spends, in words that a task has for it."""
    return Level(told["epsilon"], told["delta"])


def features(public: Facts) -> list[Feature]:
    """Return names and bounds of what a record has: its numbers, or their z."""
    encoding = Encoding.from_json(public["encoding"])
    if not raw(encoding):
        return [Feature(f"z{i}", *_Z) for i in range(1, encoding.d + 1)]
    bounds = (
        np.broadcast_to(encoding.constants[end], (encoding.d,)).tolist()
        for end in ("lower", "upper")
    )
    called = [each["name"] for each in public.get("features") or ()]
    own = called if encoding.projection.name == IDENTITY and called else None
    every = own or [f"c{i}" for i in range(1, encoding.d + 1)]
    return [Feature(*each) for each in zip(every, *bounds, strict=True)]


def raw(encoding: Encoding) -> bool:
    """Say whether servers speak of coefficients within public bounds, not of z."""
    return encoding.rescale == "min_max"
