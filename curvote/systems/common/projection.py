"""Projection stage: curves become coefficients and z by public constants."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.curves import basis, fpca
from curvote.curves.encoding import (
    RESCALING_CONSTANTS,
    SMOOTH,
    Encoding,
    data_bounds,
    volunteer_constants,
)
from curvote.messages import evidence
from curvote.messages.roles import publisher_test_mask, roles_of_table

Array = NDArray[np.float64]
SCALES_TO_BOUND = 3


def project_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the source's facts and the encoding; volunteers' constants come later."""
    source = inputs["ingest"].metadata
    kind = params["project.basis"]
    if source.get("features") and kind in basis.VOLUNTEERS_BASES:
        message = (
            f"{kind} is about curves, and these records are rows of a table; write"
            " identity, which keeps their columns."
        )
        raise UserError(message, where=("project", "basis"))
    channels = tuple(source.get("channels", ()))
    projection = _make_projection(np.asarray(source["grid"]), channels, params)
    names = RESCALING_CONSTANTS[params["project.rescale"]]
    settings = {name: params[f"project.{name}"] for name in names}
    constants = {
        name: np.broadcast_to(
            np.asarray(value, dtype=np.float64), (len(projection.matrix),)
        ).copy()
        for name, value in settings.items()
        if not isinstance(value, str)
        and params.get("project.bounds", "stated") == "stated"
    }
    constants |= _public_constants(source, projection, params)
    smooth = source.get("irregular") == SMOOTH and projection.grid is not None
    encoding = Encoding(projection, params["project.rescale"], constants, smooth=smooth)
    return {
        **source,
        "d": encoding.d,
        "encoding": encoding.to_json(),
        "roughness": basis.roughness_matrix(projection).tolist(),
    }


def project(context: StageContext) -> Rows:
    """Return ``encoded`` and the public ``constants`` it was made with.

    Components of volunteers' curves are constants, too: the table ``basis_rows``.
    """
    encoding, tables = Encoding.from_json(context.metadata["encoding"]), {}
    name = encoding.projection.name
    clients = context.rows("ingest", "clients")
    if name in basis.VOLUNTEERS_BASES:
        roles = roles_of_table(clients, context.params, context.number)
        public = {name: clients[name][roles["public"]] for name in ("curve", "label")}
        name, projection = _volunteers_projection(public, context, encoding)
        encoding = replace(encoding, projection=projection)
        names = np.full(encoding.d, name, dtype=object)
        tables["basis_rows"] = {"basis": names, "value": projection.matrix}
    coefficients = encoding.projection.apply(clients["curve"])
    constants = _complete_constants(coefficients, clients, context, encoding, name)
    used_encoding = replace(encoding, constants=constants)
    return tables | {
        "encoded": _encoded_columns(clients, coefficients, used_encoding),
        "constants": _constant_columns(constants, encoding.d),
    }


def _volunteers_projection(
    public: Columns, context: StageContext, encoding: Encoding
) -> tuple[str, basis.Projection]:
    """Return the basis that volunteers' curves make, or that their labels choose."""
    grid, curves = np.asarray(context.metadata["grid"]), public["curve"]
    if choice := _choice(context, encoding):
        return choice.choose(curves, public["label"], grid)
    d, channels = encoding.d, encoding.projection.channels
    components = fpca.principal_projection(curves, d, grid, channels=channels)
    return f"{components.name} {d}", components


def _choice(context: StageContext, encoding: Encoding) -> evidence.Choice | None:
    """Return the choice that is left to volunteers' records, if one is."""
    noise, classes = context.params.get("project.noise"), context.metadata["classes"]
    if noise is None:
        return None
    facts = encoding.projection.name, encoding.d, encoding.rescale
    return evidence.Choice(*facts, noise, len(classes))


def _public_constants(
    source: Metadata, projection: basis.Projection, params: Params
) -> dict[str, Array]:
    """Return the constants that follow from public bounds of the values.

    A coefficient is a weighted sum of the curve's values, so it lies between the sums
    of the least and of the largest terms. Centre and scale are those of features, the
    scale by a rule for every data set: the farther bound is three of them away.
    """
    constants: dict[str, Array] = {}
    if params.get("project.bounds") == "public":
        low, high = _value_bounds(source)
        terms = projection.matrix * low, projection.matrix * high
        constants["lower"] = np.minimum(*terms).sum(axis=1)
        constants["upper"] = np.maximum(*terms).sum(axis=1)
    keys = ("centre", "scale")
    names = [name for name in keys if params.get(f"project.{name}") == "public"]
    if names:
        if not source.get("features"):
            raise UserError(
                "only features of a table have public constants; state centre and"
                " scale.",
                where=("project", names[0]),
            )
        low, high = _value_bounds(source)
        centre = np.array([feature["centre"] for feature in source["features"]])
        scale = np.maximum(high - centre, centre - low) / SCALES_TO_BOUND
        public = {"centre": centre, "scale": scale}
        constants |= {name: public[name] for name in names}
    return constants


