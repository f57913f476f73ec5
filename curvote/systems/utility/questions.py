"""Questions of one repetition: model, records, what is public, and their profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import InternalError, UserError
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns as Rows
from curvote.chain.stage import Metadata, StageContext
from curvote.messages.roles import roles_of_table
from curvote.systems.common.model_file import unpack_model
from curvote.systems.utility.inputs import (
    Arrays,
    RecordColumns,
    column_names,
    record_columns,
    unpack_arrays,
)
from curvote.systems.utility.measures import FEATURES
from curvote.systems.utility.method.engines.discriminants import LinearModel
from curvote.systems.utility.method.profile import Profile, restore_profile
from curvote.systems.utility.method.projections import (
    Coordinates,
    direction_coordinates,
    principal_coordinates,
    project_setting,
)
from curvote.systems.utility.method.setting import Setting, make_setting

Settings = dict[str, Setting]


def sent_settings(context: StageContext) -> Settings:
    """Return the settings of the features and of each projection, by name."""
    return dict(_iterate_settings(context, plain_setting(context)))


def plain_setting(context: StageContext) -> Setting:
    """Return the setting of the features themselves, or the coefficients."""
    source, params = _read_source(context), context.params
    roles = roles_of_table(source.clients, params, context.number)
    test, train, public = roles["test"], roles["train"], roles["public"]
    labels = source.clients["label"]
    return make_setting(
        _fitted_model(context),
        source.records[test],
        sensitive=source.columns.sensitive,
        bounds=source.columns.bounds,
        features=source.columns.names,
        labels=labels[test],
        groups=None if source.groups is None else source.groups[test],
        public=source.records[public] if len(public) else None,
        train=(source.records[train], labels[train]) if source.refits else None,
        client_side=params.get("deployments.client_side", False),
        clip=params["deployments.clip"],
    )


def _fitted_model(context: StageContext) -> Any:
    """Return the fitted model; of coefficients it must be a linear rule."""
    model = unpack_model(context.rows("fit", "estimator")["model"][0])
    if "project" in context.inputs and not isinstance(model, LinearModel):
        raise InternalError(f"{type(model).__name__} is no rule on coefficients")
    return model


@dataclass(frozen=True)
class _SourceRecords:
    """Clients of a source, and the model's columns of them: records (n, D)."""

    clients: Rows
    records: FloatArray
    columns: RecordColumns
    groups: NDArray[np.str_] | None = None
    refits: bool = True


def _read_source(context: StageContext) -> _SourceRecords:
    """Return the records of the source, or the coefficients."""
    if "project" in context.inputs:
        return _coefficient_records(context.rows("project", "encoded"))
    clients, record = context.rows("ingest", "clients"), context.params["record"]
    facts = context.inputs["ingest"].metadata
    columns = record_columns(facts, record)
    groups = _record_groups(facts, clients["curve"], record["group"])
    return _SourceRecords(clients, columns.of(clients["curve"]), columns, groups)


def _coefficient_records(clients: Rows) -> _SourceRecords:
    """Return rescaled coefficients, all of them sensitive: public bounds are -1, 1."""
    d = clients["z"].shape[1]
    places, bounds = tuple(range(d)), np.tile([-1.0, 1.0], (d, 1))
    names = tuple(f"z{place + 1}" for place in places)
    columns = RecordColumns(names, places, places, bounds)
    return _SourceRecords(clients, clients["z"], columns, refits=False)


def _record_groups(
    metadata: Metadata, records: NDArray[Any], name: str | None
) -> NDArray[np.str_] | None:
    """Return the group of each record, as its column writes it."""
    if name is None:
        return None
    names = column_names(metadata)
    if name not in names:
        raise UserError(f"record.group: there is no column {name}.")
    return np.array([f"{value:g}" for value in records[:, names.index(name)]])


def _iterate_settings(
    context: StageContext, plain: Setting
) -> Iterator[tuple[str, Setting]]:
    """Yield the name and setting of each way to send a record."""
    yield FEATURES, plain
    for k in context.params["deployments.components"]:
        yield (
            f"{k} components",
            _projected_setting(plain, principal_coordinates(plain.prior, k)),
        )
    numbers = context.params["deployments.directions"]
    for coordinates in direction_coordinates(plain, numbers) if numbers else ():
        k = len(coordinates.bounds)
        yield (
            f"{k} directions" if k > 1 else "1 direction",
            _projected_setting(plain, coordinates),
        )


def _projected_setting(plain: Setting, coordinates: Coordinates) -> Setting:
    """Return the setting of coordinates; several have no prior."""
    setting_sent = project_setting(plain, coordinates)
    return (
        setting_sent
        if len(setting_sent.sensitive) == 1
        else replace(setting_sent, public=None)
    )


def profile_arrays(profiles: Mapping[str, Profile]) -> Arrays:
    """Return the arrays of each profile, prefixed by the way to send."""
    return {
        f"{name_sent}/{name}": array
        for name_sent, profile in profiles.items()
        for name, array in profile.arrays().items()
    }


def read_profile(context: StageContext, name_sent: str, setting: Setting) -> Profile:
    """Return the profile that stage ``surface`` stored for one way to send."""
    stored = unpack_arrays(context.rows("surface", "known")["known"][0])
    start = f"{name_sent}/"
    arrays_of_sent = {name: a for name, a in stored.items() if name.startswith(start)}
    arrays = {name.removeprefix(start): array for name, array in arrays_of_sent.items()}
    return restore_profile(setting, arrays)
