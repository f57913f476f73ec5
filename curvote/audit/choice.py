"""What is audited: shipped mechanisms and messages, a task, the broken gallery."""

from __future__ import annotations

import fnmatch
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product

import numpy as np

from curvote.audit import command_owners, examples, ladder
from curvote.audit.broken.gallery import gallery, gallery_names
from curvote.audit.ladder import Ladder
from curvote.audit.leaving import Release
from curvote.audit.mechanism_subject import MechanismSubject, built
from curvote.audit.message_subject import of_message
from curvote.audit.outbox_memo import outbox_memo
from curvote.audit.reruns import Memo
from curvote.audit.row import BROKEN, Row
from curvote.audit.sent_subject import SentSubject
from curvote.audit.servers import examples as servers
from curvote.audit.servers.subject import TableSubject, of_table
from curvote.audit.table_release import table_release
from curvote.audit.verdict import SEED, Audited, run
from curvote.errors import UserError, did_you_mean
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.making import kind, names
from curvote.privacy import Budget
from curvote.task import Asked
from curvote.transfer.task import Level

EPSILONS = (0.5, 2.0)
# Exact checks only: no affordable number of draws says much there.
FAR_EPSILONS = (0.01, 10.0)
WHOLE_EPSILON = 2.0
LEVELS = "levels"
# Drawn ones: beyond it draws say little, and a bit moves too rarely (`noised`).
MOST_DRAWN = 5.0
# Beside those of the examples.
N_CLASSES = (2, 100)
# Fewer draws at each of more levels.
WIDE_SAMPLES = 20_000
# Fewer still of a message, which has more numbers for more classes.
MANY_SAMPLES = 5_000
# One message takes a draw of many words, and its parts are audited by themselves.
MESSAGE_SAMPLES = 200_000
# As many releases of few numbers; of more numbers fewer (`TableSubject`).
TABLE_SAMPLES = 20_000
# A twin is caught by as many draws as its fault needs: half noise in a bin, the most.
TWIN_SAMPLES = 150_000
QUICK = 30_000


def of_task(task: Asked, samples: int = QUICK, seed: int = SEED) -> list[Row]:
    """Return the verdict on the message that ``task`` asks of a client, one row.

    ``samples`` draws for each of five inputs: at the default about a second.
    """
    return run(of_message(task), samples=samples, seed=seed)


def shipped_names() -> list[str]:
    """Return the mechanisms, the messages, and the ways in which each is released.

    ``mechanism@100`` is a label mechanism for so many classes. A message is
    ``protocol.message``, with ``@4`` or ``@26`` one about so many classes, and
    ``transfer.form`` one about a table; ``outbox.protocol.message`` is its release
    asked for again, ``table.protocol.message`` the table of a cohort, and
    ``client.protocol.message`` the command that a lone client calls; the other
    commands are ``client_report``, ``client_vote``, ``client_label``,
    ``client_labels`` (a table) and ``client_release``. ``levels.NAME`` is a mechanism
    or message at every epsilon that people type.
    """
    drawn = drawing_names()
    ways = ("outbox", "table")
    whole = [f"{way}.{name}" for way in ways for name in examples.released()]
    whole += command_owners.names()
    whole += [f"{LEVELS}.{name}" for name in (*drawn, *servers.names())]
    return [*drawn, *wide_names(), *examples.many(), *whole, *servers.names()]


def drawing_names() -> list[str]:
    """Return the mechanisms and the messages."""
    return [*names(), *examples.names(), *examples.codes()]


def wide_names() -> list[str]:
    """Return ``<mechanism>@<K>``: label mechanisms at other numbers of classes."""
    labels = [name for name in names() if issubclass(kind(name), LabelMechanism)]
    return [f"{name}@{n}" for name in labels for n in N_CLASSES]


# What stands for a message's release, by what its name begins with.
_WHOLE: Mapping[str, Callable[[str, float], Memo | Release]] = {
    "outbox": outbox_memo,
    "table": table_release,
    **dict.fromkeys(command_owners.KINDS, command_owners.command_release),
}


def shipped(name: str, epsilon: float) -> Audited:
    """Return what ``name`` stands for, at ``epsilon``; a message is of a small task."""
    if _base(name) in servers.names():
        return table(name, epsilon)
    if name.startswith(f"{LEVELS}."):
        return _ladder(name)
    whole = _WHOLE.get(name.partition(".")[0])
    return whole(name, epsilon) if whole else drawing(name, epsilon)


def drawing(name: str, epsilon: float) -> MechanismSubject | SentSubject:
    """Return the mechanism or message ``name``, at ``epsilon``."""
    if "@" in name and _base(name) in names():
        base, _, n_classes = name.partition("@")
        return replace(built(base, epsilon, int(n_classes)), name=name)
    if "." not in name:
        return built(name, epsilon)
    return of_message(examples.named(name, epsilon))


