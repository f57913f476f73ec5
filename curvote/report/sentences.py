"""Sentences of the report, from the data alone and for any reader."""

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from curvote.chain.axis import EPSILON, Value
from curvote.chain.measure import Method, Metric
from curvote.chain.system import MessageDescription
from curvote.messages.amplification import OUTSIDER
from curvote.pipeline.config.source import reads_user_file
from curvote.report import data as tables
from curvote.report.data import PageData, find_method, format_level, sorted_levels


def has_local_messages(data: PageData) -> bool:
    """Return whether somebody sends a message about one record."""
    deployed = _deployed_messages(data)
    return not deployed or not all(message.per_table for message in deployed)


def has_central_releases(data: PageData) -> bool:
    """Return whether somebody releases an object about a whole table."""
    return any(message.per_table for message in _deployed_messages(data))


def _deployed_messages(data: PageData) -> list[MessageDescription]:
    return [message for message in data.releases if not message.study_only]


def party_name(data: PageData) -> str:
    """Return the name of senders: "client", or "client or server"."""
    parties = dict.fromkeys(message.party for message in _deployed_messages(data))
    return " or ".join(parties) or "client"


def releases_heading(data: PageData) -> str:
    """Return the heading of the section on released messages."""
    return f"What left each {party_name(data)}"


def release_frequency(data: PageData) -> str:
    """Return sentences on how often each sender releases something."""
    words = []
    if has_local_messages(data):
        words.append("Each client has one role and sends its message once.")
    if has_central_releases(data):
        words.append(
            f"Each {_table_holder(data)} releases one object about all of its records,"
            " once; it answers every query, and serves every target."
        )
    return " ".join(words)


def _table_holder(data: PageData) -> str:
    return next(m.party for m in _deployed_messages(data) if m.per_table)


def protection_statement(data: PageData) -> str:
    """Return a statement on whether this run's noise protects anybody."""
    who = party_name(data)
    if data.private:
        return (
            "This is a real release. The noise came from the operating system of each"
            f" {who} and was never stored; only the noised values below left a {who}."
        )
    return (
        f"This is a study: the {who}s are simulated from a data set, and the noise"
        f" comes from the seed {data.seed}. Whoever knows the seed can remove the"
        f" noise, so this run protects nobody. It shows what would leave each {who}"
        " in a real release, and how good the classifier would be."
    )


def explain_epsilon(data: PageData, level: float) -> str:
    """Explain epsilon, at a level, to a reader who has never met it."""
    words, record = [], data.record
    at_level = f"(at epsilon {level:g}: {math.exp(level):.3g} times)"
    if has_local_messages(data):
        words.append(
            "Epsilon limits what a release can give away: whatever the client's"
            f" {record} is, every possible message is at most e^epsilon times as"
            f" likely as under any other {record} {at_level}."
        )
    if has_central_releases(data):
        holder = _table_holder(data)
        words.append(
            f"The model is central privacy for each {holder}: a release is about all n"
            f" {record}s of its {holder}, and every one of them is hidden at (epsilon,"
            " delta) from whoever sees the release, the target included. If any one"
            f" {record} were another, whatever is released would be at most e^epsilon"
            f" times as likely {at_level}, but for a probability of delta. The {holder}"
            f" itself is trusted with its own {record}s; somebody whose {record} two of"
            " them hold loses the sum."
        )
    return " ".join([*words, "Smaller is more private."])


def _is_central_only(data: PageData) -> bool:
    return has_central_releases(data) and not has_local_messages(data)


def losses_caption(data: PageData) -> str:
    """Return the caption of the table of losses."""
    if _is_central_only(data):
        return f"Claimed and exact loss of one release, for each {data.record} in it."
    return "Claimed and exact loss of one message of one client."


def charged_cap(data: PageData) -> str:
    """Return whose cap the ledger counts against, in words."""
    if _is_central_only(data):
        return f"the cap of every {data.record} that a release is about"
    return "every client's cap"


def outsider_statement(data: PageData) -> str:
    """Return a statement on what outsiders learn at most, "" if unknown."""
    if not data.outside:
        return ""
    listed = "; ".join(
        f"{name}: epsilon {guarantee.epsilon:.3g} at delta {guarantee.delta:.1g}, among"
        f" {guarantee.crowd:,}"
        for name, guarantee in data.outside
    )
    return (
        "The server sees messages come in, and against it every client has the epsilon"
        f" above. For {OUTSIDER}, one client's {data.record} is hidden better, as its"
        f" message is one of many (Feldman, McMillan & Talwar 2021). {listed}."
    )


