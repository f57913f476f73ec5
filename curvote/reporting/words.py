"""Sentences for the report, made from the data alone and meant for any reader."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence

import pandas as pd

from curvote.chain.axis import EPSILON, Value
from curvote.chain.measure import Method, Metric
from curvote.reporting import promises
from curvote.reporting.data import (
    PageData,
    learners,
    level,
    levels,
    number,
    ordered,
    series_names,
    unit,
)
from curvote.reporting.methods import known, method_of

# What "clearly" means: a difference of more than this many standard errors.
CLEARLY = 2.0


def reference_epsilon(data: PageData) -> float:
    """Return the epsilon the page speaks of: 1, or the nearest on a log scale."""
    claimed = [loss.claimed for loss in data.losses]
    found = levels(data.scores) if data.x.name == EPSILON.name else []
    numbers = [each for each in found or claimed or [1.0] if not isinstance(each, str)]
    return float(min(numbers or [1.0], key=lambda each: abs(math.log(each))))


def reference(data: PageData) -> Value:
    """Return the level of the headline: that epsilon, or the last of another axis."""
    found = levels(data.scores)
    return reference_epsilon(data) if _by_epsilon(data) else found[-1]


def _by_epsilon(data: PageData) -> bool:
    return data.x.name == EPSILON.name and ordered(levels(data.scores))


def main_row(data: PageData) -> pd.Series | None:
    """Return the score the headline states, of the first metric.

    It is the run's main score, where one is marked; else at that level the best one of
    the main methods of the first protocol that has any which a deployment could use.
    """
    if not data.measured:
        return None
    metric = data.measured[0]
    scores = data.of(metric).dropna(subset=["value"])
    if "main" in scores and scores["main"].notna().any():
        return pd.Series(scores[scores["main"].notna()].iloc[0])
    scores = scores[scores["level"] == reference(data)]
    best = "idxmin" if metric.better == "lower" else "idxmax"
    rows = next((rows for rows in _candidates(data, scores) if len(rows)), None)
    if rows is None:
        return None
    return pd.Series(rows.loc[getattr(rows["value"].astype(float), best)()])


def _candidates(data: PageData, scores: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the rows that a headline may be about, the fittest ones first."""
    scores = scores.reset_index(drop=True)
    usable = [s for s in series_names(scores) if not method_of(s).study_only]
    ours = scores[scores["series"].isin(usable)]
    for protocol, main in data.main.items():
        mine = ours["protocol"] == protocol
        yield ours[mine & ours["method"].isin(main)]
    yield from (ours, scores)


def _beside(data: PageData, method: str, row: pd.Series, place: Value) -> pd.DataFrame:
    """Return the score of a method at a level for the learner of ``row``, if any.

    A main method stands for whichever was taken at that level.
    """
    scores = data.of(data.measured[0])
    main = data.main.get(row["protocol"], ())
    everywhere = scores["learner"].isna()
    same = everywhere | (scores["learner"] == row["learner"])
    same &= scores["level"].isin([place, math.inf])
    same &= scores["method"].isin(main if method in main else (method,))
    own = scores["protocol"] == row["protocol"]
    found = scores[same & own]
    return pd.DataFrame((found if len(found) else scores[same & everywhere]).head(1))


def _spoken(data: PageData, row: pd.Series) -> list[tuple[Method, float]]:
    """Return what stands beside the headline, and its value there."""
    found = []
    told = {n: m for n, m in known().items() if m.spoken or m.reference}
    for name, method in told.items():
        rows = _beside(data, name, row, row["level"]).dropna(subset=["value"])
        if name != row["method"] and len(rows):
            found.append((method, float(rows["value"].iloc[0])))
    return found


def _clearly_better(
    data: PageData, row: pd.Series, other: Method, place: Value
) -> bool:
    pair = [_beside(data, name, row, place) for name in (row["method"], other.name)]
    both = pd.concat(pair)
    if len(both) < len(pair):
        return False
    ours, theirs = both["value"].to_numpy(float)
    spread = math.hypot(*both["se"].astype(float).fillna(0))
    gain = theirs - ours if data.measured[0].better == "lower" else ours - theirs
    return bool(gain > CLEARLY * spread)


def _who(row: pd.Series) -> str:
    name = method_of(str(row["series"])).label
    if row["learner"] == row["protocol"]:
        return name if name == row["learner"] else f"{row['learner']} ({name})"
    return name if pd.isna(row["learner"]) else f"{name} with {row['learner']}"


def _named(method: Method) -> str:
    return method.spoken or method.label


def _said(data: PageData, value: str) -> tuple[str, str]:
    """Return how a sentence goes on after who has a value: up to it, and after it."""
    metric = data.measured[0]
    said = f" {metric.said}" if metric.said else f": {metric.label} {{value}}"
    before, _, after = said.format(record=data.record, value="|").partition("|")
    return before + value + unit(metric), after


