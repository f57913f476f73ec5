"""What is audited: shipped mechanisms and messages, a task, the broken gallery."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from curvote.audit import examples, lone_release, table_release
from curvote.audit.broken.gallery import gallery, gallery_names
from curvote.audit.leaving import Release
from curvote.audit.lone_release import sent_alone
from curvote.audit.mechanism_subject import built
from curvote.audit.memo import Memo
from curvote.audit.message_subject import of_message
from curvote.audit.outbox_memo import PREFIX, outbox_memo
from curvote.audit.row import BROKEN, Row
from curvote.audit.table_release import released_here
from curvote.audit.verdict import SEED, Audited, run
from curvote.errors import UserError, did_you_mean
from curvote.mechanisms.making import names
from curvote.task import Task

EPSILONS = (0.5, 2.0)
# Exact checks only: no affordable number of draws says much there.
FAR_EPSILONS = (0.01, 10.0)
WHOLE_EPSILON = 2.0
# One message takes a draw of many words, and its parts are audited by themselves.
MESSAGE_SAMPLES = 200_000
# A twin is caught by as many draws as its fault needs: half noise in a bin, the most.
TWIN_SAMPLES = 150_000
QUICK = 30_000


def of_task(task: Task, samples: int = QUICK, seed: int = SEED) -> list[Row]:
    """Return the verdict on the message that ``task`` asks of a client, one row.

    ``samples`` draws for each of five inputs: at the default about a second.
    """
    return run(of_message(task), samples=samples, seed=seed)


def shipped_names() -> list[str]:
    """Return the mechanisms, the messages, and the outbox that releases each.

    A message is ``protocol.message``; ``outbox.protocol.message`` is its release asked
    for again, ``table.protocol.message`` the table of a cohort, and
    ``client.protocol.message`` the command that a lone client calls.
    """
    sent = drawing_names()
    again = [PREFIX + name for name in sent if "." in name]
    return [*sent, *again, *released_here(), *sent_alone()]


def drawing_names() -> list[str]:
    """Return the mechanisms and the messages."""
    return [*names(), *(f"{name}.{message}" for name, message in examples.asked())]


# What stands for the rest of a name, by what it begins with.
_WHOLE: Mapping[str, Callable[[str, float], Memo | Release]] = {
    PREFIX: outbox_memo,
    table_release.PREFIX: table_release.table_release,
    lone_release.PREFIX: lone_release.lone_release,
}


def shipped(name: str, epsilon: float) -> Audited:
    """Return what ``name`` stands for, at ``epsilon``; a message is of a small task."""
    for prefix, made in _WHOLE.items():
        if name.startswith(prefix):
            return made(name, epsilon)
    protocol, _, asks = name.partition(".")
    if not asks:
        return built(name, epsilon)
    return of_message(examples.task(protocol, asks, epsilon))


def checked(given: Sequence[str]) -> list[str]:
    """Return the names to audit: all of them where none is given.

    An unknown name is a UserError that suggests a close one.
    """
    known = [*shipped_names(), *gallery_names()]
    for name in given:
        if name not in known:
            raise UserError(
                f"nothing to audit is named {name!r}.{did_you_mean(name, known)}"
            )
    return list(given) or known


def jobs(
    given: Sequence[str], epsilons: Sequence[float], samples: int
) -> list[tuple[Audited, int]]:
    """Return what the names stand for, with the number of draws for each.

    The gallery claims its own epsilon. Without ``epsilons``, shipped ones are examined
    at ``EPSILONS``, and in their exact parts at ``FAR_EPSILONS``; whole releases, whose
    checks are of bytes and not of laws, at ``WHOLE_EPSILON``.
    """
    asked: list[tuple[Audited, int]] = []
    for name in checked(given):
        if name.startswith(BROKEN):
            asked.append((gallery(name), min(samples, TWIN_SAMPLES)))
            continue
        if name.startswith(tuple(_WHOLE)):
            asked += [(shipped(name, e), samples) for e in epsilons or [WHOLE_EPSILON]]
            continue
        most = min(samples, MESSAGE_SAMPLES) if "." in name else samples
        asked += [(shipped(name, e), most) for e in epsilons or EPSILONS]
        asked += [(shipped(name, e), 0) for e in FAR_EPSILONS if not epsilons]
    return asked
