"""Stages of `monitor`: the answers of all windows, and what they say of the model."""

from dataclasses import astuple
from pathlib import Path
from typing import Any, Final

import numpy as np

from curvote.chain import lookup
from curvote.chain.reputation import Reading, Reputation
from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.chain.system import View
from curvote.intake.box import Intake
from curvote.learning.sequences import DropDetector
from curvote.messages.message import payload_columns
from curvote.messages.stages import task_metadata
from curvote.systems.labels.messages import CODE
from curvote.systems.monitor import messages
from curvote.systems.monitor.messages import PLACE, Task
from curvote.systems.monitor.questions import (
    ERROR,
    VERSUS,
    Figure,
    Question,
    Tally,
    figures,
)
from curvote.systems.monitor.watch import drop_detector, main_figure

ANSWER: Final = messages.MESSAGES[messages.ASKS]
# The task of a round is stated by settings; its window, by the round that opens.
collect_task = messages.task_of


def collect_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the newest task, and when each window closes, by its number."""
    task = lookup.read_task(params["intake.task"])
    closes = {}
    with Intake(Path(params["intake.path"])) as intake:
        for round_id, _ in _accepted_rounds(params):
            opened = intake.round(round_id)
            if opened is not None:
                closes[str(opened.task.number)] = getattr(opened.task, "closes", None)
    return task_metadata(task) | {"closes": closes}


def collect(context: StageContext) -> Rows:
    """Return the table ``model_answers``: counts by window, look, place and code."""
    params, parts = context.params, []
    with Intake(Path(params["intake.path"])) as intake:
        for round_id, name in _accepted_rounds(params):
            opened = intake.round(round_id)
            number = 0 if opened is None else opened.task.number
            task: Any = lookup.read_task(context.metadata["task"])
            for look, sums in intake.batches(round_id, name).items():
                payloads, times = zip(*sums.payloads(), strict=True)
                columns = payload_columns([*payloads])
                counts = ANSWER.collect(task, columns, times)
                n = len(counts["count"])
                parts.append(
                    {"window": np.full(n, number), "look": np.full(n, look)} | counts
                )
    names = parts[0]
    return {"model_answers": {k: np.concatenate([p[k] for p in parts]) for k in names}}


def _accepted_rounds(params: Params) -> list[tuple[str, str]]:
    """Return id and digest of what was folded in of each window."""
    pairs = (entry.partition(" ") for entry in params["accepted"].split(", "))
    return [(round_id, name) for round_id, _, name in pairs]


def watch_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the task and the windows, as the answers have them."""
    return dict(inputs["answer"].metadata)


def watch(context: StageContext) -> Rows:
    """Return figures, their history and alarms, from counts alone.

    Looks are taken in the order in which they were folded in, whatever their window.
    """
    task = Task.from_json(context.metadata["task"])
    rows = context.rows("answer", "model_answers")
    return Findings.of_answers(task, rows, context.params).tables()


class Findings:
    """What all answers say: the figures, windows, looks and alarms of one watch.

    Each family of statements errs with probability at most ``error``, at all looks: the
    main figure; the windows together; the public groups together; each alarm.
    """

    def __init__(self, task: Task, params: Params) -> None:
        self.task, self.question = task, task.asked_question
        self.error = float(params["monitor.error"])
        self.rounds = int(params["monitor.rounds"])
        self.reference = params["monitor.reference"]
        self.margin = float(params["monitor.margin"])
        self.mechanism = task.noise()
        self.total = Tally(self.mechanism)
        self.places = [Tally(self.mechanism) for _ in task.places]
        self.windows: dict[int, Tally] = {}
        self.history: list[tuple[int, int, Figure]] = []
        self.alarms: dict[str, tuple[int, int]] = {}
        self.detector: DropDetector | None = None
        if self.reference is not None:
            bound = main_bound(self.question, self.reference, self.margin)
            self.detector = drop_detector(self.total, self.question, bound, self.error)

    @classmethod
    def of_answers(cls, task: Task, rows: Columns, params: Params) -> "Findings":
        """Return what the table ``model_answers`` says, look by look."""
        findings = cls(task, params)
        for look in np.unique(rows["look"]).tolist():
            part = {k: values[rows["look"] == look] for k, values in rows.items()}
            findings.add(look, part)
        return findings

    def add(self, look: int, part: Columns) -> None:
        """Take in the answers of one look."""
        codes = np.asarray(part[CODE], dtype=self.mechanism.dtype)
        for window in np.unique(part["window"]).tolist():
            rows = part["window"] == window
            tally = self.windows.setdefault(window, Tally(self.mechanism))
            tally.add(codes[rows], part["count"][rows])
        for place, tally in enumerate(self.places):
            rows = part[PLACE] == place
            tally.add(codes[rows], part["count"][rows])
        before = self.total.n, self.total.total
        self.total.add(codes, part["count"])
        if self.detector is not None:
            added = self.total.n - before[0], self.total.total - before[1]
            main_figure(self.question).feed(self.detector, self.mechanism, *added)
        main = figures(self.question, self.total, self.error, main_only=True)[0]
        self.history.append((look, self.total.n, main))
        self._raise_alarms(look, main)

    def _raise_alarms(self, look: int, main: Figure) -> None:
        n = self.total.n
        if self.detector is not None and self.detector.alarm is not None:
            self.alarms.setdefault(DROP, (look, n))
        if self.question.name == VERSUS and main.low > 0:
            self.alarms.setdefault(LEADS[0], (look, n))
        if self.question.name == VERSUS and main.high < 0:
            self.alarms.setdefault(LEADS[1], (look, n))
        for figure in self._group_figures():
            worse = figure.high < main.low - self.margin
            if self.question.name == ERROR:
                worse = figure.low > main.high + self.margin
            if worse:
                name = f"{figure.group} {BEHIND}"
                self.alarms.setdefault(name, (look, n))

    def _group_figures(self) -> list[Figure]:
        """Return the main figure of each group, private or public."""
        if self.question.groups:
            main = figures(self.question, self.total, self.error, main_only=True)
            return main[1:]
        share = self.error / max(1, len(self.places))
        return [
            figures(self.question, tally, share, main_only=True)[0].in_group(name)
            for name, tally in zip(self.task.places, self.places, strict=True)
        ]

    def tables(self) -> Rows:
        """Return the four tables of a watch."""
        every = figures(self.question, self.total, self.error)
        if not self.question.groups:
            by_place = self._group_figures()
            every += [*by_place, *_median_of_groups(by_place)]
        share = self.error / self.rounds
        by_window = {
            window: figures(self.question, tally, share, main_only=True)[0]
            for window, tally in sorted(self.windows.items())
        }
        names = ("name", "value", "low", "high", "share", "liars", "member")
        columns = zip(*map(astuple, every), strict=True)
        return {
            "watch_figures": {
                name: _column(name, values)
                for name, values in zip(names, columns, strict=True)
            },
            "watch_windows": {
                "window": np.array([*by_window]),
                "n": np.array([self.windows[window].n for window in by_window]),
                **_ends([*by_window.values()]),
            },
            "watch_looks": {
                "look": np.array([look for look, _, _ in self.history]),
                "n": np.array([n for _, n, _ in self.history]),
                **_ends([figure for _, _, figure in self.history]),
            },
            "watch_alarms": {
                "alarm": np.array([*self.alarms], dtype=object),
                "look": np.array([at[0] for at in self.alarms.values()], np.int64),
                "n": np.array([at[1] for at in self.alarms.values()], np.int64),
            },
        }


