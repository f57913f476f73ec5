"""Update of the known answers, for an intended change of a sampler.

`python -m curvote.audit.pin_answers`; the difference is then read like any other.
"""

from __future__ import annotations

from curvote.audit import choice
from curvote.checks import word_checks


def answers_table() -> str:
    """Return the table of the current answers at audited levels."""
    levels = (*choice.EPSILONS, *choice.FAR_EPSILONS)
    rows = [["name", *map(repr, levels)]]
    for name in choice.drawing_names():
        subjects = (choice.drawing_subject(name, epsilon) for epsilon in levels)
        rows.append([name, *map(word_checks.answer_digest, subjects)])
    return "".join(",".join(row) + "\n" for row in rows)


if __name__ == "__main__":
    word_checks.ANSWERS_FILE.write_text(answers_table(), encoding="utf-8")
