"""Stage train: weak classifiers from reports, and the baselines that pool them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.protocols.mrma.tables import REPORT_VARIANTS, WEAK_VARIANTS
from curvote.server.weak import draw, fit_problems, parts

Index = NDArray[np.int64]
# The reports (n, d) and labels (n,) that one classifier learns from.
Problem = tuple[NDArray[np.float64], NDArray[np.float64]]
Drawn = Callable[[Here, Columns], tuple[list[Index], NDArray[np.int8]]]


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what was fitted."""
    return {"learner": params["learner.name"], "params": params["learner.params"]}


def block(many: Sequence[Here]) -> Iterator[Rows]:
    """Yield the table ``weak`` of each repetition."""
    for weak in learnt(many, "reports", _drawn):
        yield {"weak": weak}


def learnt(
    many: Sequence[Here], table: str, drawn: Drawn, told: Sequence[str] = ("arm",)
) -> Iterator[Columns]:
    """Yield what each repetition learns from its ``table`` of reports.

    ``drawn`` returns the rows that each classifier learns from, and its variant, from
    the columns that are ``told``.
    """
    each = [drawn(here, here.rows("privatize", table, told)) for here in many]
    problems = [
        _problems(here, table, indices)
        for here, (indices, _) in zip(many, each, strict=True)
    ]
    public = many[0].inputs["privatize"].facts
    made = fitted(problems, public, many[0].facts)
    for columns, (_, variants) in zip(made, each, strict=True):
        yield weak_table(variants, columns)


def _problems(here: Here, table: str, indices: Sequence[Index]) -> list[Problem]:
    """Return the problems of one repetition; of many reports no others are held."""
    told = ("z", "label")
    if here.inputs["privatize"].count(table, here.place) == 1:
        reports = here.rows("privatize", table, told)
        return [problem(reports, rows) for rows in indices]
    wanted = np.unique(np.concatenate(indices))
    reports = picked(here.shards("privatize", table, told), wanted)
    return [problem(reports, np.searchsorted(wanted, rows)) for rows in indices]


def picked(shards: Iterable[Columns], wanted: Index) -> Columns:
    """Return some rows, whose numbers rise, of a table that comes in shards."""
    found: list[Columns] = []
    start = 0
    for shard in shards:
        end = start + len(next(iter(shard.values())))
        low, high = np.searchsorted(wanted, [start, end])
        mine = wanted[low:high] - start
        found.append({name: values[mine] for name, values in shard.items()})
        start = end
    return {name: np.concatenate([part[name] for part in found]) for name in found[0]}


def problem(reports: Columns, rows: Index) -> Problem:
    """Return what one classifier learns from: some rows of the table ``reports``."""
    return reports["z"][rows], reports["label"][rows].astype(float)


def fitted(
    each: Sequence[Sequence[Problem]], public: Facts, learner: Mapping[str, Any]
) -> list[Columns]:
    """Return what was learned of the problems of each repetition, fitted as one batch.

    ``public`` holds the Gram matrix and the roughness of the basis, ``learner`` its
    name (``learner``) and its ``params``. Columns: coef, intercept, flagged, n; none
    where there is no problem at all.
    """
    every = [one for own in each for one in own]
    if not every:
        return [{} for _ in each]
    fits = fit_problems(
        learner["learner"],
        every,
        gram=np.asarray(public["gram"]),
        roughness=np.asarray(public["roughness"]),
        **learner["params"],
    )
    columns = {"coef": fits.coef, "intercept": fits.intercept, "flagged": fits.flagged}
    columns["n"] = np.array([len(labels) for _, labels in every])
    ends = np.cumsum([len(own) for own in each])[:-1]
    split = {name: np.split(values, ends) for name, values in columns.items()}
    return [{name: split[name][i] for name in split} for i in range(len(each))]


def weak_table(variants: NDArray[np.int8], fits: Columns) -> Columns:
    """Return the table ``weak``; classifiers of one variant stand together."""
    position = np.arange(len(variants)) - np.searchsorted(variants, variants)
    return {"arm": variants, "learner": position} | fits


def _drawn(here: Here, reports: Columns) -> tuple[list[Index], NDArray[np.int8]]:
    """Return the reports that each classifier learns from, and its variant."""
    count, n = here.params["train.count"], len(reports["arm"])
    mrma = np.flatnonzero(reports["arm"] == REPORT_VARIANTS.index("mrma"))
    drawn = draw(here.generator("draw"), len(mrma), count, here.params["train.size"])
    if len(mrma) == n:  # nobody reports who votes: there is nothing to pool
        return [*mrma[drawn]], np.zeros(count, dtype=np.int8)
    pooled = parts(here.generator("pool"), n, count)
    sizes = [count, count, 1]
    variants = np.repeat(np.arange(len(WEAK_VARIANTS), dtype=np.int8), sizes)
    return [*mrma[drawn], *pooled, np.arange(n)], variants
