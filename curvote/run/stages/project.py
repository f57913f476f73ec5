"""Stage project: curves become coefficients and z, by public constants only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.protocols.roles import split
from curvote.protocols.stage import Columns, Facts, Inputs, Params, Tables
from curvote.representation.basis import Projection, orthonormal, projection
from curvote.representation.encoding import Encoding
from curvote.representation.rescale import RESCALES, volunteer_constants

Array = NDArray[np.float64]


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the source's facts and the encoding; volunteers' constants come later."""
    source = inputs["ingest"].facts
    basis = _projection(np.asarray(source["grid"]), params)
    stated = _stated(params, basis.size)
    encoding = Encoding(basis, params["project.rescale"], stated)
    return {**source, "d": encoding.d, "encoding": encoding.to_json()}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return ``encoded`` and the public ``constants`` it was made with."""
    encoding = Encoding.from_json(facts["encoding"])
    tables: Tables = {"encoded": [], "constants": []}
    for replicate in replicates:
        clients = inputs["ingest"].columns("clients", replicate)
        coefficients = encoding.projection.apply(clients["curve"])
        constants = _constants(coefficients, clients, params, encoding, replicate)
        own = replace(encoding, constants=constants)
        tables["encoded"].append(_encoded(clients, coefficients, own))
        tables["constants"].append(_public(constants, encoding.d))
    return tables


def _projection(grid: Array, params: Params) -> Projection:
    plain = projection(
        params["project.basis"],
        params["project.size"],
        grid,
        order=params["project.order"],
    )
    wanted = params["project.coordinates"] == "orthonormal"
    return orthonormal(plain) if wanted else plain


def _stated(params: Params, d: int) -> dict[str, Array]:
    """Return the constants that the configuration states as numbers."""
    names = RESCALES[params["project.rescale"]]
    given = {name: params[f"project.{name}"] for name in names}
    return {
        name: np.broadcast_to(np.asarray(value, dtype=np.float64), (d,)).copy()
        for name, value in given.items()
        if value != "volunteers"
    }


def _constants(
    coefficients: Array,
    clients: Columns,
    params: Params,
    encoding: Encoding,
    replicate: int,
) -> dict[str, Array]:
    """Fill in what volunteers decide; their records are public, nobody else's is."""
    stated = dict(encoding.constants)
    missing = set(RESCALES[encoding.rescale]) - set(stated)
    if not missing:
        return stated
    groups = clients["group"] if params["source.groups"] else None
    n = len(coefficients)
    roles = split(params["seed"], replicate, n, params["clients"], groups)
    centre, scale = volunteer_constants(coefficients[roles["public"]])
    chosen = {"centre": centre, "scale": scale}
    return stated | {name: chosen[name] for name in missing}


def _encoded(clients: Columns, coefficients: Array, encoding: Encoding) -> Columns:
    z, clipped = encoding.rescaled(coefficients)
    kept = {name: clients[name] for name in ("client_id", "label", "group")}
    return kept | {"coefficients": coefficients, "z": z, "clipped": clipped}


def _public(constants: dict[str, Array], d: int) -> Columns:
    names = sorted(constants)
    values = np.array([constants[name] for name in names]).reshape(len(names), d)
    return {"name": np.array(names, dtype=object), "value": values}
