"""Sentences for the report, made from the data alone and meant for any reader."""

from __future__ import annotations

import math
import shlex

import pandas as pd

from curvote.reporting.data import (
    PageData,
    epsilons,
    learners,
    percent,
    series_names,
    with_series,
)
from curvote.reporting.methods import ARMS, method_of

# What "clearly" means: a difference of more than this many standard errors.
CLEARLY = 2.0

ROLE_WORDS = {
    "public": "volunteers",
    "train": "training clients",
    "vote": "vote clients",
    "test": "test clients",
}


def reference_epsilon(data: PageData) -> float:
    """Return the level the page speaks of: 1, or the nearest on a log scale."""
    levels = epsilons(data.scores) or [loss.claimed for loss in data.losses] or [1.0]
    return min(levels, key=lambda level: abs(math.log(level)))


def main_row(data: PageData) -> pd.Series | None:
    """Return the score the headline states at that level: what ``auto`` took.

    Where it was not run, MRMA's best learner, or else the best method that a real
    deployment could use.
    """
    scores = with_series(data.scores).dropna(subset=["misclassification"])
    if scores.empty:
        return None
    scores = scores[scores["epsilon"] == reference_epsilon(data)]
    usable = [s for s in series_names(scores) if not method_of(s).study_only]
    for known in (scores["protocol"] == "auto", scores["method"] == "mrma"):
        ours = scores[known & scores["series"].isin(usable)]
        if not ours.empty:
            break
    else:
        ours = scores[scores["series"].isin(usable)]
    ours = scores if ours.empty else ours
    return ours.iloc[int(ours["misclassification"].to_numpy(float).argmin())]


def _beside(data: PageData, method: str, row: pd.Series, level: float) -> pd.DataFrame:
    """Return the score of a method at a level for the learner of ``row``, if any.

    An arm stands for whichever arm was taken at that level.
    """
    scores = data.scores
    same = scores["learner"].isna() | (scores["learner"] == row["learner"])
    same &= scores["epsilon"] == level
    same &= scores["method"].isin(ARMS if method in ARMS else (method,))
    same &= scores["protocol"] == row["protocol"]
    return pd.DataFrame(scores[same].head(1))


def value_of(data: PageData, method: str, row: pd.Series) -> float:
    """Return the error of another method beside ``row``; NaN where there is none."""
    found = _beside(data, method, row, row["epsilon"])["misclassification"]
    return float(found.iloc[0]) if len(found) else math.nan


def _beats_guessing(data: PageData, row: pd.Series, level: float) -> bool:
    pair = [_beside(data, m, row, level) for m in (row["method"], "majority")]
    both = pd.concat(pair)
    if len(both) < len(pair):
        return False
    ours, guess = both["misclassification"].to_numpy(float)
    spread = math.hypot(*both["se"].astype(float).fillna(0))
    return bool(guess - ours > CLEARLY * spread)


def _who(row: pd.Series) -> str:
    name = method_of(str(row["series"])).label
    if row["learner"] == row["protocol"]:
        return f"{row['learner']} ({name})"
    return name if pd.isna(row["learner"]) else f"{name} with {row['learner']}"


def headline(data: PageData) -> str:
    """State the main result in one sentence."""
    row = main_row(data)
    if row is None:
        return (
            "No true error is known: real releases say nothing about how often the"
            " classifier errs on new clients"
            + (".", ", beyond the utilities estimated below.")[len(data.utilities) > 0]
        )
    se = "" if pd.isna(row["se"]) else f" (± {percent(row['se'])})"
    main = (
        f"At {_level(row)}, {_who(row)} errs on"
        f" {percent(row['misclassification'])} %{se} of new {data.record}s"
    )
    parts = [main]
    guess = value_of(data, "majority", row)
    if not math.isnan(guess):
        parts.append(f"always guessing the larger class errs on {percent(guess)} %")
    if data.bayes_error is not None:
        least = "the Bayes error, the least that any classifier can reach, is"
        parts.append(f"{least} {percent(data.bayes_error)} %")
    return "; ".join(parts) + "."


def verdict(data: PageData) -> str:
    """Say from which privacy level on the main method clearly beats guessing."""
    row = main_row(data)
    if row is None or math.isnan(value_of(data, "majority", row)):
        return ""
    levels = epsilons(data.scores)
    wins = [_beats_guessing(data, row, level) for level in levels]
    if all(wins):
        return f"{_who(row)} is clearly better than guessing at every epsilon tried."
    if not wins[-1]:
        return (
            f"At the largest epsilon tried, {levels[-1]:g}, {_who(row)} is not clearly"
            " better than guessing: the noise hides what there is to learn."
        )
    first = len(wins) - wins[::-1].index(False)
    return (
        f"{_who(row)} is clearly better than guessing from epsilon"
        f" {levels[first]:g} on; at {levels[first - 1]:g} it is not."
    )


def _level(row: pd.Series) -> str:
    epsilon = float(row["epsilon"])
    return "no privacy" if math.isinf(epsilon) else f"epsilon {epsilon:g}"


