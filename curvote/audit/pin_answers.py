"""Write `known_answers` anew, for a change of a sampler that is meant.

`python -m curvote.audit.pin_answers`; the difference is then read like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from curvote.audit import answers, choice
from curvote.audit.subject import Subject

PLACE = Path(__file__).with_name("known_answers.py")


def text() -> str:
    """Return the module of the answers that the code gives now."""
    lines = [
        f'    "{answers.key(each)}": "{answers.digest(each)}",' for each in _subjects()
    ]
    head = '"""What `answers` knows: digests of outputs for chosen words."""'
    return "\n".join([head, "", "KNOWN = {", *lines, "}", ""])


def _subjects() -> Iterator[Subject]:
    """Yield what draws by a declared law, at each level that is audited."""
    for name in choice.drawing_names():
        for epsilon in (*choice.EPSILONS, *choice.FAR_EPSILONS):
            subject = choice.shipped(name, epsilon)
            if isinstance(subject, Subject):
                yield subject


if __name__ == "__main__":
    PLACE.write_text(text(), encoding="utf-8")