def _value_bounds(source: Metadata) -> tuple[Array, Array]:
    """Return the public lower and upper bounds of each value, (T,) each."""
    features, curve = source.get("features"), source.get("bounds")
    if features:
        ends = [[feature[end] for feature in features] for end in ("lower", "upper")]
    elif curve:
        points, n = len(source["grid"]), len(source.get("channels", ())) or 1
        by_channel = [np.broadcast_to(curve[end], n) for end in ("lower", "upper")]
        ends = [np.repeat(end, points).tolist() for end in by_channel]
    else:
        raise UserError(
            "this source states no public bounds; state lower and upper, or use"
            " rescale: tanh.",
            where=("project", "bounds"),
        )
    return np.array(ends[0], dtype=np.float64), np.array(ends[1], dtype=np.float64)


def project_shared_rows(
    inputs: Inputs, params: Params, metadata: Metadata
) -> Iterator[dict[str, Any]]:
    """Yield ``encoded`` some clients at a time; the constants come with the first."""
    encoding = Encoding.from_json(metadata["encoding"])
    if params.get("project.bounds") == "from_data":
        ends = []
        for clients in inputs["ingest"].pieces("clients"):
            coefficients = encoding.projection.apply(clients["curve"])
            ends += [coefficients.min(axis=0), coefficients.max(axis=0)]
        encoding = replace(encoding, constants=data_bounds(np.array(ends)))
    first = {"constants": _constant_columns(encoding.constants, encoding.d)}
    for clients in inputs["ingest"].pieces("clients"):
        coefficients = encoding.projection.apply(clients["curve"])
        yield first | {"encoded": _encoded_columns(clients, coefficients, encoding)}
        first = {}


def _make_projection(
    grid: Array, channels: tuple[str, ...], params: Params
) -> basis.Projection:
    name, size = params["project.basis"], params["project.size"]
    if name == basis.IDENTITY:
        return basis.identity(len(grid) * max(1, len(channels)))
    if name == basis.VALUES:
        return basis.grid_projection(grid).stacked(channels)
    if name == basis.COSINES:
        return basis.image_projection(len(grid), size)
    if name in basis.VOLUNTEERS_BASES:
        basis.check_size(basis.FPCA, size, points=len(grid) * max(1, len(channels)))
        return fpca.stand_in(grid, size, name, channels)
    order, derivative = params["project.order"], params.get("project.derivative", 0)
    projection = basis.projection(name, size, grid, order, derivative=derivative)
    if params["project.coordinates"] == "orthonormal":
        projection = basis.orthonormal(projection)
    return projection.stacked(channels)


def _complete_constants(
    coefficients: Array,
    clients: Columns,
    context: StageContext,
    encoding: Encoding,
    name: str,
) -> dict[str, Array]:
    """Return all constants, with those that volunteers' records decide.

    Principal components, by the ``name`` of their basis, have one scale together.
    ``bounds: from_data`` takes everybody's least and largest value: not private.
    """
    constants = dict(encoding.constants)
    missing = set(RESCALING_CONSTANTS[encoding.rescale]) - set(constants)
    if not missing:
        return constants
    if context.params.get("project.bounds") == "from_data":
        return data_bounds(coefficients)
    roles = roles_of_table(clients, context.params, context.number)
    choice = _choice(context, encoding)
    estimate = choice.constants if choice else volunteer_constants
    common = name.startswith(basis.FPCA) and encoding.rescale == "standard"
    centre, scale = estimate(coefficients[roles["public"]], common)
    estimates = {"centre": centre, "scale": scale}
    return constants | {name: estimates[name] for name in missing}


def _encoded_columns(
    clients: Columns, coefficients: Array, encoding: Encoding
) -> Columns:
    z, clipped = encoding.rescaled(coefficients)
    names = ["client_id", "label", "group"]
    names += ["part"] * (publisher_test_mask(clients) is not None)
    columns = {name: clients[name] for name in names}
    return columns | {"coefficients": coefficients, "z": z, "clipped": clipped}


def _constant_columns(constants: Mapping[str, Array], d: int) -> Columns:
    names = sorted(constants)
    values = np.array([constants[name] for name in names]).reshape(len(names), d)
    return {"name": np.array(names, dtype=object), "value": values}
