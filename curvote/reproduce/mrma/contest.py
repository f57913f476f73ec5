"""Contest of protocols: cells where `auto` holds, the page of results, its figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from curvote.reproduce.rows import Row, select

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
class ContestCell:
    """The result of `auto` in a setting at one epsilon, and its rivals.

    ``rivals`` are the best published method and the majority, as far as they are there;
    ``opt_in`` is what it never takes by itself.
    """

    auto: Row
    rivals: tuple[Row, ...]
    opt_in: tuple[Row, ...] = ()

    @property
    def better(self) -> list[Row]:
        """The rivals that beat `auto` by more than the limit."""
        return [rival for rival in self.rivals if is_beaten(self.auto, rival)]

    @property
    def opt_in_ahead(self) -> list[Row]:
        """The opt-in protocols that beat `auto` by more than the limit."""
        better = [row for row in self.opt_in if is_beaten(self.auto, row)]
        return sorted(better, key=lambda row: float(row["curvote"]))

    @property
    def verdict(self) -> str:
        """The verdict: ``best``, ``within`` the limit, or ``lost``."""
        if self.better:
            return "lost"
        first = all(self.auto["curvote"] <= rival["curvote"] for rival in self.rivals)
        return "best" if first else "within"


def is_beaten(row: Row, other: Row) -> bool:
    """Return whether ``other`` is better by 1 point and 2 standard errors.

    The errors are taken to be independent; one that is not known counts as 0.
    """
    error = math.hypot(row["se"] or 0.0, other["se"] or 0.0)
    limit = max(POINTS, ERRORS * error) + _ROUNDING
    return bool(row["curvote"] - other["curvote"] > limit)


def contest_cells(rows: Sequence[Row]) -> list[ContestCell]:
    """Return the cells of `auto` in the rows of a contest, epsilon rising."""
    results = []
    for setting_rows in group_by_setting(rows).values():
        auto_rows = (
            row for row in select(setting_rows, protocol=AUTO) if row["epsilon"]
        )
        for auto in sorted(auto_rows, key=lambda row: float(row["epsilon"])):
            level_rows = select(setting_rows, epsilon=auto["epsilon"])
            rivals = (
                *best_published(level_rows),
                *select(level_rows, protocol=MAJORITY),
            )
            results.append(
                ContestCell(
                    auto, rivals, tuple(_opt_in_rows(setting_rows, auto["epsilon"]))
                )
            )
    return results


def _opt_in_rows(rows: Sequence[Row], epsilon: float | None) -> Iterator[Row]:
    """Yield the rows of protocols that `auto` never takes by itself."""
    for name in UNASKED:
        protocol_rows = select(rows, protocol=name)
        yield from (
            row
            for row in _final_rows(protocol_rows)
            if row["epsilon"] in {epsilon, None}
        )


def group_by_setting(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each setting in their order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row["setting"]), []).append(row)
    return groups


def best_published(rows: Sequence[Row]) -> list[Row]:
    """Return the published method of least error in one setting at each epsilon."""
    return best_rows(select(rows, protocol=PUBLISHED))


def best_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the row of least error at each epsilon, the first of equal ones."""
    levels: dict[float | None, Row] = {}
    for row in rows:
        leader = levels.setdefault(row["epsilon"], row)
        if row["curvote"] < leader["curvote"]:
            levels[row["epsilon"]] = row
    return list(levels.values())


def table_lines(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return a setting's rows of the table, by the name of their line.

    A line for each protocol and learner with what it ends in; after the published ones
    a line with the best of their other methods.
    """
    groups: dict[str, list[Row]] = {}
    for protocol in dict.fromkeys(row["protocol"] for row in rows):
        protocol_rows = select(rows, protocol=protocol)
        ends = list(_final_rows(protocol_rows))
        for row in ends:
            groups.setdefault(line_name(row), []).append(row)
        if protocol == PUBLISHED:
            groups[OTHERS] = best_rows(row for row in protocol_rows if row not in ends)
    return {name: line for name, line in groups.items() if line}


def line_name(row: Row) -> str:
    """Return the name of a row's line: its protocol, and its learner if it has one."""
    return ", ".join(filter(None, (row["protocol"], row["learner"])))


def _final_rows(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield each learner's final row of one protocol at each epsilon."""
    groups: dict[tuple[str | None, float | None], list[Row]] = {}
    for row in rows:
        if row["method"] != _BASELINE:
            groups.setdefault((row["learner"], row["epsilon"]), []).append(row)
    for group in groups.values():
        yield min(group, key=lambda row: _RANKS.get(row["method"], len(_FINAL)))
