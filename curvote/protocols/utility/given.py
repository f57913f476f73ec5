"""One repetition's question: a model, the records it will see, and what is public."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns as Rows
from curvote.chain.stage import Facts, Here
from curvote.errors import InternalError, UserError
from curvote.protocols.labels.packing import unpacked
from curvote.protocols.roles import played
from curvote.protocols.utility.columns import Columns, columns_of, names_of
from curvote.protocols.utility.methods import FEATURES
from curvote.utility.engines.linear import LinearModel
from curvote.utility.projected import directions, projected
from curvote.utility.projections import Coordinates, principal
from curvote.utility.setting import Setting, setting
from curvote.validate import FloatArray

Settings = dict[str, Setting]


def settings_of(here: Here) -> Settings:
    """Return the settings by what is sent: the features, and each projection."""
    return dict(_settings(here, asked(here)))


def asked(here: Here) -> Setting:
    """Return the question about the features themselves, or the coefficients."""
    own, params = _own(here), here.params
    roles = played(own.clients, params, here.number)
    test, train, public = roles["test"], roles["train"], roles["public"]
    labels = own.clients["label"]
    return setting(
        _model(here),
        own.records[test],
        sensitive=own.columns.sensitive,
        bounds=own.columns.bounds,
        features=own.columns.names,
        labels=labels[test],
        groups=None if own.groups is None else own.groups[test],
        public=own.records[public] if len(public) else None,
        train=(own.records[train], labels[train]) if own.refits else None,
        client_side=params.get("deployments.client_side", False),
        clip=params["deployments.clip"],
    )


def _model(here: Here) -> Any:
    """Return the model that was fitted; of coefficients it is a rule of our own."""
    model = unpacked(here.rows("fit", "estimator")["model"][0])
    if "project" in here.inputs and not isinstance(model, LinearModel):
        raise InternalError(f"{type(model).__name__} is no rule on coefficients")
    return model


@dataclass(frozen=True)
class _Own:
    """The clients of a source, and what the model reads of them: records (n, D)."""

    clients: Rows
    records: FloatArray
    columns: Columns
    groups: NDArray[np.str_] | None = None
    refits: bool = True


def _own(here: Here) -> _Own:
    if "project" in here.inputs:
        return _coefficients(here.rows("project", "encoded"))
    clients, record = here.rows("ingest", "clients"), here.params["record"]
    facts = here.inputs["ingest"].facts
    columns = columns_of(facts, record)
    groups = _groups(facts, clients["curve"], record["group"])
    return _Own(clients, columns.of(clients["curve"]), columns, groups)


def _coefficients(clients: Rows) -> _Own:
    """Return rescaled coefficients, all of them sensitive: public bounds are -1, 1."""
    d = clients["z"].shape[1]
    places, bounds = tuple(range(d)), np.tile([-1.0, 1.0], (d, 1))
    names = tuple(f"z{place + 1}" for place in places)
    columns = Columns(names, places, places, bounds)
    return _Own(clients, clients["z"], columns, refits=False)


def _groups(
    facts: Facts, records: NDArray[Any], name: str | None
) -> NDArray[np.str_] | None:
    """Return the group of each record, as its column writes it."""
    if name is None:
        return None
    known = names_of(facts)
    if name not in known:
        raise UserError(f"record.group: there is no column {name}.")
    return np.array([f"{value:g}" for value in records[:, known.index(name)]])


def _settings(here: Here, plain: Setting) -> Iterator[tuple[str, Setting]]:
    yield FEATURES, plain
    for k in here.params["deployments.components"]:
        yield f"{k} components", _sent(plain, principal(plain.prior, k))
    asked = here.params["deployments.directions"]
    for how in directions(plain, asked) if asked else ():
        k = len(how.bounds)
        yield f"{k} directions" if k > 1 else "1 direction", _sent(plain, how)


def _sent(plain: Setting, how: Coordinates) -> Setting:
    """Return the setting of coordinates; several are read raw, without a prior."""
    sent = projected(plain, how)
    return sent if len(sent.sensitive) == 1 else replace(sent, public=None)
