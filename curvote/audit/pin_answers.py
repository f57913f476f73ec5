"""Write the known answers anew, for a change of a sampler that is meant.

`python -m curvote.audit.pin_answers`; the difference is then read like any other.
"""

from __future__ import annotations

from collections.abc import Iterator

from curvote.audit import answers, choice


def text() -> str:
    """Return the table of the answers that the code gives now, at audited levels."""
    return "".join(",".join(row) + "\n" for row in _rows())


def _rows() -> Iterator[list[str]]:
    levels = (*choice.EPSILONS, *choice.FAR_EPSILONS)
    yield ["name", *map(repr, levels)]
    for name in choice.drawing_names():
        yield [name, *(answers.digest(choice.drawing(name, e)) for e in levels)]


if __name__ == "__main__":
    answers.PLACE.write_text(text(), encoding="utf-8")
