"""Choice of subjects: shipped mechanisms and messages, a task, the broken twins."""

import fnmatch
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from curvote.audit import command_release as commands
from curvote.audit.message_subject import message_subject_of
from curvote.audit.release import outbox_memo, table_release
from curvote.audit.twins import MOST_SAMPLES, TWINS, gallery, gallery_names
from curvote.audit.verdict import SEED, TYPED, Audited, EpsilonSweep, run
from curvote.base.errors import UserError, did_you_mean
from curvote.base.privacy import Budget
from curvote.checks import examples
from curvote.checks.mechanism_subject import build_subject
from curvote.checks.subject import BROKEN, Row, Subject
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.factory import mechanism_class, names
from curvote.systems.transfer.audit import tables as servers
from curvote.systems.transfer.audit.subject import TableSubject, table_subject
from curvote.systems.transfer.method.task import Level
from curvote.wire.task import AnyTask

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
# One message takes a draw of many words, and its parts are audited by themselves: each
# twin of a message is caught by 15,000, or by twice as many clients of all kinds.
MESSAGE_SAMPLES = 40_000
# As many releases of few numbers; of more numbers fewer (`TableSubject`).
TABLE_SAMPLES = 20_000
QUICK = 30_000


def of_task(task: AnyTask, samples: int = QUICK, seed: int = SEED) -> list[Row]:
    """Return the verdict on the message that ``task`` asks of a client, one row.

    ``samples`` draws for each of five inputs: at the default about a second.
    """
    return run(message_subject_of(task), samples=samples, seed=seed)


def shipped_names() -> list[str]:
    """Return the mechanisms, messages, and ways of their release.

    ``mechanism@100`` is a label mechanism for so many classes. A message is
    ``protocol.message``, with ``@4`` or ``@26`` one about so many classes, with
    ``@2x3`` one about two labels with one of three private words each, and
    ``transfer.form`` one about a table; ``outbox.protocol.message`` is its release
    asked for again, ``table.protocol.message`` the table of a cohort, and
    ``client.protocol.message`` the command that a lone client calls; the other
    commands are ``client_irregular`` (a curve at times of its own),
    ``client_report``, ``client_vote``, ``client_label``, ``client_labels`` (a table)
    and ``client_release``. ``levels.NAME`` is a mechanism
    or message at every epsilon that people type.
    """
    drawing, tables = drawing_names(), servers.example_names()
    # Who answers about a model has no curve: `client_outcome` is that release.
    outcomes = examples.outcome_names()
    curves = [name for name in examples.released_names() if name not in outcomes]
    releases = product(("outbox", "table"), curves)
    return [
        *drawing,
        *wide_names(),
        *examples.many_class_names(),
        *map(".".join, releases),
        *commands.command_names(),
        *(f"{LEVELS}.{name}" for name in (*drawing, *tables)),
        *tables,
    ]


def drawing_names() -> list[str]:
    """Return the mechanisms and the messages."""
    return [*names(), *examples.message_names(), *examples.code_names()]


def wide_names() -> list[str]:
    """Return ``<mechanism>@<K>``: label mechanisms at other numbers of classes."""
    return [f"{name}@{n}" for name in label_names() for n in N_CLASSES]


def label_names() -> list[str]:
    """Return the mechanisms that hide a label."""
    return [
        name for name in names() if issubclass(mechanism_class(name), LabelMechanism)
    ]


# What stands for a message's release, by what its name begins with.
_RELEASES: Mapping[str, Callable[[str, float], Audited]] = {
    "outbox": outbox_memo,
    "table": table_release,
    **dict.fromkeys(commands.KINDS, commands.command_release),
}


def shipped(name: str, epsilon: float) -> Audited:
    """Return the subject ``name`` at ``epsilon``, of a small task."""
    way, _, what = name.partition(".")
    if way == LEVELS:
        levels, most = {"epsilons": len(TYPED)}, Budget(max(TYPED))
        return EpsilonSweep(name, partial(drawing_subject, what), most, levels)
    return _RELEASES.get(way, drawing_subject)(name, epsilon)


