"""What benchmarks measured, commit by commit.

A script ends with ``return record(NAME, ratios, ...)``: what it measured goes to
``build/benchmarks/NAME.json``, the bounds are printed, and the answer is the script's
exit code. `benchmarks.run_all` (``make bench``) makes a line of
``benchmarks/history/NAME.jsonl`` of it and holds it against the last committed one.

A ratio compares two things of one run, so that it can be held against another commit
and another machine. Seconds, memory and losses are sizes: their bounds hold, and they
are kept, but no run is worse for them than the one before.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from os import cpu_count
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
MEASURED, KEPT = ROOT / "build" / "benchmarks", ROOT / "benchmarks" / "history"
# A ratio may be worse by this share, or by as many of its own spreads if that is more.
WORSE, SPREADS = 0.1, 3.0

Value = float | Sequence[float]


@dataclass(frozen=True)
class Entry:
    """A line: ratios (a median where there were repeats), their spreads, and sizes.

    A spread is (largest - smallest) / median. Of the ratios in ``more``, more is
    better; of the others, less is.
    """

    ratios: dict[str, float]
    spread: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)
    more: list[str] = field(default_factory=list)
    commit: str = ""
    date: str = ""
    cores: int = 0
    args: str = ""

    def worse_than(self, before: Entry) -> Iterator[str]:
        """Say which ratios are worse than those of an earlier line, beyond chance.

        By over 10 %, or three times their own spread (the larger of both lines') where
        that is more.
        """
        for name in self.ratios.keys() & before.ratios.keys():
            now, then = self.ratios[name], before.ratios[name]
            spread = max(line.spread.get(name, 0.0) for line in (self, before))
            most = 1 + max(WORSE, SPREADS * spread)
            if (then > now * most) if name in self.more else (now > then * most):
                yield (
                    f"{name}: {now:.3g}, {then:.3g} at {before.commit}, over"
                    f" {most - 1:.0%} worse"
                )


def record(
    name: str,
    ratios: Mapping[str, Value],
    *,
    sizes: Mapping[str, Value] | None = None,
    bounds: Mapping[str, float] | None = None,
    least: Mapping[str, float] | None = None,
    more: Sequence[str] = (),
) -> int:
    """Write down what a script measured; print its targets; 1 where one is missed.

    Args:
        name: of the script, without ``bench_``.
        ratios: each a number, or one a repeat.
        sizes: seconds, MiB, losses and counts, which no later run is held against.
        bounds: what a ratio or size may be at most.
        least: what one must be at least; more of it is better.
        more: further ratios of which more is better.
    """
    given = {**ratios, **(sizes or {})}
    found = {key: _middle(value) for key, value in given.items()}
    spread = {
        key: _spread(value)
        for key, value in given.items()
        if isinstance(value, Sequence) and len(value) > 1
    }
    made = Entry(
        {key: found[key] for key in ratios},
        spread,
        {key: found[key] for key in sizes or ()},
        sorted({*(least or ()), *more} & ratios.keys()),
    )
    MEASURED.mkdir(parents=True, exist_ok=True)
    (MEASURED / f"{name}.json").write_text(json.dumps(asdict(made)), encoding="utf-8")
    met = [_said(key, found[key], most, "most") for key, most in (bounds or {}).items()]
    met += [_said(key, found[key], few, "least") for key, few in (least or {}).items()]
    return int(not all(met))


def _middle(value: Value) -> float:
    return float(median(value) if isinstance(value, Sequence) else value)


def _spread(values: Sequence[float]) -> float:
    middle = median(values)
    return float((max(values) - min(values)) / middle) if middle else 0.0


def _said(what: str, found: float, limit: float, side: str) -> bool:
    met = found <= limit if side == "most" else found >= limit
    word = "met" if met else "MISSED"
    print(f"target: {what}: at {side} {limit:g}: {found:.4g}, {word}", flush=True)
    return met


def measured(name: str) -> Entry | None:
    """Return what the script of this name has just written, None: nothing."""
    path = MEASURED / f"{name}.json"
    return Entry(**json.loads(path.read_text("utf-8"))) if path.is_file() else None


def entries(text: str) -> list[Entry]:
    """Return the lines of a history."""
    return [Entry(**json.loads(line)) for line in text.splitlines() if line]


def here(args: str) -> dict[str, str | int]:
    """Return what a line says of its run: commit, date, cores and arguments."""
    commit = _git("describe", "--always", "--dirty").strip() or "unknown"
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"commit": commit, "date": now, "cores": cpu_count() or 1, "args": args}


def committed(name: str, made: Entry) -> Entry | None:
    """Return the last committed line of as many cores and the same arguments."""
    text = _git("show", f"HEAD:benchmarks/history/{name}.jsonl")
    like = (
        each
        for each in reversed(entries(text))
        if (each.cores, each.args) == (made.cores, made.args)
    )
    return next(like, None)


def keep(name: str, made: Entry) -> None:
    """Add a line to the history of a benchmark."""
    KEPT.mkdir(exist_ok=True)
    with (KEPT / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(made)) + "\n")


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return "" if done.returncode else done.stdout
