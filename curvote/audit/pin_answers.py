"""Update of the known answers, for an intended change of a sampler.

`python -m curvote.audit.pin_answers`; the difference is then read like any other.
"""

from __future__ import annotations

from collections.abc import Iterator

from curvote.audit import choice
from curvote.checks import word_checks


def answers_table() -> str:
    """Return the table of the current answers at audited levels."""
    return "".join(",".join(row) + "\n" for row in _answer_rows())


def _answer_rows() -> Iterator[list[str]]:
    levels = (*choice.EPSILONS, *choice.FAR_EPSILONS)
    yield ["name", *map(repr, levels)]
    for name in choice.drawing_names():
        yield [
            name,
            *(
                word_checks.answer_digest(choice.drawing_subject(name, e))
                for e in levels
            ),
        ]


if __name__ == "__main__":
    word_checks.ANSWERS_FILE.write_text(answers_table(), encoding="utf-8")