def drawing_subject(name: str, epsilon: float) -> Subject:
    """Return the mechanism or message ``name``, at ``epsilon``."""
    base, _, n_classes = name.partition("@")
    if base in servers.example_names():
        return choice_table(name, epsilon)
    if "." in name:
        return message_subject_of(examples.task_named(name, epsilon))
    k = int(n_classes or examples.MORE)
    return replace(build_subject(base, epsilon, k), name=name)


def choice_table(name: str, epsilon: float, delta: float | None = None) -> TableSubject:
    """Return the release ``name`` of a small table; a delta of None is n^-2."""
    task = servers.example_task(name, Level(epsilon, delta))
    return replace(table_subject(task, servers.RECORDS), name=name)


def random_level(name: str, seed: int) -> tuple[str, float]:
    """Return ``name`` with random classes, and a random epsilon, by ``seed``.

    More than two classes where it takes any number; an epsilon is one that people type,
    or anything from .05 to 5, as likely.
    """
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    epsilon = float(f"{math.exp(rng.uniform(math.log(0.05), math.log(5))):.3g}")
    if rng.random() < 0.5:
        epsilon = float(rng.choice([e for e in TYPED if e <= MOST_DRAWN]))
    base = name.partition("@")[0]
    takes_more = base in {*servers.example_names(), *label_names()}
    more = f"{base}@{rng.integers(3, 13)}"
    if not takes_more and not name.endswith(f"@{examples.MORE}"):
        return name, epsilon
    with suppress(UserError):  # a form of two classes
        shipped(more, epsilon)
        return more, epsilon
    return name, epsilon


def match_names(patterns: Sequence[str]) -> list[str]:
    """Return the names that match the patterns, all without patterns.

    ``*`` stands for anything: ``transfer.*``. What names nothing is a UserError that
    suggests a close name.
    """
    all_names = [*shipped_names(), *gallery_names()]
    matches: dict[str, None] = {}
    for name in patterns:
        named = fnmatch.filter(all_names, name)
        if not named:
            raise UserError(
                f"nothing to audit is named {name!r}.{did_you_mean(name, all_names)}"
            )
        matches |= dict.fromkeys(named)
    return list(matches) or all_names


def audit_jobs(
    patterns: Sequence[str], epsilons: Sequence[float], samples: int, seed: int = SEED
) -> list[tuple[Audited, int]]:
    """Return the subjects of the patterns, with the draws for each.

    The gallery claims its own epsilon. Without ``epsilons``, shipped ones are examined
    at ``EPSILONS``, and in their exact parts at ``FAR_EPSILONS``; whole releases, whose
    checks are of bytes and not of laws, at ``WHOLE_EPSILON``; releases about tables at
    levels of their own, for two deltas. Commands are examined at a level that ``seed``
    draws, and all mechanisms and messages at one more (`random_level`).
    """
    chosen: list[tuple[Audited, int]] = []
    tables = servers.example_names()
    for name in match_names(patterns):
        way, most = name.partition(".")[0], samples
        levels: Sequence[float] = epsilons or EPSILONS
        far: Sequence[float] = ()
        if name.startswith(BROKEN):
            most = TWINS[name.removeprefix(BROKEN)].samples
            chosen.append((gallery(name), min(samples, most)))
            continue
        if way == LEVELS:
            levels = [1.0]
        elif name in tables:
            most = min(samples, TABLE_SAMPLES)
            pairs = product(epsilons or servers.LEVELS, servers.DELTAS)
            chosen += [(choice_table(name, *pair), most) for pair in pairs]
            levels = ()
        elif way in commands.KINDS:
            levels = epsilons or [random_level(name, seed)[1]]
        elif way in _RELEASES:
            levels = epsilons or [WHOLE_EPSILON]
        elif name in wide_names():
            levels, most = epsilons or (*EPSILONS, *FAR_EPSILONS), WIDE_SAMPLES
        else:
            far = () if epsilons else FAR_EPSILONS
            if name in examples.many_class_names():
                most = MANY_SAMPLES
            else:
                most = MESSAGE_SAMPLES if "." in name else MOST_SAMPLES
        chosen += [(shipped(name, e), min(samples, most)) for e in levels]
        chosen += [(shipped(name, e), 0) for e in far]
        if not epsilons and name in {*drawing_names(), *tables}:
            subject = shipped(*random_level(name, seed))
            chosen.append((subject, min(samples, WIDE_SAMPLES)))
    return chosen
