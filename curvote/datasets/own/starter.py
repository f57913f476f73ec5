"""Starter pipelines for tables and curves, as YAML text.

Bounds, classes and grids are left open: they are called public, so they must be known
without the file. What is taken from it are names, kinds and how many records it has.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePath
from typing import Final
from unicodedata import normalize

from curvote.datasets.own.columns import FileLayout, count_runs
from curvote.datasets.own.open_places import TO_STATE

# Names that say what a column is, the plainest first.
_LABELS = ("label", "class", "outcome", "target", "diagnosis", "disease", "group", "y")
_IDS = ("id", "person", "patient", "client", "subject", "participant", "wearer", "who")
_TIMES = ("time", "hour", "timestamp", "datetime", "date", "minute", "second", "t")
_VALUES = ("value", "activity", "measurement", "reading", "count", "steps", "x")
# YAML 1.1 or 1.2 reads these as something else than a text.
_NO_TEXT = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_SIZES = (0.7, 0.2)  # of the records: who trains, who tests; the rest is slack


def table_pipeline(layout: FileLayout, path: str) -> tuple[str, str]:
    """Return name and text of a pipeline for a table, one record a row."""
    shared = [
        name for name in layout.names if name not in layout.unique_columns
    ] or layout.names
    label = _guess_column(layout.names, _LABELS) or shared[-1]
    candidates = [name for name in layout.names if name != label]
    id_column = _guess_column(candidates, _IDS) or next(
        (n for n in candidates if n in layout.unique_columns), None
    )
    # What names a row, is a code or a date says nothing as a number.
    no_feature = {
        name: "names its row"
        if name in layout.unique_columns
        else f"dates like {layout.dates.get(name, 'YYYY-MM-DD')}"
        if layout.kinds[name] == "date-time"
        else _NO_FEATURE[layout.kinds[name]]
        for name in candidates
        if name != id_column
        and (
            name in layout.unique_columns
            or layout.kinds[name] in {"date-time", *_NO_FEATURE}
        )
    }
    features = [
        name for name in candidates if name != id_column and name not in no_feature
    ]
    texts = [name for name in features if layout.kinds[name] != "number"]
    numbers = [name for name in features if name not in texts]
    name = _pipeline_name(path)
    lines = [
        f"  {name}:",
        "    source:",
        "      name: table            # one record a row",
        f"      path: {quote_yaml(path)}",
        *_form_settings(layout),
        *_missing_marks(layout),
        f"      id: {quote_yaml(id_column)}"
        if id_column
        else "      # id: COLUMN  (a release needs it)",
        f"      label: {quote_yaml(label)}",
        *_CLASSES,
        f"      features: [{', '.join(map(quote_yaml, features))}]",
        *_excluded_columns(no_feature, layout),
        *_BOUNDS,
        *_yaml_entries("bounds", numbers, f"[{TO_STATE}, {TO_STATE}]"),
        *(_TEXTS if texts else ()),
        *_yaml_entries("categories", texts, f"[{TO_STATE}]"),
        *_role_sizes(
            layout.rows,
            "rows",
            "repeat another" if id_column is None else "lack a value",
        ),
        "    # Each number becomes one around 0, by its bounds alone.",
        "    project:",
        "      {basis: identity, rescale: standard, centre: public, scale: public}",
        *_REST,
    ]
    return name, "\n".join(lines)


def curves_pipeline(layout: FileLayout, path: str) -> tuple[str, str]:
    """Return the name and the text of a pipeline for curves, one measurement a row."""
    four = _guess_long_columns(layout)
    id_column = four["id"]
    clients = (
        count_runs(layout.path, id_column, layout.form) if id_column != TO_STATE else 0
    )
    name = _pipeline_name(path)
    lines = [
        f"  {name}:",
        "    source:",
        "      name: curves           # one measurement a row",
        f"      path: {quote_yaml(path)}",
        *_form_settings(layout),
        *(f"      {key}: {quote_yaml(column)}" for key, column in four.items()),
        *_time_settings(layout, four["time"]),
        *_CLASSES,
        *(_CLOCK if "date-time" in layout.kinds.values() else _HOURS),
        f"      grid: {{start: {TO_STATE}, stop: {TO_STATE}, points: {TO_STATE}}}",
        f"      unit: {TO_STATE}",
        *_BOUNDS,
        f"      bounds: [{TO_STATE}, {TO_STATE}]",
        "      # Who was longer without a measurement is left out, and counted.",
        f"      gaps: {{most: {TO_STATE}}}",
        *_role_sizes(clients, "clients", "are too patchy"),
        "    # A curve becomes 5 numbers between -1 and 1, by its bounds alone.",
        "    project: {basis: fourier, size: 5, rescale: min_max, bounds: public}",
        *_REST,
    ]
    return name, "\n".join(lines)


SIMULATED: Final = """\
  demo:
    source: {name: simulated}  # of your own: `curvote init --table FILE` or `--curves`
    clients: {train: 3000, test: 500}
    project:
      {basis: bspline, size: 4, coordinates: orthonormal, rescale: standard, scale: 0.6}
    # `auto` takes what the number of clients and epsilon call for; a learner on the
    # numbers themselves shows what privacy costs, the majority what it must beat.
    protocols:
      - auto
      - {name: clean, label: no privacy, learners: [logistic]}
      - {name: majority, label: nothing learnt}
    epsilon: [0.5, 1, 2, 5]
    replicates: 20
    # schedule: {cron: "0 6 * * 1", timezone: UTC}"""
