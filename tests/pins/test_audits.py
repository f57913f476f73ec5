"""What the audit examines, and its verdicts where no draws are made, stay as they are.

Releases by a command or into an outbox, and broken twins, take minutes together: their
names are recorded, and `tests/audit` looks at their verdicts.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curvote.audit import choice, run, shipped
from curvote.systems.transfer.audit import tables as servers
from tests.audit.gallery import gallery_names
from tests.pins import pinned

KIND = "audits"
NAMES = [*choice.drawing_names(), *servers.example_names()]


def facts(name: str, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the row of a subject."""
    pinned.seeded(patch)
    (row,) = run(shipped(name, 1.0), samples=0)
    found: dict[str, Any] = pinned.plain(row.to_json(), 9)
    return found


def every(_: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """Yield all names, and the rows of those that are examined."""
    yield "names", [*choice.shipped_names(), *gallery_names()]
    for name in NAMES:
        yield name, facts(name, patch)


def test_the_audit_examines_what_it_did() -> None:
    """Every mechanism, message, release and twin."""
    found = [*choice.shipped_names(), *gallery_names()]
    assert found == pinned.recorded(KIND, "names")


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_the_recorded_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters, claim, exact loss, bound, verdict, and the checks that were made."""
    assert pinned.as_json(facts(name, monkeypatch)) == pinned.recorded(KIND, name)
