"""Small raw files in the published layouts, and what goes wrong when files travel."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass

from curvote.data.public import heart
from curvote.data.public.published_tables import CHURN, STROKE
from tests import xport_file

ROWS = 12


@dataclass(frozen=True)
class Kind:
    """A raw file's name in sources.toml, its header lines, and who reads it.

    ``swapped`` are the positions of two columns that are taken for each other.
    """

    source: str
    file: str
    reader: dict[str, object]
    header: int
    swapped: tuple[int, int]
    counts: dict[str, int]


KINDS = {
    "churn": Kind(
        "churn",
        "Churn_Modelling.csv",
        {"name": "churn"},
        header=1,
        swapped=(4, 5),
        counts={"0": 6, "1": 6},
    ),
    "stroke": Kind(
        "stroke",
        "healthcare-dataset-stroke-data.csv",
        {"name": "stroke"},
        header=1,
        swapped=(1, 5),
        counts={"0": 6, "1": 6},
    ),
    "heart": Kind(
        "heart-cleveland",
        "processed.cleveland.data",
        {"name": "heart", "hospitals": ["cleveland"]},
        header=0,
        swapped=(0, 3),
        counts={"0": 6, "1": 6},
    ),
}


def made(name: str) -> bytes:
    """Return a sound file of ``ROWS`` rows, every second one of the positive class."""
    lines = {"churn": _churn, "stroke": _stroke, "heart": _heart}[name]()
    # The publisher's table of strokes has no final line end.
    return ("\n".join(lines) + "\n" * (name != "stroke")).encode()


def _churn() -> list[str]:
    header = ["RowNumber", "CustomerId", "Surname", *CHURN.schema.names, "Exited"]
    rows = [
        f"{i},{99 + i},Doe,{600 + i},Spain,Male,{30 + i},4,0,2,1,0,{5e4 + i},{i % 2}"
        for i in range(1, ROWS + 1)
    ]
    return [",".join(header), *rows]


def _stroke() -> list[str]:
    header = ["id", *STROKE.schema.names, "stroke"]
    rows = [
        f"{i},Male,{40 + i},0,1,Yes,Private,Rural,{90 + i}.5,N/A,smokes,{i % 2}"
        for i in range(1, ROWS + 1)
    ]
    return [",".join(header), *rows]


def _heart() -> list[str]:
    assert heart.FEATURES[0].name == "age"
    return [
        f"{40 + i},1,3,{130 + i},241,0,1,139,0,1.4,2,?,3,{i % 2}" for i in range(ROWS)
    ]


def hdl(n: int = ROWS) -> bytes:
    """Return a sound SAS transport file of ``n`` participants, some without HDL."""
    values = [40.0 + i if i % 4 else float("nan") for i in range(n)]
    numbers = [73557.0 + i for i in range(n)]
    columns = {"SEQN": numbers, "LBDHDD": values, "LBDHDDSI": values}
    return xport_file.file(columns)


HDL = Kind(
    "nhanes-hdl",
    "HDL_H.XPT",
    {"name": "nhanes"},
    header=1200,
    swapped=(0, 8),
    counts={},
)
_WIDTH = 24  # three numbers a row, behind 15 cards of header


def _hdl_rows(data: bytes) -> list[bytes]:
    """Return the rows of a transport file of `hdl`'s layout, without the padding."""
    body = data[HDL.header :].rstrip(b" ")
    body += bytes(-len(body) % _WIDTH)
    return [body[i : i + _WIDTH] for i in range(0, len(body), _WIDTH)]


def _hdl_file(data: bytes, rows: list[bytes]) -> bytes:
    """Return the transport file ``data`` with other rows."""
    return data[: HDL.header] + xport_file.cards(b"".join(rows))


def _lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")