_BOUNDS = (
    "      # Bounds are public: state what is known without the file, from the",
    "      # device's or the field's limits. Never its least and largest value: those",
    "      # are somebody's.",
)
_TEXTS = (
    "      # The texts that may stand there, known without the file; each becomes a",
    "      # number of its own, 0 or 1. What is neither number nor one of a few texts,",
    "      # such as a date, is no feature: take it out here and there.",
)
_HOURS = (
    "      # The public grid on which every curve is read, in `unit`, for instance",
    "      # {start: 0, stop: 24, points: 49} with unit: h.",
)
_CLOCK = (
    "      # The public grid on which every curve is read, in `unit` (s, min, h or d)",
    "      # since the midnight before a client's first measurement: {start: 0, stop:",
    "      # 24, points: 49} with unit: h is a day, stop: 168 a week.",
)
_REST = (
    "    # `auto` takes what the number of clients and epsilon call for; a learner on",
    "    # the numbers themselves shows what privacy costs, the majority what it must",
    "    # beat.",
    "    protocols:",
    "      - auto",
    "      - {name: clean, label: no privacy, learners: [logistic]}",
    "      - {name: majority, label: nothing learnt}",
    "    epsilon: [1, 2, 5]  # a client's whole budget; smaller is more private",
    "    replicates: 20      # independent repetitions of this study",
    "    # `curvote serve` runs it by itself, at a time or every so many seconds:",
    '    # schedule: {cron: "0 6 * * 1", timezone: UTC}  # or {interval: 3600}',
)


_NO_FEATURE = {
    "code": "numbers with leading zeros: a code",
    "empty": "most of it is empty",
}
_CLASSES = (
    f"      positive: {TO_STATE}     # the label that is to be found, as it stands;",
    "      # with more than two labels instead: classes: [a, b, c]",
)


def _form_settings(layout: FileLayout) -> list[str]:
    """Return the form of the file where it is no plain CSV."""
    form = layout.form.model_dump(exclude_defaults=True)
    return [f"      {key}: {json.dumps(value)}" for key, value in form.items()]


def _missing_marks(layout: FileLayout) -> list[str]:
    marks = ", ".join(json.dumps(mark, ensure_ascii=False) for mark in layout.absent)
    return [f"      missing_values: [{marks}]"] if marks else []


def _excluded_columns(no_feature: dict[str, str], layout: FileLayout) -> list[str]:
    """Return the columns that are no features, and hints for dates."""
    lines = [
        f"      # no feature: {quote_yaml(n)} ({why})" for n, why in no_feature.items()
    ]
    dates = [name for name in no_feature if layout.kinds[name] == "date-time"]
    if dates:
        written = (
            f"{quote_yaml(dates[0])}:"
            f" {json.dumps(layout.dates.get(dates[0], '%Y-%m-%d'))}"
        )
        lines += [
            "      # (A date counts as days where it stands under features, and here",
            f"      # dates: {{{written}}}, bounds like [1920-01-31, 2025-12-31].)",
        ]
    return lines


def _time_settings(layout: FileLayout, time: str) -> list[str]:
    written = layout.dates.get(time, "%Y-%m-%d")
    plain = written.startswith("%Y-%m-%d")
    return [] if plain else [f"      dates: {json.dumps(written)}"]


def quote_yaml(text: str) -> str:
    """Return a text as a YAML scalar, quoted where needed."""
    plain = re.fullmatch(r"([A-Za-z_/]|\.\.?/)[\w./-]*", text, re.ASCII)  # not .5
    if plain and text.lower() not in _NO_TEXT:
        return text
    return json.dumps(text, ensure_ascii=False)


def _pipeline_name(path: str) -> str:
    """Return the name of a pipeline: the file's, without its ending."""
    stem = normalize("NFKD", PurePath(path).name.partition(".")[0])
    stem = stem.encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-").lower()
    return name if re.match(r"[a-z]", name) and name not in _NO_TEXT else f"my-{name}"


def _guess_column(names: list[str], candidates: tuple[str, ...]) -> str | None:
    """Return the first name among the ``candidates``, also as suffix."""
    plain = {re.sub(r"[_ ]?id$", "", n.lower()) or "id": n for n in reversed(names)}
    plain |= {name.strip().lower(): name for name in reversed(names)}
    return next(
        (plain[candidate] for candidate in candidates if candidate in plain), None
    )


def _guess_long_columns(layout: FileLayout) -> dict[str, str]:
    """Return the id, time, value and label columns of a long file."""
    candidates = {"id": _IDS, "time": _TIMES, "value": _VALUES, "label": _LABELS}
    remaining, four = layout.names, dict.fromkeys(candidates, TO_STATE)
    for key, words in candidates.items():
        four[key] = _guess_column(remaining, words) or TO_STATE
        remaining = [name for name in remaining if name != four[key]]
    open_ = [key for key, column in four.items() if column == TO_STATE]
    if len(open_) == len(remaining):
        four |= dict(zip(open_, remaining, strict=True))
    return four


def _yaml_entries(key: str, names: list[str], mark: str) -> list[str]:
    if not names:
        return []
    return [f"      {key}:", *(f"        {quote_yaml(name)}: {mark}" for name in names)]


def _role_sizes(n: int, what: str, why: str) -> list[str]:
    """Return the sizes of the roles for n records, which are public."""
    if not n:
        return [f"    clients: {{train: {TO_STATE}, test: {TO_STATE}}}"]
    train, test = (max(int(share * n), 1) for share in _SIZES)
    return [
        f"    # How many take part is public. There are {n} {what}; some are spare, as",
        f"    # records that {why} may be left out.",
        f"    clients: {{train: {train}, test: {test}}}",
    ]
