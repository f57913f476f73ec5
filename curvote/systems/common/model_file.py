"""Models as bytes: plain arrays and known classes, nothing that is run on reading.

The same model has the same bytes: names in the file are numbers in order of appearance,
and no time stands in it.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any, Final
from zipfile import ZipFile, ZipInfo

from numpy import array
from numpy.typing import NDArray

_SCHEMA: Final = "schema.json"
_ID, _FILE = "__id__", "file"


def pack_model(model: Any) -> NDArray[Any]:
    """Return a column of one file, the model."""
    import skops.io

    # Addresses in memory and times are taken out of it.
    with ZipFile(BytesIO(skops.io.dumps(model))) as archive:
        numbers: dict[Any, int] = {}
        schema = _renumber(json.loads(archive.read(_SCHEMA)), numbers)
        files = {
            _renumber_name(name, numbers): archive.read(name)
            for name in archive.namelist()
        }
    files[_SCHEMA] = json.dumps(schema, sort_keys=True).encode()
    buffer = BytesIO()
    with ZipFile(buffer, "w") as out:
        for name in sorted(files):
            out.writestr(ZipInfo(name), files[name])
    return array([buffer.getvalue()], dtype=object)


def unpack_model(data: bytes) -> Any:
    """Return the model `pack_model` wrote; its bytes stand in a store that checks."""
    import skops.io

    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


def _renumber(node: Any, numbers: dict[Any, int]) -> Any:
    """Return a part of the schema with ids and file names as numbers."""
    if isinstance(node, list):
        return [_renumber(item, numbers) for item in node]
    if not isinstance(node, dict):
        return node
    renumbered = {key: _renumber(item, numbers) for key, item in node.items()}
    if _ID in renumbered:
        renumbered[_ID] = numbers.setdefault(renumbered[_ID], len(numbers))
    if isinstance(renumbered.get(_FILE), str):
        numbers.setdefault(renumbered[_FILE], len(numbers))
        renumbered[_FILE] = _renumber_name(renumbered[_FILE], numbers)
    return renumbered


def _renumber_name(name: str, numbers: dict[Any, int]) -> str:
    number = numbers.get(name)
    return name if number is None else f"{number}{name[name.rindex('.') :]}"
