"""A folder of envelopes: what is accepted leaves it, what is refused is set aside."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from curvote.server.admission import USED, Check, Refused
from curvote.server.intake import Intake

ACCEPTED = "accepted"


def take_all(
    intake: Intake, inbox: Path, quarantine: Path, check: Check
) -> Counter[str]:
    """Take every envelope in ``inbox``; return the counts, ``accepted`` or a reason.

    ``*.json`` holds one envelope, ``*.jsonl`` one a line; other files stay. An accepted
    one is deleted; a refused one goes to ``quarantine`` with its reason beside it. Of
    one with a used invitation only the reason is kept: it may be a copy of an accepted
    one, and would tell who sent that.
    """
    counts: Counter[str] = Counter()
    for path in _in_random_order(inbox):
        for name, data in _envelopes(path):
            try:
                intake.take(data, check)
            except Refused as refused:
                counts[refused.reason] += 1
                _set_aside(quarantine, name, data, refused)
            else:
                counts[ACCEPTED] += 1
        path.unlink(missing_ok=True)
    return counts


def _in_random_order(inbox: Path) -> list[Path]:
    """Return the files so that the order of acceptance says nothing."""
    found = [path for path in inbox.glob("*.json*") if path.is_file()]
    found = [p for p in found if p.suffix in {".json", ".jsonl"}]
    secrets.SystemRandom().shuffle(found)
    return found


def _envelopes(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return  # another process took it
    if path.suffix == ".json":
        yield path.name, data
        return
    lines = [
        (f"{path.stem}-{i}.json", line) for i, line in enumerate(data.split(b"\n"))
    ]
    lines = [(name, line + b"\n") for name, line in lines if line.strip()]
    secrets.SystemRandom().shuffle(lines)
    yield from lines


def _set_aside(quarantine: Path, name: str, data: bytes, refused: Refused) -> None:
    quarantine.mkdir(parents=True, exist_ok=True)
    free = quarantine / name
    while (reason := free.with_name(f"{free.name}.reason.txt")).exists():
        free = quarantine / f"{Path(name).stem}-{secrets.token_hex(4)}.json"
    if refused.reason != USED:
        free.write_bytes(data)
    reason.write_text(f"{refused.reason}: {refused}\n", encoding="utf-8")