def audit_statement(data: PageData) -> str:
    """Return a statement on the audit of messages, or how to make one."""
    command = f"curvote audit --pipeline {shlex.quote(data.pipeline)}"
    plugins = dict.fromkeys(loss.plugin for loss in data.losses if loss.plugin)
    words = "".join(
        f"The noise of {plugin} is a plug-in's: what curvote ships and audits does not"
        " cover it, and its exact loss is what its own law says. "
        for plugin in plugins
    )
    if not data.audited:
        return words + (
            f"{command} also tries to break these claims from samples; not done yet."
        )
    return words + f"Tried to break from samples as well ({command}): {data.audited}."


NOT_PRIVATE = (
    "Bounds were computed from the clients' data: this run is NOT PRIVATE, whatever its"
    " epsilon. It repeats a publication."
)

PRIVATE_FILE_NOTE = (
    "The unit of privacy is one client's record. What was counted while the clients'"
    " file was read (rows, repeats, gaps) depends on their data and is not published;"
    " its owner finds it in the manifests of data/clients/ingest."
)


def source_notes(facts: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """Return notes on the data: leaks, the source's own notes, origins.

    Nothing is told that was counted in a file which nobody published, and its digest
    under a key only.
    """
    bounds = config.get("project", {}).get("bounds")
    notes = [NOT_PRIVATE] if bounds == "from_data" else []
    user_file = reads_user_file(config["source"])
    notes += [PRIVATE_FILE_NOTE] if user_file else facts.get("notes", ())
    plain = not user_file and config.get("mode") != "production"
    kind, words = ("sha256", "SHA-256") if plain else ("hmac_sha256", "HMAC-SHA-256")
    for file in facts.get("raw", ()):
        digest = f"{words} {file[kind]} " if kind in file else ""
        notes.append(f"Raw file {file['name']}: {digest}({file['origin']}).")
    return notes


def record_word(facts: Mapping[str, Any]) -> str:
    """Return the word for one record: the source's own, if it has one."""
    if "record" in facts:
        return str(facts["record"])
    return "curve" if "grid" in facts and not facts.get("features") else "record"


# What "clearly" means: a difference of more than this many standard errors.
CLEAR_ERRORS = 2.0


def reference_epsilon(data: PageData) -> float:
    """Return the epsilon that the page states: nearest to 1 on a log scale."""
    claimed = [loss.claimed for loss in data.losses]
    levels = sorted_levels(data.scores) if data.x.name == EPSILON.name else []
    numbers = [value for value in levels or claimed if not isinstance(value, str)]
    return float(min(numbers or [1.0], key=lambda value: abs(math.log(value))))


def reference_level(data: PageData) -> Value:
    """Return the headline's level: the stated epsilon, or another axis' last."""
    if _is_by_epsilon(data):
        return reference_epsilon(data)
    return sorted_levels(data.scores)[-1]


def _is_by_epsilon(data: PageData) -> bool:
    levels = sorted_levels(data.scores)
    return data.x.name == EPSILON.name and tables.are_numbers(levels)


def headline_row(data: PageData) -> pd.Series | None:
    """Return the row of scores that the headline states, None if none.

    It is the run's main score, where one is marked; else at that level the best one of
    the main methods of the first protocol that has any which a deployment could use.
    """
    if not data.measured_metrics:
        return None
    metric = data.measured_metrics[0]
    scores = data.metric_scores(metric).dropna(subset=["value"])
    if "main" in scores and scores["main"].notna().any():
        return pd.Series(scores[scores["main"].notna()].iloc[0])
    scores = scores[scores["level"] == reference_level(data)]
    best = "idxmin" if metric.better == "lower" else "idxmax"
    # Rows that a headline may state, the fittest first.
    scores = scores.reset_index(drop=True)
    names = [s for s in tables.series_names(scores) if not find_method(s).study_only]
    usable = scores[scores["series"].isin(names)]
    of_main = (
        usable[(usable["protocol"] == protocol) & usable["method"].isin(main)]
        for protocol, main in data.main.items()
    )
    for rows in (*of_main, usable, scores):
        if len(rows):
            return pd.Series(rows.loc[getattr(rows["value"].astype(float), best)()])
    return None


def _score_at(
    data: PageData, method: str, row: pd.Series, place: Value
) -> pd.DataFrame:
    """Return the score of a method at a level, for the learner of ``row``.

    A main method stands for whichever was taken at that level.
    """
    scores = data.metric_scores(data.measured_metrics[0])
    main = data.main.get(row["protocol"], ())
    everywhere = scores["learner"].isna()
    same = everywhere | (scores["learner"] == row["learner"])
    same &= scores["level"].isin([place, math.inf])
    same &= scores["method"].isin(main if method in main else (method,))
    of_protocol = scores["protocol"] == row["protocol"]
    exact = scores[same & of_protocol]
    return pd.DataFrame((exact if len(exact) else scores[same & everywhere]).head(1))


def _mentioned_methods(data: PageData, row: pd.Series) -> list[tuple[Method, float]]:
    """Return the methods that the headline mentions, with their values."""
    mentioned = []
    scores = data.metric_scores(data.measured_metrics[0])
    scored = {*scores["method"], *data.main.get(row["protocol"], ())} - {row["method"]}
    for name, method in tables.methods_by_name().items():
        if name not in scored or not (method.short_phrase or method.reference):
            continue
        rows = _score_at(data, name, row, row["level"]).dropna(subset=["value"])
        if len(rows):
            mentioned.append((method, float(rows["value"].iloc[0])))
    return mentioned


def _row_subject(row: pd.Series) -> str:
    name = find_method(str(row["series"])).label
    if row["learner"] == row["protocol"]:
        return name if name == row["learner"] else f"{row['learner']} ({name})"
    return name if pd.isna(row["learner"]) else f"{name} with {row['learner']}"


def _short_name(method: Method) -> str:
    return method.short_phrase or method.label


def _metric_phrase(data: PageData, value: str) -> tuple[str, str]:
    """Return a sentence's part with a metric's value, and the part after it."""
    metric = data.measured_metrics[0]
    phrase = f" {metric.sentence}" if metric.sentence else f": {metric.label} {{value}}"
    before, _, after = phrase.format(record=data.record, value="|").partition("|")
    return before + value + tables.display_unit(metric), after


def headline(data: PageData) -> str:
    """Return the main result as one sentence."""
    row = headline_row(data)
    if row is None:
        for finding in (s.finding for s in data.sections if s.finding):
            return f"{finding}."
        known_of = [s.estimates for s in data.sections if s.estimates]
        beyond = f", beyond {known_of[0]}" if known_of else ""
        who = party_name(data) if has_local_messages(data) else data.record
        return (
            "No true error is known: real releases say nothing about how often the"
            f" classifier errs on new {who}s{beyond}."
        )
    metric = data.measured_metrics[0]
    se = "" if pd.isna(row["se"]) else f" (± {tables.format_score(row['se'], metric)})"
    phrase, after = _metric_phrase(data, tables.format_score(row["value"], metric))
    parts = [f"At {_describe_level(data, row)}, {_row_subject(row)}{phrase}{se}{after}"]
    for method, value in _mentioned_methods(data, row):
        if method.reference:
            phrase, _ = _metric_phrase(data, tables.format_score(value, metric))
            parts.append(_short_name(method) + phrase)
    bound = data.bounds.get(metric.name)
    if bound is not None:
        least = tables.format_score(bound, metric) + tables.display_unit(metric)
        any_classifier = "the Bayes error, the least that any classifier can reach, is"
        parts.append(f"{any_classifier} {least}")
    return "; ".join(parts) + "."


def verdict_sentence(data: PageData) -> str:
    """Return a sentence on the levels at which the main method is clearly better."""
    row = headline_row(data)
    if row is None:
        return ""
    references = [m for m, _ in _mentioned_methods(data, row) if m.reference]
    if _is_by_epsilon(data):  # nobody beats what has none: it shows what privacy costs
        on_axis = _methods_on_axis(data)
        references = [method for method in references if method.name in on_axis]
    if not references:
        return ""
    axis_levels = sorted_levels(data.metric_scores(data.measured_metrics[0]))
    # What has no place on the axis has none that a sentence could speak of.
    tried = [at for at in axis_levels if at != math.inf] or axis_levels
    reference_name = _short_name(references[0])
    wins, lower = [], data.measured_metrics[0].better == "lower"
    for place in tried:
        names = row["method"], references[0].name
        scores = pd.concat([_score_at(data, name, row, place) for name in names])
        win = len(scores) == len(names)  # else one of them is not known
        if win:
            ours, theirs = scores["value"].to_numpy(float)
            spread = math.hypot(*scores["se"].astype(float).fillna(0))
            gain = theirs - ours if lower else ours - theirs
            win = bool(gain > CLEAR_ERRORS * spread)
        wins.append(win)
    subject, x = _row_subject(row), data.x.name
    if all(wins):
        return f"{subject} is clearly better than {reference_name} at every {x} tried."
    if not _is_by_epsilon(data):
        good = [format_level(at) for at, win in zip(tried, wins, strict=True) if win]
        where = f"at {x} {', '.join(good)} only" if good else f"at no {x} tried"
        return f"{subject} is clearly better than {reference_name} {where}."
    if not wins[-1]:
        return (
            f"At the largest epsilon tried, {format_level(tried[-1])}, {subject} is not"
            f" clearly better than {reference_name}: the noise hides what there is to"
            " learn."
        )
    first = len(wins) - wins[::-1].index(False)
    return (
        f"{subject} is clearly better than {reference_name} from epsilon"
        f" {format_level(tried[first])} on; at {format_level(tried[first - 1])} it is"
        " not."
    )


def _methods_on_axis(data: PageData) -> set[str]:
    """Return the methods that have a place on the axis."""
    scores = data.metric_scores(data.measured_metrics[0])
    return set(scores.loc[scores["level"] != math.inf, "method"])


def _describe_level(data: PageData, row: pd.Series) -> str:
    text = format_level(row["level"])
    if data.x.name == EPSILON.name and text == "none":
        return "no privacy"
    return f"{data.x.name} {text}"


def headline_tiles(data: PageData) -> list[tuple[str, str, str, str]]:
    """Return the headline numbers: (value, unit, name, description)."""
    row = headline_row(data)
    if row is None:
        return []
    metric, place = data.measured_metrics[0], _describe_level(data, row)
    where = place if pd.isna(row["learner"]) else f"{place}, {row['learner']}"
    values = [(float(row["value"]), find_method(str(row["series"])).label, where)]
    for method, value in _mentioned_methods(data, row):
        at = place if method.reference else where
        if _is_by_epsilon(data) and method.name not in _methods_on_axis(data):
            at = "no epsilon"
        values.append((value, _short_name(method), at))
    if metric.name in data.bounds:
        values.append((data.bounds[metric.name], "Bayes", "the least possible"))
    unit = tables.display_unit(metric)
    return [(tables.format_score(x, metric), unit, name, at) for x, name, at in values]


def metric_heading(data: PageData, metric: Metric) -> str:
    """Return the title of a metric's figure."""
    at = "privacy level" if data.x.name == EPSILON.name else data.x.name
    return f"{_capitalize(data.metric_label(metric))} at each {at}"


def metric_meaning(data: PageData, metric: Metric) -> str:
    """Return a sentence that defines a metric."""
    return _capitalize((metric.words or metric.label).format(record=data.record))


def _capitalize(text: str) -> str:
    """Return a text with a capital letter at its start."""
    return text[:1].upper() + text[1:]


def metric_caption(data: PageData, metric: Metric) -> str:
    """Return the caption of a metric's table."""
    percent = " in percent" if tables.display_unit(metric) else ""
    return _capitalize(data.metric_label(metric)) + percent


def figure_alt_text(data: PageData, metric: Metric) -> str:
    """Return a description of a metric's figure, for readers who cannot see it."""
    names = ", ".join(tables.learners(data.scores))
    panels = f"one panel for each of {names}" if names else "one panel"
    levels = sorted_levels(data.metric_scores(metric))
    level_texts = ", ".join(map(format_level, levels)) or "none"
    first = f" {headline(data)}" if metric is data.measured_metrics[0] else ""
    return (
        f"Line chart of the {data.metric_label(metric)} against {data.x.name}"
        f" ({level_texts}), {panels}, one line for each method.{first}"
    )


def count_replicates(data: PageData) -> str:
    """Return the number of replicates in words."""
    n = data.replicates
    return "one replicate" if n == 1 else f"{n:,} replicates"


def extra_overrides(overrides: Sequence[str]) -> list[str]:
    """Return the overrides that the page's head does not show already."""
    shown_keys = ("replicates", "seed")
    return [text for text in overrides if text.partition("=")[0] not in shown_keys]


def next_commands(data: PageData) -> list[tuple[str, str]]:
    """Return (command, effect) pairs for going on from this report."""
    name = shlex.quote(data.pipeline)
    options = [f"--set {shlex.quote(text)}" for text in extra_overrides(data.overrides)]
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
