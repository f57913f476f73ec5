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


def packed(model: Any) -> NDArray[Any]:
    """Return a column of one file, the model."""
    import skops.io

    return array([_canonical(skops.io.dumps(model))], dtype=object)


def unpacked(data: bytes) -> Any:
    """Return the model that `packed` wrote; it stands in a store that checks bytes."""
    import skops.io

    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


def _canonical(data: bytes) -> bytes:
    """Return the file with addresses in memory and times taken out of it."""
    with ZipFile(BytesIO(data)) as given:
        numbers: dict[Any, int] = {}
        schema = _numbered(json.loads(given.read(_SCHEMA)), numbers)
        files = {_name(name, numbers): given.read(name) for name in given.namelist()}
    files[_SCHEMA] = json.dumps(schema, sort_keys=True).encode()
    made = BytesIO()
    with ZipFile(made, "w") as out:
        for name in sorted(files):
            out.writestr(ZipInfo(name), files[name])
    return made.getvalue()


def _numbered(node: Any, numbers: dict[Any, int]) -> Any:
    """Return a part of the schema with ids and file names as numbers."""
    if isinstance(node, list):
        return [_numbered(each, numbers) for each in node]
    if not isinstance(node, dict):
        return node
    told = {key: _numbered(each, numbers) for key, each in node.items()}
    if _ID in told:
        told[_ID] = numbers.setdefault(told[_ID], len(numbers))
    if isinstance(told.get(_FILE), str):
        numbers.setdefault(told[_FILE], len(numbers))
        told[_FILE] = _name(told[_FILE], numbers)
    return told


def _name(name: str, numbers: dict[Any, int]) -> str:
    known = numbers.get(name)
    return name if known is None else f"{known}{name[name.rindex('.') :]}"