def _edited(data: bytes, row: int, edit: Callable[[list[bytes]], object]) -> bytes:
    """Return the file with the cells of one line edited; lines count from 0."""
    lines = _lines(data)
    cells = lines[row].split(b",")
    edit(cells)
    lines[row] = b",".join(cells)
    return b"\n".join(lines)


def truncated(data: bytes, _kind: Kind) -> bytes:
    """Return the file as a broken connection leaves it: cut in a row."""
    return data[: data.rindex(b"\n", 0, 2 * len(data) // 3) + 6]


def marked_label(data: bytes, kind: Kind) -> bytes:
    """Return the file with a label ``0+++``, as a bad merge leaves it."""
    return _edited(data, kind.header + 1, lambda cells: cells.__setitem__(-1, b"0+++"))


def doubled(data: bytes, _kind: Kind) -> bytes:
    """Return the file twice, one behind the other."""
    return data + data


def swapped(data: bytes, kind: Kind) -> bytes:
    """Return the file with the cells of two columns exchanged, not their names."""
    i, j = kind.swapped
    lines = _lines(data)
    for row in range(kind.header, len(lines)):
        cells = lines[row].split(b",")
        if len(cells) > 1:
            cells[i], cells[j] = cells[j], cells[i]
            lines[row] = b",".join(cells)
    return b"\n".join(lines)


def extra_row(data: bytes, _kind: Kind) -> bytes:
    """Return the file with its last row twice."""
    body = data.rstrip(b"\n")
    return body + b"\n" + _lines(body)[-1] + data[len(body) :]


def other_mark(data: bytes, kind: Kind) -> bytes:
    """Return the file with missing values spelt ``unknown``; one more if none is."""
    changed = data.replace(b",N/A,", b",unknown,").replace(b",?,", b",unknown,")
    if changed != data:
        return changed
    return _edited(data, kind.header, lambda cells: cells.__setitem__(6, b"unknown"))


def dos_lines(data: bytes, _kind: Kind) -> bytes:
    """Return the file with CR LF for LF: nothing is damaged."""
    return data.replace(b"\n", b"\r\n")


def bad_byte(data: bytes, kind: Kind) -> bytes:
    """Return the file with a byte that UTF-8 does not know in its fourth line."""
    return _edited(data, 3, lambda cells: cells.__setitem__(2, b"\xff"))


def emptied(_data: bytes, _kind: Kind) -> bytes:
    """Return nothing at all."""
    return b""


def bad_crc(data: bytes, _kind: Kind) -> bytes:
    """Return the file gzipped, with a wrong checksum."""
    packed = bytearray(gzip.compress(data, 1, mtime=0))
    packed[-8] ^= 1
    return bytes(packed)


def cut_gzip(data: bytes, _kind: Kind) -> bytes:
    """Return the file gzipped, its end lost."""
    return gzip.compress(data, 1, mtime=0)[:-30]


def semicolons(data: bytes, _kind: Kind) -> bytes:
    """Return the file as a spreadsheet of some countries writes it."""
    return data.replace(b",", b";")


def hdl_swapped(data: bytes) -> bytes:
    """Return the transport file with its first two columns taken for each other."""
    i, j = HDL.swapped
    rows = [row[j : j + 8] + row[i : i + 8] + row[16:] for row in _hdl_rows(data)]
    return _hdl_file(data, rows)


def hdl_extra_row(data: bytes) -> bytes:
    """Return the transport file with its last row twice."""
    rows = _hdl_rows(data)
    return _hdl_file(data, [*rows, rows[-1]])


def hdl_row_lost(data: bytes) -> bytes:
    """Return the transport file without its last row."""
    return _hdl_file(data, _hdl_rows(data)[:-1])


def hdl_other_mark(data: bytes) -> bytes:
    """Return the transport file with -9 for a value, as surveys mark missing ones."""
    rows = _hdl_rows(data)
    rows[1] = rows[1][:8] + xport_file.ibm(-9.0) + rows[1][16:]
    return _hdl_file(data, rows)