def table(name: str, epsilon: float, delta: float | None = None) -> TableSubject:
    """Return the release ``name`` of a small table; a delta of None is n^-2."""
    task = servers.task(name, Level(epsilon, delta))
    return replace(of_table(task, servers.RECORDS), name=name)


def _base(name: str) -> str:
    return name.partition("@")[0]


def _ladder(name: str) -> Ladder:
    what = name.removeprefix(f"{LEVELS}.")
    made = table if what in servers.names() else drawing
    levels = {"epsilons": len(ladder.TYPED)}
    return Ladder(name, partial(made, what), Budget(max(ladder.TYPED)), levels)


def drawn(name: str, seed: int) -> tuple[str, float]:
    """Return ``name`` with another number of classes, and an epsilon, by ``seed``.

    More than two classes where it takes any number; an epsilon is one that people type,
    or anything from .05 to 5, as likely.
    """
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    epsilon = float(f"{math.exp(rng.uniform(math.log(0.05), math.log(5))):.3g}")
    if rng.random() < 0.5:
        epsilon = float(rng.choice([e for e in ladder.TYPED if e <= MOST_DRAWN]))
    takes = _base(name) in servers.names() or name.endswith(f"@{examples.MORE}")
    takes |= name in names() and issubclass(kind(name), LabelMechanism)
    more = f"{_base(name)}@{rng.integers(3, 13)}"
    try:
        shipped(more if takes else name, epsilon)
    except UserError:  # a form of two classes
        return name, epsilon
    return more if takes else name, epsilon


def checked(given: Sequence[str]) -> list[str]:
    """Return the names to audit: all of them where none is given.

    ``*`` stands for anything: ``transfer.*``. What names nothing is a UserError that
    suggests a close name.
    """
    known = [*shipped_names(), *gallery_names()]
    found = [fnmatch.filter(known, name) for name in given]
    for name, named in zip(given, found, strict=True):
        if not named:
            raise UserError(
                f"nothing to audit is named {name!r}.{did_you_mean(name, known)}"
            )
    return list(dict.fromkeys(chain.from_iterable(found))) or known


def jobs(
    given: Sequence[str], epsilons: Sequence[float], samples: int, seed: int = SEED
) -> list[tuple[Audited, int]]:
    """Return what the names stand for, with the number of draws for each.

    The gallery claims its own epsilon. Without ``epsilons``, shipped ones are examined
    at ``EPSILONS``, and in their exact parts at ``FAR_EPSILONS``; whole releases, whose
    checks are of bytes and not of laws, at ``WHOLE_EPSILON``; releases about tables at
    levels of their own, for two deltas. Commands are examined at a level that ``seed``
    draws, and all mechanisms and messages at one more (`drawn`).
    """
    asked: list[tuple[Audited, int]] = []
    explored = {*drawing_names(), *servers.names()}
    for name in checked(given):
        if name.startswith(BROKEN):
            asked.append((gallery(name), min(samples, TWIN_SAMPLES)))
        elif name in servers.names():
            levels = product(epsilons or servers.LEVELS, servers.DELTAS)
            most = min(samples, TABLE_SAMPLES)
            asked += [(table(name, *level), most) for level in levels]
        elif name.startswith(f"{LEVELS}."):
            asked.append((shipped(name, 1.0), samples))
        elif name.partition(".")[0] in command_owners.KINDS:
            levels_ = epsilons or [drawn(name, seed)[1]]
            asked += [(shipped(name, e), samples) for e in levels_]
        elif name.partition(".")[0] in _WHOLE:
            asked += [(shipped(name, e), samples) for e in epsilons or [WHOLE_EPSILON]]
        elif name in wide_names():
            levels_ = epsilons or (*EPSILONS, *FAR_EPSILONS)
            most = min(samples, WIDE_SAMPLES)
            asked += [(shipped(name, e), most) for e in levels_]
        elif name in examples.many():
            most = min(samples, MANY_SAMPLES)
            asked += [(shipped(name, e), most) for e in epsilons or EPSILONS]
            asked += [(shipped(name, e), 0) for e in FAR_EPSILONS if not epsilons]
        else:
            most = min(samples, MESSAGE_SAMPLES) if "." in name else samples
            asked += [(shipped(name, e), most) for e in epsilons or EPSILONS]
            asked += [(shipped(name, e), 0) for e in FAR_EPSILONS if not epsilons]
        if not epsilons and name in explored:
            asked.append((shipped(*drawn(name, seed)), min(samples, WIDE_SAMPLES)))
    return asked