def headline(data: PageData) -> str:
    """State the main result in one sentence."""
    row = main_row(data)
    if row is None:
        known_of = [s.estimates for s in data.sections if s.estimates]
        beyond = f", beyond {known_of[0]}" if known_of else ""
        who = promises.party(data) if promises.local(data) else data.record
        return (
            "No true error is known: real releases say nothing about how often the"
            f" classifier errs on new {who}s{beyond}."
        )
    metric = data.measured[0]
    se = "" if pd.isna(row["se"]) else f" (± {number(row['se'], metric)})"
    said, after = _said(data, number(row["value"], metric))
    parts = [f"At {_level(data, row)}, {_who(row)}{said}{se}{after}"]
    for method, value in _spoken(data, row):
        if method.reference:
            parts.append(_named(method) + _said(data, number(value, metric))[0])
    bound = data.bounds.get(metric.name)
    if bound is not None:
        least = "the Bayes error, the least that any classifier can reach, is"
        parts.append(f"{least} {number(bound, metric)}{unit(metric)}")
    return "; ".join(parts) + "."


def verdict(data: PageData) -> str:
    """Say from which level on the main method clearly beats what it is held against."""
    row = main_row(data)
    others = [] if row is None else [m for m, _ in _spoken(data, row) if m.reference]
    if row is None or not others:
        return ""
    scores = data.of(data.measured[0])
    if _by_epsilon(data):  # nobody beats what has none: it shows what privacy costs
        others = [method for method in others if method.name in _placed(data)]
        if not others:
            return ""
    found = levels(scores)
    # What has no place on the axis has none that a sentence could speak of.
    every = [at for at in found if at != math.inf] or found
    than = _named(others[0])
    wins = [_clearly_better(data, row, others[0], place) for place in every]
    who, x = _who(row), data.x.name
    if all(wins):
        return f"{who} is clearly better than {than} at every {x} tried."
    if not _by_epsilon(data):
        good = [level(at) for at, win in zip(every, wins, strict=True) if win]
        where = f"at {x} {', '.join(good)} only" if good else f"at no {x} tried"
        return f"{who} is clearly better than {than} {where}."
    if not wins[-1]:
        return (
            f"At the largest epsilon tried, {level(every[-1])}, {who} is not clearly"
            f" better than {than}: the noise hides what there is to learn."
        )
    first = len(wins) - wins[::-1].index(False)
    return (
        f"{who} is clearly better than {than} from epsilon"
        f" {level(every[first])} on; at {level(every[first - 1])} it is not."
    )


def _placed(data: PageData) -> set[str]:
    """Return the methods that have a place on the axis."""
    scores = data.of(data.measured[0])
    return set(scores.loc[scores["level"] != math.inf, "method"])


def _level(data: PageData, row: pd.Series) -> str:
    text = level(row["level"])
    if data.x.name == EPSILON.name and text == "none":
        return "no privacy"
    return f"{data.x.name} {text}"


def tiles(data: PageData) -> list[tuple[str, str, str, str]]:
    """Return the numbers shown large: (value, its unit, name, what it is)."""
    row = main_row(data)
    if row is None:
        return []
    metric, place = data.measured[0], _level(data, row)
    where = place if pd.isna(row["learner"]) else f"{place}, {row['learner']}"
    shown = [(float(row["value"]), method_of(str(row["series"])).label, where)]
    for method, value in _spoken(data, row):
        at = place if method.reference else where
        if _by_epsilon(data) and method.name not in _placed(data):
            at = "no epsilon"
        shown.append((value, _named(method), at))
    if metric.name in data.bounds:
        shown.append((data.bounds[metric.name], "Bayes", "the least possible"))
    return [(number(x, metric), unit(metric), name, at) for x, name, at in shown]


def heading(data: PageData, metric: Metric) -> str:
    """Return the title of a metric's figure."""
    at = "privacy level" if data.x.name == EPSILON.name else data.x.name
    return f"{_begun(data.label(metric))} at each {at}"


def meaning(data: PageData, metric: Metric) -> str:
    """Say what a metric is."""
    return _begun((metric.words or metric.label).format(record=data.record))


def _begun(text: str) -> str:
    """Begin a sentence with a text."""
    return text[:1].upper() + text[1:]


def caption(data: PageData, metric: Metric) -> str:
    """Say what the numbers of a metric's table are."""
    return _begun(data.label(metric)) + " in percent" * bool(unit(metric))


def best(metric: Metric) -> str:
    """Return what the best of several values is."""
    return "lowest" if metric.better == "lower" else "highest"


def lines_alt(data: PageData, metric: Metric) -> str:
    """Say what a metric's figure shows, for readers who cannot see it."""
    names = ", ".join(learners(data.scores))
    panels = f"one panel for each of {names}" if names else "one panel"
    found = ", ".join(level(each) for each in levels(data.of(metric))) or "none"
    first = f" {headline(data)}" if metric is data.measured[0] else ""
    return (
        f"Line chart of the {data.label(metric)} against {data.x.name}"
        f" ({found}), {panels}, one line for each method.{first}"
    )


def replicates(data: PageData) -> str:
    """Count the replicates in words."""
    return (
        "one replicate" if data.replicates == 1 else f"{data.replicates:,} replicates"
    )


def further(overrides: Sequence[str]) -> list[str]:
    """Return the overrides that a head does not show by themselves."""
    own = ("replicates", "seed")
    return [text for text in overrides if text.partition("=")[0] not in own]


def commands(data: PageData) -> list[tuple[str, str]]:
    """Return (command, what it does) for going on from this report."""
    name = shlex.quote(data.pipeline)
    options = [f"--set {shlex.quote(text)}" for text in further(data.overrides)]
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
