"""Section of the page of a watch: accuracy over time, groups, figures and alarms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from curvote.pipeline.run.results import RunView
from curvote.report import data, style
from curvote.systems.monitor.messages import Task
from curvote.systems.monitor.questions import CALIBRATION, CLASS, ERROR


@dataclass(frozen=True, eq=False)
class WatchSection(data.Section):
    """``figures``, ``windows``, ``looks`` and ``alarms`` of one watch, as tables.

    ``task`` is the question; ``settings`` are those of the watch, and ``closes`` says
    when each window ends.
    """

    task: Task
    settings: Any
    figures: pd.DataFrame
    windows: pd.DataFrame
    looks: pd.DataFrame
    alarms: pd.DataFrame
    closes: Mapping[str, str]

    name: ClassVar[str] = "watch"
    place: ClassVar[str] = "results"

    @property
    def percent(self) -> bool:
        """Whether its numbers are shares, shown in percent."""
        return self.task.question != ERROR

    @property
    def alt_text(self) -> str:
        """Return what the figure shows."""
        main = self.figures.iloc[0]
        return (
            f"{main['name']} after each look, between {self.format(main['low'])} and"
            f" {self.format(main['high'])} at the last"
        )

    @property
    def public(self) -> Sequence[str]:
        """Return what is public before any noise."""
        lines = ["who is invited in which window, and that an answer came"]
        if self.task.places:
            lines.append("which group each invitation names")
        return lines

    @property
    def estimates(self) -> str:
        """Return the words for a stand-in for errors that nobody knows."""
        return "what noised answers of those it is used on say of it"

    def format(self, value: float) -> str:
        """Return a number as the page shows it."""
        if np.isnan(value):
            return data.NO_VALUE
        return f"{100 * value:.1f} %" if self.percent else f"{value:.3g}"

    def members(self, *names: str) -> list[dict[str, Any]]:
        """Return the rows of the figures with these names, as texts."""
        rows = self.figures[self.figures["name"].isin(names)]
        return [
            {
                "name": row["name"],
                "group": row["member"],
                "value": self.format(row["value"]),
                "interval": f"{self.format(row['low'])} to {self.format(row['high'])}",
                "liars": self.format(row["liars"]),
            }
            for _, row in rows.iterrows()
        ]

    @property
    def summary(self) -> list[dict[str, Any]]:
        """The figures that have no table of their own."""
        apart = {"cell", "recall", "precision", "f1", "right"}
        return self.members(*{*self.figures["name"]} - apart)

    @property
    def by_class(self) -> list[dict[str, Any]]:
        """The figures of each class, or of each bin of stated probability."""
        kinds = {CLASS: ("recall", "precision", "f1"), CALIBRATION: ("right",)}
        return self.members(*kinds.get(self.task.question, ()))

    @property
    def confusion(self) -> list[list[str]]:
        """The shares of all answers: a row the model's class, a column the true one."""
        cells = self.figures[self.figures["name"] == "cell"]
        k = len(self.task.classes)
        texts = [self.format(value) for value in cells["value"]]
        return [texts[start : start + k] for start in range(0, len(texts), k)]

    @property
    def window_rows(self) -> list[dict[str, Any]]:
        """The windows, with the interval of each."""
        return [
            {
                "window": int(row["window"]),
                "closes": self.closes.get(str(int(row["window"]))) or data.NO_VALUE,
                "n": f"{int(row['n']):,}",
                "value": self.format(row["value"]),
                "interval": f"{self.format(row['low'])} to {self.format(row['high'])}",
            }
            for _, row in self.windows.iterrows()
        ]

    def draw(self, narrow: bool) -> Figure:
        """Draw the running figure with its sequence, and the windows, over answers."""
        figure, (ax,) = style.make_panels(1, narrow=narrow, height=3.6)
        scale = 100 if self.percent else 1
        n = self.looks["n"].to_numpy()
        low, value, high = (
            scale * self.looks[name].to_numpy() for name in ("low", "value", "high")
        )
        ax.fill_between(n, low, high, alpha=0.2, color="#0072b2", lw=0, step=None)
        ax.plot(n, value, color="#0072b2", lw=1.8, label="all answers so far")
        middle = np.cumsum(self.windows["n"]) - self.windows["n"] / 2
        centre = scale * self.windows["value"].to_numpy()
        bars = np.abs(centre - scale * self.windows[["low", "high"]].to_numpy().T)
        ax.errorbar(
            middle,
            centre,
            yerr=bars,
            fmt="o",
            ms=3.5,
            lw=0.9,
            color=style.INK,
            label="each window",
        )
        if self.settings.reference is not None:
            bound = scale * self.settings.reference
            ax.axhline(bound, color=style.INK, lw=0.9, ls=":", label="reference")
        for at in self.alarms["n"]:
            ax.axvline(at, color="#b00020", lw=1.2, label="alarm")
        if self.percent:
            ax.set_ylim(
                max(-100, np.floor(low.min() / 10) * 10 - 2), min(102, high.max() + 3)
            )
        name = str(self.figures["name"].iloc[0])
        ax.set_xlabel("answers")
        ax.set_ylabel(f"{name}, %" if self.percent else name)
        ax.grid(axis="y")
        handles, labels = ax.get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        ax.legend([*unique.values()], [*unique], loc="best", fontsize=8, frameon=False)
        return figure


def gather_watch(views: Sequence[RunView], _: pd.DataFrame) -> WatchSection | None:
    """Return the section of the one watch of a run."""
    (view, *_rest) = views
    if not view.holds("watch"):
        return None
    metadata = view.metadata("watch")
    names = ("figures", "windows", "looks", "alarms")
    tables = {
        name: pd.DataFrame(view.columns("watch", f"watch_{name}")) for name in names
    }
    task, closes = Task.from_json(metadata["task"]), metadata["closes"]
    return WatchSection(task, view.settings.monitor, closes=closes, **tables)
