"""Reputation of a deployed model: what those it is used on have told of it so far."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

# The alias of the model that others are held against.
CHAMPION_ALIAS: Final = "champion"
# A name in MLflow's registry: the model, and an alias or a version.
REGISTERED: Final = re.compile(r"models:/([\w. -]+)(?:@([\w-]+)|/([0-9]+))")


class Reading(NamedTuple):
    """Figure after a look, or of a window: its number, answers, and interval."""

    number: int
    answers: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Reputation:
    """Figure of a model as it runs and by windows, and what alarms were given.

    ``looks`` and ``windows`` are in order, and the last look has all answers. With
    ``percent`` the figure is a share. ``kinds`` are all alarms that there may be, and
    ``alarms`` those given, with the number of answers. ``models`` are those asked
    about, as whoever answers knows them; ``better`` is the better one of two.
    """

    figure: str
    percent: bool
    looks: Sequence[Reading]
    windows: Sequence[Reading]
    kinds: Sequence[str]
    alarms: Mapping[str, int]
    models: Sequence[str] = ()
    better: str = ""

    @property
    def title(self) -> str:
        """The figure of all answers with its interval, and the alarms."""
        alarms = f", alarm: {', '.join(self.alarms)}" if self.alarms else ""
        return f"{self.figure} {self.words(self.looks[-1])}{alarms}"

    def words(self, reading: Reading) -> str:
        """Return a figure with its interval, as ``89.0 % (75.3 to 100.0)``."""
        factor, form, unit = (100, ".1f", " %") if self.percent else (1, ".3g", "")
        value, low, high = (f"{factor * number:{form}}" for number in reading[2:])
        return f"{value}{unit} ({low} to {high})"

    def texts(self) -> dict[str, str]:
        """Return the answers, the figure of all of them, and the alarms, by name."""
        alarms = (f"{name} at {n:,} answers" for name, n in self.alarms.items())
        latest, alarm = self.looks[-1], "; ".join(alarms) or "none"
        named = {"answers": f"{latest.answers:,}", self.figure: self.words(latest)}
        return named | {"alarm": alarm}

    def metrics(self, reading: Reading) -> dict[str, float]:
        """Return a figure, its ends and its answers by name, as far as it is known."""
        names = "answers", self.figure, f"{self.figure}_low", f"{self.figure}_high"
        values = zip(names, reading[1:], strict=True)
        return {name: value for name, value in values if math.isfinite(value)}

    def outcome(self) -> dict[str, float]:
        """Return the metrics of all answers, and the number of alarms."""
        return self.metrics(self.looks[-1]) | {"alarms": float(len(self.alarms))}

    def document(self) -> dict[str, Any]:
        """Return the metrics of all answers and of each window, and the alarms."""
        windows = [{"window": w.number} | self.metrics(w) for w in self.windows]
        return self.outcome() | {"alarms": dict(self.alarms), "windows": windows}

    def points(self) -> Iterator[tuple[str, float, int]]:
        """Yield metric, value and step: of each look, each window, and the alarms."""
        for prefix, readings in (("", self.looks), ("window/", self.windows)):
            for reading in readings:
                for name, value in self.metrics(reading).items():
                    yield f"{prefix}{name}", value, reading.number
        yield "alarms", float(len(self.alarms)), self.looks[-1].number

    @property
    def promotion(self) -> str:
        """A command that makes the better model the champion; "" where none is due.

        Both must be names of MLflow's registry, and the better one not the champion.
        """
        names = {model: REGISTERED.fullmatch(model) for model in self.models}
        better = names.get(self.better)
        if better is None or None in names.values() or better[2] == CHAMPION_ALIAS:
            return ""
        name, alias, version = better.groups()
        find, guard = f"get_model_version('{name}', '{version}')", ""
        if alias:  # which may have moved since: that version has no tag of this
            find = f"get_model_version_by_alias('{name}', '{alias}')"
            guard = f" assert any(t.endswith('.{self.figure}') for t in v.tags);"
        return (
            f'python -c "from mlflow import MlflowClient; c = MlflowClient();'
            f" v = c.{find};{guard}"
            f" c.set_registered_model_alias(v.name, '{CHAMPION_ALIAS}', v.version)\""
        )
