"""A contest of protocols: where `auto` holds against published methods and guessing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from curvote.reproduce.rows import Row, having

AUTO, PUBLISHED, MAJORITY = "auto", "mrma", "majority"
OTHERS = f"{PUBLISHED}, best other method"
# `auto` may be so much worse: points, or standard errors of the difference.
POINTS, ERRORS = 1.0, 2.0
# Nothing is promised at smaller epsilons, where hardly anything can be learnt.
ASKED = 0.5
# Differences of equal counts of errors differ by rounding.
_ROUNDING = 1e-9
# What `auto` never takes unasked: other rules, and people whose records are public.
UNASKED = ("volunteers", "joined", "counts", "stump", "tree", "sgd")
# What a protocol ends in, whatever else it tells.
_FINAL = ("joined", "mrma", "votes", "mean", "joint", "two", "clean", "majority")
_RANKS = {method: rank for rank, method in enumerate(_FINAL)}
_BASELINE = "histogram"


@dataclass(frozen=True)
class Cell:
    """What `auto` finds in one setting at one epsilon, and what it is judged by.

    ``rivals`` are the best published method and the majority, as far as they are there;
    ``unasked`` is what it never takes by itself.
    """

    auto: Row
    rivals: tuple[Row, ...]
    unasked: tuple[Row, ...] = ()

    @property
    def better(self) -> list[Row]:
        """The rivals that beat `auto` by more than the limit: with any, it is lost."""
        return [rival for rival in self.rivals if beaten(self.auto, rival)]

    @property
    def ahead(self) -> list[Row]:
        """What beats `auto` by more than the limit and asks to be named, best first."""
        found = [row for row in self.unasked if beaten(self.auto, row)]
        return sorted(found, key=lambda row: float(row["curvote"]))

    @property
    def verdict(self) -> str:
        """``best``, ``within`` the limit, or ``lost``."""
        if self.better:
            return "lost"
        first = all(self.auto["curvote"] <= rival["curvote"] for rival in self.rivals)
        return "best" if first else "within"


def beaten(mine: Row, other: Row) -> bool:
    """Tell whether ``other`` is better by more than 1 point and 2 standard errors.

    The errors are taken to be independent; one that is not known counts as 0.
    """
    error = math.hypot(mine["se"] or 0.0, other["se"] or 0.0)
    limit = max(POINTS, ERRORS * error) + _ROUNDING
    return bool(mine["curvote"] - other["curvote"] > limit)


def cells(rows: Sequence[Row]) -> list[Cell]:
    """Return the cells of `auto` in the rows of a contest, epsilon rising."""
    found = []
    for own in by_setting(rows).values():
        mine = (row for row in having(own, protocol=AUTO) if row["epsilon"])
        for auto in sorted(mine, key=lambda row: float(row["epsilon"])):
            here = having(own, epsilon=auto["epsilon"])
            rivals = (*published(here), *having(here, protocol=MAJORITY))
            found.append(Cell(auto, rivals, tuple(_unasked(own, auto["epsilon"]))))
    return found


def _unasked(rows: Sequence[Row], epsilon: float | None) -> Iterator[Row]:
    """Yield what `auto` never takes by itself; volunteers spend no epsilon."""
    for name in UNASKED:
        mine = having(rows, protocol=name)
        yield from (row for row in _ends(mine) if row["epsilon"] in {epsilon, None})


def by_setting(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each setting, as they came."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row["setting"]), []).append(row)
    return found


def published(rows: Sequence[Row]) -> list[Row]:
    """Return the published method of least error in one setting at each epsilon."""
    return best(having(rows, protocol=PUBLISHED))


def best(rows: Iterable[Row]) -> list[Row]:
    """Return the row of least error at each epsilon, the first of equal ones."""
    levels: dict[float | None, Row] = {}
    for row in rows:
        known = levels.setdefault(row["epsilon"], row)
        if row["curvote"] < known["curvote"]:
            levels[row["epsilon"]] = row
    return list(levels.values())


def lines(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of one setting that a table shows, by the name of their line.

    A line for each protocol and learner with what it ends in; after the published ones
    a line with the best of their other methods.
    """
    found: dict[str, list[Row]] = {}
    for protocol in dict.fromkeys(row["protocol"] for row in rows):
        own = having(rows, protocol=protocol)
        ends = list(_ends(own))
        for row in ends:
            found.setdefault(line_of(row), []).append(row)
        if protocol == PUBLISHED:
            found[OTHERS] = best(row for row in own if row not in ends)
    return {name: line for name, line in found.items() if line}


def line_of(row: Row) -> str:
    """Return the name of a row's line: its protocol, and its learner if it has one."""
    return ", ".join(filter(None, (row["protocol"], row["learner"])))


def _ends(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield what each learner of one protocol ends in at each epsilon."""
    groups: dict[tuple[str | None, float | None], list[Row]] = {}
    for row in rows:
        if row["method"] != _BASELINE:
            groups.setdefault((row["learner"], row["epsilon"]), []).append(row)
    for group in groups.values():
        yield min(group, key=lambda row: _RANKS.get(row["method"], len(_FINAL)))
