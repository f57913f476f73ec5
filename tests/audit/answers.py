"""Known answers of the samplers; ``python -m tests.audit.answers`` writes them anew.

For an intended change of a sampler; the difference is then read like any other.
"""

from curvote.audit.choice import (
    EPSILONS,
    FAR_EPSILONS,
    drawing_names,
    drawing_subject,
)
from curvote.checks import word_checks


def answers_table() -> str:
    """Return the table of the current answers at audited levels."""
    levels = (*EPSILONS, *FAR_EPSILONS)
    rows = [["name", *map(repr, levels)]]
    for name in drawing_names():
        subjects = (drawing_subject(name, epsilon) for epsilon in levels)
        rows.append([name, *map(word_checks.answer_digest, subjects)])
    return "".join(",".join(row) + "\n" for row in rows)


if __name__ == "__main__":
    word_checks.ANSWERS_FILE.write_text(answers_table(), encoding="utf-8")
