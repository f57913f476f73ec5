"""Training stage: weak classifiers from reports, and pooled baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.learning.votes import disjoint_parts, draw_subsets, fit_problems
from curvote.systems.common.tables import REPORT_VARIANTS, WEAK_VARIANTS

Index = NDArray[np.int64]
# The reports (n, d) and labels (n,) that one classifier learns from.
Problem = tuple[NDArray[np.float64], NDArray[np.float64]]
RowChooser = Callable[[StageContext, Columns], tuple[list[Index], NDArray[np.int8]]]


def train_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the learner and its parameters."""
    return {"learner": params["learner.name"], "params": params["learner.params"]}


def train_batch(many: Sequence[StageContext]) -> Iterator[Rows]:
    """Yield the table ``weak`` of each repetition."""
    for weak in learn_repetitions(many, "reports", _choose_rows):
        yield {"weak": weak}


def learn_repetitions(
    many: Sequence[StageContext],
    table: str,
    choose_rows: RowChooser,
    columns_read: Sequence[str] = ("arm",),
) -> Iterator[Columns]:
    """Yield the table ``weak`` that each repetition learns from reports.

    ``choose_rows`` returns the rows that each classifier learns from, and its variant,
    from the columns that are ``columns_read``.
    """
    problems: list[list[Problem]] = []
    variants: list[NDArray[np.int8]] = []
    for context in many:
        columns_known = context.rows("privatize", table, columns_read)
        indices, of_variants = choose_rows(context, columns_known)
        # No more rows are read than needed.
        names = ("z", "label")
        if context.inputs["privatize"].count(table, context.place) == 1:
            reports = context.rows("privatize", table, names)
        else:
            rows_needed = np.unique(np.concatenate(indices))
            shards = context.shards("privatize", table, names)
            reports = select_from_shards(shards, rows_needed)
            indices = [np.searchsorted(rows_needed, rows) for rows in indices]
        problems.append([make_problem(reports, rows) for rows in indices])
        variants.append(of_variants)
    public = many[0].inputs["privatize"].metadata
    fits = fit_repetitions(problems, public, many[0].metadata)
    for columns, of_variants in zip(fits, variants, strict=True):
        yield weak_table(of_variants, columns)


def select_from_shards(shards: Iterable[Columns], rows: Index) -> Columns:
    """Return rows with these rising numbers from a table in shards."""
    selected: list[Columns] = []
    start = 0
    for shard in shards:
        end = start + len(next(iter(shard.values())))
        low, high = np.searchsorted(rows, [start, end])
        positions = rows[low:high] - start
        selected.append({name: values[positions] for name, values in shard.items()})
        start = end
    return {
        name: np.concatenate([part[name] for part in selected]) for name in selected[0]
    }


def make_problem(reports: Columns, rows: Index) -> Problem:
    """Return the features and labels that one classifier learns from."""
    return reports["z"][rows], reports["label"][rows].astype(float)


def fit_repetitions(
    problems: Sequence[Sequence[Problem]], basis: Metadata, learner: Mapping[str, Any]
) -> list[Columns]:
    """Return the fits of all repetitions, computed as one batch.

    ``basis`` holds the Gram matrix and the roughness of the basis, ``learner`` its
    name (``learner``) and its ``params``. Columns: coef, intercept, flagged, n; none
    where there is no problem at all.
    """
    flat = [item for repetition in problems for item in repetition]
    if not flat:
        return [{} for _ in problems]
    fits = fit_problems(
        learner["learner"],
        flat,
        gram=np.asarray(basis["gram"]),
        roughness=np.asarray(basis["roughness"]),
        **learner["params"],
    )
    columns = {"coef": fits.coef, "intercept": fits.intercept, "flagged": fits.flagged}
    columns["n"] = np.array([len(labels) for _, labels in flat])
    ends = np.cumsum([len(repetition) for repetition in problems])[:-1]
    split = {name: np.split(values, ends) for name, values in columns.items()}
    return [{name: split[name][i] for name in split} for i in range(len(problems))]


def weak_table(variants: NDArray[np.int8], fits: Columns) -> Columns:
    """Return the table ``weak``; classifiers of one variant stand together."""
    position = np.arange(len(variants)) - np.searchsorted(variants, variants)
    return {"arm": variants, "learner": position} | fits


def _choose_rows(
    context: StageContext, reports: Columns
) -> tuple[list[Index], NDArray[np.int8]]:
    """Return the rows of each classifier, and its variant."""
    count, n = context.params["train.count"], len(reports["arm"])
    reporters = np.flatnonzero(reports["arm"] == REPORT_VARIANTS.index("mrma"))
    training_rows = draw_subsets(
        context.generator("draw"), len(reporters), count, context.params["train.size"]
    )
    if len(reporters) == n:  # nobody reports who votes: there is nothing to pool
        return [*reporters[training_rows]], np.zeros(count, dtype=np.int8)
    pooled = disjoint_parts(context.generator("pool"), n, count)
    sizes = [count, count, 1]
    variants = np.repeat(np.arange(len(WEAK_VARIANTS), dtype=np.int8), sizes)
    return [*reporters[training_rows], *pooled, np.arange(n)], variants
