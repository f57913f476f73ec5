"""Stage project: curves become coefficients and z, by public constants only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.errors import UserError
from curvote.protocols.roles import set_aside, split
from curvote.representation.basis import (
    IDENTITY,
    VALUES,
    Projection,
    identity,
    images,
    orthonormal,
    projection,
    roughness,
    values_on,
)
from curvote.representation.cosines import COSINES
from curvote.representation.encoding import Encoding
from curvote.representation.rescale import RESCALES, from_data, volunteer_constants

Array = NDArray[np.float64]
SCALES_TO_BOUND = 3


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the source's facts and the encoding; volunteers' constants come later."""
    source = inputs["ingest"].facts
    basis = _projection(np.asarray(source["grid"]), params)
    stated = _stated(params, basis.size) | _public_bounds(source, basis, params)
    stated |= _public_constants(source, params)
    encoding = Encoding(basis, params["project.rescale"], stated)
    own = {"d": encoding.d, "encoding": encoding.to_json()}
    return {**source, **own, "roughness": roughness(basis).tolist()}


def one(here: Here) -> Rows:
    """Return ``encoded`` and the public ``constants`` it was made with."""
    encoding = Encoding.from_json(here.facts["encoding"])
    clients = here.rows("ingest", "clients")
    coefficients = encoding.projection.apply(clients["curve"])
    constants = _constants(coefficients, clients, here, encoding)
    own = replace(encoding, constants=constants)
    return {
        "encoded": _encoded(clients, coefficients, own),
        "constants": _public(constants, encoding.d),
    }


def _public_bounds(
    source: Facts, basis: Projection, params: Params
) -> dict[str, Array]:
    """Return the bounds of each coefficient that follow from the source's public ones.

    A coefficient is a weighted sum of the curve's values, so it lies between the sums
    of the least and of the largest terms.
    """
    if params.get("project.bounds") != "public":
        return {}
    low, high = _bounds_of(source)
    terms = basis.matrix * low, basis.matrix * high
    return {
        "lower": np.minimum(*terms).sum(axis=1),
        "upper": np.maximum(*terms).sum(axis=1),
    }


def _public_constants(source: Facts, params: Params) -> dict[str, Array]:
    """Return the centre and scale of features that follow from what is public of them.

    The scale is a rule for every data set: the farther bound is three of them away.
    """
    asked = [name for name in ("centre", "scale") if _given(params, name) == "public"]
    if not asked:
        return {}
    if not source.get("features"):
        raise UserError(
            "only features of a table have public constants; state centre and scale.",
            where=("project", asked[0]),
        )
    low, high = _bounds_of(source)
    centre = np.array([feature["centre"] for feature in source["features"]])
    scale = np.maximum(high - centre, centre - low) / SCALES_TO_BOUND
    known = {"centre": centre, "scale": scale}
    return {name: known[name] for name in asked}


def _given(params: Params, name: str) -> Any:
    return params.get(f"project.{name}")


def _bounds_of(source: Facts) -> tuple[Array, Array]:
    """Return the public bounds of each value of a record, (T,) each."""
    features, curve = source.get("features"), source.get("bounds")
    if features:
        ends = [[feature[end] for feature in features] for end in ("lower", "upper")]
    elif curve:
        ends = [[curve[end]] * len(source["grid"]) for end in ("lower", "upper")]
    else:
        raise UserError(
            "this source states no public bounds; state lower and upper, or use"
            " rescale: tanh.",
            where=("project", "bounds"),
        )
    return np.array(ends[0], dtype=np.float64), np.array(ends[1], dtype=np.float64)


def pieces(inputs: Inputs, params: Params, facts: Facts) -> Iterator[dict[str, Any]]:
    """Yield ``encoded`` some clients at a time; the constants come with the first."""
    described = Encoding.from_json(facts["encoding"])
    constants = dict(described.constants)
    if params.get("project.bounds") == "from_data":
        constants = _extremes(described, inputs)
    encoding = replace(described, constants=constants)
    first = {"constants": _public(constants, encoding.d)}
    for clients in inputs["ingest"].pieces("clients"):
        coefficients = encoding.projection.apply(clients["curve"])
        yield first | {"encoded": _encoded(clients, coefficients, encoding)}
        first = {}


def _extremes(encoding: Encoding, inputs: Inputs) -> dict[str, Array]:
    """Return ``from_data`` of all clients, without having all at once."""
    ends = []
    for clients in inputs["ingest"].pieces("clients"):
        coefficients = encoding.projection.apply(clients["curve"])
        ends += [coefficients.min(axis=0), coefficients.max(axis=0)]
    return from_data(np.array(ends))


def _projection(grid: Array, params: Params) -> Projection:
    if params["project.basis"] == IDENTITY:
        return identity(len(grid))
    if params["project.basis"] == VALUES:
        return values_on(grid)
    if params["project.basis"] == COSINES:
        return images(len(grid), params["project.size"])
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
        if not isinstance(value, str)
        and params.get("project.bounds", "stated") == "stated"
    }


def _constants(
    coefficients: Array, clients: Columns, here: Here, encoding: Encoding
) -> dict[str, Array]:
    """Fill in what volunteers decide; their records are public, nobody else's is.

    ``bounds: from_data`` takes everybody's least and largest value: not private.
    """
    stated = dict(encoding.constants)
    missing = set(RESCALES[encoding.rescale]) - set(stated)
    if not missing:
        return stated
    params = here.params
    if params.get("project.bounds") == "from_data":
        return from_data(coefficients)
    groups = clients["group"] if params["source.groups"] else None
    n = len(coefficients)
    aside = set_aside(clients)
    roles = split(
        params["seed"], here.number, n, params["clients"], groups, aside=aside
    )
    centre, scale = volunteer_constants(coefficients[roles["public"]])
    chosen = {"centre": centre, "scale": scale}
    return stated | {name: chosen[name] for name in missing}


def _encoded(clients: Columns, coefficients: Array, encoding: Encoding) -> Columns:
    z, clipped = encoding.rescaled(coefficients)
    names = ["client_id", "label", "group"]
    names += ["part"] * (set_aside(clients) is not None)
    kept = {name: clients[name] for name in names}
    return kept | {"coefficients": coefficients, "z": z, "clipped": clipped}


def _public(constants: dict[str, Array], d: int) -> Columns:
    names = sorted(constants)
    values = np.array([constants[name] for name in names]).reshape(len(names), d)
    return {"name": np.array(names, dtype=object), "value": values}