def tiles(data: PageData) -> list[tuple[str, str, str]]:
    """Return the numbers shown large: (percent, name, what it is)."""
    row = main_row(data)
    if row is None:
        return []
    level = _level(row)
    where = level if pd.isna(row["learner"]) else f"{level}, {row['learner']}"
    shown = [
        (row["misclassification"], method_of(str(row["series"])).label, where),
        (value_of(data, "weak", row), "one weak classifier", where),
        (value_of(data, "majority", row), "guessing", level),
        (data.bayes_error, "Bayes", "the least possible"),
    ]
    return [(percent(x), name, what) for x, name, what in shown if not pd.isna(x)]


def none_passed(data: PageData) -> list[tuple[str, list[str]]]:
    """Return (method and learner, percent at each epsilon): how often none passed.

    Only where it happened at all: no rows if some classifier passed in every replicate.
    """
    scores = with_series(data.scores)
    share = pd.to_numeric(scores["none_passed"]).fillna(0)
    scores = scores.assign(share=share, level=scores["epsilon"].astype(float))
    rows = []
    for series in series_names(scores):
        for learner in learners(scores):
            mine = scores[(scores["series"] == series) & (scores["learner"] == learner)]
            by_level = mine.set_index("level")["share"]
            cells = [percent(by_level.get(e), 0) for e in epsilons(scores)]
            if by_level.gt(0).any():
                rows.append((f"{method_of(series).label}, {learner}", cells))
    return rows


def no_curves(data: PageData) -> str:
    """Say why no curve is drawn."""
    why = (
        "This pipeline sets no volunteers aside"
        if not data.volunteers
        else "This report was given no volunteers' records"
    )
    return (
        f"No {data.record}s are shown. {why}, and nobody else's {data.record} is"
        " public: only volunteers' or simulated records may be drawn."
    )


def curves_caption(data: PageData) -> str:
    """Describe the curves figure."""
    sample = data.curves
    if sample is None:
        return no_curves(data)
    whose = {
        "volunteers": f"Volunteers' {data.record}s, public by consent.",
        "simulated": f"Simulated {data.record}s: they belong to nobody.",
    }[sample.who]
    reduced = (
        f"{whose} Each client reduces its {data.record} (1) to {sample.z.shape[1]}"
        f" numbers by {sample.basis} (2)"
    )
    if not sample.bounded:
        return (
            f"{reduced} and scales them by {sample.rescale} (3). What it reports is the"
            " direction in which they lie, so they need no bounds."
        )
    return (
        f"{reduced} and rescales them into [-1, 1] by {sample.rescale} (3). Noise is"
        " added to the numbers in (3) only, so the range between the dashed lines sets"
        " how much of it is needed."
    )


def data_set(data: PageData) -> str:
    """Count the records of a published data set, and those that are used."""
    if data.card is None:
        return ""
    made = data.card.card
    counts = ", ".join(f"{name} {n:,}" for name, n in made.counts.items())
    return f"{made.title}: {made.clients:,} {data.record}s are used ({counts})."


def clipped(data: PageData) -> str:
    """Say how many values lay outside the public bounds; studies only."""
    if data.clipped is None:
        return ""
    if data.clipped == 0:
        return "No value lay outside its bounds."
    share = percent(data.clipped, 2)
    return f"{share} % of the values lay outside their bounds and were clipped to them."


def replicates(data: PageData) -> str:
    """Count the replicates in words."""
    return (
        "one replicate" if data.replicates == 1 else f"{data.replicates:,} replicates"
    )


def clients(data: PageData) -> list[tuple[str, str, str]]:
    """Return (role, asked, got) for each role, in words."""
    rows = []
    for role, (asked, least, most) in data.clients.items():
        got = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        rows.append((ROLE_WORDS.get(role, role), f"{asked:,}", got))
    return rows


def groups(data: PageData) -> str:
    """Say how clients were divided among the roles."""
    if data.private:
        return "Each client has one role, and nobody stands in two of them."
    if data.groups is None:
        return "Each replicate draws the roles anew; nobody stands in two of them."
    return (
        "Each replicate draws the roles anew, and takes whole groups: all"
        f" {data.record}s of one {data.groups} stand in the same role. Where that"
        " cannot meet a number exactly, the closest smaller one is used."
    )


def commands(data: PageData) -> list[tuple[str, str]]:
    """Return (command, what it does) for going on from this report."""
    name = shlex.quote(data.pipeline)
    options = [f"--set {shlex.quote(text)}" for text in data.overrides]
    if not data.private:
        options += [f"--replicates {data.replicates}", f"--seed {data.seed}"]
    run = " ".join([f"curvote run {name}", *options])
    if data.private:
        return [
            (run, "returns the same release: nothing is drawn, nothing is spent"),
            ("curvote ledger show", "lists what was released, about how many clients"),
            ("curvote ledger check", "holds the ledger against what is stored"),
        ]
    return [
        (run, "runs it again; whatever has not changed is reused"),
        (f"curvote scores {name}", "prints the table above"),
        (f"curvote report {name}", "writes this page"),
    ]