def _median_of_groups(groups: list[Figure]) -> list[Figure]:
    """Return the median of three or more groups' figures, if there are so many.

    It holds where all groups' intervals do. Whoever lies in one group can move it to
    the next group's figure and no further: that is what stands for liars.
    """
    values = np.sort([figure.value for figure in groups])
    if len(values) < FEWEST_GROUPS or np.isnan(values).any():
        return []
    low, middle, high = (
        float(np.median([getattr(figure, name) for figure in groups]))
        for name in ("low", "value", "high")
    )
    near = len(values) // 2
    moved = float(max(values[near + 1] - middle, middle - values[near - 1]))
    return [Figure("median of groups", middle, low, high, groups[0].share, moved)]


FEWEST_GROUPS: Final = 3
TEXTS: Final = ("name", "member")
# Kinds of alarms; the last is said of a group.
DROP, LEADS = "drop", ("the first is better", "the second is better")
BEHIND: Final = "falls behind"
# Of hardly anybody there is no value, such as the recall of a class that is rare.
OPTIONAL: Final = ("value", "liars")


def _column(name: str, values: tuple[Any, ...]) -> Any:
    if name in OPTIONAL and np.isnan(values).any():
        return np.array([None if np.isnan(v) else v for v in values], dtype=object)
    return np.array(values, dtype=object if name in TEXTS else np.float64)


def _ends(rows: list[Figure]) -> Columns:
    return {
        name: np.array([getattr(row, name) for row in rows])
        for name in ("value", "low", "high")
    }


def main_bound(question: Question, reference: float, margin: float) -> float:
    """Return the main figure at which a drop begins: of an error, a rise."""
    return reference + margin if question.name == ERROR else reference - margin


def watch_reputation(view: View) -> Reputation:
    """Return how the model of a watch stands; of two, which is better for sure."""
    names = ("figures", "alarms", "looks", "windows")
    table, alarms, *runs = (view.columns("watch", f"watch_{name}") for name in names)
    task = Task.from_json(view.metadata("watch")["task"])
    readings = (zip(*(c.tolist() for c in t.values()), strict=True) for t in runs)
    looks, windows = ([Reading(*row) for row in rows] for rows in readings)
    kinds = [DROP] if view.setting("monitor.reference") is not None else []
    kinds += LEADS if task.question == VERSUS else ()
    kinds += [f"{name} {BEHIND}" for name in (*task.groups, *task.places)]
    better, models = "", task.model or ()
    if task.question == VERSUS and models:
        leads = {models[0]: looks[-1].low > 0, models[1]: looks[-1].high < 0}
        better = next((model for model, beyond in leads.items() if beyond), "")
    return Reputation(
        str(table["name"][0]),
        percent=task.question != ERROR,
        looks=looks,
        windows=windows,
        kinds=kinds,
        alarms=dict(zip(alarms["alarm"], alarms["n"].tolist(), strict=True)),
        models=models,
        better=better,
    )


def alarm_notes(views: Any) -> list[str]:
    """Return a line for each alarm, and what would make the better model champion."""
    notes = []
    for view in views:
        table = view.columns("watch", "watch_alarms")
        notes += [
            f"alarm: {name}, found at {n:,} answers (look {look})"
            for name, look, n in zip(*table.values(), strict=True)
        ]
        model = watch_reputation(view)
        if command := model.promotion:
            notes.append(
                f"{model.better} is better beyond chance; with MLFLOW_TRACKING_URI"
                f" set, this would make it the champion: {command}"
            )
    return notes
